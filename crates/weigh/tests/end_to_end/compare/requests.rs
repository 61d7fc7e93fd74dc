//! `weigh compare --requests`: what a run says of each request.

use crate::common::{Origin, Place, array};

#[test]
fn a_comparison_sends_the_requests_of_a_file_and_tells_each() {
    let place = Place::new();
    let origin = Origin::start(&place);
    place.write(
        "shop.toml",
        "[[request]]\nname = \"small\"\npath = \"/bytes/5\"\nexpect = { length = 5 }\n\
         [[request]]\nname = \"large\"\npath = \"/bytes/100\"\nweight = 3\n",
    );
    let subjects = ["a", "b"].map(|name| format!("{name}={}/", origin.url));
    let options = "--requests shop.toml -c 2 --blocks 1 --warmup 50ms --window 200ms \
                   --bottleneck=false --seed 1 --out r";
    let words = |more: &'static str| {
        let mut words = vec!["compare", &subjects[0], &subjects[1]];
        words.extend(
            options
                .split(' ')
                .chain(more.split(' '))
                .filter(|word| !word.is_empty()),
        );
        place.run(&words)
    };
    let document = words("--format json").result();
    assert_eq!(document["trials"]["failed"], 0, "{document}");
    let rows = array(&document["by_request"]);
    let told: Vec<(&str, &str)> = rows
        .iter()
        .map(|row| {
            (
                row["name"].as_str().unwrap(),
                row["subject"].as_str().unwrap(),
            )
        })
        .collect();
    let pairs = [
        ("small", "a"),
        ("small", "b"),
        ("large", "a"),
        ("large", "b"),
    ];
    assert_eq!(told, pairs);
    assert!(
        rows.iter()
            .all(|row| row["errors"] == 0 && row["requests"].as_u64() > Some(0))
    );
    let text = place.run("report r --verbose").expect(0).out.clone();
    assert!(text.contains("By request"), "{text}");
    let short = place.run("report r").expect(0).out.clone();
    assert!(!short.contains("By request"), "{short}");
}
