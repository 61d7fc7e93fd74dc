//! What has to hold for any text with placeholders, and for any access log.

use requests::log::{LogOptions, read};
use requests::placeholder::{Names, Part, parse, written};

/// Any text: mistakes are within it, and a template that is written is read as the same.
pub fn placeholders(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for part in [Part::Path, Part::Text] {
        match parse(&text, Names::default(), part) {
            Err(faults) => {
                assert!(!faults.is_empty());
                for fault in faults {
                    assert!(text.get(fault.at.clone()).is_some(), "{fault:?}");
                }
            }
            Ok(template) => {
                let again = written(&template, Names::default()).map(|text| {
                    assert!(text.len() <= 20 * data.len() + 20);
                    parse(&text, Names::default(), part)
                });
                assert_eq!(again, Some(Ok(template)));
            }
        }
    }
}

/// Any log: due times ascend from 0, and each belongs to a request.
pub fn access_log(data: &[u8]) {
    let Ok(set) = read(data, &LogOptions::default()) else {
        return;
    };
    let replay = set.replay.expect("a log that was read has times");
    assert_eq!(replay.due_ns.first(), Some(&0));
    assert!(replay.due_ns.is_sorted());
    assert_eq!(replay.due_ns.len(), replay.requests.len());
    let is_one = |number: &u32| (*number as usize) < set.requests.len();
    assert!(replay.requests.iter().all(is_one));
}
