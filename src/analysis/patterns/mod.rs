//! Log patterns: online template mining in the manner of Drain (He et al. 2017) over masked messages.
//!
//! Events come in one by one; counted templates come out. Each message is reduced to its shape by one scan, and
//! most find their shape known: that is all that happens for them. New shapes are kept, and compared with each
//! other only when they get too many or at the end. Memory is bounded by [`MAX_SHAPES`], not by the number of
//! lines: what is too rare to keep goes into one "everything else" pattern per level and service, counted still.

mod hashing;
mod merge;
mod shape;
mod timeline;
mod vocabulary;

use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use jiff::Timestamp;

use crate::domain::{Level, LogEvent, LogPattern, LogVolume, Window};
use hashing::WordHasher;
use merge::{Candidate, VARIABLE};
use shape::{Kind, Scanner};
use timeline::{Place, Slices, Timeline};
use vocabulary::{Names, Vocabulary};

/// Shapes kept at most; when they are more, alike ones are merged and then the rarest given up.
pub const MAX_SHAPES: usize = 8192;
const SHAPES_AFTER_CLEARING: usize = MAX_SHAPES / 2;
/// Known hashes, several of which lead to one merged shape.
const MAX_KNOWN: usize = MAX_SHAPES * 8;
const SAMPLE_BYTES: usize = 2000;
const MAX_INSTANCES: usize = 8;
/// What stands for a variable part.
pub const WILDCARD: &str = "<*>";

/// Whether equal messages of two services are two patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Services {
    Apart,
    Together,
}

/// Whether [`Mined::pattern_of`] will be asked: it costs four bytes for each shape ever seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignments {
    Kept,
    Dropped,
}

/// How to mine. The parameters of the algorithm itself are the same for every log.
#[derive(Debug, Clone, Copy)]
pub struct MinerOptions {
    /// Only events within are counted, and those of the equally long time before it are counted apart. Without a
    /// window everything counts, and the histogram spans what was seen.
    pub window: Option<Window>,
    pub services: Services,
    pub assignments: Assignments,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Mined {
    /// The most frequent first.
    pub patterns: Vec<LogPattern>,
    pub volume: LogVolume,
    final_of: HashMap<u32, usize>,
    parents: Vec<u32>,
}

impl Mined {
    /// The index of the pattern of an event, by the ticket that [`Miner::add`] gave for it. `None` for an event
    /// outside the window, or when assignments were not kept.
    pub fn pattern_of(&self, ticket: Ticket) -> Option<usize> {
        let mut id = ticket.0?;
        while let Some(&parent) = self.parents.get(id as usize)
            && parent != id
        {
            id = parent;
        }
        self.final_of.get(&id).copied()
    }
}

/// What tells the pattern of one event later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket(Option<u32>);

/// A shape with what was counted of it.
#[derive(Debug, Clone)]
struct Shape {
    id: u32,
    hash: u64,
    scope: u64,
    level: Option<Level>,
    /// By its number in `Miner::services`; [`Names::NONE`] when there is none, or several.
    service: u32,
    tokens: Vec<u32>,
    spaced: Vec<bool>,
    count: u64,
    before: u64,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    slices: Slices,
    instances: Vec<(u32, u64)>,
    sample: String,
}

/// The miner.
#[derive(Debug)]
pub struct Miner {
    options: MinerOptions,
    scanner: Scanner,
    vocabulary: Vocabulary,
    services: Names,
    instances: Names,
    shapes: Vec<Shape>,
    /// From the hash of a scope and shape to its place in `shapes`.
    known: HashMap<u64, u32, BuildHasherDefault<WordHasher>>,
    /// For each shape ever seen, the one that it went into (itself, while it lives).
    parents: Vec<u32>,
    next_id: u32,
    timeline: Timeline,
    volume: LogVolume,
    levels: [u64; 7],
}

impl Miner {
    pub fn new(options: MinerOptions) -> Self {
        Self {
            options,
            scanner: Scanner::default(),
            vocabulary: Vocabulary::default(),
            services: Names::default(),
            instances: Names::default(),
            shapes: Vec::new(),
            known: HashMap::default(),
            parents: Vec::new(),
            next_id: 0,
            timeline: Timeline::new(options.window),
            volume: LogVolume::default(),
            levels: [0; 7],
        }
    }

    /// Counts an event.
    pub fn add(&mut self, event: &LogEvent) -> Ticket {
        let place = self.timeline.place(event.at, &mut self.shapes);
        if place == Place::Outside {
            return Ticket(None);
        }
        if place != Place::Before {
            self.count_volume(event);
        }
        self.scanner.scan(&event.message);
        let service = self.services.number(event.service.as_deref());
        let scope = self.scope(event.level, service);
        let hash = self.hash_of_shape(&event.message, scope);
        let index = match self.known.get(&hash) {
            Some(&index) => index as usize,
            None => self.learn(event, hash, scope, service),
        };
        let instance = self.instances.number(event.instance.as_deref());
        self.shapes[index].count_event(event, place, service, instance);
        Ticket((self.options.assignments == Assignments::Kept).then(|| self.shapes[index].id))
    }

