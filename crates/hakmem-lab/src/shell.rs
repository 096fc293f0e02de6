//! Commands that people or shells are given, as a shell takes them.

use std::path::Path;

/// A word as the shell takes it.
pub fn quoted(word: &str) -> String {
    // These mean nothing to a shell, but are quoted by shlex.
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_@%+=:,./-".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => shlex::try_quote(word).map_or_else(|_| word.to_string(), |it| it.into_owned()),
    }
}

/// The path of a file, likewise.
pub fn quoted_path(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_change_is_quoted() {
        assert_eq!(quoted("system,jemalloc"), "system,jemalloc");
        assert_eq!(quoted("big file"), "'big file'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted_path(Path::new("/tmp/a b/*.x")), "'/tmp/a b/*.x'");
    }
}
