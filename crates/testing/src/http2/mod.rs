//! Peers that speak HTTP/2 and can send any frames.

pub mod back_end;
pub mod client;

use std::io::{self, ErrorKind, Read};

use net::h2::{H2Error, hpack};

/// Reads once, and again after EINTR: a read with a time limit may end with it where another thread uses
/// io_uring.
pub fn read(stream: &mut impl Read, input: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(input) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            result => return result,
        }
    }
}

/// Names and values of a header block.
fn fields(decoder: &mut hpack::Decoder, block: &[u8]) -> Result<Vec<(String, String)>, H2Error> {
    let mut fields = Vec::new();
    decoder.decode(block, |name, value| {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        fields.push((text(name), text(value)));
        Ok(())
    })?;
    Ok(fields)
}
