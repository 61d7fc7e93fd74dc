//! `weigh balance`.

mod control;
mod quiet;
mod scarce;
