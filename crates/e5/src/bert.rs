//! The transformer: windows of piece ids go in, the mean of each window's token vectors comes out.
//!
//! Several windows run as one pack, each starting at a whole vector, so that weights are unpacked once for all of
//! them; attention stays within a window. No value of one window enters another, and every sum has a fixed order:
//! a text gets the same vector alone and in any batch. Weights stay packed in 4 bits and are unpacked a few rows
//! at a time, right before they are used: nothing is prepared at load.

use pulp::{Arch, NullaryFnOnce, Simd, WithSimd};
use rayon::prelude::*;

use super::ModelError;
use super::curve;
use super::gguf::{Blocks, Gguf};
use super::tile::{self, PANEL};

/// Values of a vector.
pub const DIMENSIONS: usize = 384;
/// Tokens of a window at most, `<s>` and `</s>` included.
pub(super) const POSITIONS: usize = 512;
const HIDDEN: usize = 1536;
const LAYERS: usize = 12;
const HEADS: usize = 12;
const HEAD: usize = DIMENSIONS / HEADS;
/// A cache line of floats: vectors that start on one are read at full speed.
const LINE: usize = 16;

/// The model's parameters, the large ones as they lie in the file.
pub(super) struct Bert<'a> {
    words: Blocks<'a>,
    positions: Vec<f32>,
    types: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer<'a>>,
}

struct Norm {
    gain: Vec<f32>,
    bias: Vec<f32>,
}

struct Linear<'a> {
    weights: Blocks<'a>,
    bias: Vec<f32>,
}

struct Layer<'a> {
    query: Linear<'a>,
    key: Linear<'a>,
    value: Linear<'a>,
    mix: Linear<'a>,
    attention_norm: Norm,
    up: Linear<'a>,
    down: Linear<'a>,
    output_norm: Norm,
}

/// What becomes of a product before it is stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Finish {
    Plain,
    Gelu,
}

/// Where a window lies in a pack: its first column, and its tokens.
#[derive(Clone, Copy)]
struct Place {
    start: usize,
    tokens: usize,
}

impl<'a> Bert<'a> {
    pub(super) fn new(file: &Gguf<'a>) -> Result<Self, ModelError> {
        let words = file.blocks("token_embd.weight", DIMENSIONS)?;
        let norm = |name: &str| -> Result<Norm, ModelError> {
            Ok(Norm {
                gain: file.floats(&format!("{name}.weight"), DIMENSIONS)?,
                bias: file.floats(&format!("{name}.bias"), DIMENSIONS)?,
            })
        };
        let linear = |name: String, rows: usize, columns: usize| -> Result<Linear<'a>, ModelError> {
            let weights = file.blocks(&format!("{name}.weight"), columns)?;
            if weights.rows != rows {
                return Err(ModelError(format!("the model's {name} has {} rows, expected {rows}", weights.rows)));
            }
            Ok(Linear { weights, bias: file.floats(&format!("{name}.bias"), rows)? })
        };
        let layer = |n: usize| -> Result<Layer<'a>, ModelError> {
            Ok(Layer {
                query: linear(format!("blk.{n}.attn_q"), DIMENSIONS, DIMENSIONS)?,
                key: linear(format!("blk.{n}.attn_k"), DIMENSIONS, DIMENSIONS)?,
                value: linear(format!("blk.{n}.attn_v"), DIMENSIONS, DIMENSIONS)?,
                mix: linear(format!("blk.{n}.attn_output"), DIMENSIONS, DIMENSIONS)?,
                attention_norm: norm(&format!("blk.{n}.attn_output_norm"))?,
                up: linear(format!("blk.{n}.ffn_up"), HIDDEN, DIMENSIONS)?,
                down: linear(format!("blk.{n}.ffn_down"), DIMENSIONS, HIDDEN)?,
                output_norm: norm(&format!("blk.{n}.layer_output_norm"))?,
            })
        };
        Ok(Self {
            words,
            positions: file.floats("position_embd.weight", POSITIONS * DIMENSIONS)?,
            types: file
                .floats("token_types.weight", 2 * DIMENSIONS)
                .or_else(|_| file.floats("token_types.weight", DIMENSIONS))?,
            norm: norm("token_embd_norm")?,
            layers: (0..LAYERS).map(layer).collect::<Result<_, _>>()?,
        })
    }

    /// Word vectors; an id is below this.
    pub(super) fn words(&self) -> usize {
        self.words.rows
    }

    /// The mean token vector of each window. A window has 1 to `POSITIONS` ids, each below `words()`.
    pub(super) fn means(&self, windows: &[&[u32]]) -> Vec<Vec<f32>> {
        Arch::new().dispatch(Pack { bert: self, windows })
    }
}

