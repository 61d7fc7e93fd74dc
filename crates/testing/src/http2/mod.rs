//! Peers that speak HTTP/2 and can send any frames.

pub mod back_end;
pub mod client;

use std::collections::BTreeMap;
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

/// How much may be sent on each stream, and on the connection (0), bytes.
#[derive(Default)]
struct Windows(BTreeMap<u32, i64>);

impl Windows {
    fn window(&mut self, stream: u32) -> &mut i64 {
        self.0.entry(stream).or_insert(65_535)
    }

    fn open(&mut self, stream: u32, increment: u32) {
        *self.window(stream) += i64::from(increment);
    }

    /// Takes room for a frame of content on a stream. Returns its length.
    fn take(&mut self, stream: u32) -> usize {
        let count = (*self.window(0)).min(*self.window(stream));
        let count = count.clamp(0, 16_384);
        *self.window(0) -= count;
        *self.window(stream) -= count;
        count as usize
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
