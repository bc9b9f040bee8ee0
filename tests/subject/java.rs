//! Real JVMs.

use super::support::*;
use loadline::record::EndCause;
use loadline::scenario::{Configuration, Gc, Ready};
use loadline::subject::jdk::{Places, discover};
use loadline::subject::{FoundJdk, Launch, OptionsPassed, file_pages};
use loadline::units::Bytes;
use loadline_test_support::skip;
use std::path::Path;
use std::time::Duration;

/// A server in one source file: `java JavaServer.java PORT` compiles and runs it.
const SERVER: &str = r#"
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;

public class Server {
    public static void main(String[] args) throws Exception {
        System.out.println("heap " + Runtime.getRuntime().maxMemory() / 1048576 + " a=" + System.getProperty("a"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", Integer.parseInt(args[0])), 0);
        server.createContext("/ok", exchange -> { exchange.sendResponseHeaders(204, -1); exchange.close(); });
        server.createContext("/busy", exchange -> { exchange.sendResponseHeaders(503, -1); exchange.close(); });
        server.start();
        System.out.println("loadline: phase=serving");
    }
}
"#;

/// Any JDK that compiles, else `None`.
fn some_jdk() -> Option<FoundJdk> {
    let found = discover(&Places::usual(), spawner().clock).into_iter().find(|jdk| jdk.has_javac && jdk.release >= 11);
    if found.is_none() {
        skip("LOADLINE_JDKS", "there is no JDK of 11 or newer");
    }
    found
}

struct JavaServer {
    folder: tempfile::TempDir,
    java: String,
}

fn server() -> Option<JavaServer> {
    let jdk = some_jdk()?;
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("Server.java"), SERVER).unwrap();
    Some(JavaServer { folder, java: jdk.java.display().to_string() })
}

fn configuration() -> Configuration {
    Configuration {
        heap: Some(Bytes::mib(32)),
        gc: Some(Gc::Serial),
        jvm: vec!["-Da=b c".to_owned()],
        ..Configuration::default()
    }
}

impl JavaServer {
    fn launch(&self, command: &[&str], ready: Ready) -> Launch {
        let command: Vec<String> = command.iter().map(|word| word.replace("JAVA", &self.java)).collect();
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut subject = subject(&command, ready);
        subject.dir = Some(self.folder.path().to_path_buf());
        launch_of(&subject, &configuration())
    }

    fn serves(&self, command: &[&str], ready: Ready, passed: OptionsPassed) {
        let launch = self.launch(command, ready);
        assert_eq!(launch.options_passed, passed);
        let mut running = spawner().start(&launch, None).unwrap();
        let info = running.wait_ready(LONG, &|| false).unwrap();
        let executable = std::fs::read_link(format!("/proc/{}/exe", info.pid)).unwrap();
        assert!(executable.ends_with(Path::new("bin/java")), "{}", executable.display());
        let files = file_pages::of_jdk(executable.ancestors().nth(2).unwrap());
        let holds = |own: &[u32]| {
            file_pages::held_by_others(&files, own).processes.iter().any(|process| process.pid == info.pid)
        };
        assert!(holds(&[]) && !holds(&[info.pid]));
        let tail = running.output().tail_texts(99);
        // The largest heap is less than -Xmx by one survivor space.
        assert!(tail.iter().any(|line| line.starts_with("heap 3") && line.ends_with(" a=b c")), "{tail:?}");
        let ended = running.end(LONG);
        assert_eq!((ended.cause, ended.left), (EndCause::AsAsked, 0));
    }
}

#[test]
fn a_jvm_is_found_ready_by_http_directly_and_below_a_shell() {
    let Some(server) = server() else { return };
    let http = || Ready::Http("/ok".to_owned());
    server.serves(&["JAVA", "Server.java", "{port}"], http(), OptionsPassed::AfterJava);
    let below = ["sh", "-c", "JAVA {jvm} Server.java {port}; echo done"];
    server.serves(&below, http(), OptionsPassed::AtPlaceholder);
}

#[test]
fn a_jvm_is_found_ready_by_port_log_and_phase_with_options_by_variable() {
    let Some(server) = server() else { return };
    let by_variable = || OptionsPassed::ByVariable("JDK_JAVA_OPTIONS".to_owned());
    let command = ["sh", "-c", "JAVA Server.java {port}; echo done"];
    server.serves(&command, Ready::Tcp, by_variable());
    server.serves(&command, Ready::Phase("serving".to_owned()), by_variable());
    server.serves(&command, Ready::Log("phase=s\\w+".to_owned()), by_variable());
}

#[test]
fn what_is_not_ready_is_described() {
    let Some(server) = server() else { return };
    let launch = server.launch(&["JAVA", "Server.java", "{port}"], Ready::Http("/busy".to_owned()));
    let mut running = spawner().start(&launch, None).unwrap();
    wait_until("it serves", LONG, || running.output().phase_at("serving").is_some());
    // A busy machine may not answer in half a second.
    let mut within = ran_until_it_served(&running) + Duration::from_millis(500);
    let error = loop {
        let error = running.wait_ready(within, &|| false).unwrap_err();
        if error.context[0].ends_with(": status 503") || within > LONG {
            break error;
        }
        within *= 2;
    };
    assert!(error.context[0].ends_with(": status 503"), "{error}");
    assert!(error.context[1].starts_with("it runs, with a JVM as pid "), "{error}");
}

#[test]
fn another_port_is_named() {
    let Some(server) = server() else { return };
    let other = loadline::subject::free_port("127.0.0.1").unwrap();
    let launch = server.launch(&["JAVA", "Server.java", &other.to_string()], Ready::Http("/ok".to_owned()));
    let mut running = spawner().start(&launch, None).unwrap();
    wait_until("it serves", LONG, || running.output().phase_at("serving").is_some());
    let within = ran_until_it_served(&running) + Duration::from_millis(300);
    let error = running.wait_ready(within, &|| false).unwrap_err();
    let said = format!("it listens on port {other}, not on {}", launch.port);
    assert!(error.context.contains(&said), "{error}");
    assert!(error.hint.unwrap().starts_with("use that port in `--url`"));
}

/// How long it has run, so that a bound can be set from now on.
fn ran_until_it_served(running: &loadline::subject::GuardedSubject) -> Duration {
    running.output().phase_at("serving").map_or(LONG, |at| at.saturating_sub(running.started_at()))
}

#[test]
fn a_jvm_that_refuses_its_options_is_reported_with_its_words() {
    let Some(server) = server() else { return };
    let launch = server.launch(&["JAVA", "-XX:+UseFooGC", "Server.java", "{port}"], Ready::Tcp);
    let mut running = spawner().start(&launch, None).unwrap();
    let error = running.wait_ready(LONG, &|| false).unwrap_err();
    assert!(error.what.contains("with exit code 1, before it was ready"), "{error}");
    assert!(error.said.iter().any(|line| line.contains("UseFooGC")), "{error}");
    assert!(error.hint.unwrap().starts_with("the JVM does not accept its options"));
}