/// Windows that run together.
struct Pack<'m, 'w> {
    bert: &'m Bert<'m>,
    windows: &'w [&'w [u32]],
}

impl WithSimd for Pack<'_, '_> {
    type Output = Vec<Vec<f32>>;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> Self::Output {
        let mut places = Vec::with_capacity(self.windows.len());
        let mut width = 0;
        for window in self.windows {
            places.push(Place { start: width, tokens: window.len() });
            width += window.len().next_multiple_of(S::F32_LANES);
        }
        let run = Run { simd, width, places };
        let mut states = Aligned::new(DIMENSIONS * width);
        self.look_up(&run, states.slice_mut());
        run.norm(states.slice_mut(), &self.bert.norm);
        for layer in &self.bert.layers {
            run.layer(layer, states.slice_mut());
        }
        run.places.iter().map(|place| mean(states.slice(), width, *place)).collect()
    }
}

impl Pack<'_, '_> {
    /// Word, position and type vectors, added up; columns between windows stay zero.
    fn look_up<S: Simd>(&self, run: &Run<S>, states: &mut [f32]) {
        let mut word = [0.0; DIMENSIONS];
        for (window, place) in self.windows.iter().zip(&run.places) {
            for (position, id) in window.iter().enumerate() {
                tile::unpack_row(&self.bert.words, *id as usize, &mut word);
                let at = &self.bert.positions[position * DIMENSIONS..][..DIMENSIONS];
                for (channel, ((word, at), kind)) in word.iter().zip(at).zip(&self.bert.types).enumerate() {
                    states[channel * run.width + place.start + position] = word + at + kind;
                }
            }
        }
    }
}

fn mean(states: &[f32], width: usize, place: Place) -> Vec<f32> {
    let columns = place.start..place.start + place.tokens;
    states.chunks_exact(width).map(|row| row[columns.clone()].iter().sum::<f32>() / place.tokens as f32).collect()
}

/// One pass of a pack through the layers: `width` columns, tokens and what rounds windows up to whole vectors.
struct Run<S> {
    simd: S,
    width: usize,
    places: Vec<Place>,
}

impl<S: Simd> Run<S> {
    fn layer(&self, layer: &Layer<'_>, states: &mut [f32]) {
        let size = DIMENSIONS * self.width;
        let packed = self.pack(states);
        let mut projected = Aligned::new(3 * size);
        let (queries, rest) = projected.slice_mut().split_at_mut(size);
        let (keys, values) = rest.split_at_mut(size);
        self.linear(&layer.query, &packed, Finish::Plain, queries);
        self.linear(&layer.key, &packed, Finish::Plain, keys);
        self.linear(&layer.value, &packed, Finish::Plain, values);
        let mut mixed = Aligned::new(size);
        mixed.slice_mut().par_chunks_mut(HEAD * self.width).enumerate().for_each(|(head, out)| {
            let block = |all| slice_of_head(all, head, self.width);
            let job =
                HeadJob { run: self, queries: block(&*queries), keys: block(&*keys), values: block(&*values), out };
            self.simd.vectorize(job);
        });
        let mut output = Aligned::new(size);
        self.linear(&layer.mix, &self.pack(mixed.slice()), Finish::Plain, output.slice_mut());
        self.add(states, output.slice());
        self.norm(states, &layer.attention_norm);
        let mut hidden = Aligned::new(HIDDEN * self.width);
        self.linear(&layer.up, &self.pack(states), Finish::Gelu, hidden.slice_mut());
        self.linear(&layer.down, &self.pack(hidden.slice()), Finish::Plain, output.slice_mut());
        self.add(states, output.slice());
        self.norm(states, &layer.output_norm);
    }

    /// The columns of each panel, with its place: first column and number of vectors.
    fn panels(&self, start: usize, columns: usize) -> impl Iterator<Item = (usize, usize)> {
        let vectors = columns.div_ceil(S::F32_LANES);
        (0..vectors).step_by(PANEL).map(move |at| (start + at * S::F32_LANES, PANEL.min(vectors - at)))
    }

