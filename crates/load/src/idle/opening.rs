//! What is said on a connection before it is left alone.

use crate::exchange::{Kind, Times};
use crate::http::Http;
use crate::http::h2::{EncodedRequest, Session};
use crate::http::session::Answer;
use crate::job::target::{Request, Target};

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
    /// Why it is of no use.
    Failed(String),
}

/// The state of a connection that is being opened.
pub(super) struct Speech {
    exchange: Http,
    /// With HTTP/2: it stays as long as the connection does.
    pub(super) session: Option<Box<Session>>,
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
        let session = self.encoded.as_ref().map(|encoded| {
            let mut session = Box::new(Session::new(1));
            if !self.is_silent {
                session.request(0, encoded);
            }
            out.append(&mut session.out);
            session
        });
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
        let Some(session) = &mut speech.session else {
            return match speech.exchange.take(self.request, UNTIMED, bytes, |_| {}) {
                Ok(false) => Step::More,
                Ok(true) => self.judged(&speech.exchange),
                Err(error) => Step::Failed(error.to_string()),
            };
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

/// Takes bytes that arrived on an idle connection of HTTP/2: PING and SETTINGS are answered. Returns
/// whether it still is one.
pub(super) fn answer_at_rest(session: &mut Session, bytes: &[u8], out: &mut Vec<u8>) -> bool {
    let fed = session.feed(bytes, |_| {});
    out.append(&mut session.out);
    fed.is_ok()
}
