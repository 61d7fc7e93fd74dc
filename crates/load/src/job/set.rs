//! Requests as files say them, made a target's.

use std::time::Duration;

use readings::requests::{AnswerSpec, Replay, RequestSet, RequestSpec, Template};

use super::expect::{BodyRule, Expect, StatusRule};
use super::target::{Choice, Request, Target};
use super::traffic::{Step, Traffic, Users};
use super::{Segment, Stop};

impl Target {
    /// With these requests instead of its own. `host` and `fields` stand in the head of each, besides
    /// the request's own fields.
    #[must_use]
    pub fn with_requests(self, set: &RequestSet, host: &str, fields: &[(String, String)]) -> Self {
        let requests = set.requests.iter().map(|one| request(one, host, fields));
        Self {
            traffic: Users::of(set).map_or(self.traffic, Traffic::Users),
            requests: requests.collect(),
            choice: match set.in_order {
                true => Choice::InOrder,
                false => Choice::Weighted,
            },
            ..self
        }
    }
}

impl Segment {
    /// An open loop on target 0, recorded to reading 0, whose requests are due as in a log.
    pub fn replay(replay: &Replay) -> Self {
        let last = replay.due_ns.last().copied().unwrap_or_default();
        let length = Duration::from_nanos(last + 1);
        let rate_per_s = replay.due_ns.len() as f64 / length.as_secs_f64();
        Self::open(rate_per_s, Stop::After(length))
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

fn request(spec: &RequestSpec, host: &str, fields: &[(String, String)]) -> Request {
    let text = |template: &Template| {
        let fixed = template.as_fixed().unwrap_or_default();
        String::from_utf8_lossy(fixed).into_owned()
    };
    let mut all = fields.to_vec();
    let own = spec.fields.iter();
    all.extend(own.map(|(name, value)| (name.clone(), text(value))));
    let body = spec.body.as_ref().and_then(Template::as_fixed);
    if let Some(body) = body {
        all.push(("Content-Length".into(), body.len().to_string()));
    }
    let mut bytes = net::fetch::request(&spec.method, host, &text(&spec.path), &all);
    bytes.extend_from_slice(body.unwrap_or_default());
    Request {
        name: spec.name.clone(),
        bytes,
        expect: expect(&spec.expect),
        weight: spec.weight,
    }
}

fn expect(spec: &AnswerSpec) -> Expect {
    Expect {
        status: spec.status.map_or(StatusRule::Success, StatusRule::Exactly),
        body: match &spec.contains {
            Some(text) => BodyRule::Contains(text.as_bytes().into()),
            None => BodyRule::Any,
        },
    }
}
