//! What became of connections that a load held open without using them.

use serde::{Deserialize, Serialize};

use crate::sums::add_count;

/// How a server ended a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdleEnd {
    /// In an orderly way: FIN, with TLS `close_notify`.
    Closed,
    Reset,
    /// Otherwise, such as by an end without `close_notify`.
    Failed,
}

/// Idle connections that the server ended in one way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleClosed {
    pub how: IdleEnd,
    pub count: u64,
    pub first_after_s: f64,
    pub last_after_s: f64,
}

/// Idle connections to one target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleReading {
    pub connections: u64,
    /// Whether nothing was sent on them; otherwise each had one request.
    pub is_silent: bool,
    pub opened: u64,
    /// Attempts to open one that failed; others took their place.
    pub failed: u64,
    /// Time that opening took, s.
    pub opening_s: f64,
    pub open_at_end: u64,
    /// Pings that were sent on them, and those that the server has answered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pings: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pongs: u64,
    /// Those that the server ended; empty where it ended none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub closed: Vec<IdleClosed>,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl IdleReading {
    /// Those that the server ended.
    pub fn closed_count(&self) -> u64 {
        self.closed.iter().map(|one| one.count).sum()
    }

    /// Counts a connection that the server ended after it had been idle for some time.
    pub fn close(&mut self, how: IdleEnd, after_s: f64) {
        self.add_closed(&IdleClosed {
            how,
            count: 1,
            first_after_s: after_s,
            last_after_s: after_s,
        });
    }

    /// Adds those of another thread or host.
    pub fn add(&mut self, other: &IdleReading) {
        add_count(&mut self.connections, other.connections);
        self.is_silent |= other.is_silent;
        add_count(&mut self.opened, other.opened);
        add_count(&mut self.failed, other.failed);
        self.opening_s = self.opening_s.max(other.opening_s);
        add_count(&mut self.open_at_end, other.open_at_end);
        add_count(&mut self.pings, other.pings);
        add_count(&mut self.pongs, other.pongs);
        other.closed.iter().for_each(|one| self.add_closed(one));
    }

    fn add_closed(&mut self, other: &IdleClosed) {
        match self.closed.iter_mut().find(|one| one.how == other.how) {
            Some(one) => {
                add_count(&mut one.count, other.count);
                one.first_after_s = one.first_after_s.min(other.first_after_s);
                one.last_after_s = one.last_after_s.max(other.last_after_s);
            }
            None => self.closed.push(*other),
        }
    }
}

/// What a server's processes hold at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerState {
    /// Memory in user space: their proportional set sizes together, bytes.
    pub memory_bytes: u64,
    /// Memory of its control group, that of the kernel included, bytes; absent where it has none of
    /// its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_bytes: Option<u64>,
    pub files: u64,
    /// CPU time so far, s.
    pub cpu_s: f64,
    pub processes: u32,
}

/// A server with a number of idle connections.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleStage {
    pub connections: u64,
    /// Whether the connections had been held and closed before.
    pub is_after: bool,
    /// At the end of a pause without any request.
    pub server: ServerState,
    /// CPU time that the server took in that pause, as a share of one CPU.
    pub cpu_share: f64,
}

/// Idle connections that `weigh load` held, and what they cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IdleHeld {
    #[serde(flatten)]
    pub reading: IdleReading,
    pub held_s: f64,
    /// The server, such as `nginx:8080`, where it is one of this machine.
    pub server: Option<String>,
    /// The server's state by number of connections, and after their end; empty where it is not of
    /// this machine.
    pub stages: Vec<IdleStage>,
    /// Memory of this program that each connection took, in user space, bytes.
    pub own_bytes_per_connection: f64,
}

impl IdleHeld {
    /// The memory of the server by number of connections, while they were open.
    pub fn memory(&self) -> Vec<(f64, f64)> {
        let stages = self.stages.iter().filter(|one| !one.is_after);
        let points = stages.map(|one| (one.connections as f64, one.server.memory_bytes as f64));
        points.collect()
    }

    /// The share of the memory that came with the connections which went with them, 0 to 1; `None`
    /// where none came.
    pub fn given_back(&self) -> Option<f64> {
        let open = self.memory();
        let (first, last) = (open.first()?.1, open.last()?.1);
        let after = self.stages.iter().find(|one| one.is_after)?;
        let back = (last - after.server.memory_bytes as f64) / (last - first);
        (last > first).then(|| back.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up_and_ends_are_told_apart() {
        let mut sum = IdleReading {
            connections: 5,
            opened: 5,
            opening_s: 0.5,
            ..IdleReading::default()
        };
        sum.close(IdleEnd::Closed, 5.0);
        let mut other = sum.clone();
        other.close(IdleEnd::Closed, 4.0);
        other.close(IdleEnd::Reset, 1.0);
        sum.add(&other);
        assert_eq!((sum.connections, sum.opened, sum.opening_s), (10, 10, 0.5));
        assert_eq!(sum.closed_count(), 4);
        let closed = sum.closed[0];
        assert_eq!((closed.how, closed.count), (IdleEnd::Closed, 3));
        assert_eq!((closed.first_after_s, closed.last_after_s), (4.0, 5.0));
    }

    #[test]
    fn what_comes_back_is_a_share_of_what_came() {
        let stage = |connections, memory_bytes, is_after| IdleStage {
            connections,
            is_after,
            server: ServerState {
                memory_bytes,
                ..ServerState::default()
            },
            cpu_share: 0.0,
        };
        let mut held = IdleHeld {
            stages: vec![
                stage(0, 100, false),
                stage(10, 300, false),
                stage(0, 150, true),
            ],
            ..IdleHeld::default()
        };
        assert_eq!(held.memory(), [(0.0, 100.0), (10.0, 300.0)]);
        assert_eq!(held.given_back(), Some(0.75));
        held.stages[1].server.memory_bytes = 100;
        assert_eq!(held.given_back(), None);
    }
}
