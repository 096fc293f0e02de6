//! The options of the library: which there are, and what they can be.
//!
//! The command knows what the library knows ([`crate::option_table`]). A setting is judged before
//! anything runs: a measurement keeps what the library says on standard error to itself, and would
//! measure as if nothing were wrong.

use std::env;
use std::ffi::OsString;
use std::fmt::Write as _;

use anyhow::{anyhow, Context, Result};

use crate::option_table::{LibraryOption, TABLE};
use crate::values::in_unit;

/// Paths, so the table of the library does not have them, and what is written there.
pub const FILES: [(&str, &str); 4] = [
    (
        "stats_file",
        "write statistics as JSON to this file at exit",
    ),
    (
        "record_file",
        "log samples to this file, as hakmem record does",
    ),
    (
        "crash_file",
        "write a report to this file when the program dies by a signal",
    ),
    (
        "profile_file",
        "write the profile of what lives to this file at exit, for pprof",
    ),
];

const PREFIX: &str = "HAKMEM_";

/// The variable that sets several options at once.
const LIST: &str = "HAKMEM_OPTIONS";

/// An option with its value, as `--option` takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OptionSetting {
    /// Its name, e.g. `purge_delay_ms`.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl OptionSetting {
    /// The environment variable that sets the option.
    pub fn variable(&self) -> String {
        format!("{PREFIX}{}", self.name.to_ascii_uppercase())
    }
}

const NO_SETTING: &str = "expected NAME=VALUE, e.g. purge_delay_ms=50";

/// Parses `NAME=VALUE`. The option exists, and can have the value.
pub fn option_setting(text: &str) -> Result<OptionSetting, String> {
    let (name, value) = text.split_once('=').ok_or(NO_SETTING)?;
    let option = TABLE.iter().find(|option| option.name == name);
    let value = in_unit(value, option.map_or("", |option| &option.unit));
    check(name, &value)?;
    Ok(OptionSetting {
        name: name.into(),
        value,
    })
}

/// Finds variables of this process that the library would complain about: every program gets them.
///
/// # Errors
/// As [`check_variables`].
pub fn check_environment() -> Result<()> {
    let text = |text: OsString| text.to_string_lossy().into_owned();
    let variables: Vec<_> = env::vars_os()
        .map(|(variable, value)| (text(variable), text(value)))
        .collect();
    check_variables(
        variables
            .iter()
            .map(|(variable, value)| (&**variable, &**value)),
    )
    .context("in the environment")
}

/// Finds variables that the library would complain about.
///
/// # Errors
/// A variable that begins with `HAKMEM_` sets no option of the library, or one to a value that it
/// cannot have.
pub fn check_variables<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<()> {
    for (variable, value) in variables {
        let Some(name) = variable.strip_prefix(PREFIX) else {
            continue;
        };
        // An empty variable counts as unset.
        if value.is_empty() {
            continue;
        }
        let checked = match variable {
            LIST => value
                .split(',')
                .filter(|entry| !entry.is_empty())
                .try_for_each(check_entry),
            _ => check(&name.to_ascii_lowercase(), value),
        };
        checked
            .map_err(|reason| anyhow!(reason))
            .with_context(|| variable.to_owned())?;
    }
    Ok(())
}

/// An entry of [`LIST`], in which a path cannot stand.
fn check_entry(entry: &str) -> Result<(), String> {
    // The library takes no units.
    let (name, value) = entry.split_once('=').ok_or(NO_SETTING)?;
    check(name, value)?;
    match is_file(name) {
        true => Err(format!(
            "{name} has a variable of its own: {PREFIX}{}=PATH",
            name.to_ascii_uppercase()
        )),
        false => Ok(()),
    }
}

fn is_file(name: &str) -> bool {
    FILES.iter().any(|(file, _)| *file == name)
}

/// Whether the library has the option and takes the value, by the same rules.
fn check(name: &str, value: &str) -> Result<(), String> {
    if is_file(name) {
        return match value.is_empty() || value.contains('\0') {
            true => Err(format!("{name} is the path of a file")),
            false => Ok(()),
        };
    }
    let Some(option) = TABLE.iter().find(|option| option.name == name) else {
        let names = TABLE.iter().map(|option| option.name.as_str());
        let nearest = nearest(name, names.chain(FILES.map(|(file, _)| file)));
        return Err(format!(
            "hakmem has no option `{name}`; the nearest is `{nearest}`"
        ));
    };
    option.check(value)
}

impl LibraryOption {
    fn check(&self, value: &str) -> Result<(), String> {
        let name = &self.name;
        if !self.words.is_empty() {
            if self.words.iter().any(|word| word == value) {
                return Ok(());
            }
            let nearest = nearest(value, self.words.iter().map(String::as_str));
            let words = self.words.join(", ");
            return Err(format!(
                "{name} is one of {words}, not `{value}`; the nearest is {nearest}"
            ));
        }
        let digits = value.strip_prefix('-').unwrap_or(value);
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        // A number too large for the type is outside of every range.
        match value.parse::<i64>() {
            Ok(number) if is_number && (self.minimum..=self.maximum).contains(&number) => Ok(()),
            _ => {
                let unit = match &*self.unit {
                    "" => String::new(),
                    unit => format!(", in {unit}"),
                };
                Err(format!("{name} is {}{unit}, not `{value}`", self.range()))
            }
        }
    }

    /// What it can be, for people.
    fn range(&self) -> String {
        match (self.words.is_empty(), self.maximum - self.minimum) {
            (false, _) => self.words.join(", "),
            (true, 1) => format!("{} or {}", self.minimum, self.maximum),
            (true, _) => format!("a number from {} to {}", self.minimum, self.maximum),
        }
    }

