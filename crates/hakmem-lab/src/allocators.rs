//! Finds the allocators: hakmem, the system's malloc, the peers that were built, those that the
//! distribution has installed, and libraries named by their path.

use std::path::{Path, PathBuf};
use std::{fs, io};

use hakmem_results::{Arm, ArmKind};
use serde::Deserialize;

use crate::executor::digest_of_file;
use crate::machine::{first_line_of, libc_version};
use crate::nearest::nearest;

/// The name of the arm that has nothing preloaded.
pub const SYSTEM: &str = "system";

/// Stands in a selection for all peers that are found, but for the hardened ones.
pub const PEERS: &str = "peers";

/// Stands in a selection for the hardened peers that are found.
pub const HARDENED: &str = "hardened";

/// Peers that are made to catch mistakes, which costs time: they compare with one another.
const HARDENED_PEERS: [&str; 5] = [
    "hardened-malloc",
    "hardened-malloc-light",
    "mimalloc3-secure",
    "scudo",
    "snmalloc-checks",
];

/// Allocators that Debian packages, the names of their libraries, and the peer that is a newer
/// version of the same. What Debian calls tcmalloc is that of gperftools, not Google's of today.
const DEBIAN: [(&str, &str, Option<&str>); 5] = [
    ("jemalloc-debian", "libjemalloc.so.2", Some("jemalloc")),
    ("mimalloc-debian", "libmimalloc.so.2", Some("mimalloc2")),
    ("mimalloc3-debian", "libmimalloc.so.3", Some("mimalloc3")),
    ("gperftools-minimal", "libtcmalloc_minimal.so.4", None),
    ("gperftools", "libtcmalloc.so.4", Some("gperftools-minimal")),
];

/// Where allocators are looked for.
#[derive(Clone, Debug)]
pub struct Finder {
    /// hakmem's library.
    pub library: PathBuf,
    /// Directory of the peers that were built; it need not exist.
    pub peers_directory: PathBuf,
    /// Directories in which the distribution installs libraries.
    pub system_directories: Vec<PathBuf>,
}

/// Why an allocator is not an arm.
#[derive(Debug, thiserror::Error)]
pub enum FindError {
    /// Nothing has this name.
    #[error(
        "there is no allocator `{name}`{}; found: {found}; `make peers` builds more",
        hint(.nearest)
    )]
    Unknown {
        /// As it was given.
        name: String,
        /// The name that is most like it.
        nearest: Option<String>,
        /// All names.
        found: String,
    },
    /// A list of allocators is empty.
    #[error("none of `{list}` found; `make peers` builds them")]
    NoneOf {
        /// What stands for them.
        list: String,
    },
    /// The library cannot be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// From the system.
        reason: io::Error,
    },
    /// The dynamic linker could not be told this path.
    #[error(
        "{path} cannot be preloaded: LD_PRELOAD has no way to write a space or a colon, or bytes \
         that are not UTF-8; use a link elsewhere"
    )]
    Unspeakable {
        /// The file.
        path: PathBuf,
    },
    /// The list of the peers is broken.
    #[error("{path} is not a list of peers: {reason}; `make peers` writes it anew")]
    PeerList {
        /// The file.
        path: PathBuf,
        /// Where and why.
        reason: serde_json::Error,
    },
}

fn hint(nearest: &Option<String>) -> String {
    nearest
        .as_ref()
        .map(|name| format!(", did you mean `{name}`?"))
        .unwrap_or_default()
}

/// `peers.json`, as far as it matters here.
#[derive(Default, Deserialize)]
struct PeerList {
    peers: Vec<Peer>,
}

#[derive(Deserialize)]
struct Peer {
    library: String,
    version: Option<String>,
    /// What has to be in the environment for the peer to work as meant, `NAME=value` each.
    #[serde(default)]
    environment: Vec<String>,
}

