//! An executable jar: reads its manifest and entries, and derives the command that starts it.

use super::signs::{Framework, Manifest, health_of};
use crate::bounded;
use crate::error::{Error, Result, plain};
use crate::scenario::plain_name;
use flate2::read::DeflateDecoder;
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ReaderAt, ZipArchive};
use std::io::Read;
use std::path::{Path, PathBuf};

const MANIFEST: &str = "META-INF/MANIFEST.MF";
/// Ten times as many entries, and bytes of names, as the largest applications have.
const ENTRIES_MAX: usize = 1_000_000;
const NAMES_BYTES_MAX: usize = 64 << 20;
/// The maximum number of jars read per directory.
const JARS_MAX: usize = 500;
/// Enough for a class path of ten thousand files.
const MANIFEST_BYTES_MAX: u64 = 4 << 20;
/// Suffixes of the names of jars that are not programs.
const NO_PROGRAM_ENDS: [&str; 5] = ["-plain", "-sources", "-javadoc", "-tests", "-test-fixtures"];
/// Directories between a jar and its project.
const BUILDS: [&str; 3] = ["quarkus-app", "target", "build"];
const ORIGINAL: &str = "original-";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Jar {
    pub path: PathBuf,
    /// Its framework, if known.
    pub framework: Option<Framework>,
    /// The release of its framework, from its manifest.
    pub release: Option<String>,
}

pub(crate) fn is_named_jar(path: &Path) -> bool {
    path.extension().is_some_and(|end| end.eq_ignore_ascii_case("jar") || end.eq_ignore_ascii_case("war"))
}

/// The error for a program given instead of a scenario or a jar; `None` if the file is not a program, or cannot be
/// read.
pub(crate) fn program_error(path: &Path, instead_of: &str) -> Option<Error> {
    let mut begin = [0; 4];
    bounded::open(path).ok()?.read_exact(&mut begin).ok()?;
    let is_program = begin.starts_with(b"#!") || begin == *b"\x7fELF";
    let shown = path.display().to_string();
    if begin == *b"\xca\xfe\xba\xbe" {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        return Some(Error::request(format!("{shown} is a class file, not a {instead_of}")).hint(format!(
            "specify the command that runs it: `--url http://127.0.0.1:8080/ -- java -cp CLASSPATH {name}`"
        )));
    }
    let command = if shown.contains('/') { shown.clone() } else { format!("./{shown}") };
    is_program.then(|| {
        Error::request(format!("{shown} is a program, not a {instead_of}")).hint(format!(
            "specify a command after `--`: `--url 'http://127.0.0.1:{{port}}/' -- {command}`; if it takes a port, add \
             '{{port}}'"
        ))
    })
}

impl Jar {
    /// Reads its entries and its manifest. Errors: `Request` if the file is missing, is not a jar, or has no main
    /// class; the hint names an alternative.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        if path.is_dir() {
            return Err(Error::request(format!("{shown} is a directory, not a jar")).hint(hint_of_folder(path)));
        }
        if path.to_string_lossy().contains('{') {
            return Err(Error::request(format!(
                "the path {shown} contains `{{`, which starts a placeholder in a command"
            ))
            .hint("rename the jar"));
        }
        let file = bounded::open(path).map_err(|cause| missing(path, &cause))?;
        let contents = Contents::of_file(file).map_err(|why| {
            if let Some(error) = program_error(path, "jar") {
                return error;
            }
            Error::request(format!("{shown} is not a jar: {why}")).hint(if is_named_jar(path) {
                "build it again; it may be incomplete".to_owned()
            } else {
                "specify a command after `--`, such as `-- java -jar app.jar`; to run a scenario, use `loadline run`"
                    .to_owned()
            })
        })?;
        if contents.manifest.get("Main-Class").is_none() {
            return Err(Error::request(format!("{shown} cannot be started: its manifest has no `Main-Class`"))
                .hint(hint_without_main(path)));
        }
        let entries = contents.entries.iter().map(String::as_str);
        let framework = Framework::of_jar(&contents.manifest, entries);
        let release = contents.manifest.get("Spring-Boot-Version").map(str::to_owned);
        Ok(Self { path: path.to_owned(), framework, release })
    }

    /// The command that starts it with these arguments, with a port if there is a known way to pass it.
    pub(crate) fn command(&self, arguments: &[String]) -> Vec<String> {
        command(&self.path.display().to_string(), self.framework, arguments)
    }

    /// The name of its scenario: the jar's name, or the project's if its framework gives every jar the same name.
    pub(crate) fn name(&self) -> String {
        let whole = std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone());
        let stem = whole.file_stem().unwrap_or_default();
        let folders = whole.ancestors().skip(1).filter_map(Path::file_name);
        let project = folders.filter(|_| stem == "quarkus-run").find(|name| !BUILDS.iter().any(|of| name == of));
        plain_name(&project.unwrap_or(stem).to_string_lossy())
    }

    /// `Spring Boot 3.4.1`, or another description.
    pub(crate) fn kind(&self) -> String {
        match (self.framework, &self.release) {
            (Some(framework), Some(release)) => format!("{} {release}", framework.name()),
            (Some(framework), None) => framework.name().to_owned(),
            (None, _) => "no known framework".to_owned(),
        }
    }

    pub(crate) fn health(&self) -> Vec<String> {
        health_of(self.framework)
    }
}

