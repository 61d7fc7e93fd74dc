//! Runs a load with its progress on standard error.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use load::{Job, Progress, Row};
use readings::hlog;

use crate::cli::{Format, LoadArgs};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::live::Live;

/// Makes a load, shows its progress on standard error, and writes rows to the log. `make` reports the
/// progress of the job.
pub(super) fn with_progress<T>(
    job: &Job,
    args: &LoadArgs,
    called: &str,
    signals: &Signals,
    make: impl FnOnce(&mut dyn FnMut(Progress)) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut log = args.output.hlog.clone().map(Log::create).transpose()?;
    let mut view = View::open(job, args, called, signals);
    let made = make(&mut |progress| {
        if let (Some(log), Progress::Row(row)) = (&mut log, &progress) {
            log.write(row);
        }
        view.take(&progress);
    });
    drop(view);
    if let Some(log) = log {
        log.finish()?;
    }
    made
}

/// HdrHistogram's log, a line per row, written as the rows come, so that they survive a crash.
struct Log {
    path: PathBuf,
    file: File,
    failure: Option<std::io::Error>,
}

impl Log {
    fn create(path: PathBuf) -> Result<Self, Failure> {
        let wrong = |e| Failure::words(format!("--hlog {}: {e}", path.display()));
        let start = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0.0, |since| since.as_secs_f64());
        let mut file = File::create(&path).map_err(wrong)?;
        file.write_all(hlog::header(start).as_bytes())
            .map_err(wrong)?;
        Ok(Self {
            path,
            file,
            failure: None,
        })
    }

    fn write(&mut self, row: &Row) {
        let line = hlog::line(row.row.start_s, row.row.duration_s, &row.response);
        if self.failure.is_none() {
            self.failure = self.file.write_all(line.as_bytes()).err();
        }
    }

    fn finish(self) -> Result<(), Failure> {
        match self.failure {
            None => Ok(()),
            // The load itself was measured; only the file is short.
            Some(e) => {
                eprintln!(
                    "weigh: --hlog {}: {e}; the log is cut short",
                    self.path.display()
                );
                Ok(())
            }
        }
    }
}

/// How a running load is shown.
enum View {
    Quiet,
    /// A line per row on standard error.
    Plain,
    /// Drawn on the terminal.
    Live(Box<Live>),
}

impl View {
    fn open(job: &Job, args: &LoadArgs, called: &str, signals: &Signals) -> Self {
        if args.output.quiet {
            return View::Quiet;
        }
        let live = match args.output.format {
            Format::Text if !args.output.plain => {
                Live::open(job, args.client.hosts.is_none(), called, signals)
            }
            _ => None,
        };
        live.map_or(View::Plain, |live| View::Live(Box::new(live)))
    }

    fn take(&mut self, progress: &Progress) {
        match (&mut *self, progress) {
            (View::Plain, Progress::Row(row)) => eprint!("{}", report::load_row(&row.row)),
            (View::Plain | View::Quiet, _) => {}
            (View::Live(live), progress) => {
                if !live.take(progress) {
                    // After a stop the result comes next; otherwise the terminal was lost.
                    *self = if live.is_stopped() {
                        View::Quiet
                    } else {
                        View::Plain
                    };
                }
            }
        }
    }
}
