//! A Maven build: its repository, the project, and the output.

use loadline_test_support::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock};

/// The version of all artifacts.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Builds are serial, because two Mavens must not share a local repository, and measurements must run alone.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Directories shared by the builds.
pub(crate) struct Maven {
    /// The directory of files fetched by `tests/maven/fetch` or created by tests.
    target: PathBuf,
    /// Maven's settings: the team's repository behind its mirror.
    settings: PathBuf,
}

/// A project in its own directory.
pub(crate) struct Project<'a> {
    maven: &'a Maven,
    pub(crate) folder: PathBuf,
    variables: Vec<(String, String)>,
    program: PathBuf,
}

/// A finished build.
pub(crate) struct Built {
    pub(crate) passed: bool,
    /// Both streams, without colors.
    pub(crate) log: String,
}

/// Prepares real builds: deploys Loadline's artifacts to a repository. Returns `None`, after reporting a skip, if Maven
/// or its dependencies are missing.
pub(crate) fn maven() -> Option<&'static Maven> {
    static MAVEN: OnceLock<Result<Maven, String>> = OnceLock::new();
    match MAVEN.get_or_init(Maven::prepare) {
        Ok(maven) => Some(maven),
        Err(why) => {
            skip("LOADLINE_MAVEN", why);
            None
        }
    }
}

impl Maven {
    fn prepare() -> Result<Self, String> {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("maven-tests");
        if !Command::new("mvn").arg("--version").output().is_ok_and(|ran| ran.status.success()) {
            return Err("there is no Maven (mvn)".to_owned());
        }
        if !["fetched-all", "fetched-change"].iter().any(|of| target.join(of).exists()) {
            return Err("the Maven plugins that tests/maven/fetch downloads are missing".to_owned());
        }
        let maven = Self { settings: target.join("settings.xml"), target };
        maven.deploy();
        Ok(maven)
    }

    /// Deploys all of `maven/` to a directory repository, with the tested program, like a release.
    fn deploy(&self) {
        let (repository, old) = (self.target.join("repository"), self.target.join("local/dev/loadline"));
        for folder in [&repository, &old] {
            // It may not exist.
            let _ = fs::remove_dir_all(folder);
        }
        // The mirror is a directory, and the repository that it replaces does not exist.
        let settings = format!(
            "<settings>\n  <mirrors><mirror><id>mirror</id><mirrorOf>team</mirrorOf><url>{}</url></mirror></mirrors>\n  \
             <profiles><profile><id>team</id>\n    <repositories>{}</repositories>\n    \
             <pluginRepositories>{}</pluginRepositories>\n  </profile></profiles>\n  \
             <activeProfiles><activeProfile>team</activeProfile></activeProfiles>\n</settings>\n",
            url(&repository),
            "<repository><id>team</id><url>https://repository.invalid/</url></repository>",
            "<pluginRepository><id>team</id><url>https://repository.invalid/</url></pluginRepository>",
        );
        fs::write(&self.settings, settings).unwrap();
        let mut command = Command::new(root().join("maven/build"));
        command.args(["-B", "-ntp", "-q", "deploy", "-Dmaven.install.skip=true"]);
        command.arg(format!("-Dmaven.repo.local={}", self.target.join("local").display()));
        command.arg(format!("-Dlinux-x86_64={}", env!("CARGO_BIN_EXE_loadline")));
        command.arg(format!("-DaltDeploymentRepository=folder::{}", url(&repository)));
        let built = ended(&mut command);
        assert!(built.passed, "maven/build failed to deploy:\n{}", built.log);
    }

    /// The directory repository.
    pub(crate) fn repository(&self) -> PathBuf {
        self.target.join("repository")
    }

    /// The local repository's directory for Loadline's artifacts.
    pub(crate) fn local(&self) -> PathBuf {
        self.target.join("local/dev/loadline")
    }

    /// Other fetched releases of Maven.
    pub(crate) fn releases(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(&self.target).unwrap().flatten().map(|entry| entry.path().join("bin/mvn"));
        let mut found: Vec<PathBuf> = all.filter(|program| program.exists()).collect();
        found.sort();
        found
    }

