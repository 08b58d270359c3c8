//! An embedding and reranking service on loopback that knows nothing but which words a text has.

use serde_json::{Value, json};
use wiremock::matchers::{method, path};
use wiremock::{Mock, MockServer, Request, Respond, ResponseTemplate};

/// Texts that share words are near to each other.
pub struct Words {
    pub dimensions: usize,
    /// More texts than this are refused with 413.
    pub most_texts: usize,
}

impl Default for Words {
    fn default() -> Self {
        Self { dimensions: 64, most_texts: usize::MAX }
    }
}

impl Respond for Words {
    fn respond(&self, request: &Request) -> ResponseTemplate {
        let texts = inputs(request);
        if texts.len() > self.most_texts {
            return ResponseTemplate::new(413).set_body_json(json!({"error": {"message": "batch too large"}}));
        }
        let embedding = |(index, text): (usize, &String)| json!({"object": "embedding", "index": index, "embedding": vector(text, self.dimensions)});
        // The last first: the order of an answer is not promised.
        let data: Vec<Value> = texts.iter().enumerate().map(embedding).rev().collect();
        ResponseTemplate::new(200).set_body_json(json!({"object": "list", "data": data, "usage": {"total_tokens": 1}}))
    }
}

/// The texts of a request.
pub fn inputs(request: &Request) -> Vec<String> {
    let body: Value = request.body_json().unwrap();
    body["input"].as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// Not of unit length, as those of some services are not.
pub fn vector(text: &str, dimensions: usize) -> Vec<f32> {
    let mut vector = vec![0.01; dimensions];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let slot = word.bytes().fold(7usize, |hash, byte| hash.wrapping_mul(31).wrapping_add(usize::from(byte)));
        vector[slot % dimensions] += 3.0;
    }
    vector
}

/// A service with such embeddings.
pub async fn start(words: Words) -> MockServer {
    let server = MockServer::start().await;
    Mock::given(method("POST")).and(path("/v1/embeddings")).respond_with(words).mount(&server).await;
    server
}

/// Every request's body, in their order.
pub async fn bodies(server: &MockServer) -> Vec<Value> {
    let requests = server.received_requests().await.unwrap();
    requests.iter().map(|request| request.body_json().unwrap()).collect()
}
