//! Finds this machine's JDKs without running them, by the `release` file that every JDK since 8 has in its home.
//!
//! ```text
//! IMPLEMENTOR="Eclipse Adoptium"
//! JAVA_VERSION="25.0.3"
//! ```

use super::program;
use crate::bounded;
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::scenario::{Jdk, Subject};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A JVM that takes longer to print its version is useless.
const VERSION_WITHIN: Duration = Duration::from_secs(5);
/// A `release` file has about 30 lines.
const RELEASE_BYTES_MAX: u64 = 64 << 10;

/// A JDK or a Java runtime.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FoundJdk {
    /// The JDK's directory with links resolved: `JAVA_HOME`.
    pub home: PathBuf,
    /// The `bin/java` program.
    pub java: PathBuf,
    /// As the JDK reports it, such as `25.0.3` or `1.8.0_402`.
    pub version: String,
    /// Feature release: 8, 17, 25.
    pub release: u32,
    /// The JDK's vendor; empty if `release` does not name it.
    pub vendor: String,
    /// Whether it has `javac`, unlike a bare runtime.
    pub has_javac: bool,
}

impl std::fmt::Display for FoundJdk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} in {}", self.vendor, self.version, self.home.display())
    }
}

/// Where to look for JDKs.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// `JAVA_HOME`.
    pub java_home: Option<PathBuf>,
    /// `PATH`.
    pub path: OsString,
    /// Directories whose subdirectories may be JDKs.
    pub parents: Vec<PathBuf>,
}

impl Places {
    /// `JAVA_HOME`, `PATH`, and the directories where packages, SDKMAN, and IDEs install JDKs.
    pub fn usual() -> Self {
        let mut parents: Vec<PathBuf> =
            ["/usr/lib/jvm", "/usr/lib64/jvm", "/usr/java", "/opt", "/opt/java"].iter().map(PathBuf::from).collect();
        if let Some(home) = std::env::home_dir() {
            parents.extend([".sdkman/candidates/java", ".jdks", ".asdf/installs/java"].map(|name| home.join(name)));
        }
        Self {
            java_home: std::env::var_os("JAVA_HOME").filter(|home| !home.is_empty()).map(PathBuf::from),
            path: std::env::var_os("PATH").unwrap_or_default(),
            parents,
        }
    }

    /// Candidate homes, most preferred first.
    fn homes(&self) -> Vec<PathBuf> {
        let on_path = program::folders(&self.path).filter_map(|folder| home_of(&folder.join("java")));
        let mut homes: Vec<PathBuf> = self.java_home.iter().cloned().chain(on_path).collect();
        for parent in &self.parents {
            let Ok(entries) = fs::read_dir(parent) else { continue };
            let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
            found.sort();
            homes.extend(found);
        }
        homes
    }
}

/// The home of a `java`, which may be a link: `/usr/bin/java` → `HOME/bin/java`.
fn home_of(java: &Path) -> Option<PathBuf> {
    let java = java.canonicalize().ok()?;
    let home = java.parent()?.parent()?;
    // JDK 8 has its launcher in `HOME/jre/bin`.
    let whole = home.parent().filter(|outer| home.ends_with("jre") && outer.join("release").is_file());
    Some(whole.unwrap_or(home).to_path_buf())
}

/// All JDKs in these places, without duplicates, most preferred first.
pub fn discover(places: &Places, clock: Clock) -> Vec<FoundJdk> {
    let mut found: Vec<FoundJdk> = Vec::new();
    for home in places.homes() {
        let Ok(home) = home.canonicalize() else { continue };
        if found.iter().all(|jdk| jdk.home != home) {
            found.extend(read_home(&home, clock));
        }
    }
    found
}

/// The JDK in this directory, if any.
pub fn read_home(home: &Path, clock: Clock) -> Option<FoundJdk> {
    let java = home.join("bin/java");
    if !java.is_file() {
        return None;
    }
    let named = bounded::beginning(&home.join("release"), RELEASE_BYTES_MAX).ok();
    let (version, vendor) = named.and_then(|text| parse_release(&text)).or_else(|| ask_version(&java, clock))?;
    let release = feature_release(&version)?;
    let has_javac = home.join("bin/javac").is_file();
    Some(FoundJdk { home: home.to_path_buf(), java, version, release, vendor, has_javac })
}

/// Version and vendor.
fn parse_release(text: &str) -> Option<(String, String)> {
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(line.trim().trim_matches('"').to_owned())
    };
    Some((value("JAVA_VERSION")?, value("IMPLEMENTOR").unwrap_or_default()))
}

/// `17.0.15` → 17, `1.8.0_402` → 8, `26-ea` → 26.
fn feature_release(version: &str) -> Option<u32> {
    let version = version.strip_prefix("1.").unwrap_or(version);
    let end = version.find(|c: char| !c.is_ascii_digit()).unwrap_or(version.len());
    version[..end].parse().ok()
}

