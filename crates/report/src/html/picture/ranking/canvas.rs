//! A drawing as data, and as SVG.

use super::measure::Font;
use crate::html::picture::svg::{Anchor, escaped};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Ink {
    Text,
    Soft,
    Rule,
    Paper,
    /// Of a subject; from 0.
    Series(usize),
}

/// How much of a bar's colour covers what is below.
pub(super) const BAR_OPACITY: f64 = 0.6;
/// Between a text and what stands behind it.
pub(super) const THEN: f64 = 8.0;
pub(super) const DOT: f64 = 4.0;

impl Ink {
    /// The colour on white: that of the page when it is light.
    pub fn light(self) -> &'static str {
        const SERIES: [&str; 8] = [
            "#0b6fb3", "#c4500a", "#07805f", "#a8478a", "#7a6200", "#3a4fb8", "#b02a37", "#4c5661",
        ];
        match self {
            Ink::Text => "#1d2129",
            Ink::Soft => "#5b6472",
            Ink::Rule => "#dcdfe4",
            Ink::Paper => "#ffffff",
            Ink::Series(number) => SERIES[number % SERIES.len()],
        }
    }

    /// The class of the page's style.
    fn class(self) -> String {
        match self {
            Ink::Text => "i-text".to_owned(),
            Ink::Soft => "i-soft".to_owned(),
            Ink::Rule => "i-rule".to_owned(),
            Ink::Paper => "i-paper".to_owned(),
            Ink::Series(number) => format!("i-series c{}", number % 8),
        }
    }
}

/// What a drawing consists of. Places are in units from the upper left corner.
#[derive(Debug)]
pub(super) enum Element {
    Bar {
        ink: Ink,
        corner: (f64, f64),
        size: (f64, f64),
    },
    /// Lines through points, with round ends.
    Lines {
        ink: Ink,
        width: f64,
        lines: Vec<Vec<(f64, f64)>>,
    },
    Dot {
        ink: Ink,
        at: (f64, f64),
    },
    /// A text on its base line, and what stands behind it.
    Text {
        anchor: Anchor,
        at: (f64, f64),
        text: Inked,
        then: Option<Inked>,
    },
}

/// A text in a colour and a font.
#[derive(Debug)]
pub(super) struct Inked {
    pub ink: Ink,
    pub font: Font,
    pub text: String,
}

#[derive(Debug)]
pub(super) struct Drawing {
    pub size: (f64, f64),
    pub title: String,
    pub description: String,
    pub elements: Vec<Element>,
}

#[derive(Clone, Copy, PartialEq)]
enum Colours {
    Page,
    White,
}

impl Colours {
    fn of(self, ink: Ink, property: &str) -> String {
        match self {
            Colours::Page => format!("class=\"{}\"", ink.class()),
            Colours::White => format!("{property}=\"{}\"", ink.light()),
        }
    }
}

impl Drawing {
    /// The drawing inside a page. `id` is unique there.
    pub fn in_page(&self, id: &str, class: &str) -> String {
        let head = format!("class=\"{class}\" style=\"max-width:{:.0}px\"", self.size.0);
        self.svg(&head, id, Colours::Page)
    }

    /// The drawing as a file, on white.
    pub fn file(&self) -> String {
        let (width, height) = self.size;
        let head = format!(
            "xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             font-family=\"sans-serif\""
        );
        self.svg(&head, "ranking", Colours::White)
    }

    fn svg(&self, head: &str, id: &str, colours: Colours) -> String {
        let (width, height) = self.size;
        let background = match colours {
            Colours::White => format!(
                "<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n",
                Ink::Paper.light()
            ),
            Colours::Page => String::new(),
        };
        let body = self.elements.iter().map(|one| one.svg(colours));
        format!(
            "<svg {head} role=\"img\" aria-labelledby=\"{id}-t {id}-d\" \
             viewBox=\"0 0 {width:.0} {height:.0}\">\n\
             <title id=\"{id}-t\">{}</title>\n<desc id=\"{id}-d\">{}</desc>\n{background}{}</svg>\n",
            escaped(&self.title),
            escaped(&self.description),
            body.collect::<String>()
        )
    }
}

impl Element {
    fn svg(&self, colours: Colours) -> String {
        match self {
            Element::Bar { ink, corner, size } => format!(
                "<rect {} opacity=\"{BAR_OPACITY}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" \
                 height=\"{:.1}\"/>\n",
                colours.of(*ink, "fill"),
                corner.0,
                corner.1,
                size.0.max(0.5),
                size.1
            ),
            Element::Lines { ink, width, .. } => format!(
                "<path {} stroke-width=\"{width}\"{} d=\"{}\"></path>\n",
                colours.of(*ink, "stroke"),
                if colours == Colours::White {
                    " fill=\"none\""
                } else {
                    ""
                },
                self.commands()
            ),
            Element::Dot { ink, at } => format!(
                "<circle {} cx=\"{:.1}\" cy=\"{:.1}\" r=\"{DOT}\"/>\n",
                colours.of(*ink, "fill"),
                at.0,
                at.1
            ),
            Element::Text {
                anchor,
                at,
                text,
                then,
            } => {
                let anchor = match anchor {
                    Anchor::Start => String::new(),
                    other => format!(" text-anchor=\"{}\"", other.word()),
                };
                let then = then.as_ref().map_or_else(String::new, |then| {
                    let (style, text) = (then.style(colours, false), escaped(&then.text));
                    format!("<tspan dx=\"{THEN}\" {style}>{text}</tspan>")
                });
                format!(
                    "<text {}{anchor} x=\"{:.1}\" y=\"{:.1}\">{}{then}</text>\n",
                    text.style(colours, true),
                    at.0,
                    at.1,
                    escaped(&text.text)
                )
            }
        }
    }

    /// Lines as the commands of an SVG path; of other elements nothing.
    pub fn commands(&self) -> String {
        let Element::Lines { lines, .. } = self else {
            return String::new();
        };
        let mut out = String::new();
        for line in lines {
            let mut last: Option<(f64, f64)> = None;
            for (x, y) in line.iter().copied() {
                out.push_str(&match last {
                    None => format!("M{x:.1} {y:.1}"),
                    Some((_, before)) if before == y => format!("H{x:.1}"),
                    Some((before, _)) if before == x => format!("V{y:.1}"),
                    Some(_) => format!("L{x:.1} {y:.1}"),
                });
                last = Some((x, y));
            }
        }
        out
    }
}

impl Inked {
    /// `is_first`: nothing stands before it in its element.
    fn style(&self, colours: Colours, is_first: bool) -> String {
        let weight = match (self.font.bold, is_first) {
            (true, _) => " font-weight=\"600\"",
            (false, true) => "",
            (false, false) => " font-weight=\"400\"",
        };
        let colour = colours.of(self.ink, "fill");
        format!("{colour} font-size=\"{}\"{weight}", self.font.size)
    }

    /// The most that it is wide.
    #[cfg(test)]
    pub fn width(&self) -> f64 {
        self.font.width(&self.text)
    }
}
