//! Settings for Docker, Kubernetes, and systemd that apply a limit found by a search, or a confirmed tuning. Options
//! and variables are untrusted; each kind is quoted by its consumer's rules.

use super::page::{Literal, Part};
use crate::record::{AdviceRecord, FindRecord, ImageRecord, Trial, TuneOutcome, TuneRecord};
use crate::scenario::{Change, Gc, shell_word, shell_words};
use crate::units::{Bytes, MIB, steers, visible};
use crate::words::word_of;

/// The variable for JVM options outside the command line.
const VARIABLE: &str = "JAVA_TOOL_OPTIONS";
/// The variable that overrides the command line: the JVM reads it last (`Arguments::parse`, JDK 8 to 27).
const LAST_VARIABLE: &str = "_JAVA_OPTIONS";
/// The variable for libraries to load first (ld.so(8)).
const PRELOAD: &str = "LD_PRELOAD";
/// Options that name a class archive, which only the JDK that wrote it accepts (JEP 310, 350, 483).
const OF_CLASSES: [&str; 2] = ["-XX:SharedArchiveFile=", "-XX:AOTCache="];
/// The title of instructions that are not settings.
const NOTE: &str = "note";
/// Both names of the maximum heap.
const HEAP_MAX: [&str; 2] = ["-Xmx", "-XX:MaxHeapSize="];
/// The name of the setting behind options such as `-XX:+UseG1GC`.
const COLLECTOR: &str = "collector";
/// Options that size the heap by the host's memory. The JVM ignores them if the maximum heap is set
/// (`Arguments::set_heap_size`, JDK 11 to 27).
const HEAP_SHARES: [&str; 2] = ["-XX:MaxRAMPercentage=", "-XX:MaxRAM="];

/// The JVM options to set, including the heap's.
pub(crate) fn options(find: &FindRecord) -> Vec<String> {
    let given = find.options.iter().any(|option| option.starts_with("-Xmx"));
    let heap = find.heap_bytes.filter(|_| !given).map(|heap| format!("-Xmx{}", Bytes(heap).java()));
    heap.into_iter().chain(find.options.iter().cloned()).collect()
}

/// Values to set together.
#[derive(Debug, Default)]
struct Setting {
    limit_mib: Option<u64>,
    options: Vec<String>,
    /// Environment variables.
    env: Vec<(String, String)>,
    /// Program arguments, which variables cannot pass.
    args: Vec<String>,
    /// A library to load first.
    preload: Option<String>,
    /// The server's own options to remove.
    gone: Vec<String>,
    /// Other changes, as command-line options.
    others: Vec<String>,
}

impl Setting {
    fn foreign(&self) -> impl Iterator<Item = &str> {
        let env = self.env.iter().flat_map(|(name, value)| [name, value]);
        self.options
            .iter()
            .chain(env)
            .chain(&self.args)
            .chain(&self.preload)
            .chain(&self.gone)
            .chain(&self.others)
            .map(String::as_str)
    }
}

/// The settings for each kind of host; empty without a limit. `trial` is one that passed.
pub(crate) fn snippets(find: &FindRecord, trial: Option<&Trial>) -> Vec<Literal> {
    let Some(limit) = find.limit_bytes else { return Vec::new() };
    let setting = Setting { limit_mib: Some(limit.div_ceil(MIB)), options: options(find), ..Setting::default() };
    for_hosts(&setting, trial, |word| begins(word, &HEAP_MAX))
}

