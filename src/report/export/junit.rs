//! JUnit XML, which every CI system shows: a test case for each budget, each trial and a search. One that failed is a
//! failure, undecided is skipped, a trial that failed is an error.
//!
//! Numbers of a case stand in its `system-out`: the schema of Jenkins' xUnit plugin, the strictest reader, takes
//! `properties` in a suite only, and `skipped` not in the root. `time`, `timestamp` and `hostname` are left out:
//! they are optional, nothing here is a test's time, and two reports of one archive are to be equal.

use super::super::quantity::{plain, unit_name};
use super::inert::{short, visible};
use crate::record::{BudgetRecord, BudgetVerdict, Document, FindOutcome, FindRecord, Outcome, Trial};
use crate::report::summary::find::told;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};
use std::borrow::Cow;
use std::io;

type Xml = Writer<Vec<u8>>;
type Written = io::Result<()>;

/// How the cases of a suite went; the attributes of an element, of which the root has no `skipped`.
#[derive(Debug, Default)]
struct Counts {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

/// Three suites, `loadline.find`, `loadline.budget` and `loadline.trial`; one without cases is left out.
pub fn junit(document: &Document) -> String {
    let mut xml = Writer::new_with_indent(Vec::new(), b' ', 2);
    // Writing to memory cannot fail; an empty file would be the visible sign.
    match write(&mut xml, document) {
        Ok(()) => String::from_utf8(xml.into_inner()).unwrap_or_default() + "\n",
        Err(_) => String::new(),
    }
}

fn write(xml: &mut Xml, document: &Document) -> Written {
    let (budgets, trials, find) = (budget_counts(document), trial_counts(document), find_counts(document));
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let all = Counts {
        tests: budgets.tests + trials.tests + find.tests,
        failures: budgets.failures + trials.failures + find.failures,
        errors: budgets.errors + trials.errors,
        skipped: budgets.skipped + trials.skipped + find.skipped,
    };
    let name = format!("loadline {}", visible(&document.conditions.scenario));
    let root = xml.create_element("testsuites").with_attributes(attributes(&name, &all).into_iter().take(4));
    if all.tests == 0 {
        return root.write_empty().map(|_| ());
    }
    root.write_inner_content(|xml| {
        if let Some(of) = &document.find {
            let suite = xml.create_element("testsuite").with_attributes(attributes("loadline.find", &find));
            suite.write_inner_content(|xml| {
                properties(xml, &conditions(document))?;
                search(xml, of, &document.trials)
            })?;
        }
        if budgets.tests > 0 {
            let suite = xml.create_element("testsuite").with_attributes(attributes("loadline.budget", &budgets));
            suite.write_inner_content(|xml| {
                properties(xml, &conditions(document))?;
                document.budgets.iter().try_for_each(|of| budget(xml, of))
            })?;
        }
        if trials.tests > 0 {
            let suite = xml.create_element("testsuite").with_attributes(attributes("loadline.trial", &trials));
            suite.write_inner_content(|xml| {
                properties(xml, &conditions(document))?;
                document.trials.iter().try_for_each(|of| trial(xml, of))
            })?;
        }
        Ok(())
    })?;
    Ok(())
}

fn attributes<'a>(name: &'a str, counts: &Counts) -> Vec<(&'a str, Cow<'a, str>)> {
    let mut found = vec![("name", Cow::Borrowed(name))];
    for (key, count) in
        [("tests", counts.tests), ("failures", counts.failures), ("errors", counts.errors), ("skipped", counts.skipped)]
    {
        found.push((key, Cow::Owned(count.to_string())));
    }
    found
}

fn budget_counts(document: &Document) -> Counts {
    let count = |verdict| document.budgets.iter().filter(|of| of.verdict == verdict).count();
    Counts {
        tests: document.budgets.len(),
        failures: count(BudgetVerdict::Fail),
        errors: 0,
        skipped: count(BudgetVerdict::Undecided),
    }
}

fn trial_counts(document: &Document) -> Counts {
    let errors = document.trials.iter().filter(|trial| trial.is_failed()).count();
    Counts { tests: document.trials.len(), errors, ..Counts::default() }
}

