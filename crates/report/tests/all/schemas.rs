//! Results and journals fit their published schemas.

use jsonschema::Validator;
use readings::{InstructionScope, InstructionsReading, Journal, JournalRow, Outcome};
use serde_json::Value;

const JOURNALS: [&str; 3] = ["loops", "events", "hosts"];

fn validator(name: &str) -> Validator {
    let root = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/src/reference/schemas"
    );
    let text = std::fs::read(format!("{root}/{name}.schema.json")).unwrap();
    jsonschema::draft202012::new(&serde_json::from_slice(&text).unwrap()).unwrap()
}

fn journal(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/journals/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(path).unwrap()
}

fn assert_valid(schema: &Validator, what: &str, document: &Value) {
    let errors = schema.iter_errors(document);
    let errors: Vec<String> = errors
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{what}: {}", errors.join("\n"));
}

fn result(name: &str) -> Value {
    let journal = Journal::parse(&journal(name)).unwrap();
    report::json(&journal.header, &verdict::analyse(&journal))
}

#[test]
fn results_of_real_runs_fit_the_schema() {
    let schema = validator("result");
    for name in JOURNALS {
        assert_valid(&schema, name, &result(name));
    }
}

#[test]
fn lines_of_journals_fit_the_schema_as_old_versions_and_this_one_write_them() {
    let schema = validator("journal");
    for name in JOURNALS {
        let text = journal(name);
        let read = Journal::parse(&text).unwrap();
        let written = read.rows.iter().map(|row| row.to_line().unwrap());
        let old = text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec);
        for line in old.chain(written).filter(|line| !line.is_empty()) {
            let document: Value = serde_json::from_slice(&line).unwrap();
            let what = format!("{name}: {}", document["row"]);
            assert_valid(&schema, &what, &document);
        }
    }
}

#[test]
fn instructions_of_servers_fit_the_schema() {
    let schema = validator("journal");
    let mut journal = Journal::parse(&journal("loops")).unwrap();
    for row in &mut journal.rows {
        let JournalRow::Trial(trial) = row else {
            continue;
        };
        let Outcome::Done(reading) = &mut trial.outcome else {
            continue;
        };
        reading.instructions = Some(InstructionsReading {
            scope: InstructionScope::UserAndKernel,
            requests: 3_000,
            servers: [("origin".to_owned(), 90_000_000)].into(),
        });
        let line = row.to_line().unwrap();
        let mut document: Value = serde_json::from_slice(&line).unwrap();
        assert_valid(&schema, "a trial", &document);
        document["outcome"]["done"]["instructions"]["scope"] = "hypervisor".into();
        assert!(!schema.is_valid(&document), "{document}");
    }
    let result = report::json(&journal.header, &verdict::analyse(&journal));
    assert_valid(&validator("result"), "its result", &result);
    let metric = "\"metric\":\"server_instructions_per_request\"";
    assert!(result.to_string().contains(metric), "{result}");
}

#[test]
fn wrong_documents_do_not_fit() {
    let schema = validator("result");
    let good = result("loops");
    let wrong = |change: &dyn Fn(&mut Value)| {
        let mut document = good.clone();
        change(&mut document);
        assert!(!schema.is_valid(&document), "{document}");
    };
    wrong(&|one| one["comparisons"][0]["verdict"] = "quicker".into());
    wrong(&|one| one["comparisons"][0]["ratio"] = "1.03".into());
    wrong(&|one| one["subjects"] = "direct".into());
    wrong(&|one| {
        one.as_object_mut().unwrap().remove("noise_floor");
    });
    let schema = validator("journal");
    for line in [
        r#"{"row":"end"}"#,
        r#"{"row":"no-such-row","text":"x"}"#,
        r#"{"row":"warning","text":1}"#,
        r#"{"row":"warning","text":"x","crc32":"xyz"}"#,
        r#"{"row":"trial","trial":1,"block":1,"condition":{},"subject":"a","outcome":"done"}"#,
    ] {
        let document: Value = serde_json::from_str(line).unwrap();
        assert!(!schema.is_valid(&document), "{line}");
    }
}
