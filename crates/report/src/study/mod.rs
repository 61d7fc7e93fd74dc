//! Reports of single studies, in all their forms.

pub(crate) mod capacity;
pub(crate) mod gates;
pub(crate) mod plan;
pub(crate) mod read;
pub(crate) mod scaling;
