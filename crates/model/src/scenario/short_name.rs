//! Short names for an axis's values, just long enough to be unique.

/// The names of an axis's values, in order: the shortest kind of name that makes them all unique.
pub(super) fn short_names(axis: &str, variable: Option<&str>, texts: &[&str]) -> Vec<String> {
    let kinds: &[fn(&str) -> String] = match axis {
        "jvm" => &[|text| options(text, flag), |text| options(text, flag_and_value), whole],
        "args" => &[|text| options(text, |word| word.trim_start_matches('-').to_owned()), whole],
        "code" => &[stem, last, whole],
        "preload" => &[last, whole],
        _ => &[whole],
    };
    let named = |kind: &fn(&str) -> String| texts.iter().map(|text| kind(text)).collect::<Vec<_>>();
    let names = kinds.iter().map(named).find(|names| are_distinct(names, texts));
    let names = names.unwrap_or_else(|| texts.iter().map(|text| whole(text)).collect());
    match variable {
        Some(variable) => names.into_iter().map(|value| format!("{}={value}", last_words(variable))).collect(),
        None => names,
    }
}

/// Whether different texts have different names. Equal texts are the same value; an empty text needs no name.
fn are_distinct(names: &[String], texts: &[&str]) -> bool {
    let pairs = || names.iter().zip(texts).filter(|(_, text)| !text.is_empty());
    pairs().all(|(name, text)| !name.is_empty() && pairs().all(|(other, same)| other != name || same == text))
}

/// The text as typed, but with `/` replaced, because it becomes part of a directory name.
fn whole(text: &str) -> String {
    text.replace('/', "_")
}

fn last(path: &str) -> String {
    whole(path.rsplit('/').next().unwrap_or(path))
}

/// `app-1.0` for `target/app-1.0.jar`.
fn stem(path: &str) -> String {
    let name = last(path);
    name.strip_suffix(".jar").map_or(name.clone(), str::to_owned)
}

fn options(text: &str, name: impl Fn(&str) -> String) -> String {
    whole(&text.split_whitespace().map(name).collect::<Vec<_>>().join("+"))
}

/// `TrimNativeHeapInterval` for `-XX:TrimNativeHeapInterval=2000`, `agent.jar` for `-javaagent:/opt/agent.jar=a=b`.
fn flag(option: &str) -> String {
    if let Some(agent) = option.strip_prefix("-javaagent:") {
        return last(agent.split('=').next().unwrap_or(agent));
    }
    let name = flag_and_value(option);
    name.split_once('=').map_or(name.clone(), |(flag, _)| flag.to_owned())
}

/// `UseX` for `-XX:+UseX`, `no-UseX` for `-XX:-UseX`, `Xss512k` for `-Xss512k`.
fn flag_and_value(option: &str) -> String {
    let Some(flag) = option.strip_prefix("-XX:") else { return option.trim_start_matches('-').to_owned() };
    match flag.strip_prefix('-') {
        Some(off) => format!("no-{off}"),
        None => flag.trim_start_matches('+').to_owned(),
    }
}

/// `ARENA_MAX` for `MALLOC_ARENA_MAX`: users know the prefix. `_JAVA_OPTIONS` has none.
fn last_words(variable: &str) -> &str {
    let whole = variable.trim_end_matches('_');
    whole.rmatch_indices('_').nth(1).filter(|(at, _)| *at > 0).map_or(whole, |(at, _)| &whole[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(axis: &str, texts: &[&str], expect: &[&str]) {
        let (axis, variable) = axis.split_once('.').map_or((axis, None), |(axis, name)| (axis, Some(name)));
        assert_eq!(short_names(axis, variable, texts), expect);
    }

    #[test]
    fn a_short_name_shows_the_difference() {
        check("env.MALLOC_ARENA_MAX", &["2", "16"], &["ARENA_MAX=2", "ARENA_MAX=16"]);
        check("env.MALLOC_TRIM_THRESHOLD_", &["0"], &["TRIM_THRESHOLD=0"]);
        check("env._JAVA_OPTIONS", &["-Xmn8m"], &["_JAVA_OPTIONS=-Xmn8m"]);
        check("env.MODE", &["a/b"], &["MODE=a_b"]);
        let (trim, stacks) = ("-XX:TrimNativeHeapInterval=2000", "-Xss512k");
        check("jvm", &[trim, stacks], &["TrimNativeHeapInterval", "Xss512k"]);
        let shorter = "-XX:TrimNativeHeapInterval=500";
        check("jvm", &[trim, shorter], &["TrimNativeHeapInterval=2000", "TrimNativeHeapInterval=500"]);
        check("jvm", &["-XX:+UseX", "-XX:-UseX"], &["UseX", "no-UseX"]);
        check("jvm", &["-Xss1m -XX:+UseX", "-Xss1m"], &["Xss1m+UseX", "Xss1m"]);
        check("jvm", &["", "-javaagent:/opt/a.jar=x=1"], &["", "a.jar"]);
        check("jvm", &["-javaagent:a.jar=x=1", "-javaagent:a.jar"], &["javaagent:a.jar=x=1", "javaagent:a.jar"]);
        // Nothing shorter is unique.
        check("jvm", &["-XX:+UseX", "-XX:UseX"], &["-XX:+UseX", "-XX:UseX"]);
        check("args", &["--pool=8 -v", "--pool=9"], &["pool=8+v", "pool=9"]);
        check("code", &["target/app-1.0.jar", "old/app-0.9.jar"], &["app-1.0", "app-0.9"]);
        check("code", &["new/app.jar", "old/app.jar"], &["new_app.jar", "old_app.jar"]);
        check("preload", &["none", "/usr/lib/libjemalloc.so.2"], &["none", "libjemalloc.so.2"]);
    }
}
