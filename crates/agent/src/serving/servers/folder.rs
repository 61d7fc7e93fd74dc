//! The folder of a server. Root writes all files before it gives the folder to the server's user;
//! after that it trusts no name in it.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use net::folder::Folder;
use net::os;

use crate::protocol::wire::{FileToWrite, StartServer};
use crate::serving::servers::memory::MemoryFolder;
use crate::serving::servers::user::ServerUser;

/// The file for what a server prints; its own log files come on top.
pub(crate) const OUTPUT: &str = "output.log";
/// Of a longer log only the end is kept.
const LOG_BYTES_MAX: u64 = 256 * 1024;
/// Mode of folders inside the server's folder, to which itself only its user has access.
const INNER_FOLDER: u32 = 0o755;

pub(crate) struct ServerFolder {
    path: PathBuf,
    folder: Folder,
    /// `None` for the user of this process.
    user: Option<ServerUser>,
    /// Held open, since the server can put something else in its place.
    output: File,
    is_filled: bool,
}

impl ServerFolder {
    /// Makes an empty folder in the one for all servers, with access for this process's user only.
    pub(crate) fn make(
        all: &Folder,
        all_path: &Path,
        server: &str,
        user: Option<ServerUser>,
    ) -> io::Result<Self> {
        let folder = all.make(OsStr::new(server))?;
        let output = folder.create(Path::new(OUTPUT))?;
        Ok(Self {
            path: all_path.join(server),
            folder,
            user,
            output,
            is_filled: false,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn user(&self) -> Option<ServerUser> {
        self.user
    }

    /// Writes a server's files, then gives the folder to the server's user. When the server is
    /// started again, nothing is written: the folder stays as the server left it.
    pub(crate) fn fill(
        &mut self,
        order: &StartServer,
        memory: &mut MemoryFolder,
    ) -> io::Result<()> {
        if self.is_filled {
            return Ok(());
        }
        if !order.memory_dirs.is_empty() {
            self.link_to(memory.make(&order.server)?, &order.memory_dirs)?;
        }
        for inner in &order.dirs {
            self.folder
                .open_or_make(Path::new(inner), |new| self.give(new))
                .map_err(|e| naming(inner, &e))?;
        }
        for file in &order.files {
            self.put(file, false)?;
        }
        if let Some(user) = self.user {
            self.folder.give_to(user.user, user.group)?;
        }
        self.is_filled = true;
        Ok(())
    }

    /// Makes folders in the server's folder in memory, and links to them in this one, to which the
    /// server has no access yet.
    fn link_to(&self, (memory, path): (Folder, PathBuf), inner: &[String]) -> io::Result<()> {
        for inner in inner {
            let at = Path::new(inner);
            memory
                .open_or_make(at, |new| self.give(new))
                .and_then(|_| {
                    let parent = at.parent().unwrap_or(Path::new(""));
                    self.folder.open_or_make(parent, |new| self.give(new))
                })
                .and_then(|_| symlink(path.join(at), self.path.join(at)))
                .map_err(|e| naming(inner, &e))?;
        }
        match self.user {
            Some(user) => memory.give_to(user.user, user.group),
            None => Ok(()),
        }
    }

    /// Gives an inner folder to the server's user.
    fn give(&self, folder: &Folder) -> io::Result<()> {
        folder.set_mode(INNER_FOLDER)?;
        match self.user {
            Some(user) => folder.give_to(user.user, user.group),
            None => Ok(()),
        }
    }

    /// Replaces files, or adds those that do not exist.
    pub(crate) fn replace(&self, files: &[FileToWrite]) -> io::Result<()> {
        files.iter().try_for_each(|file| self.put(file, true))
    }

    /// Writes a file, in place of an earlier one if `replaces` is set.
    fn put(&self, file: &FileToWrite, replaces: bool) -> io::Result<()> {
        let path = Path::new(&file.path);
        let bytes = STANDARD.decode(&file.content).map_err(io::Error::other)?;
        let parent = path.parent().unwrap_or(Path::new(""));
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        self.folder
            .open_or_make(parent, |new| self.give(new))
            .and_then(|folder| match replaces.then(|| folder.remove(name)) {
                Some(Err(e)) if e.kind() != io::ErrorKind::NotFound => Err(e),
                _ => folder.create(Path::new(name)),
            })
            .and_then(|new| self.write(&new, &bytes, file.mode))
            .map_err(|e| naming(&file.path, &e))
    }

    fn write(&self, file: &File, bytes: &[u8], mode: u32) -> io::Result<()> {
        file.write_all_at(bytes, 0)?;
        if let Some(user) = self.user {
            std::os::unix::fs::fchown(file, Some(user.user), Some(user.group))?;
        }
        // After the change of owner, which clears the set-user-ID and set-group-ID bits.
        file.set_permissions(fs::Permissions::from_mode(mode))
    }

    /// The file for what the server prints, emptied.
    pub(crate) fn output(&mut self) -> io::Result<File> {
        use std::io::Seek as _;
        self.output.set_len(0)?;
        self.output.rewind()?;
        self.output.try_clone()
    }

    /// The file of the server's output, to which another program can append.
    pub(crate) fn shared_output(&self) -> io::Result<File> {
        self.output.try_clone()
    }

    /// How much the server has printed, bytes.
    pub(crate) fn output_bytes(&self) -> u64 {
        self.output.metadata().map_or(0, |about| about.len())
    }

    /// What the server has printed after the first `from` bytes; only the end of it if it is long.
    pub(crate) fn output_since(&self, from: u64) -> String {
        read_from(&self.output, from).unwrap_or_default()
    }

    /// The end of one of its logs, or why it was not read; `None` where there is none.
    pub(crate) fn log(&self, name: &str) -> Option<String> {
        let read = match name {
            OUTPUT => read_from(&self.output, 0).map_err(Refusal::Unreadable),
            name => self
                .own_file(name)
                .and_then(|file| Ok(read_from(&file, 0)?)),
        };
        match read {
            Ok(text) => Some(text).filter(|text| !text.is_empty()),
            Err(Refusal::Unreadable(e)) if e.kind() == io::ErrorKind::NotFound => None,
            Err(why) => Some(format!("(weigh did not read this log: {why})\n")),
        }
    }

    /// Opens a file if it is a regular one of the server's user.
    fn own_file(&self, name: &str) -> Result<File, Refusal> {
        let file = self.folder.open_file(Path::new(name))?;
        let about = file.metadata()?;
        let user = self.user.map_or_else(os::user_id, |user| user.user);
        match (about.is_file(), about.uid() == user) {
            (false, _) => Err(Refusal::NoFile),
            (true, false) => Err(Refusal::OfAnother),
            (true, true) => Ok(file),
        }
    }
}

/// Why a log was not read.
enum Refusal {
    Unreadable(io::Error),
    NoFile,
    OfAnother,
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        Self::Unreadable(error)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile => f.write_str("it is not a regular file")?,
            Self::OfAnother => f.write_str("it belongs to another user than the server's")?,
            Self::Unreadable(e) => write!(f, "{e}")?,
        }
        f.write_str("; expected a regular file of the server's user")
    }
}

fn naming(path: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{path}: {error}"))
}

/// Reads the end of a file from `from` on, without moving its position.
fn read_from(file: &File, from: u64) -> io::Result<String> {
    let length = file.metadata()?.len();
    let from = from.max(length.saturating_sub(LOG_BYTES_MAX)).min(length);
    let mut bytes = vec![0; (length - from) as usize];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read_at(&mut bytes[filled..], from + filled as u64) {
            // The file was truncated meanwhile.
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    bytes.truncate(filled);
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Reads the end of a file in a folder that only this process's user may write to.
pub(crate) fn read_end_of(path: &Path) -> io::Result<String> {
    read_from(&File::open(path)?, 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fixtures::TemporaryFolder;
    use std::io::Write as _;
    use std::process::Command;

    /// A folder in memory whose name no other test has.
    fn memory() -> MemoryFolder {
        let mark = crate::kernel::owner::Owner::me().mark();
        MemoryFolder::next_to(&format!("weigh-{mark}-{:06x}", fastrand::u32(..)))
    }

    /// A folder of this process's user.
    fn server_in(place: &TemporaryFolder) -> ServerFolder {
        let all = Folder::open(&place.0).unwrap();
        ServerFolder::make(&all, &place.0, "server", None).unwrap()
    }

    fn order(files: &[&str], dirs: &[&str]) -> StartServer {
        let file = |path: &&str| FileToWrite {
            path: (*path).to_owned(),
            content: STANDARD.encode("written"),
            mode: 0o755,
        };
        StartServer {
            server: "server".into(),
            dirs: dirs.iter().map(|path| (*path).to_owned()).collect(),
            files: files.iter().map(file).collect(),
            ..StartServer::default()
        }
    }

    #[test]
    fn files_are_written_once_with_their_modes() {
        let place = TemporaryFolder::new();
        let mut server = server_in(&place);
        let order = order(&["conf", "a/b/run"], &["tmp/inner"]);
        server.fill(&order, &mut memory()).unwrap();
        let at = |name: &str| server.path().join(name);
        for (name, mode) in [
            ("", 0o700),
            ("a/b", 0o755),
            ("a/b/run", 0o755),
            ("tmp/inner", 0o755),
        ] {
            let found = fs::metadata(at(name)).unwrap().mode() & 0o777;
            assert_eq!(found, mode, "{name}");
        }
        // A second start keeps what the server has changed.
        fs::write(at("conf"), "changed").unwrap();
        fs::remove_file(at("a/b/run")).unwrap();
        symlink("/nowhere", at("a/b/run")).unwrap();
        let conf = at("conf");
        server.fill(&order, &mut memory()).unwrap();
        assert_eq!(fs::read_to_string(conf).unwrap(), "changed");
    }

    #[test]
    fn a_file_is_replaced_and_what_a_link_in_its_place_leads_to_stays() {
        let place = TemporaryFolder::new();
        let mut server = server_in(&place);
        server
            .fill(&order(&["conf", "a/b"], &[]), &mut memory())
            .unwrap();
        let at = |name: &str| server.path().join(name);
        fs::write(place.0.join("other"), "kept").unwrap();
        fs::remove_file(at("a/b")).unwrap();
        symlink(place.0.join("other"), at("a/b")).unwrap();
        let mut files = order(&["conf", "a/b"], &[]).files;
        for file in &mut files {
            file.content = STANDARD.encode("new");
        }
        server.replace(&files).unwrap();
        for name in ["conf", "a/b"] {
            assert_eq!(fs::read_to_string(at(name)).unwrap(), "new", "{name}");
        }
        assert_eq!(fs::read_to_string(place.0.join("other")).unwrap(), "kept");
        let outside = order(&["../x"], &[]).files;
        assert!(server.replace(&outside).is_err());
    }

    #[test]
    fn what_does_not_fit_into_the_folder_is_an_error_that_names_it() {
        let misfits: [(&[&str], &[&str], &str); 6] = [
            (&["conf", "conf/inner"], &[], "conf/inner"),
            (&["../x"], &[], "../x"),
            (&["/x"], &[], "/x"),
            (&[OUTPUT], &[], OUTPUT),
            (&[], &["../x"], "../x"),
            (&[], &[OUTPUT], OUTPUT),
        ];
        for (files, dirs, named) in misfits {
            let place = TemporaryFolder::new();
            let error = server_in(&place)
                .fill(&order(files, dirs), &mut memory())
                .unwrap_err();
            assert!(
                error.to_string().starts_with(&format!("{named}: ")),
                "{error}"
            );
        }
    }

    #[test]
    fn folders_in_memory_are_linked_to_and_removed() {
        let place = TemporaryFolder::new();
        let mut server = server_in(&place);
        let order = StartServer {
            memory_dirs: vec!["cache".to_owned(), "a/b".to_owned()],
            ..order(&["conf"], &["tmp"])
        };
        let mut memory = memory();
        server.fill(&order, &mut memory).unwrap();
        let mut places = Vec::new();
        for name in ["cache", "a/b"] {
            fs::write(server.path().join(name).join("kept"), "x").unwrap();
            places.push(fs::canonicalize(server.path().join(name)).unwrap());
        }
        let is_in_memory = |place: &PathBuf| place.starts_with(super::super::memory::IN_MEMORY);
        assert!(places.iter().all(is_in_memory), "{places:?}");
        let mode = fs::metadata(places[0].parent().unwrap()).unwrap().mode();
        assert_eq!(mode & 0o777, 0o700);
        // The next server of the name begins with an empty one.
        let (_, path) = memory.make("server").unwrap();
        assert_eq!(fs::read_dir(path).unwrap().count(), 0);
        memory.remove_all();
        assert!(!places[0].parent().unwrap().parent().unwrap().exists());
    }

    #[test]
    fn the_output_is_read_whatever_has_its_name() {
        let place = TemporaryFolder::new();
        let mut server = server_in(&place);
        let mut output = server.output().unwrap();
        output.write_all(b"first\n").unwrap();
        let path = server.path().join(OUTPUT);
        fs::remove_file(&path).unwrap();
        symlink("/etc/passwd", &path).unwrap();
        output.write_all(b"second\n").unwrap();
        assert_eq!(server.log(OUTPUT).unwrap(), "first\nsecond\n");
        // After a restart the output begins at the start of the file, wherever the earlier one
        // ended.
        let mut again = server.output().unwrap();
        again.write_all(b"third\n").unwrap();
        assert_eq!(server.log(OUTPUT).unwrap(), "third\n");
    }

    #[test]
    fn logs_are_regular_files_of_the_servers_user() {
        let place = TemporaryFolder::new();
        let server = server_in(&place);
        let at = |name: &str| server.path().join(name);
        fs::write(at("real"), "x".repeat(300_000) + "end").unwrap();
        fs::write(at("empty"), "").unwrap();
        fs::create_dir(at("folder")).unwrap();
        symlink("real", at("link")).unwrap();
        symlink("folder", at("linked")).unwrap();
        fs::write(at("folder/real"), "inner").unwrap();
        let made = Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        assert_eq!(server.log("real").unwrap().len(), 256 * 1024);
        assert!(server.log("real").unwrap().ends_with("xend"));
        assert_eq!(server.log("folder/real").unwrap(), "inner");
        for name in ["empty", "absent", "absent/log"] {
            assert_eq!(server.log(name), None, "{name}");
        }
        for (name, why) in [
            ("link", "it is a symbolic link"),
            ("pipe", "not a regular file"),
            ("folder", "not a regular file"),
            ("linked/real", "Not a directory"),
            ("../other", "inside the folder"),
        ] {
            let text = server.log(name).unwrap();
            assert!(text.contains(why), "{name}: {text}");
        }
        if os::is_root() {
            std::os::unix::fs::chown(at("real"), Some(1), None).unwrap();
            let text = server.log("real").unwrap();
            assert!(text.contains("another user"), "{text}");
        }
    }
}