    /// The same where the words around it are few.
    pub fn values(&self) -> String {
        let range = self.range();
        range.trim_start_matches("a number from ").to_string()
    }

    /// What it is unless somebody says otherwise.
    pub fn default(&self) -> String {
        let word = usize::try_from(self.default).ok();
        match word.and_then(|place| self.words.get(place)) {
            Some(word) => word.clone(),
            None => self.default.to_string(),
        }
    }
}

fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> &'a str {
    let distance = |candidate: &&str| strsim::osa_distance(name, candidate);
    names.min_by_key(distance).unwrap_or_default()
}

/// The help of `--option`, with a paragraph for each option: man pages know no other lists.
pub fn help() -> String {
    let mut text =
        String::from("Set an option of hakmem, e.g. purge_delay_ms=50; may be given several times");
    for option in TABLE.iter() {
        let default = option.default();
        let range = format!("{} {}", option.values(), option.unit);
        let (name, meaning) = (&option.name, &option.meaning);
        let _ = write!(
            text,
            "\n\n{name} ({}; default {default}): {meaning}",
            range.trim_end()
        );
    }
    for (name, meaning) in FILES {
        let _ = write!(
            text,
            "\n\n{name} (a path): {meaning}; %p in the path becomes the process id"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn settings_that_the_library_takes() {
        let setting = option_setting("purge_delay_ms=50").unwrap();
        assert_eq!(setting.variable(), "HAKMEM_PURGE_DELAY_MS");
        assert_eq!(setting.value, "50");
        for text in ["stats_file=/tmp/a=b", "preset=lean", "stats=1", "stats=-0"] {
            assert!(option_setting(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn values_may_have_units_of_their_own() {
        for (text, value) in [
            ("limit_mib=100M", "100"),
            ("limit_mib=2GiB", "2048"),
            ("limit_mib=2048k", "2"),
            ("magazine_kib=1m", "1024"),
        ] {
            assert_eq!(option_setting(text).unwrap().value, value, "{text}");
        }
        for text in ["limit_mib=1025K", "limit_mib=100MB", "purge_delay_ms=1M"] {
            assert!(option_setting(text).is_err(), "{text}");
        }
        check_variables([("HAKMEM_LIMIT_MIB", "100M")]).unwrap_err();
        check_variables([("HAKMEM_OPTIONS", "limit_mib=100M")]).unwrap_err();
    }

    #[test]
    fn settings_that_it_does_not_take() {
        for (text, message) in [
            ("", "expected NAME=VALUE"),
            ("stats", "expected NAME=VALUE"),
            ("=", "no option ``"),
            ("foo=1", "no option `foo`"),
            ("purge_delay=1", "the nearest is `purge_delay_ms`"),
            ("Stats=1", "the nearest is `stats`"),
            ("stat_file=x", "the nearest is `stats_file`"),
            ("stats=2", "stats is 0 or 1, not `2`"),
            ("stats=", "stats is 0 or 1, not ``"),
            ("stats=+1", "stats is 0 or 1"),
            ("shards=65", "shards is a number from 0 to 64, not `65`"),
            ("shards=99999999999999999999", "from 0 to 64"),
            (
                "big_cache_mib=100K",
                "is a number from 0 to 65536, in MiB, not `100K`",
            ),
            ("fallback=lib", "the nearest is libc"),
            ("stats_file=", "the path of a file"),
        ] {
            let error = option_setting(text).unwrap_err();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    #[test]
    fn variables_that_the_library_would_complain_about() {
        for (variable, value, message) in [
            ("HAKMEM_FOO", "1", "no option `foo`"),
            ("HAKMEM_STATS", "2", "stats is 0 or 1"),
            (
                "HAKMEM_OPTIONS",
                "stats=1,shard=1",
                "the nearest is `shards`",
            ),
            ("HAKMEM_OPTIONS", "stats", "expected NAME=VALUE"),
            ("HAKMEM_OPTIONS", "stats_file=x", "HAKMEM_STATS_FILE"),
            ("HAKMEM_OPTIONS", "crash_file=x", "HAKMEM_CRASH_FILE"),
        ] {
            let error = check_variables([("PATH", ""), (variable, value)]).unwrap_err();
            let error = format!("{error:#}");
            assert!(error.contains(variable), "{error}");
            assert!(error.contains(message), "{error}");
        }
        let good = [
            ("HAKMEM_STATS", ""),
            ("HAKMEM_OPTIONS", ",stats=1,,shards=2"),
            ("HAKMEM_STATS_FILE", "/x"),
            ("OTHER", "1"),
        ];
        check_variables(good).unwrap();
    }

    #[test]
    fn the_files_are_those_of_the_library() {
        let source = include_str!("../../../core/api/environment.c");
        let (_, list) = source.split_once("file_names[]").unwrap();
        let (list, _) = list.split_once(';').unwrap();
        let quoted = list.split('"').skip(1).step_by(2);
        assert_eq!(quoted.collect::<Vec<_>>(), FILES.map(|(name, _)| name));
    }

    #[test]
    fn the_help_names_every_option() {
        let help = help();
        for option in TABLE.iter() {
            assert!(help.contains(&format!("\n{} (", option.name)), "{help}");
        }
        assert!(help.contains("(0 to 3600000 ms; default 250): "));
        assert!(help.contains("(speed, balanced, lean, hardened; default balanced): "));
    }

    proptest! {
        #[test]
        fn the_parser_never_panics(text in "\\PC*") {
            let _ = option_setting(&text);
        }
    }
}
