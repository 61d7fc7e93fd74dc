//! A description as text for a terminal, and as Markdown for the book.

use super::ParamDescription;

/// A description for a person to read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The name of the thing described.
    pub name: String,
    blocks: Vec<Block>,
}

#[derive(Clone, Debug, PartialEq)]
enum Block {
    Paragraph(String),
    /// Labels and values.
    Fields(Vec<(String, String)>),
    /// A title, the columns' names, and rows.
    Table(String, Vec<&'static str>, Vec<Vec<String>>),
    /// Parameters, below a title.
    Params(String, Vec<ParamDescription>),
}

impl Page {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            blocks: Vec::new(),
        }
    }

    pub(super) fn paragraph(&mut self, text: &str) {
        if !text.is_empty() {
            self.blocks.push(Block::Paragraph(text.trim().to_owned()));
        }
    }

    /// Fields without a value are left out.
    pub(super) fn fields(&mut self, fields: Vec<(&str, String)>) {
        let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
        let fields = fields.map(|(label, value)| (label.to_owned(), value));
        self.blocks.push(Block::Fields(fields.collect()));
    }

    pub(super) fn table(&mut self, title: &str, head: &[&'static str], rows: Vec<Vec<String>>) {
        if !rows.is_empty() {
            let block = Block::Table(title.to_owned(), head.to_vec(), rows);
            self.blocks.push(block);
        }
    }

    pub(super) fn params(&mut self, title: &str, params: &[ParamDescription]) {
        if !params.is_empty() {
            let block = Block::Params(title.to_owned(), params.to_vec());
            self.blocks.push(block);
        }
    }

    /// The page for a terminal that is `columns` wide, with a blank line after each part. `kind` is
    /// the kind of thing described, such as `recipe`.
    pub fn text(&self, kind: &str, columns: usize) -> String {
        let mut out = format!("{kind} {}\n\n", self.name);
        for block in &self.blocks {
            match block {
                Block::Paragraph(text) => wrap(&mut out, "  ", 2, text, columns),
                Block::Fields(fields) => {
                    let width = width(fields.iter().map(|(label, _)| label.as_str()));
                    for (label, value) in fields {
                        let first = format!("  {label:width$}  ");
                        wrap(&mut out, &first, width + 4, value, columns);
                    }
                }
                Block::Table(title, _, rows) => text_table(&mut out, title, rows, columns),
                Block::Params(title, params) => {
                    out.push_str(&format!("{title}\n"));
                    for param in params {
                        let (name, default) = (&param.name, param.default_text());
                        let first = format!("  {name} = {default}    ");
                        wrap(&mut out, &first, 6, &format!("({})", param.takes), columns);
                        wrap(&mut out, "      ", 6, &param.doc, columns);
                    }
                }
            }
            out.push('\n');
        }
        out
    }

    /// The page as a section of the book.
    pub fn markdown(&self) -> String {
        let mut out = format!("## {}\n\n", self.name);
        for block in &self.blocks {
            match block {
                Block::Paragraph(text) => out.push_str(&format!("{}\n", markdown(text))),
                Block::Fields(fields) => {
                    for (label, value) in fields {
                        out.push_str(&format!("- {label}: {}\n", markdown(value)));
                    }
                }
                Block::Table(title, head, rows) => {
                    out.push_str(&format!("**{title}**\n\n"));
                    markdown_table(&mut out, head, rows);
                }
                Block::Params(title, params) => {
                    out.push_str(&format!("**{title}**\n\n"));
                    let row = |param: &ParamDescription| {
                        let default = match &param.default {
                            Some(value) => format!("`{value}`"),
                            None => param.default_text(),
                        };
                        let (name, takes) = (format!("`{}`", param.name), param.takes.clone());
                        vec![name, default, takes, param.doc.clone()]
                    };
                    let rows: Vec<_> = params.iter().map(row).collect();
                    markdown_table(
                        &mut out,
                        &["name", "default", "takes", "what it does"],
                        &rows,
                    );
                }
            }
            out.push('\n');
        }
        out
    }
}

/// A page of the book over several descriptions: a title, an introduction, and a section each.
pub fn book(title: &str, introduction: &str, pages: &[Page]) -> String {
    let mut out = format!("# {title}\n\n{introduction}\n\n");
    let links = pages.iter().map(|page| format!("[{0}](#{0})", page.name));
    out.push_str(&links.collect::<Vec<_>>().join(" · "));
    out.push_str("\n\n");
    for page in pages {
        out.push_str(&page.markdown());
    }
    out.trim_end().to_owned() + "\n"
}

