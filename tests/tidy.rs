//! Checks the codebase: module dependencies, restricted operations, and the form of files.
//!
//! Reads sources as text, without a parser. Known limits: it sees `crate::x` and `crate::{x, y::z}`, but not macro
//! expansions or a chain of `super::super::` that leaves its module (keep those to one level).

#![expect(clippy::disallowed_methods, reason = "asks git which files belong to the codebase")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Modules of lower crates, space-separated. The compiler separates crates; [`MAY_USE`] lists the uses.
const OF_CRATES: &str = "account bounded clock comparison diagnosis doubt error growth kernel load numbers observe owner record report \
     scenario tls units";

/// The allowed dependencies: a module of `lib.rs` and everything that it uses, space-separated, in data-flow order.
const MAY_USE: &[(&str, &str)] = &[
    ("subject", "bounded clock error units scenario record kernel"),
    ("detect", "bounded error scenario subject units"),
    ("archive", "bounded error units kernel scenario record"),
    ("fleet", "error units doubt scenario record"),
    ("weigh", "bounded clock error units doubt scenario subject load observe account record diagnosis kernel"),
    ("watch", "bounded clock error tls units scenario kernel observe record growth weigh"),
    ("explain", "clock error units subject observe record growth scenario"),
    ("doctor", "clock error kernel subject observe weigh"),
    ("trial", "clock error units doubt scenario subject load observe record weigh kernel explain"),
    (
        "series",
        "bounded clock error numbers owner units kernel doubt scenario subject observe record diagnosis archive \
         comparison trial",
    ),
    ("work", "archive bounded clock error units kernel scenario subject record fleet series"),
    ("result", "bounded error units doubt scenario record archive comparison diagnosis series"),
    (
        "cli",
        "bounded clock error units doubt scenario detect subject load doctor record archive diagnosis fleet weigh \
         watch trial series work result report explain",
    ),
    // The binary is also the guardian of the processes that it starts.
    ("main", "cli subject"),
];

/// Modules without I/O, which cannot hang.
const PURE: &[&str] = &[
    "crates/base/src/numbers",
    "crates/base/src/units",
    "crates/comparison/src",
    "crates/diagnosis/src",
    "crates/jvm/src/account",
    "crates/jvm/src/owner",
    "crates/jvm/src/purpose",
    "crates/model/src/doubt",
    "crates/model/src/record",
    "crates/model/src/scenario",
    "crates/search/src",
    "crates/stats/src",
    "src/detect/draft",
    "src/detect/signs",
    "src/fleet",
    "src/series/tune",
];

/// Directories whose files must not have cyclic dependencies.
const WITHOUT_CIRCLES: &[&str] = &[
    "crates/diagnosis/src",
    "crates/model/src/scenario",
    "crates/report/src/summary",
    "crates/search/src",
    "src/detect",
    "src/detect/signs",
    "src/fleet",
    "src/result",
    "src/series",
    "src/series/tune",
    "src/trial",
    "src/watch",
    "src/weigh",
    "src/work",
];

/// Names that a pure module must not use.
const IMPURE: &[&str] = &["std::fs", "std::net", "std::process", "std::thread", "rustix", "nix"];

/// The only files with unsafe code, each with the reason.
const UNSAFE: &[&str] = &[
    // An ioctl without a crate.
    "crates/jvm/src/observe/pagemap_scan.rs",
    // A system call without a crate.
    "crates/jvm/src/observe/cachestat.rs",
    // Malloc blocks chained through themselves, malloc_trim, and granules mapped in place.
    "scenarios/class-churn/metaspace-replay/src/native.rs",
];

/// Another workspace member: a subject, which prints like all subjects.
const REPLAY: &str = "scenarios/class-churn/metaspace-replay/src/";

const COLUMNS_MAX: usize = 120;
/// The maximum definitions per type name; with more, only imports distinguish them.
const DEFINITIONS_MAX: usize = 4;
/// A name that means the same everywhere: the arguments of the file's subcommand.
const IN_EACH_SUBCOMMAND: &str = "Verb";
/// The lines that fit on a screen.
const FUNCTION_LINES_MAX: usize = 70;

#[test]
fn the_codebase_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files: Vec<Source> = tracked(root).iter().filter_map(|path| Source::read(root, path)).collect();
    assert!(files.iter().any(|file| file.path == "src/lib.rs"), "the file list is wrong: it lacks src/lib.rs");
    let complaints = check(&files);
    assert!(complaints.is_empty(), "{} untidy places:\n{}", complaints.len(), complaints.join("\n"));
}

