//! Values over the time of an incident, and the noise on them. Times are minutes relative to the incident's now.

/// A value over time: straight lines between `(minute, value)` points, flat outside them.
#[derive(Clone)]
pub struct Curve(Vec<(f64, f64)>);

impl Curve {
    /// Through these points, which are in order of time.
    pub fn through(points: Vec<(f64, f64)>) -> Curve {
        Curve(points)
    }

    pub fn at(&self, minute: f64) -> f64 {
        let points = &self.0;
        let after = points.partition_point(|point| point.0 <= minute);
        match (after.checked_sub(1).map(|index| points[index]), points.get(after)) {
            (Some((left, low)), Some((right, high))) => low + (high - low) * (minute - left) / (right - left),
            (Some((_, value)), None) => value,
            (None, Some((_, value))) => *value,
            (None, None) => 0.0,
        }
    }

    /// Another value at every point.
    pub fn map(&self, change: impl Fn(f64) -> f64) -> Curve {
        Curve(self.0.iter().map(|&(minute, value)| (minute, change(value))).collect())
    }
}

impl From<f64> for Curve {
    fn from(value: f64) -> Self {
        Curve(vec![(0.0, value)])
    }
}

impl<const N: usize> From<[(f64, f64); N]> for Curve {
    fn from(points: [(f64, f64); N]) -> Self {
        Curve(points.to_vec())
    }
}

/// A saw tooth: from `low` it climbs to `high` by each of `ends`, then falls back.
pub fn saw(start: f64, low: f64, high: f64, ends: &[f64]) -> Curve {
    let mut points = vec![(start, low)];
    for &end in ends {
        points.push((end, high));
        points.push((end + 0.7, low));
    }
    let climbed = ends.windows(2).last().map_or(0.5, |pair| (-ends[ends.len() - 1]) / (pair[1] - pair[0]));
    points.push((0.1, low + (high - low) * climbed.min(1.0)));
    Curve(points)
}

/// SplitMix64: the same seed gives the same incident on every machine.
pub struct Rng(pub u64);

impl Rng {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Evenly between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound.max(1)
    }

    /// About normal: the sum of four even draws, scaled to a standard deviation of 1.
    pub fn normal(&mut self) -> f64 {
        ((0..4).map(|_| self.unit()).sum::<f64>() - 2.0) * 3.0_f64.sqrt()
    }
}
