//! What the targets check; tests of the crates check it too, without a fuzzer.

pub mod agent_checks;
pub mod balance_checks;
pub mod checks;
pub mod crawl_checks;
pub mod journal_checks;
pub mod packet_checks;
pub mod proxy_checks;
pub mod readings_checks;
pub mod requests_checks;
pub mod tool_checks;
