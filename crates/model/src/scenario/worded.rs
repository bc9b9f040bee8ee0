//! Enums whose values each have one word, the same in files, options and documents.

/// Defines such an enum, with the list of its values and conversions to and from their words.
macro_rules! worded {
    ($(#[$about:meta])* $name:ident { $($(#[$of:meta])* $value:ident = $word:tt,)* }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $($(#[$of])* #[serde(rename = $word)] $value,)*
        }

        impl $name {
            /// All values, in the order in which messages list them.
            pub const ALL: [Self; [$($word),*].len()] = [$(Self::$value),*];

            /// The word for it.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$value => $word,)*
                }
            }

            /// Returns the value of a word. The error lists all words, to show what would have been right.
            fn of_word(word: &str) -> std::result::Result<Self, String> {
                let known = Self::ALL.into_iter().find(|one| one.word() == word);
                known.ok_or_else(|| Self::ALL.map(Self::word).join(", "))
            }
        }
    };
}