/// The settings for a confirmed tuning on each kind of host, with its limit if one was found; empty if nothing was
/// confirmed. `trial` is of the unchanged subject.
pub(crate) fn of_tuning(tune: &TuneRecord, trial: Option<&Trial>) -> Vec<Literal> {
    let mut setting = Setting::default();
    for change in &tune.changes {
        match change {
            Change::Env(variables) => setting.env.extend(variables.iter().cloned()),
            Change::Args(words) => setting.args.extend(words.iter().cloned()),
            Change::Limit(limit) => setting.limit_mib = Some(limit.0.div_ceil(MIB)),
            Change::Preload(library) => setting.preload.clone_from(library),
            Change::Without(words) => setting.gone.extend(words.iter().cloned()),
            Change::Jdk(_) | Change::Code(_) | Change::Cpus(_) => setting.others.extend(change.typed()),
            Change::Gc(_)
            | Change::Heap(_)
            | Change::HeapMax(_)
            | Change::DirectMax(_)
            | Change::Nmt(_)
            | Change::Jvm(_) => setting.options.extend(change.typed()),
        }
    }
    if tune.changes.is_empty() || tune.outcome == TuneOutcome::Unpriced {
        return Vec::new();
    }
    if let Some(tuned) = tune.lines.as_ref().and_then(|lines| lines.tuned.as_ref()) {
        setting.limit_mib = tuned.limit_bytes.map(|limit| limit.div_ceil(MIB)).or(setting.limit_mib);
        // A limit is valid only with the heap found with it.
        let of_line = options(tuned).into_iter().filter(|_| tuned.limit_bytes.is_some());
        let new = of_line.filter(|option| !setting.options.iter().any(|own| subject_of(own) == subject_of(option)));
        let new: Vec<String> = new.collect();
        setting.options.extend(new);
    }
    // With a different number of CPUs, the JVM might choose another collector, which was not tested.
    let names_collector = setting.options.iter().any(|option| subject_of(option) == COLLECTOR);
    let chosen = trial.and_then(Trial::collector_by_cpus).filter(|_| !names_collector);
    setting.options.extend(chosen.into_iter().flat_map(Gc::options));
    let is_set = |word: &str| setting.options.iter().any(|option| overrides(word, option));
    for_hosts(&setting, trial, |word| word.starts_with('-') && is_set(word))
}

fn begins(option: &str, heads: &[&str]) -> bool {
    heads.iter().any(|head| option.starts_with(head))
}

/// Whether a command-line word overrides an option in a variable.
fn overrides(word: &str, option: &str) -> bool {
    subject_of(word) == subject_of(option) || begins(word, &HEAP_MAX) && begins(option, &HEAP_SHARES)
}

/// The setting behind a JVM option. If two options change the same setting, the JVM uses one of them or rejects both.
fn subject_of(option: &str) -> &str {
    if begins(option, &HEAP_MAX) {
        return HEAP_MAX[0];
    }
    let name = option.split('=').next().unwrap_or_default();
    match (name.strip_prefix("-XX:").map(|name| name.trim_start_matches(['+', '-'])), name.get(..4)) {
        (Some(name), _) if name.starts_with("Use") && name.ends_with("GC") => COLLECTOR,
        (Some(name), _) => name,
        (None, Some(size @ ("-Xms" | "-Xmn" | "-Xss"))) => size,
        (None, _) => name,
    }
}

