//! How a program reports its version.

/// How a program reports its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub command: Vec<String>,
    /// The version is the word that follows this text.
    pub after: String,
}

impl Version {
    /// The version in what the command printed.
    pub fn find_in(&self, printed: &str) -> Option<String> {
        let start = printed.find(self.after.as_str())? + self.after.len();
        let word: String = printed[start..]
            .trim_start()
            .chars()
            .take_while(|c| !c.is_whitespace() && !matches!(c, ',' | ')' | '('))
            .collect();
        (!word.is_empty()).then_some(word)
    }
}
