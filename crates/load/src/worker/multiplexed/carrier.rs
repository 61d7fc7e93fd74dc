//! The session of a link, of either version.

use crate::http::{h2, h3, ws};
use crate::template::request::Rendered;
use crate::worker::request_picker::RequestPicker;

/// A QUIC connection with its session.
pub(in crate::worker) struct QuicLink {
    pub(in crate::worker) client: quic::Client,
    pub(in crate::worker) session: h3::Session,
    /// The time it is registered for in the timers, `u64::MAX` if for none.
    pub(in crate::worker) timer_ns: u64,
}

pub(in crate::worker) enum Carrier {
    H2(Box<h2::Session>),
    H3(Box<QuicLink>),
    WebSocket(Box<ws::Session>),
}

impl Carrier {
    pub(in crate::worker) fn active(&self) -> u32 {
        match self {
            Carrier::H2(session) => session.active(),
            Carrier::H3(link) => link.session.active(),
            Carrier::WebSocket(session) => session.flow.active(),
        }
    }

    pub(in crate::worker) fn is_ending(&self) -> bool {
        match self {
            Carrier::H2(session) => session.is_ending(),
            Carrier::H3(link) => link.session.is_ending(),
            Carrier::WebSocket(session) => session.flow.is_ending(),
        }
    }

    pub(in crate::worker) fn end(&mut self) {
        match self {
            Carrier::H2(session) => session.end(),
            Carrier::H3(link) => link.session.end(),
            Carrier::WebSocket(session) => session.flow.end(),
        }
    }

    /// Sends the request with this number as the stream of a place that has none. Returns false if it
    /// cannot now: the server allows no further stream, or the connection takes no further request.
    #[inline]
    pub(in crate::worker) fn request(
        &mut self,
        place: u32,
        picker: &RequestPicker,
        number: usize,
        rendered: &Rendered,
    ) -> bool {
        if !rendered.is_empty() {
            return self.request_of(place, rendered, picker.is_head(number));
        }
        match self {
            Carrier::H2(session) => session.request(place, &picker.encoded[number]),
            Carrier::H3(link) => {
                let connection = &mut link.client.connection;
                link.session
                    .request(connection, place, &picker.frames[number])
            }
            Carrier::WebSocket(session) => session.flow.request(place),
        }
    }

    /// The same, of a request that was filled in.
    fn request_of(&mut self, place: u32, rendered: &Rendered, is_head: bool) -> bool {
        let (head, body) = rendered.parts();
        match self {
            Carrier::H2(session) => {
                let kept = || rendered.shared.clone().unwrap_or_else(|| body.into());
                session.request_of(place, (head, body), kept, is_head)
            }
            Carrier::H3(link) => {
                let frames = || match &rendered.shared {
                    Some(shared) => h3::frames_of_shared(head, shared.clone()),
                    None => [h3::frames(head, body), Default::default()],
                };
                let connection = &mut link.client.connection;
                link.session.request_of(connection, place, frames, is_head)
            }
            // `Job::validate` has seen that there is none.
            Carrier::WebSocket(_) => false,
        }
    }

    pub(in crate::worker) fn cancel(&mut self, place: u32) {
        match self {
            Carrier::H2(session) => session.cancel(place),
            Carrier::H3(link) => link.session.cancel(&mut link.client.connection, place),
            Carrier::WebSocket(session) => session.flow.cancel(place),
        }
    }
}
