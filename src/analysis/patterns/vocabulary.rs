//! Words as numbers: those of shapes, and the names of services and instances.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use super::WILDCARD;
use super::hashing::WordHasher;
use super::merge::VARIABLE;
use super::shape::Kind;

/// The words and marks of the shapes that are kept. Number 0 is the variable.
#[derive(Debug, Default)]
pub struct Vocabulary {
    entries: Vec<Entry>,
    numbers: HashMap<Entry, u32, BuildHasherDefault<WordHasher>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Entry {
    Word(Box<str>),
    Mark(u8),
}

impl Vocabulary {
    /// The number of a piece of a message.
    pub fn token(&mut self, message: &str, kind: &Kind) -> u32 {
        match kind {
            Kind::Variable => VARIABLE,
            Kind::Mark(mark) => self.number(Entry::Mark(*mark)),
            Kind::Word(place) => self.number(Entry::Word(word_in(message, place.range()))),
        }
    }

    fn number(&mut self, entry: Entry) -> u32 {
        if let Some(&number) = self.numbers.get(&entry) {
            return number;
        }
        self.entries.push(entry.clone());
        let number = self.entries.len() as u32;
        self.numbers.insert(entry, number);
        number
    }

    fn entry(&self, token: u32) -> Option<&Entry> {
        self.entries.get((token as usize).checked_sub(1)?)
    }

    pub fn is_word(&self, token: u32) -> bool {
        matches!(self.entry(token), Some(Entry::Word(_)))
    }

    /// The hash that [`super::Miner`] gives a message of this shape.
    pub fn hash(&self, scope: u64, tokens: &[u32]) -> u64 {
        let mut hasher = WordHasher::default();
        hasher.fold(scope);
        for token in tokens {
            match self.entry(*token) {
                Some(Entry::Word(word)) => hasher.write(word.as_bytes()),
                Some(Entry::Mark(mark)) => hasher.write_u8(*mark),
                None => hasher.fold(u64::MAX),
            }
        }
        hasher.finish()
    }

    pub fn render(&self, tokens: &[u32], spaced: &[bool]) -> String {
        let mut text = String::new();
        for (token, spaced) in tokens.iter().zip(spaced) {
            if *spaced && !text.is_empty() {
                text.push(' ');
            }
            match self.entry(*token) {
                Some(Entry::Word(word)) => text.push_str(word),
                Some(Entry::Mark(mark)) => text.push(char::from(*mark)),
                None => text.push_str(WILDCARD),
            }
        }
        text
    }

    /// Forgets the words that no shape uses, and renumbers the others.
    pub fn keep_only<'t>(&mut self, shapes: impl Iterator<Item = &'t mut Vec<u32>>) {
        let old = std::mem::take(self);
        for tokens in shapes {
            for token in tokens {
                *token = old.entry(*token).map_or(VARIABLE, |entry| self.number(entry.clone()));
            }
        }
    }
}

fn word_in(message: &str, range: Range<usize>) -> Box<str> {
    String::from_utf8_lossy(&message.as_bytes()[range]).into()
}

/// Names of services or instances. Beyond so many, further ones count as unnamed.
#[derive(Debug, Default)]
pub struct Names {
    names: Vec<String>,
    numbers: HashMap<String, u32>,
    /// The last one asked for: neighbouring events mostly share it.
    last: Option<(String, u32)>,
}

impl Names {
    /// No name.
    pub const NONE: u32 = 0;
    const MAX: usize = 4096;

    pub fn number(&mut self, name: Option<&str>) -> u32 {
        let Some(name) = name else { return Self::NONE };
        if let Some((last, number)) = &self.last
            && last == name
        {
            return *number;
        }
        let number = match self.numbers.get(name) {
            Some(&number) => number,
            None if self.names.len() >= Self::MAX => return Self::NONE,
            None => {
                self.names.push(name.to_owned());
                let number = self.names.len() as u32;
                self.numbers.insert(name.to_owned(), number);
                number
            }
        };
        self.last = Some((name.to_owned(), number));
        number
    }

    pub fn name(&self, number: u32) -> Option<String> {
        self.names.get((number as usize).checked_sub(1)?).cloned()
    }
}
