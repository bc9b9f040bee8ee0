//! Builds the command line from a scenario: placeholders, JVM options, JDK, environment, CPUs.

use super::cpus::CpuPlan;
use super::image::FoundImage;
use super::jdk::FoundJdk;
use super::keeper::Keeper;
use super::launch_image::{Container, ContainerOptions, TOOL_OPTIONS};
use super::limit;
use super::own_options::{Hidden, leave_out};
use super::protocol::Order;
use super::quoting::with_options;
use super::slurm_step::StepOptions;
use crate::error::{Error, Result};
use crate::scenario::{Configuration, Processes, Subject, shell_word, shell_words};
use crate::units::{Bytes, Millicpus};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The placeholders allowed in a command.
const PLACEHOLDERS: [&str; 7] = ["jvm", "port", "jdk", "args", "code", "artifact", "work"];
/// Read by the `java` launcher of JDK 9 and later.
const JDK_OPTIONS: &str = "JDK_JAVA_OPTIONS";
/// The JVM reads it after the command line, so it overrides everything else (`Arguments::parse`, JDK 8 to 27).
const LAST_OPTIONS: &str = "_JAVA_OPTIONS";

/// How the configuration's JVM options are passed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionsPassed {
    /// There are none.
    #[default]
    NoneNeeded,
    /// At `{jvm}` in the command.
    AtPlaceholder,
    /// After the command's `java`.
    AfterJava,
    /// In this environment variable, because the command is not `java`.
    ByVariable(String),
}

/// Everything needed to start one subject.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Launch {
    /// The subject as defined in the scenario.
    pub subject: Subject,
    /// Program and arguments to execute.
    pub argv: Vec<String>,
    /// Additions to Loadline's environment, without duplicate names.
    pub env: Vec<(String, String)>,
    /// Working directory.
    pub dir: Option<PathBuf>,
    /// CPUs of the subject; `None` means no pinning.
    pub cpus: Option<Vec<u32>>,
    /// Memory limit.
    pub limit: Option<Bytes>,
    /// CPU limit.
    pub cpu_limit: Option<Millicpus>,
    /// The subject's port, the first of its block.
    pub port: u16,
    /// The only HTTP status that means ready, if the load expects one; otherwise, any below 400.
    pub ready_status: Option<u16>,
    /// Additional patterns for phase markers, whose first group is the name; `loadline: phase=NAME` always counts.
    pub phases: Vec<String>,
    /// Whether the subject reads permission to continue from stdin at its markers.
    pub reads: bool,
    /// How the JVM options are passed.
    pub options_passed: OptionsPassed,
    /// The requested JDK, if any.
    pub jdk: Option<FoundJdk>,
    /// The container, if the subject is an image.
    pub container: Option<Container>,
}

/// The port, directory, CPUs, and JDK of one trial.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchPlace<'a> {
    /// The first port of a block.
    pub port: u16,
    /// The directory for `{work}`, if [`needs_work`] requires one.
    pub work: Option<&'a Path>,
    /// The CPUs of subject and load.
    pub cpus: &'a CpuPlan,
    /// The JDK chosen for the configuration.
    pub jdk: Option<&'a FoundJdk>,
    /// The image of the subject, if it is one.
    pub image: Option<&'a FoundImage>,
}

