//! Replies to `VM.flags` (JDK 11–27): the flags in effect that are not at their default, and how they differ from the
//! options given. As of JDK 21, a removed flag is ignored with a warning and exit code 0, and collectors round sizes
//! up: two configurations can silently be equal.

use super::heap_info::Collector;
use super::text::size;
use loadline_base::units::Bytes;

/// The flags in effect that are not at their default, in the order of the reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Flags {
    /// Name and value as printed; `true` or `false` for a Boolean flag.
    pub list: Vec<(String, String)>,
}

impl Flags {
    /// Parses a reply: `-XX:CICompilerCount=2 -XX:-THPStackMitigation -XX:+UseSerialGC …` (values may contain spaces).
    pub fn parse(text: &str) -> Self {
        let flags = text.split("-XX:").skip(1).filter_map(|flag| {
            let (name, value) = name_and_value(flag.trim_end())?;
            Some((name.to_owned(), value.to_owned()))
        });
        Self { list: flags.collect() }
    }

    /// The value of a flag, unless it is at its default or unknown to this JVM.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.list.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The flag in command-line syntax.
    pub fn spelled(&self, name: &str) -> Option<String> {
        Some(spelled(name, self.get(name)?))
    }

    /// All flags in command-line syntax.
    pub fn all_spelled(&self) -> Vec<String> {
        self.list.iter().map(|(name, value)| spelled(name, value)).collect()
    }

    /// The collector in effect, from the flag that selects it.
    pub fn collector(&self) -> Option<&'static str> {
        let is_on = |flag: &str| self.get(flag) == Some("true");
        let known = Collector::selected(is_on).map(Collector::title);
        known.or_else(|| is_on("UseConcMarkSweepGC").then_some("CMS"))
    }
}

/// A flag in command-line syntax.
pub fn spelled(name: &str, value: &str) -> String {
    match value {
        "true" => format!("-XX:+{name}"),
        "false" => format!("-XX:-{name}"),
        value => format!("-XX:{name}={value}"),
    }
}

/// `+X` → (`X`, `true`), `X=v` → (`X`, `v`).
fn name_and_value(flag: &str) -> Option<(&str, &str)> {
    match flag.as_bytes().first()? {
        b'+' => Some((&flag[1..], "true")),
        b'-' => Some((&flag[1..], "false")),
        _ => flag.split_once('='),
    }
}

/// The size options with a short name, and the flag that each sets.
const SHORT: [(&str, &str); 4] =
    [("-Xmx", "MaxHeapSize"), ("-Xms", "InitialHeapSize"), ("-Xmn", "MaxNewSize"), ("-Xss", "ThreadStackSize")];

/// The flag that an option sets, with its value as given: `MaxHeapSize` and `8m` for `-Xmx8m`.
pub fn set_by(option: &str) -> Option<(&str, &str)> {
    let short = SHORT.into_iter().find_map(|(begin, name)| Some((name, option.strip_prefix(begin)?)));
    short.or_else(|| name_and_value(option.strip_prefix("-XX:")?))
}

/// The short name of an option: `-Xmx` for `-Xmx8m`; `None` if it has none.
pub fn short_name(option: &str) -> Option<&'static str> {
    SHORT.into_iter().map(|(short, _)| short).find(|short| option.starts_with(short))
}

/// An option that is not in effect as given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlagDifference {
    /// The option as given.
    pub asked: String,
    /// The option in effect instead, in command-line syntax; `None` if the option was ignored.
    pub in_force: Option<String>,
}

/// The command-line options that the JVM ignored or changed. Skips options replaced by later ones, and those that
/// cannot be checked: all but `-XX:…`, `-Xmx`, `-Xms`, `-Xmn`, and `-Xss`.
pub fn differences(asked: &[String], in_force: &Flags) -> Vec<FlagDifference> {
    let wishes: Vec<Wish<'_>> = asked.iter().filter_map(|option| Wish::parse(option)).collect();
    let last =
        wishes.iter().enumerate().filter(|(i, wish)| !wishes[i + 1..].iter().any(|later| later.name == wish.name));
    last.filter(|(_, wish)| !wish.holds(in_force))
        .map(|(_, wish)| FlagDifference { asked: wish.option.to_owned(), in_force: in_force.spelled(wish.name) })
        .collect()
}

/// One option as the flag that it sets.
#[derive(Debug)]
struct Wish<'o> {
    option: &'o str,
    name: &'o str,
    value: &'o str,
    /// Bytes per unit of the value in effect: `-Xss` is given in bytes and stored in KiB.
    unit: u64,
}

/// Options that the launcher reads and that never become flags.
const NOT_FLAGS: [&str; 3] = ["Flags", "VMOptionsFile", "Flag"];

impl<'o> Wish<'o> {
    fn parse(option: &'o str) -> Option<Self> {
        let (name, value) = set_by(option)?;
        let unit = if option.starts_with("-Xss") { 1 << 10 } else { 1 };
        (!NOT_FLAGS.contains(&name)).then_some(Self { option, name, value, unit })
    }

    fn holds(&self, in_force: &Flags) -> bool {
        let Some(value) = in_force.get(self.name) else {
            // Disabling a flag that is already off, or gone, leaves nothing to print.
            return self.value == "false";
        };
        value == self.value
            || same_number(self.value, value)
            || size(self.value)
                .zip(size(value))
                .is_some_and(|(asked, Bytes(n))| n.checked_mul(self.unit) == Some(asked.0))
    }
}

/// Whether two texts are the same number, such as `75` and `75.000000`.
fn same_number(a: &str, b: &str) -> bool {
    matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if (a - b).abs() <= f64::EPSILON * b.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(asked: &[&str], in_force: &str, expect: &[(&str, Option<&str>)]) {
        let asked: Vec<String> = asked.iter().map(|option| (*option).to_owned()).collect();
        let found = differences(&asked, &Flags::parse(in_force));
        let found: Vec<_> = found.iter().map(|d| (d.asked.as_str(), d.in_force.as_deref())).collect();
        assert_eq!(found, expect);
    }

    #[test]
    fn rounded_and_ignored_options_are_reported_as_differences() {
        let in_force = "-XX:MaxHeapSize=8388608 -XX:ThreadStackSize=256 -XX:MaxRAMPercentage=75.000000 \
                        -XX:OnError=kill -9 %p -XX:+UseSerialGC -XX:-UsePerfData ";
        check(&["-Xmx6m"], in_force, &[("-Xmx6m", Some("-XX:MaxHeapSize=8388608"))]);
        check(&["-Xmx8m", "-Xss256k", "-XX:MaxRAMPercentage=75", "-XX:OnError=kill -9 %p"], in_force, &[]);
        check(&["-XX:+UseConcMarkSweepGC"], in_force, &[("-XX:+UseConcMarkSweepGC", None)]);
        check(&["-XX:+UsePerfData"], in_force, &[("-XX:+UsePerfData", Some("-XX:-UsePerfData"))]);
    }

    #[test]
    fn the_last_option_of_a_kind_counts() {
        check(&["-Xmx64m", "-XX:MaxHeapSize=8m"], "-XX:MaxHeapSize=8388608", &[]);
        check(&["-Dx=-Xmx1g", "-cp", "x", "-XX:Flags=f", "-Xlog:gc", "-XX:"], "", &[]);
    }
}
