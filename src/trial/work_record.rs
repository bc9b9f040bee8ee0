//! Converts the load engine's results to records: figures of a phase, figures of one second, and verdicts.

use super::engine_thread::Interval;
use crate::clock::seconds_since;
use crate::load::{End, Outcome};
use crate::record::{
    Ages, ConnectionsRecord, Generator, PhaseRecord, Quantiles, QueueRecord, RequestRecord, Second, ThresholdRecord,
    Verdict,
};
use crate::scenario::{Condition, Model, Work};
use hdrhistogram::Histogram;

/// The record of a work phase; the caller adds its name, its time, and the subject's part.
pub(super) fn record_work(outcome: &Outcome, work: &Work) -> PhaseRecord {
    let elapsed_s = outcome.elapsed_ns as f64 / 1e9;
    let open = outcome.response.is_some();
    PhaseRecord {
        model: Model::from(&work.schedule),
        seconds: elapsed_s,
        requests: outcome.requests,
        ok: outcome.ok,
        failed: outcome.failures,
        offered_per_s: outcome.offered_per_s(),
        achieved_per_s: outcome.achieved_per_s(),
        service_ms: Quantiles::of(&outcome.service),
        response_ms: outcome.response.as_ref().and_then(Quantiles::of),
        generator: Some(generator(outcome, elapsed_s)),
        cut_short: match &outcome.ended {
            End::Done => None,
            End::Stopped => Some("it was stopped".to_owned()),
            End::GaveUp(why) | End::Met(why) => Some(why.clone()),
        },
        wrong_statuses: outcome.wrong_statuses.clone(),
        tls_trouble: outcome.tls_trouble.clone(),
        backend: Some(outcome.backend.clone()),
        connections: Some(ConnectionsRecord {
            asked: outcome.connections_asked,
            opened: outcome.connections_opened,
            open_max: outcome.connections_open_max,
        }),
        queue: open.then_some(QueueRecord { requests: outcome.queued, length_max: outcome.queue_max }),
        unanswered_ms: ages(&outcome.unanswered),
        in_flight: Some(outcome.in_flight),
        never_begun: open.then_some(outcome.never_begun),
        by_request: by_request(outcome, work),
        ..PhaseRecord::default()
    }
}

fn generator(outcome: &Outcome, elapsed_s: f64) -> Generator {
    let cpu_s = outcome.cpu_ns as f64 / 1e9;
    let available_s = elapsed_s * f64::from(outcome.threads.max(1));
    let lag = outcome.lag.as_ref().filter(|lag| !lag.is_empty());
    Generator {
        cpu_us_per_request: if outcome.requests == 0 { 0.0 } else { cpu_s * 1e6 / outcome.requests as f64 },
        cpu_share: if available_s > 0.0 { cpu_s / available_s } else { 0.0 },
        lag_ms_p99: lag.map(|lag| lag.value_at_quantile(0.99) as f64 / 1e6),
        lag_ms_p50: lag.map(|lag| lag.value_at_quantile(0.5) as f64 / 1e6),
        lag_ms_max: lag.map(|lag| lag.max() as f64 / 1e6),
        connections_opened: outcome.connections_opened,
        received_bytes: outcome.bytes_received,
        sent_bytes: Some(outcome.bytes_sent),
        threads: Some(outcome.threads),
    }
}

fn ages(histogram: &Histogram<u64>) -> Option<Ages> {
    let ms = |ns: u64| ns as f64 / 1e6;
    (!histogram.is_empty()).then(|| Ages {
        min: ms(histogram.min()),
        p50: ms(histogram.value_at_quantile(0.5)),
        max: ms(histogram.max()),
    })
}

/// Empty for a single request, because the totals are the same.
fn by_request(outcome: &Outcome, work: &Work) -> Vec<RequestRecord> {
    if work.others.is_empty() {
        return Vec::new();
    }
    let record = |(request, (ok, failed)): (&crate::scenario::Request, &(u64, u64))| RequestRecord {
        request: format!("{} {}", request.method.as_str(), request.path),
        weight: request.weight,
        ok: *ok,
        failed: *failed,
    };
    work.requests().zip(&outcome.by_request).map(record).collect()
}

/// The record of one interval, in seconds since `origin_ns`.
pub(super) fn record_second(phase: &str, open: bool, interval: &Interval, origin_ns: u64) -> Second {
    let seconds = seconds_since(interval.start_ns, interval.end_ns);
    Second {
        phase: phase.to_owned(),
        at_s: seconds_since(origin_ns, interval.start_ns),
        seconds,
        ok: interval.ok,
        failed: interval.failed,
        achieved_per_s: if seconds > 0.0 { interval.ok as f64 / seconds } else { 0.0 },
        received_bytes: interval.bytes_received,
        open_connections: interval.open_connections,
        queue: open.then_some(interval.queue),
        service_ms: Quantiles::of(&interval.service),
        response_ms: interval.response.as_ref().and_then(Quantiles::of),
    }
}

pub(super) fn judge(conditions: &[Condition], phase: &str, outcome: &Outcome) -> Vec<ThresholdRecord> {
    let verdict = |condition: &Condition| {
        let judged = condition.judge(outcome);
        ThresholdRecord {
            condition: condition.to_string(),
            phase: phase.to_owned(),
            verdict: match judged {
                Some((true, _)) => Verdict::Holds,
                Some((false, _)) => Verdict::Fails,
                None => Verdict::Unknown,
            },
            value: judged.map(|(_, value)| value),
            shown: judged.map(|(_, value)| condition.show(value)),
        }
    };
    conditions.iter().map(verdict).collect()
}
