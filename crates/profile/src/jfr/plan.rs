//! How the wanted fields of a type are taken from its bytes, whatever fields lie between them.

use super::input::{Fault, Input, InputResult, Text};
use super::metadata::{Field, Form, Type, Types};
use std::io::{Read, Seek};

/// Types lie in types: a stack trace has frames, a frame has numbers.
const DEPTH_MAX: usize = 8;

/// One field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// The type has no such field, or one of another kind.
    Missing,
    /// A number, or a key of a pool.
    Number(u64),
    /// A string.
    Text(Text),
}

impl Value {
    /// A number or a key; 0, which is no key, where there is none.
    pub(crate) fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Missing | Self::Text(_) => 0,
        }
    }
}

/// One field in the order of the bytes.
#[derive(Debug, Clone)]
struct FieldStep {
    form: Form,
    of: u64,
    array: bool,
    slot: Option<usize>,
}

/// The steps through a value of a type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    steps: Vec<FieldStep>,
}

impl Plan {
    /// For fields of these names; the values come in the order of the names.
    pub(crate) fn new(types: &Types, of: &Type, wanted: &[&str]) -> InputResult<Self> {
        let step = |field: &Field| {
            let form = if field.pooled { Form::Integer } else { types.form(field.of)? };
            let slot = wanted.iter().position(|name| *name == field.name);
            Ok(FieldStep { form, of: field.of, array: field.array, slot })
        };
        Ok(Self { steps: of.fields.iter().map(step).collect::<InputResult<_>>()? })
    }

    /// Reads a value.
    pub(crate) fn read<const N: usize, R: Read + Seek>(
        &self,
        types: &Types,
        input: &mut Input<R>,
    ) -> InputResult<[Value; N]> {
        self.read_with(types, input, |_, _, _| Ok(false))
    }

    /// Reads a value; `own` may read an array of a wanted field by itself, and says whether it did. It is given the
    /// field's place among the wanted and the id of the elements' type, with the input before the count.
    pub(crate) fn read_with<const N: usize, R: Read + Seek>(
        &self,
        types: &Types,
        input: &mut Input<R>,
        mut own: impl FnMut(usize, u64, &mut Input<R>) -> InputResult<bool>,
    ) -> InputResult<[Value; N]> {
        let mut values = [const { Value::Missing }; N];
        for step in &self.steps {
            match step.slot.filter(|slot| *slot < N) {
                Some(slot) if step.array => {
                    if !own(slot, step.of, input)? {
                        pass_array(types, input, step.form, step.of, 0)?;
                    }
                }
                Some(slot) => match step.form {
                    Form::Byte => values[slot] = Value::Number(u64::from(input.byte()?)),
                    Form::Integer => values[slot] = Value::Number(input.integer()?),
                    Form::Text => values[slot] = Value::Text(input.text()?),
                    Form::Fixed(_) | Form::Fields => pass(types, input, step.form, step.of, 0)?,
                },
                None if step.array => pass_array(types, input, step.form, step.of, 0)?,
                None => pass(types, input, step.form, step.of, 0)?,
            }
        }
        Ok(values)
    }
}

fn pass_array<R: Read + Seek>(
    types: &Types,
    input: &mut Input<R>,
    form: Form,
    of: u64,
    depth: usize,
) -> InputResult<()> {
    let count = input.count()?;
    (0..count).try_for_each(|_| pass(types, input, form, of, depth))
}

/// Skips a value.
pub(crate) fn pass<R: Read + Seek>(
    types: &Types,
    input: &mut Input<R>,
    form: Form,
    of: u64,
    depth: usize,
) -> InputResult<()> {
    input.step()?;
    match form {
        Form::Byte => input.skip(1),
        Form::Integer => input.integer().map(|_| ()),
        Form::Fixed(bytes) => input.skip(bytes),
        Form::Text => input.text().map(|_| ()),
        Form::Fields if depth >= DEPTH_MAX => Err(Fault::Damage("types that contain themselves")),
        Form::Fields => {
            let Some(of) = types.get(of) else { return Err(Fault::Damage("a type that is not described")) };
            of.fields.iter().try_for_each(|field| {
                let form = if field.pooled { Form::Integer } else { types.form(field.of)? };
                match field.array {
                    true => pass_array(types, input, form, field.of, depth + 1),
                    false => pass(types, input, form, field.of, depth + 1),
                }
            })
        }
    }
}
