//! The opening handshake over HTTP/1.1 (RFC 6455 4) and the offer of `permessage-deflate` (RFC 7692
//! 7.1). Fields are pairs of a name in any case and a value.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::Deflate;
use crate::http::list;

/// The version of the protocol (RFC 6455 4.1).
pub const VERSION: &str = "13";

const EXTENSION: &str = "permessage-deflate";

/// Why a handshake fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HandshakeError {
    #[error("the answer has status {0} instead of 101")]
    Status(u16),
    #[error("there is no `Upgrade: websocket`")]
    Upgrade,
    #[error("there is no `Connection: Upgrade`")]
    Connection,
    #[error("`Sec-WebSocket-Accept` is missing or does not belong to the key")]
    Accept,
    #[error("`Sec-WebSocket-Extensions` has what was not offered")]
    Extensions,
    #[error("`Sec-WebSocket-Protocol` has what was not asked for")]
    Protocol,
    #[error("the method is not GET")]
    Method,
    #[error("`Sec-WebSocket-Key` is missing or is not 16 bytes in base64")]
    Key,
    #[error("`Sec-WebSocket-Version` is not 13")]
    Version,
}

/// The value of `Sec-WebSocket-Key` for 16 random bytes.
pub fn key(random: u128) -> String {
    STANDARD.encode(random.to_ne_bytes())
}

/// The value of `Sec-WebSocket-Accept` that belongs to a key (RFC 6455 4.2.2).
pub fn accept_of(key: &str) -> String {
    let mut hash = sha1_smol::Sha1::from(key);
    hash.update(b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(hash.digest().bytes())
}

/// The fields of a client's request besides `Host`, each with CR LF.
pub fn request_fields(key: &str, offers_deflate: bool) -> String {
    let mut fields = format!(
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n\
         Sec-WebSocket-Version: {VERSION}\r\n"
    );
    if offers_deflate {
        fields += &format!("Sec-WebSocket-Extensions: {EXTENSION}\r\n");
    }
    fields
}

/// Checks a server's answer. Returns what was agreed on for compression.
///
/// # Errors
/// When the connection is not a WebSocket after this answer.
pub fn check_answer<'a>(
    status: u16,
    fields: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
    key: &str,
    has_offered_deflate: bool,
) -> Result<Option<Deflate>, HandshakeError> {
    if status != 101 {
        return Err(HandshakeError::Status(status));
    }
    check_upgrade(fields.clone())?;
    let mut accepts = values(fields.clone(), "sec-websocket-accept");
    if accepts.next().map(<[u8]>::trim_ascii) != Some(accept_of(key).as_bytes())
        || accepts.next().is_some()
    {
        return Err(HandshakeError::Accept);
    }
    if values(fields.clone(), "sec-websocket-protocol").any(|_| true) {
        return Err(HandshakeError::Protocol);
    }
    check_extension(fields, has_offered_deflate)
}

/// Checks what a server says of extensions, also in its answer to an extended CONNECT.
///
/// # Errors
/// When it has not been offered.
pub fn check_extension<'a>(
    fields: impl Iterator<Item = (&'a str, &'a [u8])>,
    has_offered_deflate: bool,
) -> Result<Option<Deflate>, HandshakeError> {
    let mut agreed = None;
    for one in values(fields, "sec-websocket-extensions").flat_map(list) {
        let offer = Offer::of(one).filter(|_| has_offered_deflate && agreed.is_none());
        let offer = offer.ok_or(HandshakeError::Extensions)?;
        // A limit of the client's window has to be asked for.
        if offer.client_window {
            return Err(HandshakeError::Extensions);
        }
        agreed = Some(offer.deflate);
    }
    Ok(agreed)
}

/// A client's request for a WebSocket, accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// The value of `Sec-WebSocket-Accept`.
    pub accept: String,
    /// What was agreed on for compression.
    pub deflate: Option<Deflate>,
    /// The value of `Sec-WebSocket-Extensions`.
    pub extensions: Option<String>,
}

impl Accepted {
    /// The head of the answer, which ends with an empty line; `fields` are more fields, each with CR
    /// LF.
    pub fn answer(&self, fields: &str) -> String {
        let mut head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {}\r\n",
            self.accept
        );
        if let Some(extensions) = &self.extensions {
            head += &format!("Sec-WebSocket-Extensions: {extensions}\r\n");
        }
        head + fields + "\r\n"
    }
}

