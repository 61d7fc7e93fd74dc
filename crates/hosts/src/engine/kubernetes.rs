//! Pods of Kubernetes, one for each host.

use std::rc::Rc;

use agent::{AgentError, PipeCommand};
use readings::Kubernetes;
use serde_json::json;

use super::access::{HostAccess, Lease};
use super::command::{output_of, owned};

/// How long a pod may take to become ready.
const READY: &str = "--timeout=180s";
/// What a pod runs. Its end limits what a lost run leaves behind.
const LASTS_S: &str = "86400";

/// A pod that was made for a host.
struct Pod {
    name: String,
    namespace: Option<String>,
}

impl Lease for Pod {}

impl Pod {
    /// `kubectl` with the pod's namespace.
    fn kubectl(&self, words: &[&str]) -> Vec<String> {
        let mut command = owned(&["kubectl"]);
        command.extend(self.namespace.iter().map(|it| format!("--namespace={it}")));
        command.extend(owned(words));
        command
    }

    fn call(&self, words: &[String]) -> Result<String, AgentError> {
        output_of(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        let words: [&str; 5] = [
            "delete",
            "pod",
            &self.name,
            "--ignore-not-found",
            "--wait=false",
        ];
        // If that fails, the pod ends by itself.
        let _ = self.call(&self.kubectl(&words));
    }
}

pub(super) fn open(host: &str, kubernetes: &Kubernetes) -> Result<HostAccess, AgentError> {
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
    let mut run = pod.kubectl(&["run", &pod.name, &image, "--restart=Never"]);
    run.push("--labels=app=weigh".to_owned());
    run.extend(kubernetes.options.iter().cloned());
    run.extend(owned(&["--command", "--", "sleep", LASTS_S]));
    pod.call(&run)?;
    let about = format!("pod/{}", pod.name);
    pod.call(&pod.kubectl(&["wait", "--for=condition=Ready", &about, READY]))?;
    let path = "jsonpath={.status.podIP}";
    let address = pod.call(&pod.kubectl(&["get", "pod", &pod.name, "--output", path]))?;
    let words = pod.kubectl(&["exec", "-i", &pod.name, "--"]);
    Ok(HostAccess {
        address: address.trim().parse().ok(),
        about: json!({ "kubernetes": { "pod": pod.name, "image": kubernetes.image } }),
        lease: Some(Rc::new(pod)),
        ..HostAccess::of(PipeCommand::shell(host, words))
    })
}
