//! Chromium through its DevTools protocol, over a pipe: any window size, either theme, print, and real keys.

use super::browser::Browser;
use base64::Engine;
use loadline_test_support::KilledOnDrop;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// A reply takes milliseconds, or longer on a busy machine.
const WITHIN: Duration = Duration::from_secs(120);

/// A browser with one window, closed at the end of the test.
pub(crate) struct DevTools<'a> {
    browser: &'a Browser,
    _program: KilledOnDrop,
    commands: ChildStdin,
    messages: Receiver<Value>,
    session: String,
    calls: u64,
}

impl<'a> DevTools<'a> {
    /// Starts a browser with an empty window.
    pub(crate) fn start(browser: &'a Browser) -> Self {
        // The browser reads commands from descriptor 3 and writes replies to 4; the shell execs the browser.
        let mut command = browser.command("sh");
        command.args(["-c", r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null"#]).arg(browser.program());
        command.args(browser.options()).args(["--remote-debugging-pipe", "about:blank"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (commands, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (found, messages) = channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0) {
                let Some(message) = message.ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()) else { return };
                if found.send(message).is_err() {
                    return;
                }
            }
        });
        let program = KilledOnDrop(child);
        let mut this = Self { browser, _program: program, commands, messages, session: String::new(), calls: 0 };
        let target = this.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attached = this.call("Target.attachToTarget", &json!({"targetId": target["targetId"], "flatten": true}));
        attached["sessionId"].as_str().unwrap().clone_into(&mut this.session);
        this.call("Page.enable", &json!({}));
        // Keys reach the page as if its window had focus.
        this.call("Emulation.setFocusEmulationEnabled", &json!({"enabled": true}));
        this
    }

    fn call(&mut self, method: &str, parameters: &Value) -> Value {
        let id = self.send(method, parameters);
        let answer = self.wait(|message| message["id"] == id);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Sends a command; returns its number, which the reply repeats.
    fn send(&mut self, method: &str, parameters: &Value) -> u64 {
        self.calls += 1;
        let mut message = json!({"id": self.calls, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.commands.write_all(format!("{message}\0").as_bytes()).unwrap();
        self.calls
    }

    fn wait(&self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.messages.recv_timeout(WITHIN).expect("the browser must reply in time");
            if is_it(&message) {
                return message;
            }
        }
    }

    /// Opens a page and waits until it is loaded.
    pub(crate) fn open(&mut self, page: &str) {
        self.browser.write(page);
        let address = self.browser.address();
        self.send("Page.navigate", &json!({"url": address}));
        self.wait(|message| message["method"] == "Page.loadEventFired");
    }

    /// The value of a script expression, or of its promise.
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", &parameters);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Resizes the window.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let parameters = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600});
        self.call("Emulation.setDeviceMetricsOverride", &parameters);
        self.call("Emulation.setScrollbarsHidden", &json!({"hidden": true}));
    }

    /// Sets the media, `screen` or `print`, and the preferred scheme, `light` or `dark`.
    pub(crate) fn prefer(&mut self, media: &str, scheme: &str) {
        let features = json!([{"name": "prefers-color-scheme", "value": scheme}]);
        self.call("Emulation.setEmulatedMedia", &json!({"media": media, "features": features}));
    }

    /// Presses and releases a key.
    pub(crate) fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            _ => u32::from(key.as_bytes()[0]),
        };
        let text = if key == "Enter" { "\r" } else { key };
        let mut event = json!({"type": "rawKeyDown", "key": key, "code": key, "windowsVirtualKeyCode": code});
        if key == "Enter" || key.len() == 1 {
            (event["type"], event["text"]) = (json!("keyDown"), json!(text));
        }
        self.call("Input.dispatchKeyEvent", &event);
        event["type"] = json!("keyUp");
        self.call("Input.dispatchKeyEvent", &event);
    }

    /// The page printed as a PDF file.
    pub(crate) fn print(&mut self) -> Vec<u8> {
        let answer = self.call("Page.printToPDF", &json!({}));
        base64::engine::general_purpose::STANDARD.decode(answer["data"].as_str().unwrap()).unwrap()
    }
}
