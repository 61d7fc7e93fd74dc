//! A method by its name.

use config::nearest::suggestion;
use prost_reflect::{DescriptorPool, MessageDescriptor, MethodDescriptor};

use crate::SchemaError;

/// The name of a method: `PACKAGE.SERVICE/METHOD`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MethodName {
    /// With its package.
    pub service: String,
    /// Within its service.
    pub method: String,
}

impl MethodName {
    /// Reads it.
    ///
    /// # Errors
    /// When it is not one.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let is_name = |text: &str| {
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
            !text.is_empty() && text.bytes().all(allowed)
        };
        let parts = text.strip_prefix('/').unwrap_or(text).split_once('/');
        match parts {
            Some((service, method)) if is_name(service) && is_name(method) => Ok(Self {
                service: service.to_owned(),
                method: method.to_owned(),
            }),
            _ => Err(SchemaError::Name(text.to_owned())),
        }
    }
}

/// A method and the message that it takes.
#[derive(Clone, Debug)]
pub struct Method(MethodDescriptor);

impl Method {
    /// The method with this name.
    ///
    /// # Errors
    /// When the schema has no such service, or the service no such method.
    pub(crate) fn find(pool: &DescriptorPool, name: &MethodName) -> Result<Self, SchemaError> {
        let Some(service) = pool.get_service_by_name(&name.service) else {
            let all: Vec<_> = pool.services().collect();
            let names = all.iter().map(|one| one.full_name());
            return Err(SchemaError::Service {
                name: name.service.clone(),
                help: suggestion(&name.service, "services", names),
            });
        };
        let found = service.methods().find(|one| one.name() == name.method);
        found.map(Self).ok_or_else(|| {
            let all: Vec<_> = service.methods().collect();
            let names = all.iter().map(|one| one.name());
            SchemaError::Method {
                service: name.service.clone(),
                name: name.method.clone(),
                help: suggestion(&name.method, "methods", names),
            }
        })
    }

    /// The method by a schema in the form of [`Self::to_set`].
    ///
    /// # Errors
    /// When these bytes are no schema, or there is no such method.
    pub fn from_set(name: &MethodName, set: &[u8]) -> Result<Self, SchemaError> {
        let pool = DescriptorPool::decode(set);
        let pool = pool.map_err(|error| SchemaError::Set(error.to_string()))?;
        Self::find(&pool, name)
    }

    /// Its whole schema, as an encoded `FileDescriptorSet`.
    pub fn to_set(&self) -> Vec<u8> {
        self.0.parent_pool().encode_to_vec()
    }

    /// Whether the client sends a stream of messages.
    pub fn is_client_stream(&self) -> bool {
        self.0.is_client_streaming()
    }

    /// Whether the server sends a stream of messages.
    pub fn is_server_stream(&self) -> bool {
        self.0.is_server_streaming()
    }

    pub(crate) fn input(&self) -> MessageDescriptor {
        self.0.input()
    }
}
