//! A single request in any version of HTTP, blocking.

use std::time::Duration;

use net::Address;
use net::fetch::{Answer, FetchError};
use readings::HttpVersion;
use tls::{ClientSettings, ClientTls, TlsError};

use crate::http::h2::{self, EncodedRequest};
use crate::http::h3;

/// A request that can be sent any number of times, each time on a new connection.
pub struct Fetcher {
    tls: Option<ClientTls>,
    form: Form,
}

/// The request, encoded for its version of HTTP.
enum Form {
    Http1(Vec<u8>),
    Http2(EncodedRequest),
    Http3(Box<quic::ClientSettings>, h3::EncodedRequest),
}

/// Why a request cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum FetcherError {
    /// The TLS settings cannot be used.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// HTTP/3 without TLS.
    #[error("HTTP/3 needs TLS")]
    NoTls,
    /// The bytes are no request, or one that this version of HTTP cannot send.
    #[error("the request is not one that HTTP/{0} can send")]
    Request(&'static str),
}

impl Fetcher {
    /// A fetcher that sends a request in this version of HTTP. `request` has the bytes of the
    /// request in HTTP/1.1. With TLS, ALPN offers what the settings say.
    ///
    /// # Errors
    /// When the TLS settings cannot be used, or this version of HTTP cannot send the request.
    pub fn new(
        http: HttpVersion,
        tls: Option<&ClientSettings>,
        request: Vec<u8>,
    ) -> Result<Self, FetcherError> {
        let tls = tls.map(ClientTls::new).transpose()?;
        let no_request = FetcherError::Request(http.name());
        let form = match (http, &tls) {
            (HttpVersion::Http1, _) => Form::Http1(request),
            (HttpVersion::Http2, _) => {
                let scheme = tls.as_ref().map_or("http", |_| "https");
                Form::Http2(EncodedRequest::of(&request, scheme).ok_or(no_request)?)
            }
            (HttpVersion::Http3, Some(tls)) => {
                let settings = Box::new(quic::ClientSettings::new(tls, quic::congestion(None), 1)?);
                Form::Http3(
                    settings,
                    h3::EncodedRequest::of(&request).ok_or(no_request)?,
                )
            }
            (HttpVersion::Http3, None) => return Err(FetcherError::NoTls),
        };
        Ok(Self { tls, form })
    }

    /// Sends the request once. A TCP connection begins with `preamble`, such as a PROXY protocol
    /// header.
    ///
    /// # Errors
    /// When the connection fails or ends early, or the answer is in another protocol, larger than
    /// `body_bytes_max`, or late.
    pub fn fetch(
        &self,
        address: &Address,
        preamble: &[u8],
        limit: Duration,
        body_bytes_max: usize,
    ) -> Result<Answer, FetchError> {
        let (tls, most) = (self.tls.as_ref(), body_bytes_max);
        match &self.form {
            Form::Http1(bytes) => tls::fetch(address, tls, preamble, bytes, limit, most),
            Form::Http2(request) => h2::fetch(address, tls, preamble, request, limit, most),
            Form::Http3(settings, frames) => h3::fetch(address, settings, frames, limit, most),
        }
    }
}
