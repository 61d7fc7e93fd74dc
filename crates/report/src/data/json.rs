//! A run's result as one JSON document.

use readings::RunHeader;
use serde::Serialize;
use serde_json::{Value, json as object};
use verdict::{Analysis, Comparison, LatencyCurves, Starts};

use verdict::words;

/// A run's result as one JSON document: the text of `summary.json`.
///
/// Holds `experiment`, `title`, `seed`, `weigh_version`, `stage` (the looks), `gates`, `comparisons` (ratios
/// are subject over baseline; figures that do not exist are `null`), `levels` (of factors, against
/// each other), `tiers`, `rankings`, `interactions`, `growth` (of metrics, with factors),
/// `noise_floor`, `shifts` (the latency quantile by quantile), `pauses` (of the client, by
/// block), `table`, `held_back` (who holds back the messages of streams), `shares` (of back ends), `limits` (of rates), `expiries` (of cached answers), `survivals` (connections
/// that last, around events), `bottlenecks`, `rates` (sentences), `curves` (latency against offered rate), `probes` (what looking cost), `settings` (of the compared
/// servers), `warnings`, and `trials` with the numbers `done`, `failed` and `invalid` and with
/// `failures` and `invalid_trials` naming them.
pub fn json(header: &RunHeader, analysis: &Analysis) -> Value {
    let placement = words::placement(&analysis.placements);
    let comparison = |c: &Comparison| {
        let more = [
            ("subject_starts", starts(&c.subject_starts)),
            ("baseline_starts", starts(&c.baseline_starts)),
            ("note", object!(words::notes(&c.notes))),
            (
                "sentence",
                object!(words::comparison_placed(c, placement.as_deref())),
            ),
        ];
        with(c, &more)
    };
    let comparisons = analysis.comparisons.iter().map(comparison);
    let levels = analysis.levels.iter();
    let levels = levels.map(|one| with(one, &[("comparison", comparison(&one.comparison))]));
    let table = analysis.table.iter();
    let table = table.map(|row| with(row, &[("starts", starts(&row.starts))]));
    let rates = analysis.rates.iter().map(words::rate_choice);
    let curves = analysis.curves.iter();
    let curves = curves.map(latency_curves);
    let invalid = analysis.invalid.iter();
    let invalid = invalid.map(|trial| {
        let reasons: Vec<String> = trial.reasons.iter().map(words::trial_flaw).collect();
        with(trial, &[("reasons", object!(reasons))])
    });
    let warnings = analysis.warnings.iter().map(words::warning);
    object!({
        "experiment": header.experiment,
        "title": header.title,
        "seed": header.seed,
        "weigh_version": header.weigh_version,
        "started_unix_s": header.started_unix_s,
        "baseline": header.baseline,
        "subjects": header.subjects,
        "blocks": header.blocks,
        "matters": header.matters,
        "matters_failures": header.matters_failures,
        "stage": with_sentence(&analysis.stage, words::stage(&analysis.stage)),
        "gates": crate::study::gates::gates_json(&analysis.gates),
        "comparisons": comparisons.collect::<Value>(),
        "levels": levels.collect::<Value>(),
        "tiers": told(&analysis.tiers, words::tiers),
        "rankings": analysis.rankings,
        "interactions": told(&analysis.interactions, words::interaction),
        "growth": told(&analysis.growth, words::growth),
        "noise_floor": told(&analysis.noise_floor, words::noise_floor),
        "shifts": analysis.shifts,
        "table": table.collect::<Value>(),
        "held_back": told(&analysis.held_back, words::held_back),
        "shares": told(&analysis.shares, words::shares),
        "limits": told(&analysis.limits, words::limiting),
        "expiries": told(&analysis.expiries, words::expiries),
        "survivals": told(&analysis.survivals, words::survival),
        "bottlenecks": told(&analysis.bottlenecks, words::finding),
        "rates": rates.collect::<Value>(),
        "curves": curves.collect::<Value>(),
        "tls": told(&analysis.tls, words::tls),
        "congestion": analysis.congestion,
        "by_request": analysis.by_request,
        "probes": analysis.probes.as_ref().map(|cost| with_sentence(cost, words::probes(cost))),
        "settings": analysis.settings,
        "warnings": warnings.collect::<Value>(),
        "trials": {
            "done": analysis.trials_done,
            "failed": analysis.trials_failed,
            "invalid": analysis.invalid.len(),
            "failures": analysis.failures,
            "invalid_trials": invalid.collect::<Value>(),
        },
    })
}

