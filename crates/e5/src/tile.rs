//! The inner products: a few rows of weights times a few vectors of tokens, held in registers.
//!
//! Tokens lie along the lanes of a vector. Activations are stored channel after channel, `width` values each
//! (tokens, rounded up to whole vectors); for a product they are cut into panels of `PANEL` vectors, and the
//! weights into groups of rows that lie interleaved, so that the innermost loop reads both in order.
//! `pulp` picks AVX-512, AVX2 or NEON when the program runs.

use pulp::Simd;

use super::gguf::{BLOCK, BLOCK_BYTES, Blocks};

/// Vectors of tokens to a panel.
pub(super) const PANEL: usize = 3;
/// Rows of weights to a group at most: with `PANEL` vectors each, the sums fill the registers.
const MANY_REGISTERS: usize = 8;
const FEW_REGISTERS: usize = 4;

/// Rows of weights that are multiplied at once on this processor.
#[inline(always)]
pub(super) fn group_rows<S: Simd>() -> usize {
    if S::REGISTER_COUNT >= 32 { MANY_REGISTERS } else { FEW_REGISTERS }
}

/// Copies `channels` rows of `width` values, columns `start..start + size` of each, into one panel.
#[inline(always)]
pub(super) fn pack_panel(source: &[f32], width: usize, start: usize, size: usize, panel: &mut [f32]) {
    for (row, packed) in source.chunks_exact(width).zip(panel.chunks_exact_mut(size)) {
        packed.copy_from_slice(&row[start..start + size]);
    }
}

/// Unpacks rows `first..first + group` of a Q4_0 matrix, interleaved.
#[inline(always)]
pub(super) fn unpack_group<S: Simd>(matrix: &Blocks<'_>, first: usize, weights: &mut [f32]) {
    if group_rows::<S>() == MANY_REGISTERS {
        unpack_rows::<MANY_REGISTERS>(matrix, first, weights);
    } else {
        unpack_rows::<FEW_REGISTERS>(matrix, first, weights);
    }
}

#[inline(always)]
fn unpack_rows<const R: usize>(matrix: &Blocks<'_>, first: usize, weights: &mut [f32]) {
    let size = matrix.row_bytes();
    let rows: [&[[u8; BLOCK_BYTES]]; R] =
        std::array::from_fn(|row| matrix.bytes[(first + row) * size..(first + row + 1) * size].as_chunks().0);
    let (columns, _) = weights.as_chunks_mut::<R>();
    for (at, columns) in columns.chunks_exact_mut(BLOCK).enumerate() {
        let blocks: [&[u8; BLOCK_BYTES]; R] = std::array::from_fn(|row| &rows[row][at]);
        let scales: [f32; R] = std::array::from_fn(|row| scale(blocks[row]));
        let (low, high) = columns.split_at_mut(BLOCK / 2);
        for (byte, (low, high)) in low.iter_mut().zip(high).enumerate() {
            for row in 0..R {
                let pair = blocks[row][2 + byte];
                low[row] = (i32::from(pair & 15) - 8) as f32 * scales[row];
                high[row] = (i32::from(pair >> 4) - 8) as f32 * scales[row];
            }
        }
    }
}

/// Unpacks one row of a Q4_0 matrix.
pub(super) fn unpack_row(matrix: &Blocks<'_>, row: usize, values: &mut [f32]) {
    let size = matrix.row_bytes();
    let (blocks, _) = matrix.bytes[row * size..(row + 1) * size].as_chunks::<BLOCK_BYTES>();
    for (block, values) in blocks.iter().zip(values.chunks_exact_mut(BLOCK)) {
        let scale = scale(block);
        let (low, high) = values.split_at_mut(BLOCK / 2);
        for ((pair, low), high) in block[2..].iter().zip(low).zip(high) {
            *low = (i32::from(pair & 15) - 8) as f32 * scale;
            *high = (i32::from(pair >> 4) - 8) as f32 * scale;
        }
    }
}

#[inline(always)]
fn scale(block: &[u8; BLOCK_BYTES]) -> f32 {
    half::f16::from_le_bytes([block[0], block[1]]).to_f32_const()
}

/// Multiplies a group of weights with a panel of `vectors` vectors; row `r` of the result goes to
/// `out[r * stride..]`.
#[inline(always)]
pub(super) fn multiply<S: Simd>(
    simd: S,
    weights: &[f32],
    panel: &[f32],
    vectors: usize,
    out: &mut [f32],
    stride: usize,
) {
    if group_rows::<S>() == MANY_REGISTERS {
        multiply_rows::<S, MANY_REGISTERS>(simd, weights, panel, vectors, out, stride);
    } else {
        multiply_rows::<S, FEW_REGISTERS>(simd, weights, panel, vectors, out, stride);
    }
}

#[inline(always)]
fn multiply_rows<S: Simd, const R: usize>(
    simd: S,
    weights: &[f32],
    panel: &[f32],
    vectors: usize,
    out: &mut [f32],
    stride: usize,
) {
    match vectors {
        1 => tile::<S, R, 1>(simd, weights, panel, out, stride),
        2 => tile::<S, R, 2>(simd, weights, panel, out, stride),
        _ => tile::<S, R, PANEL>(simd, weights, panel, out, stride),
    }
}

#[inline(always)]
fn tile<S: Simd, const R: usize, const N: usize>(
    simd: S,
    weights: &[f32],
    panel: &[f32],
    out: &mut [f32],
    stride: usize,
) {
    let (panel, _) = S::as_simd_f32s(panel);
    let mut sums = [[simd.splat_f32s(0.0); N]; R];
    for (weights, tokens) in weights.as_chunks::<R>().0.iter().zip(panel.as_chunks::<N>().0) {
        for row in 0..R {
            let weight = simd.splat_f32s(weights[row]);
            for vector in 0..N {
                sums[row][vector] = simd.mul_add_e_f32s(weight, tokens[vector], sums[row][vector]);
            }
        }
    }
    for (row, sums) in sums.iter().enumerate() {
        let size = N * S::F32_LANES;
        let (out, _) = S::as_mut_simd_f32s(&mut out[row * stride..row * stride + size]);
        out.copy_from_slice(sums);
    }
}
