//! The page of watched JVMs: one line per JVM, a single JVM in full, and events.

use super::cells::{end, mib, share, signed, size};
use super::facts::gib;
use super::next;
use crate::owner;
use crate::page::{Page, Part, Section, Topic};
use crate::record::{
    GrowthRecord, GrowthWord, WatchAccount, WatchChange, WatchCharge, WatchCourse, WatchDocument, WatchOwner,
    WatchPart, WatchProcesses, WatchedJvm,
};
use crate::table::Table;
use crate::units::{Bytes, grouped, roughly, several};
use crate::width::{filled, first, width as wide};
use crate::words::{dash, word_of};

/// Columns of printed output.
const WIDTH: usize = 80;
/// The maximum length of a name, and the length to which it can be truncated in a narrow table.
const NAME_CHARS: (usize, usize) = (44, 12);
/// The minimum width of a sparkline.
const SPARKS_MIN: usize = 8;

/// Why a JVM's growth is unknown; the shortest window that shows it takes three and a half hours.
const NO_HISTORY: &str = "no history yet";

/// The page of watched JVMs: one line per JVM, or all facts if there is only one.
pub fn summarize_watch(document: &WatchDocument) -> Page {
    let mut sections = match document.jvms.as_slice() {
        [] => vec![Section::new(Topic::Answer, "", [Part::Text(nobody(document).to_owned())])],
        [one] => in_full(one, WIDTH, "").into(),
        several => {
            let mut table = lines(&several.iter().collect::<Vec<_>>(), WIDTH);
            if several.iter().any(|jvm| jvm.growth.unsure.starts_with(NO_HISTORY)) {
                table.notes.push(format!("cannot tell: {NO_HISTORY}; run `loadline watch` for at least 4 h."));
            }
            let parts = std::iter::once(Part::Table(table)).chain(next::of_all_watched(several));
            vec![Section::new(Topic::Answer, "", parts)]
        }
    };
    sections.push(Section::new(Topic::Doubts, "", hidden(document).map(Part::Text)));
    let jvms = several(document.jvms.len() as u64, "JVM");
    Page::new(format!("{jvms} watched by loadline {}, {}", document.loadline, document.taken), sections)
}

pub(crate) fn nobody(document: &WatchDocument) -> &'static str {
    match document.hidden {
        0 => "No matching JVM is running on this machine.",
        _ => "No matching JVM that Loadline can read is running on this machine.",
    }
}

/// The number of unexamined processes with the reason, if any.
pub(crate) fn hidden(document: &WatchDocument) -> Option<String> {
    let process = |count| several(count, "process");
    let said = [
        (document.hidden, "could not be read: `loadline doctor` shows which permission is missing."),
        (document.set_aside, "did not respond in time; Loadline will retry."),
        (document.left_out, "were not watched: more JVMs are running than one `loadline watch` can cover."),
    ];
    let said = said.into_iter().filter(|(count, _)| *count > 0);
    let said: Vec<String> = said.map(|(count, why)| format!("{} {why}", process(count))).collect();
    (!said.is_empty()).then(|| said.join(" "))
}

