//! Running allocations of a Nomad job.

use std::net::IpAddr;

use agent::{AgentError, PipeCommand};
use readings::Nomad;
use serde_json::{Value, json};

use super::access::HostAccess;
use super::command::{output_of, owned};

/// `nomad` with a namespace, which follows the subcommand.
fn nomad(subcommand: &[&str], nomad: &Nomad, words: &[&str]) -> Vec<String> {
    let mut command = owned(&["nomad"]);
    command.extend(owned(subcommand));
    command.extend(nomad.namespace.iter().map(|it| format!("-namespace={it}")));
    command.extend(owned(words));
    command
}

fn json_of(words: &[String]) -> Result<Value, AgentError> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let printed = output_of(&words)?;
    serde_json::from_str(&printed)
        .map_err(|e| AgentError::Failed(format!("nomad: its output cannot be read: {e}")))
}

pub(super) fn open(host: &str, spec: &Nomad, number: u32) -> Result<HostAccess, AgentError> {
    let listed = json_of(&nomad(&["job", "allocs"], spec, &["-json", &spec.job]))?;
    let all = listed.as_array().cloned().unwrap_or_default();
    let running = all.iter().filter(|one| one["ClientStatus"] == "running");
    let mut ids: Vec<&str> = running.filter_map(|one| one["ID"].as_str()).collect();
    ids.sort_unstable();
    let at = (number as usize).saturating_sub(1);
    let Some(id) = ids.get(at) else {
        return Err(AgentError::Failed(format!(
            "nomad: job `{}` has {} running allocations; the host needs number {number}",
            spec.job,
            ids.len()
        )));
    };
    let status = json_of(&nomad(&["alloc", "status"], spec, &["-json", id]))?;
    let mut words = nomad(&["alloc", "exec"], spec, &["-i", "-t=false"]);
    if let Some(task) = &spec.task {
        words.extend(owned(&["-task", task]));
    }
    words.push((*id).to_owned());
    Ok(HostAccess {
        address: address_in(&status),
        about: json!({ "nomad": { "job": spec.job, "allocation": id } }),
        ..HostAccess::of(PipeCommand::shell(host, words))
    })
}

/// The first address among an allocation's networks.
fn address_in(status: &Value) -> Option<IpAddr> {
    let shared = &status["AllocatedResources"]["Shared"]["Networks"];
    let own = &status["Resources"]["Networks"];
    let networks = [shared, own].into_iter().filter_map(Value::as_array);
    let mut addresses = networks.flatten().filter_map(|one| one["IP"].as_str());
    addresses.find_map(|text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_an_allocation_is_found() {
        let status = json!({
            "AllocatedResources": {"Shared": {"Networks": [{"IP": "10.1.2.3"}]}},
            "Resources": {"Networks": [{"IP": "10.9.9.9"}]},
        });
        assert_eq!(address_in(&status), Some("10.1.2.3".parse().unwrap()));
        assert_eq!(address_in(&json!({})), None);
    }
}