/// The settings for each kind of host. `wins` determines which words of the trial's command line override the variable,
/// unless they are set too.
fn for_hosts(setting: &Setting, trial: Option<&Trial>, wins: impl Fn(&str) -> bool) -> Vec<Literal> {
    let snippet = |title: &str, lines: Vec<String>| Literal { title: title.to_owned(), lines };
    let image = trial.and_then(|trial| trial.image.as_ref());
    // Control characters cannot be both shown safely and copied.
    let own = image.map_or("", |image| image.tool_options.as_str());
    let foreign = setting.foreign().chain([own]).chain(image.map(|image| image.name.as_str()));
    if foreign.into_iter().any(|text| text.chars().any(steers)) {
        let why = "the options contain characters that cannot be shown (--json has them)";
        let limit = setting.limit_mib.map_or(String::new(), |mib| format!("set a limit of {mib} MiB; "));
        return vec![snippet("settings", vec![format!("{limit}{why}")])];
    }
    let words: Vec<&String> = trial
        .iter()
        .flat_map(|trial| &trial.command)
        .chain(image.iter().flat_map(|image| &image.heap_options))
        .collect();
    // A script may set options that the command does not show, and only one variable overrides them.
    let (gone, hidden): (Vec<&String>, Vec<&String>) =
        setting.gone.iter().partition(|word| trial.is_none() || words.contains(word));
    let variable = if hidden.is_empty() { VARIABLE } else { LAST_VARIABLE };
    // The settings replace the variable's current value, which comes from the image or a remedy, so they repeat it.
    let own = Some(own.to_owned()).filter(|own| !own.is_empty() && !setting.options.is_empty() && hidden.is_empty());
    let given = setting.env.iter().filter(|(name, _)| name == variable).map(|(_, value)| value.clone());
    let options = setting.options.iter().map(|option| tool_option(option));
    let value = own.into_iter().chain(given).chain(options).collect::<Vec<_>>().join(" ");
    let mut env: Vec<(&str, &str)> = Vec::new();
    env.extend(setting.env.iter().filter(|(name, _)| name != variable).map(|(name, value)| (&**name, &**value)));
    env.extend(setting.preload.as_deref().map(|library| (PRELOAD, library)));
    env.extend(Some(value.as_str()).filter(|value| !value.is_empty()).map(|value| (variable, value)));
    let mut found = Vec::new();
    if setting.limit_mib.is_some() || !env.is_empty() {
        found.push(snippet("settings for Docker", docker(setting.limit_mib, &env, image)));
        found.push(snippet("settings for a Kubernetes container", kubernetes(setting.limit_mib, &env, image)));
        if image.is_none() {
            found.push(snippet("settings for a systemd unit", systemd(setting.limit_mib, &env)));
        }
    }
    let mut notes = Vec::new();
    let words = words.into_iter().filter(|word| wins(word) && !setting.options.contains(word));
    let words = words.filter(|word| !word.chars().any(steers) && !setting.gone.contains(word) && !is_put(trial, word));
    let winners: Vec<&str> = words.map(String::as_str).collect();
    let whose = if image.is_some() { "the image's command" } else { "the command" };
    let listed = |words: &[&String]| shell_words(&words.iter().copied().cloned().collect::<Vec<_>>());
    if !gone.is_empty() {
        notes.push(format!("Remove {} from {whose}, as the trials did.", listed(&gone)));
    }
    if !hidden.is_empty() {
        let until = format!(" Until you do, only {LAST_VARIABLE} overrides it; {VARIABLE} does not.");
        let until = if value.is_empty() { "" } else { until.as_str() };
        notes.push(format!("A script or a variable sets {}. Change it there.{until}", listed(&hidden)));
    }
    if !value.is_empty() && !winners.is_empty() && hidden.is_empty() {
        notes.push(format!("Remove {} from {whose}: it overrides {VARIABLE}.", winners.join(" ")));
    }
    if !setting.args.is_empty() {
        notes.push(format!("Append this to the program's own arguments: {}", shell_words(&setting.args)));
    }
    if let Some(library) = &setting.preload {
        notes.push(format!("{library} must exist where the server runs."));
    }
    let classes = |option: &String| OF_CLASSES.iter().find_map(|head| option.strip_prefix(head).map(str::to_owned));
    for file in setting.options.iter().filter_map(classes) {
        notes.push(format!("{file} must exist where the server runs, created by the same JDK from the same classes."));
    }
    if !setting.others.is_empty() {
        notes.push(format!("Also set, as in the trials: {}", shell_words(&setting.others)));
    }
    found.extend((!notes.is_empty()).then(|| snippet(NOTE, notes)));
    found
}

fn is_put(trial: Option<&Trial>, word: &String) -> bool {
    trial.and_then(|trial| trial.jvm.as_ref()).is_some_and(|jvm| jvm.options.contains(word))
}

/// The page's parts with these lines; notes are prose that may wrap.
pub(crate) fn parts(found: Vec<Literal>) -> impl Iterator<Item = Part> {
    found.into_iter().map(|of| match of.title == NOTE {
        true => Part::under(NOTE, of.lines.into_iter().map(Part::Text)),
        false => Part::Literal(of),
    })
}

/// Without `--memory-swap`, Docker allows the same amount of swap; the trials had none.
fn docker(limit_mib: Option<u64>, env: &[(&str, &str)], image: Option<&ImageRecord>) -> Vec<String> {
    let tool = image.map_or("docker", |image| image.tool.as_str());
    let mut line = format!("{tool} run");
    line.extend(limit_mib.map(|mib| format!(" --memory={mib}m --memory-swap={mib}m")));
    line.extend(env.iter().map(|(name, value)| format!(" -e {}", shell_word(&format!("{name}={value}")))));
    line.push(' ');
    line.push_str(&image.map_or_else(|| "IMAGE".to_owned(), |image| shell_word(&image.name)));
    vec![line]
}

