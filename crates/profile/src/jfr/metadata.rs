//! The types of a chunk: the fields of an event or pool value, in order. The recording describes them itself, so later
//! versions can add fields.
//!
//! The metadata event is a table of strings and a tree of elements (name, attributes, children), all by index:
//!
//! ```text
//! root ─ metadata ─ class name="profiler.Malloc" id="118" superType="jdk.jfr.Event"
//!                     └ field name="size" class="11" [constantPool="true"] [dimension="1"]
//! ```

use super::input::{Fault, Input, InputResult, Text};
use std::collections::HashMap;
use std::rc::Rc;

/// Elements are nested four deep (`root`, `metadata`, `class`, `field`, its annotations).
const DEPTH_MAX: usize = 16;
/// A JDK has about 400 types with 4,000 fields.
const ELEMENTS_MAX: usize = 200_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// `boolean`, `byte`.
    Byte,
    /// `char`, `short`, `int`, `long`, and pool keys.
    Integer,
    /// `float`, `double`: this many bytes.
    Fixed(u64),
    /// `java.lang.String`.
    Text,
    /// A type with fields, by its id.
    Fields(u64),
}

#[derive(Debug, Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    /// Id of its type.
    pub(crate) of: u64,
    /// Whether it is a key into its type's pool.
    pub(crate) pooled: bool,
    pub(crate) array: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct Type {
    pub(crate) name: String,
    pub(crate) form: Form,
    pub(crate) fields: Vec<Field>,
}

/// All types of a chunk, by id.
#[derive(Debug, Default)]
pub(crate) struct Types(HashMap<u64, Type>);

impl Types {
    /// Reads the metadata event; the input is positioned after its size and type.
    pub(crate) fn read(input: &mut Input<'_>) -> InputResult<Self> {
        let (_start, _duration, _id) = (input.integer()?, input.integer()?, input.integer()?);
        let count = input.count()?;
        let mut strings = Vec::new();
        for _ in 0..count {
            match input.text()? {
                Text::Inline(text) => strings.push(Rc::from(text)),
                Text::Null | Text::Pooled(_) => strings.push(Rc::from("")),
            }
        }
        let mut reader = Elements { strings, types: HashMap::new(), elements: 0 };
        reader.element(input, 0, None)?;
        Ok(Self(reader.types))
    }

    pub(crate) fn get(&self, id: u64) -> Option<&Type> {
        self.0.get(&id)
    }

    /// The encoding of a field's value; without a description of its type, it cannot even be skipped.
    pub(crate) fn form(&self, field: &Field) -> InputResult<Form> {
        match self.get(field.of) {
            _ if field.pooled => Ok(Form::Integer),
            Some(of) => Ok(of.form),
            None => Err(Fault::Damage("a value of a type that is not described")),
        }
    }
}

fn form(name: &str, id: u64) -> Form {
    match name {
        "boolean" | "byte" => Form::Byte,
        "char" | "short" | "int" | "long" => Form::Integer,
        "float" => Form::Fixed(4),
        "double" => Form::Fixed(8),
        "java.lang.String" => Form::Text,
        _ => Form::Fields(id),
    }
}

struct Elements {
    strings: Vec<Rc<str>>,
    types: HashMap<u64, Type>,
    elements: usize,
}

impl Elements {
    fn string(&self, input: &mut Input<'_>) -> InputResult<Rc<str>> {
        let at = input.integer()?;
        let text = usize::try_from(at).ok().and_then(|at| self.strings.get(at));
        text.cloned().ok_or(Fault::Damage("a description without its text"))
    }

    /// Reads an element with all its children; `class` is the id of the enclosing type.
    fn element(&mut self, input: &mut Input<'_>, depth: usize, class: Option<u64>) -> InputResult<()> {
        self.elements += 1;
        if depth > DEPTH_MAX || self.elements > ELEMENTS_MAX {
            return Err(Fault::Damage("too many or too deeply nested descriptions"));
        }
        let tag = self.string(input)?;
        let attributes = input.count()?;
        let (mut name, mut id, mut of, mut pooled, mut array) = (String::new(), None, None, false, false);
        for _ in 0..attributes {
            let key = self.string(input)?;
            let value = self.string(input)?;
            match &*key {
                "name" => name = value.to_string(),
                "id" => id = value.parse().ok(),
                "class" => of = value.parse().ok(),
                "constantPool" => pooled = &*value == "true",
                "dimension" => array = &*value == "1",
                _ => {}
            }
        }
        let mut inside = None;
        match (&*tag, id, of, class) {
            ("class", Some(id), _, _) => {
                self.types.insert(id, Type { form: form(&name, id), name, fields: Vec::new() });
                inside = Some(id);
            }
            ("field", _, Some(of), Some(class)) => {
                if let Some(class) = self.types.get_mut(&class) {
                    class.fields.push(Field { name, of, pooled, array });
                }
            }
            _ => {}
        }
        let children = input.count()?;
        (0..children).try_for_each(|_| self.element(input, depth + 1, inside))
    }
}
