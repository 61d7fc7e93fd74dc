//! Tests of runs with files that others have changed, and with figures that are not numbers.

use super::*;

#[test]
fn a_resumed_run_takes_no_command_from_its_folder() {
    let folder = Folder::new();
    run_in(&folder.0, TWO, &script(), false);
    let journal = folder.0.join("journal.jsonl");
    let text = fs::read_to_string(&journal).unwrap();
    fs::write(&journal, text.lines().next().unwrap().to_owned() + "\n").unwrap();
    // As in a run from someone else: another command than the recipe's. Server `b` is new.
    let file = folder.0.join("hosts.json");
    let mut hosts: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    let mark = folder.0.join("was-run");
    let command = format!("touch {}; echo weigh 6.6", mark.display());
    let servers = &mut hosts["local"]["servers"];
    servers["a"]["version_command"] = serde_json::json!(["sh", "-c", command]);
    servers.as_object_mut().unwrap().remove("b");
    fs::write(&file, hosts.to_string()).unwrap();
    let ran = run_in(&folder.0, TWO, &script(), true);
    assert!(ran.complete && !mark.exists());
    let hosts: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert!(hosts["local"]["servers"]["b"].is_object());
}

#[test]
fn a_version_is_kept_where_the_server_did_not_start_again() {
    let folder = Folder::new();
    run_in(&folder.0, TWO, &script(), false);
    let file = folder.0.join("hosts.json");
    let mut hosts: serde_json::Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    hosts["local"]["versions"] = serde_json::json!({ "origin": "1.2.3", "other": ["no text"] });
    fs::write(&file, hosts.to_string()).unwrap();
    let versions = crate::journal::inventory::versions_before(&folder.0);
    assert_eq!(versions.len(), 1);
    assert_eq!(versions["origin"], "1.2.3");
}

#[test]
fn a_trial_that_no_journal_can_hold_has_failed_and_the_run_goes_on() {
    let folder = Folder::new();
    let script = script();
    // JSON has no such number.
    script.borrow_mut().client_cpu_s = f64::NAN;
    let ran = run_in(&folder.0, TWO, &script, false);
    let failures = ran.failures();
    // Both attempts at each trial of a block.
    assert!(failures.len() >= 6 && failures.len() == ran.trials().len());
    for reason in failures {
        assert!(
            reason.starts_with("what was measured could not be written"),
            "{reason}"
        );
    }
    assert!(matches!(
        ran.journal.rows.last(),
        Some(JournalRow::End { .. })
    ));
}
