//! The kind of exchange of a job with any target that has more than answers: one of several, chosen
//! for each place by its target. So the worker is compiled twice for each event loop, not more.

use net::http::HttpError;
use readings::{HttpVersion, Wrong};

use super::events::Events;
use super::stamp::Stamp;
use super::visit::{AnswerAge, User, Visit};
use super::{Ending, Kind, Note, Times};
use crate::http::Http;
use crate::http::grpc::Call;
use crate::http::session::Fields;
use crate::job::target::{Request, Target};
use crate::job::traffic::Traffic;

#[derive(Debug)]
pub(crate) enum Lasting {
    Answer(Http),
    Events(Box<Events>),
    Grpc(Box<Call>),
    Visit(Box<Visit>),
}

/// Calls a method of the exchange, whatever its kind.
macro_rules! each {
    ($self:expr, $exchange:ident => $call:expr) => {
        match $self {
            Lasting::Answer($exchange) => $call,
            Lasting::Events($exchange) => $call,
            Lasting::Grpc($exchange) => $call,
            Lasting::Visit($exchange) => $call,
        }
    };
}

impl Kind for Lasting {
    type Error = HttpError;

    const HAS_MESSAGES: bool = true;

    fn new(target: &Target) -> Self {
        match &target.traffic {
            Traffic::Events(_) => Lasting::Events(Box::new(Events::new(target))),
            Traffic::WebSocket(websocket) if websocket.is_one_way() => {
                Lasting::Events(Box::new(Events::new(target)))
            }
            Traffic::Grpc(_) => Lasting::Grpc(Box::new(Call::new(target))),
            Traffic::Users(_) => Lasting::Visit(Box::new(Visit::new(target))),
            Traffic::Answers | Traffic::WebSocket(_) => Lasting::Answer(Http::new(target)),
        }
    }

    fn expected(http: HttpVersion) -> String {
        Http::expected(http)
    }

    fn is_repeatable(request: &Request) -> bool {
        Http::is_repeatable(request)
    }

    fn prepare(&mut self, target: &Target, number: usize) {
        each!(self, one => one.prepare(target, number));
    }

    fn begin(&mut self, request: &Request) {
        each!(self, one => one.begin(request));
    }

    fn reset(&mut self) {
        each!(self, one => one.reset());
    }

    fn take(
        &mut self,
        request: &Request,
        times: Times,
        bytes: &[u8],
        note: impl FnMut(Note),
    ) -> Result<bool, HttpError> {
        each!(self, one => one.take(request, times, bytes, note))
    }

    fn interim_ended(&mut self) -> Option<bool> {
        each!(self, one => one.interim_ended())
    }

    fn end(&mut self) -> bool {
        each!(self, one => one.end())
    }

    fn take_head(&mut self, status: u16, fields: &Fields, times: Times, note: impl FnMut(Note)) {
        each!(self, one => one.take_head(status, fields, times, note));
    }

    fn take_content(
        &mut self,
        request: &Request,
        times: Times,
        bytes: &[u8],
        note: impl FnMut(Note),
    ) {
        each!(self, one => one.take_content(request, times, bytes, note));
    }

    fn socket_opened(&mut self, is_own_clock: bool, times: Times, note: impl FnMut(Note)) {
        each!(self, one => one.socket_opened(is_own_clock, times, note));
    }

    fn take_message(
        &mut self,
        stamp: Option<Stamp>,
        bytes: u64,
        times: Times,
        note: impl FnMut(Note),
    ) {
        each!(self, one => one.take_message(stamp, bytes, times, note));
    }

    fn more_to_send(&mut self, now: u64) -> u32 {
        each!(self, one => one.more_to_send(now))
    }

    fn take_trailers(&mut self, fields: &Fields, times: Times) {
        each!(self, one => one.take_trailers(fields, times));
    }

    fn is_open(&self) -> bool {
        each!(self, one => one.is_open())
    }

    fn last_sign(&self) -> u64 {
        each!(self, one => one.last_sign())
    }

    fn over(&mut self, times: Times, is_complete: bool, note: impl FnMut(Note)) {
        each!(self, one => one.over(times, is_complete, note));
    }

    fn complete(&mut self, target: &Target, number: usize, now: u64) {
        each!(self, one => one.complete(target, number, now));
    }

    fn user(&mut self) -> Option<&mut User> {
        each!(self, one => one.user())
    }

    fn ending(&self) -> Option<Ending> {
        each!(self, one => one.ending())
    }

    fn age(&self) -> Option<AnswerAge> {
        each!(self, one => one.age())
    }

    fn status(&self) -> Option<u16> {
        each!(self, one => one.status())
    }

    fn judge(&self, request: &Request) -> Option<Wrong> {
        each!(self, one => one.judge(request))
    }

    fn keeps_connection(&self) -> bool {
        each!(self, one => one.keeps_connection())
    }
}
