//! Packages of registries, put into the cache that [`installed`] looks in.
//!
//! The client of each registry downloads, checks and unpacks or builds a package, in a folder that
//! takes its place once all is done. A package often holds a script of the same name as the program,
//! which starts it: the program is the file in ELF format.

mod error;
mod former;
mod program;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use installed::{PinnedPackage, Record};
use net::os;

pub use error::InstallError;
use program::{at, make_folder, only_file, sha256};

/// How much of a client's output an error shows.
const LINES_MAX: usize = 20;
/// Folders of an installation.
const DOWNLOAD: &str = "download";
const FILES: &str = "files";
const PROGRAMS: &str = "programs";
const SOURCE: &str = "source";
/// Precedes, in the name of a folder that is being filled, the number of the process.
const BEGUN: &str = ".new-";
/// Stands in a record for the checksum of a package of which no single file was downloaded.
const NO_SUM: &str = "-";
/// Stands in a record for the folder of a recipe that the program brings.
const OWN_RECIPE: &str = "-";

/// The sources of a package that is a folder of them.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    /// The files, by their paths inside it.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The folder of the recipe; `None` of one that the program brings.
    pub recipe: Option<PathBuf>,
}

impl Sources {
    /// What a record calls the recipe.
    fn recorded(&self) -> String {
        let Some(folder) = &self.recipe else {
            return OWN_RECIPE.to_owned();
        };
        let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.clone());
        folder.display().to_string()
    }
}

/// What installs a package. Nothing is done before [`Installation::carry_out`].
#[derive(Clone, Debug)]
pub struct Installation {
    package: PinnedPackage,
    /// The names that each of the programs may have.
    programs: Vec<Vec<String>>,
    sources: Sources,
    cache: PathBuf,
}

impl Installation {
    /// The installation of a package into this user's cache, for these programs of a recipe or a
    /// driver.
    ///
    /// # Errors
    /// When no folder for the cache is known.
    pub fn of(
        package: &PinnedPackage,
        programs: &[(String, Vec<String>)],
        sources: Sources,
    ) -> Result<Self, InstallError> {
        Ok(Self {
            package: package.clone(),
            programs: programs.iter().map(|(_, names)| names.clone()).collect(),
            sources,
            cache: installed::package_cache().ok_or(InstallError::NoCache)?,
        })
    }

    pub fn package(&self) -> &PinnedPackage {
        &self.package
    }

    /// The folder that it is put into.
    pub fn folder(&self) -> PathBuf {
        self.package.folder(&self.cache)
    }

    /// The commands that [`Installation::carry_out`] runs, each with the variables that are set for it
    /// before it; `temporary` is the folder in which it works.
    pub fn shown(&self, temporary: &Path) -> Vec<String> {
        let kind = self.package.kind;
        let fill = |word: &&str| self.fill(word, temporary, &temporary.join("download/FILE"));
        let set = kind
            .env
            .iter()
            .map(|(name, value)| format!("{name}={}", fill(value)));
        let env: Vec<String> = set.collect();
        let line = |step: &&[&str]| {
            let words = env.iter().cloned().chain(step.iter().map(fill));
            words.collect::<Vec<_>>().join(" ")
        };
        kind.steps.iter().map(line).collect()
    }

