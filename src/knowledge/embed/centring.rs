//! Language centring: the mean of a vector's language and role is subtracted, so that what a text says counts and
//! not what it is written in.

use std::collections::HashMap;

use super::super::TextRole;
use super::{EmbedError, normalise};
use crate::domain::lang::Lang;

/// The mean vector of each role and language.
pub struct Centring {
    passage_en: Vec<f32>,
    passage_zh: Vec<f32>,
    query_en: Vec<f32>,
    query_zh: Vec<f32>,
}

impl Centring {
    /// Reads means by the names `passage_en`, `passage_zh`, `query_en` and `query_zh`.
    pub(super) fn parse(json: &str, dimensions: usize) -> Result<Self, EmbedError> {
        let mut means: HashMap<String, Vec<f32>> = serde_json::from_str(json).map_err(|error| {
            EmbedError::Model(format!("the model's language means are no JSON of vectors: {error}"))
        })?;
        let mut take = |name: &str| match means.remove(name) {
            Some(mean) if mean.len() == dimensions => Ok(mean),
            _ => Err(EmbedError::Model(format!("the model's language means have no {name} of {dimensions} values"))),
        };
        Ok(Self {
            passage_en: take("passage_en")?,
            passage_zh: take("passage_zh")?,
            query_en: take("query_en")?,
            query_zh: take("query_zh")?,
        })
    }

    /// Moves a raw vector of unit length so that languages share one centre; its length is 1 again.
    pub fn centre(&self, vector: &mut [f32], role: TextRole, lang: Lang) {
        let mean = match role {
            TextRole::Passage => lang.pick(&self.passage_en, &self.passage_zh),
            TextRole::Query => lang.pick(&self.query_en, &self.query_zh),
        };
        for (value, mean) in vector.iter_mut().zip(mean) {
            *value -= mean;
        }
        normalise(vector);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEANS: &str = r#"{"passage_en": [1, 0], "passage_zh": [0, 1], "query_en": [0, 0], "query_zh": [0, -1]}"#;

    #[test]
    fn the_mean_of_role_and_language_is_subtracted_and_the_length_is_one() {
        let centring = Centring::parse(MEANS, 2).unwrap();
        let centred = |role, lang| {
            let mut vector = [0.6, 0.8];
            centring.centre(&mut vector, role, lang);
            vector
        };
        let close = |found: [f32; 2], expected: [f32; 2]| (0..2).all(|at| (found[at] - expected[at]).abs() < 1e-6);
        assert!(close(centred(TextRole::Query, Lang::En), [0.6, 0.8]));
        assert!(close(centred(TextRole::Query, Lang::Zh), [0.316_227_77, 0.948_683_3]));
        assert!(close(centred(TextRole::Passage, Lang::En), [-0.447_213_6, 0.894_427_2]));
        assert!(close(centred(TextRole::Passage, Lang::Zh), [0.948_683_3, -0.316_227_77]));
    }

    #[test]
    fn a_vector_that_equals_the_mean_stays_finite() {
        let centring = Centring::parse(MEANS, 2).unwrap();
        let mut vector = [1.0, 0.0];
        centring.centre(&mut vector, TextRole::Passage, Lang::En);
        assert_eq!(vector, [1.0, 0.0]);
    }

    #[test]
    fn means_of_another_size_are_refused() {
        assert_eq!(
            Centring::parse(MEANS, 3).err().unwrap().to_string(),
            "the model's language means have no passage_en of 3 values"
        );
    }
}