impl Launch {
    /// The command line for a configuration of the subject.
    pub fn new(subject: &Subject, configuration: &Configuration, place: &LaunchPlace) -> Result<Self> {
        if subject.command.is_empty() && place.image.is_none() {
            return Err(
                Error::request("the server has no command").hint("specify one after `--`: `-- java -jar app.jar`")
            );
        }
        check_words(&subject.command)?;
        let (subject, configuration, hidden) = leave_out(subject, configuration);
        let (subject, configuration) = (&subject, &configuration);
        let launch = Self::of(subject, configuration, place);
        if let Some(image) = place.image {
            return Ok(launch.in_container(configuration, image, hidden));
        }
        let options = configuration.jvm_options();
        let values = Values {
            options: &options,
            port: place.port,
            java: place.jdk.map_or_else(|| "java".to_owned(), |jdk| jdk.java.display().to_string()),
            args: &configuration.args,
            code: configuration.code.as_deref().map(|code| seen_from(subject.dir.as_deref(), code)),
            artifact: subject.artifact.as_deref().map(|file| seen_from(subject.dir.as_deref(), file)),
            work: place.work,
        };
        let mut env = Environment::of(subject, configuration, &values);
        if let Some(library) = &configuration.preload {
            let path = seen_from(subject.dir.as_deref(), Path::new(library));
            env.set("LD_PRELOAD", if library.contains('/') { path.display().to_string() } else { library.clone() });
        }
        if let Some(jdk) = place.jdk {
            env.set("JAVA_HOME", jdk.home.display().to_string());
            env.prepend_path(&jdk.home.join("bin"));
        }
        let mut argv = values.expand(&subject.command);
        let options_passed = match passed_without_variable(&subject.command, &options) {
            Some(passed) => passed,
            None if subject.command.first().is_some_and(|program| is_java(program)) => {
                argv.splice(1..1, options.iter().cloned());
                OptionsPassed::AfterJava
            }
            None => {
                let name = if place.jdk.is_some_and(|jdk| jdk.release < 9) { TOOL_OPTIONS } else { JDK_OPTIONS };
                env.pass(name, &env.get(name).unwrap_or_default(), &options)
            }
        };
        // A script may set the same flag, and its command line would override the variable.
        let hidden = if matches!(options_passed, OptionsPassed::ByVariable(_)) { Hidden::Some } else { hidden };
        env.outrank(&env.get(LAST_OPTIONS).unwrap_or_default(), &options, hidden);
        if argv.first().is_some_and(|program| program == "java") {
            argv[0] = values.java.clone();
        }
        let (dir, jdk) = (subject.dir.clone(), place.jdk.cloned());
        Ok(Self { argv, options_passed, env: env.0, dir, jdk, ..launch })
    }

    /// A launch without a command, with Loadline's environment and directory.
    pub(crate) fn of(subject: &Subject, configuration: &Configuration, place: &LaunchPlace) -> Self {
        let (subject, cpus) = (subject.clone(), place.cpus.subject.clone());
        let (limit, cpu_limit) = (configuration.limit, configuration.cpu_limit);
        Self { subject, cpus, limit, cpu_limit, port: place.port, ..Self::default() }
    }

    /// Like `new`, for an image: the subject's command replaces the image's, after its entrypoint.
    fn in_container(self, configuration: &Configuration, image: &FoundImage, hidden: Hidden) -> Self {
        let (options, command) = (configuration.jvm_options(), &self.subject.command);
        let values = Values { options: &options, port: self.port, args: &configuration.args, ..Values::default() };
        let mut env = Environment::of(&self.subject, configuration, &values);
        let options_passed = passed_without_variable(command, &options).unwrap_or_else(|| {
            let before = env.own(TOOL_OPTIONS).unwrap_or_else(|| image.tool_options().to_owned());
            env.pass(TOOL_OPTIONS, &before, &options)
        });
        let before = env.own(LAST_OPTIONS).unwrap_or_else(|| image.variable(LAST_OPTIONS).to_owned());
        env.outrank(&before, &options, hidden);
        let container = Container::new(image);
        let argv = container.argv(&ContainerOptions {
            limit: self.limit,
            cpu_limit: self.cpu_limit,
            forbids_swap: limit::has_swap(),
            cpus: self.cpus.as_deref(),
            env: &env.0,
            arguments: &values.expand(command),
        });
        Self { argv, options_passed, container: Some(container), ..self }
    }

    pub(super) fn is_cgroup(&self) -> bool {
        self.subject.processes == Processes::Cgroup
    }

    /// The order for the guardian. `cgroups` are Loadline's; a `keeper` has its own.
    pub(super) fn order(&self, cgroups: Vec<PathBuf>, keeper: Option<&Keeper>) -> Order {
        let mut argv = self.argv.clone();
        let mut cpus = self.cpus.clone();
        match keeper {
            Some(Keeper::Container(_)) if self.reads => argv.insert(2, "--interactive".to_owned()),
            Some(Keeper::Step(step)) => {
                let limit = self.limit.unwrap_or_default();
                argv = step.argv(&StepOptions { limit, cpus: cpus.as_deref(), reads: self.reads }, &argv);
                // The CPUs are for the task; srun itself must not be pinned to them.
                cpus = None;
            }
            _ => {}
        }
        Order {
            argv,
            env: self.env.clone(),
            dir: self.dir.clone(),
            cpus,
            cgroups,
            reads: self.reads,
            removal: keeper.map(Keeper::removal),
        }
    }

