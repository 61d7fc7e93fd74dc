//! Fake links between hosts.

use agent::AgentError;
use hosts::{HostsByName, Links};
use readings::{LinkKind, LinkSpec};

use super::SharedScript;

/// Links whose changes are only logged.
pub(crate) struct FakeLinks(SharedScript);

impl FakeLinks {
    pub(crate) fn of(script: &SharedScript) -> Box<dyn Links> {
        Box::new(Self(script.clone()))
    }
}

impl Links for FakeLinks {
    fn kind(&self) -> LinkKind {
        LinkKind::UserSpace
    }

    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    fn late(&mut self) -> Vec<String> {
        Vec::new()
    }

    fn scale_rates(&mut self, _: &mut HostsByName, _: f64) -> Result<(), AgentError> {
        Ok(())
    }

    fn change(
        &mut self,
        _: &mut HostsByName,
        host: &str,
        spec: Option<LinkSpec>,
    ) -> Result<(), AgentError> {
        let link = spec.map(|spec| format!("{} ms, {}", spec.rtt_ns / 1_000_000, spec.loss));
        let link = link.unwrap_or_else(|| "as declared".to_owned());
        self.0.borrow_mut().log.push(format!("link {host} {link}"));
        Ok(())
    }

    fn are_lost(&mut self) -> bool {
        false
    }
}
