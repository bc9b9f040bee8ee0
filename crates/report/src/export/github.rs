//! Output for a GitHub Actions step: a summary (Markdown in `$GITHUB_STEP_SUMMARY`) and annotations, which are commands
//! on stdout: `::error title=Budget failed::rss.loaded is 62.0 MiB …`.

use super::inert::short;
use super::markdown::short_markdown;
use crate::record::{BudgetRecord, BudgetVerdict, Document, FindOutcome, TuneOutcome};
use crate::summary::doubts_by_kind;
use crate::summary::find::told;
use crate::summary::tune_answer;

/// GitHub drops summaries above 1 MiB; this leaves room for the step's other output.
const SUMMARY_BYTES_MAX: usize = 1_000_000;
const CUT: &str = "\nThe summary is cut off here, below the 1 MiB that GitHub shows; the archive has the rest.\n";
const CLOSE: &str = "\n</details>\n";
/// GitHub shows ten annotations of each kind per step.
const ANNOTATIONS_MAX: usize = 10;

/// A step's summary: verdict and budgets are expanded, all other parts collapsed.
pub fn github_summary(document: &Document) -> String {
    cut(short_markdown(document), SUMMARY_BYTES_MAX)
}

/// Whole lines up to the limit, then a note; closes open tags.
fn cut(text: String, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text;
    }
    // Collapsed parts can be nested.
    let room = bytes_max.saturating_sub(CUT.len() + 2 * CLOSE.len());
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        if out.len() + line.len() > room {
            break;
        }
        out.push_str(line);
    }
    // Only Loadline's own lines begin with these tags: untrusted text always follows other characters.
    let opened = out.lines().filter(|line| *line == "<details>").count();
    let closed = out.lines().filter(|line| *line == "</details>").count();
    out.push_str(&CLOSE.repeat(opened.saturating_sub(closed)));
    out.push_str(CUT);
    out
}

/// An error per failed budget and failed trial, a warning per undecided budget and kind of doubt. There are at most ten
/// of each; the last one counts the rest. A notice states the load line found, or a tuning's answer.
pub fn github_annotations(document: &Document) -> String {
    let of_verdict = |verdict| document.budgets.iter().filter(move |of| of.verdict == verdict);
    let mut errors: Vec<String> =
        of_verdict(BudgetVerdict::Fail).map(|of| command("error", "Budget failed", &words(of))).collect();
    for trial in document.trials.iter().filter(|trial| trial.is_failed()) {
        let why = short(trial.why.as_deref().unwrap_or("the trial did not complete"));
        let what = format!("trial {} of {}: {why}", trial.index + 1, short(&trial.configuration));
        errors.push(command("error", "Trial failed", &what));
    }
    let mut warnings: Vec<String> =
        of_verdict(BudgetVerdict::Undecided).map(|of| command("warning", "Budget undecided", &words(of))).collect();
    let mut notices = String::new();
    for (kind, title, text) in searched(document).into_iter().chain(tuned(document)) {
        let command = command(kind, title, &text);
        match kind {
            "error" => errors.insert(0, command),
            "warning" => warnings.insert(0, command),
            _ => notices.push_str(&command),
        }
    }
    for (doubt, more) in doubts_by_kind(document) {
        let others = if more > 0 { format!(" ({more} more like it)") } else { String::new() };
        let what = format!("{}{others}. Next: {}", short(&doubt.text), short(&doubt.next));
        warnings.push(command("warning", "Doubt", &what));
    }
    limited("error", errors) + &limited("warning", warnings) + &notices
}

/// Kind, title, and text of the annotation for a search's result.
fn searched(document: &Document) -> Option<(&'static str, &'static str, String)> {
    let find = document.find.as_ref()?;
    let (kind, title) = match find.outcome {
        FindOutcome::Found | FindOutcome::AtLowerBound => ("notice", "Load line"),
        FindOutcome::Grows => ("error", "No limit passed the soak"),
        FindOutcome::NotHeld | FindOutcome::Never => ("error", "Target missed"),
        FindOutcome::GivenUp => ("warning", "No load line"),
    };
    Some((kind, title, short(&told(find, &document.trials))))
}

/// The same for a tuning.
fn tuned(document: &Document) -> Option<(&'static str, &'static str, String)> {
    let tune = document.tune.as_ref()?;
    let (kind, title) = match tune.outcome {
        TuneOutcome::Proved => ("notice", "Tuned"),
        TuneOutcome::Planned => ("notice", "Tuning planned"),
        TuneOutcome::Unpriced => ("warning", "Cost not confirmed"),
        TuneOutcome::NothingProved => ("warning", "No savings confirmed"),
        TuneOutcome::NotHeld => ("error", "Target missed"),
        TuneOutcome::GivenUp => ("warning", "No tuning result"),
    };
    let text = tune_answer::told_each(tune).iter().map(|text| short(text)).collect::<Vec<_>>().join(" ");
    Some((kind, title, text))
}

fn words(of: &BudgetRecord) -> String {
    format!("{}, configuration {}: {}", short(&of.expression), short(&of.configuration), short(&of.why))
}

