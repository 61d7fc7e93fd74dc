//! Requests as files say them, made a target's.

use std::sync::Arc;

use readings::HttpVersion;
use readings::requests::{AnswerSpec, Replay, RequestSet, RequestSpec, Template};

use super::expect::{BodyChecks, BodyRule, Expect, StatusRule};
use super::filling::Filling;
use super::log::Log;
use super::target::{Choice, Request, Target};
use super::traffic::{Step, Traffic, Users};
use super::{Segment, Stop};
use crate::template::Values;
use crate::template::feed::FeedRows;
use crate::template::request::{Rendered, RequestFiller, RequestTemplate, Scratch};

impl Target {
    /// With these requests instead of its own. `host` and `fields` stand in the head of each, besides
    /// the request's own fields.
    #[must_use]
    pub fn with_requests(self, set: &RequestSet, host: &str, fields: &[(String, String)]) -> Self {
        let all = set.requests.iter().map(|one| template(one, host, fields));
        let all: Vec<RequestTemplate> = all.collect();
        let feeds: Vec<FeedRows> = set.feeds.iter().map(FeedRows::of).collect();
        let both = all.iter().zip(&set.requests);
        let requests = both.map(|(template, spec)| Request {
            name: spec.name.clone(),
            bytes: example(template, &feeds),
            expect: expect(&spec.expect),
            weight: spec.weight,
        });
        let requests = requests.collect();
        let has_places =
            |one: &RequestTemplate| one.templates().any(|one| one.as_fixed().is_none());
        // With cookies any request may differ from the one before.
        let keeps_cookies = set.users.is_some_and(|users| users.keeps_cookies);
        let is_filled = |one: &RequestTemplate| keeps_cookies || has_places(one);
        let templates = all.into_iter().map(|one| Some(one).filter(is_filled));
        let filling = Filling {
            templates: templates.collect(),
            feeds,
            log: set.replay.as_ref().map(Log::of),
            captured: set.users.map_or(0, |_| set.captured.len()),
        };
        let is_needed = filling.log.is_some() || filling.templates.iter().any(Option::is_some);
        Self {
            traffic: Users::of(set).map_or(self.traffic, Traffic::Users),
            requests,
            choice: match set.in_order {
                true => Choice::InOrder,
                false => Choice::Weighted,
            },
            filling: is_needed.then(|| Box::new(filling)),
            ..self
        }
    }

    /// The `Age` of its answers is read; nothing is done where exchanges last.
    #[must_use]
    pub fn with_ages(mut self) -> Self {
        match &mut self.traffic {
            Traffic::Users(users) => users.reads_ages = true,
            Traffic::Answers => {
                self.traffic = Traffic::Users(Users {
                    steps: vec![Step::default(); self.requests.len()],
                    reads_ages: true,
                    ..Users::default()
                });
            }
            Traffic::Events(_) | Traffic::WebSocket(_) | Traffic::Grpc(_) => {}
        }
        self
    }
}

impl Segment {
    /// An open loop on target 0, recorded to reading 0, whose requests are due as in a log.
    pub fn replay(replay: &Replay) -> Self {
        Self::open(replay.rate_per_s(), Stop::After(replay.length()))
    }
}

impl Users {
    /// The sessions of a set, or the checks that need its whole answers; `None` if it has neither.
    fn of(set: &RequestSet) -> Option<Self> {
        let looks = |step: &Step| !step.json.is_empty() || !step.fields.is_empty();
        let steps: Vec<Step> = set.requests.iter().map(Step::of).collect();
        let is_needed = set.users.is_some() || steps.iter().any(looks);
        is_needed.then(|| Self {
            steps,
            in_rounds: set.users.is_some(),
            reads_ages: false,
            keeps_cookies: set.users.is_some_and(|users| users.keeps_cookies),
            captured: set.captured.clone(),
        })
    }
}

impl Step {
    fn of(spec: &RequestSpec) -> Self {
        Self {
            pause: spec.pause,
            is_once: spec.is_once,
            captures: spec.captures.clone(),
            json: spec.expect.json.clone(),
            fields: spec.expect.fields.clone(),
        }
    }
}

/// A request with all of its head.
fn template(spec: &RequestSpec, host: &str, fields: &[(String, String)]) -> RequestTemplate {
    let fixed = |(name, value): &(String, String)| (name.clone(), Template::fixed(value.as_str()));
    let mut all: Vec<(String, Template)> = fields.iter().map(fixed).collect();
    all.extend(spec.fields.iter().cloned());
    if !all
        .iter()
        .any(|(name, _)| name.eq_ignore_ascii_case("host"))
    {
        all.insert(0, ("Host".to_owned(), Template::fixed(host)));
    }
    RequestTemplate {
        method: spec.method.clone(),
        path: spec.path.clone(),
        fields: all,
        body: spec.body.clone(),
    }
}

/// The bytes of a fixed request; of one with places, those of the first.
fn example(template: &RequestTemplate, feeds: &[FeedRows]) -> Vec<u8> {
    let values = Values {
        number: 0,
        row: 0,
        seed: 0,
        first: 0,
        feeds,
        captured: &[],
        now_ms: 0,
    };
    let mut rendered = Rendered::default();
    RequestFiller::new(template, HttpVersion::Http1, "http").render(
        &values,
        &mut Scratch::default(),
        &mut rendered,
    );
    let (head, body) = rendered.parts();
    [head, body].concat()
}

fn expect(spec: &AnswerSpec) -> Expect {
    let sha256 = spec.sha256.as_deref().map(|text| text.to_ascii_lowercase());
    let checks = BodyChecks {
        contains: spec.contains.as_deref().map(|text| text.as_bytes().into()),
        length: spec.length,
        sha256,
    };
    Expect {
        status: spec.status.map_or(StatusRule::Success, StatusRule::Exactly),
        body: match checks == BodyChecks::default() {
            true => BodyRule::Any,
            false => BodyRule::All(Arc::new(checks)),
        },
    }
}
