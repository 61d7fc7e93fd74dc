//! Reading heads.

pub(super) mod fields;
pub(super) mod head_info;
mod request;
mod response;
mod scan;
pub(super) mod target;

pub use fields::{Field, Fields};
pub use request::{Method, RequestHead, read_request};
pub use response::{RequestContext, ResponseHead, read_response};
pub use scan::HeadScan;