fn limited(kind: &str, mut commands: Vec<String>) -> String {
    let all = commands.len();
    if all > ANNOTATIONS_MAX {
        commands.truncate(ANNOTATIONS_MAX - 1);
        let more = all - commands.len();
        commands.push(command(kind, "More", &format!("{more} more; the step's summary lists them all")));
    }
    commands.concat()
}

fn command(kind: &str, title: &str, message: &str) -> String {
    format!("::{kind} title={}::{}\n", property(title), data(message))
}

/// Escapes the text after the second `::`; a line break would end the command and could begin another.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::super::{consumers, samples};
    use super::*;
    use crate::doubt::{Doubt, MemoryPool};
    use crate::record::{ComparisonRecord, DoubtRecord};

    #[test]
    fn a_github_step_shows_annotations_and_a_summary() {
        insta::assert_snapshot!(github_annotations(&samples::compared()));
        let summary = github_summary(&samples::compared());
        assert!(summary.starts_with("### tiny-http, weighed by loadline "), "{summary}");
        assert!(summary.split("####").next().unwrap().contains("- **budget "), "{summary}");
        assert!(summary.contains("<summary>Conditions</summary>"));
        assert!(summary.lines().all(|line| !line.starts_with("# ") && !line.starts_with("## ")));
        assert_eq!(summary.matches("<details>").count(), summary.matches("</details>").count());
        consumers::check_markdown(&summary);
    }

    #[test]
    fn at_most_ten_annotations_of_a_kind_are_printed() {
        let mut document = samples::compared();
        let failed = document.budgets[1].clone();
        document.budgets.extend(std::iter::repeat_n(failed, 24));
        let undecided = document.budgets[2].clone();
        document.budgets.extend(std::iter::repeat_n(undecided, 10));
        let text = github_annotations(&document);
        let of = |kind: &str| text.lines().filter(|line| line.starts_with(kind)).collect::<Vec<_>>();
        assert_eq!(of("::error ").len(), 10);
        assert_eq!(of("::warning ").len(), 10);
        assert!(of("::error ")[9].ends_with("::16 more; the step's summary lists them all"));
        assert!(of("::warning ")[0].starts_with("::warning title=Budget undecided::"));
        assert_eq!(github_annotations(&samples::empty()), "");
    }

    #[test]
    fn each_kind_of_doubt_is_annotated_once() {
        let mut document = samples::empty();
        let doubts = (0..9).map(|n| DoubtRecord::from(Doubt::LogIncomplete { why: n.to_string() }));
        document.doubts.extend(doubts);
        document
            .doubts
            .push(Doubt::OutOfMemoryError { error: "Java heap space".to_owned(), pool: MemoryPool::Other }.into());
        let text = github_annotations(&document);
        assert_eq!(text.lines().count(), 2, "{text}");
        assert!(text.contains(" (8 more like it). Next: "), "{text}");
    }

    #[test]
    fn a_search_or_tuning_result_is_one_annotation() {
        let of_search = |outcome: FindOutcome| match outcome {
            FindOutcome::Found | FindOutcome::AtLowerBound => "::notice title=Load line::",
            FindOutcome::Grows => "::error title=No limit passed the soak::",
            FindOutcome::NotHeld | FindOutcome::Never => "::error title=Target missed::",
            FindOutcome::GivenUp => "::warning title=No load line::",
        };
        let of_tuning = |outcome: TuneOutcome| match outcome {
            TuneOutcome::Proved => "::notice title=Tuned::Set `MALLOC_ARENA_MAX=1 ",
            TuneOutcome::Unpriced => "::warning title=Cost not confirmed::Do not set `MALLOC_ARENA_MAX=1 ",
            TuneOutcome::NothingProved => "::warning title=No savings confirmed::",
            TuneOutcome::NotHeld => "::error title=Target missed::",
            TuneOutcome::Planned => "::notice title=Tuning planned::",
            TuneOutcome::GivenUp => "::warning title=No tuning result::",
        };
        for (expect, document) in samples::endings(of_search, of_tuning) {
            let text = github_annotations(&document);
            assert!(text.starts_with(expect) && text.lines().count() == 1, "{expect}: {text}");
        }
    }

    #[test]
    fn line_breaks_in_github_commands_are_escaped() {
        assert_eq!(data("100%\r\n::x"), "100%25%0D%0A::x");
        assert_eq!(property("a:b,c%"), "a%3Ab%2Cc%25");
    }

    #[test]
    fn a_long_summary_is_truncated_at_a_line_and_closed() {
        let mut document = samples::compared();
        let row = ComparisonRecord { primary: false, ..document.comparisons[0].clone() };
        document.comparisons.extend(std::iter::repeat_n(row, 20_000));
        let text = github_summary(&document);
        assert!(text.len() <= SUMMARY_BYTES_MAX, "{}", text.len());
        assert!(text.len() > SUMMARY_BYTES_MAX - 1_000);
        assert!(text.ends_with(CUT));
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        assert_eq!(cut("a\nbb\n".to_owned(), 100), "a\nbb\n");
        let long = format!("<details>\n{}", "x\n".repeat(200));
        let cut = cut(long, 300);
        assert!(cut.len() <= 300 && cut.contains("</details>"), "{cut}");
    }
}
