//! Shapes to templates: which words that differ between otherwise equal shapes are variable.
//!
//! As in Drain, only shapes of the same length are compared. A place is variable when it takes many values, or
//! values that hardly ever recur; a few values that recur are states worth telling apart (`VM Started`, `VM Stopped`).

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault};

use super::hashing::WordHasher;

/// The token of a place that varies.
pub const VARIABLE: u32 = 0;

/// A place with at least so many values is variable.
const MANY_VALUES: usize = 6;
/// A place with fewer values is variable when so many of them were seen once only.
const MIN_SINGLE_VALUES: usize = 2;
/// A message hardly ever begins with what varies: its first word tells what happened.
const MANY_FIRST_WORDS: usize = 20;
/// How often templates are compared again after a merge made some of them more alike.
const ROUNDS: usize = 4;

/// What the merge needs to know of a shape.
pub struct Candidate<'a> {
    /// Shapes are merged only within a scope: one level, one service.
    pub scope: u64,
    pub tokens: &'a [u32],
    /// Whether a token is a word; marks never vary.
    pub is_word: &'a dyn Fn(u32) -> bool,
    pub count: u64,
}

/// The groups of shapes that are one template: for each shape the index of its group's first member, and the
/// tokens of each group by that index.
pub struct Groups {
    pub leader: Vec<usize>,
    pub tokens: HashMap<usize, Vec<u32>>,
}

struct Group {
    members: Vec<usize>,
    tokens: Vec<u32>,
    scope: u64,
    count: u64,
}

/// Finds the groups.
pub fn merge(shapes: &[Candidate<'_>]) -> Groups {
    let mut groups: Vec<Group> = shapes
        .iter()
        .enumerate()
        .map(|(index, shape)| Group {
            members: vec![index],
            tokens: shape.tokens.to_vec(),
            scope: shape.scope,
            count: shape.count,
        })
        .collect();
    if let Some(first) = shapes.first() {
        for _ in 0..ROUNDS {
            let before = groups.len();
            groups = merge_once(groups, first.is_word);
            if groups.len() == before {
                break;
            }
        }
    }
    let mut leader = vec![0; shapes.len()];
    let mut tokens = HashMap::new();
    for group in groups {
        // A group always has the member that it began with.
        let first = group.members.iter().copied().min().unwrap_or_default();
        for member in group.members {
            leader[member] = first;
        }
        tokens.insert(first, group.tokens);
    }
    Groups { leader, tokens }
}

/// One round: families of groups that are equal but for one place, those with the most values first.
fn merge_once(groups: Vec<Group>, is_word: &dyn Fn(u32) -> bool) -> Vec<Group> {
    let hasher = BuildHasherDefault::<WordHasher>::default();
    let mut families: HashMap<(u64, u32), Vec<usize>, BuildHasherDefault<WordHasher>> = HashMap::default();
    for (index, group) in groups.iter().enumerate() {
        for place in 0..group.tokens.len() {
            if group.tokens[place] != VARIABLE && !is_word(group.tokens[place]) {
                continue;
            }
            let rest = (group.scope, &group.tokens[..place], &group.tokens[place + 1..]);
            // Shapes are few enough that two different rests hardly ever share 64 bits.
            families.entry((hasher.hash_one(rest), place as u32)).or_default().push(index);
        }
    }
    let mut families: Vec<(u32, Vec<usize>)> = families
        .into_iter()
        .filter(|(_, members)| members.len() > 1)
        .map(|((_, place), members)| (place, members))
        .collect();
    families.sort_by(|(p, a), (q, b)| b.len().cmp(&a.len()).then(a.cmp(b)).then(p.cmp(q)));
    let mut taken: Vec<Option<Group>> = groups.into_iter().map(Some).collect();
    let mut merged = Vec::new();
    for (place, members) in families {
        let free: Vec<usize> = members.into_iter().filter(|index| taken[*index].is_some()).collect();
        let alive: Vec<&Group> = free.iter().filter_map(|index| taken[*index].as_ref()).collect();
        if !varies(&alive, place as usize) {
            continue;
        }
        merged.push(join(free.into_iter().filter_map(|index| taken[index].take()), place as usize));
    }
    merged.extend(taken.into_iter().flatten());
    merged
}

/// Whether the groups of a family differ by a variable.
fn varies(family: &[&Group], place: usize) -> bool {
    if family.len() < 2 {
        return false;
    }
    if place == 0 {
        return family.len() >= MANY_FIRST_WORDS;
    }
    if family.iter().any(|group| group.tokens[place] == VARIABLE) || family.len() >= MANY_VALUES {
        return true;
    }
    let single = family.iter().filter(|group| group.count == 1).count();
    single >= MIN_SINGLE_VALUES && family.len() >= 3
}

fn join(groups: impl Iterator<Item = Group>, place: usize) -> Group {
    let mut joined: Option<Group> = None;
    for group in groups {
        match &mut joined {
            None => joined = Some(group),
            Some(joined) => {
                joined.members.extend(group.members);
                joined.count += group.count;
            }
        }
    }
    // `varies` holds only for families of two and more.
    let mut joined =
        joined.unwrap_or(Group { members: Vec::new(), tokens: vec![VARIABLE; place + 1], scope: 0, count: 0 });
    joined.tokens[place] = VARIABLE;
    joined
}
