//! Three blocks of fourteen balancers, as measured: those that a slow back end limits vary by 1%, the
//! others by up to 20%, and most of these were slower in the second block.

use super::*;
use crate::Analysis;

/// Requests per second, by block.
const MEASURED: [(&str, [f64; 3]); 14] = [
    ("balance_peak_ewma", [67_828.0, 51_694.0, 78_134.0]),
    ("balance_least_connections", [74_486.0, 53_070.0, 67_962.0]),
    ("even_nginx_random", [44_550.0, 48_676.0, 45_714.0]),
    ("even_nginx", [42_478.0, 42_210.0, 48_746.0]),
    ("nginx_least_conn", [50_350.0, 38_502.0, 44_846.0]),
    ("haproxy_leastconn", [41_172.0, 47_368.0, 42_452.0]),
    ("even_haproxy", [43_482.0, 39_548.0, 47_958.0]),
    ("haproxy_random", [31_240.0, 25_104.0, 32_542.0]),
    ("balance_round_robin", [12_288.0, 12_288.0, 12_246.0]),
    ("nginx_round_robin", BASELINE),
    ("haproxy_roundrobin", [12_150.0, 11_918.0, 12_244.0]),
    ("nginx_random", [12_350.0, 11_770.0, 12_060.0]),
    ("caddy_least_conn", [11_994.0, 8_636.0, 10_796.0]),
    ("caddy_round_robin", [8_340.0, 7_800.0, 8_326.0]),
];
const BASELINE: [f64; 3] = [12_278.0, 11_996.0, 12_224.0];
const COPY: [f64; 3] = [12_158.0, 12_098.0, 12_168.0];
const NAME: &str = "nginx_round_robin";

fn analysis(measured: &[(&str, [f64; 3])], as_latency: bool) -> Analysis {
    let mut header = header(3);
    header.baseline = NAME.into();
    header.subjects = measured.iter().map(|(name, _)| (*name).into()).collect();
    header.matters = 0.05;
    let mut trials = Vec::new();
    for block in 0..3 {
        let copy = (NAME, COPY, true);
        let all = measured.iter().map(|(name, rates)| (*name, *rates, false));
        for (name, rates, is_copy) in all.chain([copy]) {
            let outcome = match as_latency {
                false => done(Some(closed(rates[block])), None),
                true => done(
                    None,
                    Some(crate::fixtures::open(1000.0, 1e7 / rates[block])),
                ),
            };
            let mut one = trial(block as u32 + 1, name, is_copy, outcome);
            reading(&mut one).separate_copy = true;
            trials.push(one);
        }
    }
    crate::analyse(&Journal::of_trials(header, trials))
}

/// What must agree in a result: places and pairs, intervals and pairs, comparisons and pairs.
fn agrees(analysis: &Analysis, tiers: &Tiers) {
    let places = tiers.places();
    let place = |name: &str| places.iter().find(|(one, _)| *one == name).unwrap().1;
    for pair in &tiers.pairs {
        let excludes = pair.low.unwrap() > 1.0 || pair.high.unwrap() < 1.0;
        assert!(excludes || !pair.told_apart, "{pair:?}");
        let p = (pair.p_value.unwrap(), pair.p_adjusted.unwrap());
        assert!(p.0 <= p.1 && (p.1 < 0.05 || !pair.told_apart), "{pair:?}");
        let told_apart =
            |tier: &Vec<String>| tier.contains(&pair.first) && tier.contains(&pair.second);
        assert_ne!(pair.told_apart, tiers.tiers.iter().any(told_apart));
        if pair.told_apart {
            let (better, worse) = (place(&pair.first), place(&pair.second));
            assert!(better.0 < worse.1 && better.1 < tiers.subjects.len());
        }
        let subject = match (&*pair.first, &*pair.second) {
            (NAME, subject) | (subject, NAME) => subject,
            _ => continue,
        };
        let mut all = analysis.comparisons.iter();
        let own = all
            .find(|c| c.metric == tiers.metric && c.subject == subject)
            .unwrap();
        let differs = matches!(own.verdict, Verdict::Faster | Verdict::Slower);
        assert!(differs || !pair.told_apart, "{own:?}");
        assert_ne!(pair.withheld, Some(PairWithheld::Comparison));
    }
}

#[test]
fn what_differs_twofold_is_told_apart_by_three_blocks() {
    for as_latency in [false, true] {
        let analysis = analysis(&MEASURED, as_latency);
        let tiers = &analysis.tiers[0];
        let metric = match as_latency {
            false => Metric::RequestsPerS,
            true => Metric::LatencyUsP50,
        };
        assert_eq!((tiers.metric, tiers.pairs.len()), (metric, 91));
        let is_twofold = |pair: &&SubjectPair| (pair.ratio.unwrap().ln()).abs() > 2f64.ln();
        let (twofold, others): (Vec<_>, Vec<_>) = tiers.pairs.iter().partition(is_twofold);
        assert!(twofold.len() >= 49, "{}", twofold.len());
        let told = twofold.iter().filter(|pair| pair.told_apart).count();
        assert!(told * 10 >= twofold.len() * 9, "{told}");
        for pair in twofold {
            let is_far = pair.ratio.unwrap().ln().abs() > 2.5f64.ln();
            assert!(pair.told_apart || !is_far, "{pair:?}");
        }
        // The four that round robin limits are alike to within 2%, and so are the two even ones.
        let alike = [
            NAME,
            "balance_round_robin",
            "haproxy_roundrobin",
            "nginx_random",
        ];
        for pair in others {
            let are_alike = alike.contains(&&*pair.first) && alike.contains(&&*pair.second);
            assert!(!are_alike || !pair.told_apart, "{pair:?}");
        }
        agrees(&analysis, tiers);
    }
}

/// First messages of a stream: 0.2, 0.6, 1.3, 2.1, 208 and 682 ms. The variation of the short ones
/// (a fifth) does not hide that the others take a hundred times as long.
#[test]
fn times_that_differ_by_orders_of_magnitude_are_told_apart() {
    let times = [
        (NAME, [5_000.0, 4_100.0, 5_600.0]),
        ("caddy", [1_600.0, 1_900.0, 1_500.0]),
        ("balance", [770.0, 900.0, 690.0]),
        ("unbuffered", [480.0, 390.0, 560.0]),
        ("haproxy", [4.81, 4.80, 4.82]),
        ("nginx", [1.47, 1.46, 1.47]),
    ];
    let mut analysis = analysis(&times, true);
    let tiers = analysis.tiers.remove(0);
    let long = ["haproxy", "nginx"];
    for pair in &tiers.pairs {
        let is_far = long.contains(&&*pair.first) != long.contains(&&*pair.second);
        assert!(pair.told_apart || !is_far, "{pair:?}");
    }
}
