//! What qualifies a verdict, as parts of a sentence.

use crate::{FEWEST_BLOCKS, FORECAST_CONFIDENCE, MOST_BLOCKS_ADVISED, Note};
use readings::text::{change, counted, fraction, grouped, number, percent};

use crate::metric::words::shown_change;
use crate::trial::flaw::words::{reason, reason_or_none};
use crate::trial::lag::words::{others_end, remedy};
use readings::text::joined;

/// What qualifies a verdict, as part of a sentence; nothing without notes.
pub fn notes(notes: &[Note]) -> Option<String> {
    let all: Vec<String> = notes.iter().map(note).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn note(note: &Note) -> String {
    match note {
        Note::SmallerThanMatters => "measurable, but smaller than the margin".to_owned(),
        Note::NotAmong { comparisons } => {
            format!("significant alone, but not after the correction for {comparisons} comparisons")
        }
        Note::MayMatter => "measurable, but perhaps more than the margin".to_owned(),
        Note::MoreBlocks { total, low, high } => {
            let high = match high {
                Some(high) => grouped(*high as u64),
                None => format!("more than {}", grouped(MOST_BLOCKS_ADVISED as u64)),
            };
            format!(
                "a new run of about {} would likely settle it ({} to {high} with a probability of \
                 {})",
                counted(*total, "block"),
                grouped(*low as u64),
                fraction(FORECAST_CONFIDENCE)
            )
        }
        Note::AsLargeAsMatters => format!(
            "even a new run of {} would probably not settle it: the difference is about as large \
             as the margin",
            counted(MOST_BLOCKS_ADVISED, "block")
        ),
        Note::TooNoisy => format!(
            "even a new run of {} would probably not settle it: the noise between blocks is too \
             large",
            counted(MOST_BLOCKS_ADVISED, "block")
        ),
        Note::FloorAsLarge { floor, others } => {
            let helps = others.map(|others| format!("; {}", others_end(&others)));
            format!(
                "the baseline differs from itself by as much ({}), so more blocks would not help{}",
                change(*floor, None),
                helps.unwrap_or_default()
            )
        }
        Note::BlocksAlone { floor, others } => {
            let since = match floor {
                Some(floor) => format!(
                    "the noise floor, {} against itself, is {}, so it may be as large",
                    floor.baseline,
                    shown_change(floor.ratio, floor.low.zip(floor.high))
                ),
                None => "the ratios of the blocks vary too much".to_owned(),
            };
            let helps = match others {
                Some(others) => others_end(others),
                None => "a quieter machine or longer windows would help".to_owned(),
            };
            format!("more blocks alone would hardly settle it: {since}; {helps}")
        }
        Note::CompanionDiffers {
            verdict,
            ratio,
            low,
            high,
        } => format!(
            "the t interval alone would say {}, and the Hodges-Lehmann estimate is {}: a few blocks \
             decide, so no verdict is given",
            verdict.word(),
            change(*ratio, Some((*low, *high)))
        ),
        Note::Skewed { verdict } => format!(
            "the t interval alone would say {}, but the blocks are too skewed for it, so no verdict \
             is given",
            verdict.word()
        ),
        Note::Unusable {
            blocks,
            tried,
            subject,
            reason,
        } => format!(
            "{blocks} of {} cannot be used; {subject}: {}",
            counted(*tried, "block"),
            reason_or_none(reason.as_ref())
        ),
        Note::NothingMeasured => "no block was measured".to_owned(),
        Note::TooFewBlocks {
            usable,
            reason: why,
        } => {
            let usable = match usable {
                0 => "no block".to_owned(),
                usable => format!("only {}", counted(*usable, "block")),
            };
            let why = why.as_ref().map(|why| format!("; {}", reason(why)));
            format!(
                "{usable} can be used, and a decision needs at least {FEWEST_BLOCKS}{}",
                why.unwrap_or_default()
            )
        }
        Note::ClientLimits(None) => {
            "the client was the bottleneck for both, so the servers cannot be compared; give it \
             more CPUs"
                .to_owned()
        }
        Note::ClientLimits(Some(subject)) => {
            format!(
                "the client was the bottleneck for {subject}, whose throughput may be higher than \
                 measured"
            )
        }
        Note::FailedStarts(sides) => joined(sides, |(subject, starts)| {
            format!(
                "{} of {} of {subject} failed ({})",
                starts.failed,
                counted(starts.all, "trial"),
                reason_or_none(starts.reason.as_ref())
            )
        }),
        Note::ClientLag {
            share,
            service_ratio,
            remedy: helps,
        } => {
            let service = match service_ratio {
                Some(ratio) => format!(
                    "the service times, without it, differ by {}",
                    percent((ratio - 1.0) * 100.0, 1, true)
                ),
                None => "service times, which are without it, were not measured".to_owned(),
            };
            format!(
                "up to {} of this latency is the client's own lag, and {service}; {}",
                percent(share * 100.0, 0, false),
                remedy(helps)
            )
        }
        Note::WithinFloor(floor) => format!(
            "not more than {} differs from itself here ({})",
            floor.baseline,
            change(floor.ratio, floor.low.zip(floor.high))
        ),
        Note::SliceBias(factor) => format!(
            "the length of the slices biases this ratio by {}; lengthen design.slice",
            percent((factor - 1.0) * 100.0, 1, true)
        ),
        Note::Clock {
            subject,
            baseline,
            closed_loop,
        } => {
            let against = match subject == baseline {
                true => String::new(),
                false => format!(" against that of {baseline}"),
            };
            let queueing = match closed_loop {
                true => ", in a closed loop, where latency is mostly queueing",
                false => "",
            };
            format!("by the clock of {subject}{against}{queueing}")
        }
        Note::Failures(sides) => joined(sides, |side| match (side.events, side.failed) {
            (Some(events), 0) => format!(
                "{}: none in {}, so at most {} each",
                side.subject,
                counted(events, "event"),
                number(side.at_most, 2, false)
            ),
            (Some(events), failed) => format!(
                "{}: {} in {}",
                side.subject,
                grouped(failed),
                counted(events, "event")
            ),
            (None, 0) => format!(
                "{}: 0 of {}, so at most {}%",
                side.subject,
                grouped(side.requests),
                number(side.at_most * 100.0, 4, false)
            ),
            (None, failed) => {
                let (failed, all) = (grouped(failed), grouped(side.requests));
                format!("{}: {failed} of {all}", side.subject)
            }
        }),
        Note::LeavesOut(sides) => {
            let sides = joined(sides, |side| {
                let (failed, all) = (grouped(side.failed), grouped(side.requests));
                format!("{}: {failed} of {all}", side.subject)
            });
            format!("without the requests that failed ({sides})")
        }
        Note::FullRate(sides) => joined(sides, |side| {
            let always = format!("full all the time in {}", counted(side.always, "block"));
            let never = counted(side.never, "block");
            let never = format!("not back at the window's end in {never}");
            match (side.always, side.never) {
                (0, _) => format!("{} was {never}", side.subject),
                (_, 0) => format!("{} was {always}", side.subject),
                _ => format!("{} was {always} and {never}", side.subject),
            }
        }),
    }
}
