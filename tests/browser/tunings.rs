//! The page of a tuning: its pictures, its tables, its lines to copy, at any width.

use super::browser::Browser;
use super::fixtures;
use super::page::fits;
use loadline::record::{Document, TuneRecord};
use loadline::report;
use serde_json::{Value, json};

const MIB: f64 = 1_048_576.0;

/// A tuning that kept two remedies of four, one of which costs too much and one of which breaks the target.
pub(crate) fn tuned(option: &str) -> Document {
    let trim = "-XX:TrimNativeHeapInterval=2000";
    let settings = vec![
        setting(&[], &[], "baseline", [96.0, 1.0], [20.0, 44.0], true),
        setting(&["arenas"], &[option], "leave_out", [80.0, 1.001], [20.0, 28.0], true),
        setting(&["trim"], &[trim], "leave_out", [76.0, 1.004], [20.0, 24.0], true),
        setting(&["arenas", "trim"], &[option, trim], "bundle", [64.0, 1.006], [20.0, 12.0], true),
        setting(&["arenas", "trim", "c1"], &[option, trim, "-C1"], "race", [55.0, 1.29], [14.0, 11.0], true),
        setting(&["arenas", "trim", "parallel"], &[option, trim, "-P"], "race", [70.0, 0.97], [25.0, 12.0], false),
    ];
    let front: Vec<Value> = [0, 3, 4].map(|at| settings[at].clone()).to_vec();
    let gain = |metric: &str, unit: &str, [before, after, low, high]: [f64; 4]| {
        json!({
            "metric": metric, "unit": unit, "better": "lower", "baseline": "as is", "candidate": "tuned",
            "primary": true, "baseline_median": before, "candidate_median": after, "ratio": after / before,
            "ratio_low": 1.0 + low / before, "ratio_high": 1.0 + high / before, "difference": after - before,
            "low": low, "high": high, "confidence": 0.95, "confidence_each": 0.98, "least": {"relative": 0.02},
            "verdict": "better", "blocks": 5, "blocks_needed": null
        })
    };
    let remedies = vec![
        remedy("arenas", option, "kept", Some(12.0), ""),
        remedy("trim", trim, "kept", Some(17.0), ""),
        remedy("c1", "-C1", "too_costly", Some(9.0), "saves 9.0 MiB more at +29.0 % of CPU per request"),
        remedy("parallel", "-P", "harmful", Some(-6.0), "6.0 MiB more, and p99.steady was 118 ms"),
        remedy("compact", "", "not_tried", None, "this JVM has no such flag"),
    ];
    let gains = vec![
        gain("rss", "bytes", [96.0 * MIB, 64.0 * MIB, -33.0 * MIB, -31.0 * MIB]),
        gain("cpu_per_1000.steady", "seconds", [0.4, 0.402, -0.003, 0.006]),
    ];
    let tune: TuneRecord = serde_json::from_value(json!({
        "outcome": "proved", "text": "two remedies help", "objective": "rss", "price": 0.02,
        "target": ["p99<50ms"], "as_is": settings[0], "answer": [option, trim],
        "changes": [{"jvm": [option, trim]}], "gains": gains, "confirmations": [], "remedies": remedies,
        "owners": [{"owner": "malloc.retained", "before_bytes": 44.0 * MIB, "after_bytes": 12.0 * MIB}],
        "path": settings, "front": front, "noise": {"bytes": 2.3 * MIB, "cpu": 0.007},
        "doubts": ["the load was closed"], "trials": 27, "seconds": 940.0
    }))
    .unwrap();
    Document { tune: Some(tune), ..fixtures::document(Vec::new()) }
}

fn setting(
    ids: &[&str],
    options: &[&str],
    stage: &str,
    [mib, cpu]: [f64; 2],
    [heap, retained]: [f64; 2],
    holds: bool,
) -> Value {
    json!({
        "remedies": ids, "options": options, "stage": stage, "trials": 2, "holds": holds, "bytes": mib * MIB,
        "cpu_ratio": cpu,
        "owners": [
            {"owner": "java_heap.used", "bytes": heap * MIB},
            {"owner": "libjvm", "bytes": 32.0 * MIB},
            {"owner": "malloc.retained", "bytes": retained * MIB}
        ],
        "why": if holds { vec![] } else { vec!["p99.steady was 118 ms; the target is p99<50ms"] }
    })
}

fn remedy(id: &str, option: &str, fate: &str, saved: Option<f64>, why: &str) -> Value {
    json!({
        "id": id, "what": "as its name says", "options": if option.is_empty() { vec![] } else { vec![option] },
        "price": "free", "gain_bytes_max": 30 << 20, "fate": fate, "why": why,
        "saved_bytes": saved.map(|mib| mib * MIB), "cpu_ratio": saved.map(|_| 1.004)
    })
}

#[test]
fn the_pictures_of_a_tuning_are_drawn_and_nothing_is_wider_than_the_page() {
    let Some(browser) = Browser::find() else { return };
    // As long as a command line may be, and no markup.
    let option = format!("-D<script>document.title='run'</script>={}", "x".repeat(300));
    let page = report::html(&tuned(&option), &[], &[]);
    browser.write(&page);
    for width in [400, 1280] {
        let picture = browser.screenshot(width, 4000);
        assert!(picture.count([0x00, 0x72, 0xb2]) > 150, "points of the front at {width} pixels");
        // Objects of the heap, in the bars.
        assert!(picture.count([0x2f, 0x79, 0xb9]) > 1000, "heap at {width} pixels");
    }
    fits(&browser, &page);
}

#[test]
fn the_pictures_of_a_tuning_are_files_of_their_own() {
    let Some(browser) = Browser::find() else { return };
    let plots = report::plots(&tuned("-XX:MaxHeapFreeRatio=20"), &[]);
    let names: Vec<&str> = plots.iter().map(|plot| plot.name.as_str()).collect();
    assert_eq!(names, ["tuning-steps", "tuning-front"]);
    for plot in &plots {
        assert!(!plot.svg.contains("var(") && !plot.svg.contains("NaN") && !plot.svg.contains("inf"), "{}", plot.name);
        assert!(browser.draw(plot).count([0x1c, 0x21, 0x27]) > 100, "{}: titles and names", plot.name);
    }
}
