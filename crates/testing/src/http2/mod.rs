//! Peers that speak HTTP/2 and can send any frames.

pub mod back_end;
pub mod client;

use net::h2::{H2Error, hpack};

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
