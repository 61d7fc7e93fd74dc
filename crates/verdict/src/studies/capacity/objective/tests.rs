use super::*;
use crate::fixtures::open;
use testing::Text as _;

fn objective(text: &str) -> Objective {
    text.parse().unwrap()
}

fn judge(text: &str, load: &LoadReading) -> Judgement {
    objective(text).judge_load(load)
}

fn missed(text: &str, load: &LoadReading) -> Vec<(Limit, f64)> {
    match judge(text, load) {
        Judgement::Missed(limits) => limits,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_load_within_its_limits_held() {
    let load = open(2_000.0, 400.0);
    assert_eq!(judge("p50<1ms", &load), Judgement::Met);
    assert_eq!(
        judge("p99<1ms, mean<0.5ms, max<=1ms", &load),
        Judgement::Met
    );
}

#[test]
fn what_was_missed_is_named_with_its_figures() {
    let mut load = open(2_000.0, 400.0);
    load.requests = 15_000;
    load.errors.timeout = 5_000;
    let limits = objective("p99 < 500us and errors < 0.1%").limits;
    let values = [load.response.quantile_us(0.99), 0.25, 0.75];
    assert_eq!(
        missed("p99 < 500us and errors < 0.1%", &load),
        limits.into_iter().zip(values).collect::<Vec<_>>()
    );
    // Unless the text is more lenient.
    assert_eq!(
        judge("p99<1ms, errors<30%, achieved>70%", &load),
        Judgement::Met
    );
}

#[test]
fn silence_misses_and_does_not_hold() {
    let mut load = open(2_000.0, 400.0);
    load.requests = 0;
    load.response.clear();
    load.errors.timeout = 20_000;
    let (limit, value) = missed("p99<1ms", &load)[0];
    assert_eq!((limit.quantity, value), (Quantity::Errors, 1.0));
    // Not even a timeout came.
    load.errors.timeout = 0;
    assert_eq!(missed("p99<1ms", &load).len(), 2);
}

#[test]
fn a_quantile_with_too_few_requests_says_nothing() {
    let load = open(500.0, 400.0);
    assert!(matches!(
        judge("p99.9<1ms", &load),
        Judgement::Unusable(CannotJudge::TooFewRequests {
            requests: 5_000,
            needed: 100_000,
            ..
        })
    ));
    assert_eq!(judge("p50<1ms", &load), Judgement::Met);
    // What is missed anyway stays missed.
    assert_eq!(missed("p99.9<1ms, p50<1us", &load).len(), 1);
}

#[test]
fn a_late_client_says_nothing_about_the_server() {
    let mut load = open(2_000.0, 400.0);
    load.client.saturated = true;
    assert!(matches!(judge("p50<1us", &load), Judgement::Unusable(_)));
    let mut load = open(2_000.0, 400.0);
    for _ in 0..1000 {
        load.schedule_lag.record_ns(300_000);
    }
    assert!(matches!(judge("p50<1us", &load), Judgement::Unusable(_)));
    load.pacing = Pacing::Closed;
    assert!(matches!(judge("p50<1us", &load), Judgement::Unusable(_)));
}

#[test]
fn what_is_kept_or_missed_in_spite_of_a_late_client_is() {
    let mut load = open(2_000.0, 400.0);
    for _ in 0..1000 {
        load.schedule_lag.record_ns(150_000);
    }
    // The lateness is in the response: without it, it would be shorter still.
    assert_eq!(judge("p50<1ms", &load), Judgement::Met);
    // 400 us less twice 150 us.
    assert!(matches!(judge("p50<150us", &load), Judgement::Unusable(_)));
    assert_eq!(missed("p50<50us", &load).len(), 1);
    // What else is missed is not the client's doing.
    load.errors.status = 1_000;
    assert_eq!(missed("p50<150us", &load).len(), 2);
    load.client.saturated = true;
    assert!(matches!(judge("p50<50us", &load), Judgement::Unusable(_)));
}

#[test]
fn an_objective_is_written_as_it_is_read() {
    for (text, written, conditions) in [
        (
            "p99<50ms",
            "p99 < 50 ms",
            "errors < 0.1% and achieved >= 99%",
        ),
        (
            "p99.9 < 200us and errors <= 1%",
            "p99.9 < 200 us and errors <= 1%",
            "achieved >= 99%",
        ),
        (
            "max<1500ms, achieved>95%, errors<0.05%",
            "max < 1.5 s and achieved > 95% and errors < 0.05%",
            "",
        ),
    ] {
        let objective = objective(text);
        assert_eq!(objective.to_string(), written);
        assert_eq!(objective.conditions(), conditions);
        assert_eq!(written.parse::<Objective>().unwrap(), objective);
    }
}

#[test]
fn limits_of_options_stand_apart_from_the_objectives_text() {
    let with = objective("p99<50ms").with_errors("1%").unwrap();
    let with = with.with_achieved("95%").unwrap();
    assert_eq!(with.to_string(), "p99 < 50 ms");
    assert_eq!(with.conditions(), "errors <= 1% and achieved >= 95%");
    assert_eq!(with.limits().len(), 3);
    let twice = objective("p99<50ms and errors<2%").with_errors("1%");
    twice
        .unwrap_err()
        .to_string()
        .begins("`errors` is limited twice");
    assert!(objective("p99<50ms").with_errors("few").is_err());
}

/// A closed loop of streams whose messages are late by this much, and of which so many failed.
fn streams(lag_us: u64, failed: u64) -> LoadReading {
    let mut lasting = readings::LastingReading {
        opened: 1_000,
        messages: 20_000,
        ..readings::LastingReading::default()
    };
    lasting.lag.record_many_ns(lag_us * 1_000, 20_000);
    let mut load = crate::fixtures::closed(10.0);
    load.errors_all.read = failed;
    load.lasting = Some(Box::new(lasting));
    load
}

#[test]
fn of_streams_the_lag_of_messages_is_limited() {
    let objective = objective("p99<20ms").of_streams();
    assert_eq!(objective.to_string(), "p99 < 20 ms of lag");
    let judge = |load: &LoadReading| objective.judge_load(load);
    assert_eq!(judge(&streams(19_000, 0)), Judgement::Met);
    let missed = |judgement| matches!(judgement, Judgement::Missed(_));
    assert!(missed(judge(&streams(21_000, 0))));
    assert!(missed(judge(&streams(19_000, 2))), "more than 0.1% failed");
    let mut lossy = streams(19_000, 0);
    lossy.lasting.as_mut().unwrap().lost = 1_000;
    assert!(missed(judge(&lossy)), "less than 99% came");
    // A busy client may be what makes messages late.
    let mut busy = streams(21_000, 0);
    busy.client.saturated = true;
    let unusable = Judgement::Unusable(CannotJudge::ClientBusy);
    assert_eq!(judge(&busy), unusable);
    let mut undated = streams(1, 0);
    undated.lasting.as_mut().unwrap().lag = Histogram::new();
    let no_lag = Judgement::Unusable(CannotJudge::NoLag);
    assert_eq!(judge(&undated), no_lag);
}

#[test]
fn of_users_the_requests_that_they_make_count_as_offered() {
    // 100 users per second, who make three requests each.
    let mut load = open(300.0, 400.0);
    load.pacing = Pacing::Open { rate_per_s: 100.0 };
    load.offered = Some(readings::Offered {
        due: 3_000,
        answered_within: 3_000,
        ..readings::Offered::default()
    });
    load.users = Some(Box::new(readings::UsersReading {
        arrived: 1_000,
        ..readings::UsersReading::default()
    }));
    let of_users = |text: &str| objective(text).of_users();
    assert_eq!(of_users("p50<1ms").judge_load(&load), Judgement::Met);
    load.requests /= 2;
    let judged = of_users("p50<1ms").judge_load(&load);
    assert!(matches!(judged, Judgement::Missed(_)), "{judged:?}");
}
