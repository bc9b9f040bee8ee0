//! `loadline watch` on the command line: what it refuses, and what it does where there is no JVM.

use crate::called::loadline;

#[test]
fn bad_input_says_what_is_wrong_and_what_to_write() {
    let check = |options: &[&str], pieces: &[&str]| {
        let called = loadline(&[&["watch"], options].concat());
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{called}");
        assert!(pieces.iter().all(|piece| called.stderr.contains(piece)), "{pieces:?}: {called}");
    };
    check(&[], &["--all", "--post-mortem"]);
    check(&["--all", "4711"], &["cannot be used with"]);
    check(&["nobody"], &["`nobody` is no process id"]);
    check(&["--all", "--account", "sometimes"], &["is no time for an account", "at:75%"]);
    check(&["--all", "--account", "at:0%"], &["is no time for an account"]);
    check(&["--all", "--listen", "9773"], &["is no place to listen", "127.0.0.1:9773"]);
    check(&["--all", "--every", "1ms"], &["every 1ms", "10ms"]);
    check(&["--all", "--keep", "1"], &["no room for the history", "4.0 MiB"]);
    check(&["--all", "--attach", "twice"], &["twice", "never, once"]);
    check(&["--all", "--owners", "all"], &["`all` says no number of owners", "top:5"]);
    check(&["--all", "--owners", "top:21"], &["top:20"]);
    check(&["--all", "--html", "page.html"], &["--post-mortem"]);
    check(&["--post-mortem", "1", "--for", "1s"], &["cannot be used with"]);
    check(&["--all", "--json"], &["--json", "--once"]);
    check(&["--all", "--web-config", "web.yaml"], &["--listen"]);
    check(&["--post-mortem", "/no/such/file"], &["cannot be read as a history", "or a pid"]);
}

#[test]
fn what_never_ran_is_an_error_and_not_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    let history = folder.path().display().to_string();
    // No process has a pid above the most that Linux gives out.
    for options in [&["--once"][..], &[]] {
        let called = loadline(&[&["watch", "4194305", "--history", &history], options].concat());
        assert_eq!((called.code, called.stdout.as_str()), (2, ""), "{called}");
        assert!(called.stderr.contains("pid 4194305"), "{called}");
    }
    let called = loadline(&["watch", "--post-mortem", "4194305", "--history", &history]);
    assert!(called.code == 2 && called.stderr.contains("no history of pid 4194305"), "{called}");
    let called = loadline(&["watch", "--all", "--history", "/proc/nowhere"]);
    assert!(called.code == 4 && called.stderr.contains("/proc/nowhere"), "{called}");
}

#[test]
fn a_web_config_is_taken_or_refused_with_a_reason() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("web.yaml");
    let check = |text: &str, pieces: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let [file, history] = [&file, folder.path()].map(|path| path.display().to_string());
        let called =
            loadline(&["watch", "4194305", "--history", &history, "--listen", "127.0.0.1:0", "--web-config", &file]);
        assert_eq!(called.code, 2, "{called}");
        assert!(pieces.iter().all(|piece| called.stderr.contains(piece)), "{pieces:?}: {called}");
    };
    check("basic_auth_users: {me: x}", &["basic_auth_users", "client_ca_file"]);
    check("rate_limit: {interval: 1s}", &["tls_server_config"]);
    check("tls_server_config: {cert_file: a.crt, key_file: a.key}", &["a.crt"]);
    check("tls_server_config: {cert_file: a.crt}", &["no `cert_file` or no `key_file`"]);
    let required = "client_auth_type: RequireAndVerifyClientCert";
    check(&format!("tls_server_config: {{cert_file: a, key_file: b, {required}}}"), &["client_ca_file"]);
    check("tls_server_config: {cert_file: a, key_file: b, min_version: TLS10}", &["TLS10", "TLS12"]);
    check("nonsense: [", &["web.yaml"]);
    // Without TLS it is no error, and goes on to the pid that is none.
    check("{}", &["pid 4194305"]);
    check("# nothing yet\n", &["pid 4194305"]);
}
