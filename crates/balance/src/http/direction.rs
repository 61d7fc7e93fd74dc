//! Which way a message goes.

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Client to back end.
    Request,
    /// Back end to client.
    Response,
}