/// All complaints about these files, in order.
fn check(files: &[Source]) -> Vec<String> {
    let test_modules: Vec<String> = files.iter().flat_map(Source::test_modules).collect();
    // Files in the directory of a test-only module are test-only too.
    let test_folders: Vec<&str> = test_modules.iter().filter_map(|path| path.strip_suffix("mod.rs")).collect();
    let mut complaints = Vec::new();
    for file in files {
        let at = |(line, what): (usize, String)| format!("{}:{line}: {what}", file.path);
        complaints.extend(machine_traces(&file.raw).into_iter().map(at));
        match file.path.rsplit_once('.').map(|(_, extension)| extension) {
            Some("rs") => {
                let work =
                    if test_modules.contains(&file.path) || test_folders.iter().any(|at| file.path.starts_with(at)) {
                        file.all_blank()
                    } else {
                        file.without_tests()
                    };
                complaints.extend(first_line(file).into_iter().map(at));
                complaints.extend(long_lines(file, &work).into_iter().map(at));
                complaints.extend(leftovers(file).into_iter().map(at));
                complaints.extend(long_functions(file).into_iter().map(at));
                complaints.extend(forbidden_uses(file).into_iter().map(at));
                complaints.extend(misplaced_words(&file.path, &work).into_iter().map(at));
            }
            Some("java") => complaints.extend(untidy_java(file).into_iter().map(at)),
            _ => {}
        }
    }
    complaints.extend(unlisted_modules(files));
    complaints.extend(idle_permissions(files));
    complaints.extend(WITHOUT_CIRCLES.iter().flat_map(|folder| circles(files, folder)));
    complaints.extend(crowded_names(files));
    complaints
}

// ---- Reading files ----

/// A text file.
struct Source {
    /// Relative to the root, with `/`.
    path: String,
    /// The unmodified text.
    raw: String,
    /// The text with comments blanked and string contents replaced by [`IN_STRING`], byte by byte.
    code: String,
}

/// Replaces a byte inside a string literal.
const IN_STRING: u8 = 1;

impl Source {
    fn new(path: &str, raw: &str) -> Self {
        let code = if path.ends_with(".rs") { code_of(raw) } else { String::new() };
        Self { path: path.to_owned(), raw: raw.to_owned(), code }
    }

    /// `None` for a file that is not text, or that git knows but that does not exist.
    fn read(root: &Path, path: &str) -> Option<Self> {
        let raw = String::from_utf8(fs::read(root.join(path)).ok()?).ok()?;
        Some(Self::new(path, &raw))
    }

    /// The file's top-level module; `None` outside `src` and for `lib.rs`.
    fn module(&self) -> Option<&str> {
        let inside = self.path.strip_prefix("src/")?.strip_suffix(".rs")?;
        let module = inside.split('/').next()?;
        (module != "lib").then_some(module)
    }

    /// Test-only files: those named by `#[cfg(test)] mod NAME;`, optionally with `#[path = "…"]`.
    fn test_modules(&self) -> Vec<String> {
        let (folder, file) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let inside = match file {
            "mod.rs" | "lib.rs" | "main.rs" => folder,
            _ => self.path.trim_end_matches(".rs"),
        };
        let mut found = Vec::new();
        for (at, attribute) in self.code.match_indices("#[cfg(test)]") {
            let start = at + attribute.len();
            let length = self.code[start..].find(['{', ';']).unwrap_or(0);
            let item = &self.code[start..start + length];
            let Some(name) = item.split_whitespace().skip_while(|word| *word != "mod").nth(1) else { continue };
            // `raw` has the string's text at the same position.
            match self.raw[start..start + length].split('"').nth(1).filter(|_| item.contains("#[path")) {
                Some(path) => found.push(format!("{folder}/{path}")),
                None => found.extend([format!("{inside}/{name}.rs"), format!("{inside}/{name}/mod.rs")]),
            }
        }
        found
    }

    fn all_blank(&self) -> String {
        self.code.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }).collect()
    }

    /// The code with everything under `#[cfg(test)]` blanked; files outside the product are entirely tests or tools.
    fn without_tests(&self) -> String {
        if !is_product(&self.path) {
            return self.all_blank();
        }
        let mut code = self.code.clone().into_bytes();
        for (start, _) in self.code.match_indices("#[cfg(test)]") {
            let end = body_after(&self.code, start).map_or(start, |(_, close)| close + 1);
            code[start..end].iter_mut().filter(|byte| **byte != b'\n').for_each(|byte| *byte = b' ');
        }
        String::from_utf8_lossy(&code).into_owned()
    }
}

/// Whether a file belongs to the program or one of its crates.
fn is_product(path: &str) -> bool {
    let is_crate = path.strip_prefix("crates/").and_then(|rest| rest.split_once('/'));
    let of_crate = is_crate.is_some_and(|(name, rest)| name != "test-support" && rest.starts_with("src/"));
    of_crate || path.starts_with("src/") || path.starts_with(REPLAY)
}

