//! Pods of Kubernetes, one for each host.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use agent::{AgentError, PipeCommand};
use readings::Kubernetes;
use serde_json::{Value, json};

use super::access::{HostAccess, Lease};
use super::command::{failed, output_of, owned};

const KUBECTL: &str = "kubectl";
/// How long a pod may take to become ready, its image included.
const READY_WITHIN: Duration = Duration::from_secs(180);
/// How long a node may take to acknowledge a pod. One whose kubelet is stopped never does.
const TAKEN_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// The label by which pods of this kind are found.
const LABEL: &str = "weigh=host";

/// What a pod runs: a shell that ends two minutes after the last session of `kubectl exec`, so that
/// a lost run leaves nothing behind. The first process of a session is the one whose parent is
/// outside of the pod, which reads as 0; so does that of this shell. The kubelet would replace `$(…)`
/// and a doubled `$`.
const MAIN: &str = "trap 'exit 0' TERM; read -r me n </proc/self/stat; n=; \
     while [ ${#n} -lt 12 ]; do sleep 10 & wait; n=.$n; \
     for p in /proc/[0-9]*/stat; do if [ $p != /proc/$me/stat ] && read -r s; then \
     case \"${s##*) }\" in ?' 0 '*) n=; esac; fi <$p; done 2>/dev/null; done";

/// A pod that was made for a host.
struct Pod {
    name: String,
    namespace: Option<String>,
}

impl Lease for Pod {}

impl Pod {
    fn words(&self, words: &[&str]) -> Vec<String> {
        kubectl(self.namespace.as_deref(), words)
    }

    fn state(&self) -> Result<PodState, AgentError> {
        let printed = call(&self.words(&["get", "pod", &self.name, "--output=json"]))?;
        let pod = serde_json::from_str(&printed);
        let pod = pod.map_err(|e| failed(KUBECTL, format!("its output cannot be read: {e}")))?;
        Ok(PodState::of(&pod))
    }

    /// Waits until it can be used. Returns its address.
    fn until_ready(&self, stop: &AtomicBool) -> Result<Option<IpAddr>, AgentError> {
        let begun = Instant::now();
        loop {
            let (why, within) = match self.state()? {
                PodState::Ready(address) => return Ok(address),
                PodState::Over(why) => (why, Duration::ZERO),
                PodState::Assigned(node) => (
                    format!("node `{node}` does not take it; does its kubelet run?"),
                    TAKEN_WITHIN,
                ),
                PodState::Waits(why) => (why, READY_WITHIN),
            };
            let why = match stop.load(Ordering::Relaxed) {
                true => "stopped before it was ready".to_owned(),
                false if begun.elapsed() >= within => why,
                false => {
                    sleep(LOOK_EVERY);
                    continue;
                }
            };
            let (name, s) = (&self.name, begun.elapsed().as_secs());
            let why = format!("pod `{name}` was not ready after {s} s: {why}");
            return Err(failed(KUBECTL, why));
        }
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let words = self.words(&["delete", "pod", &self.name]);
        let words = [words, owned(&["--ignore-not-found", "--wait=false"])].concat();
        // If that fails, the pod ends by itself.
        let _ = call(&words);
    }
}

/// What the API server says of a pod.
#[derive(Debug, PartialEq, Eq)]
enum PodState {
    Ready(Option<IpAddr>),
    /// Assigned to a node that has not acknowledged it.
    Assigned(String),
    /// Not ready yet, and why.
    Waits(String),
    /// It will never be ready.
    Over(String),
}

impl PodState {
    fn of(pod: &Value) -> Self {
        let (spec, status) = (&pod["spec"], &pod["status"]);
        let phase = status["phase"].as_str().unwrap_or("unknown");
        let is_deleted = pod["metadata"]["deletionTimestamp"].is_string();
        let said = reasons(status);
        if is_deleted || matches!(phase, "Succeeded" | "Failed") {
            let what = if is_deleted { "deleted" } else { phase };
            return Self::Over([vec![what.to_owned()], said].concat().join("; "));
        }
        let conditions = status["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        if conditions.any(|one| one["type"] == "Ready" && one["status"] == "True") {
            let address = status["podIP"].as_str();
            return Self::Ready(address.and_then(|text| text.parse().ok()));
        }
        match spec["nodeName"].as_str() {
            Some(node) if !status["startTime"].is_string() => Self::Assigned(node.to_owned()),
            _ if said.is_empty() => Self::Waits(phase.to_owned()),
            _ => Self::Waits(said.join("; ")),
        }
    }
}

/// What keeps a pod from being ready, such as `ErrImagePull: …`.
fn reasons(status: &Value) -> Vec<String> {
    let list = |key: &str| status[key].as_array().into_iter().flatten();
    let containers = list("containerStatuses").flat_map(|one| {
        let state = &one["state"];
        [&state["waiting"], &state["terminated"]]
    });
    let unscheduled = list("conditions").filter(|one| one["type"] == "PodScheduled");
    let unscheduled = unscheduled.filter(|one| one["status"] == "False");
    std::iter::once(status)
        .chain(containers)
        .chain(unscheduled)
        .filter_map(|one| {
            let texts = [one["reason"].as_str(), one["message"].as_str()];
            let texts: Vec<&str> = texts.into_iter().flatten().collect();
            (!texts.is_empty()).then(|| texts.join(": "))
        })
        .collect()
}

