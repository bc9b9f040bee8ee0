//! Removes options from the subject's command, variables, and configuration. Options inside a program that the command
//! starts, such as a script, stay.

use crate::scenario::{Configuration, Subject};

/// Whether an option to remove is in a place that Loadline cannot change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hidden {
    None,
    Some,
}

/// The subject and the configuration, without the options that this configuration removes.
pub(super) fn leave_out(subject: &Subject, configuration: &Configuration) -> (Subject, Configuration, Hidden) {
    let (mut subject, mut configuration) = (subject.clone(), configuration.clone());
    let gone = std::mem::take(&mut configuration.without);
    let of_variables = subject.env.iter().chain(&configuration.env).flat_map(|(_, value)| value.split_whitespace());
    let options = configuration.jvm_options();
    let seen = subject.command.iter().chain(&options).map(String::as_str).chain(of_variables);
    let seen: Vec<&str> = seen.filter(|word| gone.iter().any(|gone| gone == word)).collect();
    let hidden = gone.iter().any(|word| !seen.contains(&word.as_str()));
    let stays = |word: &str| !gone.iter().any(|gone| gone == word);
    subject.command.retain(|word| stays(word));
    configuration.jvm.retain(|word| stays(word));
    for (_, value) in subject.env.iter_mut().chain(&mut configuration.env) {
        if !value.split_whitespace().all(stays) {
            *value = value.split_whitespace().filter(|word| stays(word)).collect::<Vec<_>>().join(" ");
        }
    }
    (subject, configuration, if hidden { Hidden::Some } else { Hidden::None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_is_removed_where_visible_and_overridden_elsewhere() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let subject = Subject {
            command: words(&["java", "-Xmn320m", "-jar", "a.jar"]),
            env: vec![("JAVA_TOOL_OPTIONS".to_owned(), "-Da=b -javaagent:x.jar".to_owned())],
            ..Subject::default()
        };
        let of =
            |gone: &[&str]| leave_out(&subject, &Configuration { without: words(gone), ..Configuration::default() });
        let (left, _, hidden) = of(&["-Xmn320m", "-javaagent:x.jar"]);
        assert_eq!((left.command, hidden), (words(&["java", "-jar", "a.jar"]), Hidden::None));
        assert_eq!(left.env[0].1, "-Da=b");
        assert_eq!(of(&["-XX:MaxNewSize=320m"]).2, Hidden::Some);
        assert_eq!(of(&[]).0, subject);
    }
}
