//! Why there is no schema, or no message.

use crate::reflection::NotAsked;

/// Why there is no schema, or no message by it.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("expected PACKAGE.SERVICE/METHOD, such as weigh.v1.Echo/Unary, found `{0}`")]
    Name(String),
    /// A `.proto` file that cannot be read, or is wrong: where, and why.
    #[error("{0}")]
    File(String),
    #[error("there is no service `{name}`; {help}")]
    Service {
        name: String,
        /// The nearest name, or those that there are.
        help: String,
    },
    #[error("the service {service} has no method `{name}`; {help}")]
    Method {
        service: String,
        name: String,
        /// The nearest name, or those that there are.
        help: String,
    },
    #[error("{place}: the message {message} has no such field; {help}")]
    Field {
        /// Its place in the JSON document, such as `user.nmae`.
        place: String,
        message: String,
        /// The nearest name, or those that there are.
        help: String,
    },
    /// Not JSON, or a value of another type than its field's.
    #[error("{0}")]
    Json(String),
    #[error("the server gives no schema: {0}")]
    Reflection(#[from] NotAsked),
    #[error("the server's reflection gives a schema that is wrong: {0}")]
    WrongReflection(String),
    /// Bytes that are no `FileDescriptorSet`.
    #[error("no schema: {0}")]
    Set(String),
}