    /// The command as it would be entered in a shell.
    pub fn shown(&self) -> String {
        shell_words(&self.argv)
    }
}

/// Whether the command or its environment contains `{work}`, so a trial needs a directory.
pub(crate) fn needs_work(subject: &Subject, configuration: &Configuration) -> bool {
    let env = subject.env.iter().chain(&configuration.env).map(|(_, value)| value);
    subject.command.iter().chain(env).any(|word| word.contains("{work}"))
}

#[derive(Default)]
struct Values<'a> {
    options: &'a [String],
    port: u16,
    java: String,
    args: &'a [String],
    code: Option<PathBuf>,
    artifact: Option<PathBuf>,
    work: Option<&'a Path>,
}

impl Values<'_> {
    /// The words for a placeholder; `None` if it is not valid here.
    fn words(&self, name: &str) -> Option<Vec<String>> {
        let of_path = |path: Option<&Path>| path.map(|path| vec![path.display().to_string()]);
        match name {
            "jvm" => Some(self.options.to_vec()),
            "args" => Some(self.args.to_vec()),
            "port" => Some(vec![self.port.to_string()]),
            "code" => of_path(self.code.as_deref()),
            "artifact" => of_path(self.artifact.as_deref()),
            "work" => of_path(self.work),
            _ => None,
        }
    }

    fn expand(&self, command: &[String]) -> Vec<String> {
        let mut argv = Vec::new();
        for word in command {
            match word.as_str() {
                "{jvm}" | "{args}" | "{code}" | "{artifact}" | "{work}" => {
                    argv.extend(self.words(&word[1..word.len() - 1]).unwrap_or_default());
                }
                // Within a word, as in `sh -c "java {jvm} …"`, a shell splits the value again.
                _ => argv.push(self.expand_in(word, shell_word)),
            }
        }
        if !command.iter().any(|word| word.contains("{args}")) {
            argv.extend_from_slice(self.args);
        }
        argv
    }

    fn expand_in(&self, text: &str, quote: impl Fn(&str) -> String) -> String {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        // A single pass, so that option values are not expanded again.
        while let Some(open) = rest.find('{') {
            expanded.push_str(&rest[..open]);
            rest = &rest[open..];
            let name = placeholder(rest);
            let value = match name {
                Some("jdk") => Some(self.java.clone()),
                Some(name) => {
                    self.words(name).map(|words| words.iter().map(|word| quote(word)).collect::<Vec<_>>().join(" "))
                }
                None => None,
            };
            let taken = match (name, &value) {
                (Some(name), Some(_)) => name.len() + 2,
                _ => 1,
            };
            expanded.push_str(value.as_deref().unwrap_or("{"));
            rest = &rest[taken..];
        }
        expanded + rest
    }
}

/// Converts a path relative to Loadline's directory for a command that starts in another one.
fn seen_from(dir: Option<&Path>, path: &Path) -> PathBuf {
    match dir {
        None => path.to_path_buf(),
        Some(dir) if dir == Path::new(".") => path.to_path_buf(),
        Some(_) => std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf()),
    }
}

/// `port` at the start of `{port}/x`.
fn placeholder(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.split_once('}')?.0;
    (!name.is_empty() && name.chars().all(|c| c.is_ascii_alphabetic())).then_some(name)
}

/// Braces are common in commands (JSON, shell variables), so only near misses are rejected.
fn check_words(command: &[String]) -> Result<()> {
    for word in command {
        let names = word.match_indices('{').filter(|(at, _)| !word[..*at].ends_with('$'));
        for name in names.filter_map(|(at, _)| placeholder(&word[at..])) {
            let meant = PLACEHOLDERS.iter().find(|known| strsim::damerau_levenshtein(known, name) == 1);
            if let (Some(meant), false) = (meant, PLACEHOLDERS.contains(&name)) {
                return Err(Error::request(format!("unknown placeholder `{{{name}}}` in the command"))
                    .hint(format!("did you mean `{{{meant}}}`?")));
            }
        }
    }
    Ok(())
}