impl Finder {
    /// Looks beside the distribution's libraries in these two places.
    pub fn new(library: PathBuf, peers_directory: PathBuf) -> Finder {
        let machine = format!("{}-linux-gnu", std::env::consts::ARCH);
        let system_directories =
            ["/usr/lib", "/lib", "/usr/local/lib"].map(|prefix| Path::new(prefix).join(&machine));
        Finder {
            library,
            peers_directory,
            system_directories: system_directories.to_vec(),
        }
    }

    /// Looks nowhere: for programs into which nothing can be preloaded that is found here.
    pub fn alone(library: PathBuf) -> Finder {
        Finder {
            library,
            peers_directory: PathBuf::from("/dev/null"),
            system_directories: Vec::new(),
        }
    }

    /// Everything that is found: hakmem, the system's malloc, the peers.
    pub fn found(&self) -> Result<Vec<Arm>, FindError> {
        let mut arms = vec![arm("hakmem", &self.library, None)?, system()];
        arms.extend(self.built_peers()?);
        arms.extend(self.installed_peers()?);
        Ok(arms)
    }

    /// hakmem and what the list says: names of arms, [`PEERS`], [`HARDENED`], paths, or `NAME=PATH`
    /// for an arm of another name. An empty list stands for everything that is found, but for old
    /// versions of what was built, and for hardened peers. A name that occurs again gets a number.
    pub fn select(&self, with: &[String]) -> Result<Vec<Arm>, FindError> {
        let found = self.found()?;
        if with.is_empty() {
            return Ok(usual(found));
        }
        let mut selected = vec![found[0].clone()];
        for name in with {
            if name == PEERS || name == HARDENED {
                let is_meant =
                    |arm: &Arm| arm.kind == ArmKind::Peer && (name == PEERS || is_hardened(arm));
                let among = match name == PEERS {
                    true => usual(found.clone()),
                    false => found.clone(),
                };
                let before = selected.len();
                selected.extend(among.into_iter().filter(is_meant));
                if selected.len() == before {
                    return Err(FindError::NoneOf { list: name.clone() });
                }
            } else if let Some(arm) = found.iter().find(|arm| arm.name == *name) {
                // Once is enough, and hakmem is there anyway.
                if !selected.contains(arm) {
                    selected.push(arm.clone());
                }
            } else if let Some((name, path)) = named(name) {
                selected.push(arm(name, Path::new(path), None)?);
            } else if is_path(name) {
                let path = Path::new(name);
                selected.push(arm(&name_of_library(path), path, None)?);
            } else {
                return Err(unknown(name, &found));
            }
        }
        make_unique(&mut selected);
        Ok(selected)
    }

    /// The libraries in the peers' directory. The list says more about those that it holds.
    fn built_peers(&self) -> Result<Vec<Arm>, FindError> {
        let list = self.peer_list()?;
        let Ok(entries) = fs::read_dir(&self.peers_directory) else {
            return Ok(Vec::new());
        };
        let mut files: Vec<String> = entries
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|file| file.starts_with("lib") && file.ends_with(".so"))
            .collect();
        files.sort();
        let peer = |file: String| {
            let listed = list.peers.iter().find(|peer| peer.library == file);
            let path = self.peers_directory.join(file);
            let mut arm = arm(&name_of_library(&path), &path, None)?;
            if let Some(listed) = listed {
                let pairs = listed
                    .environment
                    .iter()
                    .filter_map(|pair| pair.split_once('='));
                arm.environment
                    .extend(pairs.map(|(name, value)| (name.into(), value.into())));
                arm.version.clone_from(&listed.version);
            }
            Ok(arm)
        };
        files.into_iter().map(peer).collect()
    }

    fn peer_list(&self) -> Result<PeerList, FindError> {
        let path = self.peers_directory.join("peers.json");
        match fs::read_to_string(&path) {
            Ok(text) => {
                serde_json::from_str(&text).map_err(|reason| FindError::PeerList { path, reason })
            }
            Err(_) => Ok(PeerList::default()),
        }
    }

    fn installed_peers(&self) -> Result<Vec<Arm>, FindError> {
        let mut arms = Vec::new();
        for (name, file, _) in DEBIAN {
            let mut candidates = self.system_directories.iter().map(|path| path.join(file));
            if let Some(path) = candidates.find(|path| path.is_file()) {
                arms.push(arm(name, &path, debian_version(&path))?);
            }
        }
        Ok(arms)
    }
}