fn kubernetes(limit_mib: Option<u64>, env: &[(&str, &str)], image: Option<&ImageRecord>) -> Vec<String> {
    let mut lines: Vec<String> =
        image.into_iter().map(|image| format!("image: {}", double_quoted(&image.name))).collect();
    if let Some(mib) = limit_mib {
        let memory = format!("    memory: {mib}Mi");
        lines.extend(["resources:", "  requests:", &memory, "  limits:", &memory].map(str::to_owned));
    }
    if !env.is_empty() {
        lines.push("env:".to_owned());
    }
    for (name, value) in env {
        let is_plain = name.chars().all(|c| c.is_ascii_uppercase() || c == '_');
        lines.push(format!("  - name: {}", if is_plain { (*name).to_owned() } else { double_quoted(name) }));
        // Kubernetes expands `$(NAME)`, and reads `$$` as `$`.
        lines.push(format!("    value: {}", double_quoted(&value.replace('$', "$$"))));
    }
    lines
}

fn systemd(limit_mib: Option<u64>, env: &[(&str, &str)]) -> Vec<String> {
    let mut lines = vec!["[Service]".to_owned()];
    if let Some(mib) = limit_mib {
        lines.extend([format!("MemoryMax={mib}M"), "MemorySwapMax=0".to_owned()]);
    }
    // systemd expands specifiers such as `%h`, and reads `%%` as `%`.
    let quoted = |(name, value): &(&str, &str)| double_quoted(&format!("{name}={value}").replace('%', "%%"));
    lines.extend(env.iter().map(|variable| format!("Environment={}", quoted(variable))));
    lines
}

/// A host whose own configuration files accept a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum PatchHost {
    /// A strategic merge patch for a Kubernetes workload.
    Kubernetes,
    /// A Compose override file.
    Compose,
    /// A systemd unit drop-in.
    Systemd,
}

/// The settings for a piece of advice, in a file of this host, with the command to test it and the options to remove as
/// comments. `own` is the current value of the JVM options variable, which the patch keeps. Without a limit, only the
/// reason remains.
pub fn patch(host: PatchHost, advice: &AdviceRecord, own: Option<&str>) -> String {
    let mut lines = vec![format!("# {}: untested, {} confidence", visible(&advice.name), word_of(advice.confidence))];
    let is_shown = !advice.options.iter().map(String::as_str).chain(own).any(|text| text.chars().any(steers));
    match advice.limit_bytes.map(|limit| limit.div_ceil(MIB)) {
        None => lines.push(format!("# no advice: {}", advice.refused.as_deref().unwrap_or("it is unknown"))),
        Some(_) if !is_shown => lines.push(format!("# {VARIABLE} contains characters that cannot be shown")),
        Some(limit_mib) => {
            lines.push(format!("# test it: {}", visible(&advice.prove)));
            let without = (!advice.without.is_empty()).then(|| visible(&advice.without.join(" ")));
            lines.extend(without.map(|words| format!("# remove {words} from the command: it overrides {VARIABLE}")));
            let options = advice.options.iter().map(|option| tool_option(option));
            let value = own.map(str::to_owned).into_iter().chain(options).collect::<Vec<_>>().join(" ");
            lines.extend(of_host(host, advice, limit_mib, &value));
        }
    }
    format!("{}\n", lines.join("\n"))
}

