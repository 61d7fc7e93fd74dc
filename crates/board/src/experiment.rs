//! The page of an experiment.

use readings::text::{condition, counted};
use readings::{Condition, RunHeader};
use report::drawing::{self, boxed, escaped, list, prose, section};
use serde_json::{Value, json};
use verdict::words;

use crate::evidence::{self, anchor, has_blocks};
use crate::group::Group;
use crate::html::{Content, PAGE_BYTES_MAX, above, day, document, frame_bytes, link, page, table};
use crate::server::Names;
use crate::table::{Cell, Column, Row, Table, ranking};
use crate::{File, title};

/// The most bytes of the rows that a page shows.
const ROWS_BYTES_MAX: usize = 500_000;
/// The most places that are named for one reason.
const PLACES_MAX: usize = 12;
/// The most conditions that the index names.
const CONDITIONS_MAX: usize = 3;
/// Sections of a run's report that a page shows, the most important first.
const SECTIONS: [&str; 12] = [
    "tiers",
    "curves",
    "growth",
    "interactions",
    "bottlenecks",
    "figures",
    "settings",
    "topology",
    "noise",
    "warnings",
    "trials",
    "published",
];

pub(crate) struct ExperimentPage<'a> {
    pub group: &'a Group,
    pub table: Table,
    /// The header of the run that is shown, by load.
    header: RunHeader,
    /// The command that measures it again.
    repeat: String,
    /// The page of each row's subject.
    servers: Vec<String>,
    /// The blocks of all rows; empty where they have pages of their own.
    blocks: String,
    pages_of_blocks: Vec<String>,
    /// The page that holds the blocks of each row; empty for the experiment's own.
    blocks_at: Vec<String>,
}

impl<'a> ExperimentPage<'a> {
    pub fn of(group: &'a Group, names: &Names) -> Self {
        Self::within(group, names, PAGE_BYTES_MAX)
    }

    fn within(group: &'a Group, names: &Names, bytes_max: usize) -> Self {
        let shown = group.shown();
        let journal = shown.run.journal.by_load();
        let table = Table::of(&journal, &shown.analysis);
        let header = &journal.header;
        let what = match shown.run.experiment {
            Some(_) => format!("{}.toml", group.page),
            None => quoted(&header.experiment),
        };
        let repeat = format!("weigh run {what} --seed {}", header.seed);
        let blocks = evidence::all(&table, &shown.analysis, &header.baseline, &repeat);
        let rows = table.rows.iter();
        let mut page = Self {
            servers: rows
                .map(|row| names.page_of(&group.page, &row.subject).to_owned())
                .collect(),
            blocks_at: vec![String::new(); table.rows.len()],
            pages_of_blocks: Vec::new(),
            blocks: blocks.concat(),
            header: header.clone(),
            repeat,
            group,
            table,
        };
        if frame_bytes() + page.main().len() + page.blocks.len() > bytes_max {
            page.move_blocks(&blocks, bytes_max);
        }
        page
    }

    /// Gives the blocks pages of their own.
    fn move_blocks(&mut self, blocks: &[String], bytes_max: usize) {
        let mut parts: Vec<String> = vec![String::new()];
        for (text, at) in blocks.iter().zip(&mut self.blocks_at) {
            let part = parts.last().map_or(0, String::len);
            if part > 0 && part + text.len() + frame_bytes() > bytes_max {
                parts.push(String::new());
            }
            *at = format!("blocks-{}-{}.html", self.group.page, parts.len());
            if let Some(part) = parts.last_mut() {
                part.push_str(text);
            }
        }
        self.pages_of_blocks = parts;
        self.blocks.clear();
    }

    /// Where a figure has its blocks, from another page; nothing where it has none.
    pub fn blocks_of(&self, row: usize, column: usize) -> Option<String> {
        let of = &self.table.columns[column];
        let cell = self.table.rows[row].figures.get(&of.name)?;
        let page = match self.blocks_at[row].as_str() {
            "" => format!("{}.html", self.group.page),
            page => page.to_owned(),
        };
        has_blocks(cell, of).then(|| format!("{page}#{}", anchor(row, column)))
    }

