//! Images of containers.

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{BuildError, BuildEvent};

/// An image on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The name as the experiment gives it.
    pub name: String,
    /// The digest of its manifest, or of its content if it has no manifest.
    pub digest: String,
}

/// Finds an image on this machine; pulls it if it is missing.
pub(crate) fn look(
    name: &str,
    stop: &AtomicBool,
    emit: &mut dyn FnMut(BuildEvent<'_>),
) -> Result<Image, BuildError> {
    let programs = [("podman".to_owned(), vec!["podman".to_owned()])];
    let found = installed::look(&programs, &[], &installed::Packages::default(), None, None);
    let Some(podman) = found.programs.get("podman") else {
        return Err(BuildError::NoPodman);
    };
    let ask = |arguments: &[&str]| {
        let output = Command::new(podman)
            .args(arguments)
            .arg(name)
            .stdin(Stdio::null())
            .output();
        let no_image = |why: String| BuildError::NoImage {
            image: name.to_owned(),
            why,
        };
        let output = output.map_err(|e| no_image(e.to_string()))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(no_image(
                String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            )),
        }
    };
    let inspect = [
        "image",
        "inspect",
        "--format",
        "{{.Digest}} sha256:{{.Id}}",
        "--",
    ];
    let described = match ask(&inspect) {
        Ok(described) => described,
        Err(_) => {
            emit(BuildEvent::Pulling { image: name });
            ask(&["pull", "--quiet", "--"])?;
            ask(&inspect)?
        }
    };
    if stop.load(Ordering::Relaxed) {
        return Err(BuildError::Stopped);
    }
    let digest = described.split_whitespace().next().unwrap_or_default();
    Ok(Image {
        name: name.to_owned(),
        digest: digest.to_owned(),
    })
}