fn find_counts(document: &Document) -> Counts {
    let is = |outcomes: &[FindOutcome]| {
        usize::from(document.find.as_ref().is_some_and(|find| outcomes.contains(&find.outcome)))
    };
    Counts {
        tests: usize::from(document.find.is_some()),
        failures: is(&[FindOutcome::NotHeld, FindOutcome::Never]),
        errors: 0,
        skipped: is(&[FindOutcome::GivenUp]),
    }
}

fn conditions(document: &Document) -> Vec<(&'static str, String)> {
    let of = &document.conditions;
    vec![
        ("loadline", of.loadline.clone()),
        ("scenario", of.scenario.clone()),
        ("started", of.started.clone()),
        ("machine.cores", of.machine.cores.to_string()),
        ("machine.memory_bytes", of.machine.memory_bytes.to_string()),
        ("machine.kernel", of.machine.kernel.clone()),
        ("seed", of.seed.to_string()),
        ("command", of.command.clone()),
    ]
}

fn properties(xml: &mut Xml, of: &[(&str, String)]) -> Written {
    let known: Vec<_> = of.iter().filter(|(_, value)| !value.is_empty()).collect();
    if known.is_empty() {
        return Ok(());
    }
    xml.create_element("properties").write_inner_content(|xml| {
        for (name, value) in known {
            let property = xml.create_element("property").with_attribute(("name", *name));
            property.with_attribute(("value", visible(value).as_str())).write_empty()?;
        }
        Ok(())
    })?;
    Ok(())
}

fn budget(xml: &mut Xml, of: &BudgetRecord) -> Written {
    let name = format!("{}: {}", visible(&of.configuration), visible(&of.expression));
    let case = [("classname", "loadline.budget"), ("name", name.as_str())];
    xml.create_element("testcase").with_attributes(case).write_inner_content(|xml| {
        let why = short(&of.why);
        match of.verdict {
            BudgetVerdict::Pass => {}
            BudgetVerdict::Fail => {
                let failure = [("message", why.as_str()), ("type", "budget failed")];
                let text = format!("{name}\n{why}");
                let text = BytesText::new(&text);
                xml.create_element("failure").with_attributes(failure).write_text_content(text)?;
            }
            BudgetVerdict::Undecided => {
                xml.create_element("skipped").with_attribute(("message", why.as_str())).write_empty()?;
            }
        }
        let numbers = budget_numbers(of).into_iter().filter(|(_, number)| !number.is_empty());
        let text: Vec<String> = numbers.map(|(name, number)| format!("{name}={}", visible(&number))).collect();
        xml.create_element("system-out").write_text_content(BytesText::new(&text.join("\n")))?;
        Ok(())
    })?;
    Ok(())
}

fn budget_numbers(of: &BudgetRecord) -> Vec<(&'static str, String)> {
    let unit = if of.relative { Some("share of the baseline") } else { of.unit.map(unit_name) };
    vec![
        ("metric", of.metric.clone().unwrap_or_default()),
        ("unit", unit.unwrap_or_default().to_owned()),
        ("value", plain(of.value)),
        ("low", plain(of.low)),
        ("high", plain(of.high)),
        ("bound", plain(of.bound)),
        ("trials", of.trials.to_string()),
    ]
}

/// The answer of a search: one that found no line for want of trials is skipped.
fn search(xml: &mut Xml, of: &FindRecord, trials: &[Trial]) -> Written {
    let name = format!("load line of {}", visible(&of.configuration));
    let case = [("classname", "loadline.find"), ("name", name.as_str())];
    xml.create_element("testcase").with_attributes(case).write_inner_content(|xml| {
        let why = short(&told(of, trials));
        match of.outcome {
            FindOutcome::Found | FindOutcome::AtLowerBound => {}
            FindOutcome::NotHeld | FindOutcome::Never => {
                let failure = [("message", why.as_str()), ("type", "target not held")];
                xml.create_element("failure").with_attributes(failure).write_text_content(BytesText::new(&why))?;
            }
            FindOutcome::GivenUp => {
                xml.create_element("skipped").with_attribute(("message", why.as_str())).write_empty()?;
            }
        }
        let text: Vec<String> = find_numbers(of).into_iter().map(|(name, number)| format!("{name}={number}")).collect();
        xml.create_element("system-out").write_text_content(BytesText::new(&text.join("\n")))?;
        Ok(())
    })?;
    Ok(())
}