/// Starts with the reason in words.
fn starts(starts: &Starts) -> Value {
    let reason = starts.reason.as_ref().map(words::reason);
    with(starts, &[("reason", object!(reason))])
}

/// The curves of a condition with the reasons in words.
fn latency_curves(curves: &LatencyCurves) -> Value {
    let mut object = with(curves, &[("sentences", object!(words::curves(curves)))]);
    for (at, subject) in curves.subjects.iter().enumerate() {
        for (kind, rows) in [("rates", &subject.rates), ("shares", &subject.shares)] {
            for (row, point) in rows.iter().enumerate() {
                let reason = point.reason.as_ref().map(words::point_flaw);
                object["subjects"][at][kind][row]["reason"] = object!(reason);
            }
        }
    }
    object
}

/// Each with its sentence.
fn told<T: Serialize>(all: &[T], sentence: impl Fn(&T) -> String) -> Value {
    let each = all.iter().map(|one| with_sentence(one, sentence(one)));
    each.collect()
}

fn with_sentence(what: &impl Serialize, sentence: String) -> Value {
    with(what, &[("sentence", object!(sentence))])
}

/// A value's fields and some more.
fn with(what: &impl Serialize, more: &[(&str, Value)]) -> Value {
    let mut object = object!(what);
    for (key, value) in more {
        object[*key] = value.clone();
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::journals::journal;
    use verdict::analyse;

    #[test]
    fn the_contract_holds() {
        let journal = journal();
        let doc = json(&journal.header, &analyse(&journal));
        assert_eq!(doc["experiment"], "proxy-cost");
        assert_eq!(doc["seed"], 42);
        assert_eq!(doc["bottlenecks"], object!([]));
        assert_eq!(doc["stage"]["looks"], object!([6]));
        assert_eq!(doc["stage"]["look"], 1);
        assert_eq!(doc["trials"]["done"], 23);
        assert_eq!(doc["trials"]["failed"], 1);
        assert_eq!(doc["trials"]["invalid"], 5);
        let c = &doc["comparisons"][0];
        let keys = "condition metric subject baseline ratio low high confidence blocks matters \
                    verdict sentence";
        for key in keys.split(' ') {
            assert!(!c[key].is_null(), "no {key} in {c}");
        }
        assert_eq!(c["condition"], object!({"connections": "96"}));
        assert_eq!(c["metric"], "requests_per_s");
        assert_eq!(c["verdict"], "slower");
        let (ratio, low, high) = (&c["ratio"], &c["low"], &c["high"]);
        assert!(low.as_f64() < ratio.as_f64() && ratio.as_f64() < high.as_f64());
        assert!(ratio.as_f64().unwrap() < 1.0, "subject over baseline");

        let ranking = &doc["rankings"][0];
        assert_eq!(ranking["metric"], "requests_per_s");
        assert_eq!(ranking["rows"][0]["subject"], "direct");
        assert_eq!(ranking["rows"][1]["places"], object!([2, 2]));
        assert_eq!(ranking["rows"][1]["ratio"], *ratio);

        let invalid = &doc["comparisons"][1];
        assert_eq!(invalid["verdict"], "invalid");
        assert!(invalid["ratio"].is_null());
        assert_eq!(doc["comparisons"][2]["metric"], "latency_us_p50");
    }
}
