//! The requests of a phase in h2's form. The engine builds the constant parts once and clones them; placeholders are
//! filled in per request. `message` provides bodies.

use crate::message::{Long, RequestOrder, body_of, check_header, check_path, tells_length};
use crate::schedule::Share;
use crate::template::Template;
use crate::wanted::Wanted;
use crate::work::{Request, Work};
use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::uri::{PathAndQuery, Scheme, Uri};
use loadline_base::error::{Error, Result};

/// HTTP/1.1 connection headers, which make an HTTP/2 request malformed (RFC 9113, section 8.2.2). Rejected in addition
/// to those that every protocol rejects.
const CONNECTION_HEADERS: [&str; 4] = ["proxy-connection", "keep-alive", "upgrade", "http2-settings"];

#[derive(Debug)]
pub(super) struct Requests {
    all: Vec<Encoded>,
    order: RequestOrder,
    scratch: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Encoded {
    method: http::Method,
    uri: Uri,
    /// Scheme and authority, and the path if it varies.
    filled_uri: Option<Template>,
    headers: HeaderMap,
    filled_headers: Vec<(HeaderName, Template)>,
    /// The constant body; empty if there is none, or if one of the two below is used.
    body: Bytes,
    filled_body: Option<Template>,
    /// The body that is generated or read during sending.
    pub(super) long: Option<Long>,
    /// The criteria for a correct response.
    pub(super) wanted: Wanted,
}

/// The next request, ready for h2.
#[derive(Debug)]
pub(super) struct Next {
    /// Index of the request in the plan.
    pub(super) index: u32,
    pub(super) number: u64,
    pub(super) head: http::Request<()>,
    /// The body, unless it is long.
    pub(super) body: Bytes,
    pub(super) long_bytes: u64,
}

impl Requests {
    /// Encodes the requests of `work` for the server `origin`, numbered for a share. Errors: the body's file cannot be
    /// read, or the path or a header is not allowed in a request.
    pub(super) fn encode(work: &Work, origin: Origin<'_>, seed: u64, share: Share) -> Result<Self> {
        let encode = |request| Encoded::encode(work, request, origin, seed);
        let all = work.requests().map(encode).collect::<Result<Vec<_>>>()?;
        let mut requests = Self { all, order: RequestOrder::new(work, seed, share), scratch: Vec::new() };
        // Fills in each request once, so that an unusable one is rejected before the phase begins.
        let mut order = RequestOrder::new(work, seed, share);
        for encoded in &requests.all {
            encoded.fill(&mut requests.scratch, 0, &mut order)?;
        }
        Ok(requests)
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    #[inline]
    pub(super) fn get(&self, index: u32) -> &Encoded {
        &self.all[index as usize]
    }

    /// The next request, drawn by weight. Errors: only a bug, because each request has already been filled in once.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Next> {
        let (index, number) = self.order.next();
        self.again(index as u32, number)
    }

    /// The same request with new random numbers.
    #[inline]
    pub(super) fn again(&mut self, index: u32, number: u64) -> Result<Next> {
        let encoded = &self.all[index as usize];
        let (head, body) = encoded.fill(&mut self.scratch, number, &mut self.order)?;
        let long_bytes = encoded.long.as_ref().map_or(0, |long| long.bytes);
        Ok(Next { index, number, head, body, long_bytes })
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Origin<'a> {
    /// As in [`Target`](crate::Target).
    pub(super) host: &'a str,
    pub(super) over_tls: bool,
}

impl Encoded {
    fn encode(work: &Work, request: &Request, origin: Origin<'_>, seed: u64) -> Result<Self> {
        check_path(&request.path)?;
        if request.path.contains('#') {
            return Err(Error::request(format!("`{}` has a fragment, which is never sent", request.path))
                .hint("write `#` as %23, or remove the fragment"));
        }
        let (body, filled_body, long) = body_of(request, seed)?;
        let (mut headers, mut filled_headers, mut host) = (HeaderMap::new(), Vec::new(), origin.host);
        for (name, value) in &request.headers {
            check_header(name, value)?;
            let refuse = || Error::request(format!("`{name}: {value}` is not an HTTP/2 request header"));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refuse())?;
            let trailers_only = name == http::header::TE && !value.eq_ignore_ascii_case("trailers");
            if CONNECTION_HEADERS.contains(&name.as_str()) || trailers_only {
                return Err(refuse().hint("remove it, or remove `http2`"));
            }
            let template = Template::parse(value)?;
            if name == http::header::HOST {
                // In HTTP/2, the `Host` of HTTP/1.1 becomes the pseudo-header `:authority`.
                host = value;
            } else if template.is_fixed() {
                headers.append(name, HeaderValue::from_str(value).map_err(|_| refuse())?);
            } else {
                filled_headers.push((name, template));
            }
        }
        let length = body.len() as u64 + long.as_ref().map_or(0, |long| long.bytes);
        // HTTP/2 does not need it, but both protocols should send the same request.
        if tells_length(request.method, length) && filled_body.is_none() {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        let scheme = if origin.over_tls { "https" } else { "http" };
        let text = format!("{scheme}://{host}{}", request.path);
        let template = Template::parse(&text)?;
        let (uri, filled_uri) = match template.is_fixed() {
            true => (uri(text.into())?, None),
            false => (Uri::default(), Some(template)),
        };
        let method = http::Method::from_bytes(request.method.as_str().as_bytes());
        Ok(Self {
            method: method.map_err(|_| Error::bug("not an HTTP method"))?,
            uri,
            filled_uri,
            headers,
            filled_headers,
            body: body.into(),
            filled_body,
            long,
            wanted: Wanted::of(work, request),
        })
    }