    /// The page, its data, the experiment as it was run, and the pages of blocks.
    pub fn files(&self) -> Vec<File> {
        let group = self.group;
        let mut files = vec![document(&group.page, &self.json())];
        if let Some(text) = &group.shown().run.experiment {
            files.push(File {
                name: format!("{}.toml", group.page),
                text: text.clone(),
            });
        }
        let main = self.main();
        let blocks = section("blocks", "Blocks behind the figures", &self.blocks);
        let used = frame_bytes() + main.len() + blocks.len();
        files.push(self.page(&group.page, main + &self.sections(used) + &blocks));
        for (number, part) in self.pages_of_blocks.iter().enumerate() {
            let name = format!("blocks-{}-{}", group.page, number + 1);
            let back = link(&format!("{}.html", group.page), title(group));
            let main = format!(
                "<h1>Blocks behind the figures</h1>\n<p>{back}</p>\n<section id=\"blocks\">\n{part}</section>\n"
            );
            files.push(self.page(&name, main));
        }
        files
    }

    fn page(&self, name: &str, main: String) -> File {
        let title = title(self.group).to_owned();
        page(name, &Content { title, main })
    }

    /// All but the sections of the report and the blocks.
    fn main(&self) -> String {
        let group = self.group;
        let shown = group.shown();
        let (header, analysis) = (group.header(), &shown.analysis);
        let mut first = above(&group.page) + &format!("<h1>{}</h1>\n", escaped(&header.title));
        if let Some(question) = shown.run.facts.question.as_deref().map(str::trim) {
            first.push_str(&format!(
                "<p class=\"question\">{}</p>\n",
                escaped(question)
            ));
        }
        if let Some(text) = words::closing(analysis) {
            first.push_str(&format!("<p class=\"closing\">{}</p>\n", prose(&text)));
        }
        first.push_str(&drawing::caveats(analysis));
        let measured = drawing::measured_on(&self.header, analysis, &shown.run.facts);
        first.push_str(&format!(
            "<p class=\"sub\">{}</p>\n<p class=\"sub\">To measure it again: <code>{}</code>{}</p>\n",
            escaped(&measured),
            escaped(&self.repeat),
            match shown.run.experiment {
                Some(_) => format!(", with {}", link(&format!("{}.toml", group.page), "its experiment")),
                None => String::new(),
            }
        ));
        let result = format!("<section id=\"result\">\n{first}</section>\n");
        let picture = drawing::rankings(&self.header, analysis);
        let ranking = section("ranking", "Ranking", &picture);
        let levels = analysis.levels.iter();
        let levels = list(levels.map(|one| words::comparison(&one.comparison)));
        let levels = section("levels", "Levels of factors", &levels);
        let absences = section("absences", "Figures that are missing", &self.absences());
        let runs = section("runs", "Runs", &self.runs());
        let all = section("figures-of-all", "All figures", &self.board());
        result + &all + &ranking + &levels + &absences + &runs
    }

    /// The sections of the report that fit beside so many bytes.
    fn sections(&self, used: usize) -> String {
        let shown = self.group.shown();
        let facts = &shown.run.facts;
        let mut free = PAGE_BYTES_MAX.saturating_sub(used);
        let all = drawing::sections(&shown.run.journal, &shown.analysis, facts, &SECTIONS);
        let count = all.len();
        let fits = |text: &String| {
            let does = text.len() <= free;
            free -= if does { text.len() } else { 0 };
            does
        };
        let kept: Vec<String> = all.into_iter().filter(fits).collect();
        let mut out = kept.concat();
        if kept.len() < count {
            out.push_str(
                "<p class=\"sub\">Sections that would make this page longer than 1 MB are left out: \
                 <code>weigh report</code> shows them.</p>\n",
            );
        }
        out
    }

