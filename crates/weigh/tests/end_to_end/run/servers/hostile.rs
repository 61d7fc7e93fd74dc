//! Hostile servers: they attack other servers, the files that root writes and reads for them, and
//! the agent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use agent::wire::{Answer, AwaitServer, FileToWrite, Order, StartServer};
use agent::{Agent, AgentError};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::common::{LIMIT, Place, Turn, has, skip, wait_until};

const SECRET: &str = "root's own words";
const WRITTEN: &str = "what weigh wrote";
/// Far longer than an order takes unless it blocks, and shorter than its caller waits.
const PROMPT: Duration = Duration::from_secs(10);

/// An agent that runs as root, and a file that only root may read.
struct Scene {
    agent: Agent,
    /// Holds the secret.
    private: PathBuf,
    _turn: Turn,
}

impl Scene {
    /// `None` for an ordinary user, whose servers all run as that user.
    fn new() -> Option<Self> {
        Self::with(Path::new(env!("CARGO_BIN_EXE_weigh")))
    }

    /// The same, with an agent that `program` starts.
    fn with(program: &Path) -> Option<Self> {
        if !net::os::is_root() {
            skip("only root gives a server a user of its own");
            return None;
        }
        let turn = Turn::shared();
        let agent = Agent::start(program).unwrap();
        let name = agent.folder().file_name().unwrap().to_string_lossy();
        let private = std::env::temp_dir().join(name.replace("weigh-", "we-private-"));
        fs::create_dir(&private).unwrap();
        fs::set_permissions(&private, fs::Permissions::from_mode(0o700)).unwrap();
        let scene = Self {
            agent,
            private,
            _turn: turn,
        };
        fs::write(scene.secret(), SECRET).unwrap();
        fs::set_permissions(scene.secret(), fs::Permissions::from_mode(0o600)).unwrap();
        Some(scene)
    }

    fn secret(&self) -> PathBuf {
        self.private.join("secret")
    }

    fn folder_of(&self, server: &str) -> PathBuf {
        self.agent.folder().join(server)
    }

    fn make_folder(&mut self, server: &str) {
        let order = Order::Folder {
            server: server.to_owned(),
            user: None,
        };
        self.agent.ask(&order).unwrap();
    }

    /// Starts a server that is a shell script. In it, `$P` is root's private folder and `$V` the
    /// folder of the server `victim`.
    fn start(&mut self, order: StartServer) -> Result<i32, AgentError> {
        match self.agent.ask(&Order::Start(order))? {
            Answer::Started { pid, .. } => Ok(pid),
            other => panic!("{other:?}"),
        }
    }

    fn script(&self, server: &str, script: &str) -> StartServer {
        let (private, victim) = (self.private.display(), self.folder_of("victim"));
        let script = format!("P={private}; V={}; {script}", victim.display());
        StartServer {
            server: server.to_owned(),
            command: ["/bin/sh", "-c", &script].map(str::to_owned).to_vec(),
            ..StartServer::default()
        }
    }

    /// Makes a folder for a server and starts it.
    fn run(&mut self, order: StartServer) -> i32 {
        self.make_folder(&order.server);
        self.start(order).unwrap()
    }

    fn stop(&mut self, server: &str) {
        let order = Order::Stop {
            server: server.to_owned(),
            signals: vec![("TERM".to_owned(), 2_000)],
        };
        self.agent.ask(&order).unwrap();
    }

    fn logs(&mut self, server: &str) -> BTreeMap<String, String> {
        let server = server.to_owned();
        match self.agent.ask(&Order::Logs { server }).unwrap() {
            Answer::Logs { files } => files,
            other => panic!("{other:?}"),
        }
    }

    /// Waits until a server has printed a text; returns all that it has printed.
    fn printed(&mut self, server: &str, text: &str) -> String {
        let mut seen = String::new();
        wait_until(&format!("it printed `{text}`"), LIMIT, || {
            let mut logs = self.logs(server);
            seen = logs.remove("output.log").unwrap_or_default();
            seen.contains(text)
        });
        seen
    }

