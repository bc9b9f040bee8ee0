//! The jar of test subjects: compiled by `java/compile` on first use, and again only when its sources change.
//! Concurrent tests may build it twice, but see only complete files.

use loadline_test_support::skip;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of the jar. Fails with the compiler's output if it cannot be built.
pub(crate) fn test_subjects() -> &'static str {
    static JAR: OnceLock<String> = OnceLock::new();
    JAR.get_or_init(|| {
        let java = java();
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("test-subjects-{}", hash(&java)));
        let jar = folder.join("test-subjects.jar");
        if !jar.exists() {
            fs::create_dir_all(&folder).expect("a folder for the test subjects");
            let mut compile = Command::new(java.join("compile"));
            let made = compile.arg("test-subjects").arg(&jar).output().expect("java/compile starts");
            let said = [made.stdout, made.stderr].concat();
            assert!(made.status.success(), "no jar of test subjects: {}", String::from_utf8_lossy(&said));
        }
        jar.into_os_string().into_string().expect("a folder whose name is text")
    })
}

fn java() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("java")
}

/// A hash prefix of the sources and compile options.
fn hash(java: &Path) -> String {
    let subjects = fs::read_dir(java.join("subjects/loadline/subjects")).expect("test subjects");
    let mut sources: Vec<PathBuf> = subjects.map(|entry| entry.expect("a test subject").path()).collect();
    sources.push(java.join("compile"));
    sources.sort();
    let mut hash = ring::digest::Context::new(&ring::digest::SHA256);
    for source in sources {
        let text = fs::read(&source).expect("a source of the test subjects");
        hash.update(source.file_name().map_or(&[][..], |name| name.as_encoded_bytes()));
        hash.update(&text.len().to_le_bytes());
        hash.update(&text);
    }
    hash.finish().as_ref()[..8].iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// `tests/on-cgroup-v2` also uses this to compile them in advance.
#[test]
fn compile() {
    let compiler = Command::new(java().join("compile")).arg("release").output().expect("java/compile starts");
    if !compiler.status.success() {
        return skip("LOADLINE_JDKS", "no JDK here can compile the test subjects");
    }
    assert!(Path::new(test_subjects()).exists());
}
