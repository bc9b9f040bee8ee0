//! Screens of all sizes with synthetic JVMs, and the effects of keys.

use super::picture::{Glyphs, Scene, Size, View, drawn};
use super::{Key, LINE_COLUMNS, Pressed, Screen, with_facts};
use crate::export::samples::with_every_text;
use crate::record::{
    GrowthRecord, GrowthWord, Happened, PostMortem, ThingRecord, WatchAccount, WatchChange, WatchCharge, WatchCourse,
    WatchDocument, WatchEvent, WatchLabel, WatchLimit, WatchOwner, WatchPart, WatchProcesses, WatchSample, WatchedJvm,
};
use crate::units::MIB;
use crate::{post_mortem_page, render, summarize_post_mortem, summarize_watch};

fn jvm(pid: u32, name: &str, anon_mib: u64, growth: GrowthRecord) -> WatchedJvm {
    let mib = |mib: u64| Some(mib * MIB);
    let now = WatchSample {
        unreclaimable_bytes: mib(anon_mib),
        rss_anon_bytes: mib(anon_mib),
        rss_file_bytes: mib(30),
        heap_used_bytes: mib(anon_mib / 2),
        heap_committed_bytes: mib(512),
        heap_max_bytes: mib(1024),
        threads: Some(40),
        classes: Some(12_000),
        ..WatchSample::default()
    };
    let limit = Some(WatchLimit { bytes: 2048 * MIB, cgroup: format!("/system.slice/{name}") });
    WatchedJvm {
        name: name.to_owned(),
        pid,
        version: Some("25.0.3+9".to_owned()),
        collector: Some("G1".to_owned()),
        age_s: 90_000.0,
        now,
        limit,
        charge: Some(WatchCharge {
            bytes: (anon_mib + 300) * MIB,
            working_set_bytes: (anon_mib + 250) * MIB,
            unreclaimable_bytes: (anon_mib + 170) * MIB,
            jvm_bytes: anon_mib * MIB,
            others_bytes: 168 * MIB,
            others: vec![WatchProcesses { command: "tesseract page.png".to_owned(), processes: 4, bytes: 168 * MIB }],
        }),
        growth,
        ..WatchedJvm::default()
    }
}

fn grows() -> GrowthRecord {
    GrowthRecord {
        verdict: GrowthWord::Grows,
        owner: Some("direct".to_owned()),
        bytes_per_hour: Some(9.8 * MIB as f64),
        bytes_per_hour_low: Some(9.0 * MIB as f64),
        limit_in_s: Some(111_600.0),
        limit_in_s_latest: Some(158_400.0),
        window_s: Some(43_200.0),
        ..GrowthRecord::default()
    }
}

fn document(number: u32) -> WatchDocument {
    let steady = GrowthRecord { verdict: GrowthWord::Steady, ..GrowthRecord::default() };
    let of = |pid: u32| match pid {
        1 => jvm(1, "shop.service", 640, grows()),
        pid => jvm(pid, &format!("prod/pricing-6f4d8c-x2v{pid}/app"), 100 + u64::from(pid), steady.clone()),
    };
    let jvms = (1..=number).map(of).collect();
    WatchDocument { taken: "2026-11-23T13:26:43Z".to_owned(), every_ms: 10_000, jvms, ..WatchDocument::default() }
}

/// The first JVM with all possible data.
fn known(number: u32) -> WatchDocument {
    let mut document = document(number);
    let shop = &mut document.jvms[0];
    let part = |name: &str, mib: u64, rises: u64| WatchPart {
        name: name.to_owned(),
        bytes: Some((mib + 60 * rises) * MIB),
        bound_bytes: (name == "memory").then_some(2048 * MIB),
        changes: [600, 3600].map(|over_s| change(name, over_s, rises * over_s / 60)).to_vec(),
        values: (0..60).map(|at| (at != 7).then_some((mib + at * rises) * MIB)).collect(),
    };
    let parts = vec![part("memory", 580, 1), part("java_heap", 400, 0), part("direct", 20, 1), part("rest", 150, 0)];
    shop.course = Some(WatchCourse { step_s: 60.0, parts, ..WatchCourse::default() });
    shop.things = vec![ThingRecord { name: "direct".to_owned(), growth: grows(), ..ThingRecord::default() }];
    let owners = (1..=8).map(|n| WatchOwner { name: format!("owner_{n}"), bytes: (90 - n) * MIB }).collect();
    let account = WatchAccount { age_s: 7200.0, total_bytes: 670 * MIB, owners, ..WatchAccount::default() };
    shop.account = Some(WatchAccount { file: "shop.account.json".to_owned(), ..account });
    document
}

fn change(name: &str, over_s: u64, mib: u64) -> WatchChange {
    WatchChange { over_s, name: name.to_owned(), before_bytes: 100 * MIB, after_bytes: (100 + mib) * MIB }
}

fn text(document: &WatchDocument, view: &View, (columns, lines): (usize, usize)) -> String {
    let lately = ["13:26:37Z shop.service: watched, pid 1".to_owned()];
    let scene = Scene { document, view, lately: &lately, glyphs: Glyphs::Ascii, keys: true };
    let drawn = drawn(&scene, Size { columns, lines });
    assert_eq!(drawn.len(), lines);
    assert!(drawn.iter().all(|line| line.text.chars().count() <= columns), "{drawn:#?}");
    let all: Vec<String> = drawn.iter().map(|line| line.text.trim_end().to_owned()).collect();
    all.join("\n")
}

