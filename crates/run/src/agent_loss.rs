//! What of a run's own parts has died meanwhile.

use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::agents::Agents;

/// A process that dies takes what it holds with it, a moment before it is seen to be gone.
const SEEN_AFTER: Duration = Duration::from_millis(200);
const LOOK: Duration = Duration::from_millis(10);

impl Agents {
    /// What has died of what the trials need, a sentence fragment; it is looked for a little longer
    /// when something has `failed`.
    pub(super) fn lost_part(&mut self, failed: bool) -> Option<String> {
        let end = Instant::now() + SEEN_AFTER;
        loop {
            let lost = self.lost_links().or_else(|| self.lost_agent());
            if lost.is_some() || !failed || Instant::now() >= end {
                return lost;
            }
            sleep(LOOK);
        }
    }

    fn lost_links(&mut self) -> Option<String> {
        let topology = self.topology.as_mut()?;
        let lost = topology.has_lost_its_links();
        lost.then(|| "the process that holds the links was lost".to_owned())
    }

    /// An agent takes the servers with it that it has started.
    fn lost_agent(&mut self) -> Option<String> {
        let apart = self.is_world();
        self.all_agents().find_map(|(host, agent)| {
            let why = agent.gone()?;
            Some(match apart {
                true => format!("host `{host}`: {why}"),
                false => why.to_string(),
            })
        })
    }
}
