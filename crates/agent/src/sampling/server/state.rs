//! What a server that already runs holds at a moment: memory, files, CPU time.

use std::fs;
use std::path::Path;

use readings::ServerState;

use crate::kernel::proc_files::{Process, process_cpu, tree, word_after};
use crate::protocol::wire::OtherServer;

/// Files with the memory of a control group, kernel memory included: cgroup v2, and v1.
const GROUP_MEMORY: [&str; 2] = ["memory.current", "memory.usage_in_bytes"];

/// What a server's processes hold now; `None` if it has none any more.
pub fn server_state(server: &OtherServer) -> Option<ServerState> {
    let mut state = ServerState::default();
    for root in [server.pid].iter().chain(&server.also) {
        for pid in tree(*root) {
            let Some(process) = Process::read(pid) else {
                continue;
            };
            state.processes += 1;
            // Shared pages count in part; without that figure they count for each process.
            state.memory_bytes += pss_bytes(pid).unwrap_or_else(|| process.rss_bytes());
            state.files += open_files(pid);
            state.cpu_s += process_cpu(pid).s;
        }
    }
    state.group_bytes = server.group.as_deref().and_then(group_bytes);
    (state.processes > 0).then_some(state)
}

fn pss_bytes(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    Some(word_after(&text, "Pss:")?.parse::<u64>().ok()? * 1024)
}

fn open_files(pid: i32) -> u64 {
    let files = fs::read_dir(format!("/proc/{pid}/fd"));
    files.map_or(0, |files| files.count() as u64)
}

fn group_bytes(folder: &str) -> Option<u64> {
    let folder = Path::new(folder);
    let texts = GROUP_MEMORY.iter();
    let mut texts = texts.filter_map(|name| fs::read_to_string(folder.join(name)).ok());
    texts.next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fixtures::{shell, tell};

    #[test]
    fn files_and_memory_of_the_whole_tree_are_counted() {
        let mut shell = shell();
        let server = OtherServer {
            server: "sh".into(),
            pid: shell.pid(),
            also: Vec::new(),
            group: None,
            counts: None,
        };
        tell(&mut shell, ":");
        let before = server_state(&server).unwrap();
        assert_eq!(before.processes, 1);
        assert!(before.memory_bytes > 50_000, "{before:?}");
        tell(
            &mut shell,
            "exec 8</dev/null 9</dev/null; sleep 60 & child=$!",
        );
        // Until it has become another program, the child shares all of its memory.
        let end = std::time::Instant::now() + std::time::Duration::from_secs(30);
        let after = loop {
            let after = server_state(&server).unwrap();
            assert_eq!(after.processes, 2);
            if after.memory_bytes > before.memory_bytes {
                break after;
            }
            assert!(std::time::Instant::now() < end, "{before:?} {after:?}");
            std::thread::sleep(std::time::Duration::from_millis(5));
        };
        // The child has the shell's files as well.
        assert!(after.files >= before.files + 4, "{before:?} {after:?}");
        tell(&mut shell, "kill $child; wait $child");
        // What a child has from its parent counts once.
        tell(
            &mut shell,
            "held=$(head -c 20000000 /dev/zero | tr '\\0' x)",
        );
        let alone = server_state(&server).unwrap().memory_bytes;
        assert!(alone > 20_000_000, "{alone}");
        tell(&mut shell, "(sleep 60; :) & child=$!");
        let both = server_state(&server).unwrap();
        assert!(both.processes > 1, "{both:?}");
        assert!(both.memory_bytes < alone + 10_000_000, "{alone} {both:?}");
        tell(&mut shell, "kill $child; wait $child");
        shell.0.kill().unwrap();
        shell.0.wait().unwrap();
        assert_eq!(server_state(&server), None);
    }
}
