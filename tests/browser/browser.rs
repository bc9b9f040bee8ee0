//! A headless Chromium with its own directory, a time limit, and a cleanup by process ID.

use loadline::report::Plot;
use loadline_test_support::{on_path, skip};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A page takes a second or two, or longer on a busy machine.
const WITHIN: Duration = Duration::from_secs(120);
const POLL: Duration = Duration::from_millis(20);
/// Options for a user who prefers the dark theme.
pub(crate) const DARK: &[&str] = &["--blink-settings=preferredColorScheme=0"];
/// The first starts three times faster than the others.
const PROGRAMS: [&str; 4] = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// The browser and its report file.
pub(crate) struct Browser {
    program: PathBuf,
    folder: TempDir,
}

impl Browser {
    /// This machine's browser, if any.
    pub(crate) fn find() -> Option<Self> {
        let program = PROGRAMS.iter().find_map(|name| on_path(name));
        if program.is_none() {
            skip("LOADLINE_BROWSER", "there is no Chromium");
        }
        Some(Self { program: program?, folder: tempfile::tempdir().unwrap() })
    }

    /// Writes the report for the browser.
    pub(crate) fn write(&self, page: &str) {
        fs::write(self.folder.path().join("report.html"), page).unwrap();
    }

    /// A screenshot of the report's top, without browser complaints.
    #[track_caller]
    pub(crate) fn screenshot(&self, width: u32, height: u32) -> Screenshot {
        self.screenshot_with(width, height, &[])
    }

    /// Like `screenshot`, with additional browser options. Saves images in `LOADLINE_SHOTS` if set.
    #[track_caller]
    pub(crate) fn screenshot_with(&self, width: u32, height: u32, more: &[&str]) -> Screenshot {
        let (bytes, log) = self.shoot("report.html", width, height, more);
        assert_eq!(complaints(&log), [""; 0]);
        if let Some(keep) = std::env::var_os("LOADLINE_SHOTS").map(PathBuf::from) {
            let how = if more.is_empty() { "" } else { "-dark" };
            fs::write(keep.join(format!("{}-{width}{how}.png", name_of_test())), &bytes).unwrap();
            fs::copy(self.folder.path().join("report.html"), keep.join(format!("{}.html", name_of_test()))).unwrap();
        }
        Screenshot::decode(&bytes)
    }

    /// A screenshot of a page that frames the report.
    pub(crate) fn screenshot_frame(&self, frame: &str, width: u32, height: u32) -> Screenshot {
        fs::write(self.folder.path().join("frame.html"), frame).unwrap();
        Screenshot::decode(&self.shoot("frame.html", width, height, &[]).0)
    }

    /// A chart file as rendered by the browser at twice its size; saved like screenshots.
    pub(crate) fn draw(&self, plot: &Plot) -> Screenshot {
        fs::write(self.folder.path().join("plot.svg"), &plot.svg).unwrap();
        let (bytes, log) = self.shoot("plot.svg", 960, 800, &["--force-device-scale-factor=2"]);
        assert_eq!(complaints(&log), [""; 0]);
        if let Some(keep) = std::env::var_os("LOADLINE_SHOTS").map(PathBuf::from) {
            fs::write(keep.join(format!("plot-{}.png", plot.name)), &bytes).unwrap();
        }
        Screenshot::decode(&bytes)
    }

    fn shoot(&self, page: &str, width: u32, height: u32, more: &[&str]) -> (Vec<u8>, String) {
        let file = self.folder.path().join("shot.png");
        let mut options = vec![
            format!("--screenshot={}", file.display()),
            format!("--window-size={width},{height}"),
            "--hide-scrollbars".to_owned(),
        ];
        options.extend(more.iter().map(|option| (*option).to_owned()));
        let (_, log) = self.call(&options, page);
        let bytes = fs::read(&file).unwrap_or_else(|cause| panic!("no screenshot: {cause}\n{log}"));
        (bytes, log)
    }

    /// The document after its script ran, without browser complaints.
    #[track_caller]
    pub(crate) fn dump(&self) -> String {
        let (dom, log) = self.call(&["--dump-dom".to_owned()], "report.html");
        assert_eq!(complaints(&log), [""; 0]);
        dom
    }

