//! Simulated loads with what they really did.

/// A load with what it really did.
#[derive(Clone, Debug, Default)]
pub struct Run {
    pub connections: u64,
    /// The most requests in flight on each.
    pub depth: u64,
    pub seconds: f64,
    /// Complete answers.
    pub requests: u64,
    /// Of the answers that the tool timed, with connecting where the tool's latency holds it.
    pub latencies_us: Vec<f64>,
    /// Of each latency the part that was connecting.
    pub connecting_us: Vec<f64>,
    /// Of requests that came too late or never.
    pub late_us: Vec<f64>,
    /// How long each connection took to open.
    pub opened_us: Vec<f64>,
    /// How late connections opened that were timed, as their first SYNs were lost.
    pub lost_s: Vec<u32>,
    /// Answers that came too late or never.
    pub late: u64,
    /// Answers with an error status.
    pub wrong: u64,
    pub failed_connects: u64,
    /// Whether the client paused between requests.
    pub pauses: bool,
    /// Whether each request opened a connection.
    pub reopens: bool,
    /// Whether its latencies hardly vary.
    pub steady: bool,
    /// Whether some answers took many times as long.
    pub bimodal: bool,
}

impl Run {
    pub fn rate(&self) -> f64 {
        self.requests as f64 / self.seconds
    }

    /// With those that came too late or never.
    pub fn all(&self) -> u64 {
        self.requests + self.late
    }

    /// The times of all requests, failures included.
    pub fn all_us(&self) -> Vec<f64> {
        [self.latencies_us.as_slice(), &self.late_us].concat()
    }

    /// The share of its time that it was waiting for answers that were timed. As it ends, it gives
    /// up what is on the way.
    pub fn busy(&self, with_late: bool) -> f64 {
        let late_us: f64 = self.late_us.iter().filter(|_| with_late).sum();
        let sum_us = self.latencies_us.iter().sum::<f64>() + late_us;
        sum_us / (self.seconds * 1e6 * self.connections as f64)
    }

    pub fn is_plain(&self) -> bool {
        self.busy(false) > 0.9
            && self.late + self.wrong + self.failed_connects == 0
            && self.lost_s.is_empty()
            && !self.pauses
            && !self.steady
    }
}

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Above 0, up to 1.
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.bits() % n
    }

    /// Evenly between on a logarithmic scale.
    fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    fn normal(&mut self) -> f64 {
        let angle = std::f64::consts::TAU * self.unit();
        (-2.0 * self.unit().ln()).sqrt() * angle.cos()
    }
}

/// What a tool can do and print.
#[derive(Clone, Copy, Default)]
pub struct Can {
    pub depth: bool,
    pub pauses: bool,
    pub late: bool,
    pub wrong: bool,
    pub failed_connects: bool,
    /// A late answer counts as an answer too.
    pub late_answers: bool,
    /// Its latency runs from before a connection is opened.
    pub times_opening: bool,
    /// It may open a connection for each request.
    pub reopens: bool,
}

/// A load; `loses` says whether SYNs may be lost.
pub fn run(random: &mut Random, can: Can, loses: bool) -> Run {
    let one_in = |random: &mut Random, can: bool, n: u64| can && random.below(n) == 0;
    let loses = one_in(random, loses, 5);
    let connections = 1 + random.below(12);
    let depth = match one_in(random, can.depth && !loses, 3) {
        true => 2 + random.below(15),
        false => 1,
    };
    let pauses = one_in(random, can.pauses, 5);
    let failed_connects = match one_in(random, can.failed_connects, 5) {
        true => random.below(connections),
        false => 0,
    };
    let shape = random.below(4);
    let median_us = match loses {
        true => random.between(5e4, 1.5e5),
        false => random.between(120.0, if shape == 3 { 3e6 } else { 5e4 }),
    };
    let sigma = match shape {
        0 => 0.01 + 0.03 * random.unit(),
        _ => 0.2 + 0.6 * random.unit(),
    };
    let slow = (shape == 2).then(|| 5.0 + 30.0 * random.unit());
    let limit_us = match one_in(random, can.late && !loses, 4) {
        true => median_us * 4.0,
        false => f64::INFINITY,
    };
    let rounds = 25 + random.below(40);
    let longest_s = if loses { 5.0 } else { 0.0 };
    let seconds = (rounds as f64 * median_us / 1e6).max(longest_s);
    let mut done = Run {
        connections,
        depth,
        seconds: (seconds * 100.0).ceil() / 100.0,
        failed_connects,
        pauses,
        reopens: one_in(random, can.reopens, 2),
        steady: shape == 0,
        bimodal: shape == 2,
        ..Run::default()
    };
    let lost_share = match (loses, done.reopens) {
        (false, _) => 0.0,
        (true, false) => 0.3,
        (true, true) => 0.05,
    };
    let round_trip_us = 0.2 * median_us * random.unit();
    for _ in 0..connections - failed_connects {
        let mut at_us = 0.0;
        let mut is_open = false;
        loop {
            let (mut opening_us, mut lost_s) = (0.0, 0);
            if !is_open || done.reopens {
                lost_s = match random.unit() {
                    share if share <= lost_share / 4.0 => 3,
                    share if share <= lost_share => 1,
                    _ => 0,
                };
                opening_us = round_trip_us + f64::from(lost_s) * 1e6;
            }
            let mut us = median_us * (sigma * random.normal()).exp();
            if let Some(times) = slow
                && random.below(7) == 0
            {
                us *= times;
            }
            let opened = !is_open || done.reopens;
            is_open = true;
            // What the tool times.
            let timed_us = if can.times_opening {
                us + opening_us
            } else {
                us
            };
            let is_late = timed_us > limit_us;
            // A late answer is waited for where it counts as one.
            let lasts_us = match is_late && !can.late_answers {
                true => limit_us,
                false => us + opening_us,
            };
            at_us += lasts_us;
            if at_us > done.seconds * 1e6 {
                break;
            }
            if opened {
                done.opened_us.push(opening_us);
                done.lost_s.extend((lost_s > 0).then_some(lost_s));
            }
            if is_late {
                done.late += depth;
                done.late_us.push(lasts_us);
                done.requests += if can.late_answers { depth } else { 0 };
            } else {
                // Those of a pipeline are timed together.
                done.latencies_us.push(timed_us);
                done.connecting_us.push(opening_us);
                done.requests += depth;
            }
            if pauses {
                at_us += median_us * 3.0 * random.unit();
            }
        }
    }
    if one_in(random, can.wrong, 4) {
        done.wrong = random.below(done.requests + 1);
    }
    done
}
