//! Quantities with units: sizes and time spans, and how they are parsed and printed.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const KIB: u64 = 1 << 10;
/// Bytes in a MiB.
pub const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A number of bytes.
///
/// Parses like Java's flags, in binary units: `64m`, `64M`, `64MiB`, and `67108864` are equal. Prints as MiB with one
/// decimal place. In JSON, it is an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl Bytes {
    /// `n` KiB, the unit of `/proc` and of NMT.
    pub const fn kib(n: u64) -> Self {
        Self(n.saturating_mul(KIB))
    }

    /// `n` MiB.
    pub const fn mib(n: u64) -> Self {
        Self(n.saturating_mul(MIB))
    }

    /// In the format of Java's flags, with the largest binary unit that divides it: `6m`, `1536k`.
    pub fn java(self) -> String {
        match self.0 {
            n if n > 0 && n % GIB == 0 => format!("{}g", n / GIB),
            n if n > 0 && n % MIB == 0 => format!("{}m", n / MIB),
            n if n > 0 && n % KIB == 0 => format!("{}k", n / KIB),
            n => n.to_string(),
        }
    }

    /// As a signed number.
    pub fn signed(self) -> i64 {
        i64::try_from(self.0).unwrap_or(i64::MAX)
    }

    /// In MiB, unrounded.
    pub fn as_mib(self) -> f64 {
        self.0 as f64 / MIB as f64
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:.1} MiB", self.as_mib()))
    }
}

/// A share of CPU time in thousandths of one CPU, as Kubernetes counts it; at least one thousandth.
///
/// Parses as Kubernetes does: `500m`, `0.5`, `2`. Prints as `0.50 CPUs`. In JSON, it is a string, `500m` or `2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Millicpus(pub u64);

impl Millicpus {
    /// The period of a quota; container tools and the kubelet keep the kernel's default (`cgroup-v2.rst`).
    pub const PERIOD_US: u64 = 100_000;

    /// CPU time per period, in µs.
    pub fn quota_us(self) -> u64 {
        self.0.saturating_mul(Self::PERIOD_US / 1000)
    }

    /// In CPUs, unrounded.
    pub fn as_cpus(self) -> f64 {
        self.0 as f64 / 1000.0
    }

    /// The number of processors that a JVM sees under this limit, rounded up (`CgroupUtil::processor_count`, JDK 11 to
    /// 25).
    pub fn processors(self) -> u64 {
        self.0.div_ceil(1000)
    }

    /// In the format of Kubernetes: `500m`, `2`.
    pub fn word(self) -> String {
        if self.0.is_multiple_of(1000) { (self.0 / 1000).to_string() } else { format!("{}m", self.0) }
    }
}

impl fmt::Display for Millicpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.0.is_multiple_of(10) { 2 } else { 3 };
        f.pad(&format!("{:.digits$} CPUs", self.as_cpus()))
    }
}

impl FromStr for Millicpus {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = || ParseError(format!("`{text}` is not a number of CPUs; write it as `500m`, `0.5`, or `2`"));
        let (number, unit) = number_and_unit(text).ok_or_else(refuse)?;
        let millis = match unit {
            "" => number * 1000.0,
            "m" => number,
            _ => return Err(refuse()),
        };
        // No machine has a million CPUs, and Kubernetes accepts nothing finer than a thousandth of a CPU.
        let whole = millis.round();
        let fits = (1.0..=1e9).contains(&whole) && (millis - whole).abs() < 1e-6;
        if fits { Ok(Self(whole as u64)) } else { Err(refuse()) }
    }
}

impl Serialize for Millicpus {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&self.word())
    }
}

/// Accepts a number of CPUs or a string such as `500m`.
impl<'de> Deserialize<'de> for Millicpus {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        TextOrNumber::read(from, |number| number.to_string().parse(), str::parse)
    }
}

/// A difference of two sizes, printed with its sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Growth(pub i64);

impl Growth {
    /// `after` − `before`, limited to 8 EiB.
    pub fn between(before: Bytes, after: Bytes) -> Self {
        Self(growth(before.0, after.0))
    }
}

