//! The series of a source in memory: samples go in one by one, sorted series come out.

use std::collections::HashMap;
use std::sync::Arc;

use super::line::{LineError, STALE_MARKER, parse_series};

pub use super::line::Labels;

/// One sample: milliseconds since 1970 and the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    pub at: i64,
    pub value: f64,
}

impl Point {
    /// Whether this says that the series ended here, rather than being a value.
    pub fn is_stale_marker(self) -> bool {
        self.value.to_bits() == STALE_MARKER
    }
}

/// A series with its samples in strictly ascending order of time.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredSeries {
    pub labels: Arc<Labels>,
    pub points: Vec<Point>,
    /// Whether any of the points is a stale marker.
    pub ends: Ends,
}

/// Whether a series holds stale markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ends {
    Unmarked,
    Marked,
}

/// All series, sorted by labels.
#[derive(Debug, Default, PartialEq)]
pub struct SeriesStore {
    series: Vec<StoredSeries>,
    by_name: HashMap<String, Vec<usize>>,
}

impl SeriesStore {
    /// The series of one metric, or all when no name is given, sorted by labels.
    pub fn candidates<'a>(&'a self, name: Option<&str>) -> Box<dyn Iterator<Item = &'a StoredSeries> + 'a> {
        match name {
            None => Box::new(self.series.iter()),
            Some(name) => {
                Box::new(self.by_name.get(name).into_iter().flatten().map(|&position| &self.series[position]))
            }
        }
    }
}

/// Collects samples into a [`SeriesStore`].
#[derive(Debug, Default)]
pub struct StoreBuilder {
    series: Vec<Growing>,
    /// Series by the text of name and labels, so that labels are parsed once per series and not once per line.
    by_text: HashMap<Box<[u8]>, usize>,
    by_labels: HashMap<Arc<Labels>, usize>,
    last: Option<usize>,
    samples: usize,
}

#[derive(Debug)]
struct Growing {
    labels: Arc<Labels>,
    /// The text by which the series was last found.
    text: Box<[u8]>,
    /// The series of the line that followed this one's last time: files repeat their order.
    successor: usize,
    points: Vec<Point>,
}

/// How a sample lies to those before it in its series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Ascending,
    /// It is older than an earlier one.
    Backwards,
}

impl StoreBuilder {
    pub fn series_count(&self) -> usize {
        self.series.len()
    }

    pub fn sample_count(&self) -> usize {
        self.samples
    }

    /// The text of the series that the next line probably has.
    pub fn likely_text(&self) -> Option<&[u8]> {
        let last = self.last?;
        Some(&self.series[self.series[last].successor].text)
    }

    /// Adds a sample to the series that `text` (name and labels as written) denotes.
    pub fn push(&mut self, text: &[u8], point: Point) -> Result<Order, LineError> {
        let id = self.find(text)?;
        if let Some(last) = self.last {
            self.series[last].successor = id;
        }
        self.last = Some(id);
        self.samples += 1;
        let points = &mut self.series[id].points;
        let order = match points.last() {
            Some(previous) if previous.at > point.at => Order::Backwards,
            _ => Order::Ascending,
        };
        points.push(point);
        Ok(order)
    }

    fn find(&mut self, text: &[u8]) -> Result<usize, LineError> {
        if let Some(last) = self.last {
            let likely = self.series[last].successor;
            if *self.series[likely].text == *text {
                return Ok(likely);
            }
        }
        if let Some(&id) = self.by_text.get(text) {
            return Ok(id);
        }
        let labels = Arc::new(parse_series(text)?);
        let id = *self.by_labels.entry(Arc::clone(&labels)).or_insert(self.series.len());
        if id == self.series.len() {
            self.series.push(Growing { labels, text: text.into(), successor: id, points: Vec::new() });
        }
        self.by_text.insert(text.into(), id);
        Ok(id)
    }

    /// Sorts series and samples. Of two samples at one instant the first that was read stays, as in Prometheus;
    /// the number beside the store says how many were left out although they had another value.
    pub fn finish(self) -> (SeriesStore, usize) {
        let mut left_out = 0;
        let mut series: Vec<StoredSeries> = self
            .series
            .into_iter()
            .map(|growing| {
                let points = sorted_points(growing.points, &mut left_out);
                let marked = points.iter().any(|point| point.is_stale_marker());
                let ends = if marked { Ends::Marked } else { Ends::Unmarked };
                StoredSeries { labels: growing.labels, points, ends }
            })
            .collect();
        series.sort_by(|a, b| a.labels.cmp(&b.labels));
        let mut by_name: HashMap<String, Vec<usize>> = HashMap::new();
        for (position, one) in series.iter().enumerate() {
            let name = one.labels.get("__name__").cloned().unwrap_or_default();
            by_name.entry(name).or_default().push(position);
        }
        (SeriesStore { series, by_name }, left_out)
    }
}

fn sorted_points(mut points: Vec<Point>, left_out: &mut usize) -> Vec<Point> {
    if !points.is_sorted_by_key(|point| point.at) {
        // Stable: samples of one instant stay in the order in which they were read.
        points.sort_by_key(|point| point.at);
    }
    points.dedup_by(|later, earlier| {
        let same_time = later.at == earlier.at;
        if same_time && later.value.to_bits() != earlier.value.to_bits() {
            *left_out += 1;
        }
        same_time
    });
    points.shrink_to_fit();
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(samples: &[(&str, i64, f64)]) -> (SeriesStore, usize) {
        let mut builder = StoreBuilder::default();
        for (text, at, value) in samples {
            builder.push(text.as_bytes(), Point { at: *at, value: *value }).unwrap();
        }
        builder.finish()
    }

    fn points(store: &SeriesStore, name: &str) -> Vec<Vec<(i64, f64)>> {
        store.candidates(Some(name)).map(|s| s.points.iter().map(|p| (p.at, p.value)).collect()).collect()
    }

    #[test]
    fn samples_out_of_order_are_sorted_and_the_first_of_an_instant_stays() {
        let (store, left_out) = built(&[("a", 30, 3.0), ("a", 10, 1.0), ("a", 30, 9.0), ("a", 10, 1.0)]);
        assert_eq!(points(&store, "a"), vec![vec![(10, 1.0), (30, 3.0)]]);
        assert_eq!(left_out, 1);
    }

    #[test]
    fn the_order_of_labels_does_not_make_another_series() {
        let (store, _) = built(&[("a{x=\"1\",y=\"2\"}", 1, 1.0), ("a{y=\"2\", x=\"1\"}", 2, 2.0)]);
        assert_eq!(points(&store, "a"), vec![vec![(1, 1.0), (2, 2.0)]]);
    }

    #[test]
    fn series_come_sorted_by_labels_whatever_the_order_of_lines() {
        let (store, _) = built(&[("b", 1, 1.0), ("a{x=\"2\"}", 1, 2.0), ("a{x=\"1\"}", 1, 3.0), ("b", 2, 4.0)]);
        let firsts: Vec<f64> = store.candidates(None).map(|series| series.points[0].value).collect();
        assert_eq!(firsts, vec![3.0, 2.0, 1.0]);
    }

    #[test]
    fn an_older_sample_is_reported_as_backwards() {
        let mut builder = StoreBuilder::default();
        assert_eq!(builder.push(b"a", Point { at: 2, value: 0.0 }).unwrap(), Order::Ascending);
        assert_eq!(builder.push(b"a", Point { at: 2, value: 0.0 }).unwrap(), Order::Ascending);
        assert_eq!(builder.push(b"a", Point { at: 1, value: 0.0 }).unwrap(), Order::Backwards);
    }
}
