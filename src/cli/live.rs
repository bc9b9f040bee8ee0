//! A run's events as lines on the terminal.

use crate::doubt::Doubt;
use crate::record::{ProbeVerdict, Trial};
use crate::report::Progress;
use crate::scenario::shell_words;
use crate::trial::{Event, Sink};
use crate::units::Bytes;

/// Shows events as progress.
pub(super) struct Live {
    pub(super) progress: Progress,
    /// Seconds and correct responses at the last sample shown.
    last: Option<(f64, u64)>,
    /// The doubt about the collector, until the next trial or the end shows it.
    collector: Collector,
}

/// The JVM's choice of a collector, which users should see before all trials have run.
#[derive(Default)]
enum Collector {
    #[default]
    Unseen,
    /// The line to show if another trial follows.
    Doubted(String),
    Shown,
}

impl Live {
    pub(super) fn new(progress: Progress) -> Self {
        Self { progress, last: None, collector: Collector::default() }
    }
}

impl Sink for Live {
    fn receive(&mut self, event: &Event<'_>) {
        let progress = &mut self.progress;
        match event {
            Event::Note(words) => progress.step(words),
            Event::Warning(words) => progress.warn(words),
            Event::TrialStarted(plan) => {
                if let Collector::Doubted(line) = &self.collector {
                    progress.step(line);
                    self.collector = Collector::Shown;
                }
                progress.step(&plan.title);
            }
            Event::Doubted(doubt @ Doubt::CollectorByCpus { .. }) if matches!(self.collector, Collector::Unseen) => {
                self.collector = Collector::Doubted(format!("note: {}: {}", doubt.text(), doubt.next()));
            }
            Event::TrialFinished(Trial { probe: Some(probe), .. }) => {
                progress.step(&verdict(probe.verdict, &probe.why))
            }
            Event::TrialFinished(Trial { tuned: Some(tuned), .. }) => {
                progress.step(&verdict(tuned.verdict, &tuned.why))
            }
            Event::Starting { command, .. } => {
                progress.step(&format!("  start: {}", shell_words(command)));
            }
            Event::Ready { pid, after } => {
                progress.step(&format!("  ready: pid {pid} after {:.2} s", after.as_secs_f64()))
            }
            Event::PhaseStarted { name, description } => {
                self.last = None;
                progress.step(&format!("  {name}: {description}"));
            }
            Event::Sample { phase: Some(phase), sample } => {
                let (before_s, before) = self.last.unwrap_or((sample.at_s, sample.ok));
                let span_s = sample.at_s - before_s;
                let rate = if span_s > 0.0 { sample.ok.saturating_sub(before) as f64 / span_s } else { 0.0 };
                progress.live(phase, sample.ok, sample.failed, rate, sample.rss_bytes);
                // The rate over a second, because single samples would flicker.
                if self.last.is_none() || span_s >= 1.0 {
                    self.last = Some((sample.at_s, sample.ok));
                }
            }
            Event::Marked(mark) => {
                let (word, bytes) = mark.weight();
                progress.step(&format!("  mark {}: {word} {}", mark.name, Bytes(bytes)));
            }
            Event::Sample { .. }
            | Event::Interval { .. }
            | Event::PhaseEnded(_)
            | Event::Requests { .. }
            | Event::Doubted(_)
            | Event::TrialFinished(_) => {}
        }
    }
}

/// `  target missed: p99.steady was 812 ms, but the target is p99<50ms`.
fn verdict(verdict: ProbeVerdict, why: &[String]) -> String {
    let why = if why.is_empty() { String::new() } else { format!(": {}", why.join("; ")) };
    match verdict {
        ProbeVerdict::Holds => "  target met".to_owned(),
        ProbeVerdict::Fails => format!("  target missed{why}"),
        ProbeVerdict::Discarded => format!("  discarded{why}"),
    }
}
