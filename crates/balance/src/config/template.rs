//! Text with placeholders: header values and commands.

use std::fmt;
use std::net::IpAddr;

/// Text with placeholders: `%r` is the client's address, `%b` the back end's name, `%s` the
/// service's name, `%%` a percent sign.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
}

/// A part of a [`Template`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    Text(String),
    /// `%r`: the client's address.
    Client,
    /// `%b`: the back end's name.
    Backend,
    /// `%s`: the service's name.
    Service,
}

/// Values of the placeholders.
#[derive(Clone, Copy, Debug)]
pub struct Placeholders<'f> {
    pub client: IpAddr,
    /// The back end; empty while none is chosen.
    pub backend: &'f str,
    pub service: &'f str,
}

/// A `%` without a known placeholder.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected %r, %b, %s or %% after a percent sign, found `{found}`")]
pub struct TemplateError {
    /// The percent sign and what follows, escaped for display.
    pub found: String,
    /// Byte offset.
    pub at: usize,
}

impl Template {
    /// Parses a template.
    ///
    /// # Errors
    /// When a `%` is not followed by `r`, `b`, `s` or `%`.
    pub fn parse(text: &str) -> Result<Template, TemplateError> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            plain.push_str(&rest[..at]);
            let after = rest[at + 1..].chars().next();
            let part = match after {
                Some('r') => Some(Part::Client),
                Some('b') => Some(Part::Backend),
                Some('s') => Some(Part::Service),
                Some('%') => None,
                _ => {
                    return Err(TemplateError {
                        found: after.map_or_else(
                            || "%".to_owned(),
                            |c| format!("%{}", ::config::units::shown(c.encode_utf8(&mut [0; 4]))),
                        ),
                        at: text.len() - rest.len() + at,
                    });
                }
            };
            match part {
                Some(part) => {
                    if !plain.is_empty() {
                        parts.push(Part::Text(std::mem::take(&mut plain)));
                    }
                    parts.push(part);
                }
                None => plain.push('%'),
            }
            // Each letter is one byte.
            rest = &rest[at + 2..];
        }
        plain.push_str(rest);
        if !plain.is_empty() {
            parts.push(Part::Text(plain));
        }
        Ok(Template { parts })
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Appends the text with values filled in.
    pub fn fill(&self, placeholders: &Placeholders<'_>, out: &mut Vec<u8>) {
        use std::io::Write as _;
        for part in &self.parts {
            match part {
                Part::Text(text) => out.extend_from_slice(text.as_bytes()),
                Part::Backend => out.extend_from_slice(placeholders.backend.as_bytes()),
                Part::Service => out.extend_from_slice(placeholders.service.as_bytes()),
                Part::Client => {
                    // Writing into a vector cannot fail.
                    let _ = write!(out, "{}", placeholders.client.to_canonical());
                }
            }
        }
    }
}

impl fmt::Display for Template {
    /// As [`Template::parse`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in &self.parts {
            match part {
                Part::Text(text) => f.write_str(&text.replace('%', "%%"))?,
                Part::Client => f.write_str("%r")?,
                Part::Backend => f.write_str("%b")?,
                Part::Service => f.write_str("%s")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn places_are_filled_in() {
        let template = Template::parse("for=%r;by=%s/%b;100%%").unwrap();
        let placeholders = Placeholders {
            client: "::ffff:10.0.0.7".parse().unwrap(),
            backend: "one",
            service: "web",
        };
        let mut out = Vec::new();
        template.fill(&placeholders, &mut out);
        assert_eq!(out, b"for=10.0.0.7;by=web/one;100%");
    }

    #[test]
    fn an_unknown_place_is_refused_where_it_stands() {
        let error = Template::parse("ä %r %q").unwrap_err();
        assert_eq!((error.found.as_str(), error.at), ("%q", 6));
        assert_eq!(Template::parse("50%").unwrap_err().found, "%");
        assert!(Template::parse("%ä").is_err());
    }

    proptest! {
        #[test]
        fn it_is_written_and_read_the_same(text in "([a-zäß ]|%r|%b|%s|%%){0,12}") {
            let template = Template::parse(&text).unwrap();
            prop_assert_eq!(template.to_string(), text);
        }

        #[test]
        fn no_text_makes_it_panic(text in "(%|\\PC){0,12}") {
            if let Ok(template) = Template::parse(&text) {
                prop_assert_eq!(template.to_string(), text);
            }
        }
    }
}