    /// The patterns.
    pub fn finish(mut self) -> Mined {
        self.merge_alike();
        self.shapes.retain(|shape| shape.count + shape.before > 0);
        self.shapes.sort_by(|a, b| b.count.cmp(&a.count).then(a.first.cmp(&b.first)).then(a.id.cmp(&b.id)));
        let final_of = self.shapes.iter().enumerate().map(|(index, shape)| (shape.id, index)).collect();
        let patterns: Vec<LogPattern> =
            self.shapes.iter().enumerate().map(|(index, shape)| self.pattern(index, shape)).collect();
        let names = ["trace", "debug", "info", "warn", "error", "fatal", "none"];
        let levels = names.iter().zip(self.levels).filter(|(_, count)| *count > 0);
        let levels: BTreeMap<String, u64> = levels.map(|(name, count)| ((*name).to_owned(), count)).collect();
        let volume = LogVolume { levels, patterns: patterns.len(), ..self.volume };
        Mined { patterns, volume, final_of, parents: self.parents }
    }

    fn count_volume(&mut self, event: &LogEvent) {
        self.volume.events += 1;
        self.levels[event.level.map_or(6, |level| level as usize)] += 1;
        if let Some(at) = event.at {
            self.volume.first = Some(self.volume.first.map_or(at, |first| first.min(at)));
            self.volume.last = Some(self.volume.last.map_or(at, |last| last.max(at)));
        }
    }

    fn scope(&self, level: Option<Level>, service: u32) -> u64 {
        let service = if self.options.services == Services::Apart { service } else { Names::NONE };
        u64::from(service) << 8 | level.map_or(0, |level| level as u64 + 1)
    }

    fn hash_of_shape(&self, message: &str, scope: u64) -> u64 {
        let bytes = message.as_bytes();
        let mut hasher = WordHasher::default();
        hasher.fold(scope);
        for piece in &self.scanner.pieces {
            match &piece.kind {
                Kind::Word(place) => hasher.write(&bytes[place.range()]),
                Kind::Variable => hasher.fold(u64::MAX),
                Kind::Mark(mark) => hasher.write_u8(*mark),
            }
        }
        hasher.finish()
    }

    /// A shape that was not seen before.
    fn learn(&mut self, event: &LogEvent, hash: u64, scope: u64, service: u32) -> usize {
        if self.shapes.len() >= MAX_SHAPES || self.known.len() >= MAX_KNOWN {
            self.make_room();
        }
        let pieces = &self.scanner.pieces;
        let tokens = pieces.iter().map(|piece| self.vocabulary.token(&event.message, &piece.kind)).collect();
        let spaced = pieces.iter().map(|piece| piece.spaced).collect();
        self.insert(Shape {
            id: self.next_id,
            hash,
            scope,
            level: event.level,
            service,
            tokens,
            spaced,
            count: 0,
            before: 0,
            first: None,
            last: None,
            slices: Slices::default(),
            instances: Vec::new(),
            sample: cut(&event.message),
        })
    }

    fn insert(&mut self, shape: Shape) -> usize {
        let index = self.shapes.len();
        self.known.insert(shape.hash, index as u32);
        self.next_id += 1;
        if self.options.assignments == Assignments::Kept {
            self.parents.push(shape.id);
        }
        self.shapes.push(shape);
        index
    }

    /// Merges what is alike; then gives up the rarest shapes, should there still be too many.
    fn make_room(&mut self) {
        self.merge_alike();
        if self.shapes.len() > SHAPES_AFTER_CLEARING {
            self.shapes.sort_by(|a, b| (b.count + b.before).cmp(&(a.count + a.before)).then(a.id.cmp(&b.id)));
            let given_up = self.shapes.split_off(SHAPES_AFTER_CLEARING);
            self.reindex();
            for shape in given_up {
                self.give_up(shape);
            }
        }
        self.vocabulary.keep_only(self.shapes.iter_mut().map(|shape| &mut shape.tokens));
        // Hashes of merged shapes are forgotten: should one recur, the next merge finds its template again.
        self.reindex();
    }

    fn reindex(&mut self) {
        self.known = self.shapes.iter().enumerate().map(|(index, shape)| (shape.hash, index as u32)).collect();
    }

    /// Puts a shape into the "everything else" of its scope.
    fn give_up(&mut self, shape: Shape) {
        let mut hasher = WordHasher::default();
        hasher.fold(shape.scope);
        hasher.fold(OTHER_MESSAGES);
        let hash = hasher.finish();
        let index = match self.known.get(&hash) {
            Some(&index) => index as usize,
            None => {
                let empty =
                    Shape { id: self.next_id, hash, tokens: vec![VARIABLE], spaced: vec![false], ..shape.clone() };
                self.insert(empty.without_counts())
            }
        };
        self.set_parent(shape.id, self.shapes[index].id);
        self.shapes[index].absorb(shape);
    }

