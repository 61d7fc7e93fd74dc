//! A limit for the whole numbers of a journal's rows, so that their sums do not overflow.

/// The highest count. A float holds each one up to it exactly, and a sum of a thousand fits into 64
/// bits.
pub(crate) const COUNT_MAX: u64 = 1 << 53;
/// The field that is no count: any number is a seed.
const SEED: &str = "seed";

/// The first count of a row that is above the limit: its field, such as
/// `outcome.done.throughput.requests`, and its digits. The row has to be valid JSON.
pub(crate) fn first_above_limit(row: &[u8]) -> Option<(String, String)> {
    first_number(row, is_above_limit, |field| field != SEED)
}

/// What is wrong with the first number of a message that is above the limit for counts, fractions and
/// negative ones included. `exempt` are fields at the top that are not looked at. The message has to
/// be valid JSON.
pub fn first_number_above_limit(message: &[u8], exempt: &[&str]) -> Option<String> {
    let (field, number) = first_number(message, is_any_above_limit, |field| {
        let top = field.split('.').next().unwrap_or_default();
        !exempt.contains(&top)
    })?;
    Some(format!(
        "`{field}` is {number}, expected at most {COUNT_MAX}: no load measures that much"
    ))
}

/// The first number that `is_sought`, in a field that `counts`.
fn first_number(
    row: &[u8],
    is_sought: impl Fn(&[u8]) -> bool,
    counts: impl Fn(&str) -> bool,
) -> Option<(String, String)> {
    // The key of each object and array that is open, and that of the next value; empty in arrays.
    let (mut path, mut key): (Vec<&[u8]>, &[u8]) = (Vec::new(), b"");
    let mut string: &[u8] = b"";
    let mut rest = row;
    while let [byte, behind @ ..] = rest {
        let from = rest;
        rest = behind;
        match byte {
            b'"' => {
                string = &behind[..string_bytes(behind)];
                rest = behind.get(string.len() + 1..).unwrap_or_default();
            }
            b':' => key = string,
            b'{' | b'[' => path.push(std::mem::take(&mut key)),
            b'}' | b']' => {
                path.pop();
                key = b"";
            }
            b'0'..=b'9' => {
                let is_of_number = |byte: &&u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
                let number;
                (number, rest) = from.split_at(from.iter().take_while(is_of_number).count());
                if is_sought(number) {
                    let keys = path.iter().chain([&key]).filter(|key| !key.is_empty());
                    let keys: Vec<_> = keys.map(|key| String::from_utf8_lossy(key)).collect();
                    let field = keys.join(".");
                    if counts(&field) {
                        return Some((field, String::from_utf8_lossy(number).into_owned()));
                    }
                }
            }
            _ => {}
        }
    }
    None
}

/// The bytes of a string up to its closing quote.
fn string_bytes(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => return at,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    text.len()
}

/// Whether it is a whole number above the limit.
fn is_above_limit(number: &[u8]) -> bool {
    let is_whole = number.iter().all(u8::is_ascii_digit);
    let value = str::from_utf8(number)
        .ok()
        .and_then(|text| text.parse::<u64>().ok());
    is_whole && value.is_none_or(|value| value > COUNT_MAX)
}

/// The same of any number, without its sign.
fn is_any_above_limit(number: &[u8]) -> bool {
    let value = str::from_utf8(number).ok();
    let value = value.and_then(|text| text.parse::<f64>().ok());
    is_above_limit(number) || value.is_none_or(|value| value > COUNT_MAX as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_of_a_count_above_the_limit_is_named() {
        let named = |row: &str| first_above_limit(row.as_bytes()).map(|(field, _)| field);
        let most = COUNT_MAX;
        let (more, most_u64) = (most + 1, u64::MAX);
        for (row, field) in [
            (format!(r#"{{"a":{most},"b":[{most}]}}"#), None),
            (format!(r#"{{"a":{{"b": {more}}}}}"#), Some("a.b")),
            (
                format!(r#"{{"a":[{{"b":1}},{{"c":{more}}}]}}"#),
                Some("a.c"),
            ),
            (
                format!(r#"{{"a":{{"b":1}},"c":[0,{most_u64}]}}"#),
                Some("c"),
            ),
            // Above 64 bits, too.
            (format!(r#"{{"a":{most_u64}0}}"#), Some("a")),
            // Strings, floats and seeds have no limit.
            (format!(r#"{{"a":"\\\":{more}"}}"#), None),
            (format!(r#"{{"a":{more}.0,"b":{more}e3}}"#), None),
            (format!(r#"{{"seed":{most_u64}}}"#), None),
            (format!(r#"{{"a":{{"seed":{most_u64}}}}}"#), Some("a.seed")),
        ] {
            assert_eq!(named(&row).as_deref(), field, "{row}");
        }
        let wrong = |text: &str| first_number_above_limit(text.as_bytes(), &["at"]);
        for text in [r#"{"a":1e308}"#, r#"{"a":-1e16}"#, r#"{"b":{"at":1e16}}"#] {
            assert!(wrong(text).is_some(), "{text}");
        }
        for text in [r#"{"a":-1.5e3}"#, r#"{"at":[1e16,{"b":1e16}]}"#] {
            assert_eq!(wrong(text), None, "{text}");
        }
        let (_, digits) = first_above_limit(b"[18446744073709551615]").unwrap();
        assert_eq!(digits, "18446744073709551615");
    }
}
