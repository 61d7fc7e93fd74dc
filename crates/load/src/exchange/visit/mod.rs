//! Answers that are looked into: of the steps of users' sessions, and where requests have checks that
//! need the whole answer.

mod age;
pub(crate) mod cookies;
mod kept;
mod user;

use net::http::{HttpError, Progress, ResponseHead, ResponseParser, ResponsePart};
use readings::{HttpVersion, Wrong};

use super::{Kind, Note, Times};
use crate::http::Http;
use crate::http::session::Fields;
use crate::job::expect::BodyCheck;
use crate::job::target::{Request, Target};
use crate::job::traffic::Traffic;
pub(crate) use age::AnswerAge;
use kept::Kept;
pub(crate) use user::User;

/// A request and its answer.
#[derive(Debug)]
pub(crate) struct Visit {
    is_head: bool,
    parser: ResponseParser,
    head: ResponseHead,
    check: BodyCheck,
    kept: Kept,
    /// What is wrong with the answer, once it is complete.
    fault: Option<Wrong>,
    /// Whose session it is part of; `None` without sessions.
    user: Option<Box<User>>,
    /// What a request without a session captures, which nobody asks for.
    captured: Vec<Vec<u8>>,
}

impl Visit {
    fn take_field(&mut self, name: &[u8], value: &[u8]) {
        self.kept.take_field(name, value);
    }

    /// What is wrong with an answer that has the status and the content that were expected.
    fn look(&mut self, target: &Target, number: usize) -> Option<Wrong> {
        let Traffic::Users(users) = &target.traffic else {
            return None;
        };
        let step = users.steps.get(number)?;
        let captured = match &mut self.user {
            Some(user) => &mut user.captured,
            None => &mut self.captured,
        };
        self.kept.look(users, step, captured).err()
    }
}

impl Kind for Visit {
    type Error = HttpError;

    /// An answer is counted as a whole.
    const HAS_MESSAGES: bool = false;

    fn new(target: &Target) -> Self {
        let has_users = target.traffic.users().is_some();
        Self {
            is_head: false,
            parser: ResponseParser::new(false),
            head: ResponseHead::default(),
            check: BodyCheck::default(),
            kept: Kept::of(target),
            fault: None,
            user: has_users.then(Box::default),
            captured: Vec::new(),
        }
    }

    fn expected(http: HttpVersion) -> String {
        Http::expected(http)
    }

    fn is_repeatable(request: &Request) -> bool {
        Http::is_repeatable(request)
    }

    fn prepare(&mut self, target: &Target, number: usize) {
        if let Traffic::Users(users) = &target.traffic
            && let Some(step) = users.steps.get(number)
        {
            self.kept.begin(step, users.keeps_cookies);
        }
    }

    fn begin(&mut self, request: &Request) {
        self.is_head = request.is_head();
        self.parser.set_head_request(self.is_head);
        self.head = ResponseHead::default();
        self.check.reset();
        self.kept.clear();
        self.fault = None;
    }

    fn reset(&mut self) {
        self.parser.reset();
        self.check.reset();
        self.kept.clear();
    }

    fn take(
        &mut self,
        request: &Request,
        _: Times,
        bytes: &[u8],
        _: impl FnMut(Note),
    ) -> Result<bool, HttpError> {
        let rule = &request.expect.body;
        let (kept, check) = (&mut self.kept, &mut self.check);
        let progress = self
            .parser
            .feed_parts(bytes, kept.wants_fields(), |part| match part {
                ResponsePart::Field(name, value) => kept.take_field(name.as_bytes(), value),
                ResponsePart::Head(_) => {}
                ResponsePart::Content(piece) => {
                    check.take(rule, piece);
                    kept.take_content(piece);
                }
            })?;
        match progress {
            Progress::More => Ok(false),
            Progress::Done { taken } if taken < bytes.len() => Err(HttpError::Unasked),
            Progress::Done { .. } => {
                self.head = self.parser.head();
                Ok(true)
            }
        }
    }

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

    fn take_head(&mut self, status: u16, fields: &Fields, _: Times, _: impl FnMut(Note)) {
        let keep_alive = true;
        self.head = ResponseHead { status, keep_alive };
        for (name, value) in fields.iter() {
            self.take_field(name, value);
        }
    }

    fn take_content(&mut self, request: &Request, _: Times, bytes: &[u8], _: impl FnMut(Note)) {
        self.check.take(&request.expect.body, bytes);
        self.kept.take_content(bytes);
    }

    fn complete(&mut self, target: &Target, number: usize, now: u64) {
        // Cookies are kept even of an answer that is not good.
        if let (Some(user), Traffic::Users(users)) = (&mut self.user, &target.traffic)
            && users.keeps_cookies
        {
            let path = String::from_utf8_lossy(&user.path);
            for (name, value) in self.kept.fields.iter() {
                if name == b"set-cookie" {
                    user.cookies.set(value, &path, now);
                }
            }
        }
        let expect = &target.requests[number].expect;
        let wrong = expect.judge(self.head.status, self.is_head, &self.check);
        self.fault = wrong.or_else(|| self.look(target, number));
    }

    fn user(&mut self) -> Option<&mut User> {
        self.user.as_deref_mut()
    }

    fn age(&self) -> Option<AnswerAge> {
        self.kept.age
    }

    fn status(&self) -> Option<u16> {
        Some(self.head.status)
    }

    fn judge(&self, _: &Request) -> Option<Wrong> {
        self.fault.clone()
    }

    fn keeps_connection(&self) -> bool {
        self.head.keep_alive
    }
}
