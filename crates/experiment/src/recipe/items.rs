//! Items of list parameters as words of a command: `{port}` and its like are replaced in them.

use super::context::RenderContext;

/// The names in braces that are replaced.
pub(crate) const PLACEHOLDERS: [&str; 5] = ["port", "address", "dir", "upstream", "upstreams"];

/// The values of the placeholders for one server.
pub(super) struct Placeholders {
    port: String,
    address: String,
    dir: String,
    upstreams: Vec<String>,
}

impl Placeholders {
    pub(super) fn of(ctx: &RenderContext, dir: &str) -> Self {
        let upstreams = ctx.upstreams.iter().map(|one| one.addr.to_string());
        Self {
            port: ctx.listen_addr.port().to_string(),
            address: ctx.listen_addr.ip().to_string(),
            dir: dir.to_owned(),
            upstreams: upstreams.collect(),
        }
    }

    /// The text with its placeholders replaced, in one pass. Other braces are left alone.
    ///
    /// # Errors
    /// When it asks for an upstream, and there is none.
    pub(super) fn fill(&self, text: &str) -> Result<String, String> {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(start) = rest.find('{') {
            let (before, from) = rest.split_at(start);
            filled.push_str(before);
            let inner = &from[1..];
            let name = inner.find('}').map_or("", |end| &inner[..end]);
            match self.value(name) {
                Some(value) => {
                    filled.push_str(&value?);
                    rest = &inner[name.len() + 1..];
                }
                None => {
                    filled.push('{');
                    rest = inner;
                }
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }

    fn value(&self, name: &str) -> Option<Result<String, String>> {
        let value = match name {
            "port" => self.port.clone(),
            "address" => self.address.clone(),
            "dir" => self.dir.clone(),
            "upstream" => match self.upstreams.first() {
                Some(first) => first.clone(),
                None => {
                    let why = "it contains `{upstream}`, but the server has no upstream";
                    return Some(Err(why.to_owned()));
                }
            },
            "upstreams" => self.upstreams.join(","),
            _ => return None,
        };
        Some(Ok(value))
    }
}

/// The parameter, when all of a word is `{{ params.NAME }}`.
pub(super) fn param_of(word: &str) -> Option<&str> {
    let inner = word.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let name = inner.trim().strip_prefix("params.")?;
    let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.chars().all(good).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placeholders() -> Placeholders {
        Placeholders {
            port: "8080".to_owned(),
            address: "127.0.0.1".to_owned(),
            dir: "/d".to_owned(),
            upstreams: vec!["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()],
        }
    }

    #[test]
    fn placeholders_are_replaced_and_other_braces_are_not() {
        let all = placeholders();
        for (text, filled) in [
            ("--listen={address}:{port}", "--listen=127.0.0.1:8080"),
            ("{dir}/{dir}", "/d//d"),
            (
                "{upstream} {upstreams}",
                "127.0.0.1:1 127.0.0.1:1,127.0.0.1:2",
            ),
            ("{\"port\": {port}}", "{\"port\": 8080}"),
            ("{prot} {{port}} {", "{prot} {8080} {"),
            ("é{port}é", "é8080é"),
        ] {
            assert_eq!(all.fill(text).unwrap(), filled, "{text}");
        }
        let none = Placeholders {
            upstreams: Vec::new(),
            ..all
        };
        assert!(none.fill("{upstream}").unwrap_err().contains("no upstream"));
        assert_eq!(none.fill("x{upstreams}").unwrap(), "x");
    }

    #[test]
    fn a_word_that_is_a_parameter_is_known() {
        assert_eq!(param_of("{{ params.command }}"), Some("command"));
        assert_eq!(param_of("{{params.a_1}}"), Some("a_1"));
        assert_eq!(param_of("x {{ params.command }}"), None);
        assert_eq!(param_of("{{ params.a or params.b }}"), None);
    }
}
