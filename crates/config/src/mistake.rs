//! Mistakes in a file, as diagnostics that show the place.

use std::fmt;
use std::sync::Arc;

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};

/// One mistake in a file that a person wrote.
///
/// It is a [`miette::Diagnostic`] with the file's text, a label at the place and, where there is
/// one, help that names the remedy.
#[derive(Clone, Debug)]
pub struct Mistake {
    /// The name of the source that it is in.
    pub(crate) origin: String,
    pub(crate) message: String,
    pub(crate) labels: Vec<LabeledSpan>,
    pub(crate) help: Option<String>,
    pub(crate) source: Option<Arc<NamedSource<String>>>,
}

impl Mistake {
    /// What is wrong, as a fragment.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it.
    pub fn help_text(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// The name of the source and the line, from 1, where the place is known.
    pub fn line(&self) -> Option<(&str, usize)> {
        let source = self.source.as_ref()?;
        let offset = self.labels.first()?.offset();
        let before = source.inner().get(..offset)?;
        Some((source.name(), before.matches('\n').count() + 1))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Mistake {}

impl Diagnostic for Mistake {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.help
            .as_ref()
            .map(|help| Box::new(help) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if self.labels.is_empty() {
            None
        } else {
            Some(Box::new(self.labels.iter().cloned()))
        }
    }
}

/// All mistakes that were found in one file; there is at least one.
///
/// A single mistake is shown as itself, several are shown one below the other.
#[derive(Clone, Debug)]
pub struct Mistakes {
    /// The file's name.
    pub(crate) name: String,
    /// The mistakes, in the order of their places.
    pub(crate) mistakes: Vec<Mistake>,
    /// How many more there were.
    pub(crate) left_out: usize,
}

impl Mistakes {
    /// The mistakes, in the order of their places.
    pub fn all(&self) -> &[Mistake] {
        &self.mistakes
    }

    fn single(&self) -> Option<&Mistake> {
        match self.mistakes.as_slice() {
            [only] if self.left_out == 0 => Some(only),
            _ => None,
        }
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.single() {
            Some(only) => write!(f, "{}: {only}", only.origin),
            None => write!(
                f,
                "{}: {} mistakes",
                self.name,
                self.mistakes.len() + self.left_out
            ),
        }
    }
}

impl std::error::Error for Mistakes {}

impl Diagnostic for Mistakes {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match self.single() {
            Some(only) => only.help(),
            None if self.left_out > 0 => Some(Box::new(format!(
                "the first {} are shown",
                self.mistakes.len()
            ))),
            None => None,
        }
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.single().and_then(Diagnostic::source_code)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        self.single().and_then(Diagnostic::labels)
    }

    fn related<'a>(&'a self) -> Option<Box<dyn Iterator<Item = &'a dyn Diagnostic> + 'a>> {
        if self.single().is_some() {
            return None;
        }
        Some(Box::new(
            self.mistakes.iter().map(|one| one as &dyn Diagnostic),
        ))
    }
}
