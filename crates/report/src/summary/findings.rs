//! The findings in trials or an account that are most worth a reader's time.

use super::cells::told_mark;
use super::explanation;
use crate::page::{Depth, Fold, Part, Section, Topic};
use crate::record::{ExplanationRecord, Finding, FindingRecord, OfTrials, RuledOutRecord, Trial, each_once};
use crate::units::{Bytes, several};
use loadline_base::order::Order as _;

/// Findings on a screen.
const SHOWN_MAX: usize = 3;

/// A finding below this fraction of RSS is only a hint (reciprocal).
const HINT_SHARE: u64 = 20;

/// The findings, heaviest first; empty if even the first one is a hint.
pub(super) fn weighty(found: &[FindingRecord], rss_bytes: u64) -> &[FindingRecord] {
    let is_hint = |one: &FindingRecord| !one.finding.is_risk() && one.worth_bytes() < rss_bytes / HINT_SHARE;
    if found.first().is_some_and(is_hint) { &[] } else { found }
}

/// RSS of the only trial; 0 for several, whose findings differ in more than weight.
pub(super) fn rss_of(trials: &[Trial]) -> u64 {
    let [only] = trials else { return 0 };
    told_mark(only).map_or(0, |mark| mark.rss_bytes)
}

pub(super) struct Findings<'a> {
    pub(super) found: &'a [FindingRecord],
    pub(super) ruled_out: &'a [RuledOutRecord],
    /// Results of the profiler and heap dump per configuration ("" for an account); empty without `explain`.
    pub(super) explained: Vec<(&'a str, &'a ExplanationRecord)>,
    /// Whether findings name their configuration, because there are several.
    pub(super) named: bool,
    /// Whether they directly follow the answer.
    pub(super) first: bool,
    /// A large unexplained owner, with the next command if the answer lacks it.
    pub(super) open: Option<String>,
    /// The number of compared configurations, or 0. A finding that all of them have is not part of the answer.
    pub(super) compared: usize,
    /// RSS, relative to which findings are hints; 0 for several trials.
    pub(super) rss_bytes: u64,
}

impl Findings<'_> {
    /// The section of findings with next steps. Includes the ruled-out causes if they are the answer or there is room.
    /// With `explain`, the section is the answer, and each finding names its code in the same sentence.
    pub(super) fn section(&self, depth: Depth) -> Section {
        let is_first = self.first || !self.explained.is_empty();
        // Below another answer, or on a page, hints do not displace anything.
        let weighty = if is_first && !depth.whole { weighty(self.found, self.rss_bytes) } else { self.found };
        let found: Vec<&FindingRecord> = weighty.iter().filter(|one| !self.is_common(one)).collect();
        let shown = shown(&found);
        let line = |one: &&FindingRecord| {
            let of = self.explained.iter().find(|(configuration, _)| *configuration == one.configuration());
            let code = of.and_then(|(_, explained)| explanation::code_behind(one, explained));
            let code = code.map(|code| format!("; {code}")).unwrap_or_default();
            (format!("{}{}{code}", self.whose(&one.of), told(one)), one.next.clone())
        };
        let list = Part::Doubts(shown.iter().map(line).collect()).filled();
        let hints = self.found.len() - weighty.len();
        let more = more(shown.len(), found.len() + hints - shown.len(), weighty.len() - found.len()).map(Part::Text);
        let has_room = depth.whole || self.first && !depth.brief;
        let none = weighty.is_empty() && self.first;
        let against = if has_room || none { self.considered() } else { None };
        // With `explain`, the code above may be a cause without a rule.
        let nothing = || match self.explained.is_empty() {
            true => "Nothing: no known cause of extra memory use applies.".to_owned(),
            false => "Nothing beyond the code listed above.".to_owned(),
        };
        let open = self.open.as_ref().map(|open| format!("No known cause explains the {open}."));
        let none = open.or_else(|| none.then(nothing)).map(Part::Text);
        let parts = list.into_iter().chain(none).chain(more).chain(against);
        let topic = if is_first { Topic::Answer } else { Topic::StandsOut };
        Section::new(topic, "what stands out", parts).id("findings")
    }

    /// Whether all compared configurations have this finding. With `explain`, each names its own code and counts.
    fn is_common(&self, one: &FindingRecord) -> bool {
        let alike = self.found.iter().filter(|other| other.finding.is_like(&one.finding));
        let with = alike.map(FindingRecord::configuration);
        self.explained.is_empty() && each_once(with).len() == self.compared
    }

    /// Ruled-out causes with evidence, if any.
    fn considered(&self) -> Option<Part> {
        let text = |one: &RuledOutRecord| format!("{}{}", self.whose(&one.of), one.text);
        let fact = |one: &RuledOutRecord| (format!("{}:", one.kind.replace('_', " ")), text(one));
        let facts = Part::Facts(self.ruled_out.iter().map(fact).collect()).filled();
        Part::Section(Section::new(Topic::StandsOut, "considered and ruled out", facts).folded(Fold::Closed)).filled()
    }

    /// The configuration's name before a finding: `serial: `.
    fn whose(&self, of: &Option<OfTrials>) -> String {
        of.iter().filter(|_| self.named).map(|of| format!("{}: ", of.configuration)).collect()
    }
}

