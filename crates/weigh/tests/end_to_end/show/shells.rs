//! Completions are loaded by real shells, man pages by a real formatter.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Place, has, skip, write_light_proxy_cost};

/// What a program prints; `None`, with a note, where it is not installed.
fn printed(program: &str, arguments: &[&str], folder: &Path) -> Option<(bool, String)> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command.env("TERM", "dumb").env("HOME", folder);
    let Ok(out) = command.output() else {
        skip(&format!("{program} is not installed"));
        return None;
    };
    let text = [out.stdout, out.stderr].concat();
    Some((
        out.status.success(),
        String::from_utf8_lossy(&text).into_owned(),
    ))
}

/// A place with a shell's completions in the file `weigh.SHELL`.
fn place_with(shell: &str) -> Place {
    let place = Place::new();
    let script = place.run(&format!("completions {shell}")).expect(0).out;
    fs::write(place.path(&format!("weigh.{shell}")), script).unwrap();
    place
}

#[test]
fn bash_completes_verbs_and_options() {
    let place = place_with("bash");
    let script = "source ./weigh.bash
        COMP_WORDS=(weigh ru) COMP_CWORD=1; _weigh weigh ru weigh; echo \"verb ${COMPREPLY[*]}\"
        COMP_WORDS=(weigh run --qu) COMP_CWORD=2; _weigh weigh --qu run; echo \"option ${COMPREPLY[*]}\"";
    let Some((good, text)) = printed("bash", &["-ec", script], &place.path("")) else {
        return;
    };
    assert!(good, "{text}");
    assert_eq!(text.trim(), "verb run\noption --quick");
}

#[test]
fn fish_completes_verbs_and_options() {
    let place = place_with("fish");
    let script = "source ./weigh.fish; complete -C 'weigh ru'; complete -C 'weigh run --qu'";
    let Some((good, text)) = printed("fish", &["-Nc", script], &place.path("")) else {
        return;
    };
    assert!(good, "{text}");
    let words: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(words, ["run", "--quick"], "{text}");
}

#[test]
fn zsh_completes_verbs() {
    let place = place_with("zsh");
    fs::create_dir(place.path("functions")).unwrap();
    fs::rename(place.path("weigh.zsh"), place.path("functions/_weigh")).unwrap();
    // A terminal of its own, in which the key TAB is pressed.
    let script = "zmodload zsh/zpty
        zpty shell 'zsh -f -i'
        zpty -w shell 'PS1=; fpath=($PWD/functions $fpath); autoload -U compinit; compinit -u; echo rea\"\"dy'
        zpty -r -m shell text '*ready*' || exit 1
        zpty -n -w shell $'weigh ru\\t'
        zpty -r -m shell text '*weigh run*' && echo completed
        zpty -d shell";
    let Some((_, text)) = printed("timeout", &["20", "zsh", "-fc", script], &place.path("")) else {
        return;
    };
    if text.contains("zsh’: No such file") || text.contains("'zsh': No such file") {
        return skip("zsh is not installed");
    }
    has(&text, "completed");
}

#[test]
fn man_pages_render_without_warnings() {
    let place = Place::new();
    fs::create_dir(place.path("man")).unwrap();
    place.run("man man").expect(0);
    let mut count = 0;
    for entry in fs::read_dir(place.path("man")).unwrap() {
        let page = entry.unwrap().path();
        let name = page.display().to_string();
        let options = ["--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", &name];
        let Some((good, text)) = printed("man", &options, &place.path("")) else {
            return;
        };
        assert!(good && !text.contains("warning"), "{name}: {text}");
        count += 1;
    }
    assert!(count > 12, "{count} pages");
    let run = place.read("man/weigh-run.1");
    has(&run, "quick");
    let wrong = place.run("man no-such-folder").expect(1);
    has(&wrong.err, "pages into no-such-folder");
}

#[test]
fn schemas_are_printed_and_a_real_result_fits() {
    let place = Place::new();
    let schema = |of: &str| {
        let document = place.run(&format!("schema {of}")).expect(0).json();
        jsonschema::draft202012::new(&document).unwrap()
    };
    for of in ["experiment", "recipe", "driver"] {
        assert!(
            !schema(of).is_valid(&serde_json::json!({"no": "such"})),
            "{of}"
        );
    }
    let name = write_light_proxy_cost(&place);
    let sets = "--set design.blocks=2 --set design.window=0.4s --set design.latency_window=0.3s";
    // Valid or not, it is a result.
    let end = place.run(&format!("run {name} --quick --out r --format json {sets}"));
    let result: serde_json::Value = serde_json::from_str(&end.out).unwrap();
    let schema_of_results = schema("result");
    let errors: Vec<String> = schema_of_results
        .iter_errors(&result)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    let rows = schema("journal");
    for line in place.read("r/journal.jsonl").lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(rows.is_valid(&row), "{line}");
    }
}

#[test]
fn the_seccomp_profile_is_the_engines_default_and_the_calls_of_io_uring() {
    let place = Place::new();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dist/seccomp");
    let default = r#"{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [
        {"names": ["read", "write"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["io_uring_setup", "bpf"], "action": "SCMP_ACT_ERRNO"},
        {"names": ["io_uring_enter"], "action": "SCMP_ACT_ERRNO"}]}"#;
    fs::write(place.path("default.json"), default).unwrap();
    if printed("python3", &["--version"], &place.path("")).is_none() {
        return;
    }
    let run = |file: &str| printed(script, &[file], &place.path("")).unwrap();
    let (good, text) = run("default.json");
    assert!(good, "{text}");
    let profile: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(profile["defaultAction"], "SCMP_ACT_ERRNO");
    let rules = profile["syscalls"].as_array().unwrap();
    let names = |rule: usize| rules[rule]["names"].to_string();
    assert_eq!(rules.len(), 3, "{text}");
    assert_eq!(names(0), r#"["read","write"]"#);
    assert_eq!(names(1), r#"["bpf"]"#);
    let calls = r#"["io_uring_setup","io_uring_enter","io_uring_register"]"#;
    assert_eq!(names(2), calls);
    assert_eq!(rules[2]["action"], "SCMP_ACT_ALLOW");
    let (good, text) = run("no-such-file.json");
    assert!(
        !good && text.contains("no-such-file.json cannot be read"),
        "{text}"
    );
}
