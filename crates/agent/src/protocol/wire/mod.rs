//! The orders and answers of the protocol between an agent and its caller.

mod answer;
mod drive;
mod load;
mod measured;
mod order;
mod profile;
mod server;
mod words;

pub use answer::{Answer, AnswerSummary};
pub use drive::{DriveEnd, DriveOrder, Driven};
pub use load::{LoadOrder, Loaded, QuotaOrder};
pub use measured::{IdleTimes, Measured, Spans, Window};
pub(crate) use order::AHEAD_MAX;
pub use order::{FindOrder, FindPackage, Order, PeerLink, SchemaOrder};
pub use profile::{CallGraph, ProfileOrder, ServerProfile};
pub use server::{
    AwaitServer, FileToWrite, OtherServer, ReloadProbe, ReloadServer, ReloadSign, StartServer,
};
pub use words::{LAST_OUTPUT, time_limit_phrase, without_last_output};

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    use readings::InstructionScope;
    use serde::{Serialize, de::DeserializeOwned};

    use super::*;

    /// Checks that a message arrives as it was sent; returns its text.
    fn sent<T: Debug + PartialEq + Serialize + DeserializeOwned>(message: &T) -> String {
        let text = serde_json::to_string(message).unwrap();
        assert_eq!(serde_json::from_str::<T>(&text).unwrap(), *message);
        text
    }

    #[test]
    fn samples_of_another_machine_are_the_same_after_the_wire() {
        sent(&Order::StopSampling {
            readings: vec![Spans::default()],
        });
        sent(&Answer::Measured {
            readings: vec![Measured::default()],
            seen: None,
        });
    }

    #[test]
    fn counters_are_the_same_after_the_wire() {
        let text = sent(&Order::StartCounting {
            servers: vec!["a".into()],
            others: Vec::new(),
            scope: InstructionScope::User,
        });
        assert!(text.contains(r#""scope":"user""#), "{text}");
        sent(&Answer::Counted {
            loads: vec![BTreeMap::from([("a".into(), 1 << 52)])],
        });
    }

    #[test]
    fn a_timed_order_contains_another() {
        sent(&Order::Timed {
            at_ns: -5,
            of: Box::new(Order::Suspend {
                server: "a".into(),
                suspended: true,
            }),
        });
    }
}
