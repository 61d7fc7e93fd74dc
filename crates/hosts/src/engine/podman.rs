//! Containers of podman: one that already runs, or one that is created from an image and removed
//! when its agent ends. Neither needs a shell inside.

use std::net::IpAddr;
use std::rc::Rc;

use agent::{AgentError, PipeCommand, Program};
use readings::{ContainerSource, Podman};
use serde_json::json;

use super::access::{HostAccess, Lease};
use super::command::{output_of, owned};

/// Where the program is inside a container of an image.
const PROGRAM: &str = "/weigh";

/// A container that was made for a host.
struct Container {
    name: String,
}

impl Lease for Container {}

impl Drop for Container {
    fn drop(&mut self) {
        // Usually it was already removed when its agent ended.
        let _ = output_of(&["podman", "rm", "--force", "--ignore", &self.name]);
    }
}

pub(super) fn open(
    host: &str,
    podman: &Podman,
    program: &Program,
) -> Result<HostAccess, AgentError> {
    match &podman.source {
        ContainerSource::Container(name) => {
            let inside = format!("/weigh-{}", program.mark());
            let words: [&str; 5] = ["podman", "exec", name, &inside, "--version"];
            if output_of(&words).is_err() {
                let place = format!("{name}:{inside}");
                let path = program.path().display().to_string();
                output_of(&["podman", "cp", &path, &place])?;
            }
            let mut words = owned(&["podman", "exec", "-i"]);
            words.extend(podman.options.iter().cloned());
            words.extend(owned(&[name, &inside, "agent"]));
            Ok(HostAccess {
                address: address_of(name),
                about: json!({ "podman": { "container": name } }),
                ..HostAccess::of(PipeCommand::agent(host, words))
            })
        }
        ContainerSource::Image(image) => {
            let name = format!(
                "weigh-{host}-{}-{:06x}",
                std::process::id(),
                fastrand::u32(..0x100_0000)
            );
            let mount = format!("{}:{PROGRAM}:ro", program.path().display());
            let mut words = owned(&["podman", "run", "--rm", "-i", "--name", &name]);
            words.extend(owned(&["--network=host", "--volume", &mount]));
            words.extend(podman.options.iter().cloned());
            words.extend(owned(&["--entrypoint", PROGRAM, image, "agent"]));
            Ok(HostAccess {
                lease: Some(Rc::new(Container { name })),
                about: json!({ "podman": { "image": image } }),
                ..HostAccess::of(PipeCommand::agent(host, words))
            })
        }
    }
}

/// The address of a container with a network of its own.
fn address_of(container: &str) -> Option<IpAddr> {
    let format = "{{.NetworkSettings.IPAddress}}";
    let printed = output_of(&["podman", "inspect", "--format", format, container]);
    printed.ok()?.trim().parse().ok()
}
