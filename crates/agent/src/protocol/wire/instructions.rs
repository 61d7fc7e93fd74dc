//! Counts of instructions on the wire.

use serde::{Deserialize, Serialize};

use crate::kernel::clock::Window;

/// Times before and after a load in which its servers had nothing to do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdleTimes {
    pub before: Window,
    pub after: Window,
}

impl IdleTimes {
    /// The same by a clock that is ahead by `by_ns`.
    pub fn shifted(self, by_ns: i64) -> Self {
        Self {
            before: self.before.shifted(by_ns),
            after: self.after.shifted(by_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use readings::InstructionScope;

    use crate::protocol::wire::{Answer, Order};

    #[test]
    fn counters_are_the_same_after_the_wire() {
        let order = Order::StartCounting {
            servers: vec!["a".into()],
            others: Vec::new(),
            scope: InstructionScope::User,
        };
        let text = serde_json::to_string(&order).unwrap();
        assert!(text.contains(r#""scope":"user""#), "{text}");
        assert_eq!(serde_json::from_str::<Order>(&text).unwrap(), order);
        let answer = Answer::Counted {
            loads: vec![BTreeMap::from([("a".into(), 1 << 52)])],
        };
        let text = serde_json::to_string(&answer).unwrap();
        assert_eq!(serde_json::from_str::<Answer>(&text).unwrap(), answer);
    }
}
