//! Charts of a tuning: the steps from the unchanged subject to the answer, one per kept remedy; and memory against CPU
//! for every measured setting.

use super::model::{Anchor, Axis, Chart, Figure, Item, Panel, Sign};
use super::owners;
use super::palette::owner_style;
use super::scale::Scale;
use super::thin::{Point, WIDTH};
use super::values::MIB;
use crate::owner::{label, place};
use crate::quantity::{change, shown, signed};
use crate::record::{Document, Fate, OwnerBytes, RemedyRecord, SettingRecord, TuneRecord, Unit};
use crate::summary::tune::NO_PROOF;
use crate::summary::tune_answer::{AS_IS, objective_gain, objective_words};
use crate::table::Table;
use crate::units::shortened;
use crate::words::dash;
use loadline_base::order::Order as _;

/// Row height of the steps, in tenths of a pixel.
const ROW: u32 = 420;
/// Maximum steps; the last one includes all others.
const STEPS_MAX: usize = 24;
/// Steps that print as 0.0 MiB are omitted.
const STEP_BYTES_MIN: f64 = 0.05 * MIB;
/// Owners named when hovering over a step.
const OWNERS_MAX: usize = 4;
const FRONT_HEIGHT: u32 = 260;
const POINTS_MAX: usize = 200;
const NAME_CHARS: usize = 40;
/// The answer's name, which replaces its remedies.
const ANSWER: &str = "the answer";

/// The charts; empty without measurements.
pub(crate) fn tunes(document: &Document) -> Vec<Figure> {
    let Some(tune) = &document.tune else { return Vec::new() };
    waterfall(tune).into_iter().chain(front(tune)).collect()
}

// ---- The steps ----

/// A step, from and to this many bytes.
struct WaterfallStep {
    name: String,
    from: f64,
    to: f64,
    /// Bytes saved per owner, largest first; empty if no two settings differ only in this remedy.
    owners: Vec<(String, f64)>,
}

impl WaterfallStep {
    /// The change in bytes, with its sign.
    fn change(&self) -> String {
        signed(Unit::Bytes, Some(self.to - self.from))
    }

    /// The owners with the largest changes.
    fn owners(&self) -> Option<String> {
        let told = |(owner, lost): &(String, f64)| format!("{} {}", label(owner), signed(Unit::Bytes, Some(-lost)));
        let told: Vec<String> = self.owners.iter().take(OWNERS_MAX).map(told).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}

/// The answer's remedies in table order.
fn kept(tune: &TuneRecord) -> Vec<&RemedyRecord> {
    tune.remedies.iter().filter(|of| of.fate == Fate::Kept).collect()
}

fn setting_of<'a>(tune: &'a TuneRecord, ids: &[&str]) -> Option<&'a SettingRecord> {
    let same =
        |of: &&SettingRecord| of.remedies.len() == ids.len() && of.remedies.iter().all(|id| ids.contains(&&**id));
    tune.path.iter().chain(&tune.front).find(same)
}

/// The memory of the answer, as measured in its confirmation.
fn confirmed(tune: &TuneRecord) -> Option<f64> {
    objective_gain(tune).filter(|gain| gain.unit == Unit::Bytes).map(|gain| gain.candidate_median)
}

/// Bytes saved per owner by a remedy. They come from the two settings that differ only in that remedy and have the most
/// other remedies.
fn moved_by(tune: &TuneRecord, id: &str) -> Vec<(String, f64)> {
    let mut with: Vec<&SettingRecord> = tune.path.iter().filter(|of| of.remedies.iter().any(|own| own == id)).collect();
    with.largest_first(|of| of.remedies.len());
    let pair = with.into_iter().find_map(|of| {
        let others: Vec<&str> = of.remedies.iter().map(String::as_str).filter(|own| *own != id).collect();
        Some((setting_of(tune, &others)?, of))
    });
    let Some((without, with)) = pair else { return Vec::new() };
    let held = |of: &OwnerBytes| with.owners.iter().find(|other| other.owner == of.owner).map_or(0.0, |of| of.bytes);
    let mut lost: Vec<(String, f64)> =
        without.owners.iter().map(|of| (of.owner.clone(), of.bytes - held(of))).filter(|of| of.1.is_finite()).collect();
    lost.order_by(|left, right| right.1.abs().total_cmp(&left.1.abs()));
    lost.retain(|of| of.1.abs() >= STEP_BYTES_MIN);
    lost
}

