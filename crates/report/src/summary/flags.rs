//! A running JVM's flags: how many each source set, and the flags.

use super::cells::end;
use crate::page::Part;
use crate::record::{AccountDocument, FlagOrigin, FlagsRecord};
use crate::table::Table;
use crate::units::grouped;

/// Room in characters for names, and for values next to them.
const NAME_MAX: usize = 34;
const VALUE_MAX: usize = 28;

/// A sentence on how many flags each source set.
pub(super) fn text(flags: &FlagsRecord) -> String {
    let by = |origin: FlagOrigin| {
        let count = flags.set.iter().filter(|flag| flag.origin == origin).count();
        (count > 0).then(|| format!("{count} {}", by_whom(origin)))
    };
    let parts: Vec<String> = FlagOrigin::ALL.into_iter().filter_map(by).collect();
    let (set, all) = (flags.set.len(), grouped(flags.count() as u64));
    match parts.is_empty() {
        true => format!("all {all} have their default values"),
        false => format!("{set} of {all} are set: {} (--by flag)", parts.join(", ")),
    }
}

/// The nondefault flags, or why there are none.
pub(super) fn table(document: &AccountDocument) -> Part {
    const TITLE: &str = "flags that differ from their defaults";
    let Some(flags) = &document.flags else {
        let text = match &document.jvm.flags {
            Some(replied) if document.bundle.is_some() => {
                format!("A bundle does not show who set each flag: {}.", replied.join(" "))
            }
            _ => "The flags could not be read.".to_owned(),
        };
        return Part::under(TITLE, [Part::Text(text)]);
    };
    let row = |origin: FlagOrigin| {
        let set = flags.set.iter().filter(move |flag| flag.origin == origin);
        set.map(move |flag| vec![end(&flag.name, NAME_MAX), end(&flag.value, VALUE_MAX), word(origin).to_owned()])
    };
    let note = format!("{} more have their default values (--json)", grouped(flags.defaults.len() as u64));
    let rows = FlagOrigin::ALL.into_iter().flat_map(row);
    let table = Table::new(TITLE, ["flag", "value", "set by"], rows);
    Part::Table(table.worded(1, 1).noted([note]))
}

fn by_whom(origin: FlagOrigin) -> &'static str {
    match origin {
        FlagOrigin::CommandLine => "on the command line",
        FlagOrigin::Environment => "in the environment",
        FlagOrigin::File => "in a file",
        FlagOrigin::Other => "at run time",
        FlagOrigin::Ergonomic => "by the JVM",
    }
}

fn word(origin: FlagOrigin) -> &'static str {
    match origin {
        FlagOrigin::CommandLine => "command line",
        FlagOrigin::Environment => "environment",
        FlagOrigin::File => "file",
        FlagOrigin::Other => "run time",
        FlagOrigin::Ergonomic => "the JVM",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::FlagRecord;
    use crate::terminal::render_within;

    fn flags() -> FlagsRecord {
        let flag =
            |name: &str, value: &str, origin| FlagRecord { name: name.to_owned(), value: value.to_owned(), origin };
        FlagsRecord {
            set: vec![
                flag("CICompilerCount", "2", FlagOrigin::Ergonomic),
                flag("MaxHeapSize", "67108864", FlagOrigin::CommandLine),
                flag("OnError", &format!("\u{1b}[2J{}", "x".repeat(900)), FlagOrigin::Environment),
                flag("UseSerialGC", "true", FlagOrigin::CommandLine),
            ],
            defaults: (0..1265).map(|n| (format!("Flag{n}"), "0".to_owned())).collect(),
        }
    }

    #[test]
    fn flags_are_counted_and_listed_by_origin() {
        let set = "4 of 1,269 are set: 2 on the command line, 1 in the environment, 1 by the JVM (--by flag)";
        assert_eq!(text(&flags()), set);
        assert_eq!(text(&FlagsRecord { set: Vec::new(), ..flags() }), "all 1,265 have their default values");
        let of = |flags| AccountDocument { flags, ..AccountDocument::default() };
        let shown = render_within(&[table(&of(Some(flags())))], 80);
        let place = |name: &str| shown.find(name).unwrap_or_else(|| panic!("no {name}:\n{shown}"));
        assert!(place("MaxHeapSize") < place("UseSerialGC") && place("UseSerialGC") < place("OnError"), "{shown}");
        assert!(place("OnError") < place("CICompilerCount") && shown.contains("1,265 more"), "{shown}");
        assert!(!shown.contains('\u{1b}') && shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        let mut of_bundle = AccountDocument { bundle: Some("b.tar".to_owned()), ..of(None) };
        of_bundle.jvm.flags = Some(vec!["-XX:+UseG1GC".to_owned()]);
        let shown = |document: &AccountDocument| render_within(&[table(document)], 80);
        assert!(shown(&of_bundle).contains("who set each flag: -XX:+UseG1GC."), "{}", shown(&of_bundle));
        assert!(shown(&of(None)).contains("could not be read"));
    }
}
