//! The data of a page, which can be downloaded from it.

use serde_json::Value;

use crate::html::table::section;

/// The most bytes of a page; data that do not fit are left out.
const PAGE_BYTES_MAX: usize = 990_000;

/// The section with the data, for a page with this many bytes so far. `csv` is the table of trials,
/// `json` the document of the run.
pub(crate) fn data(page_bytes: usize, csv: &str, json: &Value) -> String {
    let mut free = PAGE_BYTES_MAX.saturating_sub(page_bytes + 2_000);
    let mut out = String::new();
    let mut left_out = Vec::new();
    let json = inside(&json.to_string());
    let csv = inside(&Value::from(csv).to_string());
    // The trials come first: the result can be made from them again.
    let files = [
        (
            csv,
            "CSV",
            "a row for each load of each trial",
            "trials.csv",
            "text/csv",
            "yes",
        ),
        (
            json,
            "JSON",
            "the result",
            "summary.json",
            "application/json",
            "no",
        ),
    ];
    for (text, kind, what, name, media, encoded) in files {
        if text.len() > free {
            left_out.push(format!("{kind} ({what})"));
            continue;
        }
        free -= text.len();
        let id = format!("data-{}", kind.to_lowercase());
        out.push_str(&format!(
            "<p><button type=\"button\" hidden data-download=\"{name}\" data-from=\"{id}\" \
             data-type=\"{media}\" data-encoded=\"{encoded}\">Download {kind}</button> {what}</p>\n\
             <script type=\"application/json\" id=\"{id}\">{text}</script>\n"
        ));
    }
    if !left_out.is_empty() {
        out.push_str(&format!(
            "<p class=\"sub\">Left out, since this page would be longer than 1 MB: {}. \
             <code>weigh report FOLDER --format csv</code> and <code>--format json</code> write \
             them.</p>\n",
            left_out.join(", ")
        ));
    }
    section("data", "Data", &out)
}

/// Escapes JSON so that it cannot end the element around it.
fn inside(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use testing::Text as _;

    #[test]
    fn data_cannot_end_their_element_and_stay_the_same() {
        let document = json!({ "name": "</script><!--", "value": 0.1 });
        let html = data(0, "a,b\n</script>,2\n", &document);
        assert_eq!(html.matches("</script>").count(), 2);
        let text = html.split("id=\"data-json\">").nth(1).unwrap();
        let text = text.split("</script>").next().unwrap();
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), document);
    }

    #[test]
    fn data_that_do_not_fit_are_named() {
        let html = data(PAGE_BYTES_MAX, "a\n", &json!({}));
        html.has("Left out");
        html.lacks("<script");
    }
}
