//! What has to hold for any bytes that are given to the balancer as its configuration.
//!
//! The fuzz targets and the test that replays their corpora share these.

use balance::config::{Includes, Syntax, Warning, WarningKind, parse_text, parse_text_with, write};

/// Takes any bytes; panics when they break what has to hold.
pub type Check = fn(&[u8]);

/// Each corpus's folder and its check.
pub const CHECKS: [(&str, Check); 2] = [("crossroads", crossroads), ("balance_toml", balance_toml)];

/// One file, whatever its name: what follows the first zero byte.
struct Behind<'t>(&'t str);

impl Includes for Behind<'_> {
    fn read(&mut self, from: &str, name: &str) -> Result<(String, String), String> {
        match name {
            "absent" => Err("absent cannot be read".to_owned()),
            "self" => Ok((from.to_owned(), self.0.to_owned())),
            other => Ok((other.to_owned(), self.0.to_owned())),
        }
    }
}

/// A Crossroads configuration: it is refused with places that can be shown, or it is one that can
/// be printed as TOML and read again as itself.
pub fn crossroads(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (main, behind) = text.split_once('\0').unwrap_or((&text, ""));
    match parse_text_with("main.conf", main, Syntax::Crossroads, &mut Behind(behind)) {
        Ok((config, warnings)) => {
            for warning in warnings {
                assert!(warning.line >= 1 && warning.column >= 1, "{warning}");
            }
            reads_again(&config);
        }
        Err(error) => shown(error),
    }
}

/// A native configuration: the same.
pub fn balance_toml(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match parse_text("main.toml", &text, Syntax::Native) {
        Ok((config, _)) => reads_again(&config),
        Err(error) => shown(error),
    }
}

fn reads_again(config: &balance::Config) {
    let text = write::toml(config);
    match parse_text("printed.toml", &text, Syntax::Native) {
        Ok((again, warnings)) => {
            assert_eq!(&again, config, "{text}");
            // An unused weight is printed too, so reading it again warns.
            let is_unused_weight = |one: &Warning| match &one.kind {
                WarningKind::Ignored { what, .. } => what == "weight" || what == "penalty",
                WarningKind::Unconfirmed { .. } => false,
            };
            assert!(
                warnings.iter().all(is_unused_weight),
                "{warnings:?}\n{text}"
            );
        }
        Err(error) => panic!("{error}: {:?}\n{text}", error.mistakes()),
    }
}

fn shown(error: balance::ConfigError) {
    assert!(!error.to_string().is_empty());
    for mistake in error.mistakes() {
        // Fit for a terminal, whatever the file holds.
        let message = mistake.message();
        assert!(message.len() < 1000, "{} bytes are said", message.len());
        assert!(!message.contains(char::is_control), "{message:?}");
        if let Some(help) = mistake.help_text() {
            assert!(!help.contains(char::is_control), "{help:?}");
        }
        let _ = mistake.line();
    }
}