    /// Cuts activations into panels, one after the other.
    fn pack(&self, source: &[f32]) -> Aligned {
        let channels = source.len() / self.width;
        let mut packed = Aligned::new(source.len());
        let mut rest = packed.slice_mut();
        for (start, vectors) in self.panels(0, self.width) {
            let size = vectors * S::F32_LANES;
            let (panel, after) = rest.split_at_mut(channels * size);
            tile::pack_panel(source, self.width, start, size, panel);
            rest = after;
        }
        packed
    }

    /// `out = finish(weights · packed + bias)`, on all idle cores.
    fn linear(&self, linear: &Linear<'_>, packed: &Aligned, finish: Finish, out: &mut [f32]) {
        let group = tile::group_rows::<S>();
        out.par_chunks_mut(group * self.width).enumerate().with_min_len(8).for_each_init(
            || Aligned::new(group * linear.weights.columns),
            |weights, (at, out)| {
                let weights = weights.slice_mut();
                let job =
                    GroupJob { run: self, linear, first: at * group, packed: packed.slice(), finish, weights, out };
                self.simd.vectorize(job);
            },
        );
    }

    fn norm(&self, states: &mut [f32], norm: &Norm) {
        self.simd.vectorize(NormJob { simd: self.simd, states, width: self.width, norm });
    }

    fn add(&self, states: &mut [f32], more: &[f32]) {
        self.simd.vectorize(AddJob { simd: self.simd, states, more });
    }
}

fn slice_of_head(all: &[f32], head: usize, width: usize) -> &[f32] {
    &all[head * HEAD * width..(head + 1) * HEAD * width]
}

/// A few rows of weights times all tokens.
struct GroupJob<'j, S> {
    run: &'j Run<S>,
    linear: &'j Linear<'j>,
    first: usize,
    packed: &'j [f32],
    finish: Finish,
    weights: &'j mut [f32],
    out: &'j mut [f32],
}

impl<S: Simd> NullaryFnOnce for GroupJob<'_, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Run { simd, width, .. } = *self.run;
        tile::unpack_group::<S>(&self.linear.weights, self.first, self.weights);
        let mut rest = self.packed;
        for (start, vectors) in self.run.panels(0, width) {
            let (panel, after) = rest.split_at(self.linear.weights.columns * vectors * S::F32_LANES);
            tile::multiply(simd, self.weights, panel, vectors, &mut self.out[start..], width);
            rest = after;
        }
        for (row, bias) in self.out.chunks_exact_mut(width).zip(&self.linear.bias[self.first..]) {
            let bias = simd.splat_f32s(*bias);
            for value in S::as_mut_simd_f32s(row).0 {
                *value = simd.add_f32s(*value, bias);
                if self.finish == Finish::Gelu {
                    *value = curve::gelu(simd, *value);
                }
            }
        }
    }
}

/// Attention of one head, in every window.
struct HeadJob<'j, S> {
    run: &'j Run<S>,
    queries: &'j [f32],
    keys: &'j [f32],
    values: &'j [f32],
    out: &'j mut [f32],
}

impl<S: Simd> NullaryFnOnce for HeadJob<'_, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        let Run { simd, width, ref places } = *self.run;
        let group = tile::group_rows::<S>();
        let longest = places.iter().map(|place| place.tokens).max().unwrap_or(0).next_multiple_of(group);
        let mut keys = Aligned::new(longest * HEAD);
        let mut values = Aligned::new(longest * HEAD);
        let mut queries = Aligned::new(HEAD * PANEL * S::F32_LANES);
        let mut scores = Aligned::new(longest * PANEL * S::F32_LANES);
        for place in places {
            let rows = place.tokens.next_multiple_of(group);
            let keys = &mut keys.slice_mut()[..rows * HEAD];
            let values = &mut values.slice_mut()[..place.tokens * HEAD];
            interleave_keys(self.keys, width, *place, group, keys);
            interleave_values(self.values, width, *place, group, values);
            for (start, vectors) in self.run.panels(place.start, place.tokens) {
                let size = vectors * S::F32_LANES;
                let queries = &mut queries.slice_mut()[..HEAD * size];
                tile::pack_panel(self.queries, width, start, size, queries);
                let scores = &mut scores.slice_mut()[..rows * size];
                for (keys, scores) in keys.chunks_exact(group * HEAD).zip(scores.chunks_exact_mut(group * size)) {
                    tile::multiply(simd, keys, queries, vectors, scores, size);
                }
                let scores = &mut scores[..place.tokens * size];
                softmax(simd, scores, vectors);
                for (at, values) in values.chunks_exact(group * place.tokens).enumerate() {
                    tile::multiply(simd, values, scores, vectors, &mut self.out[at * group * width + start..], width);
                }
            }
        }
    }
}

