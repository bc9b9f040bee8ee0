//! Finds nameable holders in the dominator tree: a cut through the tree, with similar parts merged.
//!
//! Roots, threads, classes, and class loaders hold much, but naming them says little, so the nodes below them are
//! named. From there, the walk descends while a single child retains nearly everything.

use crate::cast::{Cast, Extra};
use crate::classes::{ClassRole, Meaning};
use crate::dominators::NONE;
use crate::summary::{Amount, ClassAmount};
use loadline_base::java_names::{is_of_jdk, plain_class};
use loadline_base::order::Order as _;
use std::collections::{HashMap, HashSet};

/// A child that retains at least this percentage of its parent's retained size replaces the parent.
const NEARLY_ALL_OF_PARENT: u128 = 90;
/// Such a child must also retain this percentage of the path's head, which ends a long path of small losses.
const NEARLY_ALL_OF_HEAD: u128 = 75;
/// A child becomes a separate part if it retains at least this percentage of the parent's retained size, less that of
/// larger children.
const APART: u64 = 25;
/// Parts with less than this percentage of the whole heap are not examined further.
const LARGE: u64 = 1;
/// Parts with less than this share of the whole heap, per mille, are grouped by package.
const SMALL_PER_MILLE: u64 = 5;
/// Total steps toward the roots for all shared objects; objects beyond that have an unknown origin.
const STEPS_MAX: u64 = 40_000_000;
const STEPS_MAX_EACH: u64 = 1_000;
/// The maximum number of classes listed per holder.
const CLASSES_MAX: usize = 10;

/// The dominator tree, numbered by the walk, with the known facts about its nodes.
pub(crate) struct Tree<'a> {
    pub(crate) cast: &'a Cast,
    pub(crate) nodes: &'a [u32],
    pub(crate) dominators: &'a [u32],
    /// [`NONE`] if the node is not an object.
    pub(crate) classes: &'a [u32],
    pub(crate) units: &'a [u32],
    pub(crate) unit_bytes: u64,
    /// The predecessor of each number on a shortest path; the first one is its own predecessor.
    pub(crate) before: &'a [u32],
    /// Keys of thread-locals by entry, as numbers.
    pub(crate) keys: &'a HashMap<u32, u32>,
}

/// The title that names a part; parts with the same title are merged. Texts are indices into [`Words`].
///
/// An object shared by several holders is named after the origin of a shortest path to it. Two maps of one kind in
/// different fields (`by`) are two holders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Title {
    Static(u32),
    Frame { threads: u32, method: u32 },
    ThreadLocal { threads: u32, key: u32 },
    Thread(u32),
    ClassLoader(u32),
    Classes(u32),
    Small(u32),
    JniGlobal(u32),
    OtherRoot(u32),
    Jointly { origin: u32, class: u32, by: u32 },
}

/// The key of a group is its title. A part split off from a group adds that group's number and its own class.
type Key = (Title, Option<(u32, u32)>);

/// Similar parts of the heap.
struct Group {
    title: Title,
    members: u64,
    largest: u32,
    threads: HashSet<u32>,
    loaders: HashSet<u32>,
    amount: Amount,
}

pub(crate) struct Draft {
    pub(crate) title: Title,
    pub(crate) members: u64,
    /// The thread, if there is only one.
    pub(crate) thread: Option<u32>,
    /// The number of the node at the end of the path; [`NONE`] if there is no path.
    pub(crate) end: u32,
    pub(crate) retained: Amount,
    pub(crate) consists_of: Vec<ClassAmount>,
}

/// Interned strings.
#[derive(Default)]
pub(crate) struct Words {
    numbers: HashMap<String, u32>,
    texts: Vec<String>,
}

impl Words {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }

    pub(crate) fn get(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("?", String::as_str)
    }
}

/// `web-17` becomes `web-*`, and `http-10.0.0.1-exec-3` becomes `http-*-exec-*`.
pub(crate) fn pattern(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    let mut rest = name.chars().peekable();
    while let Some(c) = rest.next() {
        // The dots of an IP address belong to its number.
        let is_within = c == '.' && pattern.ends_with('*') && rest.peek().is_some_and(char::is_ascii_digit);
        if !c.is_ascii_digit() && !is_within {
            pattern.push(c);
        } else if !pattern.ends_with('*') {
            pattern.push('*');
        }
    }
    pattern
}

