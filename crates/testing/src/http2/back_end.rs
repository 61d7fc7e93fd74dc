//! HTTP/2 servers that can send any frames.

use std::collections::{BTreeSet, VecDeque};
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use net::h2::{ErrorCode, Event, FrameReader, frame, hpack};

use super::Windows;

/// Something that the client has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Got {
    Head {
        stream: u32,
        fields: Vec<(String, String)>,
        end: bool,
    },
    Data {
        stream: u32,
        bytes: Vec<u8>,
        end: bool,
    },
    Trailers {
        stream: u32,
        fields: Vec<(String, String)>,
    },
    Reset {
        stream: u32,
        code: ErrorCode,
    },
    GoAway(ErrorCode),
}

impl Got {
    /// The stream of the request that ends with it, if one does.
    pub fn ended(&self) -> Option<u32> {
        match self {
            Self::Head { stream, end, .. } | Self::Data { stream, end, .. } => {
                end.then_some(*stream)
            }
            Self::Trailers { stream, .. } => Some(*stream),
            Self::Reset { .. } | Self::GoAway(_) => None,
        }
    }
}

/// The value of a field.
pub fn value<'f>(fields: &'f [(String, String)], name: &str) -> &'f str {
    let found = fields.iter().find(|(field, _)| field == name);
    found.map_or("", |(_, value)| value)
}

/// A connection from a client.
pub struct Link {
    pub stream: TcpStream,
    pub out: Vec<u8>,
    reader: FrameReader,
    decoder: hpack::Decoder,
    queue: VecDeque<Got>,
    begun: BTreeSet<u32>,
    windows: Windows,
    pub answers_pings: bool,
    pub opens_windows: bool,
}

impl Link {
    fn new(stream: TcpStream, settings: &[(u16, u32)]) -> Self {
        stream.set_nodelay(true).unwrap();
        let mut out = Vec::new();
        frame::settings(&mut out, settings);
        Self {
            stream,
            out,
            reader: FrameReader::of_server(16_384, 65_536),
            decoder: hpack::Decoder::new(4096, 65_536),
            queue: VecDeque::new(),
            begun: BTreeSet::new(),
            windows: Windows::default(),
            answers_pings: true,
            opens_windows: true,
        }
    }

    pub fn flush(&mut self) {
        // The client may have closed already.
        let _ = self.stream.write_all(&self.out);
        self.out.clear();
    }

    /// Sends what is in `out`, and waits for what comes next; `None` at the end.
    pub fn receive(&mut self) -> Option<Got> {
        let mut input = [0; 65_536];
        loop {
            self.flush();
            if let Some(got) = self.queue.pop_front() {
                return Some(got);
            }
            match super::read(&mut self.stream, &mut input) {
                Ok(n @ 1..) => self.take(&input[..n]),
                _ => return None,
            }
        }
    }

    /// The stream and fields of the next request; its content is not awaited.
    pub fn request(&mut self) -> Option<(u32, Vec<(String, String)>)> {
        loop {
            if let Got::Head { stream, fields, .. } = self.receive()? {
                return Some((stream, fields));
            }
        }
    }

    fn take(&mut self, input: &[u8]) {
        let Self {
            reader,
            decoder,
            queue,
            out,
            begun,
            answers_pings,
            opens_windows,
            windows,
            ..
        } = self;
        let fed = reader.feed(input, |event| {
            match event {
                Event::Headers {
                    stream,
                    end_stream,
                    block,
                } => {
                    let fields = super::fields(decoder, block)?;
                    queue.push_back(match begun.insert(stream) {
                        true => Got::Head {
                            stream,
                            fields,
                            end: end_stream,
                        },
                        false => Got::Trailers { stream, fields },
                    });
                }
                Event::Data {
                    stream,
                    bytes,
                    flow,
                    end_stream,
                } => {
                    queue.push_back(Got::Data {
                        stream,
                        bytes: bytes.to_vec(),
                        end: end_stream,
                    });
                    if *opens_windows && flow > 0 {
                        frame::window_update(out, 0, flow);
                        frame::window_update(out, stream, flow);
                    }
                }
                Event::Reset { stream, code } => queue.push_back(Got::Reset {
                    stream,
                    code: ErrorCode::of(code).unwrap(),
                }),
                Event::GoAway { code, .. } => {
                    queue.push_back(Got::GoAway(ErrorCode::of(code).unwrap()));
                }
                Event::WindowUpdate { stream, increment } => {
                    windows.open(stream, increment);
                }
                Event::Settings { ack: false, .. } => frame::settings_ack(out),
                Event::Ping { ack: false, data } if *answers_pings => frame::ping_ack(out, data),
                _ => {}
            }
            Ok(())
        });
        fed.unwrap();
    }

    pub fn head(&mut self, stream: u32, fields: &[(&str, &str)], end: bool) {
        frame::headers(&mut self.out, stream, &hpack::block(fields), end, 16_384);
    }

    pub fn data(&mut self, stream: u32, bytes: &[u8], end: bool) {
        for piece in bytes.chunks(16_384) {
            frame::data(&mut self.out, stream, piece, false);
        }
        if end {
            frame::data(&mut self.out, stream, &[], true);
        }
    }

    /// Sends content until the windows have stayed closed for half a second. Returns its length.
    pub fn fill(&mut self, stream: u32) -> usize {
        self.stream
            .set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        let mut sent = 0;
        loop {
            let count = self.windows.take(stream);
            if count > 0 {
                self.data(stream, &vec![b'x'; count], false);
                self.flush();
                sent += count;
                continue;
            }
            let mut input = [0; 65_536];
            match super::read(&mut self.stream, &mut input) {
                Ok(n @ 1..) => self.take(&input[..n]),
                _ => return sent,
            }
        }
    }

    /// Sends content on these streams as far as the windows allow.
    pub fn pour(&mut self, streams: &BTreeSet<u32>) {
        for stream in streams {
            loop {
                match self.windows.take(*stream) {
                    0 => break,
                    count => self.data(*stream, &[b'x'; 16_384][..count], false),
                }
                self.flush();
            }
        }
    }

    /// Queues a whole response, with a `content-length`.
    pub fn answer(&mut self, stream: u32, body: &str) {
        let length = body.len().to_string();
        self.head(
            stream,
            &[(":status", "200"), ("content-length", &length)],
            false,
        );
        self.data(stream, body.as_bytes(), true);
    }
}

pub struct BackEnd {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl BackEnd {
    /// One that does as told with each connection, which are numbered from 0.
    pub fn new(
        settings: &'static [(u16, u32)],
        serve: impl Fn(&mut Link, usize) + Send + Sync + 'static,
    ) -> Self {
        let connections: Arc<AtomicUsize> = Arc::default();
        let counted = connections.clone();
        let address = crate::serve(move |stream| {
            let number = counted.fetch_add(1, Ordering::SeqCst);
            serve(&mut Link::new(stream, settings), number);
        });
        Self {
            address,
            connections,
        }
    }

    /// One that answers each request, once it is complete, with a name and the path.
    pub fn named(name: &'static str) -> Self {
        Self::new(&[], move |link, _| {
            let mut open = std::collections::BTreeMap::new();
            while let Some(got) = link.receive() {
                if let Got::Head { stream, fields, .. } = &got {
                    open.insert(*stream, value(fields, ":path").to_owned());
                }
                if let Some(stream) = got.ended()
                    && let Some(path) = open.remove(&stream)
                {
                    link.answer(stream, &format!("{name}{path}"));
                }
            }
        })
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}
