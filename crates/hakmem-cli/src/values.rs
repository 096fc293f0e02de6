//! Values of options that clap does not know: durations and exit codes.

use std::time::Duration;

use hakmem_lab::plan::ExitCodes;

/// Parses a duration: a number and one of ms, s, m, h; seconds when there is no unit. The result
/// is above zero and at most [`LONGEST_HOURS`].
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let seconds_per_unit = match unit {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err(NO_DURATION.into()),
    };
    let number: f64 = number.parse().map_err(|_| NO_DURATION)?;
    let seconds = number * seconds_per_unit;
    if seconds <= 0.0 {
        return Err("a duration is more than zero".into());
    }
    if seconds > f64::from(LONGEST_HOURS) * 3600.0 {
        return Err(format!("a duration is at most {LONGEST_HOURS} h"));
    }
    Ok(Duration::from_secs_f64(seconds))
}

const NO_DURATION: &str = "expected a number with ms, s, m or h, e.g. 90s; seconds without";

/// The longest duration that [`duration`] takes.
pub const LONGEST_HOURS: u32 = 1000;

/// Parses how many of something there are to be.
pub fn number(text: &str) -> Result<usize, String> {
    text.parse()
        .map_err(|_| "expected a number, 0 or more".into())
}

/// A value with a unit of its own, as `100M`, in that unit, if it is a whole number of it; else as
/// it is.
pub fn in_unit(value: &str, own: &str) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    let digits = value.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = value.split_at(digits);
    let spelt = |it: &&str| {
        let spellings = [&it[..1], *it];
        spellings.iter().any(|it| it.eq_ignore_ascii_case(unit))
    };
    let given = UNITS.iter().position(spelt);
    let own = UNITS.iter().position(|unit| *unit == own);
    let converted = || {
        let number: u64 = number.parse().ok()?;
        let bytes = number.checked_mul(1 << (10 * given?))?;
        let own = 1 << (10 * own?);
        (bytes % own == 0).then(|| (bytes / own).to_string())
    };
    converted().unwrap_or_else(|| value.into())
}

/// Parses a number of KiB, or of a unit that is told, of which the library takes so many between
/// two samples.
pub fn sample_kib(text: &str) -> Result<u32, String> {
    const MOST: u32 = 1 << 20;
    let number = in_unit(text, "KiB").parse().ok();
    number
        .filter(|number| (1..=MOST).contains(number))
        .ok_or_else(|| format!("expected a number of KiB from 1 to {MOST}, or as 64K, 1M"))
}

/// Parses a number of MiB, or of a unit that is told.
pub fn mib(text: &str) -> Result<usize, String> {
    let number = in_unit(text, "MiB").parse();
    number.map_err(|_| "expected a number of MiB, or as 100M, 2G".into())
}

/// Parses exit codes separated by commas, or `any`.
pub fn exit_codes(text: &str) -> Result<ExitCodes, String> {
    if text == "any" {
        return Ok(ExitCodes::Any);
    }
    let code = |text: &str| text.parse().ok().filter(|code| (1..=255).contains(code));
    let codes: Option<Vec<i32>> = text.split(',').map(code).collect();
    match codes {
        Some(codes) => Ok(ExitCodes::ZeroAnd(codes)),
        None => Err("expected numbers from 1 to 255, separated by commas, or any".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn sizes_may_have_units() {
        for (text, kib) in [("64", 64), ("64K", 64), ("1m", 1024), ("1GiB", 1 << 20)] {
            assert_eq!(sample_kib(text), Ok(kib), "{text}");
        }
        assert_eq!((mib("0"), mib("2G")), (Ok(0), Ok(2048)));
        for text in ["", "0", "-1", "2G", "1.5M", "64KB"] {
            assert!(sample_kib(text).is_err(), "{text}");
        }
        assert!(mib("100K").is_err());
    }

    #[test]
    fn durations_of_every_unit() {
        assert_eq!(duration("250ms").unwrap(), Duration::from_millis(250));
        assert_eq!(duration("1.5").unwrap(), Duration::from_millis(1500));
        assert_eq!(duration("90s").unwrap(), Duration::from_secs(90));
        assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
        assert_eq!(duration("2min").unwrap(), Duration::from_secs(120));
        assert_eq!(duration("1h").unwrap(), Duration::from_secs(3600));
    }

    #[test]
    fn nonsense_durations() {
        for text in [
            "", "s", "-1s", "0", "0ms", "1d", "1 s", "1.2.3", "1e9h", "1001h", ".", "inf", "nan",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers() {
        assert_eq!(number("16"), Ok(16));
        for text in ["", "x", "-1", "1.5"] {
            assert!(number(text).unwrap_err().contains("a number"), "{text}");
        }
    }

    #[test]
    fn lists_of_exit_codes() {
        assert_eq!(exit_codes("any").unwrap(), ExitCodes::Any);
        assert_eq!(exit_codes("1,3").unwrap(), ExitCodes::ZeroAnd(vec![1, 3]));
        for text in ["", "0", "256", "1,", "all", "-1", "1 2"] {
            assert!(exit_codes(text).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn the_parser_never_panics(text in "\\PC*") {
            let _ = duration(&text);
        }

        #[test]
        fn milliseconds_keep_their_value(number in 1u64..3_600_000_000) {
            let parsed = duration(&format!("{number}ms")).unwrap();
            let error = parsed.as_secs_f64() - number as f64 / 1000.0;
            prop_assert!(error.abs() < 1e-6);
        }
    }
}