/// Files that git tracks or would track; without git (an unpacked archive), all except build products.
fn tracked(root: &Path) -> Vec<String> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .ok()
        .filter(|output| output.status.success() && root.join(".git").exists());
    if let Some(output) = listing {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        return text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect();
    }
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if path.is_dir() && name != "target" && name != ".git" && name != "loadline-archive" {
                folders.push(path);
            } else if let (true, Ok(inside)) = (path.is_file(), path.strip_prefix(root)) {
                found.push(inside.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// Rust source with comments blanked and strings masked; every byte and line keeps its position.
fn code_of(raw: &str) -> String {
    let bytes = raw.as_bytes();
    let mut code = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let rest = &raw.as_bytes()[at..];
        let after_word = at > 0 && is_word(bytes[at - 1]);
        let (length, mask) = if rest.starts_with(b"//") {
            (rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len()), b' ')
        } else if rest.starts_with(b"/*") {
            (block_comment_length(rest), b' ')
        } else if let Some(length) = raw_string_length(rest).filter(|_| !after_word) {
            (length, IN_STRING)
        } else if rest[0] == b'"' {
            (quoted_length(rest, b'"'), IN_STRING)
        } else if rest[0] == b'\'' && is_char_literal(&raw[at..]) {
            (quoted_length(rest, b'\''), IN_STRING)
        } else {
            code.push(rest[0]);
            at += 1;
            continue;
        };
        code.extend(rest[..length].iter().map(|byte| if *byte == b'\n' { b'\n' } else { mask }));
        at += length;
    }
    String::from_utf8_lossy(&code).into_owned()
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn block_comment_length(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if rest[at..].starts_with(b"*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// The length of `r"…"`, `r#"…"#`, `br"…"`, `cr"…"` if one starts here.
fn raw_string_length(rest: &[u8]) -> Option<usize> {
    let prefix = [&b"r"[..], b"br", b"cr"].into_iter().find(|prefix| rest.starts_with(prefix))?.len();
    let hashes = rest[prefix..].iter().take_while(|byte| **byte == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return None;
    }
    let close = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let inside = rest[open + 1..].windows(close.len()).position(|window| window == close);
    Some(inside.map_or(rest.len(), |inside| open + 1 + inside + close.len()))
}

fn quoted_length(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `'x'` or `'\n'`, but not the lifetime `'x`.
fn is_char_literal(rest: &str) -> bool {
    let mut chars = rest.chars().skip(1);
    match chars.next() {
        Some('\\') => true,
        Some(_) => chars.next() == Some('\''),
        None => false,
    }
}

/// A byte's line number, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Positions of `word` as a whole word (its ends count only if they are word characters).
fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let (first, last) = (word.as_bytes()[0], word.as_bytes()[word.len() - 1]);
    text.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = at.checked_sub(1).map(|before| text.as_bytes()[before]);
        let after = text.as_bytes().get(at + word.len()).copied();
        let joined = |end: u8, beyond: Option<u8>| is_word(end) && beyond.is_some_and(is_word);
        !joined(first, before) && !joined(last, after)
    })
}

/// The braces of the body of the item at `start`; `None` if it ends with `;`.
fn body_after(code: &str, start: usize) -> Option<(usize, usize)> {
    let (mut nested, mut open, mut depth) = (0i32, None, 0);
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' if open.is_none() => nested += 1,
            b')' | b']' if open.is_none() => nested -= 1,
            b';' if open.is_none() && nested == 0 => return None,
            b'{' => {
                open.get_or_insert(at);
                depth += 1;
            }
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return open.map(|open| (open, at));
                }
            }
            _ => {}
        }
    }
    None
}

// ---- Checks, each returning lines and complaints ----

type Complaint = (usize, String);

fn first_line(file: &Source) -> Option<Complaint> {
    (!file.raw.starts_with("//! ")).then(|| (1, "must begin with `//! ` and the purpose of the file".to_owned()))
}

/// Lines over the limit. In tests, strings can exceed it, because they cannot always be broken.
fn long_lines(file: &Source, work: &str) -> Vec<Complaint> {
    let mut found = Vec::new();
    for (index, (raw, (code, work))) in file.raw.lines().zip(file.code.lines().zip(work.lines())).enumerate() {
        let columns = raw.chars().count();
        let in_strings = code.bytes().filter(|byte| *byte == IN_STRING).count();
        let is_test = work.trim().is_empty() && !code.trim().is_empty();
        if columns > COLUMNS_MAX && !(is_test && columns.saturating_sub(in_strings) <= COLUMNS_MAX) {
            found.push((index + 1, format!("{columns} columns; at most {COLUMNS_MAX}")));
        }
    }
    found
}

/// Unfinished work in comments; clippy's `todo` and `unimplemented` cover code.
fn leftovers(file: &Source) -> Vec<Complaint> {
    let left = |word| words(&file.raw, word).map(move |at| (line_of(&file.raw, at), format!("`{word}` left behind")));
    [concat!("FIX", "ME"), concat!("XX", "X")].into_iter().flat_map(left).collect()
}

/// Whether a space-separated list contains a name.
fn lists(names: &str, name: &str) -> bool {
    names.split(' ').any(|listed| listed == name)
}

/// Top-level modules that this file's module must not use.
fn forbidden_uses(file: &Source) -> Vec<Complaint> {
    let Some(module) = file.module() else { return Vec::new() };
    let Some((_, allowed)) = MAY_USE.iter().find(|(name, _)| *name == module) else { return Vec::new() };
    let mut found = Vec::new();
    for root in ["crate::", "loadline::"] {
        for at in words(&file.code, root) {
            for used in first_names(&file.code[at + root.len()..]) {
                let known = lists(OF_CRATES, used) || MAY_USE.iter().any(|(name, _)| *name == used);
                if known && used != module && !lists(allowed, used) {
                    found.push((line_of(&file.code, at), format!("`{module}` must not use `{used}`")));
                }
            }
        }
    }
    found
}

