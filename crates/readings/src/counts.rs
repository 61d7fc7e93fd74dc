//! A limit for the whole numbers of a journal's rows, so that their sums do not overflow.

/// The highest count. A float holds each one up to it exactly, and a sum of a thousand fits into 64
/// bits.
pub(crate) const COUNT_MAX: u64 = 1 << 53;
/// The field that is no count: any number is a seed.
const SEED: &str = "seed";

/// The first count of a row that is above the limit: its field, such as
/// `outcome.done.throughput.requests`, and its digits. The row has to be valid JSON.
pub(crate) fn first_above_limit(row: &[u8]) -> Option<(String, String)> {
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
                if is_above_limit(number) {
                    let keys = path.iter().chain([&key]).filter(|key| !key.is_empty());
                    let keys: Vec<_> = keys.map(|key| String::from_utf8_lossy(key)).collect();
                    let field = keys.join(".");
                    if field != SEED {
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
        let (_, digits) = first_above_limit(b"[18446744073709551615]").unwrap();
        assert_eq!(digits, "18446744073709551615");
    }
}
