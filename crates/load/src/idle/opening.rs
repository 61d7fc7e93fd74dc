//! What is said on a connection before it is left alone.

use crate::exchange::{Kind, Times};
use crate::http::h2::EncodedRequest;
use crate::http::session::Answer;
use crate::http::ws::Said;
use crate::http::{Http, h2, ws};
use crate::job::target::{Request, Target};
use crate::job::traffic::{SocketFlow, WebSocket};

/// Nothing is timed.
const UNTIMED: Times = Times {
    intended: 0,
    sent: 0,
    arrived: 0,
};

/// What a connection says, the same for all of a target.
pub(super) struct Script<'j> {
    target: &'j Target,
    request: &'j Request,
    /// With HTTP/2.
    encoded: Option<EncodedRequest>,
    is_silent: bool,
}

/// How far a connection is after some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// More has to come.
    More,
    /// It can be left alone.
    Done,
    /// The server says that it is over.
    Ended,
    /// Why it is of no use.
    Failed(String),
}

/// The state of a connection that is being opened.
pub(super) struct Speech {
    exchange: Http,
    /// Of a connection that has to be answered while it is left alone.
    pub(super) session: Option<Session>,
}

/// What answers on a connection as long as it is open.
pub(super) enum Session {
    Http2(Box<h2::Session>),
    WebSocket(Box<ws::Session>),
}

impl Session {
    /// Appends a ping.
    pub(super) fn ping(&mut self, out: &mut Vec<u8>) {
        match self {
            Session::Http2(session) => {
                session.ping();
                out.append(&mut session.out);
            }
            Session::WebSocket(session) => {
                session.flow.ping();
                out.append(&mut session.flow.out);
            }
        }
    }

    /// Answers to pings since this was asked last.
    pub(super) fn take_pongs(&mut self) -> u64 {
        std::mem::take(match self {
            Session::Http2(session) => &mut session.pongs,
            Session::WebSocket(session) => &mut session.flow.pongs,
        })
    }
}

impl<'j> Script<'j> {
    /// `None` for a target without requests.
    pub(super) fn of(target: &'j Target, is_silent: bool) -> Option<Self> {
        let request = target.requests.first()?;
        let http2 = target.http2.is_some();
        // `Job::validate` has seen that it can be encoded.
        let encoded = http2.then(|| EncodedRequest::of(&request.bytes, target.scheme()));
        Some(Self {
            target,
            request,
            encoded: encoded.flatten(),
            is_silent,
        })
    }

    /// Begins: appends what is sent first.
    pub(super) fn begin(&self, out: &mut Vec<u8>) -> Speech {
        let mut exchange = Http::new(self.target);
        exchange.begin(self.request);
        let session = match (self.target.traffic.websocket(), &self.encoded) {
            (Some(asked), _) => {
                // What the server sends is taken, whatever it is.
                let settings = WebSocket {
                    message_bytes: 0,
                    flow: SocketFlow::Receive,
                    ..*asked
                };
                let seed = fastrand::u64(..);
                let mut session = ws::Session::new(&self.request.bytes, &[], seed, settings);
                out.append(&mut session.flow.out);
                Some(Session::WebSocket(Box::new(session)))
            }
            (None, Some(encoded)) => {
                let mut session = Box::new(h2::Session::new(1));
                if !self.is_silent {
                    session.request(0, encoded);
                }
                out.append(&mut session.out);
                Some(Session::Http2(session))
            }
            (None, None) => None,
        };
        if session.is_none() && !self.is_silent {
            out.extend_from_slice(&self.request.bytes);
        }
        Speech { exchange, session }
    }

    /// Whether nothing is awaited once it has begun.
    pub(super) fn is_over_at_once(&self) -> bool {
        self.is_silent && self.encoded.is_none()
    }

    /// Takes bytes that arrived; what has to be sent is appended.
    pub(super) fn take(&self, speech: &mut Speech, bytes: &[u8], out: &mut Vec<u8>) -> Step {
        let session = match &mut speech.session {
            None => {
                return match speech.exchange.take(self.request, UNTIMED, bytes, |_| {}) {
                    Ok(false) => Step::More,
                    Ok(true) => self.judged(&speech.exchange),
                    Err(error) => Step::Failed(error.to_string()),
                };
            }
            Some(Session::WebSocket(session)) => return socket_step(session, bytes, out),
            Some(Session::Http2(session)) => session,
        };
        let exchange = &mut speech.exchange;
        let mut step = Step::More;
        let fed = session.feed(bytes, |answer| match answer {
            Answer::Head { status, fields, .. } => {
                exchange.take_head(status, fields, UNTIMED, |_| {});
            }
            Answer::Body { bytes, .. } => {
                exchange.take_content(self.request, UNTIMED, bytes, |_| {});
            }
            Answer::Trailers { .. } => {}
            Answer::End { .. } => step = Step::Done,
            Answer::Malformed { what, .. } => step = Step::Failed(format!("the answer has {what}")),
            Answer::Reset { .. } | Answer::NotProcessed { .. } => {
                step = Step::Failed("the server has reset the stream".into());
            }
        });
        out.append(&mut session.out);
        match (fed, step) {
            (Err(error), _) => Step::Failed(format!("the answer is not HTTP/2: {error}")),
            // The server's SETTINGS have come.
            (Ok(()), Step::More) if self.is_silent => Step::Done,
            (Ok(()), Step::Done) => self.judged(exchange),
            (Ok(()), step) => step,
        }
    }

    fn judged(&self, exchange: &Http) -> Step {
        match exchange.judge(self.request) {
            Some(wrong) => Step::Failed(format!(
                "expected {}, found {}",
                wrong.expected, wrong.found
            )),
            None if !exchange.keeps_connection() => {
                Step::Failed("the server closes the connection after its answer".into())
            }
            None => Step::Done,
        }
    }
}

/// Takes bytes that arrived on an idle connection: PING and SETTINGS are answered.
pub(super) fn answer_at_rest(session: &mut Session, bytes: &[u8], out: &mut Vec<u8>) -> Step {
    match session {
        Session::Http2(session) => {
            let fed = session.feed(bytes, |_| {});
            out.append(&mut session.out);
            match fed {
                Ok(()) => Step::More,
                Err(_) => Step::Failed("what came is not HTTP/2".into()),
            }
        }
        Session::WebSocket(session) => socket_step(session, bytes, out),
    }
}

/// Takes bytes that arrived on a WebSocket: it is done when it has opened.
fn socket_step(session: &mut ws::Session, bytes: &[u8], out: &mut Vec<u8>) -> Step {
    let mut step = Step::More;
    let fed = session.feed(bytes, |said| {
        if matches!(said, Said::Opened { .. }) {
            step = Step::Done;
        }
    });
    out.append(&mut session.flow.out);
    match fed {
        Err(why) => Step::Failed(why),
        Ok(()) if session.flow.closed().is_some() => Step::Ended,
        Ok(()) => step,
    }
}
