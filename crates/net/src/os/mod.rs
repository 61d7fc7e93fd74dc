//! System calls that the standard library lacks, as safe functions.

mod calls;
mod child;
mod clocks;
mod files;
pub mod namespace;
pub mod perf;
pub mod process;
mod sockets;
mod system;
mod threads;
pub mod tun;
pub mod wait;
mod waker;

pub use calls::trim_heap;
pub(crate) use calls::{again, check, free_pages, map_memory, unmap_memory};
pub use child::{ChildSetup, die_with_parent, set_up_child};
pub(crate) use clocks::real_ns;
pub use clocks::{
    RunQueueWait, children_cpu_ns, coarse_now_ns, now_ns, process_cpu_ns, thread_cpu_ns,
};
pub use files::{SharedCounts, folder, plain_file};
pub use process::{adopt_orphans, kill, reap};
pub use sockets::{force_receive_buffer, listen, tcp_congestion};
pub(crate) use sockets::{
    is_receivable, local, peer, receive, reset_when_closed, set_option, stream_socket,
    unacknowledged,
};
pub use system::{
    allowed_cpus, become_user, bind_to_cpus, is_root, locked_memory, open_files, page_bytes,
    raise_open_files, run_first, sharpen_timers, terminal_columns, user_id, user_ids,
};
pub use threads::{Lacking, StartThreadError, start_scoped, start_thread};
pub use waker::Waker;
