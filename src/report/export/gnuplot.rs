//! Data and a script for gnuplot 5: timeline, percentile spectrum, requests, comparison. `gnuplot plot.gp` draws them.
//!
//! Columns stand apart by a space, a head in `#` names them with their units, what was not measured is `?`. A block of
//! lines is a trial (a phase in the spectrum); two empty lines part blocks, so that gnuplot's `index` counts them.
//! `0.1 45219840 ? ? 17 1782579 6291456 ? 0 0 0 0 ? ?`

use super::super::quantity::plain;
use super::inert::clipped;
use crate::record::{ComparisonRecord, DifferenceVerdict, Document, Evidence, Sample};

const MISSING: &str = "?";
const TIMELINE_HEAD: &str = "# at_s rss_bytes anon_bytes charge_bytes threads heap_used_bytes heap_committed_bytes \
    metaspace_used_bytes gc_count gc_ms ok failed pss_bytes direct_bytes allocated_bytes\n";
/// Columns of the timeline as gnuplot counts them, from 1.
const RSS_COLUMN: u32 = 2;
const HEAP_COLUMN: u32 = 6;
const DIRECT_COLUMN: u32 = 14;
const SPECTRUM_HEAD: &str = "# quantile time_ms\n";
const REQUESTS_HEAD: &str = "# at_s time_ms failed\n";
const COMPARISON_HEAD: &str = "# row change_percent low_percent high_percent verdict name\n";
/// Lines of a picture: more cannot be told apart.
const SERIES_MAX: usize = 12;
/// Rows of a picture: more cannot be read.
const ROWS_MAX: usize = 40;

/// What a key beside a picture has room for.
const NAME_CHARACTERS_MAX: usize = 40;

/// A data file and the titles of its blocks.
struct Data {
    text: String,
    titles: Vec<String>,
}

/// Files to write beside each other: name and contents. Pictures of which there is no data are left out of the script.
pub fn gnuplot(document: &Document, evidence: &[Evidence]) -> Vec<(String, String)> {
    let ((timeline, direct), spectrum) = (timeline(document, evidence), spectrum(document, evidence));
    let (requests, comparison) = (requests(document, evidence), comparison(document));
    let intervals = document.comparisons.iter().any(|of| of.primary && of.ratio_low.is_some());
    let mut script = start();
    for drawn in [
        drawn_timeline(&timeline.titles, &direct),
        drawn_spectrum(&spectrum.titles),
        drawn_requests(&requests.titles),
        drawn_comparison(&comparison.titles, intervals),
    ] {
        script.extend(drawn);
    }
    [
        ("timeline.dat", timeline.text),
        ("spectrum.dat", spectrum.text),
        ("requests.dat", requests.text),
        ("comparison.dat", comparison.text),
        ("plot.gp", script),
    ]
    .map(|(name, text)| (name.to_owned(), text))
    .into()
}

// ---- Data ----

fn name(text: &str) -> String {
    clipped(text, NAME_CHARACTERS_MAX)
}

fn title(document: &Document, trial: u32) -> String {
    let configuration = document.trials.iter().find(|of| of.index == trial).map(|of| name(&of.configuration));
    format!("trial {}: {}", trial + 1, configuration.unwrap_or_default())
}

/// Appends a block with its title as a comment; none where it has no lines.
fn block(data: &mut Data, title: String, lines: String) {
    if lines.is_empty() {
        return;
    }
    let gap = if data.titles.is_empty() { "" } else { "\n\n" };
    data.text.push_str(&format!("{gap}# {title}\n{lines}"));
    data.titles.push(title);
}

fn headed(head: &str) -> Data {
    Data { text: head.to_owned(), titles: Vec::new() }
}

fn known(number: Option<f64>) -> String {
    let text = plain(number);
    if text.is_empty() { MISSING.to_owned() } else { text }
}

/// The blocks, and for each whether its direct memory is known.
fn timeline(document: &Document, evidence: &[Evidence]) -> (Data, Vec<bool>) {
    let mut data = headed(TIMELINE_HEAD);
    let mut direct = Vec::new();
    for of in evidence.iter().filter(|of| !of.timeline.is_empty()) {
        block(&mut data, title(document, of.trial), of.timeline.iter().map(sample_line).collect());
        direct.push(of.timeline.iter().any(|sample| sample.direct_bytes.is_some()));
    }
    (data, direct)
}

fn sample_line(of: &Sample) -> String {
    let whole = |number: Option<u64>| number.map_or(MISSING.to_owned(), |number| number.to_string());
    let cells = [
        known(Some(of.at_s)),
        of.rss_bytes.to_string(),
        whole(of.anon_bytes),
        whole(of.charge_bytes),
        whole(of.threads),
        whole(of.heap_used_bytes),
        whole(of.heap_committed_bytes),
        whole(of.metaspace_used_bytes),
        whole(of.gc_count),
        known(of.gc_ms),
        of.ok.to_string(),
        of.failed.to_string(),
        whole(of.pss_bytes),
        whole(of.direct_bytes),
        whole(of.allocated_bytes),
    ];
    cells.join(" ") + "\n"
}