/// Text that Markdown shows as it is, outside of code quotes.
fn markdown(text: &str) -> String {
    let mut out = String::new();
    let mut in_code = false;
    for c in text.chars() {
        match c {
            '`' => in_code = !in_code,
            '<' | '*' | '_' | '[' if !in_code => out.push('\\'),
            _ => {}
        }
        out.push(c);
    }
    out
}

fn markdown_table(out: &mut String, head: &[&str], rows: &[Vec<String>]) {
    out.push_str(&format!("| {} |\n", head.join(" | ")));
    out.push_str(&format!("|{}\n", "---|".repeat(head.len())));
    for row in rows {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| markdown(cell).replace('|', "\\|").replace('\n', " "))
            .collect();
        out.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
}

/// Rows in columns; the last column is wrapped.
fn text_table(out: &mut String, title: &str, rows: &[Vec<String>], columns: usize) {
    out.push_str(&format!("{title}\n"));
    let plain = |cell: &String| cell.replace('`', "");
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(plain).collect())
        .collect();
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let cell = |row: &Vec<String>, at: usize| row.get(at).cloned().unwrap_or_default();
    let widths: Vec<usize> = (0..count.saturating_sub(1))
        .map(|at| rows.iter().map(|row| cell(row, at).chars().count()).max())
        .map(Option::unwrap_or_default)
        .collect();
    for row in &rows {
        let mut first = "  ".to_owned();
        for (at, width) in widths.iter().enumerate() {
            first.push_str(&format!("{:width$}  ", cell(row, at)));
        }
        // If a row has too little room for its last cell, that goes on the next line.
        let hanging = first.chars().count().min(columns / 2);
        wrap(out, &first, hanging, &cell(row, count - 1), columns);
    }
}

fn width<'a>(labels: impl Iterator<Item = &'a str>) -> usize {
    labels.map(textwrap::core::display_width).max().unwrap_or(0)
}

/// Adds words, wrapped into lines of limited width: the first after `first`, the others indented.
fn wrap(out: &mut String, first: &str, indent: usize, text: &str, columns: usize) {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.is_empty() {
        // `fill` leaves out the beginning of a line without words.
        out.push_str(first.trim_end());
        out.push('\n');
        return;
    }
    let space = " ".repeat(indent);
    let options = textwrap::Options::new(columns)
        .initial_indent(first)
        .subsequent_indent(&space)
        .break_words(false)
        .word_separator(textwrap::WordSeparator::AsciiSpace)
        .word_splitter(textwrap::WordSplitter::NoHyphenation);
    out.push_str(textwrap::fill(&text, options).trim_end());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let mut page = Page::new("tiny");
        page.paragraph("a server with a long sentence about it, to be wrapped");
        page.fields(vec![("home", "http://x/".into()), ("none", String::new())]);
        page.params(
            "parameters",
            &[ParamDescription {
                name: "workers".into(),
                kind: "integer",
                default: Some(1.into()),
                required: false,
                min: Some(1),
                max: None,
                one_of: vec![],
                takes: "a whole number of at least 1".into(),
                doc: "processes | threads".into(),
            }],
        );
        page.table(
            "files",
            &["file", "from"],
            vec![vec!["`a`".into(), "`b_c` d_e".into()]],
        );
        page
    }

    #[test]
    fn a_terminal_gets_lines_that_fit() {
        assert_eq!(
            page().text("recipe", 40),
            "recipe tiny\n\n  a server with a long sentence about\n  it, to be wrapped\n\n  \
             home  http://x/\n\nparameters\n  workers = 1    (a whole number of at\n      least 1)\n      \
             processes | threads\n\nfiles\n  a  b_c d_e\n\n"
        );
    }

    #[test]
    fn a_row_whose_last_cell_is_empty_is_shown() {
        let mut page = Page::new("tiny");
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = vec![row(["a", "1", "first"]), row(["long", "2", ""])];
        page.table("options", &["name", "value", "note"], rows);
        assert_eq!(
            page.text("driver", 40),
            "driver tiny\n\noptions\n  a     1  first\n  long  2\n\n"
        );
    }

    #[test]
    fn the_book_gets_tables_whose_text_is_escaped() {
        let text = book("All", "Intro.", &[page()]);
        assert!(text.starts_with("# All\n\nIntro.\n\n[tiny](#tiny)\n\n## tiny\n"));
        assert!(text.contains(
            "| `workers` | `1` | a whole number of at least 1 | processes \\| threads |"
        ));
        assert!(text.ends_with("| `a` | `b_c` d\\_e |\n"), "{text}");
    }
}
