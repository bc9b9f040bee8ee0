//! The choice of the parser, and text that matches none. `tests/samples` has the tools' samples.

use super::*;

const WRK: &str = "\
Running 2s test @ http://127.0.0.1:8080/slow
  2 threads and 10 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    31.06ms    1.10ms  34.69ms   87.50%
    Req/Sec   160.60     19.61   202.00     80.00%
  640 requests in 2.00s, 64.38KB read
Requests/sec:    319.29
Transfer/sec:     32.12KB
";

#[test]
fn a_report_is_recognized_by_its_text_for_any_command() {
    for command in ["wrk -d 2s http://x/", "/opt/wrk", "sh ./load.sh", "k6 run x.js", "docker run --rm wrk wrk -d 2s"] {
        assert_eq!(read(command, WRK).map(|reported| (reported.tool, reported.requests)), Some((Tool::Wrk, 640)));
    }
    for nothing in
        ["", "done\n", "640 requests in 2.00s, 64.38KB read\n", "{}", "{\"metrics\": 5}\n", "{\"summary\":{}}"]
    {
        assert_eq!(read("wrk", nothing), None, "{nothing}");
    }
}

#[test]
fn the_last_of_several_reports_counts() {
    let two = format!("warming up\n{}said before\n{WRK}said after\n", WRK.replace("640", "17"));
    assert_eq!(read("./both.sh", &two).map(|reported| reported.requests), Some(640));
    // The last report was truncated: the first is no substitute.
    let cut = format!("{WRK}Running 2s test @ http://127.0.0.1:8080/slow\n");
    assert_eq!(read("./both.sh", &cut), None);
    let documents = "{\"a\": 1}\n{\"metrics\":{\"http_reqs\":{\"count\":3,\"rate\":1.5}}}\n{\"level\":\"info\"}\n";
    assert_eq!(read("k6", documents).and_then(|reported| reported.seconds), Some(2.0));
}

#[test]
fn text_is_read_as_a_terminal_shows_it() {
    let coloured = WRK.replace("  640", "\u{1b}[2K\u{1b}[1;32m  640").replace("read\n", "read\u{1b}[0m\r\n");
    assert_eq!(read("wrk", &coloured).map(|reported| reported.requests), Some(640));
    assert_eq!(plain("10%\r20%\r30%\nend\u{1b}"), "30%\nend");
}

#[test]
fn the_command_supplies_what_ohas_text_lacks() {
    let text = "Summary:\n  Success rate:\t100.00%\n  Total:\t2.0000 sec\n  Requests/sec:\t50.0000\n\n\
                Status code distribution:\n  [200] 100 responses\n";
    assert_eq!(read("oha -z 2s", text).map(|reported| reported.timing), Some(Timing::Service));
    let corrected = read("oha -q 50 --latency-correction -z 2s", text).map(|reported| reported.timing);
    assert_eq!(corrected, Some(Timing::Response));
    // Twelve responses are missing: the list was truncated, or another version counts differently.
    assert_eq!(read("oha", &text.replace("[200] 100", "[200] 88")), None);
}
