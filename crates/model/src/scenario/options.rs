//! Scenario options: they create a scenario from a command (`weigh`) or modify one (`run`).

use super::file::File;
use super::load_options::{change_paths, change_phases};
use super::load_settings::{LoadOptions, usual_work};
use super::subject::TlsFile;
use super::written::Named;
use super::{
    ConfigurationSettings, Image, Jdk, MarkPoint, Method, Phase, PhaseKind, Request, Scenario, Server, SubjectSettings,
    TrialOptions, Url, WARMUP, defaults,
};
use crate::error::{Error, Result};
use clap::Args;
use std::path::Path;

/// All options that change the run; each has the same meaning wherever it appears.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct ScenarioOptions {
    /// URL to load and to check for readiness
    #[arg(long, value_name = "URL", help_heading = "Load")]
    pub url: Option<String>,
    /// The options of the load.
    #[command(flatten)]
    pub load: LoadOptions,
    /// The subject to run.
    #[command(flatten)]
    pub subject: SubjectSettings,
    /// The options of a trial besides the load.
    #[command(flatten)]
    pub trial: TrialOptions,
}

impl Scenario {
    /// The scenario of `weigh`: one configuration, the same work as warm-up and as measured phase, then a rest. Errors:
    /// `Request` if the load has no address, or an option does not fit.
    pub fn of_command(command: &[String], options: &ScenarioOptions) -> Result<Self> {
        match &options.url {
            Some(url) => Self::loaded_at(command, url, options),
            None if command.iter().any(|word| word.contains("{port}")) => {
                Self::loaded_at(command, "http://127.0.0.1:{port}/", options)
            }
            None => Err(Error::request("no URL to load")
                .hint("specify `--url http://127.0.0.1:8080/path`, or put `{port}` in the command for a free port")),
        }
    }

    /// Like `of_command`, with a load on `url` unless `--url` was given. Errors: `Request` if `url` is not a URL,
    /// or an option does not fit.
    pub fn loaded_at(command: &[String], url: &str, options: &ScenarioOptions) -> Result<Self> {
        let url = Url::parse(url)?;
        let work = usual_work(Request::new(Method::Get, url.path));
        let load = vec![
            Phase::new(WARMUP, PhaseKind::Work(work.clone())),
            Phase::new("steady", PhaseKind::Work(work)),
            Phase::new("rest", PhaseKind::Idle(defaults::REST)),
        ];
        let subject = SubjectSettings {
            image: options.subject.image.clone(),
            command: command.to_vec(),
            host: Some(url.host),
            port: url.port,
            tls: Some(TlsFile::Switch(url.tls)),
            socket: options.load.unix_socket.clone(),
            ..SubjectSettings::default()
        };
        let name = match &subject.image {
            Some(image) => plain_name(Image::named(image).short_name()),
            None => name_of(command),
        };
        let configuration = (name_of_configuration(options), ConfigurationSettings::default());
        let mut file = File::default();
        (file.name, file.subject, file.configurations) = (name, subject, Some(Named(vec![configuration])));
        let mut scenario = file.with_load(load, None, &[])?;
        scenario.change(options)?;
        Ok(scenario)
    }

    /// Applies options. [`Scenario::validate`] checks whether the result can be run. Errors: `Request` for an option
    /// that does not fit.
    pub fn change(&mut self, options: &ScenarioOptions) -> Result<()> {
        for configuration in &mut self.configurations {
            configuration.apply(options.subject.configuration.clone(), Path::new(""));
        }
        self.subject.change(&options.subject)?;
        change_load(self, options)?;
        self.change_trial(&options.trial);
        Ok(())
    }

    /// Keeps the named configurations, or all if there are no names. Errors: `Request` for an unknown name.
    pub fn select(&mut self, only: &[String]) -> Result<()> {
        let names: Vec<_> = self.configurations.iter().map(|configuration| configuration.name.clone()).collect();
        if let Some(unknown) = only.iter().find(|name| !names.contains(name)) {
            return Err(Error::request(format!("no configuration is named `{unknown}`"))
                .hint(format!("the configurations are {}", names.join(", "))));
        }
        self.configurations.retain(|configuration| only.is_empty() || only.contains(&configuration.name));
        Ok(())
    }
}

