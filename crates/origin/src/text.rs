//! Answers that compress as prose does, and answers that do not compress. Both are the same each time,
//! on every machine.

/// Words of the text: as many as eleven bits tell apart.
const WORDS: usize = (1 << RANK_BITS) - 1;
const RANK_BITS: u32 = 11;
/// A line ends after this many bytes.
const LINE: usize = 70;

/// `size` bytes of made-up words. How often a word comes follows from its rank by Zipf's law, and
/// frequent words are short: gzip leaves 47% of 10 kB, as it does of English prose.
pub(crate) fn prose(size: usize) -> Vec<u8> {
    let words = words();
    let mut random = SplitMix(2);
    let mut text = Vec::with_capacity(size + 2 * LINE);
    let (mut line, mut begins_sentence) = (0, true);
    while text.len() < size {
        let bits = random.next();
        let word = &words[rank(bits)];
        let at = text.len();
        text.extend_from_slice(word);
        if begins_sentence {
            text[at].make_ascii_uppercase();
        }
        begins_sentence = false;
        match (bits >> 48) % 12 {
            0 => {
                text.push(b'.');
                begins_sentence = true;
            }
            1 => text.push(b','),
            _ => {}
        }
        line += word.len() + 1;
        if line > LINE {
            text.push(b'\n');
            line = 0;
        } else {
            text.push(b' ');
        }
    }
    text.truncate(size);
    text
}

/// `size` bytes in which a compressor finds nothing.
pub(crate) fn noise(size: usize) -> Vec<u8> {
    let mut random = SplitMix(3);
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}

/// A rank below [`WORDS`]: each doubling of the rank comes as often as the one before.
fn rank(bits: u64) -> usize {
    let doubling = (bits & 0xffff) as u32 % RANK_BITS;
    let first = (1 << doubling) - 1;
    first + (bits >> 16) as usize % (1 << doubling)
}

/// The words, the most frequent first.
fn words() -> Vec<Vec<u8>> {
    const CONSONANTS: &[u8] = b"tnshrdlcmwfgypbvk";
    const VOWELS: &[u8] = b"eaoiu";
    let mut random = SplitMix(1);
    // The lesser of two draws: the first letters come most often.
    let letter = |from: &[u8], bits: u64| {
        let draw = |bits: u64| (bits & 0xff) as usize % from.len();
        from[draw(bits).min(draw(bits >> 8))]
    };
    let mut word = |number: usize| {
        let syllables = 1 + (number.ilog2() as usize + 2) / 4;
        let mut word = Vec::new();
        for _ in 0..syllables {
            let bits = random.next();
            word.push(letter(CONSONANTS, bits));
            word.push(letter(VOWELS, bits >> 16));
            if bits >> 32 & 1 == 1 {
                word.push(CONSONANTS[(bits >> 33 & 0xff) as usize % CONSONANTS.len()]);
            }
        }
        word
    };
    (1..=WORDS).map(&mut word).collect()
}

/// Steele, Lea and Flood: Fast Splittable Pseudorandom Number Generators (OOPSLA 2014).
struct SplitMix(u64);

impl SplitMix {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_answers_are_the_beginning_of_longer_ones() {
        for size in [0, 1, 7, 1_000, 9_999] {
            assert_eq!(prose(size), prose(10_000)[..size], "{size}");
            assert_eq!(noise(size), noise(10_000)[..size], "{size}");
        }
    }

    #[test]
    fn few_words_make_up_half_of_the_text() {
        let text = String::from_utf8(prose(100_000)).unwrap();
        assert!(text.lines().all(|line| line.len() < 2 * LINE));
        let mut counts = std::collections::HashMap::<String, usize>::new();
        for word in text.split_whitespace() {
            let word = word.trim_end_matches(['.', ',']).to_lowercase();
            *counts.entry(word).or_default() += 1;
        }
        let mut counts: Vec<usize> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let all: usize = counts.iter().sum();
        let first: usize = counts[..50].iter().sum();
        assert!(
            (0.4..0.6).contains(&(first as f64 / all as f64)),
            "{first} of {all}"
        );
        assert!(counts.len() > 1_000, "{}", counts.len());
    }
}
