//! Which answers count as good.

use std::fmt::Write;
use std::sync::Arc;

use readings::{FIRST_ANSWER, Wrong, WrongKind};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::job::serde_as;

/// The statuses that count as good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusRule {
    /// This one.
    Exactly(u16),
    /// This one, and 429 and 503 with any body, with which a rate limit refuses requests.
    OrRefused(u16),
    /// Any from 200 to 399; the first one, where answers are fetched before the load.
    Success,
}

/// The bodies that count as good. With `Same` and `Auto`, and with `Contains` where the status is
/// not given, the target is asked before the load ([`prepare`](crate::prepare())).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyRule {
    /// Any.
    Any,
    /// The one that the target sends before the load; a target whose bodies differ is refused.
    Same,
    /// As `Same`, and `Any` if those bodies differ.
    Auto,
    /// Exactly these bytes.
    Bytes(#[serde(with = "serde_as::bytes")] Arc<[u8]>),
    /// Any body that contains these bytes.
    Contains(#[serde(with = "serde_as::bytes")] Arc<[u8]>),
    /// Any body that passes all of these checks. The target is not asked before the load.
    All(#[serde(with = "serde_as::shared")] Arc<BodyChecks>),
}

/// Checks of a body; what is `None` is not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BodyChecks {
    /// Bytes that it contains.
    #[serde(default, with = "serde_as::option_bytes")]
    pub contains: Option<Arc<[u8]>>,
    /// Its length in bytes.
    #[serde(default)]
    pub length: Option<u64>,
    /// Its SHA-256, in lower-case hexadecimal digits.
    #[serde(default)]
    pub sha256: Option<String>,
}

/// The answers that count as good.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Expect {
    pub status: StatusRule,
    pub body: BodyRule,
}

impl Default for Expect {
    fn default() -> Self {
        Self {
            status: StatusRule::Success,
            body: BodyRule::Any,
        }
    }
}

impl StatusRule {
    #[inline]
    fn accepts(self, status: u16) -> bool {
        match self {
            StatusRule::Exactly(expected) => status == expected,
            StatusRule::OrRefused(expected) => status == expected || self.is_refusal(status),
            StatusRule::Success => (200..400).contains(&status),
        }
    }

    /// Whether it is that of a good answer with any body.
    #[inline]
    pub(crate) fn is_refusal(self, status: u16) -> bool {
        match self {
            StatusRule::OrRefused(expected) => status != expected && matches!(status, 429 | 503),
            StatusRule::Exactly(_) | StatusRule::Success => false,
        }
    }
}

/// The check of one body, piece by piece.
#[derive(Debug, Default)]
pub(crate) struct BodyCheck {
    bytes: usize,
    /// First place where the body differs.
    differs_at: Option<usize>,
    found: bool,
    /// The end of what came, in which the wanted bytes may begin.
    tail: Vec<u8>,
    /// Of what came, where it is asked for.
    digest: Option<Box<Sha256>>,
}

impl BodyCheck {
    pub(crate) fn reset(&mut self) {
        self.bytes = 0;
        self.differs_at = None;
        self.found = false;
        self.tail.clear();
        if let Some(digest) = &mut self.digest {
            digest.reset();
        }
    }

    #[inline]
    pub(crate) fn take(&mut self, rule: &BodyRule, piece: &[u8]) {
        let at = self.bytes;
        self.bytes += piece.len();
        match rule {
            // What a target answers is known before the load begins.
            BodyRule::Any | BodyRule::Same | BodyRule::Auto => {}
            BodyRule::Bytes(reference) => {
                if self.differs_at.is_none() && reference.get(at..self.bytes) != Some(piece) {
                    let rest = reference.get(at..).unwrap_or_default();
                    let same = piece.iter().zip(rest).take_while(|(a, b)| a == b).count();
                    self.differs_at = Some(at + same);
                }
            }
            BodyRule::Contains(wanted) => self.search(wanted, piece),
            BodyRule::All(checks) => {
                if let Some(wanted) = &checks.contains {
                    self.search(wanted, piece);
                }
                if checks.sha256.is_some() {
                    self.digest.get_or_insert_default().update(piece);
                }
            }
        }
    }

