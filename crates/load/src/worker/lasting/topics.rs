//! Topics: what their first member sends at a pace, all members are to receive.
//!
//! A member is to receive what is sent while it is open. So what reaches the members is known exactly,
//! and a segment waits for it at its end.

use std::ops::Range;

use net::Io;

use crate::exchange::Kind;
use crate::exchange::stamp::Stamp;
use crate::job::traffic::WebSocket;
use crate::ns;
use crate::pacing::Pacer;
use crate::pacing::clock::Clock;
use crate::pacing::stop::StopRule;
use crate::progress::LoadError;
use crate::worker::Worker;
use crate::worker::multiplexed::{Carrier, LinkState};
use crate::worker::segment::SegmentRun;

/// The topics of a thread in a segment.
#[derive(Debug)]
pub(in crate::worker) struct Topics {
    /// The link of the first member of the first topic.
    first: usize,
    members: usize,
    start: u64,
    every_ns: u64,
    /// Messages that have become due, over all topics in turn.
    due: u64,
    /// Messages sent, by topic.
    sent: Vec<u64>,
    heard: Vec<Heard>,
    last_sent: u64,
}

/// What a member has received since it is open.
#[derive(Clone, Copy, Debug, Default)]
struct Heard {
    /// The number of the first message that it is to receive.
    from: u64,
    count: u64,
}

impl Topics {
    /// When the next message is due.
    pub(in crate::worker) fn next_ns(&self) -> u64 {
        let all = u128::from(self.due) * u128::from(self.every_ns) / self.sent.len() as u128;
        self.start
            .saturating_add(u64::try_from(all).unwrap_or(u64::MAX))
    }

    fn topic_of(&self, link: usize) -> usize {
        (link - self.first) / self.members
    }

    fn members_of(&self, topic: usize) -> Range<usize> {
        let first = self.first + topic * self.members;
        first..first + self.members
    }

    /// The link that sends to a member's topic.
    fn sender_of(&self, link: usize) -> usize {
        self.members_of(self.topic_of(link)).start
    }

    /// Whether a message is one that a member is to receive.
    pub(in crate::worker) fn expects(&self, link: usize, number: u64) -> bool {
        let sent = self.sent[self.topic_of(link)];
        (self.heard[link - self.first].from..sent).contains(&number)
    }

    /// A member has received one, for the first time.
    pub(in crate::worker) fn reached(&mut self, link: usize) {
        self.heard[link - self.first].count += 1;
    }

    /// Whether a member is still to receive something.
    fn is_awaited(&self, link: usize) -> bool {
        let Heard { from, count } = self.heard[link - self.first];
        from + count < self.sent[self.topic_of(link)]
    }
}

impl<I: Io, C: Clock, K: Kind> Worker<I, C, K> {
    /// The links of a target.
    fn links_of(&self, target: usize) -> Range<usize> {
        let is_own = |number: &usize| self.links[*number].target == target;
        let own = (0..self.links.len()).filter(is_own);
        own.fold(0..0, |all, number| match all.is_empty() {
            true => number..number + 1,
            false => all.start..number + 1,
        })
    }

    /// The topics of a target, for a segment that begins at a time.
    pub(in crate::worker) fn topics(&self, target: usize, start: u64) -> Option<Box<Topics>> {
        let websocket = self.job.targets[target].traffic.websocket();
        let (members, every) = websocket.and_then(WebSocket::fan_out)?;
        let (links, members) = (self.links_of(target), members as usize);
        Some(Box::new(Topics {
            first: links.start,
            members,
            start,
            every_ns: ns(every),
            due: 0,
            sent: vec![0; links.len() / members],
            heard: vec![Heard::default(); links.len()],
            last_sent: start,
        }))
        .filter(|topics| !topics.sent.is_empty())
    }

    /// The number of a link's topic over all threads; `None` where there is one topic, or none.
    pub(in crate::worker) fn topic_number(&self, link: usize) -> Option<usize> {
        let target = self.links[link].target;
        let settings = &self.job.targets[target];
        let (members, _) = settings.traffic.websocket().and_then(WebSocket::fan_out)?;
        let (links, members) = (self.links_of(target), members as usize);
        let before = self.job.number_of(self.thread) * links.len() / members;
        let has_several = settings.connections as usize > members;
        has_several.then(|| before + (link - links.start) / members + 1)
    }
}

impl<I: Io, C: Clock, K: Kind, P: Pacer, S: StopRule> SegmentRun<'_, I, C, K, P, S> {
    /// Sends the messages of topics that are due. Those of a sender that is not open wait.
    ///
    /// # Errors
    /// When more wait than are kept.
    pub(in crate::worker) fn publish_due(&mut self) -> Result<(), LoadError> {
        while let (Some(topics), Some(turns)) = (&mut self.topics, &mut self.turns) {
            let due = topics.next_ns();
            if due > self.now || due >= self.window.end {
                break;
            }
            topics.due += 1;
            let sender = turns.push(due)?;
            self.publish(sender);
        }
        Ok(())
    }

    /// Sends what waits for a sender, if it is open.
    fn publish(&mut self, sender: usize) {
        while let (Some(topics), Some(turns)) = (&mut self.topics, &mut self.turns)
            && self.worker.links[sender].state == LinkState::Open
            && let Some(due_ns) = turns.next_of(sender)
        {
            let topic = topics.topic_of(sender);
            let number = topics.sent[topic];
            let session = &mut self.worker.links[sender].session;
            let Some(Carrier::WebSocket(session)) = session else {
                return;
            };
            if !session.flow.publish(Stamp { number, due_ns }) {
                return;
            }
            turns.sent(sender);
            topics.sent[topic] += 1;
            let now = self.worker.clock.now_ns();
            topics.last_sent = now;
            self.has_sent = true;
            let members = &self.worker.links[topics.members_of(topic)];
            let open = members.iter().filter(|link| link.state == LinkState::Open);
            let reached = open.count() as u64;
            let recorder = &mut self.worker.recorders[self.recorder];
            if self.window.contains(due_ns) {
                recorder.schedule_lag.record_ns(now.saturating_sub(due_ns));
                if let Some(messages) = &mut recorder.messages {
                    messages.expected += reached;
                }
            }
            self.worker.dirty(sender);
        }
    }

    /// A member of a topic has opened: it is to receive what is sent from now on.
    pub(in crate::worker) fn joined(&mut self, link: usize) {
        let Some(topics) = &mut self.topics else {
            return;
        };
        let from = topics.sent[topics.topic_of(link)];
        topics.heard[link - topics.first] = Heard { from, count: 0 };
        if topics.sender_of(link) == link {
            self.publish(link);
        }
    }

    /// Whether members that are open are still to receive something, and the time limit for it since
    /// the last message was sent is not over.
    pub(in crate::worker) fn awaits_deliveries(&self, limit_ns: u64) -> bool {
        let Some(topics) = &self.topics else {
            return false;
        };
        let links = topics.first..topics.first + topics.heard.len();
        let mut open = links.filter(|link| self.worker.links[*link].state == LinkState::Open);
        self.now <= topics.last_sent.saturating_add(limit_ns)
            && open.any(|link| topics.is_awaited(link))
    }
}
