//! A drawing as a PNG file.

use ttf_parser::{Face, GlyphId, OutlineBuilder};
use zeno::{
    Cap, Command, Join, Mask, PathBuilder as _, PathData, Placement, Stroke, Style, Transform,
};

use super::canvas::{BAR_OPACITY, DOT, Drawing, Element, Ink, Inked, THEN};
use super::measure::Font;
use crate::html::picture::svg::Anchor;
use crate::text::visible::visible;

/// Pixels for each unit of the drawing.
const PIXELS: f64 = 2.0;

/// The drawing as the bytes of a PNG file, on white.
pub(super) fn png(drawing: &Drawing) -> Vec<u8> {
    let mut image = Image::new(drawing.size);
    for element in &drawing.elements {
        image.draw(element);
    }
    image.encoded()
}

/// Pixels in rows, three bytes each: red, green, blue.
struct Image {
    width: usize,
    height: usize,
    bytes: Vec<u8>,
}

impl Image {
    fn new((width, height): (f64, f64)) -> Self {
        let (width, height) = ((width * PIXELS) as usize, (height * PIXELS) as usize);
        Self {
            width,
            height,
            bytes: vec![0xff; width * height * 3],
        }
    }

    fn draw(&mut self, element: &Element) {
        match element {
            Element::Bar { ink, corner, size } => {
                let (x, y) = *corner;
                let (to_x, to_y) = (x + size.0.max(0.5), y + size.1);
                let path = format!("M{x} {y}L{to_x} {y}L{to_x} {to_y}L{x} {to_y}Z");
                self.fill(path.as_str(), Style::default(), *ink, BAR_OPACITY);
            }
            Element::Lines { ink, width, .. } => {
                let mut stroke = Stroke::new(*width as f32);
                stroke.cap(Cap::Butt).join(Join::Miter);
                self.fill(element.commands().as_str(), stroke.into(), *ink, 1.0);
            }
            Element::Dot { ink, at } => {
                let mut path: Vec<Command> = Vec::new();
                path.add_circle((at.0 as f32, at.1 as f32), DOT as f32);
                self.fill(path.as_slice(), Style::default(), *ink, 1.0);
            }
            Element::Text {
                anchor,
                at,
                text,
                then,
            } => {
                let end = self.text(text, *anchor, *at);
                if let Some(then) = then {
                    self.text(then, Anchor::Start, (end + THEN, at.1));
                }
            }
        }
    }

    /// Returns where the text ends.
    fn text(&mut self, text: &Inked, anchor: Anchor, at: (f64, f64)) -> f64 {
        let outline = Outline::of(text.font, anchor, at, &visible(&text.text));
        self.fill(outline.commands.as_slice(), Style::default(), text.ink, 1.0);
        f64::from(outline.at.0)
    }

    fn fill(&mut self, path: impl PathData, style: Style<'_>, ink: Ink, opacity: f64) {
        let scale = Transform::scale(PIXELS as f32, PIXELS as f32);
        let (mask, placed) = Mask::new(path).transform(Some(scale)).style(style).render();
        self.blend(&mask, placed, ink, opacity);
    }

    /// Lays a colour over the pixels, as far as the mask covers them.
    fn blend(&mut self, mask: &[u8], placed: Placement, ink: Ink, opacity: f64) {
        let colour = rgb(ink);
        for (row, line) in mask.chunks(placed.width.max(1) as usize).enumerate() {
            for (column, cover) in line.iter().enumerate() {
                let x = placed.left + column as i32;
                let y = placed.top + row as i32;
                let (Ok(x), Ok(y)) = (usize::try_from(x), usize::try_from(y)) else {
                    continue;
                };
                if *cover == 0 || x >= self.width || y >= self.height {
                    continue;
                }
                let share = f64::from(*cover) / 255.0 * opacity;
                let from = 3 * (y * self.width + x);
                for (byte, over) in self.bytes[from..from + 3].iter_mut().zip(colour) {
                    let mixed = f64::from(*byte) * (1.0 - share) + f64::from(over) * share;
                    *byte = mixed.round() as u8;
                }
            }
        }
    }

