//! Two runs beside each other, as text for the terminal, as JSON and as a page.

use readings::text::{change, condition, rate, time};
use report::drawing::{escaped, shell};
use report::one_line;
use serde_json::{Value, json};

use super::{Pair, PairRow};
use crate::entry::{Figure, RunEntry, metric};
use crate::facts::Difference;
use crate::shown::date::date;

fn run_line(name: &str, run: &RunEntry) -> String {
    let version = run.name_of_version();
    let version = version.map_or(String::new(), |v| format!(", {v}"));
    format!(
        "{name}  {} ({}{version}), {}",
        run.folder,
        date(run.started_unix_s),
        run.machine
    )
}

fn parts(pair: &Pair) -> [(&'static str, &[Difference]); 4] {
    let differs = &pair.differs;
    [
        ("experiment", &differs.experiment),
        ("settings", &differs.settings),
        ("versions", &differs.versions),
        ("machine", &differs.machine),
    ]
}

fn title(row: &PairRow, baseline: &str) -> String {
    let words = metric(&row.metric).map_or(row.metric.as_str(), |m| m.words());
    let at = match condition(&row.condition) {
        text if text.is_empty() => text,
        text => format!(", at {text}"),
    };
    format!("{words}, {} against {baseline}{at}", row.subject)
}

fn ratio(figure: &Option<Figure>) -> String {
    let Some(figure) = figure else {
        return "-".to_owned();
    };
    let (low, high) = figure.interval();
    let text = change(figure.log_ratio.exp(), Some((low.exp(), high.exp())));
    match figure.client_limited_baseline {
        true => format!("{text} (to what the client could carry)"),
        false => text,
    }
}

fn relation(row: &PairRow) -> String {
    let Some(r) = row.second_over_first else {
        let why = row.unrelated.as_deref().unwrap_or("not compared");
        return format!("no difference is given: {why}");
    };
    let verdict = if r.differs() {
        "they differ"
    } else {
        "no difference shown"
    };
    format!("{}; {verdict}", change(r.ratio, Some((r.low, r.high))))
}

/// The subject's absolute figure in each run, if these may be compared.
fn absolute(pair: &Pair, row: &PairRow) -> String {
    if !pair.same_machine {
        return "not comparable: the machines differ".to_owned();
    }
    let value = |figure: &Option<Figure>| {
        let value = figure.as_ref().and_then(|f| f.subject_value);
        value.map_or("-".to_owned(), |value| in_unit(&row.metric, value))
    };
    format!("{} and {}", value(&row.figures[0]), value(&row.figures[1]))
}

fn in_unit(metric: &str, value: f64) -> String {
    if metric.ends_with("_per_s") {
        format!("{}/s", rate(value))
    } else if metric.contains("bytes") {
        report::bytes(value)
    } else {
        time(value)
    }
}

/// Two runs as text.
pub fn pair_terminal(pair: &Pair) -> String {
    let [a, b] = &pair.runs;
    let line = |name, run| one_line(&run_line(name, run)).into_owned();
    let mut out = format!("{}\n{}\n", line("A", a), line("B", b));
    out.push_str("\nWhat differs, A -> B\n");
    let mut any = false;
    for (name, all) in parts(pair) {
        for difference in all {
            any = true;
            out.push_str(&format!("  {name}: {}\n", one_line(&difference.words())));
        }
    }
    if !any {
        out.push_str("  nothing that is recorded\n");
    }
    if let Some(why) = &pair.refused {
        out.push_str(&format!(
            "\nA and B cannot be compared: {}.\n",
            one_line(why)
        ));
        return out;
    }
    for row in &pair.rows {
        out.push_str(&format!("\n{}\n", one_line(&title(row, &a.baseline))));
        out.push_str(&format!("  A         {}\n", ratio(&row.figures[0])));
        out.push_str(&format!("  B         {}\n", ratio(&row.figures[1])));
        out.push_str(&format!("  B over A  {}\n", one_line(&relation(row))));
        out.push_str(&format!(
            "  {}: {}\n",
            one_line(&row.subject),
            absolute(pair, row)
        ));
    }
    out
}

/// Two runs as one document.
pub fn pair_json(pair: &Pair) -> Value {
    let run = |run: &RunEntry| {
        json!({
            "folder": run.folder,
            "experiment": run.experiment,
            "started_unix_s": run.started_unix_s,
            "label": run.label,
            "revision": run.revision,
            "machine": run.machine,
            "baseline": run.baseline,
        })
    };
    let figure = |figure: &Option<Figure>| {
        figure.as_ref().map(|f| {
            let (low, high) = f.interval();
            let value = |value: Option<f64>| value.filter(|_| pair.same_machine);
            json!({
                "ratio": f.log_ratio.exp(),
                "low": low.exp(),
                "high": high.exp(),
                "log_standard_error": f.standard_error_of_blocks,
                "blocks": f.blocks,
                "client_limited_baseline": f.client_limited_baseline,
                "subject_value": value(f.subject_value),
                "baseline_value": value(f.baseline_value),
            })
        })
    };
    let rows = pair.rows.iter().map(|row| {
        json!({
            "condition": row.condition,
            "metric": row.metric,
            "subject": row.subject,
            "first": figure(&row.figures[0]),
            "second": figure(&row.figures[1]),
            "second_over_first": row.second_over_first,
            "differs": row.second_over_first.map(|r| r.differs()),
            "unrelated": row.unrelated,
        })
    });
    json!({
        "runs": pair.runs.iter().map(run).collect::<Vec<Value>>(),
        "differs": pair.differs,
        "refused": pair.refused,
        "absolute_comparable": pair.same_machine,
        "rows": rows.collect::<Vec<Value>>(),
    })
}

/// Two runs as one HTML page that fetches nothing.
pub fn pair_html(pair: &Pair) -> String {
    let [a, b] = &pair.runs;
    let mut main = format!(
        "<h1>Two runs</h1>\n<p class=\"sub\">{}</p>\n<p class=\"sub\">{}</p>\n",
        escaped(&run_line("A", a)),
        escaped(&run_line("B", b))
    );
    if let Some(why) = &pair.refused {
        main.push_str(&format!(
            "<ul class=\"verdicts\"><li class=\"invalid\"><b>not comparable</b>{}</li></ul>\n",
            escaped(why)
        ));
    } else {
        let rows = pair.rows.iter().map(|row| {
            let tone = match row.second_over_first {
                Some(r) if r.differs() => "inconclusive",
                Some(_) => "same",
                None => "invalid",
            };
            format!(
                "<tr class=\"{tone}\"><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                escaped(&title(row, &a.baseline)),
                escaped(&ratio(&row.figures[0])),
                escaped(&ratio(&row.figures[1])),
                escaped(&relation(row)),
                escaped(&absolute(pair, row))
            )
        });
        main.push_str(&format!(
            "<div class=\"scroll\"><table>\n<tr><th>figure</th><th>A</th><th>B</th><th>B over \
             A</th><th>the subject itself, A and B</th></tr>\n{}</table></div>\n",
            rows.collect::<String>()
        ));
    }
    let mut rows = String::new();
    for (name, all) in parts(pair) {
        for d in all {
            let shown = |value: &Option<String>| escaped(value.as_deref().unwrap_or("-"));
            rows.push_str(&format!(
                "<tr><td>{name}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                escaped(&d.name),
                shown(&d.before),
                shown(&d.after)
            ));
        }
    }
    let differs = match rows.is_empty() {
        true => "<p>Nothing that is recorded.</p>\n".to_owned(),
        false => format!(
            "<div class=\"scroll\"><table>\n<tr><th></th><th></th><th>A</th><th>B</th></tr>\n{rows}\
             </table></div>\n"
        ),
    };
    main.push_str(&format!(
        "<section>\n<h2>What differs</h2>\n{differs}</section>\n"
    ));
    main.push_str(
        "<footer>A ratio is subject over the baseline of the same run; brackets are 95% intervals. \
         They differ where the p value, multiplied by the number of rows, is below 0.05.</footer>\n",
    );
    shell("Two runs", &main)
}
