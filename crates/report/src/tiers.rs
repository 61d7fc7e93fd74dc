//! Tiers as a table.

use verdict::Tiers;
use verdict::text::condition;

use crate::columns::Columns;

pub(crate) const TITLE: &str = "Tiers";
pub(crate) const LEGEND: &str = "no two subjects of a tier are told apart, all pairs of the run \
                                 considered; a subject in two tiers is told apart from nobody in \
                                 either; the order inside of a tier means nothing";

/// A row for each subject of each condition and metric, the best tier first.
pub(crate) fn table(all: &[Tiers]) -> Columns {
    let mut rows = Vec::new();
    for one in all {
        for member in &one.subjects {
            let numbers: Vec<String> = member.tiers.iter().map(usize::to_string).collect();
            rows.push(vec![
                condition(&one.condition),
                one.metric.words().to_owned(),
                numbers.join(", "),
                member.subject.clone(),
            ]);
        }
    }
    let columns = Columns {
        head: ["condition", "metric", "tier", "subject"]
            .map(str::to_owned)
            .to_vec(),
        numeric: vec![false; 4],
        rows,
    };
    match all.iter().all(|one| one.condition.is_empty()) {
        true => columns.without("condition"),
        false => columns,
    }
}
