//! A small client of Chromium's DevTools protocol: messages end with a zero byte, over two pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const PROGRAM: &str = "/usr/bin/chromium";
/// A busy machine takes long to start a browser.
const PATIENCE: Duration = Duration::from_secs(120);

/// Whether a browser is there; otherwise why a test that needs one does not run.
pub fn is_here() -> bool {
    let left_out = std::env::var("WEIGH_LEFT_OUT").unwrap_or_default();
    if left_out.split(' ').any(|package| package == "chromium") {
        return false;
    }
    let is_here = Path::new(PROGRAM).exists();
    if !is_here {
        testing::skip("the report in a browser: chromium is not installed");
    }
    is_here
}

/// A folder of pages that goes with the test.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("weigh-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// Writes a page; returns where a browser finds it.
    pub fn page(&self, name: &str, text: &str) -> String {
        std::fs::write(self.0.join(name), text).unwrap();
        self.url(name)
    }

    pub fn url(&self, name: &str) -> String {
        format!("file://{}", self.0.join(name).display())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Boxes that leave the window, and labels of pictures that are cut off or overlap.
pub const MISFITS: &str = include_str!("chromium/misfits.js");

pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: Receiver<Value>,
    session: String,
    calls: u64,
    events: Vec<Value>,
}

impl Browser {
    /// Starts it. Profile and downloads are in `folder`.
    pub fn start(folder: &Path) -> Self {
        let flags = "--headless --no-sandbox --disable-gpu --no-first-run --remote-debugging-pipe";
        let profile = folder.join("profile");
        // The protocol is on descriptors 3 and 4.
        let script = format!(
            "exec {PROGRAM} {flags} --user-data-dir=\"$1\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"
        );
        let mut child = Command::new("sh")
            .args(["-c", &script, "sh"])
            .arg(&profile)
            .env("HOME", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let mut pipe = BufReader::new(child.stdout.take().unwrap());
        let (sender, from) = channel();
        std::thread::spawn(move || {
            let mut message = Vec::new();
            while pipe.read_until(0, &mut message).is_ok_and(|read| read > 0) {
                message.pop();
                if let Ok(value) = serde_json::from_slice(&message)
                    && sender.send(value).is_err()
                {
                    return;
                }
                message.clear();
            }
        });
        let mut browser = Self {
            child,
            to,
            from,
            session: String::new(),
            calls: 0,
            events: Vec::new(),
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let attached = browser.call("Target.attachToTarget", attach);
        let downloads = json!({
            "behavior": "allow", "downloadPath": folder, "eventsEnabled": true,
        });
        browser.call("Browser.setDownloadBehavior", downloads);
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Calls a method of the tab, or of the browser before there is one.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.to.write_all(&bytes).unwrap();
        let answer = self.next(|message| message["id"] == id);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The next message that fits; events before it are kept.
    fn next(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let left = PATIENCE.saturating_sub(begin.elapsed());
            let message = self.from.recv_timeout(left);
            let message = message.expect("an answer of the browser");
            if fits(&message) {
                return message;
            }
            if !message["method"].is_null() {
                self.events.push(message);
            }
        }
    }

    /// The parameters of an event, which may have come already.
    pub fn wait_for(&mut self, event: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let is_it = |message: &Value| message["method"] == event && fits(&message["params"]);
        let found = match self.events.iter().position(&is_it) {
            Some(at) => self.events.remove(at),
            None => self.next(is_it),
        };
        found["params"].clone()
    }

    /// Opens a page in a window of that size and waits until it is loaded.
    pub fn open(&mut self, url: &str, width: u32, height: u32) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
        self.call("Page.navigate", json!({ "url": url }));
        self.wait_for("Page.loadEventFired", |_| true);
    }

    pub fn value(&mut self, expression: &str) -> Value {
        let params = json!({
            "expression": expression, "returnByValue": true, "awaitPromise": true,
            "userGesture": true,
        });
        let answer = self.call("Runtime.evaluate", params);
        assert!(
            answer["exceptionDetails"].is_null(),
            "{expression}: {answer}"
        );
        answer["result"]["value"].clone()
    }

    /// What the page complained of so far.
    pub fn complaints(&self) -> Vec<String> {
        let is_complaint = |event: &&Value| match event["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Page.javascriptDialogOpening") => true,
            Some("Runtime.consoleAPICalled") => event["params"]["type"] == "error",
            Some("Log.entryAdded") => event["params"]["entry"]["level"] == "error",
            _ => false,
        };
        let events = self.events.iter().filter(is_complaint);
        events.map(Value::to_string).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let close = b"{\"id\":0,\"method\":\"Browser.close\"}\0";
        let _ = self.to.write_all(close);
        let begin = Instant::now();
        while begin.elapsed() < Duration::from_secs(10) {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
