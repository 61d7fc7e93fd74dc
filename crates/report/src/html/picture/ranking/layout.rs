//! Where everything stands.

use verdict::Bound;

use super::canvas::{DOT, Drawing, Element, Ink, Inked, THEN};
use super::content::{Band, Content, Panel, Row};
use super::grid::{GAP, Grid, OPEN, Scale, ticks};
use super::measure::Font;
use crate::html::picture::svg::Anchor;

#[derive(Debug)]
pub(super) struct Format {
    /// The whole width with one to four columns.
    pub widths: &'static [f64],
    margin: f64,
    /// Whether title and source are in the picture.
    stands_alone: bool,
    /// The font of names and figures.
    pub size: f64,
}

impl Format {
    /// A file of its own.
    pub const FILE: Format = Format {
        widths: &[860.0, 1120.0, 1280.0, 1400.0],
        margin: 28.0,
        stands_alone: true,
        size: 15.0,
    };
    /// The page in a wide window.
    pub const PAGE: Format = Format {
        widths: &[860.0, 960.0, 1160.0, 1230.0],
        margin: 2.0,
        stands_alone: false,
        size: 14.0,
    };
    /// The page on a telephone.
    pub const NARROW: Format = Format {
        widths: &[352.0],
        margin: 2.0,
        stands_alone: false,
        size: 13.0,
    };
}

/// Between columns.
const GUTTER: f64 = 36.0;
/// The height of a line, in font sizes.
const LINE: f64 = 1.4;
pub(super) fn laid_out(content: &Content<'_>, format: &Format) -> Drawing {
    let columns = |band: &Band<'_>| band.columns.clamp(1, format.widths.len());
    let most = content.bands.iter().map(columns).max().unwrap_or(1);
    let width = format.widths[most - 1];
    let inner = width - 2.0 * format.margin;
    let mut pen = Pen {
        elements: Vec::new(),
        x: format.margin,
        y: format.margin,
        width: inner,
    };
    if format.stands_alone {
        pen.paragraph(content.title, Font::bold(22.0), Ink::Text);
        pen.y += 4.0;
    }
    if let Some((what, better)) = &content.lead {
        pen.metric(what, Some(better), 1, format.size + 1.0);
    }
    pen.paragraph(&content.notes, Font::plain(format.size - 1.0), Ink::Soft);
    let shared = content.shares_scale.then(|| {
        let columns = content.bands.first().map_or(1, columns);
        let panels: Vec<&Panel<'_>> = content.panels().collect();
        Grid::of(&panels, panel_width(inner, columns), format)
    });
    for band in &content.bands {
        pen.y += 16.0;
        pen.heading(&band.heading, Font::bold(format.size + 1.0));
        let columns = columns(band);
        let panel_width = panel_width(inner, columns);
        for (number, line) in band.panels.chunks(columns).enumerate() {
            pen.y += if number > 0 { 16.0 } else { 0.0 };
            let top = pen.y;
            let mut bottom = top;
            let headings = line.iter().flatten();
            let headings = headings.map(|panel| {
                Font::bold(format.size)
                    .wrap(&panel.heading, panel_width)
                    .len()
            });
            let lines = headings.max().unwrap_or(0);
            for (place, panel) in line.iter().enumerate() {
                let Some(panel) = panel else { continue };
                pen.y = top;
                pen.x = format.margin + place as f64 * (panel_width + GUTTER);
                pen.width = panel_width;
                let own;
                let grid = match &shared {
                    Some(grid) => grid,
                    None => {
                        own = Grid::of(&[panel], panel_width, format);
                        &own
                    }
                };
                pen.metric(&panel.heading, panel.better, lines, format.size);
                pen.panel(panel, grid, format);
                bottom = bottom.max(pen.y);
            }
            (pen.x, pen.y, pen.width) = (format.margin, bottom, inner);
        }
    }
    if format.stands_alone {
        pen.y += 14.0;
        let font = Font::plain(12.0);
        pen.y += 12.0;
        pen.text(
            (pen.x + inner, pen.y),
            Anchor::End,
            font,
            Ink::Soft,
            &content.source,
        );
    }
    Drawing {
        size: (width, (pen.y + format.margin + 4.0).ceil()),
        title: content.title.to_owned(),
        description: content.description.clone(),
        elements: pen.elements,
    }
}

