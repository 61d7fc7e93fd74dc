//! Mistakes in parameters that say what back ends ought to count.

use crate::support::{changed, good, parse, rendered};

const WEIGHTED: &str = include_str!("../../good/weighted.toml");

#[test]
fn each_upstream_has_a_weight() {
    good(parse(WEIGHTED));
    for (weights, said) in [
        (
            r#"["3"]"#,
            &["1 weights for 2 upstreams", "x.toml:9:20", "one, two"][..],
        ),
        (
            r#"["0", "1.5"]"#,
            &[
                "`0` is no weight",
                "x.toml:9:21",
                "`1.5` is no weight",
                "x.toml:9:26",
            ],
        ),
    ] {
        let text = changed(WEIGHTED, r#"["3", "1"]"#, weights);
        let text = rendered(&parse(&text).expect_err(weights));
        for part in said {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}

const LIMITED: &str = include_str!("../../good/limited.toml");

#[test]
fn a_limit_has_a_load_from_one_host() {
    let one = changed(LIMITED, r#"hosts = ["a", "b"]"#, r#"host = "a""#);
    good(parse(&one));
    good(parse(&changed(LIMITED, "per_s = 500", "per_s = 0")));
    let text = rendered(&parse(LIMITED).expect_err("two hosts"));
    assert!(text.contains("needs a load from one host"), "{text}");
}
