//! Sentences on the expiry of cached answers.

use readings::text::{condition, grouped, number, time};

use super::Expiries;

/// `` `nginx` asks the back end 7.3 [6.9, 7.7] times when an answer expires (at most 9, over 12
/// expiries); an answer lasts 1.02 s``.
pub fn expiries(one: &Expiries) -> String {
    let mut text = format!("`{}`", one.subject);
    if !one.condition.is_empty() {
        text += &format!(" ({})", condition(&one.condition));
    }
    let digits = |value: f64| number(value, 1, false);
    let interval = one
        .requests
        .interval()
        .map_or_else(String::new, |(low, high)| {
            format!(" [{}, {}]", digits(low), digits(high))
        });
    format!(
        "{text} asks the back end {}{interval} times when an answer expires (at most {}, over {}); \
         an answer lasts {}",
        digits(one.requests.value),
        grouped(one.most),
        match one.expiries {
            1 => "1 expiry".to_owned(),
            many => format!("{} expiries", grouped(many as u64)),
        },
        time(one.lasts_s.value * 1e6)
    )
}
