//! Errors that are shown as the error inside of them is, where there is one.

/// Has a type with a method `inner(&self) -> Option<&dyn Diagnostic>` show the help, the text, the
/// places and the further mistakes of what that returns. A second argument, a function of the error,
/// gives the help where it has one of its own.
macro_rules! shows_its_inner {
    ($error:ty) => {
        shows_its_inner!($error, |_| None::<&str>);
    };
    ($error:ty, $own_help:expr) => {
        impl miette::Diagnostic for $error {
            fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
                let own_help: fn(&Self) -> Option<&str> = $own_help;
                if let Some(help) = own_help(self) {
                    return Some(Box::new(help));
                }
                self.inner().and_then(miette::Diagnostic::help)
            }

            fn source_code(&self) -> Option<&dyn miette::SourceCode> {
                self.inner().and_then(miette::Diagnostic::source_code)
            }

            fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
                self.inner().and_then(miette::Diagnostic::labels)
            }

            fn related<'a>(
                &'a self,
            ) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
                self.inner().and_then(miette::Diagnostic::related)
            }
        }
    };
}
