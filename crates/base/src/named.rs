//! Enums whose values each have one name, for documents, options, and screen output.

/// Defines such an enum, its list `ALL`, and the function that returns the name.
#[macro_export]
macro_rules! named {
    ($(#[$about:meta])* pub enum $type:ident, $(#[$on:meta])* fn $name:ident {
        $($(#[$of:meta])* $value:ident = $word:literal,)*
    }) => {
        $(#[$about])*
        pub enum $type {
            $($(#[$of])* $value,)*
        }

        impl $type {
            /// All values, in their order.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$value),*];

            $(#[$on])*
            pub const fn $name(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)*
                }
            }
        }
    };
}
