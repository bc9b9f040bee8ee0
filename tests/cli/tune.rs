//! The requests that a tuning rejects before it starts anything, and the remedies that it lists.

use crate::called::{Called, loadline};

/// `tune` with these options, on a nonexistent server.
fn tune(options: &[&str]) -> Called {
    let server = ["--rate", "9", "--url", "http://127.0.0.1:1/", "--", "no-such-program"];
    loadline(&[&["tune"], options, &server].concat())
}

#[test]
fn tune_options_without_effect_are_rejected_with_a_suggestion() {
    let refused = [
        (["--budget", "p99<50ms"], "--target"),
        (["--baseline", "before/"], "unchanged server"),
        (["--trials", "3"], "`--minutes`"),
        (["--marks", "start"], "`weigh`"),
    ];
    for (options, meant) in refused {
        tune(&options).refused(&[&format!("'{}", options[0]), meant]);
    }
}

#[test]
fn invalid_tune_options_are_explained_with_a_hint() {
    let check = |options: &[&str], says: &[&str]| tune(options).refused(says);
    check(&["--try", "MALLOC_ARENA_MAX=2"], &["cannot be tried", "env.MALLOC_ARENA_MAX=2"]);
    check(&["--try", "env.LD_PRELOAD=/no/such/lib.so"], &["the library `/no/such/lib.so` to preload does not exist"]);
    check(
        &["--skip", "malloc.arena"],
        &["no remedy is named `malloc.arena`", "did you mean `malloc.arenas`", "--list"],
    );
    check(&["--objective", "weight"], &["is not something that tuning can reduce", "rss.loaded"]);
    check(&["--price", "300%"], &["is not a percentage between 0% and 100%"]);
    check(&["--minutes", "0"], &["`--minutes` is 0", "above 0"]);
    check(&["--trials-max", "0"], &["tune.trials_max"]);
    check(&["--target", "rss.loaded<9MiB"], &["requires querying the JVM"]);
    loadline(&["tune"]).refused(&["nothing to tune", "--list"]);
    loadline(&["tune", "--resume", "archives/two"]).refused(&["archives/two contains no tuning run"]);
}

#[test]
fn the_table_of_remedies_is_listed_without_a_server() {
    let listed = loadline(&["tune", "--list"]);
    assert_eq!((listed.code, listed.stderr.as_str()), (0, ""), "{listed}");
    for part in ["malloc.arenas+trim", "heap.max", "JDK-8380060", "changes program behavior", "MALLOC_ARENA_MAX"] {
        let is_there = listed.stdout.contains(part);
        // This variable's value depends on the server.
        assert_eq!(is_there, part != "MALLOC_ARENA_MAX", "{part}: {listed}");
    }
    assert!(listed.stdout.lines().all(|line| line.chars().count() <= 80), "{listed}");
}