#[test]
fn the_list_fits_its_terminal_and_drops_less_important_columns() {
    let view = View { chosen: Some(2), ..View::default() };
    let sizes = [(120, 12), (80, 12), (40, 8)];
    let screens = sizes.map(|size| text(&document(3), &view, size));
    insta::assert_snapshot!(screens.join("\n----\n"));
}

#[test]
fn a_single_jvm_is_shown_by_part_and_owner() {
    let view = View { chosen: Some(1), open: true, ..View::default() };
    let screens = [(100, 26), (60, 12)].map(|size| text(&known(2), &view, size));
    let alone = text(&known(1), &View::default(), (80, 24));
    insta::assert_snapshot!(format!("{}\n----\n{alone}", screens.join("\n----\n")));
}

#[test]
fn lines_for_a_log_are_limited_and_facts_have_their_own() {
    let mut screen = Screen::lines(false);
    screen.document = WatchDocument { taken: "2026-11-28T09:33:04Z".to_owned(), ..known(1) }.into();
    let appeared = WatchEvent { name: "container c0ffee5d41d8".to_owned(), what: Happened::Appeared(1) };
    let line = screen.line(&appeared, std::slice::from_ref(&appeared)).unwrap();
    let text = with_facts(&line, &screen.facts(&appeared), LINE_COLUMNS);
    assert!(text.lines().all(|line| line.chars().count() <= LINE_COLUMNS), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn any_terminal_size_and_name_can_be_drawn() {
    let mut document = known(60);
    document.jvms[3].name = "\u{1b}[2J\n".repeat(50);
    for (columns, lines) in [(20, 5), (21, 7), (33, 9), (79, 24), (500, 200)] {
        for pid in [1, 4, 30, 60, 999] {
            for open in [false, true] {
                let view = View { chosen: Some(pid), open, scrolled: 1000, ..View::default() };
                let text = text(&document, &view, (columns, lines));
                assert!(!text.contains('\u{1b}'));
            }
        }
    }
    let seen = text(&document, &View { chosen: Some(60), ..View::default() }, (100, 10));
    assert!(seen.lines().any(|line| line.starts_with("> ") && line.contains("x2v60")), "{seen}");
}

#[test]
fn keys_select_open_scroll_and_quit() {
    let mut screen = Screen::drawn(Glyphs::Ascii, true);
    screen.take(&[], || known(3).into());
    let chosen = |screen: &Screen| (screen.view.chosen, screen.in_full());
    assert_eq!(chosen(&screen), (Some(1), None));
    for (key, then) in [
        (Key::Close, (Some(1), None)),
        (Key::Down, (Some(2), None)),
        (Key::Last, (Some(3), None)),
        (Key::Down, (Some(3), None)),
        (Key::PageUp, (Some(1), None)),
        (Key::Open, (Some(1), Some(1))),
        (Key::Quit, (Some(1), None)),
    ] {
        assert_eq!((screen.press(key), chosen(&screen)), (Pressed::Draw, then), "{key:?}");
    }
    // The JVM with the most memory stays selected in every order.
    for _ in 0..4 {
        screen.press(Key::Sort);
        assert_eq!(screen.view.chosen, Some(1));
    }
    screen.press(Key::Open);
    screen.size = Size { columns: 80, lines: 10 };
    screen.press(Key::Last);
    assert!(screen.view.scrolled > 0);
    // The JVM shown in full is gone.
    screen.take(&[], || WatchDocument { jvms: document(3).jvms.split_off(1), ..document(3) }.into());
    assert_eq!((chosen(&screen), screen.view.scrolled), ((Some(2), None), 0));
    assert_eq!(screen.press(Key::Quit), Pressed::End);
    screen.take(&[], || known(1).into());
    assert_eq!((screen.in_full(), screen.press(Key::Quit)), (Some(1), Pressed::End), "a single JVM is shown in full");
}

#[test]
fn container_names_cannot_control_a_terminal_or_page() {
    let hostile = "<script>\u{1b}]0;owned\u{7}\u{1b}[2J\r\n\"}";
    let mut both = known(2);
    (both.jvms[0].labels, both.jvms[0].unreadable) = (vec![WatchLabel::default()], vec![String::new()]);
    let both = with_every_text(&both, hostile, &["taken"]);
    let one = WatchDocument { jvms: both.jvms[..1].to_vec(), ..both.clone() };
    let [killed_by, version] = [(); 2].map(|()| Some(String::new()));
    let ended = PostMortem { killed_by, version, accounts: vec![String::new()], ..PostMortem::default() };
    let ended = with_every_text(&ended, hostile, &["end"]);
    let failed = WatchEvent { name: hostile.to_owned(), what: Happened::Failed(hostile.to_owned()) };
    let screen = |document: &WatchDocument| {
        let mut screen = Screen::drawn(Glyphs::Ascii, true);
        screen.take(std::slice::from_ref(&failed), || document.clone().into());
        drawn(&screen.scene(), Size { columns: 120, lines: 40 }).into_iter().map(|line| line.text).collect::<Vec<_>>()
    };
    let drawn = screen(&one).into_iter().chain(screen(&both));
    let summaries = [summarize_watch(&one), summarize_watch(&both), summarize_post_mortem(&ended)];
    for text in summaries.iter().map(render).chain(drawn) {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    }
    let page = post_mortem_page(&ended);
    assert!(!page.contains("<script>") && !page.contains('\u{1b}'), "{page}");
}