/// One line per JVM, within `width` columns if possible: the least useful columns are dropped first.
pub(crate) fn lines(jvms: &[&WatchedJvm], width: usize) -> Table {
    let row = |jvm: &&WatchedJvm| {
        let now = &jvm.now;
        let limit = jvm.limit.as_ref().filter(|limit| !limit.cgroup.is_empty()).map(|limit| limit.bytes);
        let anon = now.unreclaimable_bytes;
        let sizes = [now.heap_floor_bytes.or(now.heap_used_bytes), anon, now.rss_file_bytes, limit].map(mib);
        let left = jvm.growth.limit_in_s.map_or_else(dash, roughly);
        let owner = jvm.growth.owner.as_ref().filter(|_| width >= 100);
        let owner = owner.map(|owner| format!(", {owner}")).unwrap_or_default();
        let verdict = format!("{}{owner}", verdict_in_short(&jvm.growth));
        let name = end(&jvm.name, NAME_CHARS.0);
        let pid = jvm.pid.to_string();
        [name, pid].into_iter().chain(sizes).chain([share(anon, limit), left, verdict]).collect::<Vec<_>>()
    };
    let head = ["name", "pid", "heap", "anon", "files", "limit", "used", "left", "verdict"];
    let table = Table::new("MiB", head, jvms.iter().map(row)).worded(1, 1);
    let mut table = narrowed(table, width, &["pid", "files", "used", "heap", "limit"], NAME_CHARS.1);
    let over = columns(&table).saturating_sub(width);
    let room = longest_name(&table).saturating_sub(over).max(NAME_CHARS.1);
    table.rows.iter_mut().for_each(|row| row[0] = end(&row[0].to_string(), room).into());
    let note = "heap: in use after the last old GC, or now; anon: memory that cannot be reclaimed; used: anon as a \
        percentage of the limit; left: time to the limit at this rate.";
    table.noted(vec![note.to_owned()])
}

/// Drops columns with these names in order until the table fits. The first column can be truncated to `least`
/// characters.
fn narrowed(mut table: Table, width: usize, spare: &[&str], least: usize) -> Table {
    for name in spare {
        if columns(&table) <= width + longest_name(&table).saturating_sub(least) {
            break;
        }
        table = without(table, name);
    }
    table
}

fn longest_name(table: &Table) -> usize {
    table.rows.iter().map(|row| wide(&row[0].to_string())).max().unwrap_or(0)
}

/// The width of a rendered table.
pub(super) fn columns(table: &Table) -> usize {
    let widest = |column: usize| {
        let cells = table.rows.iter().map(|row| wide(&row[column].to_string()));
        cells.chain([wide(&table.head[column])]).max().unwrap_or(0)
    };
    let room = |column: usize| if table.has_numbers(column) { 1 } else { 2 };
    (0..table.head.len()).map(|column| widest(column) + room(column)).sum()
}

/// A JVM's behavior over time, in a word or two.
fn growth_word(growth: &GrowthRecord) -> String {
    match growth.verdict {
        GrowthWord::Warming | GrowthWord::CannotTell if growth.bytes_per_hour.is_some() => "rises".to_owned(),
        // A JVM with few samples may be warming up, but that word would look like a verdict.
        GrowthWord::Warming if !growth.unsure.is_empty() => "too early".to_owned(),
        verdict => word_of(verdict),
    }
}

/// The verdict in a word, with its pace in MiB per hour: `grows 9.8/h`.
fn verdict_in_short(growth: &GrowthRecord) -> String {
    let pace = growth.bytes_per_hour.filter(|_| growth.near_limit || growth.verdict != GrowthWord::Steady);
    let pace = pace.map_or(String::new(), |slope| format!(" {}/h", mib(slope.max(0.0) as u64)));
    let word = if growth.near_limit { "near limit".to_owned() } else { growth_word(growth) };
    format!("{word}{pace}")
}

/// The verdict as a phrase: `grows by 9.8 MiB an hour, reaching its limit in 31 h to 44 h`.
fn verdict(growth: &GrowthRecord) -> String {
    let limit = growth.limit_in_s.map(|soonest| match growth.limit_in_s_latest {
        Some(latest) => format!(" and will reach its limit in {} to {}", roughly(soonest), roughly(latest)),
        None if growth.bytes_per_hour_low.is_some() => format!(" and is at least {} from its limit", roughly(soonest)),
        None => format!(" and will reach its limit in {} at this rate", roughly(soonest)),
    });
    let near = if growth.near_limit { "near its limit; " } else { "" };
    let pace = growth.bytes_per_hour.filter(|_| growth.verdict != GrowthWord::Steady);
    let pace = pace.map(|slope| format!(" by {} per hour{}", Bytes(slope.max(0.0) as u64), limit.unwrap_or_default()));
    format!("{near}{}{}", growth_word(growth), pace.unwrap_or_default())
}