/// `app` for `java -jar target/app.jar`, `Main` for `java -cp . com.example.Main`, `start` for `sh bin/start.sh`, else
/// the program.
fn name_of(command: &[String]) -> String {
    let program = stem(command.first().map_or("", String::as_str));
    let name = match program.as_str() {
        "java" => java_name(&command[1..]).unwrap_or(program),
        "sh" | "bash" | "dash" | "ash" | "zsh" | "ksh" => match command.get(1).filter(|word| !word.starts_with('-')) {
            Some(script) => stem(script),
            None => program,
        },
        _ => program,
    };
    plain_name(&name)
}

/// A name without characters that file names should avoid.
pub fn plain_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '_' };
    let name = name.trim_start_matches(['-', '.']);
    if name.is_empty() { "subject".to_owned() } else { name.chars().map(plain).collect() }
}

fn stem(path: &str) -> String {
    Path::new(path).file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The jar or main class among `java` arguments.
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

/// A configuration's name, made from command-line settings: `serial-6m-jdk17`.
fn name_of_configuration(options: &ScenarioOptions) -> String {
    let asked = &options.subject.configuration;
    let jdk = asked.jdk.clone().filter(|jdk| matches!(jdk, Jdk::Release(_)));
    let name = ConfigurationSettings { jdk, nmt: None, ..asked.clone() }.names().join("-");
    if name.is_empty() { "as-given".to_owned() } else { name }
}

fn change_load(scenario: &mut Scenario, options: &ScenarioOptions) -> Result<()> {
    let mut server = Server::of_subject(&scenario.subject);
    if let Some(url) = &options.url {
        let url = Url::parse(url)?;
        // Certificate checks are independent of the address.
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

#[cfg(test)]
mod tests {
    use super::super::Marking;
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct ScenarioCommand {
        #[command(flatten)]
        options: ScenarioOptions,
        #[command(flatten)]
        marking: Marking,
        #[arg(last = true)]
        command: Vec<String>,
    }

    fn weigh(words: &str) -> Result<Scenario> {
        let typed = ScenarioCommand::try_parse_from(words.split(' ')).unwrap();
        let mut scenario = Scenario::of_command(&typed.command, &typed.options)?;
        scenario.mark(&typed.marking)?;
        scenario.validate().map(|()| scenario)
    }

    #[test]
    fn weigh_builds_a_complete_scenario() {
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
        assert!(of("-c 4").unwrap_err().what.contains("no URL to load"));
        assert!(of("--url http://127.0.0.1:80/ --dir /x").unwrap_err().what.contains("`--dir` has no effect"));
        assert!(of("--url http://127.0.0.1:80/ --jdk 17").unwrap_err().what.contains("`jdk` has no effect"));
    }

    #[test]
    fn archives_are_named_after_the_program() {
        let check = |command: &str, name: &str| {
            let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
            assert_eq!(name_of(&words), name, "{command}");
        };
        check("java -Xmx6m -jar target/app-1.0.jar 8080", "app-1.0");
        check("/opt/jdk/bin/java -cp a.jar:b.jar com.example.Main 8080", "Main");
        check("bin/catalina.sh run", "catalina");
        check("/bin/sh bin/start.sh 8080", "start");
        check("sh -c x", "sh");
        check("java", "java");
    }

    #[test]
    fn omitting_warm_up_or_rest_omits_their_marks() {
        let scenario = weigh("loadline --warmup none --rest 0 -- server {port}").unwrap();
        assert_eq!(scenario.load.len(), 1);
        assert_eq!(scenario.marks.len(), 3);
        assert_eq!(scenario.subject.port, None);
    }

    #[test]
    fn a_url_or_port_is_required() {
        assert!(weigh("loadline -- java -jar app.jar").unwrap_err().what.contains("no URL to load"));
        assert!(weigh("loadline --marks warm --warmup none -- x {port}").is_err());
    }
}
