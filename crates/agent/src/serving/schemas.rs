//! Schemas of gRPC methods, as their servers give them.

use crate::protocol::wire::{Answer, SchemaOrder};

#[cfg(feature = "full")]
mod asked {
    use std::time::Duration;

    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use load::{CallError, Target};
    use schema::{Method, MethodName, NotAsked, SchemaError, from_server};

    use super::{Answer, SchemaOrder};

    /// The method by the schema that a target's server gives. Each call to it may take up to `limit`.
    ///
    /// # Errors
    /// When the server gives no schema, or a wrong one, or there is no such method.
    pub fn schema_of(
        target: &Target,
        name: &MethodName,
        limit: Duration,
    ) -> Result<Method, SchemaError> {
        from_server(name, |path, message| {
            let answer = load::call(target, path, message, limit);
            answer.map_err(|error| match error {
                CallError::Status { status, message } => NotAsked::Status {
                    status,
                    message: net::grpc::decode_message(&message),
                },
                CallError::Other(why) => NotAsked::Other(why),
            })
        })
    }

    pub(in crate::serving) fn schema(order: &SchemaOrder) -> Result<Answer, String> {
        let limit = Duration::from_millis(order.timeout_ms);
        let name = MethodName::parse(&order.method);
        let method = name.and_then(|name| schema_of(&order.target, &name, limit));
        let set = STANDARD.encode(method.map_err(|error| error.to_string())?.to_set());
        Ok(Answer::Schema { set })
    }
}

#[cfg(feature = "full")]
pub use asked::schema_of;

#[cfg(feature = "full")]
pub(super) use asked::schema;

#[cfg(not(feature = "full"))]
pub(super) fn schema(_: &SchemaOrder) -> Result<Answer, String> {
    Err("its weigh reads no schemas: it was built without --features full".to_owned())
}
