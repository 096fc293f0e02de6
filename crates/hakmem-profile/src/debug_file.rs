//! Which file has the symbols of a module.

use std::path::{Path, PathBuf};

use blazesym::helper::read_elf_build_id;

use crate::units::{hex, one_line};

/// The file that has the symbols of a module, or why there is none.
pub fn file_of(path: &str, build_id: &[u8]) -> Result<PathBuf, String> {
    let name = one_line(path);
    let path = Path::new(path);
    if let Some(debug) = debug_file(build_id) {
        return Ok(debug);
    }
    if !path.is_absolute() || !path.exists() {
        return match path.is_absolute() {
            true => Err(format!(
                "{name} is not there any more: its functions have no names."
            )),
            false => Err(format!("{name} has no file.")),
        };
    }
    let now = read_elf_build_id(path).ok().flatten();
    if !build_id.is_empty() && now.as_deref() != Some(build_id) {
        return Err(format!(
            "{name} is another file than it was: its functions have no names."
        ));
    }
    Ok(path.to_owned())
}

/// Where distributions put debugging information.
fn debug_file(build_id: &[u8]) -> Option<PathBuf> {
    let (first, rest) = build_id.split_first()?;
    let rest = hex(rest);
    let path = PathBuf::from(format!("/usr/lib/debug/.build-id/{first:02x}/{rest}.debug"));
    path.exists().then_some(path)
}
