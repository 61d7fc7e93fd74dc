//! Errors that are shown as what they wrap.

/// Implements `miette::Diagnostic` for an enum of errors: each of the named variants is shown as the
/// diagnostic that it wraps. Others show their message, and the help that is given for them.
///
/// By hand, since the derive of `miette` compiles a parser of Rust of its own.
#[macro_export]
macro_rules! shown_as {
    ($error:ident: $($variant:ident),+ $(; $other:pat => $help:expr)?) => {
        impl $error {
            fn wrapped(&self) -> Option<&dyn miette::Diagnostic> {
                match self {
                    $(Self::$variant(inner) => Some(inner),)+
                    #[allow(unreachable_patterns)]
                    _ => None,
                }
            }
        }

        impl miette::Diagnostic for $error {
            fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
                match self {
                    $($other => Some(Box::new($help)),)?
                    _ => self.wrapped()?.help(),
                }
            }

            fn source_code(&self) -> Option<&dyn miette::SourceCode> {
                self.wrapped()?.source_code()
            }

            fn labels(&self) -> Option<Box<dyn Iterator<Item = miette::LabeledSpan> + '_>> {
                self.wrapped()?.labels()
            }

            fn related<'a>(
                &'a self,
            ) -> Option<Box<dyn Iterator<Item = &'a dyn miette::Diagnostic> + 'a>> {
                self.wrapped()?.related()
            }
        }
    };
}
