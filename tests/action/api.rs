//! A fake GitHub and GitLab API on loopback: comments can be listed, created, and edited; artifacts are on another
//! host; tokens can be read-only.

use loadline_test_support::ReceivedRequest;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};

/// The API's data, and its request log.
#[derive(Default)]
pub(crate) struct ApiState {
    /// Rejects writes with 403, as with a fork's token.
    pub(crate) is_read_only: bool,
    /// The token's user; a workflow's token cannot query it.
    pub(crate) login: Option<String>,
    /// Author and text; a comment's ID is its index, starting at 1.
    pub(crate) comments: Vec<(String, String)>,
    /// Artifact lists by request path.
    pub(crate) lists: BTreeMap<String, Value>,
    /// Zipped artifacts by ID.
    pub(crate) packed: BTreeMap<u64, Vec<u8>>,
    /// Heads of pull requests.
    pub(crate) heads: BTreeMap<u64, String>,
    /// Method and path of each request, and its header with the token.
    pub(crate) asked: Vec<(String, String)>,
}

impl ApiState {
    /// Requests that modify something.
    pub(crate) fn written(&self) -> Vec<&str> {
        let asked = self.asked.iter().map(|(request, _)| request.as_str());
        asked.filter(|request| !request.starts_with("GET ")).collect()
    }
}

/// Responds until the test ends.
pub(crate) struct Api {
    address: SocketAddr,
    state: Arc<Mutex<ApiState>>,
}

impl Api {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(ApiState::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                // Serially, because the scripts send one request at a time.
                serve(stream, address, &shared);
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, ApiState> {
        self.state.lock().unwrap()
    }
}

/// A response: status, redirect, body.
type Reply = (u16, Option<String>, Vec<u8>);

fn serve(stream: TcpStream, address: SocketAddr, state: &Mutex<ApiState>) {
    let mut reader = BufReader::new(stream);
    let Some(received) = ReceivedRequest::read(&mut reader) else { return };
    let Some(request) = received.head.lines().next().and_then(|line| line.strip_suffix(" HTTP/1.1")) else { return };
    let token = ["authorization", "private-token", "job-token"]
        .into_iter()
        .find_map(|name| received.header(name).map(|value| format!("{name}: {value}")));
    let (method, path) = request.split_once(' ').unwrap();
    let mut state = state.lock().unwrap();
    state.asked.push((request.to_owned(), token.unwrap_or_default()));
    let body: Value = serde_json::from_slice(&received.body).unwrap_or_default();
    let (code, location, text) = answer(&mut state, method, path, &body, address);
    let location = location.map(|to| format!("Location: {to}\r\n")).unwrap_or_default();
    let head = format!("HTTP/1.1 {code} Some\r\n{location}Content-Length: {}\r\nConnection: close\r\n\r\n", text.len());
    let mut stream = reader.into_inner();
    // If a client has disconnected, its output shows the reason.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&text));
}

fn answer(state: &mut ApiState, method: &str, path: &str, body: &Value, address: SocketAddr) -> Reply {
    let said = |code: u16, value: Value| (code, None, value.to_string().into_bytes());
    let no = |code: u16, why: &str| said(code, json!({"message": why}));
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let is_gitlab = path.starts_with("/projects/");
    let author = |login: &str| match is_gitlab {
        true => json!({"username": login}),
        false => json!({"login": login, "type": if login.ends_with("[bot]") { "Bot" } else { "User" }}),
    };
    let shown = |at: usize, (login, text): &(String, String)| {
        let key = if is_gitlab { "author" } else { "user" };
        json!({"id": at + 1, key: author(login), "body": text})
    };
    let own = state.login.clone().unwrap_or_else(|| "github-actions[bot]".to_owned());
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    match (method, parts.as_slice()) {
        ("GET", ["user"]) => match &state.login {
            Some(login) => said(200, json!({"login": login, "username": login})),
            None => no(403, "Resource not accessible by integration"),
        },
        ("GET", [.., "issues", "7", "comments"] | [.., "merge_requests", "7", "notes"]) => {
            let page: usize = query.rsplit("&page=").next().unwrap().parse().unwrap();
            let all = state.comments.iter().enumerate().map(|(at, comment)| shown(at, comment));
            said(200, all.skip((page - 1) * 100).take(100).collect())
        }
        ("POST" | "PATCH" | "PUT", _) if state.is_read_only => no(403, "Resource not accessible\n::error::by <b>"),
        ("POST", [.., "comments" | "notes"]) => {
            state.comments.push((own, body["body"].as_str().unwrap().to_owned()));
            said(201, json!({"id": state.comments.len()}))
        }
        ("PATCH", [.., "comments", number]) | ("PUT", [.., "notes", number]) => {
            let at: usize = number.parse().unwrap();
            state.comments[at - 1].1 = body["body"].as_str().unwrap().to_owned();
            said(200, json!({"id": at}))
        }
        ("GET", [.., "actions", "artifacts", number, "zip"]) => {
            // An alias of this host acts as another host.
            (302, Some(format!("http://localhost:{}/packed/{number}", address.port())), Vec::new())
        }
        ("GET", ["packed", number]) => packed(state, number.parse().unwrap()),
        ("GET", [.., "jobs", "artifacts", _, "download"]) => packed(state, 1),
        ("GET", [.., "pulls", number]) => match state.heads.get(&number.parse().unwrap()) {
            Some(head) => said(200, json!({"head": {"sha": head}, "base": {"ref": "main"}})),
            None => no(404, "Not Found"),
        },
        ("GET", [.., "artifacts"]) => match state.lists.get(path) {
            Some(list) => said(200, list.clone()),
            None => no(404, "Not Found"),
        },
        _ => no(404, "Not Found"),
    }
}

fn packed(state: &ApiState, number: u64) -> Reply {
    match state.packed.get(&number) {
        Some(bytes) => (200, None, bytes.clone()),
        None => (404, None, b"gone".to_vec()),
    }
}