/// The phrase with its window and owner, for its own line.
pub(crate) fn told(growth: &GrowthRecord) -> String {
    let owner = growth.owner.as_ref().map(|owner| format!(" ({owner})")).unwrap_or_default();
    let window = growth.window_s.map(|window| format!(", observed for {}", roughly(window))).unwrap_or_default();
    let unsure = if growth.unsure.is_empty() { String::new() } else { format!(": {}", growth.unsure) };
    format!("{}{owner}{window}{unsure}", verdict(growth))
}

/// A JVM's memory, and its cgroup's charge by holder, labeled.
pub(crate) fn holds(jvm: &WatchedJvm) -> Vec<(&'static str, String)> {
    let now = &jvm.now;
    let charge = jvm.charge.as_ref();
    let own = charge.map_or(now.unreclaimable_bytes, |charge| Some(charge.jvm_bytes));
    let [own, files, heap] = [own, now.rss_file_bytes, now.heap_used_bytes].map(size);
    let mut facts = vec![("memory", format!("{own} anonymous, {files} in files, {heap} in the heap"))];
    if let Some(limit) = &jvm.limit {
        let part = share(now.unreclaimable_bytes, Some(limit.bytes));
        let of = match limit.cgroup.as_str() {
            "" => format!("none; the machine has {}", gib(limit.bytes)),
            cgroup => format!("{} ({cgroup})", Bytes(limit.bytes)),
        };
        facts.push(("limit", format!("{of}, {part} used by unreclaimable memory")));
    }
    facts.extend(charge.into_iter().flat_map(charged));
    facts
}

/// A charge by holder, and the other processes' commands.
pub(super) fn charged(charge: &WatchCharge) -> Vec<(&'static str, String)> {
    let sizes = [charge.unreclaimable_bytes, charge.jvm_bytes, charge.others_bytes, charge.rest_bytes()];
    let [kept, jvm, others, rest] = sizes.map(Bytes);
    let [all, working] = [charge.bytes, charge.working_set_bytes].map(Bytes);
    let of_command = |of: &WatchProcesses| {
        let number = if of.processes > 1 { format!(" ({} processes)", grouped(of.processes)) } else { String::new() };
        format!("{}{number} {}", of.command, Bytes(of.bytes))
    };
    let commands: Vec<String> = charge.others.iter().map(of_command).collect();
    let text = format!(
        "{kept} unreclaimable (JVM {jvm}, other processes {others}, rest {rest}), charge {all}, working set {working}"
    );
    let helpers = (!commands.is_empty()).then(|| ("helpers", commands.join(", ")));
    std::iter::once(("cgroup", text)).chain(helpers).collect()
}

/// One JVM with all facts, within `width` columns. `glyphs` draw sparklines, from minimum to maximum; if `glyphs` is
/// empty, there are no sparklines.
pub(crate) fn in_full(jvm: &WatchedJvm, width: usize, glyphs: &str) -> [Section; 3] {
    let [first, then] = facts(jvm);
    let answer = [first, next::of_watched(jvm)];
    let held = match &jvm.course {
        Some(course) if !course.parts.is_empty() => parts(jvm, course, width, glyphs),
        _ => by_owner("by owner, from JVM counters, MiB", &jvm.owners),
    };
    let mut memory = vec![Part::Table(held), then];
    if let Some(account) = &jvm.account {
        memory.extend(weighed(account, width, "ago"));
        memory.push(Part::facts([("account", account.file.clone())]));
    }
    let unread = jvm.unreadable.iter().chain(&jvm.set_aside);
    let unread = unread.map(|why| (why.clone(), format!("loadline doctor {}", jvm.pid)));
    [
        Section::new(Topic::Answer, "", answer),
        Section::new(Topic::Memory, "", memory),
        Section::new(Topic::Doubts, "", Part::Doubts(unread.collect()).filled()),
    ]
}