/// The system's malloc: nothing is preloaded.
fn system() -> Arm {
    Arm {
        version: libc_version(),
        ..Arm::new(SYSTEM, ArmKind::System, None)
    }
}

/// The arm of a library. A file called `libhakmem*` is hakmem, so that two builds of it can be
/// compared, and has to prove it.
fn arm(name: &str, path: &Path, version: Option<String>) -> Result<Arm, FindError> {
    let unreadable = |reason| FindError::Unreadable {
        path: path.to_path_buf(),
        reason,
    };
    let absolute = std::path::absolute(path).map_err(unreadable)?;
    let Some(library) = absolute.to_str().filter(|path| !path.contains([' ', ':'])) else {
        return Err(FindError::Unspeakable { path: absolute });
    };
    let kind = match is_hakmem_library(path) {
        true => ArmKind::Hakmem,
        false => ArmKind::Peer,
    };
    Ok(Arm {
        version,
        digest: Some(digest_of_file(path).map_err(unreadable)?),
        ..Arm::new(name, kind, Some(library.to_string()))
    })
}

/// Whether a library is a build of hakmem, by the name of its file.
pub(crate) fn is_hakmem_library(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.to_string_lossy().starts_with("libhakmem"))
}

/// `jemalloc` for `/some/where/libjemalloc.so.2`.
fn name_of_library(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = file.split(".so").next().unwrap_or(&file);
    stem.strip_prefix("lib").unwrap_or(stem).to_string()
}

fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".so") || name.contains(".so.")
}

/// The parts of `NAME=PATH` in a selection.
pub fn named(text: &str) -> Option<(&str, &str)> {
    text.split_once('=')
        .filter(|(name, _)| !name.is_empty() && !is_path(name))
}

fn is_hardened(arm: &Arm) -> bool {
    arm.kind == ArmKind::Peer && HARDENED_PEERS.contains(&arm.name.as_str())
}

/// Leaves out what the distribution has where a newer version of the same is there, and what is
/// slower for a reason.
fn usual(found: Vec<Arm>) -> Vec<Arm> {
    let names: Vec<String> = found.iter().map(|arm| arm.name.clone()).collect();
    let is_old = |arm: &Arm| {
        DEBIAN.iter().any(|(name, _, newer)| {
            arm.name == *name && newer.is_some_and(|newer| names.iter().any(|name| name == newer))
        })
    };
    let is_usual = |arm: &Arm| !is_old(arm) && !is_hardened(arm);
    found.into_iter().filter(is_usual).collect()
}

/// Numbers the names that occur again: `hakmem`, `hakmem-2`.
fn make_unique(arms: &mut [Arm]) {
    for index in 1..arms.len() {
        let base = arms[index].name.clone();
        let mut number = 2;
        while arms[..index].iter().any(|arm| arm.name == arms[index].name) {
            arms[index].name = format!("{base}-{number}");
            number += 1;
        }
    }
}

fn unknown(name: &str, found: &[Arm]) -> FindError {
    let names: Vec<&str> = found.iter().map(|arm| arm.name.as_str()).collect();
    FindError::Unknown {
        name: name.to_string(),
        nearest: nearest(name, names.iter().copied()).map(str::to_string),
        found: names.join(", "),
    }
}

/// The version of the package that a file belongs to.
fn debian_version(path: &Path) -> Option<String> {
    let file = fs::canonicalize(path).ok()?;
    let owner = first_line_of("dpkg-query", &["--search", file.to_str()?])?;
    let (package, _) = owner.rsplit_once(": ")?;
    first_line_of(
        "dpkg-query",
        &["--show", "--showformat=${Version}\n", package],
    )
}