/// Table entries for nonexistent modules, and unused permissions. Checked only if all files are given.
fn idle_permissions(files: &[Source]) -> Vec<String> {
    let Some(lib) = files.iter().find(|file| file.path == "src/lib.rs") else { return Vec::new() };
    if !files.iter().any(|file| file.path == "src/main.rs") {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (module, allowed) in MAY_USE {
        let is_there = words(&lib.code, "mod ").any(|at| name_at(&lib.code[at + 4..]) == Some(module));
        if !is_there && *module != "main" {
            found.push(format!("tests/tidy.rs: there is no module `{module}`"));
            continue;
        }
        let own = files.iter().filter(|file| file.module() == Some(module));
        let used: Vec<&str> = own
            .flat_map(|file| {
                let of_root = |root: &'static str| words(&file.code, root).map(move |at| at + root.len());
                let places = of_root("crate::").chain(of_root("loadline::"));
                places.flat_map(|at| first_names(&file.code[at..])).collect::<Vec<_>>()
            })
            .collect();
        for idle in allowed.split(' ').filter(|name| !used.contains(name)) {
            found.push(format!("tests/tidy.rs: `{module}` may use `{idle}`, but does not"));
        }
    }
    found
}

/// Cyclic dependencies among a directory's files by name, except test-only ones.
fn circles(files: &[Source], folder: &str) -> Vec<String> {
    let test_modules: Vec<String> = files.iter().flat_map(Source::test_modules).collect();
    let name = |file: &Source| {
        if test_modules.contains(&file.path) {
            return None;
        }
        let own = file.path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".rs")?;
        (!own.contains('/') && own != "mod").then(|| own.to_owned())
    };
    let named: Vec<(String, &Source)> = files.iter().filter_map(|file| Some((name(file)?, file))).collect();
    let uses = |file: &Source| -> Vec<usize> {
        let work = file.without_tests();
        let places: Vec<usize> = words(&work, "super::").map(|at| at + "super::".len()).collect();
        let names: Vec<&str> = places.iter().flat_map(|at| first_names(&work[*at..])).collect();
        (0..named.len()).filter(|at| names.contains(&named[*at].0.as_str())).collect()
    };
    let uses: Vec<Vec<usize>> = named.iter().map(|(_, file)| uses(file)).collect();
    let mut found = Vec::new();
    for start in 0..named.len() {
        let (mut seen, mut open) = (vec![false; named.len()], uses[start].clone());
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut seen[at], true) {
                open.extend(&uses[at]);
            }
        }
        if seen[start] {
            found.push(format!("{}: depends on itself through other files of {folder}", named[start].1.path));
        }
    }
    found
}