/// Bytes per owner, if nothing else is known about them.
pub(super) fn by_owner(title: &str, owners: &[WatchOwner]) -> Table {
    let owners = owners.iter().map(|owner| vec![owner.name.clone(), mib(owner.bytes)]);
    Table::new(title, ["owner", "size"], owners)
}

/// The JVM's identity and state, and its counters.
fn facts(jvm: &WatchedJvm) -> [Part; 2] {
    let now = &jvm.now;
    // A watch that began after the last old collection gets the heap's floor from the history.
    let kept = jvm.course.iter().flat_map(|course| &course.parts).find(|part| part.name == "heap");
    let floor = match now.heap_floor_bytes.or(kept.and_then(|heap| heap.bytes)) {
        Some(floor) => format!("{} after the last old GC", Bytes(floor)),
        None => "no old GC seen yet".to_owned(),
    };
    let [used, committed, most] = [now.heap_used_bytes, now.heap_committed_bytes, now.heap_max_bytes].map(size);
    let heap = format!("{used} in use of {committed} committed, {floor}, at most {most}");
    let of = [jvm.version.as_deref(), jvm.collector.as_deref()].into_iter().flatten();
    let of = of.map(|word| format!(", {word}")).collect::<String>();
    let counted = [(now.threads, "thread"), (now.classes, "class")];
    let counted = counted.into_iter().filter_map(|(number, thing)| Some(several(number?, thing)));
    let who = format!("{}, pid {}{of}, {} old", jvm.name, jvm.pid, roughly(jvm.age_s));
    let whose = [("jvm", who), ("verdict", told(&jvm.growth))].into_iter().chain(holds(jvm));
    [Part::facts(whose), Part::facts([("heap", heap), ("counts", counted.collect::<Vec<_>>().join(", "))])]
}

/// Each part's bytes, change, and behavior over time.
fn parts(jvm: &WatchedJvm, course: &WatchCourse, width: usize, glyphs: &str) -> Table {
    let row = |part: &WatchPart| {
        let change = |over_s: u64| {
            let change = part.changes.iter().find(|change| change.over_s == over_s);
            change.map_or_else(dash, grown)
        };
        let thing = jvm.things.iter().find(|thing| thing.name == part.name);
        let does = thing.map_or_else(dash, |thing| verdict_in_short(&thing.growth));
        let numbers = [mib(part.bytes), change(600), change(3600), change(86_400), mib(part.bound_bytes)];
        [part_name(&part.name).to_owned()].into_iter().chain(numbers).chain([String::new(), does]).collect()
    };
    let head = ["", "now", "10 min", "1 h", "24 h", "cap", COURSE, "trend"];
    let title = "by part, from JVM counters, MiB";
    let mut table = Table::new(title, head, course.parts.iter().map(row)).worded(1, 2);
    let room = width.saturating_sub(columns(&table) - COURSE.len());
    if glyphs.is_empty() || room < SPARKS_MIN {
        table = narrowed(Table { words: 1, ..without(table, COURSE) }, width, &["24 h", "cap", "1 h"], usize::MAX);
    } else {
        let seen = course.parts.iter().map(|part| part.values.len()).max().unwrap_or(0);
        let drawn = room.min(seen.max(COURSE.len()));
        for (row, part) in table.rows.iter_mut().zip(&course.parts) {
            row[6] = sparks(&part.values, drawn, glyphs).into();
        }
        table.head[6] = first(&format!("last {}", roughly(seen as f64 * course.step_s)), drawn).to_owned();
    }
    table.noted(vec![PARTS_NOTE.to_owned()])
}

/// A part's signed growth.
pub(super) fn grown(change: &WatchChange) -> String {
    signed(change.after_bytes as i64 - change.before_bytes as i64, mib)
}

/// The note that explains the parts of a JVM.
pub(super) const PARTS_NOTE: &str = "memory: not reclaimable; java heap: committed, an upper bound (`loadline \
     account PID` measures it); threads: 128 KiB each; rest: mostly malloc.";

const COURSE: &str = "course";

