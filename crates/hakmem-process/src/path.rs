//! Where a program's file is.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The program that a command names: the path itself when there is a slash in it, else the first
/// executable file of that name in PATH.
pub fn find_program(name: &Path) -> Option<PathBuf> {
    if name.as_os_str().as_encoded_bytes().contains(&b'/') {
        return name.exists().then(|| name.to_path_buf());
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    let mut candidates = std::env::split_paths(&path).map(|directory| directory.join(name));
    candidates.find(|candidate| is_executable(candidate))
}

fn is_executable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_like_a_shell_finds_them() {
        assert!(find_program(Path::new("sh")).unwrap().is_absolute());
        assert_eq!(find_program(Path::new("/bin/sh")), Some("/bin/sh".into()));
        assert_eq!(find_program(Path::new("/nowhere/sh")), None);
        assert_eq!(find_program(Path::new("no-such-program-anywhere")), None);
    }
}