fn panel_width(inner: f64, columns: usize) -> f64 {
    (inner - GUTTER * (columns - 1) as f64) / columns as f64
}

/// Draws from the top to the bottom.
struct Pen {
    elements: Vec<Element>,
    /// The left side and the top of what is next, and its width.
    x: f64,
    y: f64,
    width: f64,
}

impl Pen {
    fn text(&mut self, at: (f64, f64), anchor: Anchor, font: Font, ink: Ink, text: &str) {
        let text = Inked {
            ink,
            font,
            text: text.to_owned(),
        };
        self.elements.push(Element::Text {
            anchor,
            at,
            text,
            then: None,
        });
    }

    /// Adds a text behind the last one.
    fn then(&mut self, font: Font, ink: Ink, text: &str) {
        let text = text.to_owned();
        if let Some(Element::Text { then, .. }) = self.elements.last_mut() {
            *then = Some(Inked { ink, font, text });
        }
    }

    fn lines(&mut self, ink: Ink, width: f64, lines: &[&[(f64, f64)]]) {
        let lines = lines.iter().map(|line| line.to_vec()).collect();
        self.elements.push(Element::Lines { ink, width, lines });
    }

    fn paragraph(&mut self, text: &str, font: Font, ink: Ink) {
        for line in font.wrap(text, self.width) {
            self.y += LINE * font.size;
            let at = (self.x, self.y - 0.3 * font.size);
            self.text(at, Anchor::Start, font, ink, &line);
        }
    }

    /// A heading that takes so many lines, and behind it, if there is room, which way is better.
    fn metric(&mut self, what: &str, better: Option<&str>, lines: usize, size: f64) {
        let (font, small) = (Font::bold(size), Font::plain(size - 1.0));
        let from = self.y;
        self.paragraph(what, font, Ink::Text);
        let is_one_line = self.y - from < 2.0 * size;
        let room = self.width - font.width(what) - THEN;
        if let Some(better) = better.filter(|text| is_one_line && small.width(text) <= room) {
            self.then(small, Ink::Soft, better);
        }
        self.y = self.y.max(from + lines as f64 * LINE * size);
    }

    fn heading(&mut self, text: &str, font: Font) {
        if !text.is_empty() {
            self.paragraph(&font.cut(text, self.width), font, Ink::Text);
            let (from, to) = (self.x, self.x + self.width);
            self.lines(
                Ink::Rule,
                1.0,
                &[&[(from, self.y + 3.0), (to, self.y + 3.0)]],
            );
            self.y += 12.0;
        }
    }

    fn panel(&mut self, panel: &Panel<'_>, grid: &Grid, format: &Format) {
        self.y += 4.0;
        let (left, top) = (self.x + grid.bars, self.y);
        let bottom = top + grid.row * panel.rows.len() as f64;
        match &grid.scale {
            Scale::Linear { .. } => self.lines(Ink::Soft, 1.0, &[&[(left, top), (left, bottom)]]),
            Scale::Logarithmic { low, to, .. } => {
                let end = left + grid.scale.place(*to);
                self.lines(Ink::Soft, 1.0, &[&[(left, bottom), (end, bottom)]]);
                let font = Font::plain(format.size - 2.0);
                let mut free_from = f64::NEG_INFINITY;
                for (value, tick) in ticks(panel.metric, *low, *to) {
                    let at = left + grid.scale.place(value);
                    self.lines(Ink::Soft, 1.0, &[&[(at, bottom), (at, bottom + 4.0)]]);
                    let half = 0.5 * font.width(&tick);
                    if at - half < free_from {
                        continue;
                    }
                    free_from = at + half + GAP;
                    let below = (at, bottom + 4.0 + 1.2 * font.size);
                    self.text(below, Anchor::Middle, font, Ink::Soft, &tick);
                }
            }
        }
        for row in &panel.rows {
            self.row(row, grid, format);
            self.y += grid.row;
        }
        if let Scale::Logarithmic { .. } = grid.scale {
            self.y += 4.0 + 1.5 * format.size;
        }
    }