fn is_java(program: &str) -> bool {
    Path::new(program).file_name().is_some_and(|name| name == "java") || program == "{jdk}"
}

/// How to pass options without a variable, if possible.
fn passed_without_variable(command: &[String], options: &[String]) -> Option<OptionsPassed> {
    match options.is_empty() {
        true => Some(OptionsPassed::NoneNeeded),
        false => command.iter().any(|word| word.contains("{jvm}")).then_some(OptionsPassed::AtPlaceholder),
    }
}

/// Additions to Loadline's environment.
#[derive(Default)]
struct Environment(Vec<(String, String)>);

impl Environment {
    fn of(subject: &Subject, configuration: &Configuration, values: &Values<'_>) -> Self {
        let mut env = Self::default();
        for (name, value) in subject.env.iter().chain(&configuration.env) {
            env.set(name, values.expand_in(value, str::to_owned));
        }
        env
    }

    fn set(&mut self, name: &str, value: String) {
        self.0.retain(|(known, _)| known != name);
        self.0.push((name.to_owned(), value));
    }

    /// Passes options in this variable, after its previous content.
    fn pass(&mut self, name: &str, before: &str, options: &[String]) -> OptionsPassed {
        self.set(name, with_options(before, options));
        OptionsPassed::ByVariable(name.to_owned())
    }

    /// Passes flags so that they override options inside the script or program that the command starts.
    fn outrank(&mut self, before: &str, options: &[String], hidden: Hidden) {
        let flags: Vec<String> = options.iter().filter(|option| option.starts_with("-X")).cloned().collect();
        if hidden == Hidden::Some && !flags.is_empty() {
            self.pass(LAST_OPTIONS, before, &flags);
        }
    }

    fn get(&self, name: &str) -> Option<String> {
        self.own(name).or_else(|| std::env::var(name).ok())
    }

    fn own(&self, name: &str) -> Option<String> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    fn prepend_path(&mut self, folder: &Path) {
        let path = match self.get("PATH") {
            Some(path) if !path.is_empty() => format!("{}:{path}", folder.display()),
            _ => folder.display().to_string(),
        };
        self.set("PATH", path);
    }
}

#[cfg(test)]
mod tests {
    use super::super::keeper::Removal;
    use super::*;
    use crate::scenario::Gc;

    const CPUS: CpuPlan = CpuPlan { subject: None, load: None };

    fn subject(command: &[&str]) -> Subject {
        Subject {
            command: command.iter().map(|&word| word.to_owned()).collect(),
            env: vec![("URL".to_owned(), "http://x:{port}/{y}".to_owned())],
            ..Subject::default()
        }
    }

    fn configuration() -> Configuration {
        Configuration {
            heap: Some(Bytes::mib(6)),
            gc: Some(Gc::Serial),
            jvm: vec!["-Da=b c".to_owned()],
            args: vec!["--x".to_owned(), "y z".to_owned()],
            env: vec![(JDK_OPTIONS.to_owned(), "-Dold=1".to_owned())],
            ..Configuration::default()
        }
    }

    /// The scenario's paths are relative to Loadline's directory; the command starts in the subject's.
    #[test]
    fn code_and_libraries_are_found_from_the_subjects_directory() {
        let place = LaunchPlace { port: 1, work: None, cpus: &CPUS, jdk: None, image: None };
        let launched = |dir: Option<&str>, preload: &str| {
            let subject = Subject { dir: dir.map(PathBuf::from), ..subject(&["java", "-cp", "{code}", "-Dx={code}"]) };
            let code = Some(PathBuf::from("x/app.jar"));
            let configuration = Configuration { code, preload: Some(preload.to_owned()), ..Configuration::default() };
            let launch = Launch::new(&subject, &configuration, &place).unwrap();
            let library = launch.env.iter().find(|(name, _)| name == "LD_PRELOAD").unwrap().1.clone();
            (launch.argv[2].clone(), launch.argv[3].clone(), library)
        };
        let here = std::env::current_dir().unwrap();
        let of = |path: &str| here.join(path).display().to_string();
        let found = launched(Some("x"), "x/lib.so");
        assert_eq!(found, (of("x/app.jar"), format!("-Dx={}", of("x/app.jar")), of("x/lib.so")));
        let same = launched(None, "libjemalloc.so.2");
        assert_eq!(same, ("x/app.jar".to_owned(), "-Dx=x/app.jar".to_owned(), "libjemalloc.so.2".to_owned()));
        assert_eq!(launched(Some("x"), "libjemalloc.so.2").2, "libjemalloc.so.2");
    }