/// The pods of a run.
#[derive(Default)]
pub(super) struct Pods {
    /// By host; the hosts hold them.
    by_host: BTreeMap<String, Weak<Pod>>,
}

impl Pods {
    /// Takes the pod that a host had before, if it can still be used: an earlier agent may still
    /// run in it, and is waited for. Otherwise makes one.
    pub(super) fn open(
        &mut self,
        host: &str,
        kubernetes: &Kubernetes,
        stop: &AtomicBool,
    ) -> Result<HostAccess, AgentError> {
        if self.by_host.is_empty() {
            remove_ended(kubernetes);
        }
        let earlier = self.by_host.get(host).and_then(Weak::upgrade);
        let earlier = earlier.and_then(|pod| match pod.state() {
            Ok(PodState::Ready(address)) => Some((pod, address)),
            _ => None,
        });
        let (pod, address) = match earlier {
            Some(usable) => usable,
            None => {
                let pod = Rc::new(create(host, kubernetes)?);
                self.by_host.insert(host.to_owned(), Rc::downgrade(&pod));
                let address = pod.until_ready(stop)?;
                (pod, address)
            }
        };
        Ok(HostAccess {
            address,
            about: json!({ "kubernetes": { "pod": pod.name, "image": kubernetes.image } }),
            ..HostAccess::of(PipeCommand::shell(
                host,
                pod.words(&["exec", "-i", &pod.name, "--"]),
            ))
            .held_by(pod)
        })
    }

    /// Has a host get another pod next time.
    pub(super) fn forget(&mut self, host: &str) {
        self.by_host.remove(host);
    }
}

fn create(host: &str, kubernetes: &Kubernetes) -> Result<Pod, AgentError> {
    let name: String = host
        .chars()
        .map(|c| c.to_ascii_lowercase())
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let pod = Pod {
        name: format!("weigh-{name}-{:06x}", fastrand::u32(..0x100_0000)),
        namespace: kubernetes.namespace.clone(),
    };
    let image = format!("--image={}", kubernetes.image);
    let labels = format!("--labels=app=weigh,{LABEL}");
    let mut run = pod.words(&["run", &pod.name, &image, "--restart=Never", &labels]);
    run.extend(kubernetes.options.iter().cloned());
    run.extend(owned(&["--command", "--", "sh", "-c", MAIN]));
    call(&run)?;
    Ok(pod)
}

/// Removes what lost runs have left: pods that have ended.
fn remove_ended(kubernetes: &Kubernetes) {
    let selector = format!("--selector={LABEL}");
    let ended = "--field-selector=status.phase!=Pending,status.phase!=Running";
    let words = ["delete", "pod", &selector, ended, "--wait=false"];
    // Where that is not permitted, they stay; they take no resources.
    let _ = call(&kubectl(kubernetes.namespace.as_deref(), &words));
}

fn kubectl(namespace: Option<&str>, words: &[&str]) -> Vec<String> {
    let mut command = owned(&[KUBECTL]);
    command.extend(namespace.map(|it| format!("--namespace={it}")));
    command.extend(owned(words));
    command
}

fn call(words: &[String]) -> Result<String, AgentError> {
    output_of(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(pod: Value) -> PodState {
        PodState::of(&pod)
    }

    #[test]
    fn the_kubelet_replaces_nothing_in_what_a_pod_runs() {
        for replaced in ["$$", "$("] {
            assert!(!MAIN.contains(replaced), "{replaced} in {MAIN}");
        }
    }

    #[test]
    fn a_pod_is_ready_when_its_condition_says_so() {
        let condition = json!([{"type": "Ready", "status": "True"}]);
        let mut pod = json!({
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
                "podIP": "10.1.2.3", "conditions": condition},
        });
        let address = Some("10.1.2.3".parse().unwrap());
        assert_eq!(state(pod.clone()), PodState::Ready(address));
        // The condition of a pod that is being deleted may still say so.
        pod["metadata"] = json!({"deletionTimestamp": "2026-01-01T00:00:30Z"});
        assert_eq!(state(pod), PodState::Over("deleted".to_owned()));
    }

    #[test]
    fn what_keeps_a_pod_from_being_ready_is_told() {
        let waiting = json!([{"state": {"waiting":
            {"reason": "ErrImagePull", "message": "no such image"}}}]);
        let pod = json!({
            "spec": {"nodeName": "n1"},
            "status": {"phase": "Pending", "startTime": "2026-01-01T00:00:00Z",
                "containerStatuses": waiting},
        });
        let why = "ErrImagePull: no such image".to_owned();
        assert_eq!(state(pod), PodState::Waits(why));
        let conditions = json!([{"type": "PodScheduled", "status": "False",
            "reason": "Unschedulable", "message": "0/2 nodes are available"}]);
        let pod = json!({"status": {"phase": "Pending", "conditions": conditions}});
        let why = "Unschedulable: 0/2 nodes are available".to_owned();
        assert_eq!(state(pod), PodState::Waits(why));
        let pod = json!({"spec": {"nodeName": "n1"}, "status": {"phase": "Pending"}});
        assert_eq!(state(pod), PodState::Assigned("n1".to_owned()));
        let pod = json!({"status": {"phase": "Failed", "reason": "Evicted", "message": "memory"}});
        let why = "Failed; Evicted: memory".to_owned();
        assert_eq!(state(pod), PodState::Over(why));
    }
}
