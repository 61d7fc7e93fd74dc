//! Sites of made-up runs: their files, and how they look in a browser.

#[path = "../../../report/tests/all/chromium.rs"]
#[allow(dead_code, clippy::unwrap_used)]
mod chromium;

#[allow(clippy::unwrap_used)]
mod browser;
#[allow(clippy::unwrap_used)]
mod made;
#[allow(clippy::unwrap_used)]
mod site;
