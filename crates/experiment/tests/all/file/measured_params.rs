//! Mistakes in parameters that say what back ends ought to count.

use crate::support::{changed, good, parse, shown};

const WEIGHED: &str = r#"title = "weights"
[servers.one]
recipe = "origin"
[servers.two]
recipe = "origin"
[servers.lb]
recipe = "nginx"
upstreams = ["one", "two"]
with = { weights = ["3", "1"] }
[subjects]
lb = "http://lb/"
"#;

#[test]
fn each_upstream_has_a_weight() {
    good(parse(WEIGHED));
    let wrong = |name, to| shown(name, &changed(WEIGHED, r#"["3", "1"]"#, to));
    wrong("weights-too-few", r#"["3"]"#);
    wrong("weights-no-numbers", r#"["0", "1.5"]"#);
}

const LIMITED: &str = r#"title = "limits"
[hosts.a]
ssh = "a"
[hosts.b]
ssh = "b"
[hosts.c]
ssh = "c"
address = "192.0.2.7"
[servers.lb]
recipe = "origin"
host = "c"
with = { rate_limit_per_s = 500 }
[subjects]
lb = "http://lb/"
[load]
hosts = ["a", "b"]
rate = "1000/s"
"#;

#[test]
fn a_limit_has_a_load_from_one_host() {
    let one = changed(LIMITED, r#"hosts = ["a", "b"]"#, r#"host = "a""#);
    good(parse(&one));
    good(parse(&changed(LIMITED, "per_s = 500", "per_s = 0")));
    shown("limit-several-hosts", LIMITED);
}
