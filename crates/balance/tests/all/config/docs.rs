//! The document on configurations says what is read: its examples are, and it names every word.

use balance::config::{Syntax, parse_text, write};

fn document() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/src/reference/balance-config.md"
    );
    std::fs::read_to_string(path).unwrap()
}

/// The blocks of code that are marked as being in a language.
fn blocks<'t>(text: &'t str, language: &str) -> Vec<&'t str> {
    text.split("```")
        .skip(1)
        .step_by(2)
        .filter_map(|block| block.strip_prefix(language)?.strip_prefix('\n'))
        .collect()
}

#[test]
fn its_examples_are_read_without_a_word() {
    let text = document();
    let examples = [
        (Syntax::Native, "toml", 4),
        (Syntax::Crossroads, "crossroads", 1),
    ];
    for (form, language, count) in examples {
        let blocks = blocks(&text, language);
        assert_eq!(blocks.len(), count, "{language}");
        for block in blocks {
            if let Err(error) = parse_text("example", block, form) {
                panic!("{block}\n{:?}", miette::Report::new(error));
            }
        }
    }
}

#[test]
fn every_key_that_is_printed_is_described() {
    let text = document();
    let (config, _) = parse_text("x", blocks(&text, "toml")[1], Syntax::Native).unwrap();
    for line in write::toml(&config).lines() {
        let line = line.trim_start_matches("# ");
        let Some(key) = line.split([' ', ':']).next().filter(|key| {
            !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        }) else {
            continue;
        };
        assert!(
            text.contains(&format!("`{key}`")) || text.contains(&format!("{key} =")),
            "{key}"
        );
    }
}

#[test]
fn every_keyword_that_crossroads_has_is_described() {
    let text = document();
    let wrong = "service s { x 1; backend b { x 1; } }";
    let error = parse_text("x", wrong, Syntax::Crossroads).unwrap_err();
    let mut keywords = 0;
    for mistake in error.mistakes() {
        // The help lists the keywords of the block in quotes, each between a pair.
        let help = mistake.help_text().unwrap();
        for keyword in help.split('`').skip(1).step_by(2) {
            keywords += 1;
            assert!(text.contains(keyword), "{keyword}");
        }
    }
    assert!(keywords > 30, "{keywords} keywords were found");
}
