//! Enums with one word per value, used in files, options, and documents.

/// Defines such an enum, with a list of its values and conversions to and from words.
macro_rules! worded {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $value:ident = $word:tt,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $value,)*
        }

        impl $name {
            /// All values, in the order used by messages.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$value),*];

            /// Its word.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)*
                }
            }

            /// Parses a word. The error lists all valid words.
            fn of_word(word: &str) -> std::result::Result<Self, String> {
                let known = Self::ALL.into_iter().find(|one| one.word() == word);
                known.ok_or_else(|| Self::ALL.map(Self::word).join(", "))
            }
        }
    };
}