    /// One of `projects/`, copied to a new directory with this name, with the version inserted.
    pub(crate) fn project(&self, from: &str, name: &str) -> Project<'_> {
        let project = self.empty(name);
        copy(&root().join("tests/maven/projects").join(from), &project.folder);
        let own = name.replace('&', "&amp;").replace('<', "&lt;");
        project.change("pom.xml", "VERSION", VERSION).change("pom.xml", "NAME", &own);
        project
    }

    /// A new directory with this name.
    pub(crate) fn empty(&self, name: &str) -> Project<'_> {
        let folder = self.target.join("projects").join(name);
        // It may not exist.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Project { maven: self, folder, variables: Vec::new(), program: "mvn".into() }
    }
}

impl Project<'_> {
    /// Writes one of its files.
    pub(crate) fn file(&self, name: &str, text: &str) -> &Self {
        loadline_test_support::write(self.folder.join(name), text);
        self
    }

    /// Replaces all occurrences of `from` in one of its files.
    pub(crate) fn change(&self, name: &str, from: &str, to: &str) -> &Self {
        let text = self.read(name);
        self.file(name, &text.replace(from, to))
    }

    /// The text of one of its files.
    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.folder.join(name);
        fs::read_to_string(&path).unwrap_or_else(|cause| panic!("{}: {cause}", path.display()))
    }

    /// Adds an environment variable.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Uses another Maven.
    pub(crate) fn by(mut self, program: &Path) -> Self {
        self.program = program.to_owned();
        self
    }

    /// Builds the project.
    pub(crate) fn build(&self, words: &[&str]) -> Built {
        // A test that failed during a build must not fail the others.
        let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut command = Command::new(&self.program);
        command.args(["-B", "-ntp", "-Dstyle.color=never", "-s"]).arg(&self.maven.settings);
        command.arg(format!("-Dmaven.repo.local={}", self.maven.target.join("local").display()));
        command.args(words).current_dir(&self.folder);
        // Hides the settings of the surrounding machine.
        command.env_remove("LOADLINE").env_remove("MAVEN_ARGS").env("MAVEN_OPTS", "-XX:TieredStopAtLevel=1");
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        ended(&mut command)
    }
}

impl Built {
    /// Checks that it passed.
    #[track_caller]
    pub(crate) fn passes(&self) -> &Self {
        assert!(self.passed, "the build failed:\n{}", self.log);
        self
    }

    /// Checks that it failed.
    #[track_caller]
    pub(crate) fn fails(&self) -> &Self {
        assert!(!self.passed, "the build should have failed:\n{}", self.log);
        self
    }

    /// Checks that the log contains this.
    #[track_caller]
    pub(crate) fn says(&self, what: &str) -> &Self {
        assert!(self.log.contains(what), "the log must contain: {what}\n{}", self.log);
        self
    }

    /// Checks that the log does not contain this.
    #[track_caller]
    pub(crate) fn says_nothing_of(&self, what: &str) -> &Self {
        assert!(!self.log.contains(what), "the log must not contain: {what}\n{}", self.log);
        self
    }

    /// Checks that one text precedes the other in the log.
    #[track_caller]
    pub(crate) fn says_first(&self, one: &str, other: &str) -> &Self {
        let (first, second) = (self.log.find(one), self.log.find(other));
        assert!(first.is_some() && second.is_some() && first < second, "{one} is not before {other}:\n{}", self.log);
        self
    }
}

/// The repository's directory.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn url(folder: &Path) -> String {
    format!("file://{}", folder.display())
}

pub(crate) fn ended(command: &mut Command) -> Built {
    let done = command.stdin(std::process::Stdio::null()).output().unwrap();
    let log = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    Built { passed: done.status.success(), log }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (path, copied) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy(&path, &copied),
            false => drop(fs::copy(&path, &copied).unwrap()),
        }
    }
}