    /// Fails unless root's private folder is as it was.
    fn secret_is_untouched(&self, case: &str) {
        assert_eq!(fs::read_to_string(self.secret()).unwrap(), SECRET, "{case}");
        for (path, mode) in [(self.private.clone(), 0o700), (self.secret(), 0o600)] {
            let about = fs::metadata(path).unwrap();
            assert_eq!((about.uid(), about.gid()), (0, 0), "{case}: the owner");
            assert_eq!(about.mode() & 0o7777, mode, "{case}: the mode");
        }
        let names = fs::read_dir(&self.private).unwrap().count();
        assert_eq!(names, 1, "{case}: something new is in the folder");
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.private);
    }
}

fn file(path: &str) -> FileToWrite {
    FileToWrite {
        path: path.to_owned(),
        content: STANDARD.encode(WRITTEN),
        mode: 0o644,
    }
}

/// A field of `/proc/self/status`, as a server printed it.
fn status(printed: &str, name: &str) -> String {
    let line = printed.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in {printed}"))
        .split_whitespace()
        .next()
        .unwrap_or_default()
        .to_owned()
}

/// Traps in place of each file and folder that root makes for a server.
const TRAPS: [(&str, &str); 10] = [
    ("a link for a file", "ln -s $P/secret $V/conf"),
    ("a link to nothing for a file", "ln -s $P/new $V/conf"),
    ("a pipe for a file", "mkfifo $V/conf"),
    ("a folder for a file", "mkdir $V/conf"),
    ("a link for the folder of a file", "ln -s $P $V/etc"),
    ("a pipe for the folder of a file", "mkfifo $V/etc"),
    ("a link for a folder", "ln -s $P $V/data"),
    ("a link for the output", "ln -sf $P/secret $V/output.log"),
    (
        "a pipe for the output",
        "rm -f $V/output.log; mkfifo $V/output.log",
    ),
    (
        "a folder for the output",
        "rm -f $V/output.log; mkdir $V/output.log",
    ),
];

#[test]
fn a_server_sets_no_trap_in_the_folder_of_its_neighbour() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    for (case, trap) in TRAPS {
        let attack = format!(
            "while ! [ -e $V ]; do sleep 0.01; done; {{ {trap}; }} && echo planted; echo tried; sleep 1000"
        );
        let attacker = scene.script("attacker", &attack);
        scene.run(attacker);
        scene.make_folder("victim");
        let said = scene.printed("attacker", "tried");
        let begin = Instant::now();
        let victim = StartServer {
            dirs: vec!["data".into(), "data/deep".into()],
            files: vec![file("conf"), file("etc/secret")],
            ..scene.script("victim", "echo victim; exec sleep 1000")
        };
        let started = scene.start(victim);
        assert!(begin.elapsed() < PROMPT, "{case}: it was held up");
        scene.secret_is_untouched(case);
        let pid = started.unwrap_or_else(|e| panic!("{case}: {e}"));
        assert!(!said.contains("planted"), "{case}");
        let owner = fs::metadata(format!("/proc/{pid}")).unwrap().uid();
        for name in ["", "conf", "etc", "etc/secret", "data", "data/deep"] {
            let about = fs::symlink_metadata(scene.folder_of("victim").join(name)).unwrap();
            assert!(!about.is_symlink(), "{case}: {name}");
            assert_eq!(about.uid(), owner, "{case}: {name}");
        }
        scene.printed("victim", "victim");
        scene.stop("victim");
        scene.stop("attacker");
        fs::remove_dir_all(scene.folder_of("victim")).unwrap();
    }
}

#[test]
fn a_server_that_is_started_again_sets_no_trap_in_its_own_folder() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    for (case, trap) in TRAPS {
        // The script runs as the server `victim`, so `$V` in the traps is its own folder.
        let script = format!(
            "rm -rf conf etc data output.log; {{ {trap}; }} && echo planted; echo up; sleep 1000"
        );
        let order = StartServer {
            dirs: vec!["data".into()],
            files: vec![file("conf"), file("etc/secret")],
            ..scene.script("victim", &script)
        };
        scene.run(order.clone());
        wait_until("the trap is set", LIMIT, || {
            let folder = scene.folder_of("victim");
            !folder.join("conf").is_file() || !folder.join("etc/secret").is_file()
        });
        std::thread::sleep(Duration::from_millis(100));
        scene.stop("victim");
        let begin = Instant::now();
        let started = scene.start(order);
        assert!(begin.elapsed() < PROMPT, "{case}: it was held up");
        scene.secret_is_untouched(case);
        started.unwrap_or_else(|e| panic!("{case}: {e}"));
        scene.printed("victim", "up");
        scene.stop("victim");
    }
}