/// `after` − `before`, clamped to the range of the type.
pub fn growth(before: u64, after: u64) -> i64 {
    let growth = i128::from(after) - i128::from(before);
    i64::try_from(growth).unwrap_or(if growth > 0 { i64::MAX } else { i64::MIN })
}

impl fmt::Display for Growth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.0 as f64 / MIB as f64;
        // −0.04 MiB would print as "-0.0".
        let mib = if mib.abs() < 0.05 { 0.0 } else { mib };
        f.pad(&if mib == 0.0 { "0.0".to_owned() } else { format!("{mib:+.1}") })
    }
}

/// Text that is not a quantity. The message shows valid forms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError(String);

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ParseError {}

/// Splits `64MiB` into its number and its unit.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..end].parse().ok()?;
    Some((number, text[end..].trim()))
}

/// Suffixes of Kubernetes quantities (`resource.Quantity`) with their factors.
const SUFFIXES: [(&str, f64); 13] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
];

impl Bytes {
    /// Parses a Kubernetes quantity: `262144k`, `1Gi`, `1e9`; `None` for any other text.
    pub fn of_kubernetes(text: &str) -> Option<Self> {
        let suffix = SUFFIXES.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)));
        let (number, factor) = suffix.unwrap_or((text, 1.0));
        let bytes = number.parse::<f64>().ok()? * factor;
        (0.0..1e18).contains(&bytes).then(|| Self(bytes.round() as u64))
    }
}

impl FromStr for Bytes {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = || ParseError(format!("`{text}` is not a size; write it as `512k`, `64m`, or `1g`"));
        let (number, unit) = number_and_unit(text).ok_or_else(refuse)?;
        let factor = match unit.to_ascii_lowercase().as_str() {
            // A fraction of a byte makes no sense: the user forgot the unit.
            "" | "b" if number.fract() != 0.0 => return Err(refuse()),
            "" | "b" => 1,
            "k" | "kb" | "kib" => KIB,
            "m" | "mb" | "mib" => MIB,
            "g" | "gb" | "gib" => GIB,
            "t" | "tb" | "tib" => GIB << 10,
            _ => return Err(refuse()),
        };
        let bytes = number * factor as f64;
        if !(0.0..9.0e18).contains(&bytes) {
            return Err(refuse());
        }
        Ok(Self(bytes as u64))
    }
}

/// Accepts an integer or a string such as `64m`.
impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        TextOrNumber::read(from, |number| Ok(Self(number)), str::parse)
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number, or a string with a unit")]
enum TextOrNumber {
    Number(u64),
    Fraction(f64),
    Text(String),
}

impl TextOrNumber {
    fn read<'de, D: Deserializer<'de>, T>(
        from: D,
        number: impl Fn(u64) -> Result<T, ParseError>,
        text: impl Fn(&str) -> Result<T, ParseError>,
    ) -> Result<T, D::Error> {
        let read = match Self::deserialize(from)? {
            Self::Number(n) => number(n),
            Self::Fraction(n) => text(&n.to_string()),
            Self::Text(words) => text(&words),
        };
        read.map_err(serde::de::Error::custom)
    }
}

/// A span of time as a user types it: `30s`, `500ms`, `2m`, `1h`; a bare number is in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Span(pub Duration);

impl Span {
    /// `n` seconds.
    pub const fn seconds(n: u64) -> Self {
        Self(Duration::from_secs(n))
    }

    /// In seconds, unrounded.
    pub fn as_s(self) -> f64 {
        self.0.as_secs_f64()
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let s = self.0.as_secs_f64();
        let text = match self.0.as_millis() {
            0 if s > 0.0 => format!("{}us", self.0.as_micros()),
            0 => "0s".to_owned(),
            ms if ms < 1000 => format!("{}ms", self.0.as_micros() as f64 / 1e3),
            ms if ms % 3_600_000 == 0 => format!("{}h", ms / 3_600_000),
            ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
            ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
            _ => format!("{}s", (s * 1000.0).round() / 1000.0),
        };
        f.pad(&text)
    }
}