fn find_numbers(of: &FindRecord) -> Vec<(&'static str, String)> {
    let line = of.line.as_ref();
    let known = [
        ("limit_bytes", of.limit_bytes),
        ("line_bytes", line.map(|line| line.limit_bytes)),
        ("heap_bytes", line.and_then(|line| line.heap_bytes)),
        ("below_bytes", line.and_then(|line| line.below_bytes)),
        ("held", line.map(|line| u64::from(line.held))),
        ("warm_bytes", of.warm.as_ref().map(|warm| warm.limit_bytes)),
        ("trials", Some(u64::from(of.trials))),
    ];
    known.into_iter().filter_map(|(name, number)| Some((name, number?.to_string()))).collect()
}

fn trial(xml: &mut Xml, of: &Trial) -> Written {
    let name = format!("trial {}: {}", of.index + 1, visible(&of.configuration));
    let case = [("classname", "loadline.trial"), ("name", name.as_str())];
    let case = xml.create_element("testcase").with_attributes(case);
    if !of.is_failed() {
        return case.write_empty().map(|_| ());
    }
    case.write_inner_content(|xml| {
        let why = short(of.why.as_deref().unwrap_or("it did not complete"));
        let kind = match of.outcome {
            Outcome::Killed => "killed for memory",
            Outcome::Aborted => "aborted",
            Outcome::SubjectFailed | Outcome::Completed => "subject failed",
        };
        let error = xml.create_element("error").with_attributes([("message", why.as_str()), ("type", kind)]);
        let last_lines = of.end.iter().flat_map(|end| &end.last_lines).map(|line| short(line));
        let text = std::iter::once(why.clone()).chain(last_lines).collect::<Vec<_>>().join("\n");
        error.write_text_content(BytesText::new(&text))?;
        Ok(())
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{consumers, samples};
    use super::*;
    use crate::report::find_sample;

    #[test]
    fn budgets_and_trials_are_cases() {
        insta::assert_snapshot!(junit(&samples::compared()));
        insta::assert_snapshot!(junit(&samples::failing()));
    }

    #[test]
    fn nothing_measured_is_a_report_without_suites() {
        let text = junit(&samples::empty());
        let root = consumers::check_junit(&text);
        assert_eq!(root.attribute("tests"), "0");
        assert!(root.children.is_empty());
    }

    #[test]
    fn verdicts_reach_the_consumer() {
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
    fn a_search_is_a_case_and_its_trials_are_no_errors() {
        for (outcome, document) in find_sample::endings() {
            let root = consumers::check_junit(&junit(&document));
            let case = root.children[0].cases()[0];
            let expect = match outcome {
                FindOutcome::Found | FindOutcome::AtLowerBound => None,
                FindOutcome::NotHeld | FindOutcome::Never => Some("failure"),
                FindOutcome::GivenUp => Some("skipped"),
            };
            let verdict = ["failure", "skipped"].into_iter().find(|name| case.child(name).is_some());
            assert_eq!(verdict, expect, "{outcome:?}");
            assert_eq!(root.attribute("errors"), "0", "{outcome:?}");
        }
        for text in samples::hostile_texts() {
            consumers::check_junit(&junit(&find_sample::hostile(&text)));
        }
    }

    #[test]
    fn hostile_text_stays_where_it_belongs() {
        let document = samples::hostile();
        let root = consumers::check_junit(&junit(&document));
        let cases = root.children.iter().map(|suite| suite.cases().len()).sum::<usize>();
        assert_eq!(cases, document.budgets.len() + document.trials.len());
        let script = samples::hostile_texts().remove(0);
        let names: Vec<_> = root.children[0].cases().iter().map(|case| case.attribute("name")).collect();
        assert!(names.contains(&format!("{script}: {script}").as_str()), "{names:?}");
    }
}