#[test]
fn logs_are_files_of_the_servers_own_or_are_not_read() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    let traps = [
        ("a link", "ln -s $P/secret own.log"),
        ("a link to the other's", "ln -s $V/conf own.log"),
        ("a hard link", "ln $V/conf own.log || mkfifo own.log"),
        ("a pipe", "mkfifo own.log"),
        ("a folder", "mkdir own.log"),
        (
            "a socket",
            "perl -MIO::Socket::UNIX -e 'IO::Socket::UNIX->new(Local => \"own.log\", Listen => 1)'",
        ),
        ("a link for its folder", "ln -s $P logs"),
        ("a pipe for its folder", "mkfifo logs"),
        (
            "a link for the output",
            "rm output.log; ln -s $P/secret output.log",
        ),
        ("a pipe for the output", "rm output.log; mkfifo output.log"),
    ];
    let victim = StartServer {
        files: vec![FileToWrite {
            content: STANDARD.encode(SECRET),
            ..file("conf")
        }],
        ..scene.script("victim", "exec sleep 1000")
    };
    scene.run(victim);
    for (case, trap) in traps {
        let order = StartServer {
            logs: vec!["own.log".into(), "logs/secret".into()],
            ..scene.script(
                "attacker",
                &format!("echo before; {trap}; : >ready; sleep 1000"),
            )
        };
        scene.run(order);
        let ready = scene.folder_of("attacker").join("ready");
        wait_until("the trap is set", LIMIT, || ready.exists());
        let begin = Instant::now();
        let logs = scene.logs("attacker");
        assert!(begin.elapsed() < PROMPT, "{case}: it was held up");
        let output = logs.get("output.log").map(String::as_str);
        assert!(
            output.unwrap_or_default().starts_with("before\n"),
            "{case}: {logs:?}"
        );
        // Nor are they quoted if the server does not become ready.
        let order = Order::Await(AwaitServer {
            server: Some("attacker".to_owned()),
            address: "127.0.0.1:1".parse().unwrap(),
            request: String::new(),
            raw: true,
            status: None,
            contains: None,
            tls: None,
            http: Default::default(),
            proxy_protocol: false,
            timeout_ms: 50,
        });
        let begin = Instant::now();
        let Err(failed) = scene.agent.ask(&order) else {
            panic!("{case}: something answers at port 1");
        };
        assert!(begin.elapsed() < PROMPT, "{case}: it was held up");
        for text in logs.values().chain([&failed.to_string()]) {
            assert!(!text.contains(SECRET), "{case}: {text}");
        }
        scene.stop("attacker");
    }
}

#[test]
fn a_log_without_end_is_kept_in_part() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    let order = StartServer {
        logs: vec!["own.log".into()],
        ..scene.script(
            "attacker",
            "echo first >own.log; truncate -s 1T own.log; echo last >>own.log; echo up; yes",
        )
    };
    scene.run(order);
    scene.printed("attacker", "y\ny\n");
    let logs = scene.logs("attacker");
    for (name, text) in &logs {
        assert!(text.len() <= 256 * 1024, "{name} has {} bytes", text.len());
    }
    assert!(logs["own.log"].ends_with("last\n"));
    scene.stop("attacker");
}