impl FromStr for Span {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let refuse = || ParseError(format!("`{text}` is not a duration; write it as `500ms`, `30s`, or `2m`"));
        let (number, unit) = number_and_unit(text).ok_or_else(refuse)?;
        let seconds = match unit {
            "d" => number * 86_400.0,
            "us" => number / 1e6,
            "ms" => number / 1e3,
            "" | "s" => number,
            "m" | "min" => number * 60.0,
            "h" => number * 3600.0,
            _ => return Err(refuse()),
        };
        // No wait may exceed a year.
        if !(0.0..=31_536_000.0).contains(&seconds) {
            return Err(refuse());
        }
        Ok(Self(Duration::from_secs_f64(seconds)))
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        // Printing rounds a span, but the serialized text must parse to the same span.
        match self.to_string() {
            shown if shown.parse() == Ok(*self) => to.serialize_str(&shown),
            _ => to.collect_str(&format_args!("{}s", self.as_s())),
        }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        TextOrNumber::read(from, |number| number.to_string().parse(), str::parse)
    }
}

/// A count as a user types it: `50000`, `50k`, `1.5M` (decimal).
pub fn parse_count(text: &str) -> Result<u64, ParseError> {
    let refuse = || ParseError(format!("`{text}` is not a count; write it as `50000` or `50k`"));
    let (number, unit) = number_and_unit(text).ok_or_else(refuse)?;
    let factor = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "m" | "M" => 1e6,
        _ => return Err(refuse()),
    };
    let count = number * factor;
    if count.fract() != 0.0 || count > 1e15 {
        return Err(refuse());
    }
    Ok(count as u64)
}

/// A count in a file: an integer, or a string for [`parse_count`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count(pub u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        TextOrNumber::read(from, |number| Ok(Self(number)), |text| parse_count(text).map(Self))
    }
}

/// Formats a time in seconds since the Unix epoch as in documents (UTC): `2026-11-21T04:36:21Z`.
pub fn utc(unix_s: f64) -> String {
    utc_as(unix_s, "%Y-%m-%dT%H:%M:%SZ")
}

/// Formats such a time (UTC) with a `strftime` format.
pub fn utc_as(unix_s: f64, form: &str) -> String {
    let moment = jiff::Timestamp::from_second(unix_s as i64).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    moment.strftime(form).to_string()
}

/// Parses the output of [`utc`] into whole seconds since the Unix epoch; `None` for any other text.
pub fn unix_s(text: &str) -> Option<i64> {
    text.parse::<jiff::Timestamp>().ok().map(jiff::Timestamp::as_second)
}

/// `36300` as `36,300`.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// A number with at most `digits_max` decimals, without trailing zeros: `0.25`, `95`.
pub fn trimmed(number: f64, digits_max: usize) -> String {
    let text = format!("{number:.digits_max$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A past or future time span in everyday units: `48 s`, `12 min`, `31 h`, `6.1 days`.
pub fn roughly(seconds: f64) -> String {
    match seconds {
        s if s < 99.5 => format!("{s:.0} s"),
        s if s < 99.5 * 60.0 => format!("{:.0} min", s / 60.0),
        s if s < 71.5 * 3600.0 => format!("{:.0} h", s / 3600.0),
        s if s < 99.5 * 86_400.0 => format!("{} days", trimmed(s / 86_400.0, 1)),
        s => format!("{} days", grouped((s / 86_400.0) as u64)),
    }
}

/// The beginning of the text, with an ellipsis if it was truncated.
pub fn clipped(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The text on one line. Escapes control characters, line separators, direction marks, and code points forbidden in XML
/// (`\n`, `\u{1b}`).
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' | '\r' | '\t' => out.extend(character.escape_default()),
            character if steers(character) => out.extend(character.escape_unicode()),
            character => out.push(character),
        }
    }
    out
}