/// Keys of a window, a group of tokens at a time: all channels of a token side by side with its neighbours'. What
/// exceeds the window is zero. The scale of attention is applied here, where there is least to multiply.
#[inline(always)]
fn interleave_keys(keys: &[f32], width: usize, place: Place, group: usize, out: &mut [f32]) {
    let scale = 1.0 / (HEAD as f32).sqrt();
    for (at, out) in out.chunks_exact_mut(group * HEAD).enumerate() {
        let first = at * group;
        let count = group.min(place.tokens - first);
        for (keys, out) in keys.chunks_exact(width).zip(out.chunks_exact_mut(group)) {
            out.fill(0.0);
            for (out, key) in out.iter_mut().zip(&keys[place.start + first..][..count]) {
                *out = key * scale;
            }
        }
    }
}

/// Values of a window, a group of channels at a time, token after token.
#[inline(always)]
fn interleave_values(values: &[f32], width: usize, place: Place, group: usize, out: &mut [f32]) {
    let tokens = place.start..place.start + place.tokens;
    for (values, out) in values.chunks_exact(group * width).zip(out.chunks_exact_mut(group * place.tokens)) {
        for (channel, values) in values.chunks_exact(width).enumerate() {
            for (out, value) in out[channel..].iter_mut().step_by(group).zip(&values[tokens.clone()]) {
                *out = *value;
            }
        }
    }
}

/// Turns a panel of scores, key after key, into weights that add up to 1 for each query.
#[inline(always)]
fn softmax<S: Simd>(simd: S, scores: &mut [f32], vectors: usize) {
    let (scores, _) = S::as_mut_simd_f32s(scores);
    for column in 0..vectors {
        let mut top = scores[column];
        for score in scores[column..].iter().step_by(vectors) {
            top = simd.max_f32s(top, *score);
        }
        let mut sum = simd.splat_f32s(0.0);
        for score in scores[column..].iter_mut().step_by(vectors) {
            *score = curve::exp(simd, simd.sub_f32s(*score, top));
            sum = simd.add_f32s(sum, *score);
        }
        let share = simd.div_f32s(simd.splat_f32s(1.0), sum);
        for score in scores[column..].iter_mut().step_by(vectors) {
            *score = simd.mul_f32s(*score, share);
        }
    }
}

struct NormJob<'j, S> {
    simd: S,
    states: &'j mut [f32],
    width: usize,
    norm: &'j Norm,
}

impl<S: Simd> NullaryFnOnce for NormJob<'_, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        curve::layer_norm(self.simd, self.states, self.width, &self.norm.gain, &self.norm.bias);
    }
}

struct AddJob<'j, S> {
    simd: S,
    states: &'j mut [f32],
    more: &'j [f32],
}

impl<S: Simd> NullaryFnOnce for AddJob<'_, S> {
    type Output = ();

    #[inline(always)]
    fn call(self) {
        for (state, more) in S::as_mut_simd_f32s(self.states).0.iter_mut().zip(S::as_simd_f32s(self.more).0) {
            *state = self.simd.add_f32s(*state, *more);
        }
    }
}

/// Floats that start on a cache line.
struct Aligned {
    values: Vec<f32>,
    start: usize,
    size: usize,
}

impl Aligned {
    fn new(size: usize) -> Self {
        let values = vec![0.0; size + LINE];
        let start = values.as_ptr().align_offset(LINE * size_of::<f32>()).min(LINE);
        Self { values, start, size }
    }

    fn slice(&self) -> &[f32] {
        &self.values[self.start..self.start + self.size]
    }

    fn slice_mut(&mut self) -> &mut [f32] {
        &mut self.values[self.start..self.start + self.size]
    }
}
