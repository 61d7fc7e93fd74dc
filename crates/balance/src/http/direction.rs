//! Which way a message goes.

/// The direction of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Client to back end.
    #[default]
    Request,
    /// Back end to client.
    Response,
}
