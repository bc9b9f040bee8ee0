//! Parses numbers as load tools print them: `31.06ms`, `806.50KB`, `55.39k`. Any other text gives `None`.

/// Nanoseconds to hours, as factors to milliseconds. `m` is a minute: wrk prints `1.50m`, Go `1m30s`; oha writes `sec`.
const TIMES: [(&str, f64); 11] = [
    ("ns", 1e-6),
    ("us", 1e-3),
    ("µs", 1e-3),
    ("μs", 1e-3),
    ("ms", 1.0),
    ("s", 1e3),
    ("sec", 1e3),
    ("secs", 1e3),
    ("m", 6e4),
    ("min", 6e4),
    ("h", 3.6e6),
];
/// All are powers of 1024: wrk and h2load write `KB`, oha `KiB`, Hyperfoil `kB`.
const SIZES: [(&str, f64); 8] = [
    ("B", 1.0),
    ("KB", 1024.0),
    ("kB", 1024.0),
    ("KiB", 1024.0),
    ("MB", 1048576.0),
    ("MiB", 1048576.0),
    ("GB", 1073741824.0),
    ("GiB", 1073741824.0),
];

pub(super) fn count(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse().ok() } else { None }
}

/// A plain number: digits and a decimal point. No sign, exponent, or `nan`.
pub(super) fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain && text.bytes().next()?.is_ascii_digit() { text.parse().ok() } else { None }
}

/// Milliseconds of one or more times with units: `1m2.5s`.
pub(super) fn ms(text: &str) -> Option<f64> {
    let mut rest = text;
    let mut sum = 0.0;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (value, tail) = rest.split_at(unit_at);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let factor = factor(&TIMES, &tail[..unit_end])?;
        sum += number(value)? * factor;
        rest = &tail[unit_end..];
    }
    (!text.is_empty()).then_some(sum)
}

pub(super) fn seconds(text: &str) -> Option<f64> {
    ms(text).map(|ms| ms / 1e3)
}

/// Bytes of a size with its unit, rounded as the tool rounded it.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let factor = factor(&SIZES, text[unit_at..].trim_start())?;
    number(&text[..unit_at]).map(|value| (value * factor) as u64)
}

/// A percentage such as `99.000%`.
pub(super) fn percent(text: &str) -> Option<f64> {
    number(text.strip_suffix('%')?)
}

fn factor(units: &[(&str, f64)], unit: &str) -> Option<f64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_with_units_are_parsed() {
        for (text, expect) in [
            ("31.06ms", 31.06),
            ("738.65us", 0.73865),
            ("1.20s", 1200.0),
            ("1.50m", 90_000.0),
            ("1m2.5s", 62_500.0),
            ("977ns", 0.000977),
            ("3µs", 0.003),
            ("0s", 0.0),
            ("1h0m1s", 3_601_000.0),
        ] {
            let ms = ms(text).unwrap();
            assert!((ms - expect).abs() < 1e-9 * expect.max(1.0), "{text}: {ms}");
        }
        for text in ["", "12", "-nan", "nan", "1.2.3s", "s", "5 ms", "1e3s", "12ms3", "-4s", "5parsecs"] {
            assert_eq!(ms(text), None, "{text}");
        }
    }

    #[test]
    fn sizes_counts_and_percentages_are_parsed() {
        assert_eq!(bytes("806.50KB"), Some(825_856));
        assert_eq!(bytes("824.00B"), Some(824));
        assert_eq!(bytes("1.36 KiB"), Some(1392));
        assert_eq!((bytes("12"), bytes("KB"), bytes("-1KB"), bytes("1.0XB")), (None, None, None, None));
        assert_eq!(
            (count("640"), count(""), count("6e4"), count("99999999999999999999")),
            (Some(640), None, None, None)
        );
        assert_eq!((percent("99.000%"), percent("99"), percent("-nan%")), (Some(99.0), None, None));
    }
}
