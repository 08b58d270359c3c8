//! Pure algorithms over evidence: they take plain values and give plain values, and touch no file, clock or network.

pub mod change_points;
pub mod patterns;
pub mod rank;
pub mod series;
pub mod sparkline;