/// The steps from the unchanged subject to the answer: one per remedy, and one for savings or losses that only
/// their combination causes.
fn steps(tune: &TuneRecord, before: f64, after: f64) -> Vec<WaterfallStep> {
    let mut kept = kept(tune);
    let weight = |of: &RemedyRecord| of.saved_bytes.filter(|bytes| bytes.is_finite()).unwrap_or(0.0);
    kept.order_by(|left, right| weight(right).total_cmp(&weight(left)));
    let mut at = before;
    let mut found = Vec::new();
    for of in kept.into_iter().take(STEPS_MAX).filter(|of| weight(of).abs() >= STEP_BYTES_MIN) {
        let to = at - weight(of);
        found.push(WaterfallStep { name: of.id.clone(), from: at, to, owners: moved_by(tune, &of.id) });
        at = to;
    }
    if (at - after).abs() >= STEP_BYTES_MIN {
        found.push(WaterfallStep { name: "together".to_owned(), from: at, to: after, owners: Vec::new() });
    }
    found
}

fn waterfall(tune: &TuneRecord) -> Option<Figure> {
    let weighed =
        |of: &SettingRecord| of.bytes.filter(|bytes| bytes.is_finite()).map(|bytes| (of.owners.clone(), bytes));
    let (owners_before, before) = tune.as_is.as_ref().and_then(weighed)?;
    let ids: Vec<&str> = kept(tune).iter().map(|of| of.id.as_str()).collect();
    // If the search did not measure exactly these remedies, the owners are unknown.
    let winner = setting_of(tune, &ids).and_then(weighed);
    let winner = winner.or_else(|| Some((Vec::new(), confirmed(tune).filter(|bytes| bytes.is_finite())?)));
    let (owners_after, after) = winner.filter(|_| !ids.is_empty())?;
    let steps = steps(tune, before, after);
    let ends = steps.iter().flat_map(|step| [step.from, step.to]).chain([before, after]);
    let x = Axis::new(Scale::from_zero(ends.map(|bytes| bytes / MIB)), "MiB", " MiB", 8);
    let mut items = row(0, AS_IS, shown(Unit::Bytes, Some(before)));
    items.extend(stacked(&owners_before, before, &x, 170));
    for (at, step) in steps.iter().enumerate() {
        let top = (at as u32 + 1) * ROW;
        items.extend(row(top, &step.name, step.change()));
        items.push(stretch(step, &x, top + 170));
    }
    let top = (steps.len() as u32 + 1) * ROW;
    items.extend(row(top, ANSWER, shown(Unit::Bytes, Some(after))));
    items.extend(stacked(&owners_after, after, &x, top + 170));
    let chart = Chart {
        name: "tuning-steps".to_owned(),
        title: format!("{} from {AS_IS} to the answer, by remedy and owner", objective_words(tune.objective).0),
        description: "One bar for the original settings and one for the answer, both split by owner. Between them is \
            a step for each remedy kept, in the color of the owner that it reduces most."
            .to_owned(),
        x: Some(x),
        panels: vec![Panel::rows((top + ROW) / 10, items)],
        legend: owners_legend(&owners_before, &owners_after),
        ..Chart::default()
    };
    Some(Figure { chart, table: steps_table(before, &steps, after) })
}

/// A name at the left and a number at the right, above a bar.
fn row(top: u32, name: &str, number: String) -> Vec<Item> {
    vec![
        Item::words((0, top + 120), Anchor::Start, shortened(name, NAME_CHARS), "strong"),
        Item::words((WIDTH, top + 120), Anchor::End, number, ""),
    ]
}