/// The origins of shortest paths that begin neither at a field nor at a thread.
const OF_JVM: [&str; 7] =
    ["JNI globals", "monitors", "reflection", "other roots", "class loaders", "(far from any root)", "(no root)"];
const THE_JVM: &str = "the JVM and class loaders";

/// The first two packages of a class name: `org.hibernate.*` for `org.hibernate.internal.Registry.INSTANCE`.
fn packages(name: &str) -> String {
    if is_of_jdk(name) {
        return "the JDK".to_owned();
    }
    if OF_JVM.contains(&name) {
        return THE_JVM.to_owned();
    }
    if name.starts_with("thread ") {
        return "threads".to_owned();
    }
    let is_package = |part: &&str| part.starts_with(|c: char| c.is_ascii_lowercase() && !part.contains(' '));
    let packages: Vec<&str> = name.split('.').take_while(is_package).take(2).collect();
    match packages.len() {
        0 => "classes without a package".to_owned(),
        _ => packages.join(".") + ".*",
    }
}

/// The state of the search for holders.
struct Search<'a> {
    tree: &'a Tree<'a>,
    /// In units of the alignment.
    retained: Vec<u64>,
    /// The child that retains most.
    heaviest: Vec<u32>,
    large: u64,
    /// Large children other than the heaviest.
    others: HashMap<u32, Vec<u32>>,
    words: Words,
    patterns: HashMap<u32, u32>,
    origins: HashMap<(u32, u32), u32>,
    groups: Vec<Group>,
    by_key: HashMap<Key, u32>,
    steps: u64,
    last_origin: (u32, u32),
}

/// The holders with the most bytes, and the words of their titles.
pub(crate) fn holders(tree: &Tree<'_>, count_max: usize) -> (Vec<Draft>, Words) {
    let mut search = Search::new(tree);
    let heads = search.large_heads();
    let apart = search.told_apart(heads);
    let mut owners = search.owners(&apart);
    search.gather_small(&mut owners);
    let chosen = search.chosen(count_max);
    let parts = search.consists_of(&owners, &chosen);
    let drafts = chosen.iter().zip(parts).map(|(group, consists_of)| {
        let Group { title, members, largest, threads, loaders, amount } = &search.groups[*group as usize];
        let end = if *largest == NONE { NONE } else { search.followed(*largest) };
        let thread = threads.iter().next().copied().filter(|_| threads.len() == 1);
        let wholes = threads.len().max(loaders.len()) as u64;
        let members = if wholes > 0 { wholes } else { *members };
        Draft { title: *title, members, thread, end, retained: *amount, consists_of }
    });
    let drafts = drafts.collect();
    (drafts, search.words)
}

impl<'a> Search<'a> {
    fn new(tree: &'a Tree<'a>) -> Self {
        let count = tree.nodes.len();
        let mut retained: Vec<u64> = tree.units.iter().map(|units| u64::from(*units)).collect();
        let mut heaviest = vec![NONE; count];
        for number in (1..count).rev() {
            let parent = tree.dominators[number] as usize;
            retained[parent] += retained[number];
            let rival = heaviest[parent];
            if rival == NONE || retained[rival as usize] <= retained[number] {
                heaviest[parent] = number as u32;
            }
        }
        let large = retained.first().map_or(1, |all| (all * LARGE / 100).max(1));
        Self {
            tree,
            retained,
            heaviest,
            large,
            others: HashMap::new(),
            words: Words::default(),
            patterns: HashMap::new(),
            origins: HashMap::new(),
            groups: Vec::new(),
            by_key: HashMap::new(),
            steps: 0,
            last_origin: (NONE, NONE),
        }
    }

    fn extra(&self, number: u32) -> Option<Extra> {
        self.tree.cast.extra(self.tree.nodes[number as usize])
    }