/// Runs `java -version`, whose first line on stderr is `openjdk version "17.0.15" 2025-04-15`.
fn ask_version(java: &Path, clock: Clock) -> Option<(String, String)> {
    let printed =
        program::run(java, &["-version"], clock, VERSION_WITHIN).ok().filter(|printed| printed.code.is_some())?;
    Some((printed.errors.split('"').nth(1)?.to_owned(), String::new()))
}

/// The requested JDK. If a release is missing, the error lists the JDKs found.
pub fn choose(wanted: &Jdk, found: &[FoundJdk], clock: Clock) -> Result<FoundJdk> {
    match wanted {
        Jdk::Release(release) => {
            let fitting = found.iter().filter(|jdk| jdk.release == *release);
            // `max_by` returns the last of equal elements; the first is preferred.
            let newest = fitting.rev().max_by(|a, b| version_key(&a.version).cmp(&version_key(&b.version)));
            newest.cloned().ok_or_else(|| missing(*release, found))
        }
        Jdk::Home(home) => {
            let jdk = home.canonicalize().ok().and_then(|home| read_home(&home, clock));
            jdk.ok_or_else(|| {
                let hint = "specify a directory with `bin/java` in it, or a release such as `--jdk 17`";
                Error::request(format!("no JDK in {}", home.display())).hint(hint)
            })
        }
    }
}

/// The `java` of a command that gives its path, relative to Loadline's directory. `None` for scripts, and for `java`
/// and `{jdk}`, which become the chosen JDK.
pub fn java_by_path(subject: &Subject) -> Option<PathBuf> {
    let program = Path::new(subject.command.first().filter(|_| subject.image.is_none())?);
    let is_path = program.ends_with("java") && program.components().nth(1).is_some();
    is_path.then(|| subject.dir.as_deref().unwrap_or(Path::new("")).join(program))
}

/// The JDK for a subject, if one was requested. A `java` path in the command decides, and must match the request.
/// Errors: `Request` for a conflict. If a requested release is missing, the error lists the JDKs found.
pub fn choose_for(
    subject: &Subject,
    wanted: Option<&Jdk>,
    found: &[FoundJdk],
    clock: Clock,
) -> Result<Option<FoundJdk>> {
    let Some(wanted) = wanted else { return Ok(None) };
    let Some(java) = java_by_path(subject) else { return choose(wanted, found, clock).map(Some) };
    let named = home_of(&java).and_then(|home| read_home(&home, clock));
    let agrees = |jdk: &FoundJdk| match wanted {
        Jdk::Release(release) => jdk.release == *release,
        Jdk::Home(home) => home.canonicalize().is_ok_and(|home| home == jdk.home),
    };
    match named {
        Some(jdk) if agrees(&jdk) => Ok(Some(jdk)),
        named => Err(contradiction(&java, named.as_ref(), wanted)),
    }
}

/// The JDK that a subject will use, if known in advance: the requested one, else that of the command's
/// `java`, else that of the `java` on `PATH`.
pub fn run_by(subject: &Subject, wanted: Option<&Jdk>, found: &[FoundJdk], clock: Clock) -> Result<Option<FoundJdk>> {
    let usual = || {
        let java = java_by_path(subject).or_else(on_path)?;
        found.iter().find(|jdk| is_same(&jdk.java, &java)).cloned()
    };
    Ok(choose_for(subject, wanted, found, clock)?.or_else(usual))
}

/// The `java` for a command without a JDK of its own.
fn on_path() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("java")).find(|java| java.is_file())
}

