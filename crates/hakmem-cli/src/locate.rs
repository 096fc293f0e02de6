//! Finds what belongs to the command: the library, the helpers, the workloads and the lists.
//!
//! Everything lies at fixed places below one prefix, the parent of the directory that the
//! executable is in. The rule is the same in a build tree and in an installed one, so an
//! installed tree may be moved.

use std::path::{Path, PathBuf};

use anyhow::{bail, Context, Result};
use hakmem_process::Tools;

use crate::elf::Libc;

/// The tree that this command is part of.
#[derive(Clone, Debug)]
pub struct Installation {
    prefix: PathBuf,
}

impl Installation {
    /// The tree of the running executable.
    pub fn current() -> Result<Installation> {
        let executable = std::env::current_exe().context("cannot find the hakmem executable")?;
        let prefix = executable.parent().and_then(Path::parent);
        Ok(Installation {
            prefix: prefix
                .context("the hakmem executable is in no bin directory")?
                .into(),
        })
    }

    /// The prefix itself.
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// `libhakmem.so` for programs of this C library, or the hardened library. Distributions put
    /// the name without a version into a development package, so the versioned one serves as well.
    pub fn library(&self, libc: Libc, hardened: bool) -> Result<PathBuf> {
        let name = match hardened {
            true => "libhakmem-hardened.so",
            false => "libhakmem.so",
        };
        let versioned = format!("{name}.0");
        let machine = format!("lib/{}-linux-{}", std::env::consts::ARCH, libc.system());
        let directories = match libc == Libc::OWN {
            true => &["", &machine, "lib64", "lib"][..],
            false => &[libc.name(), &machine],
        };
        let candidates = directories.iter().flat_map(|directory| {
            [name, &versioned].map(|name| self.prefix.join(directory).join(name))
        });
        for candidate in candidates {
            if candidate.is_file() {
                return Ok(candidate);
            }
        }
        let prefix = self.prefix.display();
        if libc == Libc::OWN {
            bail!(
                "{name} is missing: looked in {prefix}, {prefix}/lib, {prefix}/lib64 and \
                 {prefix}/{machine}; run make in the source tree, or make install"
            )
        }
        let libc = libc.name();
        bail!(
            "{name} for {libc} is missing: looked in {prefix}/{libc} and {prefix}/{machine}; \
             `make library-musl` builds that for musl, or unpack the tarball for musl"
        )
    }

    /// The library that times slow paths and locks, for programs of this C library.
    pub fn measuring_library(&self, libc: Libc) -> Result<PathBuf> {
        if libc != Libc::OWN {
            bail!(
                "there is no library that times slow paths for {}",
                libc.name()
            );
        }
        self.part("libexec/hakmem/libhakmem-profile.so")
    }

    /// The helper that starts programs.
    pub fn tools(&self) -> Result<Tools> {
        Ok(Tools {
            measure: self.part("libexec/hakmem/measure")?,
        })
    }

    /// The directory of the workload programs.
    pub fn workloads(&self) -> Result<PathBuf> {
        self.part("libexec/hakmem/workloads")
    }

    /// The directory of the peer allocators; it need not exist.
    pub fn peers(&self) -> PathBuf {
        self.prefix.join("libexec/hakmem/peers")
    }

    /// The directory of the lists of workloads and programs, and of the programs' inputs.
    pub fn share(&self) -> Result<PathBuf> {
        self.part("share/hakmem")
    }

    /// The source tree, when this is a build tree: there, the lists are a link into it.
    pub fn source_tree(&self) -> Option<PathBuf> {
        let share = self.prefix.join("share/hakmem");
        if !share.is_symlink() {
            return None;
        }
        Some(share.canonicalize().ok()?.parent()?.to_path_buf())
    }

    fn part(&self, path: &str) -> Result<PathBuf> {
        let full = self.prefix.join(path);
        if !full.exists() {
            bail!(
                "{} is missing: run make in the source tree, or make install",
                full.display()
            );
        }
        Ok(full)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[&str]) -> (tempfile::TempDir, Installation) {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            let path = directory.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let prefix = directory.path().to_path_buf();
        (directory, Installation { prefix })
    }

    #[test]
    fn library_in_every_layout() {
        let machine = format!("lib/{}-linux-gnu/libhakmem.so", std::env::consts::ARCH);
        for file in [
            "libhakmem.so",
            "lib/libhakmem.so",
            "lib64/libhakmem.so.0",
            &machine,
        ] {
            let (directory, installation) = tree(&[file]);
            let library = installation.library(Libc::OWN, false).unwrap();
            assert_eq!(library, directory.path().join(file));
        }
    }

    #[test]
    fn the_hardened_library_is_a_file_of_its_own() {
        let file = "lib/libhakmem-hardened.so.0";
        let (directory, installation) = tree(&["lib/libhakmem.so", file]);
        let library = installation.library(Libc::OWN, true).unwrap();
        assert_eq!(library, directory.path().join(file));
        let (_directory, installation) = tree(&["lib/libhakmem.so"]);
        let message = installation
            .library(Libc::OWN, true)
            .unwrap_err()
            .to_string();
        assert!(
            message.starts_with("libhakmem-hardened.so is missing"),
            "{message}"
        );
    }

    #[test]
    fn library_for_another_c_library() {
        let other = match Libc::OWN {
            Libc::Glibc => Libc::Musl,
            Libc::Musl => Libc::Glibc,
        };
        let machine = format!("lib/{}-linux-{}", std::env::consts::ARCH, other.system());
        for directory in [other.name(), &machine] {
            let file = format!("{directory}/libhakmem.so");
            let (directory, installation) = tree(&["libhakmem.so", "lib/libhakmem.so", &file]);
            let library = installation.library(other, false).unwrap();
            assert_eq!(library, directory.path().join(file));
        }
        let (_directory, installation) = tree(&["libhakmem.so", "lib/libhakmem.so"]);
        let message = installation.library(other, false).unwrap_err().to_string();
        let missing = format!("libhakmem.so for {} is missing", other.name());
        assert!(message.starts_with(&missing), "{message}");
        assert!(message.contains("`make library-musl`"), "{message}");
    }

    #[test]
    fn what_is_missing_is_named() {
        let (_directory, installation) = tree(&["bin/hakmem"]);
        let message = installation
            .library(Libc::OWN, false)
            .unwrap_err()
            .to_string();
        assert!(message.contains("libhakmem.so is missing"), "{message}");
        let message = installation.tools().unwrap_err().to_string();
        assert!(
            message.contains("libexec/hakmem/measure is missing"),
            "{message}"
        );
    }
}