/// A bar divided by owner; undivided if the owners are unknown.
fn stacked(owners: &[OwnerBytes], total: f64, x: &Axis, top: u32) -> Vec<Item> {
    let mut parts: Vec<(&str, f64)> = owners.iter().map(|of| (of.owner.as_str(), of.bytes)).collect();
    parts.retain(|(_, bytes)| *bytes > 0.0);
    parts.order_by_key(|(name, _)| (place(name), *name));
    if parts.is_empty() {
        parts.push(("", total));
    }
    owners::bar(parts.into_iter(), x, top, false)
}

/// A step between its levels. A step that adds memory uses the style for worse.
fn stretch(step: &WaterfallStep, x: &Axis, top: u32) -> Item {
    let (from, to) = (x.across(step.from / MIB), x.across(step.to / MIB));
    let style = match step.owners.first() {
        _ if step.to > step.from => ("v-worse".to_owned(), false),
        Some((owner, _)) => owner_style(owner),
        None => ("o-other".to_owned(), false),
    };
    let words = format!("{}: {}", step.name, step.change());
    let words = step.owners().map_or(words.clone(), |owners| format!("{words}; {owners}"));
    Item::part((from.min(to), from.max(to).max(from.min(to) + 1)), top, style, words)
}

/// The owners of both bars, in account order.
fn owners_legend(before: &[OwnerBytes], after: &[OwnerBytes]) -> Vec<(Sign, String)> {
    let held = before.iter().chain(after).filter(|owner| owner.bytes > 0.0);
    let names = owners::in_order(held.map(|owner| owner.owner.as_str()));
    names.into_iter().map(|name| owners::key(name, label(name).to_owned())).collect()
}

fn steps_table(before: f64, steps: &[WaterfallStep], after: f64) -> Table {
    let mib = |bytes: f64| shown(Unit::Bytes, Some(bytes));
    let end = |name: &str, bytes: f64| vec![name.to_owned(), dash(), mib(bytes), dash()];
    let row = |of: &WaterfallStep| vec![of.name.clone(), of.change(), mib(of.to), of.owners().unwrap_or_else(dash)];
    let rows = std::iter::once(end(AS_IS, before)).chain(steps.iter().map(row)).chain([end(ANSWER, after)]);
    let notes =
        ["From the trials of the search: each step includes the other settings of its trial. together: the combined \
            savings of all remedies."
            .to_owned()];
    Table::new("Steps as a table", ["step", "change", "then", "owners"], rows).worded(1, 1).noted(notes)
}

// ---- Memory against CPU ----

/// A setting with its position: MiB, and the change in CPU time in percent.
struct SettingPoint<'a> {
    of: &'a SettingRecord,
    mib: f64,
    cpu: f64,
    is_on_front: bool,
}

fn front(tune: &TuneRecord) -> Option<Figure> {
    let mut points: Vec<SettingPoint<'_>> = Vec::new();
    let on_front = tune.front.iter().map(|of| (of, true));
    for (of, is_on_front) in on_front.chain(tune.path.iter().map(|of| (of, false))) {
        let number = of.bytes.zip(of.cpu_ratio).filter(|(bytes, ratio)| bytes.is_finite() && ratio.is_finite());
        let Some((bytes, ratio)) = number else { continue };
        let is_new = points.iter().all(|point| point.of.remedies != of.remedies);
        if is_new && points.len() < POINTS_MAX {
            points.push(SettingPoint { of, mib: bytes / MIB, cpu: (ratio - 1.0) * 100.0, is_on_front });
        }
    }
    if points.len() < 2 {
        return None;
    }
    let what = objective_words(tune.objective).0;
    let x =
        Axis::new(Scale::around(points.iter().map(|of| of.mib)), &format!("{what}, MiB  \u{2190} better"), " MiB", 6);
    let price = (tune.price * 100.0).clamp(0.0, 100.0);
    let y = Axis::new(Scale::around(points.iter().map(|of| of.cpu).chain([0.0, price])), "", "%", 6).signed("");
    let y_title = format!("CPU per request relative to {AS_IS}, %  \u{2193} better");
    let price_words = format!("price {price:.1}%");
    let mut items = Item::bound(y.down(price, FRONT_HEIGHT), price_words.clone(), price_words).to_vec();
    let mut taken: Vec<Point> = Vec::new();
    for point in &points {
        let at = (x.across(point.mib), y.down(point.cpu, FRONT_HEIGHT));
        items.extend(point_items(tune, point, at, &mut taken));
    }
    let chart = Chart {
        name: "tuning-front".to_owned(),
        title: format!("{what} vs. CPU per request, for every setting that was measured"),
        description:
            "One point per setting: filled if no other setting that met the target uses less memory without more CPU, \
                gray if one does, hollow if the target was missed."
                .to_owned(),
        panels: vec![Panel::plot(y_title, y, FRONT_HEIGHT, items)],
        x: Some(x),
        legend: front_legend(&points),
        ..Chart::default()
    };
    Some(Figure { chart, table: front_table(tune, &points) })
}

