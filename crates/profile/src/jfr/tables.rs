//! The constant pools of a chunk needed for stacks: strings, symbols, classes, methods, stack traces, threads.
//!
//! A checkpoint event contains pools, and one chunk may have many checkpoints (the JDK writes deltas). All are read,
//! and the last value of a repeated key wins.
//!
//! ```text
//! start duration delta mask  POOLS × ( type COUNT × ( key value ) )
//! ```

use super::input::{Fault, Input, InputResult, Text};
use super::metadata::{Form, Type, Types};
use super::plan::{Plan, Value, pass};
use crate::stack::{Frame, FrameKind, class_name};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum size of one chunk's tables in bytes: 200,000 stacks of 50 frames take 250 MiB.
const BYTES_MAX: usize = 320 << 20;
/// The overhead of a map entry.
const ENTRY_BYTES: usize = 64;
/// async-profiler and the JDK walk at most 2,048 frames by default.
const FRAMES_MAX: u64 = 1 << 16;

/// A name: inline, or a key into the pool of symbols or strings.
#[derive(Debug, Clone)]
enum Name {
    Text(Text),
    Symbol(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RawFrame {
    method: u64,
    line: u32,
    kind: u64,
}

/// The pools of one chunk.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    strings: HashMap<u64, Text>,
    symbols: HashMap<u64, Name>,
    classes: HashMap<u64, Name>,
    methods: HashMap<u64, (u64, Name)>,
    kinds: HashMap<u64, FrameKind>,
    threads: HashMap<u64, (Name, Name)>,
    stacks: HashMap<u64, Box<[RawFrame]>>,
    bytes: usize,
}

#[derive(Debug, Clone, Copy)]
enum Pool {
    Strings,
    Symbols,
    Classes,
    Methods,
    Kinds,
    Threads,
    Stacks,
}

/// Each pool's type, and the wanted fields.
const POOLS: [(&str, Pool, &[&str]); 7] = [
    ("java.lang.String", Pool::Strings, &[]),
    ("jdk.types.Symbol", Pool::Symbols, &["string"]),
    ("java.lang.Class", Pool::Classes, &["name"]),
    ("jdk.types.Method", Pool::Methods, &["type", "name"]),
    ("jdk.types.FrameType", Pool::Kinds, &["description"]),
    ("java.lang.Thread", Pool::Threads, &["osName", "javaName"]),
    ("jdk.types.StackTrace", Pool::Stacks, &["frames"]),
];
const FRAME_FIELDS: [&str; 3] = ["method", "lineNumber", "type"];

impl Tables {
    /// Reads a checkpoint event; the input is positioned after its size and type.
    pub(crate) fn read(&mut self, types: &Types, input: &mut Input<'_>) -> InputResult<()> {
        let (_start, _duration, _delta, _mask) = (input.integer()?, input.integer()?, input.integer()?, input.byte()?);
        let pools = input.count()?;
        for _ in 0..pools {
            let id = input.integer()?;
            let Some(of) = types.get(id) else { return Err(Fault::Damage("a pool of a type that is not described")) };
            let count = input.count()?;
            match POOLS.iter().find(|(name, ..)| *name == of.name) {
                Some((_, pool, fields)) => self.pool(types, input, (*pool, fields), of, count)?,
                None => {
                    for _ in 0..count {
                        input.integer()?;
                        pass(types, input, of.form, false, 0)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn pool(
        &mut self,
        types: &Types,
        input: &mut Input<'_>,
        (pool, fields): (Pool, &[&str]),
        of: &Type,
        count: u64,
    ) -> InputResult<()> {
        let plan = Plan::new(types, of, fields)?;
        let texts = |field: &str| is_string(types, of, field);
        for _ in 0..count {
            input.step()?;
            let key = input.integer()?;
            match pool {
                Pool::Strings => {
                    let text = input.text()?;
                    self.spend(len(&text))?;
                    self.strings.insert(key, text);
                }
                Pool::Symbols => {
                    let [string] = plan.read(types, input)?;
                    let name = self.name(string, texts("string"))?;
                    self.symbols.insert(key, name);
                }
                Pool::Classes => {
                    let [name] = plan.read(types, input)?;
                    let name = self.name(name, texts("name"))?;
                    self.classes.insert(key, name);
                }
                Pool::Methods => {
                    let [class, name] = plan.read(types, input)?;
                    let name = self.name(name, texts("name"))?;
                    self.methods.insert(key, (class.number(), name));
                }
                Pool::Kinds => {
                    let [description] = plan.read(types, input)?;
                    let name = self.name(description, texts("description"))?;
                    self.kinds.insert(key, FrameKind::described(&self.text(&name)));
                }
                Pool::Threads => {
                    let [os, java] = plan.read(types, input)?;
                    let names = (self.name(os, texts("osName"))?, self.name(java, texts("javaName"))?);
                    self.threads.insert(key, names);
                }
                Pool::Stacks => {
                    let mut frames = Vec::new();
                    let _: [Value; 1] = plan.read_with(types, input, |_, input, form| {
                        frames = read_frames(types, input, form)?;
                        Ok(())
                    })?;
                    self.spend(frames.len() * size_of::<RawFrame>())?;
                    self.stacks.insert(key, frames.into_boxed_slice());
                }
            }
        }
        Ok(())
    }

    fn name(&mut self, value: Value, of_strings: bool) -> InputResult<Name> {
        let name = match value {
            Value::Text(text) => Name::Text(text),
            Value::Number(key) if of_strings => Name::Text(Text::Pooled(key)),
            Value::Number(key) => Name::Symbol(key),
            Value::Missing => Name::Text(Text::Null),
        };
        self.spend(if let Name::Text(text) = &name { len(text) } else { 0 })?;
        Ok(name)
    }

    fn spend(&mut self, bytes: usize) -> InputResult<()> {
        self.bytes = self.bytes.saturating_add(bytes + ENTRY_BYTES);
        match self.bytes > BYTES_MAX {
            true => Err(Fault::Damage("tables larger than 320 MiB")),
            false => Ok(()),
        }
    }

    /// The text of a string; empty if there is none. A pooled string that refers to the pool again is empty, which
    /// prevents cycles.
    pub(crate) fn string<'t>(&'t self, text: &'t Text) -> &'t str {
        let inline = |text: &'t Text| if let Text::Inline(text) = text { text.as_str() } else { "" };
        match text {
            Text::Pooled(key) => self.strings.get(key).map_or("", inline),
            text => inline(text),
        }
    }

    fn text(&self, name: &Name) -> String {
        let text = match name {
            Name::Symbol(key) => match self.symbols.get(key) {
                Some(Name::Text(text)) => text,
                Some(Name::Symbol(_)) | None => return String::new(),
            },
            Name::Text(text) => text,
        };
        self.string(text).to_owned()
    }

    pub(crate) fn have_stacks(&self) -> bool {
        !self.stacks.is_empty()
    }

    /// The name of a class, with dots: `java.lang.String`.
    pub(crate) fn class(&self, key: u64) -> String {
        self.classes.get(&key).map(|name| class_name(&self.text(name))).unwrap_or_default()
    }

    /// The name of a thread, preferably Java's.
    pub(crate) fn thread(&self, key: u64) -> String {
        let Some((os, java)) = self.threads.get(&key) else { return String::new() };
        let java = self.text(java);
        if java.is_empty() { self.text(os) } else { java }
    }

    /// The frames of a stack, innermost first; empty if it is unknown.
    pub(crate) fn stack(&self, key: u64) -> &[RawFrame] {
        self.stacks.get(&key).map_or(&[], |frames| frames)
    }

    pub(crate) fn frame(&self, raw: RawFrame) -> Frame {
        let (class, method) = match self.methods.get(&raw.method) {
            Some((class, name)) => (*class, self.text(name)),
            None => (0, String::new()),
        };
        let kind = self.kinds.get(&raw.kind).copied().unwrap_or(FrameKind::Native);
        let class = if kind == FrameKind::Java { self.class(class) } else { self.native_class(class) };
        Frame { class: Arc::from(class), method: Arc::from(method), line: (raw.line > 0).then_some(raw.line), kind }
    }

    /// The library of a native frame, whose name is not a class name.
    fn native_class(&self, key: u64) -> String {
        self.classes.get(&key).map(|name| self.text(name)).unwrap_or_default()
    }
}

fn len(text: &Text) -> usize {
    if let Text::Inline(text) = text { text.len() } else { 0 }
}

/// Whether a field is a string, so its key refers to the pool of strings.
fn is_string(types: &Types, of: &Type, field: &str) -> bool {
    let field = of.fields.iter().find(|own| own.name == field);
    field.and_then(|field| types.get(field.of)).is_some_and(|of| of.name == "java.lang.String")
}

fn read_frames(types: &Types, input: &mut Input<'_>, form: Form) -> InputResult<Vec<RawFrame>> {
    let of = if let Form::Fields(of) = form { types.get(of) } else { None };
    let Some(of) = of else { return Err(Fault::Damage("frames of a type without fields")) };
    let plan = Plan::new(types, of, &FRAME_FIELDS)?;
    let count = input.count()?;
    if count > FRAMES_MAX {
        return Err(Fault::Damage("a stack is impossibly deep"));
    }
    let mut frames = Vec::new();
    for _ in 0..count {
        input.step()?;
        let [method, line, kind] = plan.read(types, input)?;
        let line = u32::try_from(line.number()).ok().filter(|line| *line <= i32::MAX as u32).unwrap_or(0);
        frames.push(RawFrame { method: method.number(), line, kind: kind.number() });
    }
    Ok(frames)
}
