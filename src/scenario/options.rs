//! What may be typed about a scenario: the options make one of a command (`weigh`) or change one (`run`).

use super::load_change::{Server, change_paths, change_phases};
use super::load_options::LoadOptions;
use super::{
    Asking, Change, Collect, Compare, Configuration, Cpus, Gc, Image, Jdk, Kind, LoadPlan, MarkPoint, Method, Nmt,
    Objects, Phase, PhaseKind, Ports, Processes, Ready, Request, Scenario, Subject, Tls, Until, Url, WARMUP, Work,
    defaults, parse_marks,
};
use crate::error::{Error, Result};
use crate::units::{Bytes, Span};
use clap::Args;
use std::path::{Path, PathBuf};

/// Everything that changes what is run; the same words mean the same wherever they appear.
#[derive(Debug, Default, PartialEq, Args)]
pub struct Options {
    /// Where the load goes; readiness is asked there too unless `--ready` says otherwise
    #[arg(long, value_name = "URL", help_heading = "Load")]
    pub url: Option<String>,
    /// What the load is.
    #[command(flatten)]
    pub load: LoadOptions,
    /// What is run.
    #[command(flatten)]
    pub subject: SubjectOptions,
    /// What a trial has beside the load.
    #[command(flatten)]
    pub trial: TrialOptions,
}

/// What is run, and what every configuration of it gets.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Subject")]
pub struct SubjectOptions {
    /// Container image that starts the server, run by podman or docker; what follows `--` are its arguments
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// What `{artifact}` in the command stands for: the file that a build tool made
    #[arg(long, value_name = "FILE")]
    pub artifact: Option<PathBuf>,
    /// Minimum and maximum heap (-Xms and -Xmx)
    #[arg(long, value_name = "SIZE")]
    pub heap: Option<Bytes>,
    /// Collector: serial, g1, parallel, z, shenandoah, epsilon
    #[arg(long, value_name = "GC")]
    pub gc: Option<Gc>,
    /// A further JVM option; may be repeated
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    pub jvm: Vec<String>,
    /// JDK by release (`17`) or folder
    #[arg(long, value_name = "JDK")]
    pub jdk: Option<Jdk>,
    /// Environment variable; may be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    pub env: Vec<(String, String)>,
    /// Memory limit, enforced by a cgroup
    #[arg(long, value_name = "SIZE")]
    pub limit: Option<Bytes>,
    /// CPUs of the subject: a list (`0-2,5`), `all`, or `apart` from the load
    #[arg(long, value_name = "CPUS")]
    pub cpus: Option<Cpus>,
    /// Native Memory Tracking: off or summary
    #[arg(long, value_name = "LEVEL")]
    pub nmt: Option<Nmt>,
    /// Working directory
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Run the build step of a scenario even if nothing it reads has changed
    #[arg(long)]
    pub rebuild: bool,
    /// What shows that it is ready: `http:/PATH`, `tcp`, `log:REGEX`, `phase:NAME`
    #[arg(long, value_name = "SIGN")]
    pub ready: Option<Ready>,
    /// How long that may take [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub ready_within: Option<Span>,
    /// How long it may take to end after TERM [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub end_within: Option<Span>,
}

/// What a trial has beside the load.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Trial")]
pub struct TrialOptions {
    /// How long to rest after the load [default: 5s]
    #[arg(long, value_name = "TIME")]
    pub rest: Option<Span>,
    /// Timeline samples per second [default: 10]
    #[arg(long, value_name = "HZ")]
    pub sample_hz: Option<u32>,
    /// Ask the JVM by its attach socket for what is read from outside where it can be; adds 0.2 to 0.3 MiB to it
    #[arg(long)]
    pub attach: bool,
}

/// When a trial is weighed, and how many there are. A search decides both by itself.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Trial")]
pub struct Marking {
    /// When to weigh: start,warm,loaded,rested,collected,trimmed [default: all but trimmed]
    #[arg(long, value_name = "MARKS")]
    pub marks: Option<String>,
    /// Trials of each configuration, a fresh JVM each [default: 1]
    #[arg(long, value_name = "N")]
    pub trials: Option<u32>,
}

/// What is looked at in the heap, after everything was measured.
#[derive(Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Trial")]
pub struct Inside {
    /// List the live objects by class at the end of each trial, by a full GC that nothing measured sees, and what grew
    /// since the start, for which the server is started once more afterwards, without load
    #[arg(long)]
    pub classes: bool,
    /// Write a heap dump into a new FILE at the end of the first trial: a full GC, then the JVM stands still while it
    /// writes about as much as lives in its heap
    #[arg(long, value_name = "FILE")]
    pub heap_dump: Option<PathBuf>,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err(format!("`{text}` is no assignment; write it as `NAME=VALUE`")),
    }
}

