//! Builds the library of another revision of the source tree, to compare with the state before.

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{bail, Context, Result};
use hakmem_report::format::one_line;

use crate::output::say;

/// How many lines of a build that failed are shown.
const LINES_SHOWN: usize = 20;

/// The library of a revision of `tree`: a commit, a tag, a branch. It is built once, and kept in
/// a directory of its own below `builds`.
///
/// # Errors
/// Git does not know the revision, it cannot be built, or a file cannot be written.
pub fn library(tree: &Path, revision: &str, builds: &Path) -> Result<PathBuf> {
    let commit = commit(tree, revision)?;
    let kept = builds.join(&commit[..12]);
    let library = kept.join("libhakmem.so");
    if library.is_file() {
        return Ok(library);
    }
    say(format_args!(
        "Building the library of {}",
        one_line(revision)
    ));
    fs::create_dir_all(builds).with_context(|| format!("cannot make {}", builds.display()))?;
    let scratch = tempfile::Builder::new()
        .prefix("building-")
        .tempdir_in(builds)?;
    let sources = scratch.path().join("sources");
    extract(tree, &commit, &sources)?;
    make(&sources).with_context(|| format!("cannot build the library of {revision}"))?;
    let built = scratch.path().join("built");
    fs::create_dir(&built)?;
    // With those that it opens itself.
    for entry in fs::read_dir(sources.join("build"))? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("libhakmem") && name.contains(".so") {
            fs::copy(&path, built.join(&*name))?;
        }
    }
    if !built.join("libhakmem.so").is_file() {
        bail!("`make library` of {revision} made no build/libhakmem.so");
    }
    // Another command may have been faster.
    fs::rename(&built, &kept).or_else(|error| match library.is_file() {
        true => Ok(()),
        false => Err(error),
    })?;
    Ok(library)
}

fn commit(tree: &Path, revision: &str) -> Result<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(tree)
        .args(["rev-parse", "--verify", "--quiet", "--end-of-options"])
        .arg(format!("{revision}^{{commit}}"))
        .output()
        .context("cannot run git, which knows the revisions")?;
    let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || commit.len() < 12 {
        let revision = one_line(revision);
        bail!(
            "`{revision}` is no revision in {}: give a commit, a tag, or the path of a library",
            tree.display()
        );
    }
    Ok(commit)
}

fn extract(tree: &Path, commit: &str, sources: &Path) -> Result<()> {
    fs::create_dir(sources)?;
    let mut archive = Command::new("git")
        .arg("-C")
        .arg(tree)
        .args(["archive", "--format=tar", commit])
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot run git")?;
    let bytes = archive.stdout.take().context("git has no output")?;
    let unpacked = Command::new("tar")
        .args([OsStr::new("-x"), OsStr::new("-C"), sources.as_os_str()])
        .stdin(bytes)
        .status()
        .context("cannot run tar")?;
    if !archive.wait()?.success() || !unpacked.success() {
        bail!("cannot read the sources of {commit} from git");
    }
    Ok(())
}

/// `make library`, as whoever had the revision would type it.
fn make(sources: &Path) -> Result<()> {
    let mut make = Command::new("make");
    make.arg("-C")
        .arg(sources)
        .arg("library")
        .stdin(Stdio::null());
    // What a make above this command was told is not for this one.
    for (name, _) in env::vars_os() {
        if name.to_string_lossy().starts_with("MAKE") || name == "MFLAGS" {
            make.env_remove(name);
        }
    }
    let output = make.output().context("cannot run make")?;
    if output.status.success() {
        return Ok(());
    }
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed);
    let lines: Vec<&str> = printed.lines().collect();
    bail!(
        "{}",
        lines[lines.len().saturating_sub(LINES_SHOWN)..].join("\n")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tree whose library is a file with the text of the revision.
    fn tree(texts: &[&str]) -> tempfile::TempDir {
        let tree = tempfile::tempdir().unwrap();
        let git = |arguments: &[&str]| {
            let output = Command::new("git")
                .args(["-C", tree.path().to_str().unwrap()])
                .args(["-c", "user.name=a", "-c", "user.email=a@example.org"])
                .args(arguments)
                .output()
                .unwrap();
            assert!(output.status.success(), "{output:?}");
        };
        git(&["init", "--quiet"]);
        for text in texts {
            let rule = format!("library:\n\tmkdir build && echo {text} >build/libhakmem.so\n");
            fs::write(tree.path().join("Makefile"), rule).unwrap();
            git(&["add", "."]);
            git(&["commit", "--quiet", "--message", text]);
        }
        tree
    }

    #[test]
    fn builds_a_revision_once() {
        let tree = tree(&["before", "now"]);
        let builds = tree.path().join("builds");
        let built = library(tree.path(), "HEAD~1", &builds).unwrap();
        assert_eq!(fs::read_to_string(&built).unwrap(), "before\n");
        fs::write(&built, "kept").unwrap();
        assert_eq!(library(tree.path(), "HEAD~1", &builds).unwrap(), built);
        assert_eq!(fs::read_to_string(&built).unwrap(), "kept");
        // Nothing else stays.
        assert_eq!(fs::read_dir(&builds).unwrap().count(), 1);
    }

    #[test]
    fn says_what_is_no_revision_and_what_cannot_be_built() {
        let tree = tree(&["before; echo the reason; exit 1;"]);
        let builds = tree.path().join("builds");
        let unknown = library(tree.path(), "--all", &builds).unwrap_err();
        assert!(unknown.to_string().contains("`--all` is no revision"));
        let failed = library(tree.path(), "HEAD", &builds).unwrap_err();
        assert!(format!("{failed:#}").contains("the reason"), "{failed:#}");
    }
}
