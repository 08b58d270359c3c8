//! What `# TYPE`, `# HELP` and `# UNIT` say, found again under the names that queries use: OpenMetrics declares
//! the family `http_requests`, users ask for `http_requests_total`.

use std::collections::HashMap;

use super::line::MetadataKind;
use crate::domain::MetricType;

/// Declarations by the name that the comment gives, which is that of the family.
#[derive(Debug, Default, PartialEq)]
pub(in crate::source) struct Metadata {
    families: HashMap<String, Family>,
}

#[derive(Debug, Default, Clone, PartialEq)]
struct Family {
    kind: String,
    help: String,
    unit: String,
}

/// What is known of the samples of one name.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::source) struct Description {
    pub kind: MetricType,
    pub help: String,
    pub unit: String,
}

impl Metadata {
    /// Notes a declaration; of several for one family the first stays.
    pub fn declare(&mut self, kind: MetadataKind, family: String, text: String) {
        let family = self.families.entry(family).or_default();
        let field = match kind {
            MetadataKind::Type => &mut family.kind,
            MetadataKind::Help => &mut family.help,
            MetadataKind::Unit => &mut family.unit,
        };
        if field.is_empty() {
            *field = text;
        }
    }

    /// Describes the samples called `name`.
    pub fn describe(&self, name: &str) -> Description {
        let exact = self.families.get(name).map(|family| (family, ""));
        // The longest family name first, so that `a_sum_total` belongs to `a_sum` before `a`.
        let by_suffix =
            name.rmatch_indices('_').find_map(|(at, _)| Some((self.families.get(&name[..at])?, &name[at..])));
        let described =
            exact.or(by_suffix).and_then(|(family, suffix)| Some((family, sample_type(&family.kind, suffix)?)));
        match described {
            Some((family, kind)) => Description { kind, help: family.help.clone(), unit: family.unit.clone() },
            None => Description { kind: MetricType::Unknown, help: String::new(), unit: String::new() },
        }
    }
}

/// The type of the samples that carry `suffix` in a family of the declared type; `None` when such a family has
/// no such samples.
fn sample_type(declared: &str, suffix: &str) -> Option<MetricType> {
    match (declared, suffix) {
        // The instant at which the counting began.
        ("counter" | "histogram" | "summary", "_created") => Some(MetricType::Gauge),
        ("counter", "" | "_total") => Some(MetricType::Counter),
        ("histogram", "" | "_bucket" | "_sum" | "_count") => Some(MetricType::Histogram),
        ("summary", "" | "_sum" | "_count") => Some(MetricType::Summary),
        ("gauge" | "stateset", "") => Some(MetricType::Gauge),
        ("info", "" | "_info") => Some(MetricType::Gauge),
        // The buckets of a gauge histogram go up and down.
        ("gaugehistogram", "" | "_bucket" | "_gsum" | "_gcount") => Some(MetricType::Gauge),
        (_, "") => Some(MetricType::Unknown),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn declared(types: &[(&str, &str)]) -> Metadata {
        let mut metadata = Metadata::default();
        for (family, kind) in types {
            metadata.declare(MetadataKind::Type, (*family).to_owned(), (*kind).to_owned());
        }
        metadata
    }

    #[test]
    fn a_counter_is_described_under_the_name_of_its_samples() {
        let mut metadata = declared(&[("http_requests", "counter")]);
        metadata.declare(MetadataKind::Help, "http_requests".to_owned(), "Requests.".to_owned());
        metadata.declare(MetadataKind::Unit, "http_requests".to_owned(), "requests".to_owned());
        assert_eq!(
            metadata.describe("http_requests_total"),
            Description { kind: MetricType::Counter, help: "Requests.".to_owned(), unit: "requests".to_owned() }
        );
        assert_eq!(metadata.describe("http_requests_created").kind, MetricType::Gauge);
    }

    #[test]
    fn the_classic_format_declares_the_name_of_the_samples() {
        assert_eq!(declared(&[("a_total", "counter")]).describe("a_total").kind, MetricType::Counter);
    }

    #[test]
    fn the_parts_of_a_histogram_are_of_its_type() {
        let metadata = declared(&[("d_seconds", "histogram"), ("q", "summary"), ("g", "gaugehistogram")]);
        for name in ["d_seconds_bucket", "d_seconds_sum", "d_seconds_count"] {
            assert_eq!(metadata.describe(name).kind, MetricType::Histogram, "{name}");
        }
        assert_eq!(metadata.describe("q").kind, MetricType::Summary);
        assert_eq!(metadata.describe("q_sum").kind, MetricType::Summary);
        assert_eq!(metadata.describe("g_bucket").kind, MetricType::Gauge);
    }

    #[test]
    fn a_suffix_that_the_type_does_not_have_is_another_metric() {
        assert_eq!(declared(&[("jobs", "gauge")]).describe("jobs_total").kind, MetricType::Unknown);
        assert_eq!(
            declared(&[("a", "counter"), ("a_sum", "counter")]).describe("a_sum_total").kind,
            MetricType::Counter
        );
    }
}
