//! How figures are spelt.

/// Bytes with three significant digits and a binary unit.
pub fn bytes(bytes: f64) -> String {
    const UNITS: [(f64, &str); 4] = [
        ((1u64 << 40) as f64, "TiB"),
        ((1u64 << 30) as f64, "GiB"),
        ((1u64 << 20) as f64, "MiB"),
        ((1u64 << 10) as f64, "KiB"),
    ];
    // 1023.6 KiB is shown with the next unit, because it would be rounded to 1024.
    let unit = UNITS.iter().find(|(size, _)| bytes.abs() >= 0.9995 * size);
    match unit {
        Some((size, name)) => format!("{} {name}", three_digits(bytes / size)),
        None => format!("{bytes:.0} B"),
    }
}

/// The same with a sign.
pub fn signed_bytes(difference: f64) -> String {
    let sign = if difference >= 0.0 { "+" } else { "−" };
    format!("{sign}{}", bytes(difference.abs()))
}

/// A number in groups of three digits: `1 234 567`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// A number of things, estimated.
pub fn count(count: f64) -> String {
    match count {
        c if c >= 999.5e6 => format!("{} G", three_digits(c / 1e9)),
        c if c >= 999.5e3 => format!("{} M", three_digits(c / 1e6)),
        c if c >= 9999.5 => format!("{} k", three_digits(c / 1e3)),
        // Nothing added up is -0.
        c => format!("{:.0}", c + 0.0),
    }
}

/// A number of things with their name.
pub fn many(number: f64, thing: &str) -> String {
    match count(number).as_str() {
        "1" => format!("1 {thing}"),
        several => format!("{several} {thing}s"),
    }
}

/// A number of blocks: where there are bytes, there is one at least.
pub fn blocks(number: f64) -> String {
    match number > 0.0 {
        true => many(number.max(1.0), "block"),
        false => "no blocks".to_owned(),
    }
}

/// Nanoseconds with a unit.
pub fn duration(ns: f64) -> String {
    match ns {
        ns if ns >= 3600e9 => format!("{} h", three_digits(ns / 3600e9)),
        ns if ns >= 120e9 => format!("{} min", three_digits(ns / 60e9)),
        ns if ns >= 0.9995e9 => format!("{} s", three_digits(ns / 1e9)),
        ns if ns >= 0.9995e6 => format!("{} ms", three_digits(ns / 1e6)),
        ns => format!("{} µs", three_digits(ns / 1e3)),
    }
}

/// A part of a whole as a share of 1; of a whole that is nothing, what that is taken for.
pub fn share(part: f64, whole: f64, of_nothing: f64) -> f64 {
    match whole > 0.0 {
        true => part / whole,
        false => of_nothing,
    }
}

/// A share of 1, in percent.
pub fn percent(share: f64) -> String {
    match 100.0 * share {
        0.0 => "0%".to_owned(),
        p if p.abs() < 0.95 => format!("{p:.1}%"),
        p => format!("{p:.0}%"),
    }
}

fn three_digits(value: f64) -> String {
    match value.abs() {
        v if v >= 99.95 => format!("{value:.0}"),
        v if v >= 9.995 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Text of others on one line, without what would steer a terminal.
pub fn one_line(text: &str) -> String {
    text.replace(hakmem_report::format::steers, " ")
}

/// The text, or as much of it as so many letters have room for; at least one.
pub fn shortened(text: &str, letters: usize) -> String {
    match text.chars().count() {
        all if all <= letters => text.into(),
        _ => text.chars().take(letters - 1).chain(['…']).collect(),
    }
}

/// The name in the first word of a command line, which is the path that the program was called by.
/// One that gives itself a title puts all of that there: `nginx: master process nginx -c x.conf`.
pub fn called_name<'a>(called: &'a str, program: &str) -> &'a str {
    let last = |path: &'a str| path.rsplit('/').next().unwrap_or_default();
    let name = match program.rsplit('/').next() == Some(last(called)) {
        true => last(called),
        false => {
            let word = called.split(' ').next().unwrap_or_default();
            last(word).trim_end_matches(':')
        }
    };
    match name {
        "" => "program",
        name => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        for (value, text) in [
            (0.0, "0 B"),
            (1000.0, "1000 B"),
            (1023.9, "1.00 KiB"),
            (1536.0, "1.50 KiB"),
            (1048570.0, "1.00 MiB"),
            (12.34 * 1048576.0, "12.3 MiB"),
            (5e12, "4.55 TiB"),
        ] {
            assert_eq!(bytes(value), text);
        }
        assert_eq!(signed_bytes(-2048.0), "−2.00 KiB");
        assert_eq!(duration(1500.0), "1.50 µs");
        assert_eq!(duration(2.5e9), "2.50 s");
        assert_eq!(count(1234.0), "1234");
        assert_eq!(count(12345.0), "12.3 k");
        assert_eq!(many(-0.0, "sample"), "0 samples");
        assert_eq!(
            (blocks(0.0), blocks(0.2)),
            ("no blocks".into(), "1 block".into())
        );
        assert_eq!(percent(0.004), "0.4%");
        assert_eq!(percent(0.5), "50%");
    }

    #[test]
    fn a_title_is_no_path() {
        for (called, program, name) in [
            ("/usr/bin/python3", "/usr/bin/python3.11", "python3"),
            (
                "nginx: worker process conf/nginx.conf",
                "/usr/sbin/nginx",
                "nginx",
            ),
            ("postgres: checkpointer ", "/usr/lib/postgres", "postgres"),
            (
                "redis-server /run/a.sock",
                "/bin/redis-check",
                "redis-server",
            ),
            ("./my tools/server", "/opt/my tools/server", "server"),
            ("", "/bin/x", "program"),
        ] {
            assert_eq!(called_name(called, program), name);
        }
    }
}
