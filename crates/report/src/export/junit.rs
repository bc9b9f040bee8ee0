//! JUnit XML, which every CI system shows: a test case per budget, trial, search, and tuning. Failed checks are
//! failures, undecided ones are skipped, and failed trials are errors.
//!
//! A case's numbers are in its `system-out`. The strictest consumer, the schema of Jenkins' xUnit plugin, allows
//! `properties` only in a suite, and no `skipped` in the root. The optional `time`, `timestamp`, and `hostname` are
//! omitted: cases have no test time, and reports of one archive must be identical.

use super::super::quantity::plain;
use super::super::words::name_of;
use super::inert::short;
use crate::record::{
    BudgetRecord, BudgetVerdict, Document, FindOutcome, FindRecord, Outcome, Trial, TuneOutcome, TuneRecord,
};
use crate::summary::find::told;
use crate::summary::tune_answer;
use crate::units::visible;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::borrow::Cow;
use std::io;

type Xml = Writer<Vec<u8>>;
type WriteResult = io::Result<()>;

#[derive(Debug)]
struct Case {
    name: String,
    /// `None` if it passed.
    trouble: Option<Trouble>,
    /// Named numbers; omits empty ones.
    numbers: Option<Vec<(&'static str, String)>>,
}

/// Why a case did not pass.
#[derive(Debug)]
struct Trouble {
    /// `failure` for a failed check, else `error` or `skipped`.
    element: &'static str,
    message: String,
    /// Its type and details; a skipped case has neither.
    more: Option<(&'static str, String)>,
}

impl Trouble {
    fn skipped(message: String) -> Option<Self> {
        Some(Self { element: "skipped", message, more: None })
    }

