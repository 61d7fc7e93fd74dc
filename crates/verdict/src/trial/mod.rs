//! The judgement of trials: what was measured in each, what is wrong with it, and which row counts.

pub(crate) mod cells;
pub(crate) mod drift;
pub(crate) mod flaw;
pub(crate) mod lag;
pub(crate) mod lasting;
pub(crate) mod loops;
pub(crate) mod others;
pub(crate) mod overload;
pub(crate) mod pauses;
pub(crate) mod starts;
pub(crate) mod validity;
