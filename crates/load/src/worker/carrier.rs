//! The session of a link, of either version.

use super::request_picker::RequestPicker;
use crate::{h2, h3};

/// A QUIC connection with its session.
pub(super) struct QuicLink {
    pub(super) client: quic::Client,
    pub(super) session: h3::Session,
    /// The time it is registered for in the timers, `u64::MAX` if for none.
    pub(super) timer_ns: u64,
}

pub(super) enum Carrier {
    H2(Box<h2::Session>),
    H3(Box<QuicLink>),
}

impl Carrier {
    pub(super) fn active(&self) -> u32 {
        match self {
            Carrier::H2(session) => session.active(),
            Carrier::H3(link) => link.session.active(),
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        match self {
            Carrier::H2(session) => session.is_ending(),
            Carrier::H3(link) => link.session.is_ending(),
        }
    }

    pub(super) fn end(&mut self) {
        match self {
            Carrier::H2(session) => session.end(),
            Carrier::H3(link) => link.session.end(),
        }
    }

    /// Sends the request with this number as the stream of a place that has none. Returns false if it
    /// cannot now: the server allows no further stream, or the connection takes no further request.
    #[inline]
    pub(super) fn request(&mut self, place: u32, picker: &RequestPicker, number: usize) -> bool {
        match self {
            Carrier::H2(session) => session.request(place, &picker.encoded[number]),
            Carrier::H3(link) => {
                let connection = &mut link.client.connection;
                link.session
                    .request(connection, place, &picker.frames[number])
            }
        }
    }

    pub(super) fn cancel(&mut self, place: u32) {
        match self {
            Carrier::H2(session) => session.cancel(place),
            Carrier::H3(link) => link.session.cancel(&mut link.client.connection, place),
        }
    }
}