/// The first names after `crate::`: one, or one per member of a group in braces.
fn first_names(path: &str) -> Vec<&str> {
    let Some(group) = path.trim_start().strip_prefix('{') else { return name_at(path).into_iter().collect() };
    let (mut names, mut depth, mut member) = (Vec::new(), 1, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 || (depth == 1 && c == ',') {
            names.extend(name_at(&group[member..at]));
            member = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    names
}

fn name_at(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let end = text.bytes().position(|byte| !is_word(byte)).unwrap_or(text.len());
    (end > 0).then(|| &text[..end])
}

/// Words that only some modules may use. `work` is the code without tests.
fn misplaced_words(path: &str, work: &str) -> Vec<Complaint> {
    let within = |places: &[&str]| places.iter().any(|place| path.starts_with(place));
    let mut found = Vec::new();
    let mut refuse = |word: &str, why: &str| {
        found.extend(words(work, word).map(|at| (line_of(work, at), format!("`{word}`: {why}"))));
    };
    if !within(&["src/subject"]) {
        refuse("Command::new", "only `subject` starts processes");
    }
    if !within(&["crates/report/src", REPLAY]) {
        for word in ["println!", "print!", "io::stdout", "stdio::stdout"] {
            refuse(word, "only `report` writes to standard output");
        }
    }
    if !within(&["crates/report/src", "src/cli", "src/main.rs", REPLAY]) {
        for word in ["eprintln!", "eprint!", "io::stderr", "stdio::stderr"] {
            refuse(word, "only `report`, `cli`, and `main` talk to the user");
        }
    }
    if is_product(path) && !path.starts_with(REPLAY) && path != "crates/base/src/clock.rs" {
        refuse("thread::sleep", "only a `Clock` lets time pass");
    }
    if !UNSAFE.contains(&path) {
        refuse("unsafe_code", "only the files in UNSAFE may hold unsafe code");
    }
    let pure = PURE.iter().any(|at| path == format!("{at}.rs") || path.starts_with(&format!("{at}/")));
    if pure || path.starts_with("crates/report/src/summary") {
        for word in IMPURE {
            refuse(word, "this module only computes");
        }
    }
    found
}

/// Traces of a developer's machine: home and scratch directories, private hosts, registry mirrors.
fn machine_traces(raw: &str) -> Vec<Complaint> {
    let folders = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/", "ll-")];
    let mut found = Vec::new();
    for (index, line) in raw.lines().enumerate() {
        for folder in folders {
            // Below `/proc/PID`, the same name is not a trace: the path must start here.
            let begins = |at: usize| !line[..at].ends_with(|c: char| c.is_alphanumeric() || "}>_-.$*/".contains(c));
            if line.match_indices(folder).any(|(at, _)| begins(at)) {
                found.push((index + 1, format!("`{folder}` is a path of one machine")));
            }
        }
        for host in line.split("://").skip(1).map(|rest| rest.split(['/', '"', ' ', '`', ')']).next().unwrap_or("")) {
            let name = host.rsplit('@').next().unwrap_or("").split(':').next().unwrap_or("");
            if is_private(name) {
                found.push((index + 1, format!("`{name}` is a private host")));
            }
        }
        let default = "source = \"registry+https://github.com/rust-lang/";
        let from_elsewhere = line.starts_with("source = \"") && !line.starts_with(default);
        if from_elsewhere {
            found.push((index + 1, "a dependency that does not come from Cargo's own registry".to_owned()));
        }
    }
    found
}

/// A host on a private network; loopback does not count.
fn is_private(host: &str) -> bool {
    let by_name = [".internal", ".local", ".lan", ".corp", ".intranet"].iter().any(|end| host.ends_with(end));
    let address = host.parse::<std::net::Ipv4Addr>();
    by_name || address.is_ok_and(|address| address.is_private() || address.is_link_local())
}

/// A class without a doc comment, an unreadable truth, a line that is too long.
fn untidy_java(file: &Source) -> Vec<Complaint> {
    let lines: Vec<&str> = file.raw.lines().collect();
    let mut found = Vec::new();
    let is_type = |line: &str| {
        let words: Vec<_> = line.split_whitespace().collect();
        !line.starts_with([' ', '/', '*']) && words.iter().any(|word| ["class", "interface", "enum"].contains(word))
    };
    match lines.iter().position(|line| is_type(line)) {
        None => found.push((1, "contains no class".to_owned())),
        Some(at) => {
            let above = lines[..at].iter().rev().find(|line| !line.starts_with("//") && !line.starts_with('@'));
            let opened = lines[..at].iter().any(|line| line.starts_with("/**"));
            if !opened || !above.is_some_and(|line| line.trim_end().ends_with("*/")) {
                found.push((at + 1, "the class has no `/** */` that describes it".to_owned()));
            }
        }
    }
    for (index, line) in lines.iter().enumerate() {
        if let Some(truths) = line.strip_prefix("// truth:") {
            let readable = |truth: &str| truth.split_once('=').is_some_and(|(_, value)| value.parse::<u64>().is_ok());
            found.extend(
                truths
                    .split_whitespace()
                    .filter(|truth| !readable(truth))
                    .map(|truth| (index + 1, format!("`{truth}` is not `name=integer`"))),
            );
        }
        if line.chars().count() > COLUMNS_MAX {
            found.push((index + 1, format!("{} columns; at most {COLUMNS_MAX}", line.chars().count())));
        }
    }
    found
}

/// Modules of `lib.rs` that are missing from the table.
fn unlisted_modules(files: &[Source]) -> Vec<String> {
    let Some(lib) = files.iter().find(|file| file.path == "src/lib.rs") else { return Vec::new() };
    words(&lib.code, "mod ")
        .filter_map(|at| Some((at, name_at(&lib.code[at + 4..])?)))
        .filter(|(_, name)| !MAY_USE.iter().any(|(listed, _)| listed == name))
        .filter(|(at, _)| !lib.code[..*at].rsplit(';').next().unwrap_or_default().contains("#[cfg(test)]"))
        .map(|(at, name)| format!("src/lib.rs:{}: `{name}` is not in the table MAY_USE", line_of(&lib.code, at)))
        .collect()
}

/// Functions over the limit.
fn long_functions(file: &Source) -> Vec<Complaint> {
    let of = |at: usize| {
        let (name, (_, close)) = (name_at(&file.code[at + 3..])?, body_after(&file.code, at)?);
        let start = line_of(&file.code, at);
        let lines = line_of(&file.code, close) - start + 1;
        (lines > FUNCTION_LINES_MAX)
            .then(|| (start, format!("`{name}` has {lines} lines; at most {FUNCTION_LINES_MAX}")))
    };
    words(&file.code, "fn ").filter_map(of).collect()
}

/// Type names with too many definitions. An indented `type` is assumed to be associated with a trait.
fn crowded_names(files: &[Source]) -> Vec<String> {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let of_workspace = |file: &&Source| ["src/", "crates/", "tests/"].iter().any(|at| file.path.starts_with(at));
    for file in files.iter().filter(of_workspace) {
        for keyword in ["struct ", "enum ", "trait ", "union ", "type "] {
            for at in words(&file.code, keyword) {
                let is_indented = file.code[..at].rsplit('\n').next().unwrap_or_default().starts_with(' ');
                let Some(name) = name_at(&file.code[at + keyword.len()..]) else { continue };
                if keyword != "type " || !is_indented {
                    places.entry(name).or_default().push(format!("{}:{}", file.path, line_of(&file.code, at)));
                }
            }
        }
    }
    let crowded = places.into_iter().filter(|(name, at)| at.len() > DEFINITIONS_MAX && *name != IN_EACH_SUBCOMMAND);
    let complaint = |(name, at): (&str, Vec<String>)| {
        format!("`{name}` has {} definitions; at most {DEFINITIONS_MAX}: {}", at.len(), at.join(", "))
    };
    crowded.map(complaint).collect()
}

// ---- Tests of the checker itself ----

/// Asserts the checker's complaints about these files, in order.
#[track_caller]
fn expect(files: &[(&str, &str)], complaints: &[&str]) {
    let files: Vec<Source> = files.iter().map(|(path, raw)| Source::new(path, raw)).collect();
    assert_eq!(check(&files), complaints);
}

/// Scripts in `bench` read result documents by field name, and a stale name is noticed only at the next measurement.
/// These names in `["…"]` are keys of awk tables instead.
const NAMES_IN_AWK: [&str; 2] = ["yes", "no"];

#[test]
fn measuring_scripts_read_existing_fields() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let schema = ["docs/results.schema.json", "docs/advice.schema.json"]
        .map(|path| fs::read_to_string(root.join(path)).unwrap());
    let schema = schema.concat();
    let scripts: Vec<String> = tracked(root).into_iter().filter(|path| path.starts_with("bench/")).collect();
    let mut read = 0;
    for path in scripts.iter().filter(|path| path.ends_with(".sh")) {
        let script = fs::read_to_string(root.join(path)).unwrap();
        let names = script.split("[\"").skip(1).filter_map(|rest| rest.split_once("\"]").map(|(name, _)| name));
        let is_field = |name: &&str| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b.is_ascii_digit());
        for name in names.filter(is_field).filter(|name| !NAMES_IN_AWK.contains(name)) {
            assert!(
                schema.contains(&format!("\"{name}\": {{")),
                "{path}: no field `{name}` in the schemas of results and advice"
            );
            read += 1;
        }
    }
    assert!(read > 10, "only {read} field names found in {scripts:?}");
}