    /// The table with its filters.
    fn board(&self) -> String {
        let of = &self.table;
        let varied: Vec<usize> = (0..of.factors.len())
            .filter(|at| of.factors[*at].levels.len() > 1)
            .collect();
        let mut rows = String::new();
        let mut shown = 0;
        let mut before: Option<&Condition> = None;
        for (number, row) in of.rows.iter().enumerate() {
            let is_next = before.is_some_and(|before| *before != row.condition);
            let text = self.row(number, &varied, is_next, &self.blocks_at[number]);
            if rows.len() + text.len() > ROWS_BYTES_MAX {
                break;
            }
            before = Some(&row.condition);
            rows.push_str(&text);
            shown += 1;
        }
        if shown == 0 {
            return "<p>Nothing was measured.</p>\n".to_owned();
        }
        let mut head = "<th scope=\"col\">subject</th>".to_owned();
        for at in &varied {
            head.push_str(&format!(
                "<th scope=\"col\">{}</th>",
                escaped(&of.factors[*at].name)
            ));
        }
        if let Some(primary) = of.primary {
            head.push_str(&format!(
                "<th scope=\"col\" class=\"n\" title=\"the places that the evidence leaves open\">place by \
                 {}</th>",
                escaped(words::short(primary))
            ));
        }
        for column in &of.columns {
            head.push_str(&format!(
                "<th scope=\"col\" class=\"n\" title=\"{}\">{}</th>",
                escaped(&column.words),
                escaped(&column.head)
            ));
        }
        let table = format!(
            "<table class=\"sorts board\">\n<thead>\n<tr>{head}</tr>\n</thead>\n<tbody>\n{rows}</tbody>\n\
             </table>\n"
        );
        let mut out = self.filters(&varied) + &boxed(&table, "all figures", "scroll board-box");
        let header = self.group.header();
        out.push_str(&format!(
            "<p class=\"sub\">In brackets: the 95% interval, of the ratio to {} times its figure. Place 2-3: \
             second or third, since the evidence does not tell this subject apart from another. \
             Each figure leads to its blocks.</p>\n",
            escaped(&header.baseline)
        ));
        if shown < of.rows.len() {
            out.push_str(&format!(
                "<p class=\"sub\">{} are only in the {}.</p>\n",
                counted(of.rows.len() - shown, "more row"),
                link(&format!("{}.json", self.group.page), "data")
            ));
        }
        out
    }

    /// A choice for each factor, and a search for subjects; without a script there are none.
    fn filters(&self, varied: &[usize]) -> String {
        let choice = |at: &usize| {
            let factor = &self.table.factors[*at];
            let levels = factor.levels.iter().enumerate();
            let options: String = levels
                .map(|(number, level)| {
                    format!("<option value=\"{number}\">{}</option>", escaped(level))
                })
                .collect();
            format!(
                "<label>{}<select data-factor=\"{at}\"><option value=\"\">all</option>{options}</select>\
                 </label>\n",
                escaped(&factor.name)
            )
        };
        let choices: String = varied.iter().map(choice).collect();
        format!(
            "<form class=\"filters\" hidden>\n{choices}<label>subject<input type=\"search\" size=\"12\">\
             </label>\n<output aria-live=\"polite\"></output>\n</form>\n"
        )
    }

    fn row(&self, number: usize, varied: &[usize], is_next: bool, blocks_at: &str) -> String {
        let of = &self.table;
        let row = &of.rows[number];
        let level = |at: usize| row.condition.get(&of.factors[at].name);
        let levels: Vec<String> = (0..of.factors.len())
            .map(|at| {
                let known = of.factors[at].levels.iter();
                let mut known = known.map(Some);
                let place = known.position(|one| one == level(at));
                place.map_or("-".to_owned(), |place| place.to_string())
            })
            .collect();
        let class = if is_next { " class=\"next\"" } else { "" };
        let mark = match row.is_baseline {
            true => "<small>baseline</small>",
            false => "",
        };
        let mut out = format!(
            "<tr data-l=\"{}\"{class}><th scope=\"row\">{}{mark}</th>",
            levels.join(" "),
            link(&format!("{}.html", self.servers[number]), &row.subject)
        );
        for at in varied {
            let text = level(*at).map_or("", String::as_str);
            out.push_str(&format!("<td>{}</td>", escaped(text)));
        }
        if of.primary.is_some() {
            out.push_str(&match row.places {
                Some(places) => format!(
                    "<td class=\"n place\" data-v=\"{}.{:04}\">{}</td>",
                    places.0,
                    places.1,
                    words::place(places)
                ),
                None => "<td class=\"n place\"><a href=\"#absences\">\u{2013}</a></td>".to_owned(),
            });
        }
        for (at, column) in of.columns.iter().enumerate() {
            let cell = row.figures.get(&column.name);
            out.push_str(&self.cell(cell, column, &format!("{blocks_at}#{}", anchor(number, at))));
        }
        out + "</tr>\n"
    }

