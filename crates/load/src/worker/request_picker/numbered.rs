//! Requests that follow from their number: with places to fill in, or with the times of a log.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use readings::HttpVersion;
use readings::requests::FeedOrder;

use crate::job::Job;
use crate::job::filling::Filling;
use crate::job::log::{Cursor, Log};
use crate::job::share::Numbers;
use crate::job::target::{Choice, Target};
use crate::template::draw::Draws;
use crate::template::request::{Rendered, RequestFiller, Scratch};
use crate::template::{Filler, Values};

/// Requests that are filled in before they are due, at most.
const AHEAD: usize = 8;
/// After one that is longer no further one is filled in at once.
const LONG: usize = 64 * 1024;

/// A request that has its number and is not sent yet.
#[derive(Debug, Default)]
struct Drawn {
    number: u64,
    /// How many the thread has drawn before it.
    before: u64,
    request: usize,
    /// Where the log was before it.
    log_at: Cursor,
    /// Whether it is filled in: one with the time is not, before it is sent.
    is_rendered: bool,
    rendered: Rendered,
}

/// The requests of one thread, in order.
pub(in crate::worker) struct Numbered {
    seed: u64,
    first_number: u64,
    numbers: Numbers,
    /// This thread among those with connections, and how many these are.
    turn: (u64, u64),
    /// How many are drawn, and how many may be sent.
    count: u64,
    claimed: u64,
    /// The first number that has no row, and the feed that ends there.
    end: (u64, Option<usize>),
    fillers: Vec<Option<RequestFiller>>,
    filling: Filling,
    sums: Vec<u64>,
    is_in_order: bool,
    /// Where it is in the log.
    log_at: Cursor,
    is_replaying: bool,
    scratch: Scratch,
    /// Whether users follow from numbers: their requests are filled in when they are sent.
    has_users: bool,
    /// A ring: those that are drawn begin at `first`.
    ahead: Vec<Drawn>,
    first: usize,
    drawn: usize,
}

impl Numbered {
    /// `None` for a target whose requests are fixed and have no log.
    pub(super) fn new(number: usize, job: &Job, thread: usize, sums: &[u64]) -> Option<Box<Self>> {
        let target = &job.targets[number];
        let filling = target.filling.as_deref()?;
        // A thread without connections sends nothing.
        let turn = job.turns(number, thread).unwrap_or((0, 1));
        Some(Box::new(Self {
            seed: job.seed,
            first_number: job.first_number,
            numbers: job.numbers(number, thread),
            turn,
            count: 0,
            claimed: 0,
            end: end(filling),
            fillers: fillers(target, filling),
            filling: filling.clone(),
            sums: sums.to_vec(),
            is_in_order: target.choice == Choice::InOrder,
            log_at: Cursor::default(),
            is_replaying: false,
            scratch: Scratch::default(),
            has_users: target.traffic.users().is_some(),
            ahead: (0..AHEAD).map(|_| Drawn::default()).collect(),
            first: 0,
            drawn: 0,
        }))
    }

    /// The body of a request, if it is sent without being copied.
    pub(super) fn shared(&self, request: usize) -> Option<Arc<[u8]>> {
        self.fillers.get(request)?.as_ref()?.shared().cloned()
    }

    /// Takes the next number, for a request that is drawn later. Returns false if the rows of a feed
    /// are used up.
    #[inline]
    pub(in crate::worker) fn claim(&mut self) -> bool {
        let is_left = self.is_left(self.claimed);
        self.claimed += u64::from(is_left);
        is_left
    }

    /// Whether [`Self::claim`] would succeed.
    pub(super) fn has_rows(&self) -> bool {
        self.is_left(self.claimed)
    }

    /// Whether the thread's so-many-th request has its row.
    #[inline]
    fn is_left(&self, count: u64) -> bool {
        self.end.1.is_none() || self.numbers.at(count) < self.end.0
    }

    /// The name of the feed that is used up, once it is.
    pub(in crate::worker) fn used_up(&self) -> Option<&str> {
        let feed = self.end.1.filter(|_| !self.is_left(self.claimed))?;
        Some(&self.filling.feeds[feed].name)
    }

    /// A segment begins; in an open loop, with a log, where it begins in that. Returns the log and the
    /// place of the first entry of the segment.
    pub(in crate::worker) fn begin(&mut self, offset_ns: Option<u64>) -> Option<(Log, Cursor)> {
        // What was drawn for the segment before, and not sent.
        if self.drawn > 0 {
            let first = &self.ahead[self.first];
            (self.count, self.log_at) = (first.before, first.log_at);
            self.drawn = 0;
        }
        self.is_replaying = false;
        let (offset_ns, turn) = (offset_ns?, self.turn);
        let log = self.filling.log.as_ref()?;
        log.skip(&mut self.log_at, turn, offset_ns);
        self.is_replaying = true;
        Some((log.clone(), self.log_at))
    }

    /// The number of this thread, and that of all threads.
    pub(in crate::worker) fn turn(&self) -> (u64, u64) {
        self.turn
    }

