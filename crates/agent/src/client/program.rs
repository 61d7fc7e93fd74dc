//! The program that runs as an agent on another machine.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// A program to run on another machine.
#[derive(Clone, Debug)]
pub struct Program {
    pub(crate) path: PathBuf,
    /// SHA-256, hexadecimal.
    pub(crate) sum: String,
    /// The machine that it is built for, if that is known.
    machine: Option<&'static str>,
}

impl Program {
    /// Reads a program's checksum and the machine that it is built for.
    ///
    /// # Errors
    /// When it cannot be read or is not a program for Linux.
    pub fn read(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let (head, sum) = head_and_sum(path).map_err(|e| format!("{shown}: {e}"))?;
        if !head.starts_with(b"\x7fELF") {
            return Err(format!("{shown} is not a program for Linux"));
        }
        Ok(Self {
            path: path.to_path_buf(),
            sum,
            machine: machine_of(&head),
        })
    }

    /// Its path on this machine.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its version and the start of its checksum.
    pub fn mark(&self) -> String {
        format!("{}-{}", env!("CARGO_PKG_VERSION"), &self.sum[..16])
    }
}

/// How a file begins, and its SHA-256.
fn head_and_sum(path: &Path) -> io::Result<(Vec<u8>, String)> {
    let mut file = fs::File::open(path)?;
    let mut head = Vec::new();
    (&mut file).take(64).read_to_end(&mut head)?;
    let mut sum = Sha256::new_with_prefix(&head);
    io::copy(&mut file, &mut sum)?;
    let digits = sum.finalize().iter().map(|b| format!("{b:02x}")).collect();
    Ok((head, digits))
}

/// The machine as `uname -m` names it, from the ELF header (`e_machine`, System V gABI).
fn machine_of(head: &[u8]) -> Option<&'static str> {
    let bytes = [*head.get(18)?, *head.get(19)?];
    let little = head.get(5) == Some(&1);
    let number = match little {
        true => u16::from_le_bytes(bytes),
        false => u16::from_be_bytes(bytes),
    };
    Some(match (number, little) {
        (62, _) => "x86_64",
        (183, true) => "aarch64",
        (243, _) => "riscv64",
        (22, _) => "s390x",
        (21, true) => "ppc64le",
        _ => return None,
    })
}

/// Whether a program can run on a machine.
pub(crate) fn fits(program: &Program, system: &str, machine: &str) -> Result<(), String> {
    if system != "Linux" {
        return Err(format!("it runs {system}; weigh needs Linux"));
    }
    match program.machine {
        Some(built) if built != machine => Err(format!(
            "its machine type is {machine}, but {} is built for {built}: name a weigh of version \
             {} that is built for {machine} with binary = \"…\"",
            program.path.display(),
            env!("CARGO_PKG_VERSION"),
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_tells_what_it_is_built_for() {
        let own = Program::read(&std::env::current_exe().unwrap()).unwrap();
        assert_eq!(own.machine, Some(std::env::consts::ARCH));
        assert!(fits(&own, "Linux", std::env::consts::ARCH).is_ok());
        let why = fits(&own, "Linux", "armv7l").unwrap_err();
        assert!(why.contains("armv7l") && why.contains("binary"), "{why}");
        let why = fits(&own, "Darwin", "arm64").unwrap_err();
        assert!(why.contains("Darwin"), "{why}");
        let none = Program::read(Path::new("/proc/self/status")).unwrap_err();
        assert!(none.contains("not a program"), "{none}");
    }
}
