//! A request with one answer: the exchange of HTTP, in every version.

use net::http::{HttpError, Progress, ResponseHead, ResponseParser};
use readings::{HttpVersion, Wrong};

use crate::exchange::{Kind, Note, Times};
use crate::http::session::Fields;
use crate::job::expect::BodyCheck;
use crate::job::target::{Request, Target};

#[derive(Debug)]
pub(crate) struct Http {
    /// Whether the request is HEAD, whose answers have no body.
    is_head: bool,
    parser: ResponseParser,
    /// The head of the answer.
    head: ResponseHead,
    check: BodyCheck,
}

impl Kind for Http {
    type Error = HttpError;

    /// An answer is counted as a whole.
    const HAS_MESSAGES: bool = false;

    fn new(_: &Target) -> Self {
        Self {
            is_head: false,
            parser: ResponseParser::new(false),
            head: ResponseHead::default(),
            check: BodyCheck::default(),
        }
    }

    fn expected(http: HttpVersion) -> String {
        format!("an HTTP/{} answer", http.name())
    }

    fn is_repeatable(request: &Request) -> bool {
        request.is_idempotent()
    }

    #[inline]
    fn begin(&mut self, request: &Request) {
        self.is_head = request.is_head();
        self.parser.set_head_request(self.is_head);
        self.head = ResponseHead::default();
        self.check.reset();
    }

    fn reset(&mut self) {
        self.parser.reset();
    }

    #[inline]
    fn take(
        &mut self,
        request: &Request,
        _: Times,
        bytes: &[u8],
        _: impl FnMut(Note),
    ) -> Result<bool, HttpError> {
        let (rule, check) = (&request.expect.body, &mut self.check);
        match self.parser.feed(bytes, |piece| check.take(rule, piece))? {
            Progress::More => Ok(false),
            // The answer's end is uncertain then: its length may be wrong.
            Progress::Done { taken } if taken < bytes.len() => Err(HttpError::Unasked),
            Progress::Done { .. } => {
                self.head = self.parser.head();
                Ok(true)
            }
        }
    }

    #[inline]
    fn interim_ended(&mut self) -> Option<bool> {
        self.parser.take_interim_end()
    }

    fn end(&mut self) -> bool {
        let is_complete = self.parser.end();
        if is_complete {
            self.head = self.parser.head();
        }
        is_complete
    }

    #[inline]
    fn take_head(&mut self, status: u16, _: &Fields, _: Times, _: impl FnMut(Note)) {
        let keep_alive = true;
        self.head = ResponseHead { status, keep_alive };
    }

    #[inline]
    fn take_content(&mut self, request: &Request, _: Times, bytes: &[u8], _: impl FnMut(Note)) {
        self.check.take(&request.expect.body, bytes);
    }

    #[inline]
    fn status(&self) -> Option<u16> {
        Some(self.head.status)
    }

    #[inline]
    fn judge(&self, request: &Request) -> Option<Wrong> {
        let expect = &request.expect;
        expect.judge(self.head.status, self.is_head, &self.check)
    }

    #[inline]
    fn keeps_connection(&self) -> bool {
        self.head.keep_alive
    }
}
