//! How long a journal takes to read, to analyse and to report, by its number of trials:
//!
//! ```sh
//! cargo run --release -p weigh-report --example long_journals -- 30 300 3000
//! ```
//!
//! With `--print N` it prints a journal of N trials instead.

use std::io::Write as _;
use std::time::Instant;

use readings::Journal;
use verdict::analyse;

use testing::made_up::MadeUp;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |text: &String| text.parse::<u32>().unwrap_or(30);
    match arguments.as_slice() {
        [option, trials] if option == "--print" => print(&MadeUp::of(number(trials)).text()),
        counts => {
            print(b" trials     read  analyse     json     html      csv  terminal  (ms)  html bytes\n");
            counts.iter().map(number).for_each(time);
        }
    }
}

/// A closed pipe is ignored.
fn print(text: &[u8]) {
    drop(std::io::stdout().write_all(text));
}

fn time(trials: u32) {
    let text = MadeUp::of(trials).text();
    let (journal, read_ms) = timed(|| Journal::parse(&text));
    let Ok(journal) = journal else { return };
    let (analysis, analyse_ms) = timed(|| analyse(&journal));
    let header = &journal.header;
    let (_, json_ms) = timed(|| report::json(header, &analysis).to_string());
    let (page, html_ms) = timed(|| report::html(&journal, &analysis, &report::RunFacts::default()));
    let (_, csv_ms) = timed(|| report::csv(&journal, &analysis));
    let (_, terminal_ms) = timed(|| report::verbose(header, &analysis, 100, false, None));
    print(
        format!(
            "{trials:7} {read_ms:8.1} {analyse_ms:8.1} {json_ms:8.1} {html_ms:8.1} {csv_ms:8.1} \
             {terminal_ms:9.1} {:10}\n",
            page.len()
        )
        .as_bytes(),
    );
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let done = work();
    (done, start.elapsed().as_secs_f64() * 1e3)
}