    #[test]
    fn an_artifact_is_found_from_the_subjects_directory_everywhere() {
        let place = LaunchPlace { port: 1, work: None, cpus: &CPUS, jdk: None, image: None };
        let command = ["java", "-jar", "{artifact}", "-Dx={artifact}"];
        let subject = Subject {
            dir: Some(PathBuf::from("x")),
            artifact: Some(PathBuf::from("target/a b.jar")),
            env: vec![("JAR".to_owned(), "{artifact}".to_owned())],
            ..subject(&command)
        };
        let launch = Launch::new(&subject, &Configuration::default(), &place).unwrap();
        let file = std::env::current_dir().unwrap().join("target/a b.jar").display().to_string();
        assert_eq!(launch.argv[1..], ["-jar".to_owned(), file.clone(), format!("-Dx='{file}'")]);
        assert_eq!(launch.env, [("JAR".to_owned(), file)]);
    }

    fn launch(command: &[&str], jdk: Option<&FoundJdk>) -> Result<Launch> {
        Launch::new(
            &subject(command),
            &configuration(),
            &LaunchPlace { port: 1234, work: Some(Path::new("/w")), cpus: &CPUS, jdk, image: None },
        )
    }

    fn check(command: &[&str], expect: &[&str], passed: OptionsPassed) {
        let launch = launch(command, None).unwrap();
        assert_eq!(launch.argv, expect);
        assert_eq!(launch.options_passed, passed);
    }

    fn jdk(release: u32) -> FoundJdk {
        let home = PathBuf::from("/j");
        let java = home.join("bin/java");
        FoundJdk { home, java, version: release.to_string(), release, vendor: String::new(), has_javac: true }
    }

    #[test]
    fn placeholders_expand_to_words_or_inside_words() {
        use OptionsPassed::*;
        let options = ["-Xms6m", "-Xmx6m", "-XX:+UseSerialGC", "-Da=b c"];
        let expect = [&["java"], &options[..], &["-jar", "a.jar", "1234", "--x", "y z"]].concat();
        check(&["java", "{jvm}", "-jar", "a.jar", "{port}"], &expect, AtPlaceholder);
        check(&["java", "-jar", "a.jar", "{port}"], &expect, AfterJava);
        let expect = [&["java"], &options[..], &["--x", "y z", "-p=1234"]].concat();
        check(&["{jdk}", "{args}", "-p={port}"], &expect, AfterJava);
        let inner = "exec java -Xms6m -Xmx6m -XX:+UseSerialGC '-Da=b c' -jar a.jar --x 'y z' ${HOME}";
        check(&["sh", "-c", "exec java {jvm} -jar a.jar {args} ${HOME}"], &["sh", "-c", inner], AtPlaceholder);
    }

    #[test]
    fn the_trials_directory_replaces_its_placeholder() {
        check(&["x", "{work}", "--dir={work}/a", "{args}"], &["x", "/w", "--dir=/w/a", "--x", "y z"], by_variable());
        let needs = |command: &[&str], value: &str| {
            let env = vec![("A".to_owned(), value.to_owned())];
            needs_work(&subject(command), &Configuration { env, ..Configuration::default() })
        };
        assert!(needs(&["x", "-d{work}"], "") && needs(&["x"], "{work}/tmp") && !needs(&["x", "{wrok}"], "work"));
    }

    fn by_variable() -> OptionsPassed {
        OptionsPassed::ByVariable(JDK_OPTIONS.to_owned())
    }

