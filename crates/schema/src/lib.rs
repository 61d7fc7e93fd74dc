//! Protocol Buffers: the schema of a gRPC method, from `.proto` files or from the server's reflection,
//! and JSON as messages.

mod error;
mod files;
mod json;
mod method;
mod reflection;

pub use error::SchemaError;
pub use files::{from_files, read_files};
pub use method::{Method, MethodName};
pub use reflection::{Asked, NotAsked, from_server};
