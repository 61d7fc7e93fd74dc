//! What is the same must not look different. Alone in this file: it measures.

use crate::common::{Origin, Place, array};

#[test]
fn a_url_compared_with_itself_is_hardly_ever_faster_or_slower() {
    let place = Place::new();
    let origin = Origin::start(&place);
    let subjects = [format!("a={}/", origin.url), format!("b={}/", origin.url)];
    let mut different = Vec::new();
    for run in ["1", "2", "3"] {
        let call = [
            "compare",
            &subjects[0],
            &subjects[1],
            "-c",
            "8",
            "--blocks",
            "5",
            "--window",
            "300ms",
            "--bottleneck=false",
            "--format",
            "json",
            "--seed",
            run,
            "--out",
            run,
        ];
        let document = place.run(&call).result();
        assert_eq!(document["trials"]["done"], 15);
        assert_eq!(document["trials"]["failed"], 0);
        assert_eq!(document["seed"].to_string(), run);
        assert!(!array(&document["noise_floor"]).is_empty());
        let comparisons = array(&document["comparisons"]);
        assert!(!comparisons.is_empty());
        let sentences: Vec<String> = comparisons
            .iter()
            .filter(|one| one["verdict"] == "faster" || one["verdict"] == "slower")
            .map(|one| one["sentence"].to_string())
            .collect();
        if !sentences.is_empty() {
            different.push(sentences);
        }
    }
    // Each run may be wrong once in twenty times, by the confidence that it states.
    assert!(different.len() <= 1, "{different:#?}");
}
