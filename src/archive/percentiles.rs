//! The percentile distribution of a histogram as HdrHistogram prints it (`outputPercentileDistribution`), `.hgrm`:
//! what its plotter and the tools around wrk2 read. Values in ms.
//!
//! ```text
//!        Value     Percentile TotalCount 1/(1-Percentile)
//!
//!     0.041983 0.000000000000          1           1.00
//! ```

use hdrhistogram::Histogram;

/// Lines for each halving of the distance to 100 %, as the other implementations print by default.
const TICKS_PER_HALF_DISTANCE: u32 = 5;
/// Buckets of a histogram with three significant digits are divided into so many.
const SUB_BUCKETS: u32 = 2048;

/// The distribution of a histogram of nanoseconds.
pub(super) fn text(histogram: &Histogram<u64>) -> String {
    let mut text = format!("{:>12} {:>14} {:>10} {:>14}\n\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)");
    let mut count = 0;
    for step in histogram.iter_quantiles(TICKS_PER_HALF_DISTANCE) {
        count += step.count_since_last_iteration();
        let (value, quantile) = (ms(step.value_iterated_to()), step.quantile_iterated_to());
        text.push_str(&match quantile < 1.0 {
            true => format!("{value:>12.6} {quantile:>14.12} {count:>10} {:>14.2}\n", 1.0 / (1.0 - quantile)),
            false => format!("{value:>12.6} {quantile:>14.12} {count:>10}\n"),
        });
    }
    let (mean, deviation) = (histogram.mean() / 1e6, histogram.stdev() / 1e6);
    let (max, total) = (ms(histogram.max()), histogram.len());
    text.push_str(&format!("#[Mean    = {mean:>12.6}, StdDeviation   = {deviation:>12.6}]\n"));
    text.push_str(&format!("#[Max     = {max:>12.6}, Total count    = {total:>12}]\n"));
    text.push_str(&format!("#[Buckets = {:>12}, SubBuckets     = {SUB_BUCKETS:>12}]\n", histogram.buckets()));
    text
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_rises_and_the_last_has_all() {
        let mut histogram = Histogram::<u64>::new(3).unwrap();
        for n in 1..=1000u64 {
            histogram.record(n * 1_000_000).unwrap();
        }
        let text = text(&histogram);
        let rows: Vec<Vec<f64>> = text
            .lines()
            .skip(2)
            .take_while(|line| !line.starts_with('#'))
            .map(|line| line.split_whitespace().map(|word| word.parse().unwrap()).collect())
            .collect();
        assert!(rows.windows(2).all(|pair| pair[0][0] <= pair[1][0] && pair[0][1] <= pair[1][1]), "{text}");
        let last = rows.last().unwrap();
        assert_eq!((last[1], last[2], last.len()), (1.0, 1000.0, 3), "{text}");
        assert!((last[0] - 1000.0).abs() < 1.0 && rows.len() > 20, "{text}");
        assert!(text.lines().rev().take(3).all(|line| line.starts_with("#[")), "{text}");
    }

    #[test]
    fn nothing_measured_is_still_a_whole_file() {
        let text = text(&Histogram::<u64>::new(3).unwrap());
        assert!(text.contains("Total count    =            0"), "{text}");
    }
}
