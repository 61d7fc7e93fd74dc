//! `{NAME}` in a text, where a factor's level is filled in.

/// The names in braces in a text, by the rule by which they are replaced.
pub(crate) fn placeholders(text: &str) -> Vec<&str> {
    names(text, false)
}

/// The same of a path, in which `{{` begins a placeholder of requests: a name in braces may stand in
/// that.
pub(crate) fn placeholders_of_path(text: &str) -> Vec<&str> {
    names(text, true)
}

fn names(text: &str, is_path: bool) -> Vec<&str> {
    let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut names = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        if is_path && rest[start..].starts_with("{{") {
            rest = &rest[start + 2..];
            continue;
        }
        let inner = &rest[start + 1..];
        match inner.find('}') {
            Some(end) if end > 0 && inner[..end].chars().all(good) => {
                names.push(&inner[..end]);
                rest = &inner[end + 1..];
            }
            _ => rest = inner,
        }
    }
    names
}

/// The name, when all of a text is one `{name}`.
pub(crate) fn only_placeholder(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    (placeholders(text) == [name]).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_braces_are_found_and_other_braces_are_not() {
        assert_eq!(placeholders("/bytes/{size}?x={n.m}"), ["size", "n.m"]);
        assert_eq!(placeholders("{ \"json\": {} }{{size}}"), ["size"]);
        let path = "/{{seq}}/{{ int(1, {routes}) }}/{size}/{{{n}}}";
        assert_eq!(placeholders_of_path(path), ["routes", "size", "n"]);
        assert_eq!(only_placeholder("{size}"), Some("size"));
        assert_eq!(only_placeholder("{a}{b}"), None);
        assert_eq!(only_placeholder("x{a}"), None);
    }
}