/// The command that starts a jar with these arguments. If an argument contains the port, no property is needed.
pub(super) fn command(jar: &str, framework: Option<Framework>, arguments: &[String]) -> Vec<String> {
    let is_told = arguments.iter().any(|word| word.contains("{port}"));
    // Without a file, Dropwizard uses defaults that cannot be overridden.
    let serves = framework == Some(Framework::Dropwizard) && arguments.is_empty();
    let told = framework.filter(|_| !is_told && !serves);
    let [options, told] = told.map_or([&[][..], &[]], Framework::port_words);
    let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let mut words = vec!["java".to_owned()];
    words.extend(owned(options));
    words.extend(["-jar".to_owned(), jar.to_owned()]);
    words.extend(owned(if serves { &["server"] } else { &[] }));
    words.extend(owned(told));
    words.extend_from_slice(arguments);
    words
}

fn missing(path: &Path, cause: &std::io::Error) -> Error {
    let what = format!("cannot read the jar {}: {}", path.display(), plain(cause));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let others = programs_in(folder);
    Error::request(what).hint(match others.as_slice() {
        [] => "build it first, with `mvn package` or `gradle build`, or specify a command after `--`".to_owned(),
        [only] => format!("did you mean {}?", only.display()),
        some => format!("these jars exist: {}", names(some)),
    })
}

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

fn hint_of_folder(folder: &Path) -> String {
    let places = ["", "target", "target/quarkus-app", "build/libs", "build/quarkus-app", "quarkus-app"];
    let found: Vec<PathBuf> = places.iter().flat_map(|place| programs_in(&folder.join(place))).collect();
    match found.as_slice() {
        [] => "specify the jar in it".to_owned(),
        some => format!("specify the jar in it: {}", names(some)),
    }
}

/// The hint for a jar without a main class, from its name and the other files in its directory.
fn hint_without_main(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().unwrap_or(Path::new(""));
    let cut = NO_PROGRAM_ENDS.iter().find_map(|end| stem.strip_suffix(end));
    let real = cut.or_else(|| stem.strip_prefix(ORIGINAL)).map(|name| folder.join(format!("{name}.jar")));
    let quarkus = folder.join("quarkus-app/quarkus-run.jar");
    match real.filter(|real| real.is_file()).or(Some(quarkus).filter(|jar| jar.is_file())) {
        Some(beside) => format!("the runnable jar is {}", beside.display()),
        None => "build a runnable jar (`java -jar`), or specify the command after `--`: \
                 `-- java -cp app.jar:lib/* com.example.Main`"
            .to_owned(),
    }
}

/// Whether the name is that of an auxiliary jar.
fn is_aside(path: &Path) -> bool {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    stem.starts_with(ORIGINAL) || NO_PROGRAM_ENDS.iter().any(|end| stem.ends_with(end))
}

