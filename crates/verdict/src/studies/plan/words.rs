//! What a pilot says of a longer run, in sentences.

use crate::Metric;
use crate::plan::{
    Decides, Dominant, MOST_BLOCKS, Needed, NoiseFrom, PlanAdvice, PlanRow, PlanSpread, Remedy,
    Target,
};
use readings::text::{counted, fraction, number, percent};

use readings::at_condition as at;

/// A time in whole units.
pub fn rough(s: f64) -> String {
    match s {
        s if s < 90.0 => format!("{s:.0} s"),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// What a planned run decides, as `5 blocks of 2 s decide differences of throughput from about 8%`.
pub fn decides(decides: &Decides) -> String {
    let run = format!(
        "{} of {} s",
        counted(decides.blocks as usize, "block"),
        fraction_free(decides.window_s)
    );
    let verb = if decides.blocks == 1 {
        "decides"
    } else {
        "decide"
    };
    let what = decides.metric.words();
    let by = by(decides);
    match decides.difference {
        Some(one) if one < 1.0 => format!(
            "{run} {verb} differences of {what} from about {}{by}",
            percent(two_digits(one * 100.0), usize::from(one < 0.1), false)
        ),
        Some(one) => format!(
            "{run} {verb} differences of {what} from about {} times{by}",
            number(one + 1.0, 1, false)
        ),
        None => format!("{run} {verb} no difference of {what}{by}"),
    }
}

/// What a forecast rests on.
fn by(decides: &Decides) -> String {
    let sd = percent(decides.sd * 100.0, usize::from(decides.sd < 0.1), false);
    match decides.from {
        NoiseFrom::Assumed => {
            format!(", if the ratio varies by {sd} from block to block; two blocks will tell")
        }
        NoiseFrom::Pilot { blocks } => {
            format!(", by the first {}", counted(blocks as usize, "block"))
        }
        NoiseFrom::FormerRuns { runs, are_same } => format!(
            ", by {} {}here",
            counted(runs, "former run"),
            if are_same {
                "of it "
            } else {
                "of other experiments "
            }
        ),
    }
}

/// A number of at most two decimals, without needless ones.
fn fraction_free(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// About a figure, in two digits.
fn two_digits(value: f64) -> f64 {
    let unit = 10f64.powf(value.max(1e-9).log10().floor() - 1.0);
    (value / unit).round() * unit
}

/// What was measured, and what the figures mean.
pub fn pilot(advice: &PlanAdvice) -> String {
    let block = match (advice.block_s, advice.block_measured) {
        (Some(s), true) => format!("; a block took {}", rough(s)),
        (Some(s), false) => format!("; a block takes about {}", rough(s)),
        (None, _) => String::new(),
    };
    format!(
        "From a pilot of {}{block}. So many blocks settle a difference nine times in ten: they tell \
         a true difference of that size from none, and two equals from it.",
        counted(advice.pilot_blocks, "block")
    )
}

/// Which comparison it is.
pub fn which(row: &PlanRow) -> String {
    format!(
        "{} of {}{}",
        row.metric.words(),
        row.subject,
        at(&row.condition)
    )
}

/// The blocks that settle a difference.
pub fn needed(target: &Target) -> String {
    let Some(needed) = target.needed else {
        return format!("more than {MOST_BLOCKS} blocks");
    };
    let Needed {
        blocks,
        low,
        high,
        time_s,
    } = needed;
    let time = time_s.map_or(String::new(), |s| format!(", {}", rough(s)));
    let high = high.map_or(format!("over {MOST_BLOCKS}"), |high| high.to_string());
    format!(
        "{}{time} (range {low} to {high})",
        counted(blocks as usize, "block")
    )
}

/// Where the variance of a comparison comes from.
pub fn spread(spread: &PlanSpread) -> String {
    let sd = |value: f64| percent(value * 100.0, 2, false);
    let c = spread.components;
    let starts = match c.slices {
        Some(slices) => format!(
            "{} from slices within a block, {} from starts",
            sd(slices.sqrt()),
            sd(c.starts.sqrt())
        ),
        None => format!(
            "{} from starts and what is within a block",
            sd(c.starts.sqrt())
        ),
    };
    let drift = match c.drift_seen {
        true => format!("{} from drift over blocks", sd(c.drift.sqrt())),
        false => "no drift seen".to_owned(),
    };
    let range = format!(
        "{} to {}, four times in five",
        sd(spread.sd_low),
        sd(spread.sd_high)
    );
    let own = sd(c.total.sqrt());
    match spread.from_noise_floor {
        false => format!(
            "a block's ratio has a standard deviation of {} ({range}): {starts}, {drift}",
            sd(spread.sd)
        ),
        true => format!(
            "planned with {} ({range}), the standard deviation of the baseline against itself, since \
             that of a block's ratio is smaller, {own}; of that: {starts}, {drift}",
            sd(spread.sd)
        ),
    }
}

/// What one comparison needs, in a line.
pub fn row(row: &PlanRow) -> String {
    let Some(found) = &row.spread else {
        return format!(
            "{}: {} of the pilot can be used, too few to plan from; a longer pilot would tell",
            which(row),
            counted(row.blocks, "block")
        );
    };
    let targets = row.targets.iter().map(|target| {
        let mark = if target.is_matters { " (matters)" } else { "" };
        format!("{}{mark}: {}", fraction(target.difference), needed(target))
    });
    let targets: Vec<String> = targets.collect();
    format!("{}: {}. {}", which(row), targets.join("; "), spread(found))
}

fn windows(metric: Metric) -> &'static str {
    match metric.is_of_open_loop() {
        true => "open-loop windows",
        false => "windows",
    }
}

/// What would help.
pub fn remedy(remedy: &Remedy) -> String {
    let share = |share: &f64| percent(share * 100.0, 0, false);
    match remedy {
        Remedy::QuieterMachine { others_cpus } => format!(
            "a quieter machine: other programs took at least {} CPUs during the measurement; end \
             them, or give them, the servers and the load CPUs of their own",
            number(*others_cpus, 1, false)
        ),
        Remedy::Steal { share: stolen } => format!(
            "another machine: the hypervisor took {} of the CPU time",
            percent(stolen * 100.0, 1, false)
        ),
        Remedy::ClientCpus { trials } => format!(
            "more CPUs for the client: it was the limit in {}, so their throughput says little of \
             the servers",
            counted(*trials, "trial")
        ),
        Remedy::Drift {
            metric,
            subject,
            share: part,
        } => format!(
            "a steadier machine: {} of the variance of {subject}'s {} is drift over blocks, which \
             more blocks do not remove as fast as said above",
            share(part),
            metric.words()
        ),
        Remedy::Dominant {
            from: Dominant::Slices,
            metric,
            subject,
            share: part,
        } => format!(
            "longer {}: {} of the variance of {subject}'s {} lies within blocks, between slices",
            windows(*metric),
            share(part),
            metric.words()
        ),
        Remedy::Dominant {
            from: Dominant::Starts,
            metric,
            subject,
            share: part,
        } => format!(
            "more blocks: {} of the variance of {subject}'s {} lies between blocks, as from restarting \
             the servers; longer windows do not reduce it",
            share(part),
            metric.words()
        ),
        Remedy::Windows {
            metric,
            subject,
            window_s,
            better_window_s,
            blocks,
            time_s,
            present_time_s,
        } => format!(
            "{} of {} s instead of {} s: {} settle a difference of the margin for {subject}'s {} in {} instead of {}",
            windows(*metric),
            number(*better_window_s, 1, false),
            number(*window_s, 1, false),
            counted(*blocks as usize, "block"),
            metric.words(),
            rough(*time_s),
            rough(*present_time_s)
        ),
        Remedy::ShorterSlices {
            metric,
            subject,
            slice_s,
            shorter_slice_s,
            drift_share,
            blocks,
            time_s,
            present_time_s,
        } => format!(
            "shorter slices, design.slice = \"{:.0}ms\" instead of {:.0}ms: by an estimate, {} of the \
             variance within blocks of {subject}'s {} is drift of the machine from one subject's slice \
             to the other's, and {} would then settle it in {} instead of {}; a pilot with \
             such slices shows whether that holds",
            shorter_slice_s * 1e3,
            slice_s * 1e3,
            share(drift_share),
            metric.words(),
            counted(*blocks as usize, "block"),
            rough(*time_s),
            rough(*present_time_s)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_decides_is_one_line_with_what_it_rests_on() {
        let said = |difference, from| {
            decides(&Decides {
                blocks: 3,
                window_s: 0.3,
                metric: Metric::RequestsPerS,
                difference,
                sd: 0.05,
                from,
            })
        };
        assert_eq!(
            said(Some(0.4123), NoiseFrom::Assumed),
            "3 blocks of 0.3 s decide differences of throughput from about 41%, if the ratio varies by \
             5.0% from block to block; two blocks will tell"
        );
        assert_eq!(
            said(Some(0.0468), NoiseFrom::Pilot { blocks: 2 }),
            "3 blocks of 0.3 s decide differences of throughput from about 4.7%, by the first 2 blocks"
        );
        let former = |are_same| NoiseFrom::FormerRuns { runs: 1, are_same };
        assert_eq!(
            said(Some(1.5), former(true)),
            "3 blocks of 0.3 s decide differences of throughput from about 2.5 times, by 1 former run of \
             it here"
        );
        assert_eq!(
            said(None, former(false)),
            "3 blocks of 0.3 s decide no difference of throughput, by 1 former run of other experiments \
             here"
        );
    }

    #[test]
    fn a_remedy_names_the_metric_and_its_windows() {
        let dominant = |from, metric| {
            remedy(&Remedy::Dominant {
                from,
                metric,
                subject: "balance".to_owned(),
                share: 0.65,
            })
        };
        assert_eq!(
            dominant(Dominant::Slices, Metric::LatencyUsP50),
            "longer open-loop windows: 65% of the variance of balance's median latency lies within \
             blocks, between slices"
        );
        assert_eq!(
            dominant(Dominant::Starts, Metric::RequestsPerS),
            "more blocks: 65% of the variance of balance's throughput lies between blocks, as from \
             restarting the servers; longer windows do not reduce it"
        );
        let windows = Remedy::Windows {
            metric: Metric::LatencyUsP99,
            subject: "balance".to_owned(),
            window_s: 10.0,
            better_window_s: 20.0,
            blocks: 12,
            time_s: 600.0,
            present_time_s: 1_200.0,
        };
        assert_eq!(
            remedy(&windows),
            "open-loop windows of 20.0 s instead of 10.0 s: 12 blocks settle a difference of the margin \
             for balance's 99th percentile of latency in 10 min instead of 20 min"
        );
        let slices = Remedy::ShorterSlices {
            metric: Metric::RequestsPerS,
            subject: "balance".to_owned(),
            slice_s: 0.3,
            shorter_slice_s: 0.1,
            drift_share: 0.8,
            blocks: 12,
            time_s: 600.0,
            present_time_s: 1_200.0,
        };
        let words = remedy(&slices);
        let value =
            "design.slice = \"100ms\" instead of 300ms: by an estimate, 80% of the variance";
        assert!(words.contains(value), "{words}");
    }
}
