//! How fast the embedded model is. Texts come from a file of JSON lines (`{"mode": "query" | "passage", "text": …}`, a
//! `vector` is compared when there is one); one JSON object with the figures goes to standard output.
//!
//!     cargo bench --bench embedding -- TEXTS.jsonl [SECONDS]

use std::time::{Duration, Instant};

use oncall::knowledge::TextRole;
use oncall::knowledge::embed::EmbeddedModel;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize)]
struct Sample {
    mode: String,
    text: String,
    #[serde(default)]
    vector: Vec<f32>,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo bench` adds `--bench`.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    let path = arguments.next().ok_or("usage: embedding TEXTS.jsonl [SECONDS]")?;
    let seconds = arguments.next().map_or(Ok(5.0), |text| text.parse())?;
    let samples: Vec<Sample> =
        std::fs::read_to_string(path)?.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let of_mode = |mode| samples.iter().filter(|sample| sample.mode == mode).map(|sample| &sample.text[..]).collect();
    let (queries, passages): (Vec<&str>, Vec<&str>) = (of_mode("query"), of_mode("passage"));

    if queries.is_empty() || passages.is_empty() {
        return Err("the file needs at least one query and one passage".into());
    }

    let start = Instant::now();
    let model = EmbeddedModel::load()?;
    let load = start.elapsed();
    let start = Instant::now();
    model.vectors(TextRole::Query, &queries[..1])?;
    let first_query = start.elapsed();

    let mut each = Vec::new();
    let start = Instant::now();
    while each.is_empty() || start.elapsed() < Duration::from_secs_f64(seconds) {
        for query in &queries {
            let start = Instant::now();
            model.vectors(TextRole::Query, &[query])?;
            each.push(start.elapsed());
        }
    }
    each.sort();
    let start = Instant::now();
    let mut embedded = 0;
    while embedded == 0 || start.elapsed() < Duration::from_secs_f64(seconds) {
        model.vectors(TextRole::Passage, &passages)?;
        embedded += passages.len();
    }
    let passages_time = start.elapsed();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let figures = json!({
        "load_ms": milliseconds(load),
        "first_query_ms": milliseconds(first_query),
        "query_ms_median": milliseconds(each[each.len() / 2]),
        "query_ms_p95": milliseconds(each[each.len() * 95 / 100]),
        "passages_per_s": f64::from(u32::try_from(embedded)?) / passages_time.as_secs_f64(),
        "lowest_cosine": lowest_cosine(&model, &samples)?,
    });
    println!("{figures}");
    Ok(())
}

/// The smallest cosine of a vector to the one that its sample carries.
fn lowest_cosine(model: &EmbeddedModel, samples: &[Sample]) -> Result<f32, Box<dyn std::error::Error>> {
    let mut lowest = 1.0f32;
    for sample in samples.iter().filter(|sample| !sample.vector.is_empty()) {
        let role = if sample.mode == "query" { TextRole::Query } else { TextRole::Passage };
        let vectors = model.vectors(role, &[&sample.text])?;
        let cosine: f32 = vectors[0].iter().zip(&sample.vector).map(|(ours, theirs)| ours * theirs).sum();
        lowest = lowest.min(cosine);
    }
    Ok(lowest)
}
