//! `[expect]`, `[sysctls]` and `[[published]]`.

use crate::spec::{BodyCheck, Expect, Published, SameAnswers};
use config::reader::{Problem, Reader};
use config::section::Section;
use config::tree::Tree;
use config::units::shown;

/// `[expect]`
pub(crate) fn expect(reader: &mut Reader, top: &Section<'_>) -> Expect {
    let mut expect = Expect::default();
    let Some(section) = top.section(reader, "expect") else {
        return expect;
    };
    section.only(
        reader,
        &["status", "contains", "body", "same", "every_server"],
    );
    if let Some(status) = section.integer(reader, "status", 100..=599) {
        // The range fits.
        expect.status = u16::try_from(status).unwrap_or_default();
    }
    expect.contains = section.text(reader, "contains");
    expect.body = match section
        .word(reader, "body", &["same", "varies", "auto"])
        .as_deref()
    {
        Some("same") => BodyCheck::Same,
        Some("varies") => BodyCheck::Varies,
        _ => BodyCheck::Auto,
    };
    expect.same = match section.boolean(reader, "same") {
        Some(true) => SameAnswers::All,
        Some(false) => SameAnswers::Differ,
        None => SameAnswers::Auto,
    };
    if let Some(every) = section.boolean(reader, "every_server") {
        expect.every_server = every;
    }
    expect
}

/// `[sysctls]`, whose nested keys were made dotted ones before.
pub(crate) fn sysctls(reader: &mut Reader, top: &Section<'_>) -> Vec<(String, String)> {
    let Some(section) = top.section(reader, "sysctls") else {
        return Vec::new();
    };
    let mut sysctls = Vec::new();
    for entry in &section.table.entries {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        if !entry.name.chars().all(good) || !entry.name.contains('.') || entry.name.contains("..") {
            reader.report(Problem::at(
                entry.place,
                format!("`{}` is not a kernel setting", shown(&entry.name)),
                "expected a dotted name, such as \"net.core.somaxconn\"",
            ));
        }
        let value = match &entry.node.tree {
            Tree::Text(text) => text.clone(),
            Tree::Integer(number) => number.to_string(),
            _ => {
                reader.expected(
                    &entry.node,
                    &section.name_of(&entry.name),
                    "a whole number or a string",
                );
                continue;
            }
        };
        sysctls.push((entry.name.clone(), value));
    }
    sysctls
}

/// `[[published]]`
pub(crate) fn published(reader: &mut Reader, top: &Section<'_>) -> Vec<Published> {
    let Some((entry, path)) = top.entry("published") else {
        return Vec::new();
    };
    let Tree::Array(items) = &entry.node.tree else {
        reader.expected(
            &entry.node,
            &path,
            "a list of tables, such as [[published]]",
        );
        return Vec::new();
    };
    let mut published = Vec::new();
    for item in items {
        let Tree::Table(table) = &item.tree else {
            reader.expected(item, "published[]", "a table, such as { what = … }");
            continue;
        };
        let section = Section {
            path: "published[]".to_owned(),
            place: item.place,
            table,
        };
        section.only(reader, &["what", "value", "unit", "source"]);
        let figure = Published {
            what: section
                .required_text(reader, "what", "\"what was measured\"")
                .unwrap_or_default(),
            value: figure(reader, &section).unwrap_or_default(),
            unit: section
                .required_text(reader, "unit", "\"requests/s\"")
                .unwrap_or_default(),
            source: section
                .required_text(reader, "source", "\"who published it\"")
                .unwrap_or_default(),
        };
        published.push(figure);
    }
    published
}

fn figure(reader: &mut Reader, section: &Section<'_>) -> Option<f64> {
    let Some((entry, path)) = section.entry("value") else {
        reader.report(Problem::at(
            section.place,
            format!("`{}` is missing", section.name_of("value")),
            "`value` is expected here",
        ));
        return None;
    };
    match entry.node.tree {
        Tree::Integer(number) => Some(number as f64),
        Tree::Float(number) if number.is_finite() => Some(number),
        _ => {
            reader.expected(&entry.node, &path, "a number");
            None
        }
    }
}