    fn cell(&self, cell: Option<&Cell>, column: &Column, blocks: &str) -> String {
        let Some(cell) = cell else {
            return "<td class=\"n\"></td>".to_owned();
        };
        let small = |text: &str| format!("<small>{}</small>", escaped(text));
        let Some(value) = cell.value else {
            let known = match cell.text.is_empty() {
                true => String::new(),
                false => small(&cell.text),
            };
            return format!("<td class=\"n\"><a href=\"#absences\">\u{2013}</a>{known}</td>");
        };
        let text = match has_blocks(cell, column) {
            true => link(blocks, &cell.text),
            false => escaped(&cell.text),
        };
        let is_primary = matches!(column.what, crate::table::What::Metric(metric) if Some(metric) == self.table.primary);
        let places = cell.places.filter(|_| !is_primary);
        let places = places.map(|at| small(&format!("place {}", words::place(at))));
        format!(
            "<td class=\"n\" data-v=\"{}\">{text}{}{}</td>",
            plain(value),
            cell.interval.as_deref().map(small).unwrap_or_default(),
            places.unwrap_or_default()
        )
    }

    fn absences(&self) -> String {
        let each = self.table.absences().into_iter().map(|(reason, places)| {
            let mut by_row: Vec<(&Row, Vec<&str>)> = Vec::new();
            for (row, column) in &places {
                match by_row.last_mut() {
                    Some((last, heads)) if std::ptr::eq(*last, *row) => heads.push(&column.head),
                    _ => by_row.push((row, vec![&column.head])),
                }
            }
            let named = by_row.iter().take(PLACES_MAX);
            let named =
                named.map(|(row, heads)| format!("{} ({})", evidence::name(row), heads.join(", ")));
            let mut text = named.collect::<Vec<_>>().join("; ");
            if by_row.len() > PLACES_MAX {
                text.push_str(&format!("; {} more", by_row.len() - PLACES_MAX));
            }
            format!("{reason}: {text}")
        });
        list(each)
    }

    /// The runs, the newest first, and what changed between them.
    fn runs(&self) -> String {
        let group = self.group;
        let rows = group.history.runs.iter().rev().map(|run| {
            let entry = &run.entry;
            let mark = if entry.folder == group.shown().id {
                " (shown)"
            } else {
                ""
            };
            let ended = if entry.complete {
                ""
            } else {
                " (not complete)"
            };
            vec![
                escaped(&format!("{}{mark}{ended}", entry.folder)),
                day(entry.started_unix_s),
                escaped(&entry.name_of_version().unwrap_or_default()),
                escaped(&entry.comparable.method),
                escaped(&entry.machine),
            ]
        });
        let head = ["run", "date", "version", "weigh", "machine"];
        let rows: Vec<Vec<String>> = rows.collect();
        let changed = group
            .history
            .series
            .iter()
            .filter(|one| !one.changes.is_empty());
        let changes: Vec<String> = changed
            .flat_map(|series| {
                let count = series.changes.len();
                history::series_sentences(series).into_iter().take(count)
            })
            .collect();
        boxed(&table(&head, &rows, &[]), "runs", "scroll") + &list(changes.into_iter())
    }

    /// Who may be first, by condition: `direct` or `nginx`.
    pub fn first(&self) -> Vec<String> {
        let Some(primary) = self.table.primary else {
            return Vec::new();
        };
        let analysis = &self.group.shown().analysis;
        let mut said: Vec<String> = Vec::new();
        let mut told: Vec<&Condition> = Vec::new();
        for row in &self.table.rows {
            let Some(ranking) = ranking(analysis, &row.condition, primary) else {
                continue;
            };
            if told.contains(&&ranking.condition) {
                continue;
            }
            told.push(&ranking.condition);
            let first = ranking.rows.iter().filter(|row| row.places.0 == 1);
            let names: Vec<&str> = first.map(|row| row.subject.as_str()).collect();
            let at = match condition(&ranking.condition) {
                text if text.is_empty() => String::new(),
                text => format!(" at {text}"),
            };
            let who = match names.len() {
                0..=6 => names.join(" or "),
                many => format!("one of {many} of {}", ranking.rows.len()),
            };
            said.push(format!("{}{at}: {who}", words::short(primary)));
        }
        if said.len() > CONDITIONS_MAX {
            let more = counted(said.len() - CONDITIONS_MAX, "more condition");
            said.truncate(CONDITIONS_MAX);
            said.push(more);
        }
        said
    }