    /// A word of a command with its placeholders replaced.
    fn fill(&self, word: &str, temporary: &Path, file: &Path) -> String {
        let folder = |name: &str| temporary.join(name).display().to_string();
        word.replace("{name}", &self.package.name)
            .replace("{version}", &self.package.version)
            .replace("{files}", &folder(FILES))
            .replace("{download}", &folder(DOWNLOAD))
            .replace("{source}", &folder(SOURCE))
            .replace("{file}", &file.display().to_string())
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
    /// When the client is missing or fails, the registry cannot be reached, the package has no such
    /// program, or the cache cannot be used.
    pub fn carry_out(&self) -> Result<PathBuf, InstallError> {
        self.make_cache()?;
        self.remove_cut_off();
        let folder = self.folder();
        // The number keeps two installations apart that run at the same time.
        let mut name = folder.file_name().unwrap_or_default().to_owned();
        name.push(format!("{BEGUN}{}", std::process::id()));
        let temporary = folder.with_file_name(name);
        let result = self.install_in(&temporary);
        let moved = result.and_then(|name| {
            if folder.exists() {
                fs::remove_dir_all(&folder).map_err(at(&folder))?;
            }
            fs::rename(&temporary, &folder).map_err(at(&folder))?;
            Ok(self.package.programs(&self.cache).join(name))
        });
        match moved.is_err() {
            // What was begun is of no use; that it is left over does not hinder the next attempt.
            true => drop(fs::remove_dir_all(&temporary)),
            false => self.remove_former_builds(),
        }
        moved
    }

    /// Fills a folder; returns the program's file name.
    fn install_in(&self, temporary: &Path) -> Result<String, InstallError> {
        if temporary.exists() {
            fs::remove_dir_all(temporary).map_err(at(temporary))?;
        }
        for name in [PROGRAMS, DOWNLOAD, FILES, SOURCE] {
            let folder = temporary.join(name);
            make_folder(&folder).map_err(at(&folder))?;
        }
        for (path, bytes) in &self.sources.files {
            let path = temporary.join(SOURCE).join(path);
            let written = path.parent().map_or(Ok(()), make_folder);
            written
                .and_then(|()| fs::write(&path, bytes))
                .map_err(at(&path))?;
        }
        let mut package_sha256 = NO_SUM.to_owned();
        let mut file = PathBuf::new();
        for step in self.package.kind.steps {
            // What an earlier step has downloaded.
            if step.contains(&"{file}") {
                file = only_file(&temporary.join(DOWNLOAD))?;
                package_sha256 = sha256(&file).map_err(at(&file))?;
            }
            self.run(step, temporary, &file)?;
        }
        for name in [DOWNLOAD, SOURCE] {
            let folder = temporary.join(name);
            if folder.exists() {
                fs::remove_dir_all(&folder).map_err(at(&folder))?;
            }
        }
        let name = self.place_program(temporary)?;
        let program = temporary.join(PROGRAMS).join(&name);
        let record = Record {
            package_sha256,
            program_sha256: sha256(&program).map_err(at(&program))?,
            bytes: fs::metadata(&program).map_err(at(&program))?.len(),
            recipe: self.package.kind.is_source.then(|| self.sources.recorded()),
        };
        record.write(temporary).map_err(at(temporary))?;
        Ok(name)
    }

    /// Runs a step, in the temporary folder: a client reads settings from the folder it is started in.
    fn run(&self, step: &[&str], temporary: &Path, file: &Path) -> Result<(), InstallError> {
        let kind = self.package.kind;
        let words: Vec<String> = (step.iter())
            .map(|word| self.fill(word, temporary, file))
            .collect();
        let mut command = Command::new(&words[0]);
        command
            .args(&words[1..])
            .stdin(Stdio::null())
            .current_dir(temporary);
        for (name, value) in kind.env {
            command.env(name, self.fill(value, temporary, file));
        }
        let package = self.package.to_string();
        let no_client = |why: String| InstallError::NoClient {
            package: package.clone(),
            client: kind.client,
            from: kind.client_from,
            why,
        };
        let out = command.output().map_err(|e| no_client(e.to_string()))?;
        if out.status.success() {
            return Ok(());
        }
        let printed = [out.stdout, out.stderr].concat();
        let printed = String::from_utf8_lossy(&printed).into_owned();
        if printed.contains(kind.no_client) {
            return Err(no_client(printed.trim().to_owned()));
        }
        let lines: Vec<&str> = printed.lines().collect();
        let (command, status) = (words.join(" "), out.status.to_string());
        let last = lines[lines.len().saturating_sub(LINES_MAX)..].join("\n");
        let is_unreachable = kind.unreachable.iter().any(|text| printed.contains(text));
        Err(match is_unreachable {
            true => InstallError::Unreachable {
                package,
                registry: kind.registry,
                command,
                status,
                lines: last,
            },
            false => InstallError::Failed {
                package,
                command,
                status,
                lines: last,
            },
        })
    }

    /// Makes the folder of packages, which other users may enter, but not change.
    fn make_cache(&self) -> Result<(), InstallError> {
        let folder = self.cache.join(self.package.kind.folder);
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

#[cfg(test)]
mod tests;
