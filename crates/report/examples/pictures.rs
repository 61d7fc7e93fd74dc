//! Pictures and pages of made-up rankings, to look at:
//!
//! ```sh
//! cargo run -p weigh-report --features full --example pictures -- FOLDER
//! ```

use std::io;
use std::path::Path;

use readings::Journal;
use report::RunFacts;
use verdict::{Analysis, Bound, Metric, Ranking};

#[path = "../src/html/picture/ranking/made.rs"]
mod made;

use made::{grid, name, ranking};

fn main() -> io::Result<()> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    for subjects in [2, 6, 30] {
        write(folder, &format!("{subjects}-1"), metrics(subjects))?;
        for levels in [2, 4, 12] {
            let each = (0..levels).map(|level| throughput(&(8 << level).to_string(), subjects));
            write(folder, &format!("{subjects}-{levels}"), each.collect())?;
        }
    }
    let latency = |protocol| {
        ranking(
            &[("protocol", protocol)],
            Metric::LatencyUsP50,
            8,
            (150.0, 0.5),
        )
    };
    let columns = ["16", "64", "256", "1024"];
    write(folder, "grid", grid(&["1KB", "64KB"], &columns[..3], 0.7))?;
    write(
        folder,
        "own-scales",
        grid(&["1KB", "64KB", "1MB"], &columns, 0.1),
    )?;
    write(folder, "logarithmic", vec![latency("h1")])?;
    write(
        folder,
        "logarithmic-panels",
        vec![latency("h1"), latency("h2")],
    )?;
    write(folder, "limited", vec![limited()])
}

fn throughput(connections: &str, subjects: usize) -> Ranking {
    let step = 0.3_f64.powf(1.0 / subjects as f64);
    let condition = [("connections", connections)];
    ranking(&condition, Metric::RequestsPerS, subjects, (20_000.0, step))
}

fn metrics(subjects: usize) -> Vec<Ranking> {
    let of = |metric, first| {
        ranking(
            &[("connections", "64")],
            metric,
            subjects,
            (first, 0.3_f64.powf(1.0 / subjects as f64)),
        )
    };
    vec![
        throughput("64", subjects),
        of(Metric::LatencyUsP50, 150.0),
        of(Metric::LatencyUsP99, 1_240.0),
        of(Metric::ServerCpuUsPerRequestAtRate, 21.0),
    ]
}

/// The client limits two subjects and the baseline; one interval is too wide, one name too long.
fn limited() -> Ranking {
    let mut one = throughput("64", 8);
    one.rows[0].bound = Some(Bound::AtLeast);
    (one.rows[1].bound, one.rows[1].high) = (Some(Bound::AtLeast), None);
    (one.rows[3].bound, one.rows[3].low) = (Some(Bound::AtMost), None);
    "a-server-with-a-long-name-2.14.0-rc1".clone_into(&mut one.rows[4].subject);
    one.rows[7].high = Some(100_000.0);
    one
}

fn write(folder: &Path, file: &str, rankings: Vec<Ranking>) -> io::Result<()> {
    let mut journal: Journal = testing::journals::journal();
    let mut analysis: Analysis = verdict::analyse(&journal);
    let subjects = rankings.iter().map(|one| one.rows.len()).max().unwrap_or(0);
    analysis.rankings = rankings;
    journal.header.subjects = (0..subjects).map(name).collect();
    journal.header.baseline = name(0);
    "Proxies before one origin: what each of them carries".clone_into(&mut journal.header.title);
    let page = report::html(&journal, &analysis, &RunFacts::default());
    std::fs::write(folder.join(format!("{file}.html")), page)?;
    if let Some(svg) = report::ranking_svg(&journal.header, &analysis) {
        std::fs::write(folder.join(format!("{file}.svg")), svg)?;
    }
    #[cfg(feature = "full")]
    if let Some(png) = report::ranking_png(&journal.header, &analysis) {
        std::fs::write(folder.join(format!("{file}.png")), png)?;
    }
    Ok(())
}
