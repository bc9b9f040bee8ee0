//! JVM options given among Loadline's own: clap does not know them, so a tip shows the command line that the user
//! meant.

use crate::scenario::shell_words;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::ffi::OsString;
use std::path::Path;

/// Verbs that start a JVM.
const STARTING: [&str; 5] = ["weigh", "compare", "find", "tune", "explain"];
/// Loadline options whose value may begin with a dash.
const TAKING_DASHES: [&str; 3] = ["--jvm", "--try", "--may-remove"];

/// Adds the tip to the error about an unknown option if it is a JVM option.
pub(super) fn with_tip(usage: clap::Error, typed: &[OsString]) -> clap::Error {
    let words: Vec<String> = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let Some((option, tip)) = tip(&words) else { return usage };
    // clap reads `-cp` as `-c p`.
    let rest = option.get(2..).map(|rest| ContextValue::String(rest.to_owned()));
    let mut usage = match usage.kind() {
        ErrorKind::UnknownArgument => usage,
        ErrorKind::ValueValidation if usage.get(ContextKind::InvalidValue) == rest.as_ref() => {
            clap::Error::new(ErrorKind::UnknownArgument).with_cmd(&super::args::parser())
        }
        _ => return usage,
    };
    usage.insert(ContextKind::InvalidArg, ContextValue::String(option));
    usage.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    usage
}

/// The first JVM option, and a tip with the corrected command line.
fn tip(typed: &[String]) -> Option<(String, String)> {
    let [_, verb, words @ ..] = typed else { return None };
    let ours = words.iter().position(|word| word == "--").unwrap_or(words.len());
    let words = words.get(..ours)?;
    let is_value = |at: usize| at.checked_sub(1).is_some_and(|before| TAKING_DASHES.contains(&words[before].as_str()));
    let is_theirs = |at: usize| is_of_jvm(&words[at]) && !is_value(at);
    let first = (0..words.len()).find(|at| is_theirs(*at)).filter(|_| STARTING.contains(&verb.as_str()))?;
    let java = words.iter().take(first).position(|word| Path::new(word).file_name().is_some_and(|name| name == "java"));
    let names_code = words.iter().any(|word| ["-jar", "-cp", "-classpath"].contains(&word.as_str()));
    let mut meant = vec!["loadline".to_owned(), verb.clone()];
    let what = if names_code || java.is_some() {
        let (before, after) = words.split_at(java.unwrap_or(first));
        meant.extend_from_slice(before);
        meant.push("--".to_owned());
        meant.extend(java.is_none().then(|| "java".to_owned()));
        meant.extend_from_slice(after);
        "put `--` before the server's command"
    } else {
        let each = words.iter().enumerate();
        meant.extend(each.map(|(at, word)| if is_theirs(at) { format!("--jvm={word}") } else { word.clone() }));
        "pass JVM options with `--jvm`"
    };
    Some((words[first].clone(), format!("{what}: `{}`", shell_words(&meant))))
}

fn is_of_jvm(word: &str) -> bool {
    const WHOLE: [&str; 6] = ["-jar", "-cp", "-classpath", "-server", "-ea", "-esa"];
    const HEADS: [&str; 4] = ["-X", "-D", "-javaagent:", "-agent"];
    WHOLE.contains(&word) || HEADS.iter().any(|head| word.len() > head.len() && word.starts_with(head))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jvm_options_get_a_tip() {
        let check = |typed: &str, option: &str, expect: &str| {
            let words: Vec<OsString> = typed.split(' ').map(OsString::from).collect();
            let usage = super::super::args::parser().try_get_matches_from(&words).unwrap_err();
            let shown = with_tip(usage, &words).to_string();
            assert!(shown.starts_with(&format!("error: unexpected argument '{option}' found\n")), "{shown}");
            assert!(shown.contains(&format!("  tip: {expect}\n")), "{shown}");
        };
        let jvm = "pass JVM options with `--jvm`: ";
        check("loadline weigh a.jar -Xmx64m", "-Xmx64m", &format!("{jvm}`loadline weigh a.jar --jvm=-Xmx64m`"));
        check("loadline tune a.jar -Da=b --list", "-Da=b", &format!("{jvm}`loadline tune a.jar --jvm=-Da=b --list`"));
        let command = "put `--` before the server's command: ";
        let expect = format!("{command}`loadline find --rate 5 -- java -Xmx64m -jar a.jar`");
        check("loadline find --rate 5 java -Xmx64m -jar a.jar", "-Xmx64m", &expect);
        check("loadline find --rate 5 -Xmx64m -jar a.jar", "-Xmx64m", &expect);
        check("loadline weigh -cp a b.C", "-cp", &format!("{command}`loadline weigh -- java -cp a b.C`"));
        let expect = format!("{command}`loadline weigh --jvm -Xss1m -- /jdk/bin/java -jar a.jar`");
        check("loadline weigh --jvm -Xss1m /jdk/bin/java -jar a.jar", "-jar", &expect);
    }

    #[test]
    fn other_unknown_options_keep_claps_tip() {
        let none = |typed: &str| {
            let words: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            assert_eq!(tip(&words), None, "{typed}");
        };
        none("loadline weigh a.jar --x");
        none("loadline weigh a.jar -- -Xmx64m");
        none("loadline weigh a.jar --jvm -Xmx64m");
        none("loadline account -Xmx64m");
    }
}
