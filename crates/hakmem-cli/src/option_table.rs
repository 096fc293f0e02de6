//! The library's own table of options, core/base/options.def, which is compiled in.

use std::sync::LazyLock;

/// An option of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryOption {
    /// Its name, e.g. `purge_delay_ms`.
    pub name: String,
    /// E.g. `ms`; empty: it has none.
    pub unit: String,
    /// The words that it can be; empty: it is a number.
    pub words: Vec<String>,
    /// Smallest number.
    pub minimum: i64,
    /// Largest number.
    pub maximum: i64,
    /// What it is unless somebody says otherwise; of words, the place among them.
    pub default: i64,
    /// The same in each of the [`PRESETS`].
    pub presets: [i64; PRESETS.len()],
    /// Whether a running program may change it.
    pub settable: bool,
    /// One line for people.
    pub meaning: String,
}

/// The presets in the order in which the rows of the table have their values.
pub const PRESETS: [&str; 4] = ["speed", "balanced", "lean", "hardened"];

/// That of the library, where the build says another one than usual.
const DEFAULT_PRESET: &str = match option_env!("HAKMEM_DEFAULT_PRESET") {
    Some(preset) => preset,
    None => "balanced",
};

/// All options, in the order of the library.
pub static TABLE: LazyLock<Vec<LibraryOption>> = LazyLock::new(|| {
    let text = include_str!("../../../core/base/options.def");
    parse_table(text, DEFAULT_PRESET).expect("options.def is well-formed")
});

/// The rows of options.def: `OPTION(name, unit, words, settable, min, max, speed, balanced, lean,
/// hardened, help)`. `None`: one of them is not like that, or there is no such preset.
fn parse_table(text: &str, default_preset: &str) -> Option<Vec<LibraryOption>> {
    let place = PRESETS
        .iter()
        .position(|&preset| preset == default_preset)?;
    let rows = text.lines().collect::<Vec<_>>().join(" ");
    // The comment at the head has a sample row.
    let (_, rows) = rows.split_once("*/")?;
    let mut table = Vec::new();
    for row in rows.split("OPTION(").skip(1) {
        let fields: [String; 11] = fields(row)?.try_into().ok()?;
        let [name, unit, words, settable, minimum, maximum, presets @ .., meaning] = fields;
        let mut values = [0; PRESETS.len()];
        for (value, field) in values.iter_mut().zip::<[String; 4]>(presets) {
            *value = field.parse().ok()?;
        }
        table.push(LibraryOption {
            name,
            unit,
            words: words.split_whitespace().map(String::from).collect(),
            minimum: minimum.parse().ok()?,
            maximum: maximum.parse().ok()?,
            default: values[place],
            presets: values,
            settable: settable == "1",
            meaning,
        });
    }
    Some(table)
}

/// The fields up to the closing bracket: words, numbers and strings, which may come in pieces.
fn fields(row: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut in_string = false;
    for c in row.chars() {
        let field = fields.last_mut()?;
        match c {
            '"' => in_string = !in_string,
            _ if in_string => field.push(c),
            ')' => return Some(fields),
            ',' => fields.push(String::new()),
            c if c.is_whitespace() => {}
            c => field.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_of_the_table_is_read() {
        let definition = include_str!("../../../core/base/options.def");
        let rows = definition
            .lines()
            .filter(|line| line.starts_with("OPTION("));
        assert_eq!(TABLE.len(), rows.count());
        let fallback = &TABLE[1];
        assert_eq!(fallback.name, "fallback");
        assert_eq!(fallback.words, ["none", "libc"]);
        let purge_delay = TABLE.iter().find(|option| option.name == "purge_delay_ms");
        let purge_delay = purge_delay.unwrap();
        assert_eq!(purge_delay.unit, "ms");
        assert_eq!((purge_delay.minimum, purge_delay.maximum), (0, 3_600_000));
        assert_eq!(purge_delay.default, 250);
        assert_eq!(purge_delay.presets, [2000, 250, 50, 250]);
        assert!(purge_delay.settable && !fallback.settable);
    }

    #[test]
    fn strings_in_pieces_are_put_together() {
        let row =
            "/* OPTION(s) */\nOPTION(a, \"ms\", \"\", 1, 0, 9, 1, 2, 3, 4, \"x, (y) \"\n\"z\")";
        let [option] = &parse_table(row, "balanced").unwrap()[..] else {
            panic!("not one row")
        };
        assert_eq!(option.meaning, "x, (y) z");
        assert_eq!(option.default, 2);
    }

    #[test]
    fn half_a_table_is_none() {
        for text in [
            "",
            "/* */ OPTION(name)",
            "/* */ OPTION(name, \"\", \"\", 1, 0, 1, 0, 0, 0, 0, \"x\"",
            "/* */ OPTION(name, \"\", \"\", 1, zero, 1, 0, 0, 0, 0, \"x\")",
        ] {
            let table = parse_table(text, "balanced");
            assert_eq!(table, None, "{text}");
        }
    }

    #[test]
    fn the_default_is_that_of_the_preset_which_the_library_is_built_with() {
        let row = "/* */ OPTION(a, \"\", \"\", 1, 0, 9, 1, 2, 3, 4, \"x\")";
        for (preset, default) in PRESETS.iter().zip(1..) {
            assert_eq!(parse_table(row, preset).unwrap()[0].default, default);
        }
        assert_eq!(parse_table(row, "fast"), None);
        assert_eq!(TABLE[0].words, PRESETS);
    }
}
