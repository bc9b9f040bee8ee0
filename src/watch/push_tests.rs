//! Collectors that accept, reject, are busy, hang, or are gone: every offered export is accepted, or reported as lost.

use super::*;
use loadline_test_support::ReceivedRequest;
use std::io::{BufReader, Write};
use std::net::TcpListener;
use std::sync::{Mutex, PoisonError};

const TAKES: &str = "200 OK\r\nContent-Length: 0";
const PARTLY: &str = "200 OK\r\nContent-Length: 72\r\n\r\n{\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"too old\"}}  ";
const BUSY: &str = "503 Busy\r\nRetry-After: 0\r\nContent-Length: 0";
const REFUSES: &str = "400 Bad Request\r\nContent-Length: 0";
const HANGS: &str = "";
const BREAKS_OFF: &str = "200";
const LONG: Duration = Duration::from_secs(60);

/// Responds according to a script, then accepts everything; returns what it accepted.
struct Collecting {
    port: u16,
    taken: Arc<Mutex<Vec<String>>>,
}

impl Collecting {
    fn start(script: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, taken) = (listener.local_addr().unwrap().port(), Arc::new(Mutex::new(Vec::new())));
        let own = Arc::clone(&taken);
        std::thread::spawn(move || {
            let mut hanging = Vec::new();
            for answer in script.iter().chain(std::iter::repeat(&TAKES)) {
                let Ok((mut stream, _)) = listener.accept() else { return };
                let request = ReceivedRequest::read(&mut BufReader::new(&stream)).unwrap();
                let counts = answer.starts_with("200 ");
                if counts {
                    own.lock().unwrap_or_else(PoisonError::into_inner).push(String::from_utf8(request.body).unwrap());
                }
                if *answer == HANGS {
                    hanging.push(stream);
                    continue;
                }
                let end = if answer.contains("\r\n\r\n") || *answer == BREAKS_OFF { "" } else { "\r\n\r\n" };
                stream.write_all(format!("HTTP/1.1 {answer}{end}").as_bytes()).unwrap();
            }
        });
        Self { port, taken }
    }

    fn taken(&self) -> Vec<String> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn pushing(port: u16) -> Pushing {
    let set = |name: &str| {
        let ms = match name {
            "OTEL_METRIC_EXPORT_INTERVAL" => "100",
            "OTEL_EXPORTER_OTLP_TIMEOUT" => "300",
            _ => return None,
        };
        Some(ms.to_owned())
    };
    let collector = Collector::of(&format!("http://127.0.0.1:{port}"), set).unwrap();
    Pushing::start(collector, Clock::start()).unwrap()
}

fn lost(told: &[String]) -> usize {
    let counts = told.iter().filter_map(|what| {
        let words: Vec<&str> = what.split([' ', ';', ':']).collect();
        let at = words.iter().position(|word| word.starts_with("export"))?;
        words[at - 1].parse::<usize>().ok()
    });
    counts.sum()
}

#[test]
fn offered_data_is_accepted_or_reported_lost() {
    let script = &[TAKES, BUSY, PARTLY, REFUSES, HANGS, BREAKS_OFF, TAKES, REFUSES];
    let collecting = Collecting::start(script);
    let (mut pushing, clock) = (pushing(collecting.port), Clock::start());
    let (mut offered, mut told) = (0, Vec::new());
    // The complete script, and two more.
    while collecting.taken().len() < 5 {
        told.extend(pushing.offer(|| {
            offered += 1;
            format!("{offered}")
        }));
        assert!(clock.now() < LONG, "{told:?}");
        clock.sleep(LOOK_EVERY);
    }
    told.extend(pushing.end());
    let mut taken = collecting.taken();
    taken.sort();
    taken.dedup();
    assert_eq!(taken.len() + lost(&told), offered, "{taken:?}, {told:?}");
    let says = |piece: &str| told.iter().filter(|what| what.contains(piece)).count();
    assert_eq!(says("could not be sent: it responded with `503 Busy`; it will be retried"), 1, "{told:?}");
    assert_eq!(says("3 data points were rejected: too old"), 1, "{told:?}");
    assert_eq!(says("could not be sent: it responded with `400 Bad Request`; it will not be retried"), 2, "{told:?}");
    assert_eq!(says("sending metrics again"), 3, "{told:?}");
}

#[test]
fn a_missing_collector_causes_no_delay_and_losses_are_reported() {
    // The listener is closed immediately.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (mut pushing, clock) = (pushing(port), Clock::start());
    let (mut offered, mut told) = (0, Vec::new());
    while offered < 4 {
        told.extend(pushing.offer(|| {
            offered += 1;
            String::new()
        }));
        assert!(clock.now() < LONG, "{told:?}");
        clock.sleep(LOOK_EVERY);
    }
    told.extend(pushing.end());
    assert_eq!(lost(&told), offered, "{told:?}");
    assert!(told[0].contains("it will be retried"), "{told:?}");
}
