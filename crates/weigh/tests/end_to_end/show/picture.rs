//! The ranking of a run as a picture of its own.

use readings::JournalRow;
use testing::Text as _;

use crate::common::Place;

/// The folder of a run of which all is known.
fn run(place: &Place) {
    let journal = testing::journals::journal();
    let trials = testing::journals::trials().into_iter();
    let rows = [JournalRow::Run(journal.header)].into_iter();
    let rows = rows.chain(trials.map(|trial| JournalRow::Trial(Box::new(trial))));
    let lines: String = rows
        .map(|row| serde_json::to_string(&row).unwrap() + "\n")
        .collect();
    place.write("r/journal.jsonl", &lines);
}

#[test]
fn a_picture_stands_alone_in_the_form_that_its_name_says() {
    let place = Place::new();
    run(&place);
    let done = place.run("report r --picture p.svg").expect(0);
    assert_eq!((done.out.as_str(), done.err.as_str()), ("", ""));
    let svg = place.read("p.svg");
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""));
    svg.has(">balance</text>");
    svg.has(">20,000/s<");
    // A file that is there is written again, as by --output.
    place.write("p.SVG", "old");
    place.run("report r --picture p.SVG").expect(0);
    assert_eq!(place.read("p.SVG"), svg);
    match cfg!(feature = "full") {
        true => {
            place.run("report r --picture p.png").expect(0);
            let png = std::fs::read(place.path("p.png")).unwrap();
            assert!(png.starts_with(b"\x89PNG\r\n\x1a\n"), "{:?}", &png[..8]);
        }
        false => {
            let done = place.run("report r --picture p.png").expect(2);
            done.says(&["ends in .svg", "--features full"]);
        }
    }
}

#[test]
fn a_picture_that_cannot_be_made_says_why() {
    let place = Place::new();
    run(&place);
    for name in ["p.jpg", "p", "-"] {
        let done = place.run(&["report", "r", "--picture", name]).expect(2);
        done.says(&["expected a file that ends in .svg or .png"]);
        assert!(!place.path(name).exists());
    }
    place.run("report r --picture p.svg --format csv").expect(2);
    place.run("report r r --picture p.svg").expect(2);
    let header = JournalRow::Run(testing::journals::header());
    let line = serde_json::to_string(&header).unwrap() + "\n";
    place.write("empty/journal.jsonl", &line);
    let done = place.run("report empty --picture p.svg").expect(2);
    done.says(&["nothing can be ranked"]);
}
