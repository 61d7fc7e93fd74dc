//! The few pieces that the pictures are drawn with.

use crate::visible::visible;

/// Text that is safe inside HTML and SVG, in attributes too, with control characters made visible.
pub(crate) fn escaped(text: &str) -> String {
    let text = visible(text);
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(c),
        }
    }
    out
}

/// Where a text stands against its point.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture that grows; coordinates are in its own units, from the upper left corner.
pub(crate) struct Picture {
    width: f64,
    id: String,
    title: String,
    description: String,
    body: String,
}

impl Picture {
    /// An empty picture. `id` is unique on the page; screen readers read title and description.
    pub fn new(id: &str, width: f64, title: &str, description: &str) -> Self {
        Self {
            width,
            id: id.to_owned(),
            title: title.to_owned(),
            description: description.to_owned(),
            body: String::new(),
        }
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.body.push_str(&format!(
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>\n",
            from.0, from.1, to.0, to.1
        ));
    }

    pub fn rect(&mut self, class: &str, corner: (f64, f64), size: (f64, f64)) {
        self.body.push_str(&format!(
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>\n",
            corner.0,
            corner.1,
            size.0.max(0.0),
            size.1.max(0.0)
        ));
    }

    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.body.push_str(&format!(
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>\n",
            at.0,
            at.1,
            escaped(text)
        ));
    }

    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        self.body.push_str(&format!(
            "<polyline class=\"{class}\" points=\"{}\"/>\n",
            points.join(" ")
        ));
    }

    /// The mark of a series: circle, square, triangle and diamond in turn, so that colour is not
    /// needed to tell them apart. A pointer over it shows `hint`.
    pub fn mark(&mut self, series: usize, class: &str, at: (f64, f64), hint: &str) {
        let (x, y) = at;
        let shape = match series % 4 {
            0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\""),
            1 => format!(
                "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"8\" height=\"8\"",
                x - 4.0,
                y - 4.0
            ),
            2 => format!("<path d=\"M{x:.1} {:.1}l5 9h-10z\"", y - 5.5),
            _ => format!(
                "<path d=\"M{x:.1} {:.1}l5.5 5.5l-5.5 5.5l-5.5-5.5z\"",
                y - 5.5
            ),
        };
        self.body.push_str(&format!(
            "{shape} class=\"{class}\"><title>{}</title>{}\n",
            escaped(hint),
            match series % 4 {
                0 => "</circle>",
                1 => "</rect>",
                _ => "</path>",
            }
        ));
    }

    /// The picture as an SVG element of that height.
    pub fn finish(self, height: f64) -> String {
        let id = escaped(&self.id);
        format!(
            "<svg role=\"img\" aria-labelledby=\"{id}-t {id}-d\" viewBox=\"0 0 {:.0} {height:.0}\">\n\
             <title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n{}</svg>\n",
            self.width,
            escaped(&self.title),
            escaped(&self.description),
            self.body
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_names_stays_text() {
        assert_eq!(
            escaped("<b a=\"x\">&'"),
            "&lt;b a=&quot;x&quot;&gt;&amp;&#39;"
        );
        let mut picture = Picture::new("p", 100.0, "<t>", "&d");
        picture.text("c", (1.0, 2.0), Anchor::Middle, "<script>");
        picture.mark(3, "c0", (5.0, 5.0), "a<b");
        let svg = picture.finish(50.0);
        assert!(!svg.contains("<script>") && !svg.contains("a<b"));
        assert!(svg.contains("<title id=\"p-t\">&lt;t&gt;</title>"));
    }
}
