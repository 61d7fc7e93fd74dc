//! The ranking as one picture: bars with intervals, the best first, a panel for each condition. The
//! same layout becomes the page's picture, wide and narrow, a file of its own, and pixels.

mod canvas;
mod content;
mod grid;
mod layout;
#[cfg(test)]
mod made;
mod measure;
mod panels;
#[cfg(feature = "full")]
mod pixels;
mod words;

use readings::RunHeader;
use verdict::Analysis;

use content::Content;
use layout::Format;

/// The picture for the page, in a form for wide and one for narrow windows; empty without a ranking.
pub fn rankings(header: &RunHeader, analysis: &Analysis) -> String {
    let Some(content) = Content::of(header, analysis) else {
        return String::new();
    };
    let wide = layout::laid_out(&content, &Format::PAGE).in_page("ranking-wide", "wide-only");
    let narrow = layout::laid_out(&content, &Format::NARROW).in_page("ranking", "narrow-only");
    format!("<figure class=\"ranking\">\n{wide}{narrow}</figure>\n")
}

/// The picture as an SVG file that stands alone, on white; `None` without a ranking.
pub fn ranking_svg(header: &RunHeader, analysis: &Analysis) -> Option<String> {
    let content = Content::of(header, analysis)?;
    Some(layout::laid_out(&content, &Format::FILE).file())
}

/// The same as a PNG file, two pixels for each unit of the SVG file; `None` without a ranking.
#[cfg(feature = "full")]
pub fn ranking_png(header: &RunHeader, analysis: &Analysis) -> Option<Vec<u8>> {
    let content = Content::of(header, analysis)?;
    Some(pixels::png(&layout::laid_out(&content, &Format::FILE)))
}

#[cfg(test)]
mod tests;