/// Whether a character moves the cursor, ends a line, changes the text direction, or is forbidden in XML.
pub fn steers(character: char) -> bool {
    // Trojan Source (CVE-2021-42574) lists the direction marks. Some readers end lines at U+2028 and U+2029.
    let direction = matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2066}'..='\u{2069}');
    let line = matches!(character, '\u{2028}' | '\u{2029}');
    character.is_control() || direction || line || matches!(character, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// A count with its noun: `1 trial`, `1,200 trials`.
pub fn several(number: u64, thing: &str) -> String {
    let plural = match number {
        1 => "",
        _ if thing.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {thing}{plural}", grouped(number))
}

/// The text without its digits: strings that differ only in a port, a pid, or a time become equal.
pub fn without_numbers(text: &str) -> String {
    text.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// A rate, with a precision that suits its size: `0.5`, `42.5`, `5,000`.
pub fn per_second(rate: f64) -> String {
    match rate {
        rate if rate.abs() < 99.95 => trimmed(rate, 2),
        rate => grouped(rate.round() as u64),
    }
}

/// Milliseconds, with a precision that suits their size: `0.042`, `4.21`, `42.1`, `421`. Each range ends where rounding
/// would add a digit.
pub fn milliseconds(ms: f64) -> String {
    match ms.abs() {
        size if size < 0.9995 => format!("{ms:.3}"),
        size if size < 9.995 => format!("{ms:.2}"),
        size if size < 99.95 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}

/// Text of at most `most` characters, with an ellipsis in the middle if necessary: names differ at their ends as
/// often as at their beginnings.
pub fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let (front, back) = (most / 2, (most - 1) / 2);
    let skipped = length - back;
    text.chars().take(front).chain(['\u{2026}']).chain(text.chars().skip(skipped)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_shortened_in_the_middle() {
        assert_eq!(shortened("serial", 6), "serial");
        assert_eq!(shortened("abcdefghij", 6), "abc…ij");
        assert_eq!(shortened("ééééééé", 5).chars().count(), 5);
    }

    #[test]
    fn sizes_parse_as_java_flags_do() {
        for text in ["64m", "64M", "64MiB", "64mb", "67108864", " 64 m "] {
            assert_eq!(text.parse::<Bytes>().unwrap(), Bytes::mib(64), "{text}");
        }
        for text in ["", "m", "64x", "-1", "1e99g", "nan", "64mm", "1.5", "0.5b"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        assert_eq!(serde_json::from_str::<Bytes>("67108864").unwrap(), Bytes::mib(64));
        assert!(serde_json::from_str::<Bytes>("1.5").unwrap_err().to_string().contains("`64m`"));
    }

    #[test]
    fn cpu_shares_parse_like_kubernetes() {
        for text in ["1500m", "1.5", " 1.50 ", "1500 m"] {
            assert_eq!(text.parse::<Millicpus>().unwrap(), Millicpus(1500), "{text}");
        }
        for text in ["", "m", "0", "0m", "1.5m", "0.0001", "-1", "2k", "1e9", "1000001", "nan"] {
            let refusal = text.parse::<Millicpus>().unwrap_err().to_string();
            assert!(
                refusal.ends_with("is not a number of CPUs; write it as `500m`, `0.5`, or `2`"),
                "{text}: {refusal}"
            );
        }
        let read = |json: &str| serde_json::from_str::<Millicpus>(json).unwrap();
        assert_eq!([read("2"), read("0.25"), read("\"250m\"")].map(|of| of.0), [2000, 250, 250]);
        assert_eq!((Millicpus(500).quota_us(), Millicpus(1500).quota_us()), (50_000, 150_000));
        assert_eq!([1, 1000, 1001].map(|of| Millicpus(of).processors()), [1, 1, 2]);
        for (of, word, shown) in [
            (500, "500m", "0.50 CPUs"),
            (2000, "2", "2.00 CPUs"),
            (1250, "1250m", "1.25 CPUs"),
            (5, "5m", "0.005 CPUs"),
        ] {
            assert_eq!((Millicpus(of).word().as_str(), Millicpus(of).to_string().as_str()), (word, shown));
            assert_eq!(read(&serde_json::to_string(&Millicpus(of)).unwrap()), Millicpus(of));
        }
    }

    #[test]
    fn sizes_print_as_mib() {
        assert_eq!(Bytes::kib(71_088).to_string(), "69.4 MiB");
        assert_eq!(Bytes::mib(6).java(), "6m");
        assert_eq!(Bytes::kib(1536).java(), "1536k");
        assert_eq!(Bytes(0).java(), "0");
        assert_eq!(Growth(-10).to_string(), "0.0");
        assert_eq!(Growth(3 << 20).to_string(), "+3.0");
        assert_eq!(Growth(-(3 << 20)).to_string(), "-3.0");
        assert_eq!(Growth::between(Bytes(1 << 63), Bytes(i64::MAX as u64)), Growth(-1));
        assert_eq!(Growth::between(Bytes(u64::MAX), Bytes(0)), Growth(i64::MIN));
    }

    #[test]
    fn moments_round_trip() {
        assert_eq!(utc(1_795_394_670.9), "2026-11-23T00:44:30Z");
        assert_eq!(unix_s("2026-11-23T00:44:30Z"), Some(1_795_394_670));
        assert_eq!([unix_s(""), unix_s("yesterday"), unix_s("2026-11-23")], [None, None, None]);
    }

    #[test]
    fn spans_parse_and_print() {
        for (text, ms, printed) in [
            ("500ms", 500, "500ms"),
            ("30s", 30_000, "30s"),
            ("30", 30_000, "30s"),
            ("2m", 120_000, "2m"),
            ("1.5s", 1500, "1.5s"),
        ] {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.0, Duration::from_millis(ms));
            assert_eq!(span.to_string(), printed);
        }
        for text in ["", "s", "-1s", "1y", "99999h"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn counts_are_parsed_and_numbers_grouped() {
        assert_eq!(parse_count("50k"), Ok(50_000));
        assert!(parse_count("1.5").is_err());
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
        let told = [several(1, "block"), several(1200, "block"), several(1, "class"), several(0, "class")];
        assert_eq!(told, ["1 block", "1,200 blocks", "1 class", "0 classes"]);
        assert_eq!(
            [trimmed(0.25, 2), trimmed(0.999, 2), trimmed(20.0, 1), trimmed(20.0, 0)],
            ["0.25", "1", "20", "20"]
        );
        assert_eq!(milliseconds(0.0421), "0.042");
        assert_eq!(milliseconds(42.13), "42.1");
    }

    #[test]
    fn times_have_three_digits_at_range_boundaries() {
        let check = |ms: f64, shown: &str| assert_eq!(milliseconds(ms), shown, "{ms}");
        check(0.9994, "0.999");
        check(0.9996, "1.00");
        check(9.994, "9.99");
        check(9.996, "10.0");
        check(99.94, "99.9");
        check(99.96, "100");
        check(999.6, "1000");
        check(-42.13, "-42.1");
        let wide = (1..20_000).map(|ms| milliseconds(f64::from(ms) / 100.0));
        let digits = |text: &str| text.chars().filter(char::is_ascii_digit).count();
        assert_eq!(wide.filter(|text| digits(text) != 3 && !text.starts_with("0.")).collect::<Vec<_>>(), [""; 0]);
    }

    proptest! {
        #[test]
        fn shortening_keeps_its_limit(text in ".*", most in 1usize..40) {
            prop_assert!(shortened(&text, most).chars().count() <= most);
        }

        /// Up to a month, beyond which an `f64` of seconds has no nanosecond resolution.
        #[test]
        fn every_span_reads_back_from_json(
            ns in 0u64..2_600_000_000_000_000,
            coarse in prop::sample::select(vec![1u64, 1_000, 1_000_000, 1_000_000_000]),
        ) {
            let span = Span(Duration::from_nanos(ns / coarse * coarse));
            let written = serde_json::to_string(&span).unwrap();
            prop_assert_eq!(serde_json::from_str::<Span>(&written).unwrap(), span, "{}", written);
        }

        #[test]
        fn java_format_parses_back(n in 0u64..(1 << 50)) {
            prop_assert_eq!(Bytes(n).java().parse::<Bytes>().unwrap(), Bytes(n));
        }

        #[test]
        fn spans_in_milliseconds_parse_back(ms in 0u64..10_000_000) {
            let span = Span(Duration::from_millis(ms));
            prop_assert_eq!(span.to_string().parse::<Span>().unwrap(), span);
        }

        #[test]
        fn units_can_be_parsed_from_any_text(text in ".*") {
            let _ = text.parse::<Bytes>();
            let _ = text.parse::<Span>();
            let _ = parse_count(&text);
        }
    }
}
