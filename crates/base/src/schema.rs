//! JSON schemas of values that can be written in several forms.

use crate::units::{Bytes, Count, Millicpus, Span};

/// Gives each type a named schema of its forms, so that editors show a single description of it.
#[macro_export]
macro_rules! written_as {
    ($($type:ty, $name:literal, |$generator:ident| $schema:tt;)*) => {$(
        impl ::schemars::JsonSchema for $type {
            fn schema_name() -> ::std::borrow::Cow<'static, str> {
                $name.into()
            }

            fn json_schema($generator: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                let _ = &$generator;
                ::schemars::json_schema!($schema)
            }
        }
    )*};
}

written_as! {
    Bytes, "size", |of| {
        "description": "A size with binary units, as in Java flags: `512k`, `64m`, `1g`; a bare number is in bytes.",
        "anyOf": [
            {"type": "string", "pattern": r"^ *([0-9]+\.?[0-9]*|\.[0-9]+) *([bB]|[kKmMgGtT]([iI]?[bB])?)? *$"},
            {"type": "number", "minimum": 0}
        ],
        "examples": ["6m", "64m", "1g"]
    };
    Millicpus, "millicpus", |of| {
        "description": "A number of CPUs: `500m` is `0.5`, and `2` is two CPUs.",
        "anyOf": [
            {"type": "string", "pattern": r"^ *([0-9]+\.?[0-9]*|\.[0-9]+) *m? *$"},
            {"type": "number", "minimum": 0.001, "maximum": 1_000_000}
        ],
        "examples": ["500m", 1.5, 2]
    };
    Span, "span", |of| {
        "description": "A duration: `500ms`, `30s`, `2m`, `1h`, `7d`; a bare number is in seconds.",
        "anyOf": [
            {"type": "string", "pattern": r"^ *([0-9]+\.?[0-9]*|\.[0-9]+) *(us|ms|s|m|min|h|d)? *$"},
            {"type": "number", "minimum": 0, "maximum": 31_536_000}
        ],
        "examples": ["500ms", "30s", "2m"]
    };
    Count, "count", |of| {
        "description": "A count: `50000`, `50k`, `1.5M`.",
        "anyOf": [
            {"type": "integer", "minimum": 1, "maximum": 1_000_000_000_000_u64},
            {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?[kKmM]?$"}
        ]
    };
}
