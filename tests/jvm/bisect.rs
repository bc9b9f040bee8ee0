//! A planted regression in a real git repository: `git bisect run` finds its commit by Loadline's exit codes, and the
//! history of the measurements names the commit and the owner.

use crate::invocation::{jdk, newest};
use loadline_test_support::{has, long_tests_run, skip};
use std::path::Path;
use std::process::{Command, Output};

/// The number of commits; the first is good and the last is bad.
const COMMITS: usize = 14;
/// The commit that retains 8 MiB of direct memory.
const PLANTED: usize = 10;
/// The middle commit, which a bisection tries first, does not compile.
const BROKEN: usize = 7;

const SERVER: &str = r#"import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

public class Server {
    static final List<ByteBuffer> KEPT = new ArrayList<>();

    public static void main(String[] args) throws Exception {
        /*PLANT*/
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.createContext("/hello", exchange -> {
            byte[] body = "hello from commit NUMBER".getBytes();
            exchange.sendResponseHeaders(200, body.length);
            exchange.getResponseBody().write(body);
            exchange.close();
        });
        server.start();
    }
}
"#;
/// Direct memory is zeroed, and therefore resident.
const PLANT: &str = "KEPT.add(ByteBuffer.allocateDirect(8 << 20));";

/// The script for `git bisect run`, as in `docs/history.md`. It uses the interpreter, because compiling JVMs differed
/// by 5 MiB of malloc between trials.
const SCRIPT: &str = r#"
classes=$OUT/classes-$(git rev-parse HEAD)
"$JAVAC" -d "$classes" Server.java 2>/dev/null || exit 125
exec "$LOADLINE" weigh "$@" --quiet --trials 5 -n 200 --rest 100ms --heap 16m --gc serial \
    --jvm=-XX:+AlwaysPreTouch --jvm=-Xint \
    --jdk "$RELEASE" --out "$OUT/weighed/$(git rev-parse --short HEAD)" \
    --url 'http://127.0.0.1:{port}/hello' -- java -cp "$classes" Server '{port}'
"#;

/// A repository with a history, and its scripts' environment.
struct Repository<'a> {
    folder: &'a Path,
    out: &'a Path,
    release: u32,
}

impl Repository<'_> {
    fn call(&self, program: &str, arguments: &[&str]) -> Output {
        let home = jdk(self.release).unwrap().home;
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder).env("OUT", self.out).env("RELEASE", self.release.to_string());
        command.env("LOADLINE", env!("CARGO_BIN_EXE_loadline")).env("JAVAC", home.join("bin/javac"));
        // Ignores user configuration and enclosing repositories.
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env_remove("GIT_DIR");
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Test").env(format!("GIT_{who}_EMAIL"), "test@example.invalid");
            command.env(format!("GIT_{who}_DATE"), "2026-11-24T12:00:00Z");
        }
        command.output().unwrap()
    }

    /// The output on both streams; the program must succeed.
    fn said(&self, program: &str, arguments: &[&str]) -> String {
        let done = self.call(program, arguments);
        let said = [&done.stdout[..], &done.stderr].map(String::from_utf8_lossy).concat();
        assert!(done.status.success(), "{program} {arguments:?}: {:?}\n{said}", done.status.code());
        said
    }

    /// Creates all commits; returns their hashes in order.
    fn commits(&self) -> Vec<String> {
        self.said("git", &["init", "--quiet", "--initial-branch", "main"]);
        let commit = |number: usize| {
            let plant = if number >= PLANTED { PLANT } else { "" };
            let plant = if number == BROKEN { "this does not compile" } else { plant };
            let text = SERVER.replace("/*PLANT*/", plant).replace("NUMBER", &number.to_string());
            std::fs::write(self.folder.join("Server.java"), text).unwrap();
            self.said("git", &["add", "Server.java"]);
            self.said("git", &["commit", "--quiet", "-m", &format!("Change {number}")]);
            self.said("git", &["rev-parse", "HEAD"]).trim().to_owned()
        };
        (1..=COMMITS).map(commit).collect()
    }
}

/// About six commits are measured with five short trials each.
#[test]
fn git_bisect_finds_a_planted_leak_and_the_history_names_its_owner() {
    if !long_tests_run() {
        return;
    }
    let Some(release) = newest().pop() else { return };
    if !jdk(release).unwrap().home.join("bin/javac").exists() {
        return skip("LOADLINE_TOOLS", "there is no javac");
    }
    if !has("LOADLINE_TOOLS", "git") {
        return;
    }
    let (folder, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let repository = Repository { folder: folder.path(), out: out.path(), release };
    let commits = repository.commits();
    std::fs::write(out.path().join("weigh.sh"), SCRIPT).unwrap();
    let script = out.path().join("weigh.sh").display().to_string();
    // The others are compared with the first commit.
    repository.said("git", &["checkout", "--quiet", &commits[0]]);
    repository.said("sh", &[&script]);
    let good = out.path().join("weighed").join(&commits[0][..7]).display().to_string();
    repository.said("git", &["bisect", "start", &commits[COMMITS - 1], &commits[0]]);
    let said = repository.said(
        "git",
        &["bisect", "run", "sh", &script, "--bisect", "--baseline", &good, "--budget", "rss.loaded<=+4MiB"],
    );
    println!("{said}");
    assert!(said.contains(&format!("{} is the first bad commit", commits[PLANTED - 1])), "{said}");
    let log = repository.said("git", &["bisect", "log"]);
    assert!(log.contains(&format!("# skip: [{}]", commits[BROKEN - 1])), "{log}");
    the_history_names_it(&repository, &commits);
    wrong_requests_stop_it(&repository, &script, &commits);
}

/// The bisection's archives in commit order.
fn the_history_names_it(repository: &Repository<'_>, commits: &[String]) {
    let list = repository.out.join("commits").display().to_string();
    let all = repository.said("git", &["log", "--reverse", "--format=%H %s", "main"]);
    std::fs::write(&list, all).unwrap();
    let weighed = repository.out.join("weighed").display().to_string();
    let loadline = env!("CARGO_BIN_EXE_loadline");
    let said = repository.said(loadline, &["history", &weighed, "--metric", "rss.loaded", "--commits", &list]);
    println!("{said}");
    let short = |number: usize| &commits[number - 1][..7];
    let range = format!("since {} ({}..{})", short(PLANTED), short(PLANTED - 1), short(PLANTED));
    // Sentences are wrapped.
    let told = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert_eq!(told.matches(" since ").count(), 1, "{said}");
    assert!(told.contains(&range) && told.contains(&format!("Change {PLANTED}")), "{told}");
    assert!(told.contains("direct") && told.contains("+8.0 MiB"), "{told}");
}

/// A command-line error is not a verdict on a commit, and is not retried for the next one.
fn wrong_requests_stop_it(repository: &Repository<'_>, script: &str, commits: &[String]) {
    repository.said("git", &["bisect", "reset"]);
    repository.said("git", &["bisect", "start", &commits[COMMITS - 1], &commits[0]]);
    repository.said("git", &["checkout", "--quiet", &commits[1]]);
    let done = repository.call("git", &["bisect", "run", "sh", script, "--bisect", "--budget", "rss.loadde<=9MiB"]);
    let said = [&done.stdout[..], &done.stderr].map(String::from_utf8_lossy).concat();
    assert!(!done.status.success() && !said.contains("first bad commit"), "{said}");
    let log = repository.said("git", &["bisect", "log"]);
    assert!(!log.contains("# skip") && log.matches("git bisect bad").count() <= 1, "{log}");
}
