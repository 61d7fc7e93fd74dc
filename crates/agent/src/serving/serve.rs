//! The agent's side of the pipe: reads orders, and answers them in turn.

use std::io::{self, BufRead, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::Duration;

use net::os::{StartThreadError, start_thread};

use super::orders::carry_out;
use super::servers::Servers;
use crate::protocol::pipe::{
    self, FrameReader, FrameSender, Incoming, Kind, Liveness, PipeFault, Side,
};
use crate::protocol::wire::{Answer, Order};

/// The most bytes of an order: a configuration with its files.
const ORDER_BYTES_MAX: usize = 256 << 20;
/// How long sending the last frames may take.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);

/// What comes in through the pipe.
enum Event {
    Order(Box<Result<Order, String>>),
    /// The coordinator has ended the conversation.
    End,
    /// The pipe or the coordinator is gone.
    Gone,
    /// The pipe had a fault: what came cannot be trusted.
    Fault(PipeFault),
}

/// Carries orders out until the coordinator ends the conversation, the input ends or brings no
/// heartbeat any more, or something can be read from `termination`; then kills everything that was
/// started and undoes what was changed.
///
/// # Errors
/// When the folder for the servers cannot be made, or the input was damaged on the way.
pub fn serve(
    input: impl BufRead + Send + 'static,
    output: impl Write + Send + 'static,
    mut termination: impl Read + Send + 'static,
) -> io::Result<()> {
    net::os::adopt_orphans();
    net::os::raise_open_files();
    let mut servers = Servers::new()?;
    let liveness = Arc::new(Liveness::default());
    let (sender, events) = mpsc::channel();
    let conversation = Conversation {
        sender,
        stop: Arc::default(),
        ended: Arc::default(),
    };
    let give_up = {
        let conversation = conversation.clone();
        move || conversation.end(Event::Gone)
    };
    let interval = pipe::limit() / pipe::BEATS;
    let frames = FrameSender::start(output, Side::Agent, interval, give_up.clone())?;
    let started = read_orders(input, conversation.clone(), liveness.clone()).and_then(|()| {
        let terminate = give_up.clone();
        let wait = move || {
            if matches!(termination.read(&mut [0]), Ok(1..)) {
                terminate();
            }
        };
        start_thread("which waits for a signal", wait).map(drop)
    });
    if let Err(error) = started {
        // The coordinator learns why the pipe ends.
        let reason = error.to_string();
        let _ = send_answer(&frames, &Answer::Failed { reason });
        frames.finish(LEAVES_WITHIN);
        return Err(error.into());
    }
    let result = AgentSession {
        servers: &mut servers,
        stop: &conversation.stop,
        ended: &conversation.ended,
        frames: &frames,
        silence: Some(Box::new(|limit| pipe::watch(&liveness, limit, give_up))),
    }
    .work(&events);
    servers.kill_all();
    drop(servers);
    match result {
        Ended::Confirmed => {
            // The end is confirmed only now, when nothing that was started is left.
            let _ = frames.send(Kind::End, Vec::new());
            frames.finish(LEAVES_WITHIN);
            Ok(())
        }
        Ended::Gone => Ok(()),
        Ended::Fault => {
            frames.finish(LEAVES_WITHIN);
            Err(io::Error::other("the pipe to the coordinator is at fault"))
        }
    }
}

/// How a conversation ended.
enum Ended {
    Confirmed,
    Gone,
    Fault,
}

/// What is known of a conversation on all its threads.
#[derive(Clone)]
struct Conversation {
    sender: Sender<Event>,
    /// Cuts a load short.
    stop: Arc<AtomicBool>,
    /// Nothing is waited for any more.
    ended: Arc<AtomicBool>,
}

impl Conversation {
    fn end(&self, event: Event) {
        self.ended.store(true, Ordering::Relaxed);
        self.stop.store(true, Ordering::Relaxed);
        // Fails only where all is over.
        let _ = self.sender.send(event);
    }
}

/// Reads orders on a thread of its own.
///
/// # Errors
/// When it cannot be started.
fn read_orders(
    input: impl BufRead + Send + 'static,
    conversation: Conversation,
    liveness: Arc<Liveness>,
) -> Result<(), StartThreadError> {
    start_thread("which reads orders", move || {
        let mut frames = FrameReader::new(input, Side::Coordinator, ORDER_BYTES_MAX);
        let last = loop {
            let frame = frames.read();
            liveness.frame_came();
            let order = match frame {
                Ok(Incoming::Heartbeat) => continue,
                Ok(Incoming::Message(message)) => {
                    serde_json::from_str::<Order>(&message).map_err(|e| e.to_string())
                }
                Ok(Incoming::End) => break Event::End,
                Ok(Incoming::Foreign(text)) => break Event::Fault(PipeFault::Foreign { text }),
                Ok(Incoming::Fault(_)) | Err(PipeFault::Ended { .. }) => break Event::Gone,
                Err(fault) => break Event::Fault(fault),
            };
            if order == Ok(Order::Cancel) {
                conversation.stop.store(true, Ordering::Relaxed);
            } else if conversation
                .sender
                .send(Event::Order(Box::new(order)))
                .is_err()
            {
                return;
            }
        };
        conversation.end(last);
    })?;
    Ok(())
}

type LimitSilence<'a> = dyn FnOnce(Duration) -> Result<(), StartThreadError> + 'a;

struct AgentSession<'a> {
    servers: &'a mut Servers,
    stop: &'a Arc<AtomicBool>,
    ended: &'a AtomicBool,
    frames: &'a FrameSender,
    /// Limits the coordinator's silence.
    silence: Option<Box<LimitSilence<'a>>>,
}

impl AgentSession<'_> {
    fn work(mut self, events: &Receiver<Event>) -> Ended {
        for event in events {
            let order = match event {
                Event::Order(order) => *order,
                Event::End => return Ended::Confirmed,
                Event::Gone => return Ended::Gone,
                Event::Fault(fault) => {
                    let reason = fault.to_string().into_bytes();
                    // If that does not arrive either, the coordinator sees the end of the pipe.
                    let _ = self.frames.send(Kind::Fault, reason);
                    return Ended::Fault;
                }
            };
            let done = match order {
                Err(e) => Err(format!("not an order: {e}")),
                Ok(order) => self.carry_out(order),
            };
            let answer = done.unwrap_or_else(|reason| Answer::Failed { reason });
            if send_answer(self.frames, &answer).is_err() {
                return Ended::Gone;
            }
        }
        Ended::Gone
    }

    fn carry_out(&mut self, order: Order) -> Result<Answer, String> {
        self.limit_silence(&order)
            .map_err(|error| error.to_string())?;
        let frames = self.frames;
        carry_out(order, self.servers, self.stop, self.ended, &mut |answer| {
            // A closed output is reported as an event.
            let _ = send_answer(frames, &answer);
        })
    }

    fn limit_silence(&mut self, order: &Order) -> Result<(), StartThreadError> {
        if let Order::Hello {
            silence_ms: Some(silence_ms),
            ..
        } = order
            && let Some(limit) = self.silence.take()
        {
            let silence = Duration::from_millis(*silence_ms);
            self.frames.beat_every(silence / pipe::BEATS);
            limit(silence)?;
        }
        Ok(())
    }
}

fn send_answer(frames: &FrameSender, answer: &Answer) -> io::Result<()> {
    frames.send(Kind::Message, serde_json::to_vec(answer)?)
}