fn is_same(one: &Path, other: &Path) -> bool {
    one.canonicalize().ok().is_some_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

fn contradiction(java: &Path, named: Option<&FoundJdk>, wanted: &Jdk) -> Error {
    let own = named.map_or("of unknown release".to_owned(), |jdk| format!("from JDK {}", jdk.release));
    let asked = match wanted {
        Jdk::Release(release) => format!("JDK {release}"),
        Jdk::Home(home) => format!("the JDK in {}", home.display()),
    };
    Error::request(format!("the command names its own java, `{}`, {own}, but {asked} was requested", java.display()))
        .hint("write `java` or `{jdk}` in the command, or remove `--jdk`")
}

fn version_key(version: &str) -> Vec<u64> {
    version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

fn missing(release: u32, found: &[FoundJdk]) -> Error {
    let error = Error::machine(format!("no JDK {release} on this machine"))
        .hint(format!("install one, or specify its directory: `--jdk /path/to/jdk-{release}`"));
    match found {
        [] => error.at("no JDK was found: not in JAVA_HOME, on PATH, in /usr/lib/jvm, /opt, ~/.sdkman, or ~/.jdks"),
        _ => found.iter().fold(error, |error, jdk| error.at(format!("found: {jdk}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_test_support::write;

    fn jdk_in(parent: &Path, name: &str, release: &str) -> PathBuf {
        let home = parent.join(name);
        write(home.join("bin/java"), "");
        write(home.join("release"), release);
        home
    }

    #[test]
    fn jdk_release_files_are_read() {
        let check = |text, expect: Option<(&str, &str)>| {
            let expect = expect.map(|(version, vendor)| (version.to_owned(), vendor.to_owned()));
            assert_eq!(parse_release(text), expect, "{text}");
        };
        check("IMPLEMENTOR=\"Debian\"\nJAVA_VERSION=\"17.0.15\"\n", Some(("17.0.15", "Debian")));
        check("JAVA_VERSION_DATE=\"2025\"\nJAVA_VERSION=\"1.8.0_402\"\r\n", Some(("1.8.0_402", "")));
        check("NOTHING=1", None);
        for (version, release) in [("17.0.15", Some(17)), ("1.8.0_402", Some(8)), ("26-ea", Some(26)), ("x", None)] {
            assert_eq!(feature_release(version), release);
        }
    }

    #[test]
    fn each_jdk_is_found_once_and_the_newest_of_a_release_chosen() {
        let folder = tempfile::tempdir().unwrap();
        let old = jdk_in(folder.path(), "a", "JAVA_VERSION=\"17.0.9\"");
        let new = jdk_in(folder.path(), "b", "JAVA_VERSION=\"17.0.15\"");
        jdk_in(folder.path(), "c", "JAVA_VERSION=\"21.0.4\"\nIMPLEMENTOR=\"X\"");
        std::os::unix::fs::symlink(&old, folder.path().join("link")).unwrap();
        let path = old.join("bin").into_os_string();
        let places = Places { java_home: Some(old.clone()), path, parents: vec![folder.path().to_path_buf()] };
        let clock = Clock::start();
        let found = discover(&places, clock);
        assert_eq!(found.len(), 3);
        assert_eq!(found[0].home, old.canonicalize().unwrap());
        assert_eq!(choose(&Jdk::Release(17), &found, clock).unwrap().home, new.canonicalize().unwrap());
        assert_eq!(choose(&Jdk::Home(old.clone()), &[], clock).unwrap().version, "17.0.9");
        let error = choose(&Jdk::Release(11), &found, clock).unwrap_err();
        assert_eq!(error.what, "no JDK 11 on this machine");
        assert_eq!(error.context.len(), 3);
        assert!(choose(&Jdk::Home(folder.path().to_path_buf()), &found, clock).is_err());
    }

    #[test]
    fn a_java_without_a_release_file_is_run_to_get_its_version() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let home = jdk_in(folder.path(), "a", "");
        let java = home.join("bin/java");
        fs::write(&java, "#!/bin/sh\necho 'openjdk version \"11.0.13\" 2021' >&2\n").unwrap();
        fs::set_permissions(&java, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(read_home(&home, Clock::start()).unwrap().release, 11);
    }

    #[test]
    fn a_java_given_by_path_must_match_the_requested_jdk() {
        let folder = tempfile::tempdir().unwrap();
        let home = jdk_in(folder.path(), "own", "JAVA_VERSION=\"25.0.3\"");
        let other = jdk_in(folder.path(), "other", "JAVA_VERSION=\"25.0.9\"");
        let link = folder.path().join("java");
        std::os::unix::fs::symlink(home.join("bin/java"), &link).unwrap();
        let found = [read_home(&other, Clock::start()).unwrap()];
        let chosen = |program: &str, wanted: &Jdk| {
            let load = "load: [steady: {closed: {connections: 1, requests: 1}, get: /}]";
            let text = format!("name: x\nsubject: {{command: [\"{program}\"], port: 1}}\n{load}\n");
            let subject = crate::scenario::parse(&text, folder.path(), &[]).unwrap().subject;
            choose_for(&subject, Some(wanted), &found, Clock::start())
        };
        let (release, of_home) = (Jdk::Release(25), Jdk::Home(home.clone()));
        for program in [link.to_str().unwrap(), "./java", "own/bin/java"] {
            for wanted in [&release, &of_home] {
                assert_eq!(chosen(program, wanted).unwrap().unwrap().home, home, "{program} {wanted}");
            }
            let error = chosen(program, &Jdk::Release(17)).unwrap_err().what;
            assert!(error.contains("from JDK 25, but JDK 17 was requested"), "{error}");
            let error = chosen(program, &Jdk::Home(other.clone())).unwrap_err().what;
            assert!(error.contains(&format!("JDK 25, but the JDK in {} was requested", other.display())), "{error}");
        }
        assert_eq!(chosen("java", &release).unwrap().unwrap().home, other);
        assert_eq!(chosen("bin/start.sh", &release).unwrap().unwrap().home, other);
        let error = chosen("gone/bin/java", &release).unwrap_err().what;
        assert!(error.contains("of unknown release, but JDK 25 was requested"), "{error}");
    }

    #[test]
    fn a_file_is_recognized_by_any_path() {
        let place = tempfile::TempDir::new().unwrap();
        let (one, other) = (place.path().join("one"), place.path().join("other"));
        fs::write(&one, "x").unwrap();
        std::os::unix::fs::symlink(&one, &other).unwrap();
        assert!(is_same(&one, &other) && is_same(&one, &one));
        assert!(!is_same(&one, place.path()) && !is_same(&place.path().join("absent"), &place.path().join("absent")));
    }
}
