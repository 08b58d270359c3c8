//! Figures and instants as people read them: `23 %`, `1.2 s`, `512 MiB`, `14:23:05`. In come a number and the
//! expression that gave it, out comes text.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Plain,
    /// Already out of a hundred.
    Percent,
    /// A share of one, shown out of a hundred.
    Ratio,
    Seconds,
    Milliseconds,
    Bytes,
    BytesPerSecond,
    /// Seconds since 1970.
    Instant,
}

/// The unit of the values of a PromQL expression, as far as names tell.
pub fn unit_of(expr: &str) -> Unit {
    let text = without_selectors(&expr.to_ascii_lowercase());
    let has = |word: &str| text.contains(word);
    let is_rate = has("rate(") || has("increase(");
    let is_quotient = text.contains('/');
    if has("* 100") || has("*100") || has("100 *") || has("percent") {
        return Unit::Percent;
    }
    if has("_expiry") || has("not_after") || has("timestamp_seconds") || has("start_time_seconds") {
        return if has("time()") { Unit::Seconds } else { Unit::Instant };
    }
    if has("_ratio") || has("utilization") || has("utilisation") {
        return Unit::Ratio;
    }
    if has("millis") || has("_ms") {
        return Unit::Milliseconds;
    }
    if has("seconds") || has("duration") || has("latency") {
        // The rate of a counter of seconds is a number of cores or a share of time, no duration.
        let averaged = has("histogram_quantile") || (is_quotient && has("_count"));
        let is_count = has("_count") && !is_quotient;
        return if is_count || (is_rate && !averaged) { Unit::Plain } else { Unit::Seconds };
    }
    if has("bytes") {
        return match (is_quotient, is_rate) {
            (true, _) => Unit::Ratio,
            (false, true) => Unit::BytesPerSecond,
            (false, false) => Unit::Bytes,
        };
    }
    if is_quotient && is_rate { Unit::Ratio } else { Unit::Plain }
}

/// An expression without what stands in braces: label values hold slashes and words that mean nothing here.
fn without_selectors(expr: &str) -> String {
    let mut depth = 0_usize;
    let keep = |c: &char| {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => return depth == 0,
        }
        false
    };
    expr.chars().filter(keep).collect()
}

/// A value with its unit, to about three digits.
pub fn figure(value: f64, unit: Unit) -> String {
    if !value.is_finite() {
        return if value.is_nan() {
            "NaN".into()
        } else if value > 0.0 {
            "+Inf".into()
        } else {
            "-Inf".into()
        };
    }
    match unit {
        Unit::Plain => plain(value),
        Unit::Percent => format!("{} %", plain(value)),
        Unit::Ratio => format!("{} %", plain(value * 100.0)),
        Unit::Seconds => duration(value),
        Unit::Milliseconds => duration(value / 1000.0),
        Unit::Bytes => bytes(value),
        Unit::BytesPerSecond => format!("{}/s", bytes(value)),
        Unit::Instant => instant(value),
    }
}