    /// A page that frames the report, after loading.
    pub(crate) fn dump_frame(&self, frame: &str) -> String {
        fs::write(self.folder.path().join("frame.html"), frame).unwrap();
        // Without the second option, a file cannot access its neighbor.
        let options = ["--dump-dom", "--allow-file-access-from-files", "--virtual-time-budget=20000"];
        self.call(&options.map(str::to_owned), "frame.html").0
    }

    /// The address of its report.
    pub(crate) fn address(&self) -> String {
        format!("file://{}", self.folder.path().join("report.html").display())
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// The options for every start. As root, as in CI, Chromium runs only without its sandbox. The resolver finds
    /// nothing, so any request to a host fails and is logged.
    pub(crate) fn options(&self) -> Vec<String> {
        let fixed = "--headless --no-sandbox --disable-gpu --disable-dev-shm-usage --no-first-run --v=0 \
                     --enable-logging=stderr --disable-background-networking --disable-component-update \
                     --disable-extensions --disable-quic --disable-sync --force-device-scale-factor=1 \
                     --force-color-profile=srgb";
        let profile = format!("--user-data-dir={}", self.folder.path().join("profile").display());
        let without_names = "--host-resolver-rules=MAP * ~NOTFOUND".to_owned();
        fixed.split(' ').map(str::to_owned).chain([without_names, profile]).collect()
    }

    /// The stderr of the last program started with [`Self::command`].
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.path().join("stderr")).unwrap()).into_owned()
    }

    /// A program whose stderr goes to a file in the directory.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.stderr(fs::File::create(self.folder.path().join("stderr")).unwrap());
        command
    }

    fn call(&self, options: &[String], file: &str) -> (String, String) {
        let path = |name: &str| self.folder.path().join(name);
        let output = |name: &str| Stdio::from(fs::File::create(path(name)).unwrap());
        let mut command = Command::new(&self.program);
        command
            .args(self.options())
            .args(options)
            .arg(format!("file://{}", path(file).display()))
            .stdin(Stdio::null())
            .stdout(output("stdout"))
            .stderr(output("stderr"));
        let mut child = command.spawn().unwrap();
        let in_time = wait(&mut child);
        let read = |name: &str| String::from_utf8_lossy(&fs::read(path(name)).unwrap()).into_owned();
        let log = read("stderr");
        assert!(in_time, "the browser did not finish within {WITHIN:?}\n{log}");
        (read("stdout"), log)
    }
}

fn name_of_test() -> String {
    let thread = std::thread::current();
    thread.name().unwrap_or("test").rsplit("::").next().unwrap_or("test").to_owned()
}

/// Whether it exited in time; otherwise, kills it and its helpers.
fn wait(child: &mut Child) -> bool {
    let until = Instant::now() + WITHIN;
    while Instant::now() < until {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(POLL);
    }
    let _ = child.kill();
    let _ = child.wait();
    false
}

/// A screenshot.
pub(crate) struct Screenshot {
    colours: Vec<[u8; 3]>,
}

impl Screenshot {
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
        decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
        let mut reader = decoder.read_info().unwrap();
        let mut buffer = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut buffer).unwrap();
        let samples = info.color_type.samples();
        let pixels = buffer[..info.buffer_size()].chunks_exact(samples);
        Self { colours: pixels.map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect() }
    }

    pub(crate) fn pixels(&self) -> usize {
        self.colours.len()
    }

    /// Pixels of exactly this color.
    pub(crate) fn count(&self, colour: [u8; 3]) -> usize {
        self.count_near(colour, 0)
    }

    /// Pixels of approximately this color.
    pub(crate) fn count_near(&self, colour: [u8; 3], most: u8) -> usize {
        let near = |seen: &&[u8; 3]| seen.iter().zip(colour).all(|(seen, wanted)| seen.abs_diff(wanted) <= most);
        self.colours.iter().filter(near).count()
    }
}

/// Browser log lines about the page: console messages and policy violations.
pub(crate) fn complaints(log: &str) -> Vec<&str> {
    let about = |line: &&str| {
        ["CONSOLE", "Refused to", "Content Security Policy", "http://", "https://"]
            .iter()
            .any(|word| line.contains(word))
    };
    // Lines about the browser itself or the machine contain `dbus` or `google`.
    log.lines().filter(about).filter(|line| !line.contains("dbus") && !line.contains("google")).collect()
}
