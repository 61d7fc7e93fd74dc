//! The parts of a HAR file that say what was sent.

use std::borrow::Cow;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(super) struct Recording {
    pub(super) log: Log,
}

#[derive(Debug, Deserialize)]
pub(super) struct Log {
    #[serde(default)]
    pub(super) entries: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Entry {
    #[serde(default, rename = "startedDateTime")]
    pub(super) started: String,
    /// Of the whole exchange; -1 or null where a browser does not know it.
    #[serde(default, rename = "time", deserialize_with = "number")]
    pub(super) took_ms: f64,
    pub(super) request: Request,
    #[serde(default)]
    pub(super) response: Response,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Response {
    #[serde(default, deserialize_with = "number")]
    pub(super) status: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) url: String,
    #[serde(default)]
    pub(super) headers: Vec<Field>,
    #[serde(default, rename = "postData")]
    post: Option<Post>,
    #[serde(default, rename = "bodySize", deserialize_with = "number")]
    body_size: f64,
}

#[derive(Debug, Deserialize)]
pub(super) struct Field {
    pub(super) name: String,
    #[serde(default)]
    pub(super) value: String,
}

#[derive(Debug, Deserialize)]
struct Post {
    #[serde(default, rename = "mimeType")]
    mime_type: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    params: Vec<Field>,
    #[serde(default)]
    encoding: Option<String>,
}

/// A body that the file does not have.
pub(super) struct Missing;

impl Request {
    /// Scheme with host and port, and path with query.
    pub(super) fn origin_and_path(&self) -> Option<(String, Cow<'_, str>)> {
        let (scheme, rest) = self.url.split_once("://")?;
        let scheme = scheme.to_ascii_lowercase();
        let usual = match scheme.as_str() {
            "http" => ":80",
            "https" => ":443",
            _ => return None,
        };
        let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, path) = rest.split_at(at);
        let host = host.rsplit('@').next()?.to_ascii_lowercase();
        let host = host.strip_suffix(usual).unwrap_or(&host);
        let path = match path.starts_with('/') {
            true => Cow::from(path),
            // Browsers write the slash; others may leave it out.
            false => format!("/{path}").into(),
        };
        (!host.is_empty()).then(|| (format!("{scheme}://{host}"), path))
    }

    /// The body, if there is one. Firefox leaves `text` empty for forms and gives their parameters.
    pub(super) fn body(&self) -> Result<Option<String>, Missing> {
        let Some(post) = &self.post else {
            return match self.body_size > 0.0 {
                true => Err(Missing),
                false => Ok(None),
            };
        };
        let is_form = post
            .mime_type
            .as_deref()
            .is_none_or(|mime| mime.contains("urlencoded"));
        match post.text.as_deref() {
            _ if post.encoding.as_deref() == Some("base64") => Err(Missing),
            Some(text) if !text.is_empty() => Ok(Some(text.to_owned())),
            _ if !post.params.is_empty() && is_form => Ok(Some(form(&post.params))),
            _ if !post.params.is_empty() => Err(Missing),
            _ if self.body_size > 0.0 => Err(Missing),
            _ => Ok(Some(String::new())),
        }
    }

    /// The type of the body, where no header field has it.
    pub(super) fn body_type(&self) -> Option<&str> {
        let mime = self.post.as_ref()?.mime_type.as_deref()?;
        Some(mime).filter(|mime| !mime.is_empty() && !mime.contains(['\r', '\n']))
    }
}

/// Parameters as the body of a form. Browsers write them decoded (Chrome) or as they were sent
/// (Firefox); what is encoded already stays.
fn form(params: &[Field]) -> String {
    let pairs = params.iter().map(|one| {
        let (name, value) = (encoded(&one.name), encoded(&one.value));
        format!("{name}={value}")
    });
    pairs.collect::<Vec<String>>().join("&")
}

fn encoded(text: &str) -> String {
    use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
    const FORM: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'*')
        .remove(b'-')
        .remove(b'.')
        .remove(b'_');
    const SENT: &AsciiSet = &FORM.remove(b'%').remove(b'+');
    let bytes = text.as_bytes();
    let is_escape = |at: usize| {
        let digits = bytes.get(at + 1..at + 3);
        digits.is_some_and(|two| two.iter().all(u8::is_ascii_hexdigit))
    };
    let mut percents = (0..bytes.len()).filter(|at| bytes[*at] == b'%').peekable();
    let is_sent = percents.peek().is_some() && percents.all(is_escape);
    let set = if is_sent { SENT } else { FORM };
    utf8_percent_encode(text, set)
        .to_string()
        .replace("%20", "+")
}

/// A number, also where it is null.
fn number<'de, D: serde::Deserializer<'de>>(input: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(input)?.unwrap_or_default())
}