impl Scenario {
    /// The scenario of `weigh`: one configuration, the same work as warm-up and as measured phase, then rest.
    ///
    /// # Errors
    /// `Request` where it is not said where the load goes, or an option does not fit.
    pub fn of_command(command: &[String], options: &Options) -> Result<Self> {
        match &options.url {
            Some(url) => Self::loaded_at(command, url, options),
            None if command.iter().any(|word| word.contains("{port}")) => {
                Self::loaded_at(command, "http://127.0.0.1:{port}/", options)
            }
            None => Err(Error::request("where does the load go?")
                .hint("give `--url http://127.0.0.1:8080/path`, or `{port}` in the command for a free port")),
        }
    }

    /// The same with a load that goes there, where no other place was typed.
    ///
    /// # Errors
    /// `Request` where that is no URL, or an option does not fit.
    pub fn loaded_at(command: &[String], url: &str, options: &Options) -> Result<Self> {
        let image = options.subject.image.as_ref().map(Image::named);
        let url = Url::parse(url)?;
        let subject = Subject {
            build: None,
            kind: Kind::Jvm,
            processes: Processes::One,
            image: image.clone(),
            command: command.to_vec(),
            artifact: None,
            dir: None,
            env: Vec::new(),
            host: url.host,
            port: url.port,
            ports: Ports::default(),
            tls: url.tls.then(Tls::default),
            socket: None,
            // The readiness probe speaks plain HTTP over TCP.
            ready: if url.tls || options.load.unix_socket.is_some() {
                Ready::Tcp
            } else {
                Ready::Http(url.path.clone())
            },
            ready_within: defaults::READY_WITHIN,
            end_within: defaults::END_WITHIN,
        };
        let request = Request::new(Method::Get, url.path);
        let work = Work::closed(request, defaults::CONNECTIONS, Until::Elapsed(defaults::DURATION));
        let load = LoadPlan(vec![
            Phase::new(WARMUP, PhaseKind::Work(work.clone())),
            Phase::new("steady", PhaseKind::Work(work)),
            Phase::new("rest", PhaseKind::Idle(defaults::REST)),
        ]);
        let mut scenario = Self {
            name: image.as_ref().map_or_else(|| name_of(command), |image| plain_name(image.short_name())),
            subject,
            configurations: vec![Configuration { name: "as-given".to_owned(), ..Configuration::default() }],
            load,
            marks: Vec::new(),
            collect: Collect::default(),
            objects: Objects::Unread,
            heap_dump: None,
            trials: 1,
            compare: Compare::default(),
            budgets: Vec::new(),
            find: Default::default(),
            tune: Default::default(),
            figures: Vec::new(),
            seed: defaults::SEED,
            sample_hz: defaults::SAMPLE_HZ,
            asking: Asking::default(),
            load_cpus: Cpus::Apart,
        };
        scenario.marks = scenario.marks_usual();
        scenario.change(options)?;
        name_configuration(&mut scenario.configurations[0]);
        Ok(scenario)
    }

    /// Changes it by what was typed. Whether the result can be run, [`Scenario::validate`] says.
    ///
    /// # Errors
    /// `Request` for an option that does not fit.
    pub fn change(&mut self, options: &Options) -> Result<()> {
        change_subject(self, &options.subject)?;
        change_load(self, options)?;
        change_trial(self, &options.trial);
        Ok(())
    }

    /// Changes when trials are weighed, and how many there are; after all else, which decides what marks there can be.
    ///
    /// # Errors
    /// `Request` for a word that is no mark.
    pub fn mark(&mut self, typed: &Marking) -> Result<()> {
        if let Some(words) = &typed.marks {
            self.marks = parse_marks(words.split(','))?;
        }
        self.trials = typed.trials.unwrap_or(self.trials);
        Ok(())
    }

    /// Looks into the heap at the end of trials, also where the scenario asks for it. The path of a dump is absolute.
    ///
    /// # Errors
    /// `Request` where the subject is no JVM, or its files are not kept.
    pub fn look_inside(&mut self, typed: Inside) -> Result<()> {
        let asked = if typed.classes { "--classes" } else { "--heap-dump" };
        let any = typed.classes || typed.heap_dump.is_some();
        if any && self.subject.kind != Kind::Jvm {
            return Err(Error::request(format!("`{asked}` asks a JVM, and the subject is none")));
        }
        if typed.heap_dump.is_some() && self.subject.image.is_some() {
            return Err(Error::request("`--heap-dump` would be written inside the container, which is removed")
                .hint("run the server without `--image`, or dump one that stays with `loadline account PID`"));
        }
        if typed.classes {
            self.objects = Objects::Listed;
        }
        self.heap_dump = typed.heap_dump;
        Ok(())
    }

