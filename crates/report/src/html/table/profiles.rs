//! Pictures of profiles. They are shown as images, so that no script in them runs.

use crate::html::picture::svg::escaped;
use crate::{Profile, RunFacts};

/// The most bytes of all pictures of a page together.
const BYTES_MAX: usize = 450_000;

pub(crate) fn profiles(facts: &RunFacts) -> String {
    let mut free = BYTES_MAX;
    let shown = facts.profiles.iter().map(|profile| {
        let picture = profile.svg.as_deref().map(as_url);
        match picture.filter(|url| url.len() <= free) {
            Some(url) => {
                free -= url.len();
                image(profile, &url)
            }
            None => file(profile),
        }
    });
    shown.collect()
}

fn image(profile: &Profile, url: &str) -> String {
    let name = escaped(&profile.name);
    format!(
        "<details>\n<summary>{name}</summary>\n<figure class=\"wide\"><img class=\"profile\" \
         alt=\"profile {name}\" src=\"{url}\"></figure>\n</details>\n"
    )
}

/// A link to a picture that is too large for the page.
fn file(profile: &Profile) -> String {
    let name = escaped(&profile.name);
    format!("<p><a href=\"profile/{name}\">{name}</a> is in the run's folder.</p>\n")
}

fn as_url(svg: &str) -> String {
    let mut url = String::with_capacity(svg.len() + svg.len() / 4);
    url.push_str("data:image/svg+xml,");
    for byte in svg.bytes() {
        match byte {
            b'a'..=b'z'
            | b'A'..=b'Z'
            | b'0'..=b'9'
            | b'-'
            | b'_'
            | b'.'
            | b'/'
            | b':'
            | b'='
            | b','
            | b';'
            | b'('
            | b')'
            | b' ' => url.push(char::from(byte)),
            other => url.push_str(&format!("%{other:02X}")),
        }
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::Text as _;

    #[test]
    fn a_profile_is_an_image_and_a_large_one_a_file() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\"><script>1</script></svg>";
        let facts = |svg: Option<String>| RunFacts {
            profiles: vec![Profile {
                name: "<go>.svg".into(),
                svg,
            }],
            ..RunFacts::default()
        };
        let page = profiles(&facts(Some(svg.into())));
        page.has("src=\"data:image/svg+xml,%3Csvg xmlns=%22");
        assert!(!page.contains("<script") && !page.contains("<go>"));
        let page = profiles(&facts(Some("x".repeat(BYTES_MAX))));
        page.has("href=\"profile/&lt;go&gt;.svg\"");
        assert_eq!(profiles(&RunFacts::default()), "");
    }
}