    /// A PNG file of 8 bits for each colour (W3C PNG, third edition).
    fn encoded(&self) -> Vec<u8> {
        let mut rows = Vec::with_capacity(self.bytes.len() + self.height);
        for row in self.bytes.chunks(3 * self.width.max(1)) {
            // No filter.
            rows.push(0);
            rows.extend_from_slice(row);
        }
        let mut head = Vec::new();
        head.extend_from_slice(&(self.width as u32).to_be_bytes());
        head.extend_from_slice(&(self.height as u32).to_be_bytes());
        // 8 bits, colours without a palette, the only compression and filters, not interlaced.
        head.extend_from_slice(&[8, 2, 0, 0, 0]);
        let mut out = b"\x89PNG\r\n\x1a\n".to_vec();
        chunk(&mut out, b"IHDR", &head);
        chunk(
            &mut out,
            b"IDAT",
            &miniz_oxide::deflate::compress_to_vec_zlib(&rows, 6),
        );
        chunk(&mut out, b"IEND", &[]);
        out
    }
}

fn chunk(out: &mut Vec<u8>, kind: &[u8; 4], data: &[u8]) {
    out.extend_from_slice(&(data.len() as u32).to_be_bytes());
    let from = out.len();
    out.extend_from_slice(kind);
    out.extend_from_slice(data);
    let sum = crc32fast::hash(&out[from..]);
    out.extend_from_slice(&sum.to_be_bytes());
}

fn rgb(ink: Ink) -> [u8; 3] {
    let text = ink.light();
    [1, 3, 5].map(|from| u8::from_str_radix(&text[from..from + 2], 16).unwrap_or(0))
}

/// The outlines of a text's letters. It takes them in the font's units, whose vertical axis points up.
struct Outline {
    commands: Vec<Command>,
    /// Where the next letter begins.
    at: (f32, f32),
    scale: f32,
}

impl Outline {
    fn of(font: Font, anchor: Anchor, (x, y): (f64, f64), text: &str) -> Self {
        let mut outline = Outline {
            commands: Vec::new(),
            at: (x as f32, y as f32),
            scale: 0.0,
        };
        let bytes = match font.bold {
            true => notosans::BOLD_TTF,
            false => notosans::REGULAR_TTF,
        };
        // The font is part of the program, so reading it cannot fail.
        let Ok(face) = Face::parse(bytes, 0) else {
            return outline;
        };
        let scale = font.size as f32 / f32::from(face.units_per_em());
        outline.scale = scale;
        let glyphs = text.chars();
        let glyphs = glyphs.map(|letter| face.glyph_index(letter).unwrap_or_default());
        let glyphs: Vec<GlyphId> = glyphs.collect();
        let advance = |glyph: &GlyphId| {
            let units = face.glyph_hor_advance(*glyph).unwrap_or(0);
            scale * f32::from(units)
        };
        let width: f32 = glyphs.iter().map(advance).sum();
        outline.at.0 -= match anchor {
            Anchor::Start => 0.0,
            Anchor::Middle => width / 2.0,
            Anchor::End => width,
        };
        for glyph in &glyphs {
            face.outline_glyph(*glyph, &mut outline);
            outline.at.0 += advance(glyph);
        }
        outline
    }

    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        (self.at.0 + x * self.scale, self.at.1 - y * self.scale)
    }
}

impl OutlineBuilder for Outline {
    fn move_to(&mut self, x: f32, y: f32) {
        let to = self.place(x, y);
        self.commands.move_to(to);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let to = self.place(x, y);
        self.commands.line_to(to);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let (control, to) = (self.place(x1, y1), self.place(x, y));
        self.commands.quad_to(control, to);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let (first, second, to) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
        self.commands.curve_to(first, second, to);
    }

    fn close(&mut self) {
        self.commands.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_take_no_more_room_than_was_measured() {
        let width = |font: Font, text: &str| {
            f64::from(Outline::of(font, Anchor::Start, (0.0, 0.0), text).at.0)
        };
        for text in [
            "at least 20,000/s",
            "WWW MMM @@@ %%%",
            "-31% [-33%, -29%]",
            "naïve – größer",
        ] {
            for font in [Font::plain(15.0), Font::bold(15.0)] {
                let (drawn, most) = (width(font, text), font.width(text));
                assert!(
                    drawn <= most && drawn > 0.5 * most,
                    "{text}: {drawn} {most}"
                );
            }
        }
    }
}