fn spectrum(document: &Document, evidence: &[Evidence]) -> Data {
    let mut data = headed(SPECTRUM_HEAD);
    for of in evidence {
        for phase in &of.spectra {
            let (phase_name, time) = (name(&phase.phase), phase.time.name());
            let title = format!("{}, {phase_name}, {time} time", title(document, of.trial));
            let line = |(quantile, ms): &(f64, f64)| format!("{} {}\n", known(Some(*quantile)), known(Some(*ms)));
            block(&mut data, title, phase.points.iter().map(line).collect());
        }
    }
    data
}

fn requests(document: &Document, evidence: &[Evidence]) -> Data {
    let mut data = headed(REQUESTS_HEAD);
    for of in evidence {
        let lines = of
            .requests
            .iter()
            .map(|dot| format!("{} {} {}\n", known(Some(dot.at_s)), known(Some(dot.ms)), u8::from(dot.failed)));
        block(&mut data, title(document, of.trial), lines.collect());
    }
    data
}

/// One block: a row for each comparison asked for whose ratio is known, downwards.
fn comparison(document: &Document) -> Data {
    let mut data = headed(COMPARISON_HEAD);
    let rows = document.comparisons.iter().filter(|of| of.primary && of.ratio.is_some());
    for (row, of) in rows.enumerate() {
        let percent = |ratio: Option<f64>| known(ratio.map(|ratio| (ratio - 1.0) * 100.0));
        let cells = [percent(of.ratio), percent(of.ratio_low), percent(of.ratio_high)].join(" ");
        let name = comparison_name(of);
        let verdict = verdict_number(of);
        // Between double quotes gnuplot reads backslashes as in C, and has no way to write a double quote.
        let text = name.replace('\\', "\\\\").replace('"', "'");
        data.text.push_str(&format!("{row} {cells} {verdict} \"{text}\"\n"));
        data.titles.push(name);
    }
    data
}

fn comparison_name(of: &ComparisonRecord) -> String {
    format!("{}: {} against {}", name(&of.metric), name(&of.candidate), name(&of.baseline))
}

/// What colours a row: 1 better, 2 worse, 3 equivalent, 4 cannot tell.
fn verdict_number(of: &ComparisonRecord) -> u8 {
    match of.verdict {
        DifferenceVerdict::Better => 1,
        DifferenceVerdict::Worse => 2,
        DifferenceVerdict::Equivalent => 3,
        DifferenceVerdict::CannotTell => 4,
    }
}

// ---- The script ----

/// `noenhanced`, so that `_` and `{` in names stay what they are.
fn start() -> String {
    format!(
        "# Draws the files beside it: gnuplot plot.gp\n\
         set terminal pngcairo noenhanced size 1200,700 font ',11'\n\
         set datafile missing '{MISSING}'\n\
         set key outside bottom center horizontal\n\
         set grid\n\
         MiB = 1048576.0\n"
    )
}

/// A text for the script. Between single quotes gnuplot substitutes nothing, neither backticks nor macros; a quote is
/// written twice.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn picture(name: &str, settings: &[&str], series: &[String]) -> Option<String> {
    if series.is_empty() {
        return None;
    }
    let settings: String = settings.iter().map(|line| format!("{line}\n")).collect();
    Some(format!("\nset output '{name}.png'\n{settings}plot {}\nset output\n", series.join(", \\\n  ")))
}

/// RSS of each trial and, where direct memory was watched, what of it is heap and what direct memory: thinner, in the
/// colour of their trial.
fn drawn_timeline(titles: &[String], direct: &[bool]) -> Option<String> {
    let series = |(index, title): (usize, &String)| {
        let line = |column: u32, kind: &str, name: &str| {
            let (title, colour) = (quoted(&format!("{name}, {title}")), index + 1);
            format!("'timeline.dat' index {index} using 1:(${column}/MiB) with lines {kind} lc {colour} title {title}")
        };
        let mut lines = vec![line(RSS_COLUMN, "lw 2", "RSS")];
        if direct.get(index) == Some(&true) {
            lines.push(line(HEAP_COLUMN, "dt 2", "heap used"));
            lines.push(line(DIRECT_COLUMN, "dt 3", "direct memory"));
        }
        lines
    };
    let settings = ["set title 'Resident memory'", "set xlabel 'seconds since the start'", "set ylabel 'MiB'"];
    let series: Vec<String> = titles.iter().enumerate().take(SERIES_MAX).flat_map(series).collect();
    picture("timeline", &settings, &series)
}