#[test]
fn forbidden_uses_are_found() {
    expect(
        &[("src/archive/html.rs", "//! Html.\n\nuse crate::trial::Trial;\nuse crate::record::Trial;\n")],
        &["src/archive/html.rs:3: `archive` must not use `trial`"],
    );
    expect(
        &[(
            "src/fleet/engine.rs",
            "//! E.\nuse crate::{\n    clock::Clock,\n    observe::{nmt, maps},\n    subject,\n};\n",
        )],
        &[
            "src/fleet/engine.rs:2: `fleet` must not use `clock`",
            "src/fleet/engine.rs:2: `fleet` must not use `observe`",
            "src/fleet/engine.rs:2: `fleet` must not use `subject`",
        ],
    );
    expect(
        &[("src/explain.rs", "//! E.\nfn f() -> crate::report::Page { panic!() }\n")],
        &["src/explain.rs:2: `explain` must not use `report`"],
    );
    expect(&[("src/main.rs", "//! M.\nuse loadline::trial;\n")], &["src/main.rs:2: `main` must not use `trial`"]);
    // The module itself, comments, strings, and other crates' paths do not count as uses.
    expect(
        &[(
            "src/archive/nmt.rs",
            "//! See [`crate::trial`].\nuse crate::archive::maps; // crate::trial\nconst A: &str = \"crate::trial\";\n\
             const B: &str = r#\"\"crate::trial\"#;\nconst C: char = '\"';\nuse mycrate::trial;\nfn f<'a>(_: &'a u8) {}\n",
        )],
        &[],
    );
}

#[test]
fn a_new_module_needs_a_place_in_the_table() {
    expect(
        &[("src/lib.rs", "//! L.\npub mod detect;\nmod gadget;\n")],
        &["src/lib.rs:3: `gadget` is not in the table MAY_USE"],
    );
}

#[test]
fn an_unused_permission_is_found() {
    let lib: String = MAY_USE.iter().map(|(module, _)| format!("pub mod {module};\n")).collect();
    let lib = format!("//! L.\n{}", lib.replace("pub mod detect;\n", ""));
    let files = [
        ("src/lib.rs", lib.as_str()),
        ("src/main.rs", "//! M.\n"),
        ("src/fleet/a.rs", "//! A.\nuse crate::units::Bytes;\n"),
    ];
    let files: Vec<Source> = files.iter().map(|(path, raw)| Source::new(path, raw)).collect();
    let found = idle_permissions(&files);
    assert!(found.contains(&"tests/tidy.rs: there is no module `detect`".to_owned()), "{found:?}");
    assert!(found.contains(&"tests/tidy.rs: `fleet` may use `doubt`, but does not".to_owned()), "{found:?}");
    assert!(!found.iter().any(|complaint| complaint.contains("`fleet` may use `units`")), "{found:?}");
}

