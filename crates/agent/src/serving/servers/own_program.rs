//! The path at which servers can run this program. It may be installed where only its owner can
//! enter, such as root's home, while servers run as users of their own.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use net::folder::Folder;

/// The folder of the copy, inside the agent's. It is among those of the servers, and cannot clash
/// with them: their names have no dots.
const FOLDER: &str = "program.copy";
const NAME: &str = "weigh";
/// The running program, also after its file was replaced.
const RUNNING: &str = "/proc/self/exe";
/// Other users can pass through the folder and run the program.
const FOLDER_MODE: u32 = 0o711;
const PROGRAM_MODE: u32 = 0o755;
/// Others may enter a folder, or run a file.
const OTHERS_EXECUTE: u32 = 0o001;

/// Where servers of other users find this program.
#[derive(Default)]
pub(crate) struct OwnProgram {
    /// Once it was needed: the copy, or `None` if they can run the program where it is.
    copy: Option<Option<PathBuf>>,
}

impl OwnProgram {
    /// The path of a copy in the agent's folder, if other users cannot run the program where it is.
    /// The copy is made at the first call.
    pub(crate) fn for_others(
        &mut self,
        folder: &Folder,
        path: &Path,
    ) -> Result<Option<PathBuf>, String> {
        if let Some(known) = &self.copy {
            return Ok(known.clone());
        }
        let made = copy_if_needed(folder, path)
            .map_err(|e| format!("cannot copy weigh for servers that run as other users: {e}"))?;
        self.copy = Some(made.clone());
        Ok(made)
    }
}

fn copy_if_needed(folder: &Folder, path: &Path) -> io::Result<Option<PathBuf>> {
    if others_can_run(&std::env::current_exe()?) {
        return Ok(None);
    }
    let made = folder.make(FOLDER.as_ref())?;
    copy(&made)?;
    made.set_mode(FOLDER_MODE)?;
    Ok(Some(path.join(FOLDER).join(NAME)))
}

/// Whether any user can enter all folders of a path, and run the file. Access lists and groups do
/// not count: a copy that was not needed does no harm.
fn others_can_run(program: &Path) -> bool {
    program.ancestors().all(|path| {
        fs::metadata(path).is_ok_and(|about| about.permissions().mode() & OTHERS_EXECUTE != 0)
    })
}

fn copy(folder: &Folder) -> io::Result<()> {
    let mut running = File::open(RUNNING)?;
    let mut copy = folder.create(Path::new(NAME))?;
    io::copy(&mut running, &mut copy)?;
    copy.set_permissions(Permissions::from_mode(PROGRAM_MODE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::fixtures::TemporaryFolder;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_program_below_a_closed_folder_is_not_for_others() {
        let place = TemporaryFolder::new();
        let program = place.0.join("weigh");
        fs::write(&program, "").unwrap();
        set(&place.0, 0o711);
        set(&program, 0o755);
        assert!(others_can_run(&program));
        set(&program, 0o750);
        assert!(!others_can_run(&program), "the file");
        set(&program, 0o755);
        set(&place.0, 0o700);
        assert!(!others_can_run(&program), "its folder");
        assert!(!others_can_run(&place.0.join("absent")));
    }

    #[test]
    fn a_copy_is_the_running_program_and_anyone_can_run_it() {
        let place = TemporaryFolder::new();
        copy(&Folder::open(&place.0).unwrap()).unwrap();
        let made = place.0.join(NAME);
        let is_same = fs::read(&made).unwrap() == fs::read(RUNNING).unwrap();
        assert!(is_same);
        let mode = fs::metadata(&made).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o755);
    }
}