fn drawn_spectrum(titles: &[String]) -> Option<String> {
    let series = |(index, title): (usize, &String)| {
        // The last quantile, 1, has no place on this axis.
        let x = "($1<1 ? 1/(1-$1) : 1/0)";
        format!("'spectrum.dat' index {index} using {x}:2 with linespoints pt 7 ps 0.4 title {}", quoted(title))
    };
    let settings = [
        "set title 'Percentile spectrum'",
        "set logscale x",
        "set xtics ('50' 2, '90' 10, '99' 100, '99.9' 1000, '99.99' 10000, '99.999' 100000)",
        "set xlabel 'percentile, %'",
        "set ylabel 'ms'",
        "set yrange [0:*]",
    ];
    let series: Vec<String> = titles.iter().enumerate().take(SERIES_MAX).map(series).collect();
    let reset = "unset logscale x\nset xtics autofreq\nset yrange [*:*]\n";
    picture("spectrum", &settings, &series).map(|text| text + reset)
}

fn drawn_requests(titles: &[String]) -> Option<String> {
    let mut series = Vec::new();
    for (index, title) in titles.iter().enumerate().take(SERIES_MAX) {
        let file = format!("'requests.dat' index {index}");
        series.push(format!("{file} using 1:($3==0 ? $2 : 1/0) with points pt 7 ps 0.3 title {}", quoted(title)));
        series.push(format!("{file} using 1:($3==1 ? $2 : 1/0) with points pt 2 ps 1 lc rgb '#c00000' notitle"));
    }
    let settings = [
        "set title 'Requests; crosses failed'",
        "set xlabel 'seconds since the start'",
        "set ylabel 'ms'",
        "set yrange [0:*]",
    ];
    picture("requests", &settings, &series)
}

fn drawn_comparison(titles: &[String], intervals: bool) -> Option<String> {
    let rows = titles.len().min(ROWS_MAX);
    if rows == 0 {
        return None;
    }
    let range = format!("set yrange [{}:-1] noreverse", rows);
    let settings = [
        "set title 'Green is better, red worse, dark grey equivalent, light grey cannot tell'",
        "set xlabel 'change, %'",
        "unset ylabel",
        "set offsets graph 0.05, graph 0.05, 0, 0",
        range.as_str(),
        "set arrow 1 from 0, graph 0 to 0, graph 1 nohead lw 2 lc rgb '#808080'",
        "array Colour[4] = [0x2e7d32, 0xc62828, 0x546e7a, 0xb0bec5]",
    ];
    let file = format!("'comparison.dat' every ::0::{}", rows - 1);
    let mut series = vec![format!("{file} using 2:1:(Colour[$5]):ytic(6) with points pt 7 lc rgb variable notitle")];
    // gnuplot stops at a picture in which a series has not one point.
    if intervals {
        series.push(format!("{file} using 2:1:3:4:(Colour[$5]) with xerrorbars pt 7 lw 2 lc rgb variable notitle"));
    }
    picture("comparison", &settings, &series)
}

#[cfg(test)]
mod tests {
    use super::super::samples;
    use super::*;

    fn file<'a>(files: &'a [(String, String)], name: &str) -> &'a str {
        &files.iter().find(|(of, _)| of == name).unwrap().1
    }

    #[test]
    fn a_script_and_its_data() {
        let files = gnuplot(&samples::compared(), &[samples::evidence(0, "steady"), samples::evidence(1, "steady")]);
        insta::assert_snapshot!(file(&files, "plot.gp"));
        insta::assert_snapshot!(file(&files, "comparison.dat"));
        insta::assert_snapshot!(file(&files, "spectrum.dat"));
        assert_eq!(file(&files, "timeline.dat").split("\n\n\n").count(), 2);
    }

    #[test]
    fn every_line_has_the_columns_of_its_head() {
        let files = gnuplot(&samples::compared(), &[samples::evidence(0, "steady")]);
        for name in ["timeline.dat", "spectrum.dat", "requests.dat"] {
            let mut lines = file(&files, name).lines();
            let columns = lines.next().unwrap().trim_start_matches("# ").split(' ').count();
            for line in lines.filter(|line| !line.starts_with('#') && !line.is_empty()) {
                assert_eq!(line.split(' ').count(), columns, "{name}: {line}");
            }
        }
    }

    #[test]
    fn nothing_measured_draws_nothing() {
        let files = gnuplot(&samples::empty(), &[]);
        assert!(!file(&files, "plot.gp").contains("plot '"));
        assert_eq!(file(&files, "timeline.dat"), TIMELINE_HEAD);
    }

    #[test]
    fn hostile_names_stay_in_quotes() {
        let document = samples::hostile();
        let evidence: Vec<_> = samples::hostile_texts()
            .iter()
            .enumerate()
            .map(|(at, text)| samples::evidence(10 + at as u32, text))
            .collect();
        let files = gnuplot(&document, &evidence);
        let script = file(&files, "plot.gp");
        // Outside of single quotes there is nothing that gnuplot would run.
        for line in script.lines() {
            let outside: String = line.replace("''", "").split('\'').step_by(2).collect();
            assert!(!outside.contains(['`', '@', '!', '\u{1b}']) && !outside.contains("system"), "{line}");
        }
        for (name, text) in &files {
            assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{name}");
        }
        let rows = file(&files, "comparison.dat").lines().skip(1);
        assert!(rows.into_iter().all(|row| row.matches('"').count() == 2));
    }
}