#[test]
fn import_cycles_between_files_are_found() {
    let of = |files: &[(&str, &str)]| {
        let files: Vec<Source> = files.iter().map(|(path, raw)| Source::new(path, raw)).collect();
        circles(&files, "src/room")
    };
    let (one, two) = (("src/room/a.rs", "use super::b::B;\n"), ("src/room/b.rs", "use super::{c::C, d};\n"));
    assert_eq!(of(&[one, two, ("src/room/c.rs", "")]), [""; 0]);
    let back = ("src/room/c.rs", "fn f() { super::a::g(); }\n");
    let whole = of(&[one, two, back]);
    assert_eq!(whole.len(), 3, "{whole:?}");
    let only_in_tests = ("src/room/c.rs", "#[cfg(test)]\nmod tests { use super::a; }\n");
    assert_eq!(of(&[one, two, only_in_tests]), [""; 0]);
    let for_tests = ("src/room/mod.rs", "#[cfg(test)]\nmod c;\n");
    assert_eq!(of(&[one, two, back, for_tests]), [""; 0]);
}

#[test]
fn every_module_in_the_table_uses_only_earlier_ones() {
    for (index, (module, uses)) in MAY_USE.iter().enumerate() {
        for used in uses.split(' ') {
            let place = MAY_USE.iter().position(|(name, _)| *name == used);
            assert!(
                lists(OF_CRATES, used) || place.is_some_and(|place| place < index),
                "`{module}` uses `{used}`, which is not listed before it"
            );
        }
    }
}

#[test]
fn only_the_right_modules_start_processes_and_print() {
    expect(
        &[(
            "src/trial/mod.rs",
            "//! T.\nfn f() { Command::new(\"x\"); println!(); eprintln!(); std::io::stdout(); }\n",
        )],
        &[
            "src/trial/mod.rs:2: `Command::new`: only `subject` starts processes",
            "src/trial/mod.rs:2: `println!`: only `report` writes to standard output",
            "src/trial/mod.rs:2: `io::stdout`: only `report` writes to standard output",
            "src/trial/mod.rs:2: `eprintln!`: only `report`, `cli`, and `main` talk to the user",
        ],
    );
    expect(
        &[
            ("src/subject/launch.rs", "//! L.\nfn f() { Command::new(\"x\").stdout(Stdio::piped()); }\n"),
            ("crates/report/src/terminal.rs", "//! T.\nfn f() { println!(); eprintln!(); }\n"),
            ("src/cli/exit.rs", "//! E.\nfn f() { eprintln!(); }\n"),
            ("tests/jvm.rs", "//! J.\nfn f() { Command::new(\"x\"); println!(); }\n"),
            ("src/load/mod.rs", "//! L.\n#[cfg(test)]\nmod tests {\n    fn f() { println!(); }\n}\n"),
            ("src/observe/mod.rs", "//! O.\n#[cfg(test)]\nmod fakes;\n"),
            ("src/observe/nmt.rs", "//! N.\n#[cfg(test)]\n#[path = \"nmt_live.rs\"]\nmod live;\n"),
            ("src/observe/nmt_live.rs", "//! L.\nfn f() { println!(); }\n"),
            ("src/observe/fakes.rs", "//! F.\nfn f() { println!(); }\n"),
        ],
        &[],
    );
    // Code after the tests counts as code again.
    expect(
        &[("src/load/mod.rs", "//! L.\n#[cfg(test)]\nuse x;\n#[cfg(test)]\nmod t {}\nfn f() { print!(); }\n")],
        &["src/load/mod.rs:6: `print!`: only `report` writes to standard output"],
    );
}

#[test]
fn only_the_clock_may_sleep() {
    let sleeps =
        "//! S.\nfn f() { std::thread::sleep(A); }\n#[cfg(test)]\nmod tests { fn g() { std::thread::sleep(B); } }\n";
    expect(
        &[("src/trial/mark.rs", sleeps), ("crates/base/src/clock.rs", sleeps), ("tests/a.rs", sleeps)],
        &["src/trial/mark.rs:2: `thread::sleep`: only a `Clock` lets time pass"],
    );
}

#[test]
fn unsafe_code_is_only_in_the_listed_files() {
    let silenced = "//! U.\n#![expect(unsafe_code, reason = \"none\")]\n";
    expect(
        &[("src/load/engine.rs", silenced), (UNSAFE[0], silenced), (UNSAFE[1], silenced)],
        &["src/load/engine.rs:2: `unsafe_code`: only the files in UNSAFE may hold unsafe code"],
    );
}

#[test]
fn the_replay_program_may_print_but_start_no_processes() {
    let path = format!("{REPLAY}main.rs");
    let does = "//! M.\nuse crate::trace::Event;\nfn f() { println!(); eprintln!(); Command::new(\"x\"); }\n";
    expect(&[(&path, does)], &[&format!("{path}:3: `Command::new`: only `subject` starts processes")]);
}

#[test]
fn pure_modules_do_no_input_or_output() {
    expect(
        &[
            ("crates/jvm/src/account/sum.rs", "//! S.\nuse std::fs;\n"),
            ("src/archive/mod.rs", "//! A.\nuse std::fs;\n"),
        ],
        &["crates/jvm/src/account/sum.rs:2: `std::fs`: this module only computes"],
    );
}