    /// Head and body with the placeholders filled in.
    #[inline]
    fn fill(&self, scratch: &mut Vec<u8>, number: u64, order: &mut RequestOrder) -> Result<(http::Request<()>, Bytes)> {
        let mut fill = |template: &Template| {
            scratch.clear();
            template.fill(scratch, number, &mut order.filling);
            Bytes::copy_from_slice(scratch)
        };
        let mut head = http::Request::new(());
        *head.method_mut() = self.method.clone();
        *head.uri_mut() = match &self.filled_uri {
            None => self.uri.clone(),
            Some(template) => uri(fill(template))?,
        };
        *head.headers_mut() = self.headers.clone();
        for (name, template) in &self.filled_headers {
            let value = HeaderValue::from_maybe_shared(fill(template))
                .map_err(|_| Error::request(format!("the value of `{name}` is not a valid header value")))?;
            head.headers_mut().append(name, value);
        }
        let Some(template) = &self.filled_body else { return Ok((head, self.body.clone())) };
        let body = fill(template);
        head.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        Ok((head, body))
    }
}

fn uri(text: Bytes) -> Result<Uri> {
    let refuse = |text: &Bytes| {
        Error::request(format!("`{}` is not a valid request path", String::from_utf8_lossy(text)))
            .hint("percent-encode characters that a URL cannot contain (%XX)")
    };
    let uri = Uri::from_maybe_shared(text.clone()).map_err(|_| refuse(&text))?;
    // A path that is parsed differently would be a different request.
    let kept = uri.path_and_query().map_or(0, |path: &PathAndQuery| path.as_str().len());
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    let scheme = uri.scheme().map_or(0, |scheme: &Scheme| scheme.as_str().len());
    if scheme + "://".len() + authority + kept == text.len() { Ok(uri) } else { Err(refuse(&text)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::{Body, Method, Until};
    use loadline_base::units::Bytes as Size;

    const ORIGIN: Origin<'_> = Origin { host: "h:1", over_tls: false };

    fn work(method: Method, headers: &[(&str, &str)], body: Body) -> Work {
        let headers = headers.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        Work::closed(Request { headers, body, ..Request::new(method, "/a?b") }, 1, Until::Requests(1))
    }

    fn encode(work: &Work) -> Result<Requests> {
        Requests::encode(work, ORIGIN, 7, Share::WHOLE)
    }

    fn next(work: &Work) -> Next {
        encode(work).unwrap().next().unwrap()
    }

    #[test]
    fn the_host_is_the_authority_and_lengths_are_sent() {
        let get = next(&work(Method::Get, &[("X-A", "b c")], Body::None));
        assert_eq!(get.head.uri(), "http://h:1/a?b");
        assert_eq!((get.head.headers().len(), &get.head.headers()["x-a"]), (1, &HeaderValue::from_static("b c")));
        let post = next(&work(Method::Post, &[("Host", "other")], Body::None));
        assert_eq!(post.head.uri(), "http://other/a?b");
        assert_eq!(post.head.headers()["content-length"], "0");
        let put = next(&work(Method::Put, &[], Body::Generated(Size(25))));
        assert_eq!((put.body.len(), &put.head.headers()["content-length"]), (25, &HeaderValue::from(25)));
        let long = next(&work(Method::Put, &[], Body::Zero(Size::mib(3))));
        assert_eq!((long.body.len(), long.long_bytes), (0, 3 << 20));
        let tls = Origin { over_tls: true, ..ORIGIN };
        let over_tls =
            Requests::encode(&work(Method::Get, &[], Body::None), tls, 7, Share::WHOLE).unwrap().next().unwrap();
        assert_eq!(over_tls.head.uri(), "https://h:1/a?b");
    }

    #[test]
    fn placeholders_are_filled_per_request() {
        let mut filled = work(Method::Post, &[("Id", "<{seq}>"), ("Host", "h{seq}")], Body::Text("{seq}{seq}".into()));
        filled.request.path = "/{rand 5 5}/{seq}".to_owned();
        let mut requests = Requests::encode(&filled, ORIGIN, 7, Share { index: 1, count: 3 }).unwrap();
        for number in [1, 4] {
            let next = requests.next().unwrap();
            assert_eq!(next.head.uri().to_string(), format!("http://h{number}/5/{number}"));
            assert_eq!(next.head.headers()["id"], format!("<{number}>"));
            assert_eq!(next.head.headers()["content-length"], "2");
            assert_eq!(next.body, format!("{number}{number}"));
        }
    }

    #[test]
    fn invalid_requests_are_rejected() {
        let names = ["connection", "transfer-encoding", "upgrade", "keep-alive", "content-length", ":path", "a b", ""];
        for name in names {
            assert!(encode(&work(Method::Get, &[(name, "x")], Body::None)).is_err(), "{name}");
        }
        assert!(encode(&work(Method::Get, &[("te", "trailers")], Body::None)).is_ok());
        assert!(encode(&work(Method::Get, &[("te", "gzip")], Body::None)).is_err());
        assert!(encode(&work(Method::Get, &[("a", "b\r\nc")], Body::None)).is_err());
        let mut odd = work(Method::Get, &[], Body::None);
        for path in ["", "a", "/a b", "/\u{fc}", "/a#b", "/{seq}#b", "/a{seq}<", "/{rand 2 1}"] {
            odd.request.path = path.to_owned();
            assert!(encode(&odd).is_err(), "{path}");
        }
    }
}