    #[test]
    fn a_script_gets_the_options_in_a_variable() {
        let launch = launch(&["./run.sh"], None).unwrap();
        assert_eq!(launch.options_passed, OptionsPassed::ByVariable(JDK_OPTIONS.to_owned()));
        assert_eq!(launch.argv, ["./run.sh", "--x", "y z"]);
        let value = "-Dold=1 -Xms6m -Xmx6m -XX:+UseSerialGC \"-Da=b c\"".to_owned();
        assert!(launch.env.contains(&(JDK_OPTIONS.to_owned(), value)), "{:?}", launch.env);
        // A flag set by the script would override that variable, but not this one.
        let flags = (LAST_OPTIONS.to_owned(), "-Xms6m -Xmx6m -XX:+UseSerialGC".to_owned());
        assert!(launch.env.contains(&flags), "{:?}", launch.env);
        assert!(launch.env.contains(&("URL".to_owned(), "http://x:1234/{y}".to_owned())));
        assert_eq!(launch.shown(), "./run.sh --x 'y z'");
    }

    #[test]
    fn a_chosen_jdk_is_used_by_java_and_by_scripts() {
        let with = launch(&["java", "-version"], Some(&jdk(17))).unwrap();
        assert_eq!(with.argv[0], "/j/bin/java");
        assert!(with.env.contains(&("JAVA_HOME".to_owned(), "/j".to_owned())));
        assert!(with.env.iter().any(|(name, value)| name == "PATH" && value.starts_with("/j/bin:")));
        let old = launch(&["./run.sh"], Some(&jdk(8))).unwrap();
        assert_eq!(old.options_passed, OptionsPassed::ByVariable(TOOL_OPTIONS.to_owned()));
        // A matching path stays unchanged.
        assert_eq!(launch(&["/usr/bin/java"], Some(&jdk(17))).unwrap().argv[0], "/usr/bin/java");
    }

    #[test]
    fn an_image_gets_the_options_in_java_tool_options() {
        let image = super::super::image::sample(&["java"], &["1"], &[(TOOL_OPTIONS, "-Dold=1")]);
        let place = LaunchPlace { port: 1234, work: None, cpus: &CPUS, jdk: None, image: Some(&image) };
        let launch = Launch::new(&subject(&["{port}"]), &configuration(), &place).unwrap();
        assert_eq!(launch.options_passed, OptionsPassed::ByVariable(TOOL_OPTIONS.to_owned()));
        let shown = launch.shown();
        let options = "'JAVA_TOOL_OPTIONS=-Dold=1 -Xms6m -Xmx6m -XX:+UseSerialGC \"-Da=b c\"' app:1 1234 --x 'y z'";
        assert!(shown.ends_with(options) && shown.contains("--env 'URL=http://x:1234/{y}'"), "{shown}");
        assert!(launch.env.is_empty() && launch.dir.is_none());
        let own = Launch::new(&subject(&["java", "{jvm}", "x"]), &configuration(), &place).unwrap();
        assert_eq!(own.options_passed, OptionsPassed::AtPlaceholder);
        assert!(own.shown().contains(" app:1 java -Xms6m "), "{}", own.shown());
        // Without arguments, the image's command runs.
        let bare = Launch::new(&subject(&[]), &Configuration::default(), &place).unwrap();
        assert!(bare.shown().ends_with(" app:1"), "{}", bare.shown());
        let container = bare.container.clone().unwrap();
        let keeper = Keeper::Container(container.clone());
        let order = Launch { reads: true, ..bare }.order(Vec::new(), Some(&keeper));
        assert_eq!((order.argv[1].as_str(), order.argv[2].as_str()), ("run", "--interactive"));
        let tool = "podman".to_owned();
        assert_eq!(order.removal, Some(Removal::Container { tool, name: container.name }));
    }

    #[test]
    fn a_typo_in_a_command_placeholder_is_rejected() {
        let error = launch(&["java", "{prt}"], None).unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("did you mean `{port}`?"));
        assert!(launch(&["x", "{\"a\":1}", "${arg}", "{name}"], None).is_ok());
        assert!(launch(&[], None).is_err());
    }
}
