//! Counts over time in a fixed number of slices, whether the span is known beforehand or grows as events come.

use jiff::Timestamp;

use super::Shape;
use crate::domain::Window;

/// Slices of a pattern's histogram.
pub const SLICES: usize = 24;
/// Slots that are counted in while the span grows; finer than the result, so that the result is not coarse.
const SLOTS: usize = 2 * SLICES;

/// The counts of one shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Slices([u32; SLOTS]);

impl Default for Slices {
    fn default() -> Self {
        Self([0; SLOTS])
    }
}

impl Slices {
    pub fn count(&mut self, slot: usize) {
        self.0[slot] = self.0[slot].saturating_add(1);
    }

    pub fn add(&mut self, other: &Self) {
        for (slot, count) in self.0.iter_mut().zip(other.0) {
            *slot = slot.saturating_add(count);
        }
    }
}

/// Where an event falls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Slice(usize),
    /// In the time before the window.
    Before,
    Outside,
    /// It has no time, and no window was asked for.
    Undated,
}

/// The span that is counted over.
#[derive(Debug)]
pub enum Timeline {
    Fixed { window: Window, before: Window, saw_before: bool },
    Growing(Span),
}

/// A span that grows: slots of `width` seconds from `origin`, which is a multiple of `width`.
#[derive(Debug, Default)]
pub struct Span {
    origin: i64,
    /// 0 while nothing was seen.
    width: i64,
    /// The first and last second seen.
    low: i64,
    high: i64,
}

impl Timeline {
    pub fn new(window: Option<Window>) -> Self {
        match window {
            Some(window) => Self::Fixed { window, before: window.before(), saw_before: false },
            None => Self::Growing(Span::default()),
        }
    }

    /// Whether events of the time before the window were seen.
    pub fn saw_before(&self) -> bool {
        matches!(self, Self::Fixed { saw_before: true, .. })
    }

    /// Where an event of this time falls. The span grows when it must, and the counts of the shapes with it.
    pub fn place(&mut self, at: Option<Timestamp>, shapes: &mut [Shape]) -> Place {
        match (self, at) {
            (Self::Growing(_), None) => Place::Undated,
            (Self::Fixed { .. }, None) => Place::Outside,
            (Self::Fixed { window, before, saw_before }, Some(at)) => {
                if window.contains(at) {
                    let from_start = at.duration_since(window.start).as_nanos();
                    let length = window.duration().as_nanos().max(1);
                    return Place::Slice(((from_start * SLICES as i128 / length) as usize).min(SLICES - 1));
                }
                if before.contains(at) {
                    *saw_before = true;
                    return Place::Before;
                }
                Place::Outside
            }
            (Self::Growing(span), Some(at)) => Place::Slice(span.slot_of(at.as_second(), shapes)),
        }
    }

    /// A shape's counts in [`SLICES`] equal slices of the window, or of the time from `first` to `last`.
    pub fn histogram(&self, slices: &Slices, first: Option<Timestamp>, last: Option<Timestamp>) -> Vec<u64> {
        let (Self::Growing(Span { origin, width, .. }), Some(first), Some(last)) = (self, first, last) else {
            return slices.0[..SLICES].iter().map(|count| u64::from(*count)).collect();
        };
        let (start, end) = (first.as_second() as f64, last.as_second() as f64 + 1.0);
        let slice = (end - start) / SLICES as f64;
        if slice < *width as f64 {
            return at_slot_starts(slices, |slot| (*origin + slot * *width) as f64 - start, slice);
        }
        // Counts up to a time, with those of a slot spread evenly over it; differences of rounded sums keep the total.
        let up_to = |time: f64| -> u64 {
            let slots = (time - *origin as f64) / *width as f64;
            let whole = (slots.max(0.0) as usize).min(SLOTS);
            let sum: f64 = slices.0[..whole].iter().map(|count| f64::from(*count)).sum();
            let part =
                slices.0.get(whole).map_or(0.0, |count| f64::from(*count) * (slots - whole as f64).clamp(0.0, 1.0));
            (sum + part).round() as u64
        };
        let total: u64 = slices.0.iter().map(|count| u64::from(*count)).sum();
        let mut done = 0;
        (1..=SLICES)
            .map(|index| {
                let sum = if index == SLICES { total } else { up_to(start + slice * index as f64).clamp(done, total) };
                let count = sum - done;
                done = sum;
                count
            })
            .collect()
    }
}

/// Slots that are wider than a slice, as in a span of a few seconds: each count stands where its slot begins. Spread
/// over it, events of one instant would look like a course.
fn at_slot_starts(slices: &Slices, seconds_in: impl Fn(i64) -> f64, slice: f64) -> Vec<u64> {
    let mut counts = vec![0; SLICES];
    for (slot, count) in slices.0.iter().enumerate().filter(|(_, count)| **count > 0) {
        let index = (seconds_in(slot as i64) / slice).max(0.0) as usize;
        counts[index.min(SLICES - 1)] += u64::from(*count);
    }
    counts
}

impl Span {
    fn slot_of(&mut self, second: i64, shapes: &mut [Shape]) -> usize {
        if self.width == 0 {
            *self = Self { origin: second, width: 1, low: second, high: second };
        }
        self.low = self.low.min(second);
        self.high = self.high.max(second);
        if second < self.origin || second - self.origin >= self.width * SLOTS as i64 {
            self.widen(shapes);
        }
        ((second - self.origin) / self.width) as usize
    }

    /// Moves and widens the slots until they hold all that was seen, and the counts of the shapes with them.
    fn widen(&mut self, shapes: &mut [Shape]) {
        let (old_origin, old_width) = (self.origin, self.width);
        while self.high.div_euclid(self.width) - self.low.div_euclid(self.width) >= SLOTS as i64 {
            self.width *= 2;
        }
        self.origin = self.low.div_euclid(self.width) * self.width;
        for shape in shapes {
            let mut folded = Slices::default();
            for (slot, count) in shape.slices.0.iter().enumerate().filter(|(_, count)| **count > 0) {
                let new = (old_origin + slot as i64 * old_width - self.origin) / self.width;
                folded.0[(new.max(0) as usize).min(SLOTS - 1)] += count;
            }
            shape.slices = folded;
        }
    }
}
