//! Command lines as a text, or as words.

use std::ffi::{OsStr, OsString};

/// What a program is called with: a line, in which single quotes hold a word together, or words.
pub trait CommandLine {
    fn words(&self) -> Vec<OsString>;
}

impl CommandLine for str {
    fn words(&self) -> Vec<OsString> {
        words(self).into_iter().map(OsString::from).collect()
    }
}

impl CommandLine for String {
    fn words(&self) -> Vec<OsString> {
        self.as_str().words()
    }
}

impl<S: AsRef<OsStr>> CommandLine for [S] {
    fn words(&self) -> Vec<OsString> {
        self.iter().map(|word| word.as_ref().to_owned()).collect()
    }
}

impl<S: AsRef<OsStr>, const N: usize> CommandLine for [S; N] {
    fn words(&self) -> Vec<OsString> {
        self.as_slice().words()
    }
}

impl<S: AsRef<OsStr>> CommandLine for Vec<S> {
    fn words(&self) -> Vec<OsString> {
        self.as_slice().words()
    }
}

impl<C: CommandLine + ?Sized> CommandLine for &C {
    fn words(&self) -> Vec<OsString> {
        (**self).words()
    }
}

/// The words of a line. A word in single quotes may have spaces in it, or be empty.
pub fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace()),
            _ => words.push(part),
        }
    }
    words
}
