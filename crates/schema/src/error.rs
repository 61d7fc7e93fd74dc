//! Why there is no schema, or no message.

use crate::reflection::NotAsked;

/// Why there is no schema, or no message by it.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// Not the name of a method.
    #[error("expected PACKAGE.SERVICE/METHOD, such as weigh.v1.Echo/Unary, found `{0}`")]
    Name(String),
    /// A `.proto` file that cannot be read, or is wrong: where, and why.
    #[error("{0}")]
    File(String),
    /// No such service.
    #[error("there is no service `{name}`; {help}")]
    Service {
        /// What was asked for.
        name: String,
        /// The nearest name, or those that there are.
        help: String,
    },
    /// No such method.
    #[error("the service {service} has no method `{name}`; {help}")]
    Method {
        service: String,
        /// What was asked for.
        name: String,
        /// The nearest name, or those that there are.
        help: String,
    },
    /// A field that the message does not have.
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
    /// The server gives no schema.
    #[error("the server gives no schema: {0}")]
    Reflection(#[from] NotAsked),
    /// What the server gave is no schema.
    #[error("the server's reflection gives a schema that is wrong: {0}")]
    WrongReflection(String),
}
