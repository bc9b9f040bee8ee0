//! The requests of a phase, and the checks that make a response correct.

use loadline_base::units::Bytes;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::str::FromStr;

/// One HTTP request.
///
/// The path, header values, and [`Body::Text`] may contain `{seq}` (counts the requests of the phase from 0) and
/// `{rand LOW HIGH}` (a seeded whole number, both ends included); other braces are literal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Request {
    /// Upper-case method.
    pub method: Method,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Headers in addition to `Host`, `Content-Length`, and `Connection`.
    pub headers: Vec<(String, String)>,
    /// The body of the request.
    pub body: Body,
    /// How often it is drawn, relative to the others; at least 1.
    #[serde(default = "one")]
    pub weight: u32,
    /// Whether the body waits for `100 Continue` (RFC 9110, section 10.1.1), for a second at most.
    #[serde(default)]
    pub expect_continue: bool,
    /// The checks besides the status that make a response correct.
    #[serde(default)]
    pub checks: Checks,
}

fn one() -> u32 {
    1
}

impl Request {
    /// A plain request without headers or body.
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            headers: Vec::new(),
            body: Body::None,
            weight: 1,
            expect_continue: false,
            checks: Checks::default(),
        }
    }
}

/// The checks that make a response correct, besides being complete and in time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
pub struct Checks {
    /// The status, if it differs from that of the whole phase.
    #[serde(default)]
    pub status: Option<ExpectStatus>,
    /// Exactly this many bytes of body.
    #[serde(default)]
    pub length: Option<Bytes>,
    /// Required headers; with a value, exactly that value.
    #[serde(default)]
    pub headers: Vec<(String, Option<String>)>,
    /// Text that the body must contain.
    #[serde(default)]
    pub body: Option<String>,
}

loadline_base::named! {
    /// HTTP methods the engine sends.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "UPPERCASE")]
    pub enum Method,
    /// As on the wire.
    fn as_str {
        /// GET.
        Get = "GET",
        /// HEAD: the response has no body.
        Head = "HEAD",
        /// PUT.
        Put = "PUT",
        /// POST.
        Post = "POST",
        /// PATCH.
        Patch = "PATCH",
        /// DELETE.
        Delete = "DELETE",
        /// OPTIONS.
        Options = "OPTIONS",
    }
}

impl Method {
    /// Whether it may carry a body.
    pub fn takes_body(self) -> bool {
        !matches!(self, Self::Get | Self::Head)
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let upper = text.to_ascii_uppercase();
        Self::ALL.into_iter().find(|method| method.as_str() == upper).ok_or_else(|| {
            let words: Vec<_> = Self::ALL.iter().map(|method| method.as_str()).collect();
            format!("`{text}` is not one of {}", words.join(", "))
        })
    }
}

/// The body of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Body {
    /// Nothing.
    #[default]
    None,
    /// Size of a body of printable pseudo-random text, the same for every request.
    Generated(Bytes),
    /// This many zero bytes.
    Zero(Bytes),
    /// The contents of this file.
    File(PathBuf),
    /// This text.
    Text(String),
}

/// The status that counts as a correct response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExpectStatus {
    /// Any of 200–299.
    #[default]
    Success,
    /// Exactly this one.
    Exactly(u16),
}

impl ExpectStatus {
    /// Whether a response with this status is correct.
    #[inline]
    pub fn accepts(self, status: u16) -> bool {
        match self {
            Self::Success => (200..300).contains(&status),
            Self::Exactly(expected) => status == expected,
        }
    }
}