fn class(point: &SettingPoint<'_>) -> &'static str {
    match (point.of.holds, point.is_on_front) {
        (false, _) => "failed",
        (true, true) => "held",
        (true, false) => "dominated",
    }
}

/// The name of a setting: its difference from the answer.
fn name(tune: &TuneRecord, of: &SettingRecord) -> String {
    let ids: Vec<&str> = kept(tune).iter().map(|of| of.id.as_str()).collect();
    let more: Vec<&str> = of.remedies.iter().map(String::as_str).filter(|id| !ids.contains(id)).collect();
    let less: Vec<&str> = ids.iter().copied().filter(|id| !of.remedies.iter().any(|own| own == id)).collect();
    match (more.as_slice(), less.as_slice()) {
        _ if of.remedies.is_empty() => AS_IS.to_owned(),
        ([], []) => ANSWER.to_owned(),
        (more, []) if !ids.is_empty() => format!("with {}", more.join(", ")),
        ([], less) => format!("without {}", less.join(", ")),
        _ => of.remedies.join(", "),
    }
}

fn point_items(tune: &TuneRecord, point: &SettingPoint<'_>, at: Point, taken: &mut Vec<Point>) -> Vec<Item> {
    let name = name(tune, point.of);
    let shape = match name.as_str() {
        AS_IS => 1,
        ANSWER => 2,
        _ => 0,
    };
    let words = format!("{name}: {:.1} MiB, CPU per request {}", point.mib, change(point.of.cpu_ratio));
    let mut items = vec![Item::mark(at, shape, class(point), words)];
    items.extend(point.is_on_front.then(|| Item::beside(at, &name, "strong", taken)));
    items
}

fn front_legend(points: &[SettingPoint<'_>]) -> Vec<(Sign, String)> {
    let known = [
        ("held", "no other setting uses less memory without more CPU"),
        ("dominated", "another setting is at least as good on both"),
        ("failed", "the target was missed"),
    ];
    let seen = known.into_iter().filter(|(class_of, _)| points.iter().any(|point| class(point) == *class_of));
    seen.map(|(class_of, words)| (Sign::Mark(0, class_of.to_owned()), words.to_owned())).collect()
}

fn front_table(tune: &TuneRecord, points: &[SettingPoint<'_>]) -> Table {
    let row = |point: &SettingPoint<'_>| {
        vec![
            name(tune, point.of),
            format!("{:.1}", point.mib),
            change(point.of.cpu_ratio),
            if point.of.holds { "yes" } else { "no" }.to_owned(),
            if point.is_on_front { "yes" } else { "no" }.to_owned(),
        ]
    };
    let head = ["setting", "MiB", "CPU per request", "met", "lowest at its cost"];
    let notes = [NO_PROOF.to_owned()];
    Table::new("Settings as a table", head, points.iter().map(row)).worded(1, 2).noted(notes)
}

#[cfg(test)]
mod tests {
    use super::super::svg;
    use super::*;
    use crate::record::TuneOutcome;
    use crate::tune_sample;

    #[test]
    fn the_tuning_chart_has_a_step_for_each_remedy() {
        let document = tune_sample::proved();
        let [steps, front] = &tunes(&document)[..] else { panic!("expected two charts") };
        insta::assert_snapshot!(svg::fluid(&steps.chart).as_str().replace('>', ">\n"));
        let names: Vec<String> = steps.table.rows.iter().map(|row| row[0].to_string()).collect();
        assert_eq!(names, ["baseline", "malloc.trim", "heap.max", "malloc.arenas", "the answer"]);
        // Each step ends where the next one begins; the last one ends at the answer.
        assert_eq!(steps.table.rows[3][2], "1000.2 MiB");
        assert_eq!(steps.table.rows[3][2], steps.table.rows[4][2]);
        assert!(steps.table.rows[1][3].to_string().starts_with("malloc retained "), "{:?}", steps.table.rows[1]);
        assert_eq!(front.table.rows.len(), document.tune.unwrap().path.len());
    }

    #[test]
    fn the_memory_and_cpu_chart_names_what_distinguishes_each_setting() {
        let document = tune_sample::proved();
        let front = &tunes(&document)[1];
        let names: Vec<String> = front.table.rows.iter().map(|row| row[0].to_string()).collect();
        assert_eq!(names[..3], ["baseline", "the answer", "with jit.c1"]);
        let apart = ["without malloc.trim", "with gc.parallel"];
        assert!(apart.iter().all(|name| names.iter().any(|other| other == name)), "{names:?}");
        let words = |item: &&Item| matches!(item, Item::Words { class, .. } if class == "strong");
        assert_eq!(front.chart.panels[0].items.iter().filter(words).count(), 3, "only points on the front have names");
        let classes: Vec<&str> = front.chart.panels[0]
            .items
            .iter()
            .filter_map(|item| if let Item::Mark { class, .. } = item { Some(class.as_str()) } else { None })
            .collect();
        assert_eq!(classes.iter().filter(|class| **class == "failed").count(), 1);
    }

    #[test]
    fn the_chart_marks_remedies_that_save_less_together() {
        let mut document = tune_sample::proved();
        let tune = document.tune.as_mut().unwrap();
        for of in tune.remedies.iter_mut().filter(|of| of.id == "malloc.trim") {
            of.saved_bytes = Some(300.0 * MIB);
        }
        let steps = &tunes(&document)[0].table.rows;
        let together = steps.iter().find(|row| row[0] == "together").unwrap();
        assert!(together[1].to_string().starts_with("+91."), "{together:?}");
    }

    #[test]
    fn an_unmeasured_answer_is_drawn_from_its_confirmation() {
        let mut document = tune_sample::proved();
        let tune = document.tune.as_mut().unwrap();
        tune.path.retain(|of| of.remedies != tune_sample::WINNER);
        tune.front.retain(|of| of.remedies != tune_sample::WINNER);
        let rows = &tunes(&document)[0].table.rows;
        assert_eq!(rows.last().unwrap()[2], "1000.7 MiB");
        assert_eq!(rows[rows.len() - 2][2], "1000.7 MiB");
    }

    #[test]
    fn every_ending_and_any_text_can_be_drawn() {
        for (outcome, document) in tune_sample::endings() {
            let count = tunes(&document).len();
            match outcome {
                TuneOutcome::Proved | TuneOutcome::Unpriced => assert_eq!(count, 2),
                TuneOutcome::NothingProved | TuneOutcome::GivenUp => assert_eq!(count, 1),
                TuneOutcome::NotHeld | TuneOutcome::Planned => assert_eq!(count, 0),
            }
        }
        for figure in tunes(&tune_sample::hostile("<script>x</script>\u{1b}[31m")) {
            assert!(!svg::fluid(&figure.chart).as_str().contains("<script"));
        }
    }

    #[test]
    fn a_tuning_without_finite_values_has_no_chart() {
        let mut document = tune_sample::proved();
        let tune = document.tune.as_mut().unwrap();
        for of in tune.path.iter_mut().chain(&mut tune.front).chain(&mut tune.as_is) {
            (of.bytes, of.cpu_ratio) = (Some(f64::NAN), Some(f64::INFINITY));
        }
        assert!(tunes(&document).is_empty());
    }
}