/// Checks a client's request. `with_deflate` is whether compression is accepted where it is offered.
///
/// # Errors
/// When it is no request for a WebSocket, which is to be answered with 400, and
/// [`HandshakeError::Version`] with 426 and `Sec-WebSocket-Version: 13` (RFC 6455 4.2.2).
pub fn accept_request<'a>(
    method: &str,
    fields: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
    with_deflate: bool,
) -> Result<Accepted, HandshakeError> {
    if method != "GET" {
        return Err(HandshakeError::Method);
    }
    check_upgrade(fields.clone())?;
    let mut keys = values(fields.clone(), "sec-websocket-key");
    let key = keys.next().map(<[u8]>::trim_ascii).unwrap_or_default();
    if STANDARD.decode(key).map(|key| key.len()) != Ok(16) || keys.next().is_some() {
        return Err(HandshakeError::Key);
    }
    let key = std::str::from_utf8(key).map_err(|_| HandshakeError::Key)?;
    let mut versions = values(fields.clone(), "sec-websocket-version");
    if versions.next().map(<[u8]>::trim_ascii) != Some(VERSION.as_bytes()) {
        return Err(HandshakeError::Version);
    }
    let agreed = accept_extension(fields).filter(|_| with_deflate);
    Ok(Accepted {
        accept: accept_of(key),
        deflate: agreed.as_ref().map(|(deflate, _)| *deflate),
        extensions: agreed.map(|(_, extensions)| extensions),
    })
}

/// The first offer of `permessage-deflate` that can be accepted, also in an extended CONNECT, and the
/// value of `Sec-WebSocket-Extensions` in the answer.
pub fn accept_extension<'a>(
    fields: impl Iterator<Item = (&'a str, &'a [u8])>,
) -> Option<(Deflate, String)> {
    let mut offers = values(fields, "sec-websocket-extensions").flat_map(list);
    let offer = offers.find_map(|one| Offer::of(one).filter(Offer::can_be_accepted))?;
    let mut answer = EXTENSION.to_owned();
    let mut say = |is_said: bool, parameter: &str| {
        if is_said {
            answer += "; ";
            answer += parameter;
        }
    };
    let deflate = offer.deflate;
    say(
        deflate.client_no_context_takeover,
        "client_no_context_takeover",
    );
    say(
        deflate.server_no_context_takeover,
        "server_no_context_takeover",
    );
    say(offer.server_window.is_some(), "server_max_window_bits=15");
    Some((deflate, answer))
}

/// `permessage-deflate` with its parameters, as an offer or as the answer to one.
struct Offer {
    deflate: Deflate,
    /// `client_max_window_bits` is there.
    client_window: bool,
    server_window: Option<u8>,
}

impl Offer {
    /// Reads an element of `Sec-WebSocket-Extensions`; `None` for other extensions, and for
    /// parameters that are unknown, wrong or there twice (RFC 7692 7.1).
    fn of(element: &[u8]) -> Option<Offer> {
        let text = std::str::from_utf8(element).ok()?;
        let mut parts = text.split(';').map(str::trim);
        if !parts.next()?.eq_ignore_ascii_case(EXTENSION) {
            return None;
        }
        let mut offer = Offer {
            deflate: Deflate::default(),
            client_window: false,
            server_window: None,
        };
        for part in parts {
            let (name, value) = match part.split_once('=') {
                Some((name, value)) => (name.trim(), Some(value.trim().trim_matches('"'))),
                None => (part, None),
            };
            let bits = || {
                let bits = value?.parse().ok()?;
                (8..=15).contains(&bits).then_some(bits)
            };
            let is_new = match name {
                "client_no_context_takeover" if value.is_none() => {
                    !std::mem::replace(&mut offer.deflate.client_no_context_takeover, true)
                }
                "server_no_context_takeover" if value.is_none() => {
                    !std::mem::replace(&mut offer.deflate.server_no_context_takeover, true)
                }
                "client_max_window_bits" => {
                    value.is_none_or(|_| bits().is_some())
                        && !std::mem::replace(&mut offer.client_window, true)
                }
                "server_max_window_bits" => offer.server_window.replace(bits()?).is_none(),
                _ => false,
            };
            if !is_new {
                return None;
            }
        }
        Some(offer)
    }

    /// Whether this end can do what it asks for: its window is always the largest.
    fn can_be_accepted(&self) -> bool {
        self.server_window.is_none_or(|bits| bits == 15)
    }
}

fn check_upgrade<'a>(
    fields: impl Iterator<Item = (&'a str, &'a [u8])> + Clone,
) -> Result<(), HandshakeError> {
    let has = |name: &'static str, token: &str| {
        let mut all = values(fields.clone(), name).flat_map(list);
        all.any(|one| one.eq_ignore_ascii_case(token.as_bytes()))
    };
    match (has("upgrade", "websocket"), has("connection", "upgrade")) {
        (false, _) => Err(HandshakeError::Upgrade),
        (true, false) => Err(HandshakeError::Connection),
        (true, true) => Ok(()),
    }
}

fn values<'a>(
    fields: impl Iterator<Item = (&'a str, &'a [u8])>,
    name: &'static str,
) -> impl Iterator<Item = &'a [u8]> {
    fields.filter_map(move |(key, value)| key.eq_ignore_ascii_case(name).then_some(value))
}
