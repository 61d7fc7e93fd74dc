//! What gRPC calls send: JSON by a schema, or an encoded message.

use std::borrow::Cow;

use super::load::LoadSpec;

/// What a load sends in each of its calls, and which sides stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Encoded.
    pub message: Vec<u8>,
    pub client_streams: bool,
    pub server_streams: bool,
}

/// Files with the schema of a method that were read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaFiles {
    /// Their paths, from the root.
    pub files: Vec<String>,
    /// Where imports were looked for, from the root; empty for the folders of the files.
    pub folders: Vec<String>,
    /// The schema, as an encoded `FileDescriptorSet`.
    pub set: Vec<u8>,
}

/// A file with a message that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageFile {
    /// Its path, from the root.
    pub path: String,
    pub bytes: Vec<u8>,
}

/// What is wrong with the calls of a load.
#[derive(Debug, thiserror::Error)]
#[error("{why}")]
pub struct CallError {
    /// The key in question.
    pub key: &'static str,
    why: String,
    pub help: Option<&'static str>,
}

impl LoadSpec {
    /// The message as it was given.
    fn message(&self) -> Cow<'_, [u8]> {
        match &self.traffic.body_file {
            Some(file) => file.bytes.as_slice().into(),
            None => match self.body().unwrap_or_default() {
                Cow::Borrowed(text) => text.as_bytes().into(),
                Cow::Owned(text) => text.into_bytes().into(),
            },
        }
    }

    fn message_key(&self) -> &'static str {
        match self.traffic.body_file {
            Some(_) => "body_file",
            None => "body",
        }
    }

    /// What each call sends; `None` if only the server knows, since the message is JSON, and no file
    /// has its schema.
    ///
    /// # Errors
    /// When the message or other keys do not fit the method.
    pub fn call(&self) -> Result<Option<Call>, CallError> {
        let traffic = &self.traffic;
        if let Some(schema) = &traffic.proto {
            return self.call_by_schema("proto", &schema.set).map(Some);
        }
        let message = self.message();
        if message.starts_with(b"{") {
            return match cfg!(feature = "full") {
                true => Ok(None),
                false => Err(no_schemas(self.message_key())),
            };
        }
        Ok(Some(Call {
            message: message.into_owned(),
            client_streams: traffic.call_messages.is_some() || traffic.in_flight.is_some(),
            server_streams: traffic.in_flight.is_some(),
        }))
    }

    /// What each call sends by the schema in these bytes, a `FileDescriptorSet`; `key` is where that
    /// came from.
    ///
    /// # Errors
    /// When the message or other keys do not fit the method.
    #[cfg(feature = "full")]
    pub fn call_by_schema(&self, key: &'static str, set: &[u8]) -> Result<Call, CallError> {
        use schema::{Method, MethodName, SchemaError};

        let wrong = |key, why: String| CallError {
            key,
            why,
            help: None,
        };
        let traffic = &self.traffic;
        let name = traffic.grpc.as_deref().unwrap_or_default();
        let method = MethodName::parse(name).and_then(|name| Method::from_set(&name, set));
        let method = method.map_err(|error| match error {
            SchemaError::Set(_) => wrong(key, error.to_string()),
            _ => wrong("grpc", error.to_string()),
        })?;
        let (client_streams, server_streams) =
            (method.is_client_stream(), method.is_server_stream());
        if traffic.in_flight.is_some() && !(client_streams && server_streams) {
            let why = format!("{name} does not stream both ways");
            return Err(wrong("in_flight", why));
        }
        if traffic.call_messages.is_some_and(|count| count > 1) && !client_streams {
            return Err(wrong("call_messages", format!("{name} takes one message")));
        }
        let given = self.message();
        let json = match given.as_ref() {
            [] => Some("{}"),
            [b'{', ..] => Some(std::str::from_utf8(&given).map_err(|_| {
                let why = "expected JSON in UTF-8";
                wrong(self.message_key(), why.to_owned())
            })?),
            _ => None,
        };
        let message = json.map(|json| method.message(json)).transpose();
        let message = message.map_err(|error| wrong(self.message_key(), error.to_string()))?;
        Ok(Call {
            message: message.unwrap_or_else(|| given.into_owned()),
            client_streams,
            server_streams,
        })
    }

    /// The same of a build that reads no schemas.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(feature = "full"))]
    pub fn call_by_schema(&self, key: &'static str, _: &[u8]) -> Result<Call, CallError> {
        Err(no_schemas(key))
    }
}

/// That a build without the feature cannot read it.
pub(crate) fn no_schemas(key: &'static str) -> CallError {
    CallError {
        key,
        why: "this build reads no schemas".to_owned(),
        help: Some(
            "build it with --features full, or give an encoded message, such as body = \
             \"\\n\\u0005hello\"",
        ),
    }
}