    /// Keeps the configurations named; all where none is.
    ///
    /// # Errors
    /// `Request` for a name that none has.
    pub fn select(&mut self, only: &[String]) -> Result<()> {
        let names: Vec<_> = self.configurations.iter().map(|configuration| configuration.name.clone()).collect();
        if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
            return Err(Error::request(format!("no configuration is named `{unknown}`"))
                .hint(format!("the scenario has {}", names.join(", "))));
        }
        self.configurations.retain(|configuration| only.is_empty() || only.contains(&configuration.name));
        Ok(())
    }
}

/// `app` for `java -jar target/app.jar`, `Main` for `java -cp . com.example.Main`, else the program.
fn name_of(command: &[String]) -> String {
    let program = stem(command.first().map_or("", String::as_str));
    let name = match program.as_str() {
        "java" => java_name(&command[1..]).unwrap_or(program),
        _ => program,
    };
    plain_name(&name)
}

/// A name without what a folder or a file had better not have in its own.
pub fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name = name.trim_start_matches(['-', '.']);
    if name.is_empty() { "subject".to_owned() } else { name.chars().map(plain).collect() }
}

fn stem(path: &str) -> String {
    Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The jar or the main class among the arguments of `java`.
fn java_name(arguments: &[String]) -> Option<String> {
    const WITH_VALUE: [&str; 6] = ["-cp", "-classpath", "--class-path", "-p", "--module-path", "--add-modules"];
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-jar" => return words.next().map(|jar| stem(jar)),
            option if WITH_VALUE.contains(&option) => drop(words.next()),
            option if option.starts_with(['-', '{', '@']) => {}
            class => return class.rsplit(['.', '/']).next().map(str::to_owned),
        }
    }
    None
}

/// Names a configuration by what was asked of it: `serial-6m-jdk17`.
fn name_configuration(configuration: &mut Configuration) {
    let parts = [
        configuration.gc.map(|gc| gc.word().to_owned()),
        configuration.heap.map(Bytes::java),
        configuration.jdk.as_ref().and_then(|jdk| match jdk {
            Jdk::Release(release) => Some(format!("jdk{release}")),
            Jdk::Home(_) => None,
        }),
        configuration.limit.map(|limit| format!("limit-{}", limit.java())),
    ];
    let name = parts.into_iter().flatten().collect::<Vec<_>>().join("-");
    if !name.is_empty() {
        configuration.name = name;
    }
}

fn change_subject(scenario: &mut Scenario, typed: &SubjectOptions) -> Result<()> {
    for configuration in &mut scenario.configurations {
        changes(typed).into_iter().for_each(|change| change.apply(configuration));
    }
    let subject = &mut scenario.subject;
    change_image(subject, typed)?;
    subject.take_artifact(typed.artifact.as_deref())?;
    subject.dir = typed.dir.clone().or(subject.dir.take());
    subject.ready = typed.ready.clone().unwrap_or(subject.ready.clone());
    subject.ready_within = typed.ready_within.unwrap_or(subject.ready_within);
    subject.end_within = typed.end_within.unwrap_or(subject.end_within);
    Ok(())
}

/// What was typed about every configuration.
fn changes(typed: &SubjectOptions) -> Vec<Change> {
    let only = [
        typed.heap.map(Change::Heap),
        typed.gc.map(Change::Gc),
        typed.jdk.clone().map(Change::Jdk),
        typed.limit.map(Change::Limit),
        typed.cpus.clone().map(Change::Cpus),
        typed.nmt.map(Change::Nmt),
    ];
    let more = [Change::Jvm(typed.jvm.clone()), Change::Env(typed.env.clone())];
    only.into_iter().flatten().chain(more).collect()
}

/// Another image, where the subject is one: its arguments are not those of another program.
fn change_image(subject: &mut Subject, typed: &SubjectOptions) -> Result<()> {
    match (&typed.image, &mut subject.image) {
        (None, None) => Ok(()),
        (Some(_), None) => Err(Error::request("`--image` has no effect: the scenario starts its subject by a command")
            .hint("write `image: NAME` below `subject` in the scenario, with the arguments it takes as `command`")),
        (_, Some(_)) if typed.dir.is_some() => Err(Error::request("`--dir` has no effect: the subject is an image")
            .hint("leave it out; an image has its own working directory")),
        (Some(name), Some(image)) => {
            *image = Image::named(name);
            Ok(())
        }
        (None, Some(_)) => Ok(()),
    }
}

