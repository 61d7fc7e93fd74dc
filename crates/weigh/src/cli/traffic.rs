//! What is said on connections, besides requests with one answer.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::units;

/// The kinds of traffic; the same for `weigh load` and `weigh capacity`.
#[derive(Clone, Debug, Default, Args)]
pub struct TrafficArgs {
    #[command(flatten)]
    pub grpc: GrpcArgs,
}

/// gRPC calls.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "gRPC")]
pub struct GrpcArgs {
    /// Call this method over HTTP/2, such as weigh.v1.Echo/Unary, with --body as the message: JSON
    /// by the schema of --proto or of the server's reflection; anything that does not begin with {
    /// is sent as an encoded message.
    #[arg(long = "grpc", value_name = "PACKAGE.SERVICE/METHOD")]
    pub method_name: Option<String>,
    /// A file with the schema; may be repeated.
    #[arg(long, value_name = "FILE", requires = "method_name")]
    pub proto: Vec<PathBuf>,
    /// A folder in which imports are found [default: those of the files]; may be repeated.
    #[arg(long, value_name = "FOLDER", requires = "proto")]
    pub proto_path: Vec<PathBuf>,
    /// The time limit that calls name (grpc-timeout), after which they fail.
    #[arg(long, value_name = "TIME", value_parser = units::some_time, requires = "method_name")]
    pub deadline: Option<Duration>,
    /// Messages that the client sends in a call of a method that takes a stream [default: 1].
    #[arg(long, value_name = "N", requires = "method_name", value_parser = clap::value_parser!(u32).range(1..=10_000_000))]
    pub call_messages: Option<u32>,
}