#[test]
fn neighbours_can_neither_read_nor_write_nor_signal_each_other() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    let victim = StartServer {
        files: vec![FileToWrite {
            content: STANDARD.encode("victim's own"),
            ..file("conf")
        }],
        ..scene.script("victim", "exec sleep 1000")
    };
    let pid = scene.run(victim);
    let script = format!(
        "(cat $V/conf; ls $V; echo x >>$V/conf; rm -rf $V; kill -9 {pid}; cat /proc/{pid}/environ) \
         2>&1; echo tried; sleep 1000"
    );
    let attacker = scene.script("attacker", &script);
    let own = scene.run(attacker);
    let said = scene.printed("attacker", "tried");
    assert!(!said.contains("victim's own"), "{said}");
    let conf = scene.folder_of("victim").join("conf");
    assert_eq!(fs::read_to_string(conf).unwrap(), "victim's own", "{said}");
    let ids: BTreeSet<(u32, u32)> = [pid, own]
        .iter()
        .map(|pid| fs::metadata(format!("/proc/{pid}")).unwrap())
        .map(|about| (about.uid(), about.gid()))
        .collect();
    assert_eq!(ids.len(), 2, "they share a user: {ids:?}");
    assert!(ids.iter().all(|(user, group)| *user > 0 && *group > 0));
    let mode = fs::metadata(scene.folder_of("victim")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_server_has_a_short_environment_and_gains_no_privileges() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    let script = "env; cat /proc/self/status /proc/self/limits; echo end; exec sleep 1000";
    let order = StartServer {
        env: vec![("DECLARED".into(), "by its recipe".into())],
        ..scene.script("one", script)
    };
    scene.run(order.clone());
    let said = scene.printed("one", "end");
    let variables: BTreeSet<&str> = said
        .lines()
        .take_while(|line| !line.starts_with("Name:"))
        .filter_map(|line| Some(line.split_once('=')?.0))
        // Variables that the shell sets itself.
        .filter(|name| !["_", "OLDPWD", "PWD", "SHLVL"].contains(name))
        .collect();
    let expected = BTreeSet::from(["DECLARED", "HOME", "LANG", "PATH", "TMPDIR"]);
    assert_eq!(variables, expected, "{said}");
    let folder = scene.folder_of("one");
    has(&said, &format!("HOME={}\n", folder.display()));
    assert_eq!(status(&said, "NoNewPrivs:"), "1");
    assert_eq!(status(&said, "Groups:"), "");
    assert_eq!(status(&said, "CapEff:"), "0000000000000000");
    assert_eq!(status(&said, "Max core file size"), "0");
    assert_ne!(status(&said, "Max processes"), "unlimited");
    // If its recipe says so, programs that it starts may gain privileges.
    let order = StartServer {
        server: "other".into(),
        setuid_programs: true,
        ..order
    };
    scene.run(order);
    let said = scene.printed("other", "end");
    assert_eq!(status(&said, "NoNewPrivs:"), "0");
}

#[test]
fn files_that_were_open_when_weigh_was_started_are_not_the_servers() {
    let place = Place::new();
    let open = place.write("open", SECRET);
    let program = place.write_script(
        "start",
        &format!(
            "#!/bin/sh\nexec 7<>{}\nexec {} \"$@\"\n",
            open.display(),
            env!("CARGO_BIN_EXE_weigh")
        ),
    );
    let Some(mut scene) = Scene::with(&program) else {
        return;
    };
    let script = "cat <&7; echo changed >&7; echo end; exec sleep 1000";
    let order = scene.script("one", &format!("({script}) 2>&1"));
    scene.run(order);
    let said = scene.printed("one", "end");
    assert!(!said.contains(SECRET), "{said}");
    assert_eq!(fs::read_to_string(open).unwrap(), SECRET);
}

#[test]
fn a_user_that_this_machine_lacks_is_an_error_and_not_root() {
    let Some(mut scene) = Scene::new() else {
        return;
    };
    let order = Order::Folder {
        server: "one".to_owned(),
        user: Some("nobody-of-that-name".to_owned()),
    };
    let error = scene.agent.ask(&order).unwrap_err().to_string();
    has(&error, "no user `nobody-of-that-name`");
}

#[test]
fn folders_far_inside_each_other_are_removed() {
    // Deeper than a path can be long. Removal takes about a millisecond per level on a slow disk.
    const DEPTH: usize = 3_000;
    let Some(mut scene) = Scene::new() else {
        return;
    };
    let script = format!(
        "perl -e 'for (1..{DEPTH}) {{ mkdir \"d\" or die; chdir \"d\" or die }} print \"up\\n\"'; \
         exec sleep 1000"
    );
    let order = scene.script("deep", &script);
    scene.run(order);
    scene.printed("deep", "up");
    let folder = scene.agent.folder().to_owned();
    scene.stop("deep");
    // It is removed once by an order, and once at the agent's end.
    scene.make_folder("deep");
    let order = scene.script("deep", &script);
    scene.start(order).unwrap();
    scene.printed("deep", "up");
    drop(scene);
    assert!(!folder.exists(), "{} is left", folder.display());
}