fn change_load(scenario: &mut Scenario, options: &Options) -> Result<()> {
    let mut server = Server::of_subject(&scenario.subject);
    if let Some(url) = &options.url {
        let url = Url::parse(url)?;
        // How a certificate is checked does not depend on the place.
        let tls = url.tls.then(|| server.tls.take().unwrap_or_default());
        (server.host, server.port, server.tls) = (url.host, url.port, tls);
        change_paths(&mut scenario.load, &url.path)?;
    }
    server.change(&options.load)?;
    server.into_subject(&mut scenario.subject);
    change_phases(&mut scenario.load, &options.load)?;
    if options.load.warmup.is_some() && !scenario.load.iter().any(Phase::is_warmup) {
        scenario.marks.retain(|mark| *mark != MarkPoint::Warm);
    }
    scenario.seed = options.load.seed.unwrap_or(scenario.seed);
    scenario.load_cpus = options.load.load_cpus.clone().unwrap_or(scenario.load_cpus.clone());
    Ok(())
}

fn change_trial(scenario: &mut Scenario, typed: &TrialOptions) {
    if let Some(rest) = typed.rest {
        let last = scenario.load.last_work().map_or(0, |last| last + 1);
        scenario.load.truncate(last);
        if rest.0.is_zero() {
            scenario.marks.retain(|mark| *mark != MarkPoint::Rested);
        } else {
            scenario.load.push(Phase::new("rest", PhaseKind::Idle(rest)));
        }
    }
    scenario.sample_hz = typed.sample_hz.unwrap_or(scenario.sample_hz);
    if typed.attach {
        scenario.asking = Asking::Always;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        options: Options,
        #[command(flatten)]
        marking: Marking,
        #[arg(last = true)]
        command: Vec<String>,
    }

    fn weigh(words: &str) -> Result<Scenario> {
        let typed = Typed::try_parse_from(words.split(' ')).unwrap();
        let mut scenario = Scenario::of_command(&typed.command, &typed.options)?;
        scenario.mark(&typed.marking)?;
        scenario.validate().map(|()| scenario)
    }

    #[test]
    fn weigh_makes_a_whole_scenario() {
        let scenario =
            weigh("loadline --url http://127.0.0.1:80/x -n 50k --heap 6m --gc serial -- java -jar a/app.jar").unwrap();
        assert_eq!((scenario.name.as_str(), scenario.configurations[0].name.as_str()), ("app", "serial-6m"));
        let phases: Vec<_> = scenario.load.iter().map(|phase| phase.name.as_str()).collect();
        assert_eq!(phases, ["warmup", "steady", "rest"]);
        assert_eq!(scenario.load[0].kind, scenario.load[1].kind);
        assert_eq!(scenario.marks.len(), 5);
        assert_eq!(scenario.configurations[0].jvm_options(), ["-Xms6m", "-Xmx6m", "-XX:+UseSerialGC"]);
    }

    #[test]
    fn an_image_is_named_by_its_last_part_and_needs_no_command() {
        let of = |words: &str| weigh(&format!("loadline --image reg:5000/team/app:1 {words}"));
        let scenario = of("--url http://127.0.0.1:80/x").unwrap();
        assert_eq!((scenario.name.as_str(), scenario.subject.port), ("app", Some(80)));
        assert_eq!(scenario.subject.image, Some(Image::named("reg:5000/team/app:1")));
        assert_eq!(of("-- {port} live=8").unwrap().subject.command, ["{port}", "live=8"]);
        assert!(of("-c 4").unwrap_err().what.contains("where does the load go"));
        assert!(of("--url http://127.0.0.1:80/ --dir /x").unwrap_err().what.contains("`--dir` has no effect"));
        assert!(of("--url http://127.0.0.1:80/ --jdk 17").unwrap_err().what.contains("`jdk` has no effect"));
    }

    #[test]
    fn archives_are_named_by_what_runs() {
        let check = |command: &str, name: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(name_of(&words), name, "{command}");
        };
        check("java -Xmx6m -jar target/app-1.0.jar 8080", "app-1.0");
        check("/opt/jdk/bin/java -cp a.jar:b.jar com.example.Main 8080", "Main");
        check("bin/catalina.sh run", "catalina");
        check("java", "java");
    }

    #[test]
    fn no_warm_up_and_no_rest_take_their_marks_along() {
        let scenario = weigh("loadline --warmup none --rest 0 -- server {port}").unwrap();
        assert_eq!(scenario.load.len(), 1);
        assert_eq!(scenario.marks.len(), 3);
        assert_eq!(scenario.subject.port, None);
    }

    #[test]
    fn without_url_or_port_it_asks() {
        assert!(weigh("loadline -- java -jar app.jar").unwrap_err().what.contains("where does the load go"));
        assert!(weigh("loadline --marks warm --warmup none -- x {port}").is_err());
    }
}