#[test]
fn files_begin_with_a_purpose_and_have_no_leftovers() {
    let later = concat!("// FIX", "ME later\n");
    expect(
        &[("src/a.rs", "fn f() {}\n"), ("src/b.rs", &format!("//! B.\n{later}"))],
        &[
            "src/a.rs:1: must begin with `//! ` and the purpose of the file",
            &format!("src/b.rs:2: `{}` left behind", concat!("FIX", "ME")),
        ],
    );
}

#[test]
fn line_lengths_are_limited() {
    let long = format!("//! A.\nconst A: &str = \"{}\";\n", "x".repeat(120));
    expect(&[("src/units.rs", &long)], &["src/units.rs:2: 139 columns; at most 120"]);
    let in_test = format!("//! A.\n#[cfg(test)]\nmod tests {{\n    const A: &str = \"{}\";\n}}\n", "x".repeat(120));
    expect(&[("src/units.rs", &in_test)], &[]);
    let no_string = format!(
        "//! A.\n#[cfg(test)]\nmod tests {{\n    // {}\n    fn f{}() {{}}\n}}\n",
        "x".repeat(120),
        "x".repeat(120)
    );
    expect(
        &[("src/units.rs", &no_string)],
        &["src/units.rs:4: 127 columns; at most 120", "src/units.rs:5: 133 columns; at most 120"],
    );
}

#[test]
fn long_functions_are_found() {
    let of = |lines: usize| format!("//! A.\nfn long(_: [u8; 4]) {{\n{}}}\n", "    f();\n".repeat(lines - 2));
    expect(&[("src/units.rs", &of(70))], &[]);
    expect(&[("src/units.rs", &of(71))], &["src/units.rs:2: `long` has 71 lines; at most 70"]);
}

#[test]
fn a_type_name_with_many_definitions_is_found() {
    let one = "//! A.\nstruct Part;\nimpl A for B {\n    type Part = u8;\n}\n// struct Part;\n";
    let mut files = ["src/a.rs", "src/b.rs", "crates/c/d.rs", "tests/e.rs"].map(|path| (path, one)).to_vec();
    expect(&files, &[]);
    files.push(("tests/f.rs", "//! F.\npub(crate) type Part = u8;\n"));
    expect(
        &files,
        &["`Part` has 5 definitions; at most 4: src/a.rs:2, src/b.rs:2, crates/c/d.rs:2, tests/e.rs:2, tests/f.rs:2"],
    );
}

/// Cargo rebuilds a crate for each set of features, and with it every dependent crate.
#[test]
fn dependencies_are_built_once_for_program_and_tests() {
    let features = |graph: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(["tree", "--offline", "--locked", "--prefix=none", "--format={p}|{f}"]).args(graph);
        let printed = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        let printed = String::from_utf8(printed.stdout).unwrap();
        // Headings and empty lines separate the packages.
        for (package, features) in printed.lines().filter_map(|line| line.trim_end_matches(" (*)").split_once('|')) {
            all.entry(package.to_owned()).or_default().insert(features.to_owned());
        }
        all
    };
    let (run, tests) = (features(&["--edges=normal,build"]), features(&["--workspace", "--edges=all"]));
    assert!(run.len() > 50, "{run:?}");
    for (package, features) in &run {
        let wanted = &tests[package];
        assert_eq!(features, wanted, "{package}: add a line to Cargo.toml that requests the tests' features, too");
    }
}

#[test]
fn traces_of_a_developers_machine_are_found() {
    let home = concat!("/ro", "ot/");
    let scratch = concat!("/tmp/", "ll-x");
    expect(
        &[
            ("README.md", &format!("at `{home}x`\nat /proc/PID{home}tmp and {{pid}}{home}\n{scratch}\n")),
            ("Cargo.lock", &format!("source = \"registry+https://mirror.{}/index\"\n", concat!("int", "ernal"))),
            ("docs/a.md", &format!("http://127.0.0.1:8080/ http://{}.0.0.7/ https://docs.rs/x\n", 10)),
        ],
        &[
            &format!("README.md:1: `{home}` is a path of one machine"),
            &format!("README.md:3: `{}` is a path of one machine", concat!("/tmp/", "ll-")),
            &format!("Cargo.lock:1: `mirror.{}` is a private host", concat!("int", "ernal")),
            "Cargo.lock:1: a dependency that does not come from Cargo's own registry",
            &format!("docs/a.md:1: `{}.0.0.7` is a private host", 10),
        ],
    );
}

#[test]
fn java_classes_have_descriptions() {
    expect(
        &[
            ("java/A.java", "package a;\n\nimport b;\n\npublic final class A {}\n"),
            ("java/B.java", "package a;\n\n/**\n * Does b.\n */\n// truth: x=1 y=z\n@Deprecated\nfinal class B {}\n"),
            ("java/C.java", "/** Does c. */\ninterface C {}\n"),
        ],
        &["java/A.java:5: the class has no `/** */` that describes it", "java/B.java:6: `y=z` is not `name=integer`"],
    );
}
