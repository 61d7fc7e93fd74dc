//! The balancer's configuration file, in TOML.

use std::net::SocketAddr;
use std::time::Duration;

use miette::{Diagnostic, NamedSource, SourceSpan};
use serde::Deserialize;
use toml::Spanned;

/// What a balancer does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BalancerConfig {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where clients are sent, in turn.
    pub upstreams: Vec<SocketAddr>,
    /// Number of threads.
    pub threads: usize,
    /// Length of the queue of connections that wait to be accepted.
    pub backlog: i32,
    /// Most clients at one time, per thread.
    pub connections: u32,
    /// How long an upstream may take to accept a connection.
    pub connect_timeout: Duration,
}

/// A mistake in a configuration, with its place.
#[derive(Debug, thiserror::Error, Diagnostic)]
#[error("{message}")]
pub struct ConfigError {
    message: String,
    #[help]
    help: Option<String>,
    #[source_code]
    source_code: NamedSource<String>,
    #[label("here")]
    span: Option<SourceSpan>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    listen: Spanned<String>,
    upstreams: Spanned<Vec<Spanned<String>>>,
    threads: Option<Spanned<usize>>,
    backlog: Option<Spanned<i32>>,
    connections: Option<Spanned<u32>>,
    connect_timeout_ms: Option<Spanned<u64>>,
}

impl BalancerConfig {
    /// Reads a configuration; `name` is what messages call it.
    ///
    /// # Errors
    /// When it is not TOML of the right shape, an address is malformed, or a number is out of its
    /// range.
    pub fn parse(name: &str, text: &str) -> Result<Self, Box<ConfigError>> {
        let error = |message: String, help: Option<&str>, span: Option<std::ops::Range<usize>>| {
            Box::new(ConfigError {
                message,
                help: help.map(str::to_string),
                source_code: NamedSource::new(name, text.to_string()),
                span: span.map(SourceSpan::from),
            })
        };
        let file: File = toml::from_str(text).map_err(|e| {
            error(
                e.message().to_string(),
                Some(
                    "a balancer needs at least: listen = \"127.0.0.1:8080\" and upstreams = \
                     [\"127.0.0.1:8081\"]; it takes threads, backlog, connections and \
                     connect_timeout_ms beside them",
                ),
                e.span(),
            )
        })?;
        let address = |text: &Spanned<String>| {
            text.as_ref().parse::<SocketAddr>().map_err(|_| {
                error(
                    format!(
                        "expected an address such as 127.0.0.1:8080, found `{}`",
                        text.as_ref()
                    ),
                    None,
                    Some(text.span()),
                )
            })
        };
        let listen = address(&file.listen)?;
        let upstreams = file
            .upstreams
            .as_ref()
            .iter()
            .map(&address)
            .collect::<Result<Vec<_>, _>>()?;
        if upstreams.is_empty() {
            return Err(error(
                "expected at least one upstream, found none".into(),
                None,
                Some(file.upstreams.span()),
            ));
        }
        if upstreams.contains(&listen) {
            return Err(error(
                format!("the balancer would be its own upstream: {listen}"),
                Some("name the back end's address"),
                Some(file.upstreams.span()),
            ));
        }
        let number = |value: Option<&Spanned<u64>>, default: u64, most: u64| match value {
            None => Ok(default),
            Some(n) if (1..=most).contains(n.as_ref()) => Ok(*n.as_ref()),
            Some(n) => Err(error(
                format!("expected a number from 1 to {most}, found {}", n.as_ref()),
                None,
                Some(n.span()),
            )),
        };
        let widen = |span: std::ops::Range<usize>, n: u64| Spanned::new(span, n);
        let threads = file.threads.map(|n| widen(n.span(), *n.as_ref() as u64));
        let backlog = file
            .backlog
            .map(|n| widen(n.span(), u64::try_from(*n.as_ref()).unwrap_or(0)));
        let connections = file
            .connections
            .map(|n| widen(n.span(), u64::from(*n.as_ref())));
        Ok(Self {
            listen,
            upstreams,
            threads: number(threads.as_ref(), 1, 1024)? as usize,
            backlog: number(backlog.as_ref(), 4096, 65_535)? as i32,
            connections: number(connections.as_ref(), 8192, 500_000)? as u32,
            connect_timeout: Duration::from_millis(number(
                file.connect_timeout_ms.as_ref(),
                5_000,
                3_600_000,
            )?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> String {
        BalancerConfig::parse("b.toml", text)
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn defaults_and_all_keys() {
        let config = BalancerConfig::parse(
            "b.toml",
            "listen = '127.0.0.1:1'\nupstreams = ['127.0.0.1:2', '[::1]:3']\nthreads = 2\nconnect_timeout_ms = 250",
        )
        .unwrap();
        assert_eq!(config.upstreams.len(), 2);
        assert_eq!((config.threads, config.backlog), (2, 4096));
        assert_eq!(config.connect_timeout, Duration::from_millis(250));
    }

    #[test]
    fn mistakes_say_what_was_expected() {
        assert!(message("").contains("missing field"));
        assert!(message("listen='x'\nupstreams=[]").contains("expected an address"));
        assert!(message("listen='127.0.0.1:1'\nupstreams=[]").contains("at least one upstream"));
        assert!(
            message("listen='127.0.0.1:1'\nupstreams=['127.0.0.1:1']").contains("its own upstream")
        );
        assert!(
            message("listen='127.0.0.1:1'\nupstreams=['127.0.0.1:2']\nthreads=0")
                .contains("from 1 to 1024")
        );
        assert!(
            message("listen='127.0.0.1:1'\nupstreams=['127.0.0.1:2']\nthread=1")
                .contains("unknown field")
        );
    }
}