fn of_host(host: PatchHost, advice: &AdviceRecord, limit_mib: u64, value: &str) -> Vec<String> {
    let env = [(VARIABLE, value)];
    let place = &advice.place;
    match host {
        PatchHost::Systemd => {
            let unit = place.unit.as_deref().map_or_else(|| "UNIT".to_owned(), visible);
            let file = format!("# /etc/systemd/system/{unit}.d/memory.conf");
            std::iter::once(file).chain(systemd(Some(limit_mib), &env)).collect()
        }
        PatchHost::Compose => {
            let limit = format!("{limit_mib}m");
            // Compose expands `$NAME`, and reads `$$` as `$`.
            let value = double_quoted(&value.replace('$', "$$"));
            let sizes = ["mem_limit", "memswap_limit", "mem_reservation"].map(|key| format!("    {key}: {limit}"));
            let head = ["services:".to_owned(), "  SERVICE:".to_owned()].into_iter().chain(sizes);
            head.chain(["    environment:".to_owned(), format!("      {VARIABLE}: {value}")]).collect()
        }
        PatchHost::Kubernetes => {
            let (kind, name) = place.pod.as_deref().map_or(("Deployment", "NAME".to_owned()), workload);
            let namespace =
                place.namespace.as_deref().map(|name| format!("  namespace: {}", double_quoted(&visible(name))));
            let container = place.container.as_deref().unwrap_or("CONTAINER");
            let head = ["apiVersion: apps/v1".to_owned(), format!("kind: {kind}"), "metadata:".to_owned()];
            let name = format!("  name: {}", double_quoted(&visible(&name)));
            let to_containers = ["spec:", "  template:", "    spec:", "      containers:"].map(str::to_owned);
            let container = format!("        - name: {}", double_quoted(&visible(container)));
            let sizes = kubernetes(Some(limit_mib), &env, None).into_iter().map(|line| format!("          {line}"));
            head.into_iter()
                .chain([name])
                .chain(namespace)
                .chain(to_containers)
                .chain([container])
                .chain(sizes)
                .collect()
        }
    }
}

/// A pod's workload, by its name: `shop-6f4d8b9c7d-x2vbq` belongs to the Deployment `shop`, `db-0` to the StatefulSet
/// `db`, any other to a DaemonSet.
fn workload(pod: &str) -> (&'static str, String) {
    /// The alphabet of generated names (`SafeEncodeString`, Kubernetes).
    const LETTERS: &str = "bcdfghjklmnpqrstvwxz2456789";
    let is_made = |part: &str, least: usize| part.len() >= least && part.chars().all(|c| LETTERS.contains(c));
    let Some((rest, last)) = pod.rsplit_once('-') else { return ("Deployment", pod.to_owned()) };
    if !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit()) {
        return ("StatefulSet", rest.to_owned());
    }
    match rest.rsplit_once('-') {
        Some((name, hash)) if is_made(last, 5) && is_made(hash, 6) => ("Deployment", name.to_owned()),
        _ if is_made(last, 5) => ("DaemonSet", rest.to_owned()),
        _ => ("Deployment", pod.to_owned()),
    }
}

/// Quotes text for YAML and systemd: in both, a backslash escapes itself and quotes.
fn double_quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Quotes an option for the JVM's variable. The JVM splits the variable at spaces, except inside quotes, which can
/// begin within a word and allow no escapes.
fn tool_option(option: &str) -> String {
    if !option.is_empty() && !option.contains(|c: char| c.is_whitespace() || c == '"' || c == '\'') {
        return option.to_owned();
    }
    let quoted = |piece: &str| match piece.is_empty() && !option.is_empty() {
        true => String::new(),
        false => format!("\"{piece}\""),
    };
    option.split('"').map(quoted).collect::<Vec<_>>().join("'\"'")
}

#[cfg(test)]
mod tests {
    use super::super::{find_sample, tune_sample};
    use super::*;
    use proptest::prelude::*;