fn without(mut table: Table, name: &str) -> Table {
    if let Some(at) = table.head.iter().position(|head| head == name) {
        table.head.remove(at);
        table.rows.iter_mut().for_each(|row| drop(row.remove(at)));
    }
    table
}

pub(crate) fn part_name(name: &str) -> &str {
    match name {
        "java_heap" => "java heap",
        "heap" => " after old gc",
        other => other,
    }
}

/// A sparkline from minimum to maximum; flat if the values vary by less than a twentieth.
pub(crate) fn sparks(values: &[Option<u64>], width: usize, glyphs: &str) -> String {
    let glyphs: Vec<char> = glyphs.chars().collect();
    if glyphs.is_empty() || values.is_empty() || width == 0 {
        return String::new();
    }
    let width = width.min(values.len());
    let stretch = |at: usize| &values[at * values.len() / width..(at + 1) * values.len() / width];
    let drawn: Vec<Option<u64>> = (0..width).map(|at| stretch(at).iter().flatten().copied().max()).collect();
    let known = || drawn.iter().flatten().copied();
    let (Some(least), Some(most)) = (known().min(), known().max()) else { return " ".repeat(width) };
    let range = (most - least).max(most / 20).max(1) as f64;
    let glyph = |value: &Option<u64>| match value {
        Some(value) => glyphs[(((value - least) as f64 / range) * (glyphs.len() - 1) as f64).round() as usize],
        None => ' ',
    };
    drawn.iter().map(glyph).collect()
}

/// An account's figures with its age, so that old figures do not look current. Split into two halves side by side if
/// the width allows.
pub(super) fn weighed(account: &WatchAccount, width: usize, since: &str) -> Vec<Part> {
    let ago = format!("{} {since}", roughly(account.age_s));
    let total = mib(account.total_bytes);
    let title = format!("by owner, as weighed {ago}, MiB of {total} resident");
    let owners = account.owners.iter().map(|own| (owner::label(&own.name).to_owned(), own.bytes)).collect();
    let owners = Part::Table(side_by_side(title, "owner", owners, width));
    let title = format!("committed according to Native Memory Tracking, {ago}, MiB");
    let categories = account.nmt.iter().map(|own| (own.name.clone(), own.bytes)).collect();
    let categories = side_by_side(title, "category", categories, width).filled().map(Part::Table);
    std::iter::once(owners).chain(categories).collect()
}

/// Splits many rows into two halves side by side if there is room.
fn side_by_side(title: String, head: &str, rows: Vec<(String, u64)>, width: usize) -> Table {
    let rows: Vec<[String; 2]> = rows.into_iter().map(|(name, bytes)| [name, mib(bytes)]).collect();
    if rows.len() < 6 || width < 70 {
        return Table::new(title, [head, "size"], rows.into_iter().map(Vec::from));
    }
    let half = rows.len().div_ceil(2);
    let cell = |row: &[String; 2]| format!("{} {:>8}", filled(&row[0], 27), row[1]);
    let pair = |at: usize| [rows.get(at), rows.get(half + at)].map(|row| row.map_or(String::new(), cell)).to_vec();
    let head = format!("{head:<27} {:>8}", "size");
    Table::new(title, [head.clone(), head], (0..half).map(pair)).worded(2, 0)
}

/// The number of JVMs by behavior: `4 JVMs watched every 10 s, 1 growing, 1 near the limit`.
pub(crate) fn counted(jvms: &[WatchedJvm], every: &str) -> String {
    let number = |is: &dyn Fn(&WatchedJvm) -> bool| jvms.iter().filter(|jvm| is(jvm)).count() as u64;
    let growing = number(&|jvm| jvm.growth.verdict == GrowthWord::Grows);
    let near = number(&|jvm| jvm.growth.near_limit);
    let mut said = vec![format!("{} watched every {every}", several(jvms.len() as u64, "JVM"))];
    said.extend((growing > 0).then(|| format!("{} growing", grouped(growing))));
    said.extend((near > 0).then(|| format!("{} near the limit", grouped(near))));
    said.join(", ")
}