    fn row(&mut self, row: &Row<'_>, grid: &Grid, format: &Format) {
        let font = Font::plain(format.size);
        let middle = match grid.names_above {
            true => self.y + grid.row - 0.5 * grid.bar - 4.0,
            false => self.y + 0.5 * grid.row,
        };
        let (names, room) = match grid.names_above {
            true => (middle - 0.5 * grid.bar - 5.0, self.width - grid.names),
            false => (middle + 0.35 * font.size, grid.bars - grid.names - GAP),
        };
        let small = Font::plain(format.size - 2.0);
        let at = (self.x + grid.names - GAP, names);
        self.text(at, Anchor::End, small, Ink::Soft, &row.place);
        let at = (self.x + grid.names, names);
        self.text(
            at,
            Anchor::Start,
            font,
            Ink::Text,
            &font.cut(row.subject, room + 0.5),
        );

        let left = self.x + grid.bars;
        let ink = Ink::Series(row.colour);
        let end = left + grid.scale.place(row.value);
        match grid.scale {
            Scale::Linear { .. } => self.elements.push(Element::Bar {
                ink,
                corner: (left, middle - 0.5 * grid.bar),
                size: (end - left, grid.bar),
            }),
            Scale::Logarithmic { .. } => {
                self.lines(Ink::Rule, 1.0, &[&[(left, middle), (end, middle)]]);
            }
        }
        let reach = self.interval(row, grid, (left, middle));
        if let Scale::Logarithmic { .. } = grid.scale {
            self.elements.push(Element::Dot {
                ink,
                at: (end, middle),
            });
        }
        let from = end.max(reach) + GAP;
        let base = middle + 0.35 * font.size;
        let bold = Font::bold(format.size);
        self.text((from, base), Anchor::Start, bold, Ink::Text, &row.figure);
        if let Some(change) = row.change.as_ref().filter(|_| grid.with_changes) {
            self.then(Font::plain(format.size - 1.0), Ink::Soft, change);
        }
    }

    /// The interval over a bar; returns where it ends.
    fn interval(&mut self, row: &Row<'_>, grid: &Grid, (left, y): (f64, f64)) -> f64 {
        let is_dot = matches!(grid.scale, Scale::Logarithmic { .. });
        let half = if is_dot { 6.0 } else { 4.0 };
        let place = |value: f64| left + grid.scale.place(value);
        let (low, high) = row.ends(grid.most);
        let goes_on = row.goes_on(grid.most);
        let value = place(row.value);
        let cap = |at: f64| vec![(at, y - half), (at, y + half)];
        let arrow = |at: f64, by: f64| vec![(at + by, y - half), (at, y), (at + by, y + half)];
        let (from, to, mut lines) = match (low, high, row.bound) {
            (low, _, Some(Bound::AtLeast)) => {
                let from = low.map_or(value, place);
                let to = value.max(from) + OPEN;
                let mut ends = vec![arrow(to, -half)];
                ends.extend(low.map(|_| cap(from)));
                (from, to, ends)
            }
            (_, Some(high), Some(Bound::AtMost)) => {
                let from = (value - OPEN).max(left + 1.0);
                (from, place(high), vec![arrow(from, half), cap(place(high))])
            }
            (Some(low), Some(high), None) => {
                let (from, to) = (place(low), place(high));
                match goes_on {
                    true => (from, to + OPEN, vec![cap(from), arrow(to + OPEN, -half)]),
                    false => (from, to, vec![cap(from), cap(to)]),
                }
            }
            _ => return value + if is_dot { DOT } else { 0.0 },
        };
        lines.push(vec![(from, y), (to, y)]);
        let lines: Vec<&[(f64, f64)]> = lines.iter().map(Vec::as_slice).collect();
        self.lines(Ink::Paper, 4.5, &lines);
        self.lines(Ink::Text, 1.6, &lines);
        to
    }
}