    fn json(&self) -> Value {
        let group = self.group;
        let shown = group.shown();
        let header = group.header();
        let facts = &shown.run.facts;
        let machines = facts.machines.iter().map(|one| {
            json!({
                "name": one.name, "cpu": one.cpu, "cpus": one.cpus, "memory_bytes": one.memory_bytes,
                "kernel": one.kernel, "architecture": one.architecture,
            })
        });
        let rows = self
            .table
            .rows
            .iter()
            .zip(&self.servers)
            .map(|(row, page)| {
                let mut row = json!(row);
                row["page"] = json!(format!("{page}.html"));
                row
            });
        let runs = group.history.runs.iter().map(|run| {
            let entry = &run.entry;
            json!({
                "id": entry.folder,
                "started_unix_s": entry.started_unix_s,
                "is_shown": entry.folder == shown.id,
                "is_complete": entry.complete,
                "version": entry.name_of_version(),
                "weigh_version": entry.comparable.method,
                "machine": entry.machine,
            })
        });
        json!({
            "kind": "experiment",
            "page": format!("{}.html", group.page),
            "experiment": header.experiment,
            "title": header.title,
            "question": facts.question,
            "answer": words::closing(&shown.analysis),
            "stage": words::stage(&shown.analysis.stage),
            "started_unix_s": header.started_unix_s,
            "weigh_version": header.weigh_version,
            "seed": header.seed,
            "repeat": self.repeat,
            "baseline": header.baseline,
            "machines": machines.collect::<Value>(),
            "versions": facts.versions.iter().cloned().collect::<std::collections::BTreeMap<_, _>>(),
            "primary": self.table.primary,
            "factors": self.table.factors,
            "columns": self.table.columns,
            "rows": rows.collect::<Value>(),
            "warnings": words::warnings(&shown.analysis.warnings),
            "runs": runs.collect::<Value>(),
        })
    }
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// A number for sorting: enough digits, without an exponent.
fn plain(value: f64) -> String {
    let decimals = match value.abs() {
        large if large >= 1000.0 => 0,
        middle if middle >= 1.0 => 3,
        _ => 9,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Recipes, Run, group};
    use testing::Text as _;

    struct None;

    impl Recipes for None {
        fn text(&self, _: &str) -> Option<String> {
            Option::None
        }

        fn is_generic(&self, _: &str) -> bool {
            false
        }
    }

    #[test]
    fn blocks_that_have_no_room_have_pages_of_their_own() {
        let run = Run {
            journal: testing::journals::journal(),
            facts: report::RunFacts::default(),
            experiment: Option::None,
            hosts: Option::None,
        };
        let groups = group::groups(vec![run]);
        let names = Names::of(&groups, &None);
        let page = ExperimentPage::within(&groups[0], &names, frame_bytes() + 4_000);
        let files = page.files();
        let of_blocks = files.iter().filter(|file| file.name.starts_with("blocks-"));
        let of_blocks: Vec<&File> = of_blocks.collect();
        assert!(of_blocks.len() > 1, "{}", of_blocks.len());
        let count = |file: &&File| file.text.matches("<details class=\"proof\">").count();
        assert_eq!(
            of_blocks.iter().map(count).sum::<usize>(),
            page.table.rows.len()
        );
        let own = "experiment-proxy-cost.html";
        let own = files.iter().find(|file| file.name == own).unwrap();
        for link in own.text.split("href=\"blocks-").skip(1) {
            let (name, id) = link.split_once('"').unwrap().0.split_once('#').unwrap();
            let name = format!("blocks-{name}");
            let there = of_blocks.iter().find(|file| file.name == name).unwrap();
            assert!(there.text.contains(&format!("id=\"{id}\"")), "{name}#{id}");
        }
        own.text
            .has("href=\"blocks-experiment-proxy-cost-1.html#b0-0\"");
        assert!(!own.text.contains("<section id=\"blocks\">"));
    }
}