/// The executable jars among the first `JARS_MAX` of a directory, by name.
pub(super) fn programs_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    found.retain(|path| is_named_jar(path) && !is_aside(path));
    found.sort();
    found.truncate(JARS_MAX);
    found.retain(|path| {
        let contents = bounded::open(path).ok().and_then(|file| Contents::of_file(file).ok());
        contents.is_some_and(|contents| contents.manifest.get("Main-Class").is_some())
    });
    found
}

struct Contents {
    manifest: Manifest,
    entries: Vec<String>,
}

impl Contents {
    /// Reads only the central directory and the manifest.
    fn of_file(file: std::fs::File) -> std::result::Result<Self, String> {
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let archive = ZipArchive::from_file(file, &mut buffer).map_err(|cause| cause.to_string())?;
        Self::of(&archive, &mut buffer)
    }

    fn of<R: ReaderAt>(archive: &ZipArchive<R>, buffer: &mut [u8]) -> std::result::Result<Self, String> {
        let refuse = |cause: rawzip::Error| cause.to_string();
        let (mut names, mut manifest) = (Vec::<String>::new(), Manifest::default());
        let mut entries = archive.entries(buffer);
        let mut names_bytes = 0;
        while let Some(entry) = entries.next_entry().map_err(refuse)? {
            let path = entry.file_path();
            let name = String::from_utf8_lossy(path.as_ref()).into_owned();
            if name.eq_ignore_ascii_case(MANIFEST) {
                let inner = archive.get_entry(entry.wayfinder()).map_err(refuse)?;
                let mut text = Vec::new();
                let read = match entry.compression_method() {
                    CompressionMethod::STORE => inner.reader().take(MANIFEST_BYTES_MAX).read_to_end(&mut text),
                    CompressionMethod::DEFLATE => {
                        DeflateDecoder::new(inner.reader()).take(MANIFEST_BYTES_MAX).read_to_end(&mut text)
                    }
                    _ => return Err("its manifest is compressed in a way that Java does not support".to_owned()),
                };
                read.map_err(|cause| format!("its manifest cannot be read: {cause}"))?;
                manifest = Manifest::parse(&String::from_utf8_lossy(&text));
            }
            names_bytes += name.len();
            names.push(name);
            if names.len() > ENTRIES_MAX || names_bytes > NAMES_BYTES_MAX {
                return Err("its central directory is too large".to_owned());
            }
        }
        Ok(Self { manifest, entries: names })
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    pub(in crate::detect) fn jar(manifest: &str, entries: &[&str]) -> Vec<u8> {
        let others = entries.iter().map(|name| (*name, &b"x"[..]));
        let all: Vec<(&str, &[u8])> = std::iter::once((MANIFEST, manifest.as_bytes())).chain(others).collect();
        loadline_test_support::jar(&all)
    }

    fn contents(bytes: &[u8]) -> std::result::Result<Contents, String> {
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let cursor = std::io::Cursor::new(bytes);
        let archive = ZipArchive::from_seekable(cursor, &mut buffer).map_err(|cause| cause.to_string())?;
        Contents::of(&archive, &mut buffer)
    }

    /// A jar after a 1 TB hole, with a pipe and a device in the same directory. The jar is read from its end; the pipe
    /// and the device are not opened.
    #[test]
    fn huge_jars_pipes_and_devices_are_handled() {
        use std::io::Seek;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut file = std::fs::File::create(at("huge.jar")).unwrap();
        file.seek(std::io::SeekFrom::Start(1 << 40)).unwrap();
        file.write_all(&jar(SPRING, &["BOOT-INF/classes/A.class"])).unwrap();
        drop(file);
        std::fs::File::create(at("hole.jar")).unwrap().set_len(1 << 40).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe.jar"), rustix::fs::FileType::Fifo, mode, 0).unwrap();
        std::os::unix::fs::symlink("/dev/zero", at("zero.jar")).unwrap();
        assert_eq!(Jar::read(&at("huge.jar")).unwrap().kind(), "Spring Boot 3.4.1");
        assert_eq!(programs_in(folder.path()), [at("huge.jar")]);
        assert!(refused(&at("pipe.jar")).what.contains("it is not a regular file"));
        assert!(refused(&at("hole.jar")).what.contains("is not a jar"));
    }

    const SPRING: &str = "Main-Class: x.JarLauncher\nSpring-Boot-Version: 3.4.1\n";

    fn refused(path: &Path) -> Error {
        Jar::read(path).unwrap_err()
    }

    #[test]
    fn a_jars_framework_is_detected_and_gets_a_port() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("app.jar");
        std::fs::write(&path, jar(SPRING, &["BOOT-INF/classes/A.class"])).unwrap();
        let read = Jar::read(&path).unwrap();
        assert_eq!(read.kind(), "Spring Boot 3.4.1");
        let (shown, args) = (path.display().to_string(), ["--a".to_owned()]);
        assert_eq!(read.command(&args), ["java", "-jar", &shown, "--server.port={port}", "--a"]);
        assert_eq!(read.command(&["{port}".to_owned()]), ["java", "-jar", &shown, "{port}"]);
        let of = |framework, arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_owned()).collect();
            command("a.jar", framework, &arguments).join(" ")
        };
        assert_eq!(of(Some(Framework::Quarkus), &[]), "java -Dquarkus.http.port={port} -jar a.jar");
        assert_eq!(of(Some(Framework::Dropwizard), &[]), "java -jar a.jar server");
        assert!(of(Some(Framework::Dropwizard), &["server", "c.yml"]).ends_with("port=0 -jar a.jar server c.yml"));
        assert_eq!(of(None, &["x"]), "java -jar a.jar x");
    }

    #[test]
    fn a_jar_with_a_generic_name_is_named_after_its_project() {
        let of = |path: &str| Jar { path: path.into(), framework: None, release: None }.name();
        assert_eq!(of("/x/my shop/target/quarkus-app/quarkus-run.jar"), "my_shop");
        assert_eq!((of("/x/app-1.0.jar"), of("quarkus-run.jar").is_empty()), ("app-1.0".to_owned(), false));
    }

    #[test]
    fn invalid_jars_are_rejected_with_a_hint() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let check = |name: &str, what: &str, hint: &str| {
            let error = refused(&at(name));
            assert!(error.what.contains(what), "{error}");
            assert!(error.hint.as_deref().unwrap().contains(hint), "{error}");
        };
        check("app.jar", "No such file", "mvn package");
        std::fs::write(at("app.jar"), jar("Main-Class: a.B\n", &[])).unwrap();
        std::fs::write(at("app-plain.jar"), jar("A: b\n", &[])).unwrap();
        std::fs::write(at("original-app.jar"), jar("A: b\n", &[])).unwrap();
        std::fs::write(at("thin.jar"), jar("A: b\n", &[])).unwrap();
        std::fs::write(at("run.sh"), "#!/bin/sh\n").unwrap();
        std::fs::write(at("{code}.jar"), "").unwrap();
        check("other.jar", "No such file", "/app.jar");
        check("app-plain.jar", "has no `Main-Class`", "/app.jar");
        check("original-app.jar", "has no `Main-Class`", "/app.jar");
        check("thin.jar", "has no `Main-Class`", "after `--`");
        check("run.sh", "is a program, not a jar", "specify a command after `--`");
        check("{code}.jar", "placeholder", "rename the jar");
        check("", "is a directory", "/app.jar");
        std::fs::create_dir(at("quarkus-app")).unwrap();
        std::fs::write(at("quarkus-app/quarkus-run.jar"), jar("Main-Class: io.quarkus.X\n", &[])).unwrap();
        check("thin.jar", "has no `Main-Class`", "quarkus-run.jar");
        assert_eq!(programs_in(folder.path()), [at("app.jar")]);
    }

    #[test]
    fn a_jar_truncated_at_any_byte_is_an_error() {
        let whole = jar(SPRING, &["a/B.class"]);
        for cut in 0..whole.len() {
            assert!(contents(&whole[..cut]).is_err(), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn a_damaged_jar_does_not_panic(at in 0usize..600, byte: u8) {
            let mut bytes = jar(SPRING, &["a/B.class"]);
            let place = at % bytes.len();
            bytes[place] = byte;
            let _ = contents(&bytes);
        }
    }
}
