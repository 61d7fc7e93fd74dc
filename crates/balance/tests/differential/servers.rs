//! Servers that log each request on a line.

use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Nginx,
    Apache,
    Node,
    Haproxy,
}

impl Kind {
    fn program(self) -> &'static str {
        match self {
            Kind::Nginx => "nginx",
            Kind::Apache => "apache2",
            Kind::Node => "node",
            Kind::Haproxy => "haproxy",
        }
    }

    /// The package of Debian's that has it.
    pub fn package(self) -> &'static str {
        match self {
            Kind::Nginx => "nginx-light",
            Kind::Apache => "apache2-bin",
            Kind::Node => "nodejs",
            Kind::Haproxy => "haproxy",
        }
    }

    /// Its configuration, or its program.
    fn text(self) -> &'static str {
        match self {
            Kind::Nginx => NGINX,
            Kind::Apache => APACHE,
            Kind::Node => NODE,
            Kind::Haproxy => HAPROXY,
        }
    }

    fn arguments(self, file: &str) -> Vec<&str> {
        match self {
            Kind::Nginx => vec!["-c", file, "-e", "stderr"],
            Kind::Apache => vec!["-f", file, "-D", "FOREGROUND"],
            Kind::Node => vec![file],
            Kind::Haproxy => vec!["-f", file],
        }
    }
}

const NGINX: &str = include_str!("servers/nginx.conf");

const APACHE: &str = include_str!("servers/apache.conf");

const NODE: &str = include_str!("servers/node.js");

const HAPROXY: &str = include_str!("servers/haproxy.cfg");

/// A server that runs; dropping it ends it.
pub struct Server {
    pub address: SocketAddr,
    child: Child,
    folder: PathBuf,
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var("PATH").unwrap_or_default();
    path.split(':')
        .chain(["/usr/sbin", "/usr/local/sbin"])
        .any(|folder| Path::new(folder).join(program).exists())
}

impl Server {
    /// `None` if it is not installed.
    pub fn start(kind: Kind) -> Option<Server> {
        if !is_installed(kind.program()) {
            return None;
        }
        let name = format!(
            "weigh-differential-{}-{}",
            kind.program(),
            std::process::id()
        );
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).unwrap();
        fs::create_dir(folder.join("pages")).unwrap();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let text = kind
            .text()
            .replace("FOLDER", folder.to_str().unwrap())
            .replace("PORT", &address.port().to_string())
            .replace("IP", &address.ip().to_string());
        let file = folder.join("server.js");
        fs::write(&file, text).unwrap();
        let out = match kind {
            // It writes its log there.
            Kind::Haproxy => Stdio::from(File::create(folder.join("requests")).unwrap()),
            _ => Stdio::null(),
        };
        let path = std::env::var("PATH").unwrap_or_default();
        let child = Command::new(kind.program())
            .args(kind.arguments(file.to_str().unwrap()))
            .env("PATH", format!("{path}:/usr/sbin:/usr/local/sbin"))
            .stdin(Stdio::null())
            .stdout(out)
            .spawn()
            .unwrap();
        let mut server = Server {
            address,
            child,
            folder,
        };
        let end = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(address).is_err() {
            let ended = server.child.try_wait().unwrap();
            assert!(ended.is_none(), "{kind:?} ended: {ended:?}");
            assert!(Instant::now() < end, "{kind:?} does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        Some(server)
    }

    /// All requests so far: the first line of each, or that it was malformed.
    pub fn requests(&self) -> Vec<String> {
        let bytes = fs::read(self.folder.join("requests")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        // Not a line that is being written.
        let whole = text.rfind('\n').map_or(0, |at| at + 1);
        text[..whole].lines().map(str::to_owned).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGTERM also ends its child processes, which SIGKILL would leave behind.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").arg(pid).status();
        let end = Instant::now() + Duration::from_secs(5);
        while matches!(self.child.try_wait(), Ok(None)) {
            if Instant::now() > end {
                let _ = self.child.kill();
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
