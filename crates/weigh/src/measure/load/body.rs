//! The body of requests, as the option gives it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::failure::Failure;

/// The body that the option gives: a text, or the content of a file.
///
/// # Errors
/// When the file cannot be read, or a text looks like the path of a file that is not there.
pub(in crate::measure) fn body(given: &OsStr) -> Result<Vec<u8>, Failure> {
    let bytes = given.as_bytes();
    if let Some(path) = file(given) {
        return std::fs::read(path).map_err(|e| {
            Failure::words(format!(
                "--body {}: {e}; expected @FILE for the content of a file, or a text",
                given.display()
            ))
        });
    }
    if looks_like_path(bytes) {
        return Err(Failure::words(format!(
            "--body {0}: there is no such file; --body @{0} names a file, and a text that looks \
             like a path goes into a file",
            given.display()
        )));
    }
    Ok(bytes.to_vec())
}

/// The file that the option names.
pub(in crate::measure) fn file(given: &OsStr) -> Option<&Path> {
    match given.as_bytes().strip_prefix(b"@") {
        Some(path) => Some(Path::new(OsStr::from_bytes(path))),
        None => Some(Path::new(given)).filter(|path| path.exists()),
    }
}

/// Whether a text is rather a path that was mistyped: one word that begins like a path, or has a
/// short extension as of a file.
fn looks_like_path(text: &[u8]) -> bool {
    let is_word = !text.is_empty()
        && text
            .iter()
            .all(|b| b.is_ascii_alphanumeric() || b"/._-~".contains(b));
    let begins = [&b"/"[..], b"./", b"../", b"~/"];
    let begins = begins.iter().any(|begin| text.starts_with(begin));
    let extension = Path::new(OsStr::from_bytes(text)).extension();
    let extension = extension
        .is_some_and(|end| end.len() <= 5 && end.as_bytes().iter().all(u8::is_ascii_alphabetic));
    is_word && (begins || extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_a_text_and_a_file_has_its_at_sign() {
        let of = |text: &str| body(OsStr::new(text)).ok();
        for text in [
            r#"{"a": 1}"#,
            "a=1&b=2",
            "",
            "hello",
            "3.14",
            "one, two.txt",
            "-x",
        ] {
            assert_eq!(of(text), Some(text.as_bytes().to_vec()), "{text}");
        }
        for text in ["@", "@absent", "absent.json", "./absent", "/absent/body"] {
            assert_eq!(of(text), None, "{text}");
        }
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        let content = std::fs::read(file).unwrap();
        assert_eq!(of(file), Some(content.clone()));
        assert_eq!(of(&format!("@{file}")), Some(content));
    }
}
