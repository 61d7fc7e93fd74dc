//! What gRPC calls send, by the schemas that subjects give.

use agent::AgentError;
use agent::wire::{Answer, Order, SchemaOrder};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use experiment::{Call, LoadSpec};

use crate::context::Context;
use crate::context::orders::target;
use crate::testbed::{ReadySubject, unexpected};

/// What each call of a load sends to a subject, which is asked for its schema; or why that does not fit.
pub(super) fn asked_call(
    cx: &mut Context<'_>,
    load: &LoadSpec,
    one: &ReadySubject,
) -> Result<Result<Call, String>, AgentError> {
    let order = Order::Schema(SchemaOrder {
        target: target(one, load, &cx.options.experiment.expect, false),
        method: load.traffic.grpc.clone().unwrap_or_default(),
        timeout_ms: load.timeout.as_millis() as u64,
    });
    let agent = cx.testbed.agent(load.host.as_deref())?;
    let set = match agent.ask_unless(&order, cx.stop)? {
        Answer::Schema { set } => set,
        other => return Err(unexpected(&other)),
    };
    let set = STANDARD.decode(set);
    let set = set.map_err(|error| AgentError::Failed(error.to_string()))?;
    let call = load.call_by_schema("grpc", &set);
    Ok(call.map_err(|wrong| format!("load.{}: {wrong}", wrong.key)))
}
