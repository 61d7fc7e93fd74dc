//! Which answers count as good.

use std::sync::Arc;

use readings::{FIRST_ANSWER, Wrong, WrongKind};
use serde::{Deserialize, Serialize};

use crate::job::serde_as;

/// The statuses that count as good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusRule {
    /// This one.
    Exactly(u16),
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
    fn accepts(self, status: u16) -> bool {
        match self {
            StatusRule::Exactly(expected) => status == expected,
            StatusRule::Success => (200..400).contains(&status),
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
}

impl BodyCheck {
    pub(crate) fn reset(&mut self) {
        self.bytes = 0;
        self.differs_at = None;
        self.found = false;
        self.tail.clear();
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

impl Expect {
    /// Whether the target has to be asked before the load.
    pub(crate) fn needs_reference(&self) -> bool {
        match self.body {
            BodyRule::Same | BodyRule::Auto => true,
            BodyRule::Contains(_) => self.status == StatusRule::Success,
            BodyRule::Any | BodyRule::Bytes(_) => false,
        }
    }

    /// What is wrong with an answer; `None` when it is good.
    pub(crate) fn judge(&self, status: u16, is_head: bool, body: &BodyCheck) -> Option<Wrong> {
        if !self.status.accepts(status) {
            return Some(Wrong {
                kind: WrongKind::Status,
                expected: match self.status {
                    StatusRule::Exactly(expected) => format!("status {expected}"),
                    StatusRule::Success => "a status from 200 to 399".to_string(),
                },
                found: format!("status {status}"),
            });
        }
        if is_head {
            return None;
        }
        match &self.body {
            BodyRule::Any | BodyRule::Same | BodyRule::Auto => None,
            BodyRule::Bytes(reference) if body.bytes != reference.len() => Some(Wrong {
                kind: WrongKind::Length,
                expected: format!("{} bytes, as {FIRST_ANSWER} had", reference.len()),
                found: format!("{} bytes", body.bytes),
            }),
            BodyRule::Bytes(_) => body.differs_at.map(|at| Wrong {
                kind: WrongKind::Content,
                expected: format!("the content of {FIRST_ANSWER}"),
                found: format!("content that differs from byte {at} on"),
            }),
            BodyRule::Contains(_) if body.found => None,
            BodyRule::Contains(wanted) => Some(Wrong {
                kind: WrongKind::Content,
                expected: format!("a body that contains `{}`", String::from_utf8_lossy(wanted)),
                found: format!("{} bytes without it", body.bytes),
            }),
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

    proptest! {
        #[test]
        fn wanted_bytes_are_found_in_any_split(body in "[ab]{0,40}", wanted in "[ab]{1,6}", size in 1usize..7) {
            let pieces: Vec<&[u8]> = body.as_bytes().chunks(size).collect();
            let rule = BodyRule::Contains(Arc::from(wanted.as_bytes()));
            prop_assert_eq!(judge(rule, &pieces).is_none(), body.contains(&wanted));
        }
    }
}
