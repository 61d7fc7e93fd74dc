//! What odd servers answer over HTTP/2.

mod frames;
mod rows;

use net::h2::hpack;

use super::Fate::{self, Bad, Broken, Passes};
pub use frames::{CLOSINGS, FRAMES};
pub use rows::{FIELDS, HEADS, LENGTHS};

/// A name and a value.
pub type Field = (&'static [u8], &'static [u8]);

/// Heads, or fields of the last one.
pub struct Row<T: 'static> {
    pub what: &'static str,
    pub of: &'static [T],
    pub balancer: Fate,
    pub load: Fate,
    pub section: &'static str,
}

const fn row<T>(what: &'static str, of: &'static [T], fate: Fate, section: &'static str) -> Row<T> {
    Row {
        what,
        of,
        balancer: fate,
        load: fate,
        section,
    }
}

/// A frame of an answer.
#[derive(Clone, Copy)]
pub enum Frame {
    /// The heads; whether the last of them ends the stream.
    Heads(bool),
    /// The same, in frames of 20 bytes.
    SplitHeads(bool),
    /// Another section of fields.
    Fields(&'static [Field], bool),
    /// The same, on the next stream.
    Elsewhere(&'static [Field], bool),
    Data(&'static str, bool),
    PaddedData(&'static str, bool),
    /// RST_STREAM with this code.
    Reset(u32),
    /// GOAWAY with this code; whether this stream is the last one that is served.
    GoAway(u32, bool),
    /// Type, flags and payload, on the stream or on the connection.
    Raw(u8, u8, &'static [u8]),
    RawOfConnection(u8, u8, &'static [u8]),
    /// The end of the connection.
    Close,
}

/// What follows a head, and when the stream or the connection ends.
pub struct Framing {
    pub what: &'static str,
    pub fields: &'static [Field],
    pub frames: &'static [Frame],
    pub content: &'static str,
    pub balancer: Fate,
    pub load: Fate,
    pub section: &'static str,
    /// Whether an answer that has no content ends with its head instead.
    is_plain: bool,
}

const fn framing(
    what: &'static str,
    fields: &'static [Field],
    frames: &'static [Frame],
    fate: Fate,
    section: &'static str,
) -> Framing {
    Framing {
        what,
        fields,
        frames,
        content: if matches!(fate, Passes) { "hello" } else { "" },
        balancer: fate,
        load: fate,
        section,
        is_plain: false,
    }
}

impl Framing {
    const fn plain(self) -> Self {
        Self {
            is_plain: true,
            ..self
        }
    }

    const fn empty(self) -> Self {
        Self {
            content: "",
            ..self
        }
    }

    const fn over_a_load(self, load: Fate) -> Self {
        let content = if matches!(load, Passes) {
            "hello"
        } else {
            self.content
        };
        Self {
            load,
            content,
            ..self
        }
    }
}

/// An answer: a row of each dimension, to GET or HEAD.
#[derive(Clone, Copy)]
pub struct Response {
    pub is_head: bool,
    pub heads: &'static Row<&'static [Field]>,
    pub fields: &'static Row<Field>,
    pub framing: &'static Framing,
    /// Only so many bytes are sent before the end.
    pub cut: Option<usize>,
}

/// Every row of frames, lengths and closings.
pub fn framings() -> impl Iterator<Item = &'static Framing> + Clone {
    LENGTHS.iter().chain(&FRAMES).chain(&CLOSINGS)
}

/// Every row alone, of pairs every `step`th, and every `cut_step`th place where an answer may end too
/// early.
pub fn all(step: usize, cut_step: usize) -> Vec<Response> {
    let mut all = Vec::new();
    for is_head in [false, true] {
        let plain = Response {
            is_head,
            heads: &HEADS[0],
            fields: &FIELDS[0],
            framing: &LENGTHS[0],
            cut: None,
        };
        all.extend(HEADS.iter().map(|heads| Response { heads, ..plain }));
        all.extend(FIELDS.iter().map(|fields| Response { fields, ..plain }));
        all.extend(framings().map(|framing| Response { framing, ..plain }));
        let mut pairs = Vec::new();
        for heads in &HEADS {
            let one = Response { heads, ..plain };
            pairs.extend(FIELDS.iter().map(|fields| Response { fields, ..one }));
            pairs.extend(framings().map(|framing| Response { framing, ..one }));
        }
        for fields in &FIELDS {
            let one = Response { fields, ..plain };
            pairs.extend(framings().map(|framing| Response { framing, ..one }));
        }
        all.extend(pairs.into_iter().step_by(step));
        let cuts = (0..plain.bytes(1).len()).step_by(cut_step);
        all.extend(cuts.map(|at| Response {
            cut: Some(at),
            ..plain
        }));
    }
    all.retain(Response::is_said);
    all
}

impl Response {
    /// Whether it has no content, whatever its fields say (RFC 9110, 6.4.1).
    pub fn has_no_content(&self) -> bool {
        self.is_head || matches!(self.status(), 101 | 204 | 304)
    }

    /// Frames with content make no sense in an answer without any.
    fn is_said(&self) -> bool {
        self.framing.is_plain || !self.has_no_content()
    }

    /// The status of the final answer; 0 if it has none.
    pub fn status(&self) -> u16 {
        let last = self.heads.of.last().copied().unwrap_or_default();
        let status = last.iter().find(|(name, _)| *name == b":status");
        let digits = status.map_or("", |(_, value)| std::str::from_utf8(value).unwrap());
        digits.parse().unwrap_or(0)
    }

    /// What is sent on a stream.
    pub fn bytes(&self, stream: u32) -> Vec<u8> {
        let mut out = Vec::new();
        match self.has_no_content() && self.framing.is_plain {
            true => self.heads(stream, 16_384, true, &mut out),
            false => {
                for frame in self.framing.frames {
                    self.frame(stream, *frame, &mut out);
                }
            }
        }
        out.truncate(self.cut.unwrap_or(usize::MAX));
        out
    }

    fn frame(&self, stream: u32, frame: Frame, out: &mut Vec<u8>) {
        use net::h2::frame as write;
        match frame {
            Frame::Heads(ends) => self.heads(stream, 16_384, ends, out),
            Frame::SplitHeads(ends) => self.heads(stream, 20, ends, out),
            Frame::Fields(fields, ends) => {
                write::headers(out, stream, &block(fields), ends, 16_384);
            }
            Frame::Elsewhere(fields, ends) => {
                write::headers(out, stream + 2, &block(fields), ends, 16_384);
            }
            Frame::Data(text, ends) => write::data(out, stream, text.as_bytes(), ends),
            Frame::PaddedData(text, ends) => {
                let payload = [&[3], text.as_bytes(), &[0; 3]].concat();
                raw(out, 0, 0x8 | u8::from(ends), stream, &payload);
            }
            Frame::Reset(code) => raw(out, 3, 0, stream, &code.to_be_bytes()),
            Frame::GoAway(code, is_served) => {
                let last = if is_served {
                    stream
                } else {
                    stream.saturating_sub(2)
                };
                raw(
                    out,
                    7,
                    0,
                    0,
                    &[last.to_be_bytes(), code.to_be_bytes()].concat(),
                );
            }
            Frame::Raw(kind, flags, payload) => raw(out, kind, flags, stream, payload),
            Frame::RawOfConnection(kind, flags, payload) => raw(out, kind, flags, 0, payload),
            Frame::Close => {}
        }
    }

    fn heads(&self, stream: u32, frame_max: u32, ends: bool, out: &mut Vec<u8>) {
        for (at, head) in self.heads.of.iter().enumerate() {
            let is_final = at + 1 == self.heads.of.len();
            let fields = match is_final {
                true => [head, self.fields.of, self.framing.fields].concat(),
                false => head.to_vec(),
            };
            let ends = ends && is_final;
            net::h2::frame::headers(out, stream, &block(&fields), ends, frame_max);
        }
    }

    /// Whether the server closes the connection behind it.
    pub fn closes(&self) -> bool {
        let closes = matches!(self.framing.frames.last(), Some(Frame::Close));
        self.cut.is_some() || closes && !(self.has_no_content() && self.framing.is_plain)
    }

    /// The content that reaches a client.
    pub fn content(&self) -> &'static str {
        match self.has_no_content() {
            true => "",
            false => self.framing.content,
        }
    }

    /// What has to become of it, by one row or another; none if it passes.
    pub fn faults(&self, of_load: bool) -> Vec<Fate> {
        let framing = match of_load {
            true => self.framing.load,
            false => self.framing.balancer,
        };
        let of = |balancer, load| if of_load { load } else { balancer };
        let mut faults = vec![
            of(self.heads.balancer, self.heads.load),
            of(self.fields.balancer, self.fields.load),
            match framing {
                // RFC 9113, 8.1.1: it may have any length, of which the balancer takes a valid one.
                Bad if self.has_no_content() && of_load => Passes,
                other => other,
            },
        ];
        if self.cut.is_some() {
            faults.push(Broken);
        }
        faults.retain(|fate| *fate != Passes);
        faults
    }

    /// The rows of which it is made.
    pub fn name(&self) -> String {
        let asked = if self.is_head { "HEAD" } else { "GET" };
        let names = [asked, self.heads.what, self.fields.what, self.framing.what];
        match self.cut {
            Some(at) => format!("{}, end after {at} bytes", names.join(", ")),
            None => names.join(", "),
        }
    }
}

fn block(fields: &[Field]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        hpack::encode(&mut block, name, value);
    }
    block
}

fn raw(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    out.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend_from_slice(&[kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
    out.extend_from_slice(payload);
}