    fn owned(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    fn of(options: &[&str]) -> Vec<Literal> {
        snippets(&FindRecord { options: owned(options), ..find_sample::found().find.unwrap() }, None)
    }

    fn trial(command: &[&str]) -> Trial {
        Trial { command: owned(command), ..Trial::default() }
    }

    /// All lines below their titles.
    fn text(snippets: Vec<Literal>) -> String {
        let lines = snippets.into_iter().flat_map(|of| std::iter::once(of.title).chain(of.lines));
        lines.collect::<Vec<_>>().join("\n")
    }

    /// Splits the variable as HotSpot does (`Arguments::parse_options_buffer`).
    fn as_a_jvm_reads(value: &str) -> Vec<String> {
        let (mut found, mut rest) = (Vec::new(), value.trim_start_matches(|c: char| c.is_ascii_whitespace()));
        while !rest.is_empty() {
            let (mut option, mut chars) = (String::new(), rest.char_indices());
            let mut end = rest.len();
            let mut quote = None;
            for (at, c) in chars.by_ref() {
                match quote {
                    None if c.is_ascii_whitespace() => {
                        end = at;
                        break;
                    }
                    None if c == '"' || c == '\'' => quote = Some(c),
                    Some(open) if c == open => quote = None,
                    _ => option.push(c),
                }
            }
            assert_eq!(quote, None, "a quote stays open in {value}");
            found.push(option);
            rest = rest[end..].trim_start_matches(|c: char| c.is_ascii_whitespace());
        }
        found
    }

    /// The variable's value as each consumer passes it on: `sh`, YAML and Kubernetes, systemd.
    fn as_readers_hand_on(snippets: &[Literal]) -> [String; 3] {
        let docker = &snippets[0].lines[0];
        let word = docker.split_once(" -e ").unwrap().1.strip_suffix(" IMAGE").unwrap();
        let plain = word
            .strip_prefix('\'')
            .map_or(word.to_owned(), |quoted| quoted.strip_suffix('\'').unwrap().replace(r"'\''", "'"));
        let yaml: yaml_serde::Value = yaml_serde::from_str(&snippets[1].lines.join("\n")).unwrap();
        let in_yaml = yaml["env"][0]["value"].as_str().unwrap().replace("$$", "$");
        let unit = snippets[2].lines.last().unwrap().strip_prefix("Environment=\"").unwrap();
        let unit = unit.strip_suffix('"').unwrap().replace("%%", "%");
        let (mut in_unit, mut escaped) = (String::new(), false);
        for c in unit.chars() {
            match c {
                '\\' if !escaped => escaped = true,
                c => {
                    assert!(c != '"' || escaped, "the quotes end early: {unit}");
                    in_unit.push(c);
                    escaped = false;
                }
            }
        }
        let bare = |text: &str| text.strip_prefix("JAVA_TOOL_OPTIONS=").unwrap().to_owned();
        [bare(&plain), in_yaml, bare(&in_unit)]
    }

    #[test]
    fn snippets_set_the_limit_and_options_for_each_kind_of_host() {
        insta::assert_snapshot!(text(of(&["-Xmx8m", "-Xss512k"])));
    }

    #[test]
    fn an_image_is_named_and_keeps_its_own_options() {
        let find = FindRecord { options: owned(&["-Xmx8m"]), ..find_sample::found().find.unwrap() };
        let image = ImageRecord {
            name: "team/app:1".to_owned(),
            id: "01".to_owned(),
            tool: "podman".to_owned(),
            tool_options: "-Da=b".to_owned(),
            heap_options: owned(&["-Xmx64m"]),
        };
        let trial = Trial { image: Some(image), ..Trial::default() };
        let text = lines(&snippets(&find, Some(&trial)));
        assert!(text[0].starts_with("podman run --memory="), "{text:?}");
        assert!(text[0].ends_with(" -e 'JAVA_TOOL_OPTIONS=-Da=b -Xmx8m' team/app:1"), "{text:?}");
        assert_eq!(text[1..3], ["image: \"team/app:1\"", "resources:"]);
        assert!(!text.contains(&"[Service]".to_owned()), "{text:?}");
        assert_eq!(text.last().unwrap(), "Remove -Xmx64m from the image's command: it overrides JAVA_TOOL_OPTIONS.");
        let bare = FindRecord { options: Vec::new(), line: None, heap_bytes: None, ..find };
        assert!(!snippets(&bare, Some(&trial))[0].lines[0].contains("-e "), "the image's variable must stay");
    }

    #[test]
    fn the_heap_found_is_among_the_options() {
        let find = find_sample::found().find.unwrap();
        let heap = find.heap_bytes.unwrap();
        let bare = FindRecord { options: owned(&["-Xss512k"]), ..find.clone() };
        assert_eq!(options(&bare), [format!("-Xmx{}m", heap >> 20), "-Xss512k".to_owned()]);
        assert_eq!(options(&find), find.options);
    }

    #[test]
    fn snippets_need_a_limit() {
        for (outcome, document) in find_sample::endings() {
            let find = document.find.unwrap();
            assert_eq!(snippets(&find, None).is_empty(), find.limit_bytes.is_none(), "{outcome:?}");
        }
    }

    #[test]
    fn conflicting_options_in_the_command_are_pointed_out() {
        let find = find_sample::found().find.unwrap();
        let note = snippets(&find, Some(&trial(&["java", "-Xmx512m", "-jar", "a.jar"]))).pop().unwrap();
        assert!(note.lines[0].starts_with("Remove -Xmx512m from the command"), "{note:?}");
        let same = Trial { command: [owned(&["java"]), find.options.clone()].concat(), ..Trial::default() };
        assert_eq!(snippets(&find, Some(&same)).len(), 3);
    }

    fn tuned(changes: Vec<Change>) -> TuneRecord {
        TuneRecord { changes, lines: None, ..tune_sample::proved().tune.unwrap() }
    }

    fn lines(snippets: &[Literal]) -> Vec<String> {
        snippets.iter().flat_map(|snippet| snippet.lines.clone()).collect()
    }

    #[test]
    fn tuning_results_are_set_with_variables_and_options() {
        let tune = tune_sample::proved().tune.unwrap();
        insta::assert_snapshot!(text(of_tuning(&tune, None)));
        // Without a limit, none is set.
        let bare = of_tuning(&TuneRecord { lines: None, ..tune.clone() }, None);
        assert!(!lines(&bare).iter().any(|line| line.to_lowercase().contains("mem")), "{bare:?}");
        for (outcome, document) in tune_sample::endings() {
            let tune = document.tune.unwrap();
            let is_set = outcome == TuneOutcome::Proved && !tune.changes.is_empty();
            assert_eq!(of_tuning(&tune, None).is_empty(), !is_set, "{outcome:?}");
        }
    }

    #[test]
    fn changes_that_variables_cannot_make_are_notes() {
        let changes = vec![
            Change::Args(owned(&["--threads=50", "a b"])),
            Change::Preload(Some("libjemalloc.so.2".to_owned())),
            Change::Jdk(crate::scenario::Jdk::Release(25)),
            Change::Jvm(owned(&["-XX:SharedArchiveFile=app.jsa"])),
        ];
        let found = of_tuning(&tuned(changes), None);
        assert!(found[0].lines[0].contains(" -e LD_PRELOAD=libjemalloc.so.2 "), "{found:?}");
        let notes = [
            "Append this to the program's own arguments: --threads=50 'a b'",
            "libjemalloc.so.2 must exist where the server runs.",
            "app.jsa must exist where the server runs, created by the same JDK from the same classes.",
            "Also set, as in the trials: --jdk=25",
        ];
        assert_eq!(found.last().unwrap().lines, notes);
        let only = of_tuning(&tuned(vec![Change::Args(owned(&["-x"]))]), None);
        assert_eq!(only.len(), 1, "without a variable, there is only a note: {only:?}");
    }

    #[test]
    fn a_scripts_flag_is_overridden_by_the_stronger_variable() {
        let changes = vec![Change::Without(owned(&["-Xmn320m"])), Change::Jvm(owned(&["-Xmn16m"]))];
        let of = |command: &[&str]| lines(&of_tuning(&tuned(changes.clone()), Some(&trial(command))));
        let script = of(&["sh", "run.sh"]);
        assert_eq!(script[0], "docker run -e _JAVA_OPTIONS=-Xmn16m IMAGE");
        let note = "A script or a variable sets -Xmn320m. Change it there. Until you do, only _JAVA_OPTIONS \
            overrides it; JAVA_TOOL_OPTIONS does not.";
        assert_eq!(script.last().unwrap(), note);
        let java = of(&["java", "-Xmn320m", "-jar", "a.jar"]);
        assert_eq!(java[0], "docker run -e JAVA_TOOL_OPTIONS=-Xmn16m IMAGE");
        assert_eq!(java.last().unwrap(), "Remove -Xmn320m from the command, as the trials did.");
    }

    #[test]
    fn only_options_that_the_command_overrides_are_pointed_out() {
        let command = ["java", "-Xms64m", "-Xmx6g", "-XX:+UseG1GC", "-XX:-UseStringDeduplication", "-Da=1", "-jar"];
        let winners = |options: &[&str]| {
            let found = of_tuning(&tuned(vec![Change::Jvm(owned(options))]), Some(&trial(&command)));
            let note = found.iter().find(|snippet| snippet.title == "note");
            note.map(|note| note.lines[0].clone())
        };
        let takes = |words: &str| Some(format!("Remove {words} from the command: it overrides JAVA_TOOL_OPTIONS."));
        assert_eq!(winners(&["-XX:MaxRAMPercentage=40"]), takes("-Xmx6g"));
        assert_eq!(winners(&["-XX:+UseSerialGC"]), takes("-XX:+UseG1GC"));
        assert_eq!(winners(&["-XX:+UseStringDeduplication"]), takes("-XX:-UseStringDeduplication"));
        assert_eq!(winners(&["-Da=2", "-Xms8m"]), takes("-Xms64m -Da=1"));
        assert_eq!(winners(&["-Xmx6g", "-Xss512k", "-Dab=1"]), None);
        let share = trial(&["java", "-XX:MaxRAMPercentage=75", "-jar"]);
        let found = of_tuning(&tuned(vec![Change::Jvm(owned(&["-Xmx32m"]))]), Some(&share));
        assert!(found.iter().all(|snippet| snippet.title != "note"), "-Xmx makes the JVM ignore shares: {found:?}");
    }

    #[test]
    fn a_limit_is_shown_with_the_heap_it_was_found_with() {
        let mut tune = tune_sample::proved().tune.unwrap();
        tune.lines.as_mut().unwrap().tuned = find_sample::found().find;
        let both = lines(&of_tuning(&tune, None));
        assert!(both[0].contains("-Xmx128m -XX:+UseSerialGC'"), "the heap of the answer must be kept: {both:?}");
        tune.changes.truncate(1);
        let found = lines(&of_tuning(&tune, None));
        assert!(found[0].contains("'JAVA_TOOL_OPTIONS=-Xmx8m -XX:+UseSerialGC'"), "{found:?}");
    }

    #[test]
    fn variables_reach_their_readers_unchanged() {
        let odd = "a b$(c)%d\"e'f\\";
        let variables = vec![("ODD".to_owned(), odd.to_owned()), (VARIABLE.to_owned(), "-Dx=1".to_owned())];
        let found = of_tuning(&tuned(vec![Change::Env(variables), Change::Jvm(owned(&["-Xss1m"]))]), None);
        let word = shell_word(&format!("ODD={odd}"));
        let expect = format!("docker run -e {word} -e 'JAVA_TOOL_OPTIONS=-Dx=1 -Xss1m' IMAGE");
        assert_eq!(found[0].lines, [expect]);
        let yaml: yaml_serde::Value = yaml_serde::from_str(&found[1].lines.join("\n")).unwrap();
        assert_eq!(yaml["env"][0]["name"].as_str(), Some("ODD"));
        assert_eq!(yaml["env"][0]["value"].as_str().unwrap().replace("$$", "$"), odd);
        assert_eq!(found[2].lines[1], r#"Environment="ODD=a b$(c)%%d\"e'f\\""#);
        for text in ["\u{1b}[31m", "x\ny"] {
            let found = of_tuning(&tuned(vec![Change::Env(vec![("A".to_owned(), text.to_owned())])]), None);
            assert!(found.len() == 1 && !found[0].lines[0].contains(steers), "{found:?}");
        }
    }

    #[test]
    fn snippets_contain_no_control_characters() {
        for option in ["-Da=\u{1b}[31m", "-Da=x\ny", "-Da=\u{202e}x"] {
            let found = of(&[option]);
            assert_eq!(found.len(), 1);
            assert!(!found[0].lines[0].contains(steers), "{found:?}");
        }
    }

    proptest! {
        #[test]
        fn every_reader_of_a_snippet_gets_the_exact_options(options in prop::collection::vec("(-D[a-z]{1,3}=)?[ \
             -~]{0,12}", 1..4)) {
            let options: Vec<String> = options.into_iter().chain(["-Xmx8m".to_owned()]).collect();
            let words: Vec<&str> = options.iter().map(String::as_str).collect();
            for value in as_readers_hand_on(&of(&words)) {
                prop_assert_eq!(as_a_jvm_reads(&value), options.clone());
            }
        }
    }
}