/// Three digits that matter; large numbers with separators (`48,210`).
fn plain(value: f64) -> String {
    let size = value.abs();
    if size >= 1e15 || (size > 0.0 && size < 1e-4) {
        return format!("{value:.2e}");
    }
    if size >= 100.0 {
        return grouped(value.round());
    }
    let digits = if size >= 10.0 {
        1
    } else if size >= 1.0 {
        2
    } else {
        4
    };
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

fn grouped(value: f64) -> String {
    let text = format!("{:.0}", value.abs());
    let mut out = String::new();
    for (index, digit) in text.chars().enumerate() {
        if index > 0 && (text.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if value < 0.0 { format!("-{out}") } else { out }
}

/// A count with separators.
pub fn count(value: u64) -> String {
    // Beyond 2^53 the text loses digits that nobody reads.
    grouped(value as f64)
}

fn duration(seconds: f64) -> String {
    let size = seconds.abs();
    match size {
        0.0 => "0 s".into(),
        _ if size < 0.001 => format!("{} µs", plain(seconds * 1e6)),
        _ if size < 1.0 => format!("{} ms", plain(seconds * 1000.0)),
        _ if size < 120.0 => format!("{} s", plain(seconds)),
        _ if size < 7200.0 => format!("{} min", plain(seconds / 60.0)),
        _ if size < 172_800.0 => format!("{} h", plain(seconds / 3600.0)),
        _ => format!("{} d", plain(seconds / 86_400.0)),
    }
}

fn bytes(value: f64) -> String {
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut scaled = value;
    let mut unit = 0;
    while scaled.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{} {}", plain(scaled), UNITS[unit])
}

fn instant(seconds: f64) -> String {
    // The cast saturates; the constructor refuses what is out of range.
    match Timestamp::from_second(seconds as i64) {
        Ok(at) if seconds > 1e8 => at.strftime("%Y-%m-%d %H:%M:%SZ").to_string(),
        _ => plain(seconds),
    }
}

/// The time of day in a zone, to the second.
pub fn clock(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned_datetime(zone.clone()).strftime("%H:%M:%S").to_string()
}

/// Month, day and time of day in a zone: for things that may lie on another day.
pub fn date(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned_datetime(zone.clone()).strftime("%m-%d %H:%M").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_readable() {
        for (value, unit, want) in [
            (0.0, Unit::Plain, "0"),
            (126.0, Unit::Plain, "126"),
            (48_210.4, Unit::Plain, "48,210"),
            (0.0312, Unit::Plain, "0.0312"),
            (2.50, Unit::Plain, "2.5"),
            (23.0, Unit::Percent, "23 %"),
            (0.1584, Unit::Ratio, "15.8 %"),
            (1.2, Unit::Seconds, "1.2 s"),
            (0.035, Unit::Seconds, "35 ms"),
            (0.0, Unit::Seconds, "0 s"),
            (1200.0, Unit::Milliseconds, "1.2 s"),
            (600.0, Unit::Seconds, "10 min"),
            (536_870_912.0, Unit::Bytes, "512 MiB"),
            (f64::NAN, Unit::Bytes, "NaN"),
            (f64::NEG_INFINITY, Unit::Plain, "-Inf"),
            (1_782_784_800.0, Unit::Instant, "2026-06-30 02:00:00Z"),
        ] {
            assert_eq!(figure(value, unit), want, "{value} {unit:?}");
        }
    }

    #[test]
    fn the_unit_is_read_from_names() {
        for (expr, want) in [
            ("rate(http_requests_total[5m])", Unit::Plain),
            ("rate(http_requests_total{handler=\"/v1\"}[75s])", Unit::Plain),
            ("rate(http_request_duration_seconds_count{le=\"1\"}[75s])", Unit::Plain),
            ("sum(rate(a_total{code=~\"5..\"}[5m])) / sum(rate(a_total[5m]))", Unit::Ratio),
            ("sum(rate(a_total[1m])) / sum(rate(a_total[1m])) * 100", Unit::Percent),
            ("histogram_quantile(0.99, rate(http_request_duration_seconds_bucket[5m]))", Unit::Seconds),
            ("rate(x_seconds_sum[5m]) / rate(x_seconds_count[5m])", Unit::Seconds),
            ("rate(container_cpu_usage_seconds_total[5m])", Unit::Plain),
            ("container_memory_working_set_bytes", Unit::Bytes),
            ("rate(node_network_receive_bytes_total[5m])", Unit::BytesPerSecond),
            ("kubelet_volume_stats_available_bytes / kubelet_volume_stats_capacity_bytes", Unit::Ratio),
            ("probe_ssl_earliest_cert_expiry", Unit::Instant),
            ("probe_ssl_earliest_cert_expiry - time()", Unit::Seconds),
        ] {
            assert_eq!(unit_of(expr), want, "{expr}");
        }
    }
}
