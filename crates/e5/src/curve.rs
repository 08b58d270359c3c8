//! The functions that are not products: exponential, GELU, layer norm, for whole vectors at a time.

use pulp::Simd;

/// e^x for x up to 88, to a relative error of about 1e-7; below -87 it is as good as 0.
#[inline(always)]
pub(super) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let set = |value: f32| simd.splat_f32s(value);
    let x = simd.max_f32s(x, set(-87.0));
    // Adding 1.5 · 2^23 rounds to whole numbers in the low bits; the 127 is the exponent's bias.
    let shift = set(12_582_912.0 + 127.0);
    let shifted = simd.mul_add_e_f32s(x, set(std::f32::consts::LOG2_E), shift);
    let whole = simd.sub_f32s(shifted, shift);
    // ln 2 in two parts, so that the remainder keeps its bits.
    let rest = simd.mul_add_e_f32s(whole, set(-0.693_359_4), x);
    let rest = simd.mul_add_e_f32s(whole, set(2.121_944_4e-4), rest);
    let mut sum = set(1.0 / 5040.0);
    for term in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        sum = simd.mul_add_e_f32s(sum, rest, set(term));
    }
    let power = simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(23));
    simd.mul_f32s(sum, simd.transmute_f32s_u32s(power))
}

/// x · (1 + erf(x / √2)) / 2, with erf by formula 7.1.26 of Abramowitz and Stegun (error under 1.5e-7).
#[inline(always)]
pub(super) fn gelu<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let set = |value: f32| simd.splat_f32s(value);
    let size = simd.mul_f32s(simd.abs_f32s(x), set(std::f32::consts::FRAC_1_SQRT_2));
    let t = simd.div_f32s(set(1.0), simd.mul_add_e_f32s(size, set(0.327_591_1), set(1.0)));
    let mut sum = set(1.061_405_4);
    for term in [-1.453_152_1, 1.421_413_8, -0.284_496_72, 0.254_829_6] {
        sum = simd.mul_add_e_f32s(sum, t, set(term));
    }
    let tail = exp(simd, simd.neg_f32s(simd.mul_f32s(size, size)));
    let tail = simd.mul_f32s(simd.mul_f32s(sum, t), tail);
    // erfc(|x|/√2) is the tail: x ≥ 0 keeps 1 - tail/2, x < 0 keeps tail/2.
    let half = simd.mul_f32s(set(0.5), simd.mul_f32s(simd.abs_f32s(x), tail));
    simd.sub_f32s(simd.max_f32s(x, set(0.0)), half)
}

/// Normalises each column of `values` (channels of `width` values each) over the channels, in place.
#[inline(always)]
pub(super) fn layer_norm<S: Simd>(simd: S, values: &mut [f32], width: usize, gain: &[f32], bias: &[f32]) {
    /// The model's own; it only matters for a column of equal values.
    const EPSILON: f32 = 1e-12;
    let count = simd.splat_f32s(1.0 / gain.len() as f32);
    let mut moments = vec![0.0f32; 2 * width];
    let (mean, spread) = moments.split_at_mut(width);
    let (mean, _) = S::as_mut_simd_f32s(mean);
    let (spread, _) = S::as_mut_simd_f32s(spread);
    for row in values.chunks_exact(width) {
        for (sum, value) in mean.iter_mut().zip(S::as_simd_f32s(row).0) {
            *sum = simd.add_f32s(*sum, *value);
        }
    }
    for mean in mean.iter_mut() {
        *mean = simd.mul_f32s(*mean, count);
    }
    for row in values.chunks_exact(width) {
        for ((sum, mean), value) in spread.iter_mut().zip(mean.iter()).zip(S::as_simd_f32s(row).0) {
            let distance = simd.sub_f32s(*value, *mean);
            *sum = simd.mul_add_e_f32s(distance, distance, *sum);
        }
    }
    for spread in spread.iter_mut() {
        let deviation = simd.sqrt_f32s(simd.mul_add_e_f32s(*spread, count, simd.splat_f32s(EPSILON)));
        *spread = simd.div_f32s(simd.splat_f32s(1.0), deviation);
    }
    for ((row, gain), bias) in values.chunks_exact_mut(width).zip(gain).zip(bias) {
        let (gain, bias) = (simd.splat_f32s(*gain), simd.splat_f32s(*bias));
        for ((value, mean), scale) in S::as_mut_simd_f32s(row).0.iter_mut().zip(mean.iter()).zip(spread.iter()) {
            let centred = simd.mul_f32s(simd.sub_f32s(*value, *mean), *scale);
            *value = simd.mul_add_e_f32s(centred, gain, bias);
        }
    }
}

#[cfg(test)]
mod tests {
    use pulp::{Arch, WithSimd};

    use super::*;

    enum Curve {
        Exp,
        Gelu,
    }

    /// A curve at each value, on this processor's vectors.
    struct At(Curve, Vec<f32>);

    impl WithSimd for At {
        type Output = Vec<f32>;

        #[inline(always)]
        fn with_simd<S: Simd>(mut self, simd: S) -> Self::Output {
            for value in S::as_mut_simd_f32s(&mut self.1).0 {
                *value = match self.0 {
                    Curve::Exp => exp(simd, *value),
                    Curve::Gelu => gelu(simd, *value),
                };
            }
            self.1
        }
    }

    /// A whole number of vectors on any processor.
    fn between(from: f32, to: f32) -> Vec<f32> {
        (0..1024).map(|at| from + (to - from) * at as f32 / 1023.0).collect()
    }

    /// By its series, which converges well below 4.
    fn erf(x: f64) -> f64 {
        let mut term = x;
        let mut sum = x;
        for n in 1..100 {
            term *= -x * x / f64::from(n);
            sum += term / f64::from(2 * n + 1);
        }
        sum * std::f64::consts::FRAC_2_SQRT_PI
    }

    #[test]
    fn the_exponential_is_right_to_a_few_bits_and_vanishes_far_below() {
        let values = between(-80.0, 20.0);
        for (x, found) in values.iter().zip(Arch::new().dispatch(At(Curve::Exp, values.clone()))) {
            let expected = f64::from(*x).exp();
            assert!((f64::from(found) / expected - 1.0).abs() < 1e-6, "e^{x} is {expected}, not {found}");
        }
        let far = Arch::new().dispatch(At(Curve::Exp, vec![-1e30; 16]));
        assert!(far.iter().all(|value| (0.0..1e-37).contains(value)));
    }

    #[test]
    fn gelu_is_right_to_a_millionth() {
        let values = between(-4.0, 4.0);
        for (x, found) in values.iter().zip(Arch::new().dispatch(At(Curve::Gelu, values.clone()))) {
            let x = f64::from(*x);
            let expected = x * (1.0 + erf(x / 2f64.sqrt())) / 2.0;
            assert!((f64::from(found) - expected).abs() < 1e-6, "gelu({x}) is {expected}, not {found}");
        }
        assert_eq!(Arch::new().dispatch(At(Curve::Gelu, vec![30.0; 16])), vec![30.0; 16]);
        let far = Arch::new().dispatch(At(Curve::Gelu, vec![-30.0; 16]));
        assert!(far.iter().all(|value| value.abs() < 1e-30));
    }
}