    /// Fills in the next request that is due later. Returns whether there may be more to fill in.
    pub(in crate::worker) fn render_ahead(&mut self) -> bool {
        if self.has_users || self.drawn == AHEAD || !self.is_left(self.count) {
            return false;
        }
        let at = (self.first + self.drawn) % AHEAD;
        let mut drawn = std::mem::take(&mut self.ahead[at]);
        (drawn.before, drawn.log_at) = (self.count, self.log_at);
        (drawn.number, drawn.request) = self.draw();
        let filler = self.fillers[drawn.request].as_ref();
        drawn.is_rendered = !filler.is_some_and(RequestFiller::uses_now);
        if drawn.is_rendered {
            self.render(drawn.request, drawn.number, &mut drawn.rendered);
        }
        let is_long = drawn.rendered.bytes.len() > LONG;
        self.ahead[at] = drawn;
        self.drawn += 1;
        !is_long
    }

    /// The number of the next request among the target's, with its bytes in `rendered`, which is empty
    /// for a fixed one.
    pub(in crate::worker) fn next(&mut self, rendered: &mut Rendered) -> usize {
        if self.drawn == 0 {
            let (number, request) = self.draw();
            self.render(request, number, rendered);
            return request;
        }
        let mut drawn = self.take();
        if drawn.is_rendered {
            std::mem::swap(rendered, &mut drawn.rendered);
        } else {
            self.render(drawn.request, drawn.number, rendered);
        }
        let request = drawn.request;
        self.keep(drawn);
        request
    }

    /// The same, of a request that is not sent.
    pub(super) fn skip(&mut self) -> usize {
        if self.drawn == 0 {
            return self.draw().1;
        }
        let drawn = self.take();
        let request = drawn.request;
        self.keep(drawn);
        request
    }

    /// The first of the ring. [`Self::keep`] takes its memory back.
    fn take(&mut self) -> Drawn {
        std::mem::take(&mut self.ahead[self.first])
    }

    fn keep(&mut self, drawn: Drawn) {
        self.ahead[self.first] = drawn;
        self.first = (self.first + 1) % AHEAD;
        self.drawn -= 1;
    }

    /// The number of the next one, and which of the target's requests it is.
    #[inline]
    fn draw(&mut self) -> (u64, usize) {
        let number = self.numbers.at(self.count);
        let request = self.choose(number);
        self.count += 1;
        (number, request)
    }

    /// Which of the target's requests is the next.
    fn choose(&mut self, number: u64) -> usize {
        let turn = self.turn;
        if self.is_replaying
            && let Some(log) = &self.filling.log
            && let Some(entry) = log.next(&mut self.log_at, turn)
        {
            return entry.request as usize;
        }
        let requests = self.fillers.len();
        if self.is_in_order {
            // Each thread goes through all of them: of every so many-th it would send only some.
            return (self.turn.0.wrapping_add(self.count) % requests as u64) as usize;
        }
        match self.sums.last() {
            None => 0,
            Some(&total) => {
                let at = Draws::of(self.seed, number).choice().below(total);
                self.sums.partition_point(|&sum| sum <= at)
            }
        }
    }

    fn render(&mut self, request: usize, number: u64, out: &mut Rendered) {
        self.render_of(request, (number, number), &[], out);
    }

    /// Fills in a request of this number, with the rows of this other one, and with what was captured
    /// of earlier answers.
    pub(in crate::worker) fn render_of(
        &mut self,
        request: usize,
        (number, row): (u64, u64),
        captured: &[Vec<u8>],
        out: &mut Rendered,
    ) {
        let Some(filler) = &self.fillers[request] else {
            return out.clear();
        };
        let values = Values {
            number,
            row,
            seed: self.seed,
            first: self.first_number,
            feeds: &self.filling.feeds,
            captured,
            now_ms: if filler.uses_now() { now_ms() } else { 0 },
        };
        filler.render(&values, &mut self.scratch, out);
    }

    /// Appends a text of a request, filled in as [`Self::render_of`] does.
    pub(in crate::worker) fn append(
        &self,
        text: &Filler,
        (number, row): (u64, u64),
        captured: &[Vec<u8>],
        out: &mut Vec<u8>,
    ) {
        let values = Values {
            number,
            row,
            seed: self.seed,
            first: self.first_number,
            feeds: &self.filling.feeds,
            captured,
            now_ms: if text.uses_now() { now_ms() } else { 0 },
        };
        text.append(&values, out);
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    })
}

/// The first number without a row, and the feed that has none.
fn end(filling: &Filling) -> (u64, Option<usize>) {
    let used = filling.used_feeds();
    let once = used
        .iter()
        .filter(|feed| filling.feeds[**feed].order == FeedOrder::Once);
    let ends = once.map(|feed| (filling.feeds[*feed].rows(), Some(*feed)));
    ends.min().unwrap_or((u64::MAX, None))
}

fn fillers(target: &Target, filling: &Filling) -> Vec<Option<RequestFiller>> {
    let http: HttpVersion = target.http();
    let of = |number: usize| {
        let template = filling.templates.get(number)?.as_ref()?;
        Some(RequestFiller::new(template, http, target.scheme()))
    };
    (0..target.requests.len()).map(of).collect()
}
