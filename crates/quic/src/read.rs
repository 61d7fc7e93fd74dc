//! Reading a stream.

use quinn_proto::{Connection, ReadError, StreamId};

/// How the input of a stream ended, if it did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    Open,
    Finished,
    /// Reset by the peer, with its code.
    Reset(u64),
}

/// Reads what has arrived on a stream. A stream that this side has stopped has no input.
///
/// # Errors
/// The first of `each`; the rest of the input stays.
pub fn read<E>(
    connection: &mut Connection,
    id: StreamId,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<StreamEnd, E> {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else {
        return Ok(StreamEnd::Open);
    };
    let end = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => {
                if let Err(error) = each(&chunk.bytes) {
                    let _ = chunks.finalize();
                    return Err(error);
                }
            }
            Ok(None) => break StreamEnd::Finished,
            Err(ReadError::Blocked) => break StreamEnd::Open,
            Err(ReadError::Reset(code)) => break StreamEnd::Reset(code.into()),
        }
    };
    // The window updates that this causes are sent with the next packets.
    let _ = chunks.finalize();
    Ok(end)
}