/// How many findings are omitted besides those shown: lighter ones, and those that every configuration has.
fn more(shown: usize, light: usize, common: usize) -> Option<String> {
    let what = if shown > 0 { "more finding" } else { "finding" };
    let of = |count: usize, which: &str| (count > 0).then(|| format!("{} {which}", several(count as u64, what)));
    let left = [of(light, "with smaller savings"), of(common, "that apply to every configuration")];
    let left: Vec<String> = left.into_iter().flatten().collect();
    (!left.is_empty()).then(|| format!("{}; `--json` lists them all.", left.join(", ")))
}

/// The findings that fit on a screen: round-robin over configurations.
fn shown<'a>(found: &[&'a FindingRecord]) -> Vec<&'a FindingRecord> {
    let mut ranked: Vec<(usize, &FindingRecord)> = Vec::new();
    for configuration in each_once(found.iter().map(|one| one.configuration())) {
        ranked.extend(found.iter().copied().filter(|one| one.configuration() == configuration).enumerate());
    }
    let place = |one: &FindingRecord| found.iter().position(|other| std::ptr::eq(one, *other));
    ranked.order_by_key(|(rank, _)| *rank);
    ranked.truncate(SHOWN_MAX);
    ranked.order_by_key(|(_, one)| place(one));
    ranked.into_iter().map(|(_, one)| one).collect()
}

fn told(found: &FindingRecord) -> String {
    let gain = found.gain_bytes_max.filter(|bytes| *bytes > 0);
    // A heap with fewer live objects than were seen can return more, and fewer arenas also retain less next time.
    let can_be_more = matches!(
        found.finding,
        Finding::HeapFarAboveLive { .. } | Finding::HeapFree { .. } | Finding::MallocRetained { .. }
    );
    let bound = if can_be_more { "about" } else { "up to" };
    let gain = gain.map(|bytes| format!("could save {bound} {}", Bytes(bytes)));
    let alike = found.of.as_ref().map_or(0, |of| of.trials_alike);
    let alike = (alike > 1).then(|| format!("in {alike} trials"));
    let notes: Vec<String> = gain.into_iter().chain(alike).collect();
    let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
    format!("{}{notes}", found.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::written;
    use crate::page::Page;
    use crate::record::Finding;
    use crate::terminal::render;

    #[test]
    fn a_comparison_omits_findings_common_to_all_configurations() {
        let of = |configuration: &str, loader: &str| FindingRecord {
            finding: Finding::LoadersKeepComing { loader: loader.to_owned(), spans: Vec::new(), live_after_gc: None },
            of: Some(OfTrials { configuration: configuration.to_owned(), trial: 0, trials_alike: 2 }),
            text: loader.to_owned(),
            next: String::new(),
            costs_bytes: 0,
            gain_bytes_max: None,
            remedies: Vec::new(),
        };
        let found = [of("a", "x"), of("b", "x"), of("b", "y")];
        let told = |compared: usize| {
            let explained = Vec::new();
            let findings = Findings {
                found: &found,
                ruled_out: &[],
                explained,
                named: true,
                first: false,
                open: None,
                compared,
                rss_bytes: 0,
            };
            render(&Page::new("a page", [findings.section(Depth::default())]))
        };
        let text = told(2);
        assert!(!text.contains("a: ") && text.contains("b: "), "{text}");
        assert!(text.contains("2 more findings that apply to every configuration; `--json` lists them all."), "{text}");
        assert!(told(3).contains("a: ") && told(0).contains("a: "));
    }

    #[test]
    fn ruled_out_findings_are_shown_only_with_complete_lists() {
        let of = OfTrials { configuration: "small".to_owned(), trial: 0, trials_alike: 1 };
        let text = "a full GC freed 1 of 60 MiB & more".to_owned();
        let ruled_out = [RuledOutRecord { kind: "native_held_by_garbage".to_owned(), of: Some(of), text }];
        let findings = Findings {
            found: &[],
            ruled_out: &ruled_out,
            explained: Vec::new(),
            named: true,
            first: false,
            open: None,
            compared: 0,
            rss_bytes: 0,
        };
        let page = |whole| Page::new("a page", [findings.section(Depth { whole, ..Depth::default() })]);
        let html = written(&page(true), "0", false);
        let told = html.contains("native held by garbage") && html.contains("small: a full GC freed 1 of 60 MiB &amp;");
        assert!(told && html.contains("considered and ruled out"), "{html}");
        assert!(!render(&page(false)).contains("ruled out"));
        assert!(page(false).sections.is_empty(), "ruled-out findings alone give no section");
    }

    #[test]
    fn minor_findings_are_shown_only_with_others() {
        let of = |costs_bytes: u64| FindingRecord {
            finding: Finding::HeapFree { free_bytes: costs_bytes, committed_bytes: None, rested: false },
            of: None,
            text: format!("{costs_bytes} bytes"),
            next: String::new(),
            costs_bytes,
            gain_bytes_max: None,
            remedies: Vec::new(),
        };
        let told = |found: &[FindingRecord]| {
            let (ruled_out, explained) = (&[][..], Vec::new());
            let (named, first, open, compared, rss_bytes) = (false, true, None, 0, 2_000);
            let findings = Findings { found, ruled_out, explained, named, first, open, compared, rss_bytes };
            render(&Page::new("a page", [findings.section(Depth::default())]))
        };
        let alone = told(&[of(99)]);
        assert!(
            alone.contains("Nothing: no known cause") && alone.contains("1 finding with smaller savings"),
            "{alone}"
        );
        let both = told(&[of(100), of(99)]);
        assert!(both.contains("100 bytes") && both.contains("99 bytes") && !both.contains("more finding"), "{both}");
    }
}