    fn class_name(&self, number: u32) -> &'a str {
        let class = self.tree.classes[number as usize];
        if class == NONE { "?" } else { plain_class(&self.tree.cast.classes.get(class).name) }
    }

    fn meaning(&self, number: u32) -> (Meaning, ClassRole) {
        match self.tree.classes[number as usize] {
            NONE => (Meaning::None, ClassRole::None),
            class => {
                let class = self.tree.cast.classes.get(class);
                (class.meaning, class.part)
            }
        }
    }

    /// Whether its name means little, so the nodes below it are named instead. Called only if its parent is passed.
    fn is_passed(&self, number: u32) -> bool {
        let node = self.tree.nodes[number as usize];
        match self.tree.cast.extra(node) {
            Some(Extra::Frame { .. } | Extra::Static { .. }) => false,
            Some(_) => true,
            None => {
                let (meaning, part) = self.meaning(number);
                let is_class = Some(self.tree.classes[number as usize]) == self.tree.cast.classes.class;
                let is_thread = meaning == Meaning::Thread && self.tree.cast.thread_of_node.contains_key(&node);
                is_class || is_thread || meaning == Meaning::ClassLoader || self.is_of_thread_locals(number, part)
            }
        }
    }

    fn is_of_thread_locals(&self, number: u32, part: ClassRole) -> bool {
        matches!(part, ClassRole::ThreadLocalMap | ClassRole::ThreadLocalTable) && self.thread_of(number).is_some()
    }

    /// The nearby thread that dominates a node.
    fn thread_of(&self, number: u32) -> Option<u32> {
        let mut at = number;
        for _ in 0..4 {
            if let Some(thread) = self.tree.cast.thread_of_node.get(&self.tree.nodes[at as usize]) {
                return Some(*thread);
            }
            at = self.tree.dominators[at as usize];
        }
        None
    }

    /// Heads of large parts: children of passed nodes.
    fn large_heads(&mut self) -> Vec<u32> {
        let mut passed = HashSet::from([0]);
        let mut heads = Vec::new();
        for number in 1..self.tree.nodes.len() as u32 {
            if self.retained[number as usize] < self.large {
                continue;
            }
            let parent = self.tree.dominators[number as usize];
            if self.heaviest[parent as usize] != number {
                self.others.entry(parent).or_default().push(number);
            }
            if passed.contains(&parent) {
                if self.is_passed(number) {
                    passed.insert(number);
                } else {
                    heads.push(number);
                }
            }
        }
        heads
    }

    /// Follows the path down from `head` while a single child retains nearly everything.
    fn followed(&self, head: u32) -> u32 {
        let mut at = head;
        let mut above = NONE;
        loop {
            let child = self.heaviest[at as usize];
            if child == NONE {
                return at;
            }
            let class = self.tree.classes[child as usize];
            // The nodes of a list have the same class, or alternate between two classes.
            let is_alike = class != NONE && (class == self.tree.classes[at as usize] || class == above);
            above = self.tree.classes[at as usize];
            let of = |parent: u32, percent: u128| {
                u128::from(self.retained[child as usize]) * 100 >= u128::from(self.retained[parent as usize]) * percent
            };
            if is_alike || !of(at, NEARLY_ALL_OF_PARENT) || !of(head, NEARLY_ALL_OF_HEAD) {
                return at;
            }
            at = child;
        }
    }

    /// Finds large, dissimilar parts within large parts. Maps each to the head above it.
    fn told_apart(&self, mut heads: Vec<u32>) -> HashMap<u32, u32> {
        let mut apart = HashMap::new();
        while let Some(head) = heads.pop() {
            let end = self.followed(head);
            let heaviest = Some(self.heaviest[end as usize]).filter(|child| *child != NONE);
            let children = heaviest.into_iter().chain(self.others.get(&end).into_iter().flatten().copied());
            let mut large: Vec<u32> = children.filter(|child| self.retained[*child as usize] >= self.large).collect();
            large.sort_by_key(|child| std::cmp::Reverse(self.retained[*child as usize]));
            let mut left = self.retained[end as usize];
            let weighty = large.iter().take_while(|child| {
                let (own, before) = (self.retained[**child as usize], left);
                left -= own;
                own >= before / 100 * APART
            });
            let large: Vec<u32> = weighty.copied().collect();
            let class = |number: u32| self.tree.classes[self.followed(number) as usize];
            let are_alike = large.len() > 1 && large.iter().all(|child| class(*child) == class(large[0]));
            // A list continues with nodes of the same class and is not split.
            let goes_on = |child: u32| self.tree.classes[child as usize] == self.tree.classes[end as usize];
            if !are_alike {
                for child in large.into_iter().filter(|child| !goes_on(*child)) {
                    apart.insert(child, head);
                    heads.push(child);
                }
            }
        }
        apart
    }

    /// Returns the group with this key, creating it if necessary.
    fn place_of(&mut self, key: Key) -> u32 {
        let next = self.groups.len() as u32;
        let group = *self.by_key.entry(key).or_insert(next);
        if group == next {
            let (title, threads, loaders) = (key.0, HashSet::new(), HashSet::new());
            self.groups.push(Group { title, members: 0, largest: NONE, threads, loaders, amount: Amount::default() });
        }
        group
    }

    fn group(&mut self, key: Key, number: u32) -> u32 {
        let group = self.place_of(key);
        let (title, is_whole) = (key.0, key.1.is_none());
        let is_of_thread = matches!(title, Title::Frame { .. } | Title::ThreadLocal { .. } | Title::Thread(_));
        let thread = if is_whole && is_of_thread { self.thread_of(number) } else { None };
        let is_loader = self.meaning(number).0 == Meaning::ClassLoader;
        let own = &mut self.groups[group as usize];
        own.threads.extend(thread);
        if is_whole && matches!(title, Title::ClassLoader(_)) {
            own.loaders.insert(if is_loader { number } else { self.tree.dominators[number as usize] });
        }
        own.members += 1;
        if own.largest == NONE || self.retained[own.largest as usize] < self.retained[number as usize] {
            own.largest = number;
        }
        group
    }

    /// The group of each number; [`NONE`] for numbers without bytes. Adds up each group's objects and bytes.
    fn owners(&mut self, apart: &HashMap<u32, u32>) -> Vec<u32> {
        let count = self.tree.nodes.len();
        let mut owners = vec![NONE; count];
        let mut passed = vec![0u64; count.div_ceil(64)];
        passed[0] = 1;
        for number in 1..count {
            let parent = self.tree.dominators[number] as usize;
            let head = if self.retained[number] >= self.large { apart.get(&(number as u32)) } else { None };
            owners[number] = if let Some(head) = head {
                let of = owners[*head as usize];
                let class = self.tree.classes[self.followed(number as u32) as usize];
                let title = self.groups[of as usize].title;
                self.group((title, Some((of, class))), number as u32)
            } else if passed[parent / 64] >> (parent % 64) & 1 == 0 {
                owners[parent]
            } else if self.is_passed(number as u32) {
                passed[number / 64] |= 1 << (number % 64);
                self.group_of_passed(number as u32)
            } else {
                let title = self.title(number as u32);
                self.group((title, None), number as u32)
            };
            if owners[number] != NONE && self.tree.classes[number] != NONE {
                let bytes = u64::from(self.tree.units[number]) * self.tree.unit_bytes;
                self.groups[owners[number] as usize].amount.add(bytes);
            }
        }
        owners
    }

    /// The pattern of a thread's name.
    fn threads(&mut self, thread: u32) -> u32 {
        if let Some(number) = self.patterns.get(&thread) {
            return *number;
        }
        let name = self.tree.cast.threads.get(thread as usize).and_then(|thread| thread.name.as_deref());
        let number = self.words.number(&pattern(name.unwrap_or("(without a name)")));
        self.patterns.insert(thread, number);
        number
    }

    /// The group for the bytes of a passed node itself.
    fn group_of_passed(&mut self, number: u32) -> u32 {
        let node = self.tree.nodes[number as usize];
        if self.tree.cast.extra(node).is_some() {
            return NONE;
        }
        if let Some(thread) = self.thread_of(number) {
            let threads = self.threads(thread);
            return self.group((Title::Thread(threads), None), number);
        }
        let name = self.class_name(number);
        if self.meaning(number).0 == Meaning::ClassLoader {
            let class = self.words.number(name);
            return self.group((Title::ClassLoader(class), None), number);
        }
        let loader = self.words.number("classes of all loaders");
        let group = self.group((Title::Classes(loader), None), number);
        // A single class says nothing about all classes.
        self.groups[group as usize].largest = NONE;
        group
    }

    fn static_name(&mut self, class: u32, nth: u32) -> u32 {
        let class = self.tree.cast.classes.get(class);
        let field = class.statics.get(nth as usize).map_or(0, |field| field.name);
        self.words.number(&format!("{}.{}", plain_class(&class.name), self.tree.cast.names.get(field)))
    }

    fn method(&mut self, thread: u32, frame: u32) -> u32 {
        let method = self.tree.cast.method(thread, frame);
        self.words.number(method.as_deref().unwrap_or("(unknown method)"))
    }

    /// Returns the title of a passed node's child.
    fn title(&mut self, number: u32) -> Title {
        let node = self.tree.nodes[number as usize];
        match self.tree.cast.extra(node) {
            Some(Extra::Static { class, nth }) => return Title::Static(self.static_name(class, nth)),
            Some(Extra::Frame { thread, frame }) => {
                return Title::Frame { threads: self.threads(thread), method: self.method(thread, frame) };
            }
            _ => {}
        }
        let parent = self.tree.dominators[number as usize];
        let above = self.tree.nodes[parent as usize];
        if let Some(thread) = self.thread_of(parent) {
            let threads = self.threads(thread);
            return match self.meaning(number).1 {
                ClassRole::ThreadLocalEntry => Title::ThreadLocal { threads, key: self.thread_local(number) },
                _ => Title::Thread(threads),
            };
        }
        if self.meaning(parent).0 == Meaning::ClassLoader {
            return Title::ClassLoader(self.words.number(self.class_name(parent)));
        }
        let class = self.words.number(self.class_name(number));
        match self.tree.cast.extra(above) {
            Some(Extra::JniGlobals) => Title::JniGlobal(class),
            Some(Extra::Reflection) => Title::Classes(self.words.number("reflection of classes of all loaders")),
            Some(Extra::Monitors | Extra::OtherRoots) => Title::OtherRoot(class),
            _ => {
                let origin = self.origin(number);
                let before = self.tree.before[number as usize];
                let by = if before == NONE { NONE } else { self.tree.classes[before as usize] };
                Title::Jointly { origin, class, by }
            }
        }
    }

    fn thread_local(&mut self, entry: u32) -> u32 {
        let key = self.tree.keys.get(&entry).copied();
        let Some(before) = key.map(|key| self.tree.before[key as usize]).filter(|before| *before != NONE) else {
            return self.words.number("(without a key)");
        };
        match self.extra(before) {
            Some(Extra::Static { class, nth }) => self.static_name(class, nth),
            _ => {
                let origin = self.origin(before);
                let text = format!("of {}", self.words.get(origin));
                self.words.number(&text)
            }
        }
    }

    /// Returns the origin of a shortest path to a number: a static field, a thread, or a kind of root.
    fn origin(&mut self, number: u32) -> u32 {
        let before = self.tree.before[number as usize];
        let is_below_seed = before == NONE || self.tree.before[before as usize] == before;
        if before == self.last_origin.0 && !is_below_seed {
            return self.last_origin.1;
        }
        let (mut at, mut below, mut steps) = (number, NONE, 0);
        while self.tree.before[at as usize] != at {
            if steps >= STEPS_MAX_EACH || self.steps >= STEPS_MAX {
                return self.words.number(OF_JVM[5]);
            }
            (below, at) = (at, self.tree.before[at as usize]);
            (steps, self.steps) = (steps + 1, self.steps + 1);
            if at == NONE {
                return self.words.number(OF_JVM[6]);
            }
        }
        let origin = if let Some(origin) = self.origins.get(&(at, below)) {
            *origin
        } else {
            let origin = self.origin_name(at, below);
            self.origins.insert((at, below), origin);
            origin
        };
        self.last_origin = (before, origin);
        origin
    }

    fn origin_name(&mut self, root: u32, below: u32) -> u32 {
        let extra = self.extra(if below == NONE { root } else { below });
        if let Some(Extra::Static { class, nth }) = extra {
            return self.static_name(class, nth);
        }
        if let Some(thread) = self.tree.cast.thread_of_node.get(&self.tree.nodes[root as usize]).copied() {
            let threads = self.threads(thread);
            let mut name = format!("thread {}", self.words.get(threads));
            if let Some(Extra::Frame { thread, frame }) = extra {
                let method = self.method(thread, frame);
                name = format!("{name} in {}", self.words.get(method));
            }
            return self.words.number(&name);
        }
        let name = match self.extra(root) {
            Some(Extra::JniGlobals) => OF_JVM[0],
            Some(Extra::Monitors) => OF_JVM[1],
            Some(Extra::Reflection) => OF_JVM[2],
            Some(_) => OF_JVM[3],
            None => OF_JVM[4],
        };
        self.words.number(name)
    }

    /// Merges small groups by the packages of their classes, and by thread.
    fn gather_small(&mut self, owners: &mut [u32]) {
        let all: u64 = self.groups.iter().map(|group| group.amount.bytes).sum();
        let count = self.groups.len();
        let mut places: Vec<u32> = (0..count as u32).collect();
        for (place, owner) in places.iter_mut().enumerate() {
            let (title, amount) = (self.groups[place].title, self.groups[place].amount);
            if amount.bytes >= all * SMALL_PER_MILLE / 1000 {
                continue;
            }
            let title = match title {
                Title::Static(name) | Title::Jointly { origin: name, .. } => {
                    let of = packages(self.words.get(name));
                    Title::Small(self.words.number(&of))
                }
                Title::Frame { threads, .. } | Title::ThreadLocal { threads, .. } => Title::Thread(threads),
                Title::JniGlobal(_) | Title::OtherRoot(_) => Title::Small(self.words.number(THE_JVM)),
                _ => continue,
            };
            let target = self.place_of((title, None));
            if target as usize == place {
                continue;
            }
            let is_of_threads = matches!(title, Title::Thread(_));
            let threads = std::mem::take(&mut self.groups[place].threads);
            let members = std::mem::take(&mut self.groups[place].members);
            self.groups[place].amount = Amount::default();
            let into = &mut self.groups[target as usize];
            into.members += members;
            into.amount += amount;
            if is_of_threads {
                into.threads.extend(threads);
            }
            *owner = target;
        }
        for owner in owners.iter_mut().filter(|owner| **owner != NONE) {
            *owner = places[*owner as usize];
        }
    }

    /// The groups with the most bytes.
    fn chosen(&self, count_max: usize) -> Vec<u32> {
        let mut chosen: Vec<u32> = (0..self.groups.len() as u32).collect();
        chosen.largest_first(|group| self.groups[*group as usize].amount.bytes);
        chosen.truncate(count_max);
        chosen.retain(|group| self.groups[*group as usize].amount.bytes > 0);
        chosen
    }

    /// The classes of the objects of each chosen group.
    fn consists_of(&self, owners: &[u32], chosen: &[u32]) -> Vec<Vec<ClassAmount>> {
        let mut places = vec![NONE; self.groups.len()];
        (0..).zip(chosen).for_each(|(place, group)| places[*group as usize] = place);
        let mut found: HashMap<(u32, u32), Amount> = HashMap::new();
        let mut run = ((NONE, NONE), Amount::default());
        for (number, owner) in owners.iter().enumerate() {
            let place = if *owner == NONE { NONE } else { places[*owner as usize] };
            let class = self.tree.classes[number];
            if place == NONE || class == NONE {
                continue;
            }
            if run.0 != (place, class) {
                *found.entry(run.0).or_default() += run.1;
                run = ((place, class), Amount::default());
            }
            run.1.add(u64::from(self.tree.units[number]) * self.tree.unit_bytes);
        }
        *found.entry(run.0).or_default() += run.1;
        let mut parts = vec![Vec::new(); chosen.len()];
        for ((place, class), amount) in found.into_iter().filter(|((place, _), _)| *place != NONE) {
            let class = self.tree.cast.classes.get(class).name.clone();
            parts[place as usize].push(ClassAmount { class, amount });
        }
        for part in &mut parts {
            sort(part);
            part.truncate(CLASSES_MAX);
        }
        parts
    }
}

/// Sorts by bytes, descending.
pub(crate) fn sort(classes: &mut [ClassAmount]) {
    classes.order_by(|a, b| b.amount.bytes.cmp(&a.amount.bytes).then_with(|| a.class.cmp(&b.class)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_differ_in_numbers_are_merged() {
        let patterns = ["web-17", "http-nio-10.0.0.1-8080-exec-3", "main", "v1.2.x9", "7"].map(pattern);
        assert_eq!(patterns, ["web-*", "http-nio-*-*-exec-*", "main", "v*.x*", "*"]);
    }

    #[test]
    fn small_holders_are_grouped_by_package() {
        let names = ["org.hibernate.internal.A.B", "java.lang.A.B", "A.b", "thread web-* in a.b.C.d:1", "reflection"];
        let packages = names.map(packages);
        let expected = ["org.hibernate.*", "the JDK", "classes without a package", "threads", THE_JVM];
        assert_eq!(packages, expected);
    }
}