    fn set_parent(&mut self, child: u32, parent: u32) {
        if let Some(slot) = self.parents.get_mut(child as usize) {
            *slot = parent;
        }
    }

    fn merge_alike(&mut self) {
        let vocabulary = &self.vocabulary;
        let is_word = |token: u32| vocabulary.is_word(token);
        let candidates: Vec<Candidate<'_>> = self
            .shapes
            .iter()
            .map(|shape| Candidate {
                scope: shape.scope,
                tokens: &shape.tokens,
                is_word: &is_word,
                count: shape.count + shape.before,
            })
            .collect();
        let mut groups = merge::merge(&candidates);
        let mut place_of = HashMap::new();
        let mut merged: Vec<Shape> = Vec::new();
        for (index, shape) in std::mem::take(&mut self.shapes).into_iter().enumerate() {
            let leader = groups.leader[index];
            match place_of.get(&leader) {
                Some(&place) => {
                    let into: &mut Shape = &mut merged[place];
                    if let Some(slot) = self.parents.get_mut(shape.id as usize) {
                        *slot = into.id;
                    }
                    into.absorb(shape);
                }
                None => {
                    place_of.insert(leader, merged.len());
                    let mut shape = shape;
                    if let Some(tokens) = groups.tokens.remove(&leader) {
                        shape.tokens = tokens;
                    }
                    merged.push(shape);
                }
            }
        }
        for shape in &mut merged {
            shape.hash = self.vocabulary.hash(shape.scope, &shape.tokens);
        }
        self.shapes = merged;
    }

    fn pattern(&self, index: usize, shape: &Shape) -> LogPattern {
        let mut instances: Vec<_> = shape.instances.clone();
        instances.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        LogPattern {
            id: format!("P{}", index + 1),
            level: shape.level,
            service: self.services.name(shape.service),
            count: shape.count,
            before: self.options.window.is_some().then_some(shape.before).filter(|_| self.timeline.saw_before()),
            first: shape.first,
            last: shape.last,
            template: self.vocabulary.render(&shape.tokens, &shape.spaced),
            sample: shape.sample.clone(),
            histogram: self.timeline.histogram(&shape.slices, self.volume.first, self.volume.last),
            instances: instances
                .into_iter()
                .filter_map(|(number, count)| self.instances.name(number).map(|name| (name, count)))
                .collect(),
        }
    }
}

/// Stands for the words of the "everything else" pattern in its hash.
const OTHER_MESSAGES: u64 = 0x6f74_6865_7221;

impl Shape {
    fn count_event(&mut self, event: &LogEvent, place: Place, service: u32, instance: u32) {
        match place {
            Place::Before => {
                self.before += 1;
                return;
            }
            Place::Slice(slice) => self.slices.count(slice),
            Place::Undated | Place::Outside => {}
        }
        self.count += 1;
        if self.service != service {
            self.service = Names::NONE;
        }
        if let Some(at) = event.at {
            self.first = Some(self.first.map_or(at, |first| first.min(at)));
            self.last = Some(self.last.map_or(at, |last| last.max(at)));
        }
        if instance != Names::NONE {
            self.count_instance(instance, 1);
        }
    }

    fn count_instance(&mut self, instance: u32, count: u64) {
        if let Some((_, held)) = self.instances.iter_mut().find(|(known, _)| *known == instance) {
            *held += count;
        } else if self.instances.len() < MAX_INSTANCES {
            self.instances.push((instance, count));
        }
    }

    fn absorb(&mut self, other: Shape) {
        if other.count > self.count {
            self.sample = other.sample;
        }
        self.count += other.count;
        self.before += other.before;
        self.first = earliest(self.first, other.first);
        self.last = self.last.max(other.last);
        self.slices.add(&other.slices);
        if self.service != other.service {
            self.service = Names::NONE;
        }
        for (instance, count) in other.instances {
            self.count_instance(instance, count);
        }
    }

    fn without_counts(self) -> Self {
        Self { count: 0, before: 0, first: None, last: None, slices: Slices::default(), instances: Vec::new(), ..self }
    }
}

fn earliest(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

fn cut(message: &str) -> String {
    let mut end = message.len().min(SAMPLE_BYTES);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    message[..end].to_owned()
}

/// A shape as text.
#[cfg(test)]
fn render(message: &str, pieces: &[shape::Piece]) -> String {
    let mut vocabulary = Vocabulary::default();
    let tokens: Vec<u32> = pieces.iter().map(|piece| vocabulary.token(message, &piece.kind)).collect();
    let spaced: Vec<bool> = pieces.iter().map(|piece| piece.spaced).collect();
    vocabulary.render(&tokens, &spaced)
}

#[cfg(test)]
mod tests;
