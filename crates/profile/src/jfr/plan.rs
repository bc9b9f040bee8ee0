//! Extracts the wanted fields of a type from its bytes, whatever fields lie between them.

use super::input::{Fault, Input, InputResult, Text};
use super::metadata::{Field, Form, Type, Types};

/// Types are nested: a stack trace has frames, a frame has numbers.
const DEPTH_MAX: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// The type has no such field, or the field has a different kind.
    Missing,
    /// A number or a pool key.
    Number(u64),
    Text(Text),
}

impl Value {
    /// The number or key; 0, which is not a key, for any other value.
    pub(crate) fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Missing | Self::Text(_) => 0,
        }
    }
}

/// How to read one field; steps are in the order of the bytes.
#[derive(Debug, Clone, Copy)]
struct FieldStep {
    form: Form,
    array: bool,
    slot: Option<usize>,
}

/// The steps through a value of a type.
#[derive(Debug, Clone, Default)]
pub(crate) struct Plan {
    steps: Vec<FieldStep>,
}

impl Plan {
    /// Plans to read the fields with these names; values come in the order of the names.
    pub(crate) fn new(types: &Types, of: &Type, wanted: &[&str]) -> InputResult<Self> {
        let step = |field: &Field| {
            let slot = wanted.iter().position(|name| *name == field.name);
            Ok(FieldStep { form: types.form(field)?, array: field.array, slot })
        };
        Ok(Self { steps: of.fields.iter().map(step).collect::<InputResult<_>>()? })
    }

    pub(crate) fn read<const N: usize>(&self, types: &Types, input: &mut Input<'_>) -> InputResult<[Value; N]> {
        self.read_with(types, input, |_, input, form| pass(types, input, form, true, 0))
    }

    /// Reads a value; `array` reads the array of a wanted field. It receives the field's index among the wanted ones
    /// and the element encoding, with the input before the count.
    pub(crate) fn read_with<const N: usize>(
        &self,
        types: &Types,
        input: &mut Input<'_>,
        mut array: impl FnMut(usize, &mut Input<'_>, Form) -> InputResult<()>,
    ) -> InputResult<[Value; N]> {
        let mut values = [const { Value::Missing }; N];
        for step in &self.steps {
            match (step.slot.filter(|slot| *slot < N), step.form) {
                (Some(slot), form) if step.array => array(slot, input, form)?,
                (Some(slot), Form::Byte) => values[slot] = Value::Number(u64::from(input.byte()?)),
                (Some(slot), Form::Integer) => values[slot] = Value::Number(input.integer()?),
                (Some(slot), Form::Text) => values[slot] = Value::Text(input.text()?),
                (_, form) => pass(types, input, form, step.array, 0)?,
            }
        }
        Ok(values)
    }
}

pub(crate) fn pass(types: &Types, input: &mut Input<'_>, form: Form, array: bool, depth: usize) -> InputResult<()> {
    let count = if array { input.count()? } else { 1 };
    (0..count).try_for_each(|_| {
        input.step()?;
        match form {
            Form::Byte => input.skip(1),
            Form::Integer => input.integer().map(|_| ()),
            Form::Fixed(bytes) => input.skip(bytes),
            Form::Text => input.text().map(|_| ()),
            Form::Fields(_) if depth >= DEPTH_MAX => Err(Fault::Damage("types that contain themselves")),
            Form::Fields(of) => {
                let Some(of) = types.get(of) else { return Err(Fault::Damage("a type that is not described")) };
                let inside = |field: &Field| pass(types, input, types.form(field)?, field.array, depth + 1);
                of.fields.iter().try_for_each(inside)
            }
        }
    })
}
