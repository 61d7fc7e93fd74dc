//! The basic elements of the pictures.

use readings::Condition;
use readings::text::compact::ends_kept;
use readings::text::condition;

use super::axis::{Scale, Tick};
use crate::text::visible::visible;

/// Text that is safe inside HTML and SVG, in attributes too, with control characters made visible.
pub fn escaped(text: &str) -> String {
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

/// A sentence as HTML, safe as [`escaped`]: what stands between back quotes becomes code. A back
/// quote without a second one stays as it is. Not for attributes.
pub fn prose(text: &str) -> String {
    let text = escaped(text);
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('`')
        && let Some((code, left)) = after.split_once('`')
    {
        out.push_str(before);
        out.push_str("<code>");
        out.push_str(code);
        out.push_str("</code>");
        rest = left;
    }
    out + rest
}

/// The position of a text relative to its point.
#[derive(Clone, Copy, Debug)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    pub fn word(self) -> &'static str {
        match self {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        }
    }
}

/// The shape of a series' marks around the origin: circle, square, triangle and diamond in turn.
/// Series of equal colour have different shapes.
pub(crate) fn shape_path(series: usize) -> String {
    match (series + series / 8) % 4 {
        0 => "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
        1 => "M-4 -4h8v8h-8z",
        2 => "M0 -5.5l5 9h-10z",
        _ => "M0 -5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z",
    }
    .to_owned()
}

/// Names of series with their marks, below a picture.
pub(crate) fn legend<'a>(series: impl Iterator<Item = (&'a str, Option<usize>)>) -> String {
    let items = series.map(|(name, place)| {
        let (shape, class) = match place {
            Some(place) => (place, format!("c{}", place % 8)),
            None => (3, "v-noise".to_owned()),
        };
        format!(
            "<li><svg viewBox=\"-7 -7 14 14\" aria-hidden=\"true\"><path class=\"mark {class}\" \
             d=\"{}\"></path></svg>{}</li>\n",
            shape_path(shape),
            escaped(name)
        )
    });
    format!(
        "<ul class=\"legend\">\n{}</ul>\n",
        items.collect::<String>()
    )
}

/// A wide picture with what is below it, under a caption.
pub(crate) fn figure(caption: &str, inside: &str) -> String {
    let caption = escaped(caption);
    format!("<figure class=\"wide\"><figcaption>{caption}</figcaption>\n{inside}</figure>\n")
}

/// A title with the condition that it is about.
pub(crate) fn titled(what: &str, at: &Condition) -> String {
    match at.is_empty() {
        true => what.to_owned(),
        false => format!("{what}, {}", condition(at)),
    }
}

/// A picture under construction. Coordinates are in its own units, from the upper left corner.
pub struct Picture {
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

    /// Lines and labels at the ticks of a vertical scale, over the width of a field.
    pub fn rows(&mut self, y: &Scale, ticks: &[Tick], (left, right): (f64, f64)) {
        for (value, label) in ticks {
            let at = y.place(*value);
            self.line("grid", (left, at), (right, at));
            self.text("tick", (left - 6.0, at + 4.0), Anchor::End, label);
        }
    }

    /// Lines and labels at the ticks of a horizontal scale, over the height of a field.
    pub fn columns(&mut self, x: &Scale, ticks: &[Tick], (top, bottom): (f64, f64)) {
        for (value, label) in ticks {
            let at = x.place(*value);
            self.line("grid", (at, top), (at, bottom));
            self.text("tick", (at, bottom + 16.0), Anchor::Middle, label);
        }
    }

    /// Names of series with their marks right of a field, at the heights at which their curves end;
    /// pushed apart where they would overlap. Returns where the last one ends.
    pub(crate) fn names(&mut self, left: f64, mut series: Vec<(f64, usize, &str, &str)>) -> f64 {
        series.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut free = f64::NEG_INFINITY;
        for (end, colour, name, hint) in series {
            let at = end.max(free);
            free = at + 18.0;
            self.mark(colour, &format!("mark c{}", colour % 8), (left, at), hint);
            let name = ends_kept(name, 15);
            self.text("label", (left + 10.0, at + 4.0), Anchor::Start, &name);
        }
        free
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
        self.body.push_str(&format!(
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{}\">{}</text>\n",
            at.0,
            at.1,
            anchor.word(),
            escaped(text)
        ));
    }

    /// Points that nobody can tell from the last one drawn are left out.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        const TOLD_APART: f64 = 0.7;
        let mut drawn: Vec<(f64, f64)> = Vec::new();
        for (number, &(x, y)) in points.iter().enumerate() {
            let is_last = number + 1 == points.len();
            let is_near = drawn.last().is_some_and(|last| {
                (last.0 - x).abs() < TOLD_APART && (last.1 - y).abs() < TOLD_APART
            });
            if is_last || !is_near {
                drawn.push((x, y));
            }
        }
        let points: Vec<String> = drawn
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        self.body.push_str(&format!(
            "<polyline class=\"{class}\" points=\"{}\"/>\n",
            points.join(" ")
        ));
    }

    /// The mark of a series, whose shape identifies the series without colour. A pointer over it
    /// shows `hint`.
    pub fn mark(&mut self, series: usize, class: &str, at: (f64, f64), hint: &str) {
        self.body.push_str(&format!(
            "<path transform=\"translate({:.1} {:.1})\" d=\"{}\" class=\"{class}\"><title>{}</title></path>\n",
            at.0,
            at.1,
            shape_path(series),
            escaped(hint)
        ));
    }

    /// A path of SVG commands.
    pub fn path(&mut self, class: &str, commands: &str) {
        self.body.push_str(&format!(
            "<path class=\"{class}\" d=\"{commands}\"></path>\n"
        ));
    }

    /// A text at its left end. A pointer over it shows a hint.
    pub fn text_with_hint(&mut self, class: &str, at: (f64, f64), text: &str, hint: &str) {
        self.body.push_str(&format!(
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\">{}<title>{}</title></text>\n",
            at.0,
            at.1,
            escaped(text),
            escaped(hint)
        ));
    }

    /// The picture as an SVG element of this height.
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
    fn what_stands_between_back_quotes_is_code_and_its_markup_stays_text() {
        assert_eq!(
            prose("`a<b` and `c`, then ` alone"),
            "<code>a&lt;b</code> and <code>c</code>, then ` alone"
        );
        assert_eq!(prose("nothing"), "nothing");
        assert_eq!(prose("``"), "<code></code>");
    }

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
