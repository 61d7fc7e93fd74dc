//! The statistics that verdicts rest on: samples and their intervals, and what follows from several
//! of them.

pub(crate) mod dependence;
pub(crate) mod family;
pub(crate) mod forecast;
pub(crate) mod gamma;
pub(crate) mod joint;
pub(crate) mod looks;
pub(crate) mod moderation;
pub(crate) mod normal;
pub(crate) mod robust;
pub(crate) mod sample;
pub mod steady;
pub(crate) mod student;