    /// What is wrong with a whole body.
    fn fault(&self, checks: &BodyChecks) -> Option<Wrong> {
        if let Some(length) = checks.length
            && length != self.bytes as u64
        {
            return Some(Wrong {
                kind: WrongKind::Length,
                expected: format!("{length} bytes"),
                found: format!("{} bytes", self.bytes),
            });
        }
        // In a body without bytes nothing was searched.
        let lacking = checks.contains.as_deref();
        if let Some(wanted) = lacking.filter(|wanted| !self.found && !wanted.is_empty()) {
            return Some(self.lacks(wanted));
        }
        let sha256 = checks.sha256.as_ref()?;
        let digest = self.digest.as_deref().cloned().unwrap_or_default();
        let found = hex(&digest.finalize());
        (found != *sha256).then(|| Wrong {
            kind: WrongKind::Content,
            expected: format!("a body with the SHA-256 {sha256}"),
            found: format!("{} bytes with {found}", self.bytes),
        })
    }

    fn lacks(&self, wanted: &[u8]) -> Wrong {
        Wrong {
            kind: WrongKind::Content,
            expected: format!("a body that contains `{}`", String::from_utf8_lossy(wanted)),
            found: format!("{} bytes without it", self.bytes),
        }
    }

    fn search(&mut self, wanted: &[u8], piece: &[u8]) {
        if self.found || wanted.is_empty() {
            self.found = true;
            return;
        }
        self.found = memchr::memmem::find(piece, wanted).is_some();
        if self.found {
            return;
        }
        let keep = wanted.len() - 1;
        if !self.tail.is_empty() {
            let mut seam = std::mem::take(&mut self.tail);
            seam.extend_from_slice(&piece[..piece.len().min(keep)]);
            self.found = memchr::memmem::find(&seam, wanted).is_some();
            self.tail = seam;
        }
        if piece.len() >= keep {
            self.tail.clear();
            self.tail.extend_from_slice(&piece[piece.len() - keep..]);
        } else if self.tail.is_empty() {
            self.tail.extend_from_slice(piece);
        } else {
            let surplus = self.tail.len().saturating_sub(keep);
            self.tail.drain(..surplus);
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to text does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Expect {
    /// Whether the target has to be asked before the load.
    pub(crate) fn needs_reference(&self) -> bool {
        match self.body {
            BodyRule::Same | BodyRule::Auto => true,
            BodyRule::Contains(_) => self.status == StatusRule::Success,
            BodyRule::Any | BodyRule::Bytes(_) | BodyRule::All(_) => false,
        }
    }

    /// What is wrong with an answer; `None` when it is good, which is decided without a call.
    #[inline]
    pub(crate) fn judge(&self, status: u16, is_head: bool, body: &BodyCheck) -> Option<Wrong> {
        let is_good = self.status.accepts(status)
            && (is_head
                || self.status.is_refusal(status)
                || match &self.body {
                    BodyRule::Any | BodyRule::Same | BodyRule::Auto => true,
                    BodyRule::Bytes(reference) => {
                        body.bytes == reference.len() && body.differs_at.is_none()
                    }
                    BodyRule::Contains(_) => body.found,
                    BodyRule::All(checks) => body.fault(checks).is_none(),
                });
        (!is_good).then(|| self.fault(status, body))
    }

    /// What is wrong with an answer that is not good.
    #[cold]
    fn fault(&self, status: u16, body: &BodyCheck) -> Wrong {
        if !self.status.accepts(status) {
            return Wrong {
                kind: WrongKind::Status,
                expected: match self.status {
                    StatusRule::Exactly(expected) => format!("status {expected}"),
                    StatusRule::OrRefused(expected) => format!("status {expected}, 429 or 503"),
                    StatusRule::Success => "a status from 200 to 399".to_string(),
                },
                found: format!("status {status}"),
            };
        }
        if let BodyRule::All(checks) = &self.body
            && let Some(wrong) = body.fault(checks)
        {
            return wrong;
        }
        match &self.body {
            BodyRule::Bytes(reference) if body.bytes != reference.len() => Wrong {
                kind: WrongKind::Length,
                expected: format!("{} bytes, as {FIRST_ANSWER} had", reference.len()),
                found: format!("{} bytes", body.bytes),
            },
            BodyRule::Contains(wanted) => body.lacks(wanted),
            _ => Wrong {
                kind: WrongKind::Content,
                expected: format!("the content of {FIRST_ANSWER}"),
                found: format!(
                    "content that differs from byte {} on",
                    body.differs_at.unwrap_or_default()
                ),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judge(rule: BodyRule, pieces: &[&[u8]]) -> Option<WrongKind> {
        let mut check = BodyCheck::default();
        for piece in pieces {
            check.take(&rule, piece);
        }
        let expect = Expect {
            status: StatusRule::Exactly(200),
            body: rule,
        };
        expect.judge(200, false, &check).map(|wrong| wrong.kind)
    }

    #[test]
    fn length_and_content_are_told_apart() {
        let same = || BodyRule::Bytes(Arc::from(&b"hello"[..]));
        assert_eq!(judge(same(), &[b"hel", b"lo"]), None);
        assert_eq!(judge(same(), &[b"hel"]), Some(WrongKind::Length));
        assert_eq!(judge(same(), &[b"hello", b"!"]), Some(WrongKind::Length));
        assert_eq!(judge(same(), &[b"he", b"xlo"]), Some(WrongKind::Content));
        let any = Expect::default();
        assert_eq!(
            any.judge(502, false, &BodyCheck::default()).map(|w| w.kind),
            Some(WrongKind::Status)
        );
    }

    #[test]
    fn refusals_of_a_rate_limit_may_be_good_answers() {
        let expect = Expect {
            status: StatusRule::OrRefused(200),
            body: BodyRule::Any,
        };
        let is_good = |status| expect.judge(status, false, &BodyCheck::default()).is_none();
        let good: Vec<u16> = (100..600).filter(|status| is_good(*status)).collect();
        assert_eq!(good, [200, 429, 503]);
        let contains = Expect {
            body: BodyRule::Contains(Arc::from(&b"hello"[..])),
            ..expect
        };
        let is_good = |status| {
            contains
                .judge(status, false, &BodyCheck::default())
                .is_none()
        };
        let good: Vec<u16> = (100..600).filter(|status| is_good(*status)).collect();
        assert_eq!(good, [429, 503], "the body of an answer is checked");
    }

    #[test]
    fn all_checks_of_a_body_have_to_pass() {
        let sha256 = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
        let all = |contains: Option<&str>, length, sha256: Option<&str>| {
            BodyRule::All(Arc::new(BodyChecks {
                contains: contains.map(|text| text.as_bytes().into()),
                length,
                sha256: sha256.map(str::to_owned),
            }))
        };
        let hello: &[&[u8]] = &[b"he", b"", b"llo"];
        assert_eq!(judge(all(Some("ell"), Some(5), Some(sha256)), hello), None);
        assert_eq!(judge(all(Some(""), None, None), &[]), None);
        let wrong = |rule, pieces: &[&[u8]]| judge(rule, pieces).unwrap();
        let digest = || all(None, None, Some(sha256));
        assert_eq!(judge(digest(), &[b"hello"]), None);
        assert_eq!(wrong(digest(), &[b"hell", b"O"]), WrongKind::Content);
        assert_eq!(wrong(digest(), &[]), WrongKind::Content);
        assert_eq!(wrong(all(None, Some(4), None), hello), WrongKind::Length);
        assert_eq!(
            wrong(all(Some("x"), Some(5), None), hello),
            WrongKind::Content
        );
        // The next body on the same place begins anew.
        let rule = digest();
        let mut check = BodyCheck::default();
        check.take(&rule, b"other");
        check.reset();
        check.take(&rule, b"hello");
        let expect = Expect {
            status: StatusRule::Success,
            body: rule,
        };
        assert_eq!(expect.judge(200, false, &check), None);
        let text = serde_json::to_string(&expect).unwrap();
        assert_eq!(serde_json::from_str::<Expect>(&text).unwrap(), expect);
    }

    proptest! {
        #[test]
        fn wanted_bytes_are_found_in_any_split(body in "[ab]{0,40}", wanted in "[ab]{1,6}", size in 1usize..7) {
            let pieces: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
            let rule = BodyRule::Contains(Arc::from(wanted.as_bytes()));
            prop_assert_eq!(judge(rule, &pieces).is_none(), body.contains(&wanted));
        }
    }
}