    fn failure(kind: &'static str, message: String) -> Option<Self> {
        Some(Self { element: "failure", more: Some((kind, message.clone())), message })
    }
}

/// Four suites, `loadline.tune`, `loadline.find`, `loadline.budget`, and `loadline.trial`; empty ones are omitted.
pub fn junit(document: &Document) -> String {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    // Writing to memory cannot fail; a failure would be visible as an empty file.
    match write(&mut xml, document) {
        Ok(()) => String::from_utf8(xml.into_inner()).unwrap_or_default() + "\n",
        Err(_) => String::new(),
    }
}

fn write(xml: &mut Xml, document: &Document) -> WriteResult {
    let scenario = &document.conditions.scenario;
    let mut suites: Vec<(&str, Vec<Case>)> = vec![
        ("loadline.tune", document.tune.iter().map(|of| tuning(of, scenario)).collect()),
        ("loadline.find", document.find.iter().map(|of| search(of, &document.trials)).collect()),
        ("loadline.budget", document.budgets.iter().map(budget).collect()),
        ("loadline.trial", document.trials.iter().map(trial).collect()),
    ];
    suites.retain(|(_, cases)| !cases.is_empty());
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let name = format!("loadline {}", visible(&document.conditions.scenario));
    let all: Vec<&Case> = suites.iter().flat_map(|(_, cases)| cases).collect();
    // The root has no `skipped`.
    let root = xml.create_element("testsuites").with_attributes(attributes(&name, &all).into_iter().take(4));
    if suites.is_empty() {
        return root.write_empty().map(|_| ());
    }
    root.write_inner_content(|xml| {
        for (name, cases) in &suites {
            let all: Vec<&Case> = cases.iter().collect();
            let suite = xml.create_element("testsuite").with_attributes(attributes(name, &all));
            suite.write_inner_content(|xml| {
                properties(xml, document)?;
                cases.iter().try_for_each(|case| write_case(xml, name, case))
            })?;
        }
        Ok(())
    })?;
    Ok(())
}

fn attributes<'a>(name: &'a str, cases: &[&Case]) -> Vec<(&'a str, Cow<'a, str>)> {
    let count =
        |element: &str| cases.iter().filter_map(|of| of.trouble.as_ref()).filter(|of| of.element == element).count();
    let counts = [
        ("tests", cases.len()),
        ("failures", count("failure")),
        ("errors", count("error")),
        ("skipped", count("skipped")),
    ];
    let counts = counts.into_iter().map(|(key, count)| (key, Cow::Owned(count.to_string())));
    std::iter::once(("name", Cow::Borrowed(name))).chain(counts).collect()
}

/// The known conditions.
fn properties(xml: &mut Xml, document: &Document) -> WriteResult {
    let of = &document.conditions;
    let all = [
        ("loadline", of.loadline.clone()),
        ("scenario", of.scenario.clone()),
        ("started", of.started.clone()),
        ("machine.cores", of.machine.cores.to_string()),
        ("machine.memory_bytes", of.machine.memory_bytes.to_string()),
        ("machine.kernel", of.machine.kernel.clone()),
        ("seed", of.seed.to_string()),
        ("command", of.command.clone()),
    ];
    xml.create_element("properties").write_inner_content(|xml| {
        for (name, value) in all.iter().filter(|(_, value)| !value.is_empty()) {
            let property = xml.create_element("property").with_attribute(("name", *name));
            property.with_attribute(("value", visible(value).as_str())).write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

fn write_case(xml: &mut Xml, class: &str, of: &Case) -> WriteResult {
    let case = xml.create_element("testcase").with_attributes([("classname", class), ("name", of.name.as_str())]);
    if of.trouble.is_none() && of.numbers.is_none() {
        return case.write_empty().map(|_| ());
    }
    case.write_inner_content(|xml| {
        if let Some(Trouble { element, message, more }) = &of.trouble {
            let trouble = xml.create_element(*element).with_attribute(("message", message.as_str()));
            match more {
                None => trouble.write_empty()?,
                Some((kind, text)) => {
                    trouble.with_attribute(("type", *kind)).write_text_content(BytesText::new(text))?
                }
            };
        }
        if let Some(numbers) = &of.numbers {
            let known = numbers.iter().filter(|(_, number)| !number.is_empty());
            let text: Vec<String> = known.map(|(name, number)| format!("{name}={}", visible(number))).collect();
            xml.create_element("system-out").write_text_content(BytesText::new(&text.join("\n")))?;
        }
        Ok(())
    })?;
    Ok(())
}

fn budget(of: &BudgetRecord) -> Case {
    let name = format!("{}: {}", visible(&of.configuration), visible(&of.expression));
    let message = short(&of.why);
    let trouble = match of.verdict {
        BudgetVerdict::Pass => None,
        BudgetVerdict::Fail => {
            let more = Some(("budget failed", format!("{name}\n{message}")));
            Some(Trouble { element: "failure", message, more })
        }
        BudgetVerdict::Undecided => Trouble::skipped(message),
    };
    let unit = if of.relative { Some("share of the baseline".to_owned()) } else { of.unit.map(name_of) };
    let numbers = vec![
        ("metric", of.metric.clone().unwrap_or_default()),
        ("unit", unit.unwrap_or_default()),
        ("value", plain(of.value)),
        ("low", plain(of.low)),
        ("high", plain(of.high)),
        ("bound", plain(of.bound)),
        ("trials", of.trials.to_string()),
    ];
    Case { name, trouble, numbers: Some(numbers) }
}

/// A search's result; skipped if it ran out of trials before it found a line.
fn search(of: &FindRecord, trials: &[Trial]) -> Case {
    let message = short(&told(of, trials));
    let trouble = match of.outcome {
        FindOutcome::Found | FindOutcome::AtLowerBound => None,
        FindOutcome::Grows => Trouble::failure("no limit passed the soak", message),
        FindOutcome::NotHeld | FindOutcome::Never => Trouble::failure("target missed", message),
        FindOutcome::GivenUp => Trouble::skipped(message),
    };
    let line = of.line.as_ref();
    let numbers = [
        ("limit_bytes", of.limit_bytes),
        ("line_bytes", line.map(|line| line.limit_bytes)),
        ("heap_bytes", line.and_then(|line| line.heap_bytes)),
        ("below_bytes", line.and_then(|line| line.below_bytes)),
        ("held", line.map(|line| u64::from(line.held))),
        ("tried", line.map(|line| u64::from(line.tried()))),
        ("warm_bytes", of.warm.as_ref().map(|warm| warm.limit_bytes)),
        ("trials", Some(u64::from(of.trials))),
    ];
    let numbers = numbers.map(|(name, number)| (name, number.map(|number| number.to_string()).unwrap_or_default()));
    Case { name: format!("load line of {}", visible(&of.configuration)), trouble, numbers: Some(numbers.into()) }
}

/// A tuning's result; skipped if it has no answer or is a plan.
fn tuning(of: &TuneRecord, scenario: &str) -> Case {
    let message = short(&tune_answer::told(of));
    let trouble = match of.outcome {
        TuneOutcome::Proved => None,
        TuneOutcome::Unpriced | TuneOutcome::NothingProved => Trouble::failure("no savings confirmed", message),
        TuneOutcome::NotHeld => Trouble::failure("target missed", message),
        TuneOutcome::Planned | TuneOutcome::GivenUp => Trouble::skipped(message),
    };
    let gain = tune_answer::objective_gain(of);
    let numbers = [
        ("objective", of.objective.word().to_owned()),
        ("as_is", plain(gain.map(|gain| gain.baseline_median))),
        ("tuned", plain(gain.map(|gain| gain.candidate_median))),
        ("low", plain(gain.and_then(|gain| gain.low))),
        ("high", plain(gain.and_then(|gain| gain.high))),
        ("trials", of.trials.to_string()),
    ];
    Case { name: format!("tuning of {}", visible(scenario)), trouble, numbers: Some(numbers.into()) }
}

fn trial(of: &Trial) -> Case {
    let message = short(of.why.as_deref().unwrap_or("the trial did not complete"));
    let kind = match of.outcome {
        Outcome::Killed => "killed because memory ran out",
        Outcome::Aborted => "aborted",
        Outcome::SubjectFailed | Outcome::Completed => "subject failed",
    };
    let last_lines = of.end.iter().flat_map(|end| &end.last_lines).map(|line| short(line));
    let text = std::iter::once(message.clone()).chain(last_lines).collect::<Vec<_>>().join("\n");
    let trouble = of.is_failed().then_some(Trouble { element: "error", message, more: Some((kind, text)) });
    Case { name: format!("trial {}: {}", of.index + 1, visible(&of.configuration)), trouble, numbers: None }
}

#[cfg(test)]
mod tests {
    use super::super::{consumers, samples};
    use super::*;

    #[test]
    fn budgets_and_trials_are_junit_cases() {
        insta::assert_snapshot!(junit(&samples::compared()));
        insta::assert_snapshot!(junit(&samples::failing()));
    }

    #[test]
    fn a_junit_report_without_measurements_has_no_suites() {
        let text = junit(&samples::empty());
        let root = consumers::check_junit(&text);
        assert_eq!(root.attribute("tests"), "0");
        assert!(root.children.is_empty());
    }

    #[test]
    fn junit_contains_the_verdicts() {
        let root = consumers::check_junit(&junit(&samples::compared()));
        assert_eq!(root.attribute("failures"), "1");
        assert_eq!(root.children[0].attribute("skipped"), "1");
        let failed = &root.children[0].cases()[1];
        assert_eq!(failed.attribute("name"), "g1: rss.loaded<=60MiB");
        assert_eq!(failed.child("failure").unwrap().attribute("message"), "62.0 MiB against 60.0 MiB");
        let root = consumers::check_junit(&junit(&samples::failing()));
        assert_eq!(root.attribute("errors"), "1");
    }

    #[test]
    fn searches_and_tunings_are_junit_cases_without_trial_errors() {
        let of_search = |outcome: FindOutcome| match outcome {
            FindOutcome::Found | FindOutcome::AtLowerBound => None,
            FindOutcome::Grows | FindOutcome::NotHeld | FindOutcome::Never => Some("failure"),
            FindOutcome::GivenUp => Some("skipped"),
        };
        let of_tuning = |outcome: TuneOutcome| match outcome {
            TuneOutcome::Proved => None,
            TuneOutcome::Unpriced | TuneOutcome::NothingProved | TuneOutcome::NotHeld => Some("failure"),
            TuneOutcome::Planned | TuneOutcome::GivenUp => Some("skipped"),
        };
        for (expect, document) in samples::endings(of_search, of_tuning) {
            let root = consumers::check_junit(&junit(&document));
            let case = root.children[0].cases()[0];
            let trouble = ["failure", "skipped"].into_iter().find(|name| case.child(name).is_some());
            assert_eq!((trouble, root.attribute("errors")), (expect, "0"), "{:?} {:?}", document.find, document.tune);
        }
    }

    #[test]
    fn hostile_text_is_escaped_in_junit() {
        let root = consumers::check_junit(&junit(&samples::hostile()));
        let script = samples::hostile_texts().remove(0);
        let names: Vec<_> = root.children[0].cases().iter().map(|case| case.attribute("name")).collect();
        assert!(names.contains(&format!("{script}: {script}").as_str()), "{names:?}");
    }
}
