//! Files with allow and deny lists.

use std::path::Path;

use ::config::open;
use ::config::reader::{Problem, Reader};
use ::config::tree::Place;
use ::config::units::shown;

use super::ConfigError;
use super::model::Access;
use crate::access::{AccessRules, Prefix};

/// Compiles the access rules of a service, reading its files.
///
/// A file has prefixes separated by whitespace; `#` and `//` begin a comment.
///
/// # Errors
/// When a file cannot be read, or has errors.
pub fn access_rules(access: &Access) -> Result<AccessRules, ConfigError> {
    let list = |own: &[Prefix], file: Option<&Path>| -> Result<Vec<Prefix>, ConfigError> {
        let mut all = own.to_vec();
        if let Some(path) = file {
            let text = open::open(path)?;
            all.extend(prefixes(&path.display().to_string(), &text)?);
        }
        Ok(all)
    };
    let allow = list(&access.allow, access.allow_file.as_deref())?;
    let deny = list(&access.deny, access.deny_file.as_deref())?;
    // An empty allow file allows nobody, while no allow list allows everybody.
    if allow.is_empty() && access.allow_file.is_some() {
        return Ok(AccessRules::deny_all());
    }
    Ok(AccessRules::new(&allow, &deny))
}

fn prefixes(name: &str, text: &str) -> Result<Vec<Prefix>, ConfigError> {
    let mut reader = Reader::new(name, text);
    let mut prefixes = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = [line.find('#'), line.find("//")]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(line.len());
        for word in line[..end].split_whitespace() {
            // `word` is a slice of `line`.
            let at = start + (word.as_ptr() as usize - line.as_ptr() as usize);
            match word.parse() {
                Ok(prefix) => prefixes.push(prefix),
                Err(error) if !reader.is_full() => reader.report(
                    Problem::at(
                        Place {
                            source: 0,
                            start: at,
                            end: at + word.len(),
                        },
                        format!("`{}` is not an address prefix: {error}", shown(word)),
                        "expected a prefix",
                    )
                    .help("a prefix is such as 10/8, 192.168.1.7 or 2001:db8::/32"),
                ),
                Err(_) => reader.pass_over(1),
            }
        }
        start += line.len();
    }
    match reader.finish() {
        Some(mistakes) => Err(mistakes.into()),
        None => Ok(prefixes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_with_its_comments() {
        let list = prefixes(
            "l",
            "10/8 # ours\n\n// theirs\n192.168.1.7\t2001:db8::/32\n",
        )
        .unwrap();
        let shown: Vec<String> = list.iter().map(Prefix::to_string).collect();
        assert_eq!(shown, ["10.0.0.0/8", "192.168.1.7/32", "2001:db8::/32"]);
    }

    #[test]
    fn all_mistakes_of_a_list_are_shown_in_their_lines() {
        let error = prefixes("deny.txt", "10/8\n10/99\n\n  300\n").unwrap_err();
        let lines: Vec<_> = error.mistakes().iter().map(|one| one.line()).collect();
        assert_eq!(lines, [Some(("deny.txt", 2)), Some(("deny.txt", 4))]);
    }

    #[test]
    fn an_empty_allow_file_allows_nobody() {
        let path = std::env::temp_dir().join(format!("weigh-allow-{}", std::process::id()));
        std::fs::write(&path, "# nobody yet\n").unwrap();
        let access = Access {
            allow_file: Some(path.clone()),
            ..Access::default()
        };
        let rules = access_rules(&access);
        std::fs::remove_file(&path).unwrap();
        assert!(!rules.unwrap().permit("10.0.0.1".parse().unwrap()));
        assert!(access_rules(&access).is_err(), "the file is gone");
    }
}
