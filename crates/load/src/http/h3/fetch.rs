//! One request over HTTP/3, blocking.

use std::io;
use std::time::{Duration, Instant};

use net::fetch::{Answer as Whole, FetchError};
use net::{Address, os};
use quic::{Client, ClientSettings, OpenError, Scratch};

use super::{EncodedRequest, Polled, Session, error_name};
use crate::http::session::Answer;

/// As [`tls::fetch`], over HTTP/3.
///
/// # Errors
/// As there.
pub(crate) fn fetch(
    address: &Address,
    settings: &ClientSettings,
    request: &EncodedRequest,
    limit: Duration,
    body_bytes_max: usize,
) -> Result<Whole, FetchError> {
    let until = Instant::now() + limit;
    let to = address
        .inet()
        .ok_or_else(|| io::Error::other("HTTP/3 needs an IP address"))?;
    let mut scratch = Scratch::new(os::now_ns(), 4);
    let mut client = Client::open(settings, to, None, false, os::now_ns(), &scratch).map_err(
        |error| match error {
            OpenError::Io(error) => error,
            other => io::Error::other(other),
        },
    )?;
    let mut session = Session::keeping_fields(1);
    let mut whole = Whole {
        status: 0,
        fields: Vec::new(),
        body: Vec::new(),
        trailers: Vec::new(),
    };
    let (mut is_done, mut is_sent, mut failure) = (false, false, None);
    while !is_done {
        let mut timer = client.flush(os::now_ns(), &mut scratch);
        if !is_sent && !client.connection.is_handshaking() {
            // Whether it is refused says the limit of time.
            is_sent = session.request(&mut client.connection, 0, request);
            timer = client.flush(os::now_ns(), &mut scratch);
        }
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            let what = match is_sent {
                true => "no complete answer over HTTP/3 in time",
                false => "no answer to the QUIC handshake in time (does the server speak HTTP/3?)",
            };
            return Err(io::Error::new(io::ErrorKind::TimedOut, what).into());
        }
        let timer = timer.map(|at| Duration::from_nanos(at.saturating_sub(os::now_ns())));
        client.socket().wait(timer.unwrap_or(left).min(left))?;
        let now = os::now_ns();
        let mut polled = Ok(Polled::default());
        let mut answer = |answer: Answer<'_>| match answer {
            Answer::Head { status, fields, .. } => {
                whole.status = status;
                whole.fields = fields.to_vec();
            }
            Answer::Body { bytes, .. } => whole.body.extend_from_slice(bytes),
            Answer::Trailers { fields, .. } => whole.trailers = fields.to_vec(),
            Answer::End { .. } => is_done = true,
            Answer::Malformed { what, .. } => failure = Some(format!("the answer has {what}")),
            Answer::Reset { code, .. } => {
                let name = error_name(code).map_or(format!("code {code:#x}"), str::to_owned);
                failure = Some(format!("the stream was reset: {name}"));
            }
            Answer::NotProcessed { .. } => failure = Some("the request was refused".into()),
        };
        let received = client.receive(now, &mut scratch, |connection, _| {
            add(&mut polled, session.poll(connection, &mut answer));
        });
        client.expire(now, &scratch);
        add(
            &mut polled,
            session.poll(&mut client.connection, &mut answer),
        );
        match polled {
            Err(error) => failure = Some(format!("the answer is not HTTP/3: {error}")),
            Ok(Polled { lost, .. }) => failure = failure.or(lost),
        }
        if let Err(errno) = received
            && !is_sent
        {
            let error = io::Error::from_raw_os_error(errno);
            let what = format!("{error}: no server speaks HTTP/3 on this UDP port");
            return Err(io::Error::new(error.kind(), what).into());
        }
        if let Some(why) = failure.filter(|_| !is_done) {
            return Err(io::Error::other(why).into());
        }
        failure = None;
        if whole.body.len() > body_bytes_max {
            return Err(FetchError::Large(body_bytes_max));
        }
    }
    let code = net::h3::ErrorCode::NoError as u64;
    client.close(code, "", os::now_ns(), &mut scratch);
    Ok(whole)
}

fn add(sum: &mut Result<Polled, net::h3::H3Error>, polled: Result<Polled, net::h3::H3Error>) {
    match (sum.as_mut(), polled) {
        (Ok(sum), Ok(polled)) => sum.add(polled),
        (Ok(_), Err(error)) => *sum = Err(error),
        (Err(_), _) => {}
    }
}
