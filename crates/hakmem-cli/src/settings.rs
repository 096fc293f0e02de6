//! The settings of the library that several subcommands take, and how they reach a program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use anyhow::{bail, Result};
use clap::{Args, ValueEnum};

use crate::candidates;
use crate::options::{help, option_setting, OptionSetting};

/// The presets of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// More memory kept at hand, for time
    Speed,
    /// The default of the library
    Balanced,
    /// Memory goes back early, for a small footprint
    Lean,
    /// More mistakes are caught, for time and memory
    Hardened,
}

impl Preset {
    /// The word that the library knows it by.
    pub fn word(self) -> &'static str {
        match self {
            Preset::Speed => "speed",
            Preset::Balanced => "balanced",
            Preset::Lean => "lean",
            Preset::Hardened => "hardened",
        }
    }
}

/// The settings of the library that several subcommands take.
#[derive(Args, Clone, Debug, Default)]
pub struct LibraryOptions {
    /// Starting point of hakmem's options
    #[arg(long, value_enum)]
    pub preset: Option<Preset>,
    /// Set an option of hakmem, e.g. purge_delay_ms=50; may be given several times. --help lists
    /// them
    #[arg(long = "option", value_name = "NAME=VALUE", value_parser = option_setting)]
    #[arg(long_help = help(), add = candidates::settings())]
    pub options: Vec<OptionSetting>,
}

impl LibraryOptions {
    /// Whether they ask for the hardened library, which is a file of its own.
    pub fn hardened(&self) -> bool {
        let asks = |it: &OptionSetting| {
            matches!(
                (&*it.name, &*it.value),
                ("preset", "hardened") | ("hardened", "1")
            )
        };
        self.preset == Some(Preset::Hardened) || self.options.iter().any(asks)
    }
}

/// The path of a file in the directory as an option of the library takes it: in its name, unlike in
/// that of the directory, `%` begins what the library fills in.
pub fn path_option(directory: &Path, name: &str) -> OsString {
    let mut path = Vec::new();
    for &byte in directory.join("").as_os_str().as_bytes() {
        path.push(byte);
        // The library takes two for one.
        if byte == b'%' {
            path.push(byte);
        }
    }
    path.extend(name.as_bytes());
    OsString::from_vec(path)
}

/// The variables that carry the settings to the library.
///
/// # Errors
/// An option is set twice.
pub fn environment(options: &LibraryOptions) -> Result<BTreeMap<String, String>> {
    let preset = options.preset.map(|preset| OptionSetting {
        name: "preset".into(),
        value: preset.word().into(),
    });
    let mut variables = BTreeMap::new();
    for setting in preset.iter().chain(&options.options) {
        if variables
            .insert(setting.variable(), setting.value.clone())
            .is_some()
        {
            bail!("the option {} is set twice; keep one", setting.name);
        }
    }
    Ok(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::option_table::TABLE;

    #[test]
    fn the_presets_are_those_of_the_library() {
        let words: Vec<_> = Preset::value_variants()
            .iter()
            .map(|it| it.word())
            .collect();
        assert_eq!(TABLE[0].name, "preset");
        assert_eq!(TABLE[0].words, words);
    }

    #[test]
    fn an_option_is_set_once() {
        let setting = |text| option_setting(text).unwrap();
        let mut options = LibraryOptions {
            preset: Some(Preset::Lean),
            options: vec![setting("shards=1")],
        };
        let variables = environment(&options).unwrap();
        assert_eq!(variables["HAKMEM_PRESET"], "lean");
        assert_eq!(variables["HAKMEM_SHARDS"], "1");
        for twice in ["shards=2", "preset=speed"] {
            options.options.push(setting(twice));
            let error = environment(&options).unwrap_err().to_string();
            assert!(error.contains("is set twice"), "{error}");
            options.options.pop();
        }
    }
}
