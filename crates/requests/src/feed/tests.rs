use std::path::Path;

use proptest::prelude::*;

use super::*;

fn csv(text: &str) -> Result<Rows, Vec<Fault>> {
    parse(text, FeedForm::Separated { by: b',' })
}

fn rows(columns: &[&str], rows: &[&[&str]]) -> Rows {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    Rows {
        columns: owned(columns),
        rows: rows.iter().map(|row| owned(row)).collect(),
    }
}

/// Line, column and text of each mistake.
fn said(text: &str, form: FeedForm) -> Vec<(usize, usize, String)> {
    let faults = parse(text, form).unwrap_err();
    let said = |fault: Fault| {
        let (line, column) = config::reader::line_and_column(text, fault.at.start);
        (line, column, fault.message)
    };
    faults.into_iter().map(said).collect()
}

#[test]
fn values_have_commas_quotes_and_line_breaks_in_quotes() {
    let text = "\u{feff}id, name \r\n1,\"A, \"\"B\"\"\"\r\n\r\n2,\"x\ny\"\r\n3, z ";
    let expected = rows(
        &["id", "name"],
        &[&["1", "A, \"B\""], &["2", "x\ny"], &["3", " z "]],
    );
    assert_eq!(csv(text), Ok(expected));
}

#[test]
fn mistakes_of_tables_have_line_and_column() {
    let form = FeedForm::Separated { by: b',' };
    let found = |line, column, message: &str| (line, column, message.to_owned());
    assert_eq!(
        said("id,name\n1,a\n\n\"2\n\",b,c\n3\n", form),
        [
            found(5, 4, "3 values; the first line names 2 columns"),
            found(6, 1, "1 value; the first line names 2 columns")
        ]
    );
    assert_eq!(
        said("a,b,a\n1,2,3\n", form),
        [found(1, 5, "column 3 repeats the name `a`")]
    );
    assert_eq!(said("", form), [found(1, 1, "the file is empty")]);
    assert_eq!(said("id\n", form), [found(1, 1, "there are no rows")]);
    assert_eq!(
        said("a,,b\n1,2,3\n", form),
        [found(1, 3, "column 2 has no name")]
    );
}

#[test]
fn json_lines_have_the_same_keys() {
    let text = "{\"id\": 1, \"name\": \"A\"}\n\n{\"name\": null, \"id\": [2]}\n";
    let found = parse(text, FeedForm::JsonLines).unwrap();
    assert_eq!(found, rows(&["id", "name"], &[&["1", "A"], &["[2]", ""]]));
    let wrong = said(
        "{\"id\": 1}\n {\"ix\": 1}\n{}\n[1]\n{\"id\": }\n",
        FeedForm::JsonLines,
    );
    let lines: Vec<(usize, usize)> = wrong.iter().map(|one| (one.0, one.1)).collect();
    assert_eq!(lines, [(2, 2), (3, 1), (4, 1), (5, 8)]);
    assert_eq!(wrong[0].2, "key `ix` is not in the first line");
    assert_eq!(wrong[1].2, "key `id` is missing");
    assert_eq!(
        said("\n", FeedForm::JsonLines)[0].2,
        "the file is empty".to_owned()
    );
}

#[test]
fn the_form_and_the_name_come_from_the_file() {
    let form = |path: &str, text: &str| FeedForm::of(Path::new(path), text);
    assert_eq!(form("a.CSV", "{"), FeedForm::Separated { by: b',' });
    assert_eq!(form("a.tsv", ""), FeedForm::Separated { by: b'\t' });
    assert_eq!(form("a.jsonl", ""), FeedForm::JsonLines);
    assert_eq!(form("a", " {"), FeedForm::JsonLines);
    assert_eq!(form("a.txt", "id"), FeedForm::Separated { by: b',' });
    assert_eq!(name_of(Path::new("x/users.csv")), Some("users"));
    for bad in ["my users.csv", "1.csv", "seq.csv", "-"] {
        assert_eq!(name_of(Path::new(bad)), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(text in "([a,\"\r\n{}:1é\u{feff} \t]|\\{\"a\": 1\\}\n){0,30}") {
        for form in [FeedForm::Separated { by: b',' }, FeedForm::JsonLines] {
            match parse(&text, form) {
                Ok(found) => {
                    prop_assert!(!found.rows.is_empty());
                    prop_assert!(found.rows.iter().all(|row| row.len() == found.columns.len()));
                }
                Err(faults) => {
                    prop_assert!(!faults.is_empty());
                    prop_assert!(faults.iter().all(|one| text.get(one.at.clone()).is_some()));
                }
            }
        }
    }

    #[test]
    fn a_table_that_is_written_is_read_as_the_same(
        table in prop::collection::vec(prop::collection::vec("[a,\"\r\n é]{1,5}", 2), 1..6)
    ) {
        let quoted = |value: &String| format!("\"{}\"", value.replace('"', "\"\""));
        let mut text = "x,y\n".to_owned();
        for row in &table {
            let row: Vec<String> = row.iter().map(quoted).collect();
            text.push_str(&row.join(","));
            text.push('\n');
        }
        prop_assert_eq!(csv(&text).map(|found| found.rows), Ok(table));
    }
}

#[test]
fn no_more_mistakes_are_kept_than_are_shown() {
    let lines = "1,2,3\n".repeat(100_000);
    let faults = parse(&format!("a,b\n{lines}"), FeedForm::Separated { by: b',' }).unwrap_err();
    assert_eq!(faults.len(), FAULTS_MAX);
    let faults = parse(&"[1]\n".repeat(100_000), FeedForm::JsonLines).unwrap_err();
    assert_eq!(faults.len(), FAULTS_MAX);
}
