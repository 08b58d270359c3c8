//! A list that keeps its newest items and counts what it let go, so that memory stays flat however long a run is.

use std::collections::VecDeque;

/// The newest `limit` items.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring<T> {
    items: VecDeque<T>,
    limit: usize,
    /// How many items were there before the first that is kept.
    pub dropped: u64,
}

impl<T> Ring<T> {
    pub fn new(limit: usize) -> Self {
        Self { items: VecDeque::new(), limit: limit.max(1), dropped: 0 }
    }

    pub fn push(&mut self, item: T) {
        if self.items.len() == self.limit {
            self.items.pop_front();
            self.dropped += 1;
        }
        self.items.push_back(item);
    }

    pub fn len(&self) -> usize {
        self.items.len()
    }

    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    pub fn iter(&self) -> std::collections::vec_deque::Iter<'_, T> {
        self.items.iter()
    }

    pub fn iter_mut(&mut self) -> std::collections::vec_deque::IterMut<'_, T> {
        self.items.iter_mut()
    }

    pub fn get(&self, index: usize) -> Option<&T> {
        self.items.get(index)
    }

    pub fn last(&self) -> Option<&T> {
        self.items.back()
    }

    /// The newest item for which this holds.
    pub fn newest_mut(&mut self, is_wanted: impl Fn(&T) -> bool) -> Option<&mut T> {
        self.items.iter_mut().rev().find(|item| is_wanted(item))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay_and_the_rest_is_counted() {
        let mut ring = Ring::new(3);
        (0..10).for_each(|n| ring.push(n));
        assert_eq!((ring.iter().copied().collect::<Vec<_>>(), ring.dropped), (vec![7, 8, 9], 7));
        assert_eq!(ring.newest_mut(|n| n % 2 == 0), Some(&mut 8));
    }
}
