//! One request over HTTP/2, blocking.

use std::io;
use std::time::Duration;

use net::Address;
use net::fetch::{Answer as Whole, FetchError};
use tls::ClientTls;

use super::{EncodedRequest, Session};
use crate::http::session::Answer;

/// As [`tls::fetch`], over HTTP/2.
///
/// # Errors
/// As there.
pub(crate) fn fetch(
    address: &Address,
    tls: Option<&ClientTls>,
    preamble: &[u8],
    request: &EncodedRequest,
    limit: Duration,
    body_bytes_max: usize,
) -> Result<Whole, FetchError> {
    let mut channel = tls::open(address, tls, preamble, limit)?;
    let mut session = Session::keeping_fields(1);
    // The first stream of a session is never refused.
    session.request(0, request);
    let mut whole = Whole {
        status: 0,
        fields: Vec::new(),
        body: Vec::new(),
        trailers: Vec::new(),
    };
    let (mut is_done, mut failure) = (false, None);
    let mut buffer = vec![0; 64 * 1024];
    while !is_done {
        channel.send(&session.out)?;
        session.out.clear();
        let n = channel.receive(&mut buffer)?;
        if n == 0 {
            return Err(FetchError::Short);
        }
        let fed = session.feed(&buffer[..n], |answer| match answer {
            Answer::Head { status, fields, .. } => {
                whole.status = status;
                whole.fields = fields.to_vec();
            }
            Answer::Body { bytes, .. } => whole.body.extend_from_slice(bytes),
            Answer::Trailers { fields, .. } => whole.trailers = fields.to_vec(),
            Answer::End { .. } => is_done = true,
            Answer::Malformed { what, .. } => failure = Some(format!("the answer has {what}")),
            Answer::Reset { code, .. } => failure = Some(format!("the stream was reset ({code})")),
            Answer::NotProcessed { .. } => failure = Some("the request was refused".into()),
        });
        if let Err(error) = fed {
            failure = Some(match tls {
                Some(_) => format!("the answer is not HTTP/2: {error}"),
                None => format!(
                    "the answer is not HTTP/2: {error}; without TLS the server has to expect \
                     HTTP/2 from the first byte"
                ),
            });
        }
        if let Some(why) = failure {
            return Err(io::Error::other(why).into());
        }
        if whole.body.len() > body_bytes_max {
            return Err(FetchError::Large(body_bytes_max));
        }
    }
    Ok(whole)
}
