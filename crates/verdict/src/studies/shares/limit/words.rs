//! Sentences on rate limits.

use readings::text::{change, condition, number, percent, rate};

use super::{LimitFinding, LimitWindow, Limiting};

/// `` `nginx` keeps its limit of 500/s: 500/s pass (+0.1% [-0.1%, +0.2%] from the limit); fullest
/// windows: +20% in 10 ms, +0.2% in 1 s``.
pub fn limiting(one: &Limiting) -> String {
    let mut text = format!("`{}`", one.subject);
    if !one.condition.is_empty() {
        text += &format!(" ({})", condition(&one.condition));
    }
    let limit = format!("{}/s", rate(one.limit_per_s));
    let through = format!("{}/s", rate(one.limit_per_s * (1.0 + one.excess.value)));
    let beyond = change(
        1.0 + one.excess.value,
        (one.excess.interval()).map(|(low, high)| (1.0 + low, 1.0 + high)),
    );
    text += &match one.finding {
        LimitFinding::Kept => {
            format!(" keeps its limit of {limit}: {through} pass ({beyond} from the limit)")
        }
        LimitFinding::TooMany => {
            format!(
                " lets too many requests through: {through} ({beyond} from its limit of {limit})"
            )
        }
        LimitFinding::TooFew => {
            format!(
                " lets too few requests through: {through} ({beyond} from its limit of {limit})"
            )
        }
        LimitFinding::NotReached => {
            let offered = rate(one.offered_per_s);
            return format!(
                "{text} was offered {offered}/s, too little to show its limit of {limit}"
            );
        }
        LimitFinding::Unsettled => {
            format!(": {through} pass ({beyond} from its limit of {limit})")
        }
    };
    let windows: Vec<String> = one.windows.iter().map(window).collect();
    if !windows.is_empty() {
        text += &format!("; fullest windows: {}", windows.join(", "));
    }
    text
}

/// `+20% in 10 ms`.
fn window(one: &LimitWindow) -> String {
    let beyond = one.most * 100.0;
    let decimals = usize::from(beyond.abs() < 10.0);
    let length = match one.window_s {
        s if s < 1.0 => format!("{} ms", number(s * 1e3, 0, false)),
        s => format!("{} s", number(s, 0, false)),
    };
    format!("{} in {length}", percent(beyond, decimals, true))
}
