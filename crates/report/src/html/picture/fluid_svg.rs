//! Pictures that fill the available width: horizontally in per cent, vertically in pixels.

use crate::html::picture::svg::{Anchor, escaped, shape_path};

/// A picture under construction. Horizontal positions are in per cent of its width.
pub(crate) struct FluidSvg {
    height: f64,
    body: String,
    /// The class of the group of dots that `body` ends with, and where it ends.
    dots: Option<(String, usize)>,
}

impl FluidSvg {
    pub fn new(height: f64) -> Self {
        Self {
            height,
            body: String::new(),
            dots: None,
        }
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.body.push_str(&format!(
            "<line class=\"{class}\" x1=\"{:.2}%\" y1=\"{:.1}\" x2=\"{:.2}%\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// A line from top to bottom, however high the picture becomes.
    pub fn column(&mut self, class: &str, at: f64) {
        self.body.push_str(&format!(
            "<line class=\"{class}\" x1=\"{at:.2}%\" y1=\"0\" x2=\"{at:.2}%\" y2=\"100%\"/>"
        ));
    }

    /// A band from top to bottom.
    pub fn band(&mut self, from: f64, to: f64) {
        self.body.push_str(&format!(
            "<rect class=\"band\" x=\"{from:.2}%\" y=\"0\" width=\"{:.2}%\" height=\"100%\"/>",
            (to - from).max(0.0)
        ));
    }

    /// A dot. Those of one class that follow each other are one group, which keeps pages small.
    pub fn dot(&mut self, class: &str, at: (f64, f64)) {
        const END: &str = "</g>";
        let is_open = self
            .dots
            .as_ref()
            .is_some_and(|(open, end)| open == class && *end == self.body.len());
        match is_open {
            true => self.body.truncate(self.body.len() - END.len()),
            false => self.body.push_str(&format!("<g class=\"dot {class}\">")),
        }
        self.body.push_str(&format!(
            "<circle cx=\"{:.1}%\" cy=\"{:.0}\" r=\"2.5\"/>{END}",
            at.0, at.1
        ));
        self.dots = Some((class.to_owned(), self.body.len()));
    }

    /// The mark of a series, with what a pointer over it shows.
    pub fn mark(&mut self, series: usize, class: &str, at: (f64, f64), hint: &str) {
        self.shape(class, at, &shape_path(series), hint);
    }

    /// An arrow head, for an interval that goes on to the left or right of the picture.
    pub fn arrow(&mut self, class: &str, at: (f64, f64), left: bool) {
        let path = match left {
            true => "M6 -5L0 0L6 5",
            false => "M-6 -5L0 0L-6 5",
        };
        self.shape(class, at, path, "");
    }

    fn shape(&mut self, class: &str, at: (f64, f64), path: &str, hint: &str) {
        let title = match hint.is_empty() {
            true => String::new(),
            false => format!("<title>{}</title>", escaped(hint)),
        };
        self.body.push_str(&format!(
            "<svg x=\"{:.2}%\" y=\"{:.1}\" width=\"1\" height=\"1\" overflow=\"visible\">\
             <path class=\"{class}\" d=\"{path}\">{title}</path></svg>",
            at.0, at.1
        ));
    }

    pub fn text(&mut self, at: (f64, f64), anchor: Anchor, text: &str) {
        self.body.push_str(&format!(
            "<text class=\"tick\" x=\"{:.2}%\" y=\"{:.1}\" text-anchor=\"{}\">{}</text>",
            at.0,
            at.1,
            anchor.word(),
            escaped(text)
        ));
    }

    /// The picture as an SVG element. Screen readers read `described`; if it is empty, they skip
    /// the picture.
    pub fn finish(self, class: &str, described: &str) -> String {
        let role = match described.is_empty() {
            true => "aria-hidden=\"true\"".to_owned(),
            false => format!("role=\"img\" aria-label=\"{}\"", escaped(described)),
        };
        let class = match class.is_empty() {
            true => String::new(),
            false => format!(" class=\"{class}\""),
        };
        format!(
            "<svg{class} {role} height=\"{:.0}\">{}</svg>\n",
            self.height, self.body
        )
    }
}
