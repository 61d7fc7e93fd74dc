//! Every output in `tests/outputs` becomes the figures in `tests/readings.txt`, or the reason there.
//!
//! Some are not what the tool seems to say:
//! - wrk's K and M are 1024 and 1024 x 1024. The second distribution of `wrk2-uncorrected` hides that
//!   the client was seconds late.
//! - ab's mean is that of its table, not `Time per request`, which no clock has measured; but below
//!   10 ms, in whole milliseconds, it is. Receive and Exceptions are the same connections.
//! - httperf prints no rate of short runs, and zeros for want of anything to measure. With several
//!   calls per connection only the mean of a request is known.
//! - h2load counts requests that had no connection left as neither done nor failed.
//! - hey counts failures as speed. With keep-alive, its mean of connects is over requests that opened
//!   nothing; `0% in 0.0000 secs` says that there were too few requests.
//! - oha's quantiles of all answers come before those of 2xx and 4xx; what the time cut off is neither
//!   an answer nor a failure.
//! - k6's checks are not requests. The old one has ticks for failed requests, crosses for failed checks.
//! - siege's 0.00 s is no figure; its mean follows from concurrency and rate.
use crate::support::{output, outputs, tool_of};
use tools::{ToolReading, read_output};

/// The fields that are known and not 0, in a line.
fn known(reading: &ToolReading) -> String {
    let (mut fields, mut depth) = (Vec::<String>::new(), 0);
    for line in format!("{reading:#?}").lines() {
        match fields.last_mut() {
            // The rest of a value in brackets.
            Some(field) if depth > 0 => field.push_str(line.trim()),
            _ => fields.push(line.trim().to_owned()),
        }
        depth += line.matches(['(', '[']).count();
        depth -= line.matches([')', ']']).count();
    }
    fields.retain(|field| {
        ![": None,", ": [],", ": 0,"]
            .iter()
            .any(|end| field.ends_with(end))
    });
    fields.join(" ")
}

/// With `WEIGH_WRITE_SHOWN=1` in the environment the file is written instead: read what changed
/// before you commit it.
#[test]
fn every_output_gives_the_figures_that_it_holds() {
    let mut names: Vec<String> = std::fs::read_dir(outputs())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "README.md")
        .collect();
    names.sort();
    let mut found = String::new();
    for name in &names {
        match read_output(tool_of(name), &output(name)) {
            Ok(readings) => {
                for reading in &readings {
                    found.push_str(&format!("{name}: {}\n", known(reading)));
                }
            }
            Err(error) => found.push_str(&format!("{name}: {error}\n")),
        }
    }
    let path = outputs().with_file_name("readings.txt");
    if std::env::var_os("WEIGH_WRITE_SHOWN").is_some() {
        return std::fs::write(path, found).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap();
    for (found, expected) in found.lines().zip(expected.lines()) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}
