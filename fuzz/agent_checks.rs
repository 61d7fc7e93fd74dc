//! What has to hold for any line that an agent or its caller receives.

use std::fmt::Debug;

use agent::wire::{Answer, Order};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

/// A line of the pipe between an agent and its caller: it is refused, or it is an order or an
/// answer that round-trips.
pub fn agent_wire(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for line in text.lines() {
        arrives::<Order>(line);
        arrives::<Answer>(line);
        if let Ok(Order::Load(order)) = serde_json::from_str(line) {
            let _ = order.job.validate();
        }
    }
}

fn arrives<T: Debug + Serialize + DeserializeOwned>(line: &str) {
    let Ok(sent) = serde_json::from_str::<T>(line) else {
        return;
    };
    let text = serde_json::to_string(&sent).expect("what was read can be written");
    assert!(!text.contains('\n'), "{text}");
    let received = serde_json::from_str::<T>(&text).expect("what was written can be read");
    let value = |one: &T| serde_json::to_value(one).expect("what was read can be written");
    assert!(is_same(&value(&sent), &value(&received)), "{text}");
}

/// Whether both are the same; the last digit of a fraction may differ, as the parser rounds it.
fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len() && pairs.all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let same = |(key, one)| other.get(key).is_some_and(|other| is_same(one, other));
            one.len() == other.len() && one.iter().all(same)
        }
        (Value::Number(one), Value::Number(other)) if one.is_f64() && other.is_f64() => {
            let near = |one: f64, other: f64| (one - other).abs() <= 1e-15 * one.abs();
            one.as_f64()
                .zip(other.as_f64())
                .is_some_and(|(one, other)| near(one, other))
        }
        (one, other) => one == other,
    }
}
