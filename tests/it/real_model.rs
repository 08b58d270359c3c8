//! A real small model behind llama.cpp's server. It is far too small to reason: it proves the wire, and that a run ends
//! in order whatever a model says. `make test-servers` runs these; they need the server's binary and a model file.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use oncall::http::{HttpSettings, Retries};
use oncall::llm::{AnswerSchema, ChatModel, ChatRequest, Delta, Endpoint, Message, OpenAi, Wire, json};
use serde_json::{Map, json};

use crate::program::{indexed_data_dir, oncall, root, said};

const HOW: &str = "set LLAMA_SERVER to the path of llama.cpp's llama-server and LLAMA_MODEL to a small instruct model (GGUF), \
                   such as SmolLM2-135M-Instruct, then run: make test-servers";
const START_UP: Duration = Duration::from_secs(300);

/// A server on a free port, stopped when dropped.
struct Llama {
    child: Child,
    url: String,
}

impl Llama {
    fn start() -> Self {
        let variable = |name: &str| std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: {HOW}"));
        let (server, model) = (variable("LLAMA_SERVER"), variable("LLAMA_MODEL"));
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(&server)
            .args([
                "-m",
                &model,
                "--host",
                "127.0.0.1",
                "--port",
                &port.to_string(),
                "-c",
                "8192",
                "-np",
                "1",
                "--jinja",
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{server}: {error}: {HOW}"));
        let llama = Self { child, url: format!("http://127.0.0.1:{port}/v1") };
        let begun = Instant::now();
        let healthy = || {
            let address = format!("127.0.0.1:{port}");
            let Ok(mut stream) = std::net::TcpStream::connect(address) else { return false };
            use std::io::{Read, Write};
            let mut answer = String::new();
            let _ = stream.set_read_timeout(Some(Duration::from_secs(2)));
            let _ = stream.write_all(b"GET /health HTTP/1.0\r\n\r\n");
            let _ = stream.read_to_string(&mut answer);
            answer.contains("\"ok\"")
        };
        while !healthy() {
            assert!(begun.elapsed() < START_UP, "{server} does not answer: {HOW}");
            std::thread::sleep(Duration::from_millis(200));
        }
        llama
    }

    fn config(&self, dir: &std::path::Path) -> std::path::PathBuf {
        let path = dir.join("oncall.toml");
        let text = format!(
            "model = \"small\"\n[models.small]\nprovider = \"openai\"\nbase_url = \"{}\"\nmodel = \"small\"\ncontext = 8192\nmax_tokens = 200\n",
            self.url
        );
        std::fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
#[ignore = "needs llama.cpp's server: make test-servers"]
async fn a_real_model_streams_and_fits_a_schema() {
    let llama = Llama::start();
    let client = OpenAi::new(Endpoint {
        base_url: llama.url.clone(),
        model: "small".into(),
        api_key: None,
        api_key_env: None,
        http: HttpSettings::default(),
        retries: Retries::default(),
        temperature: Some(0.0),
        seed: Some(1),
        body: Map::new(),
        wire: Wire::default(),
    })
    .unwrap();
    let question = ChatRequest {
        messages: vec![Message::user("Name one cause of high latency.")],
        max_tokens: Some(40),
        ..ChatRequest::default()
    };
    let mut pieces = 0;
    let mut on_delta = |delta: Delta<'_>| pieces += usize::from(matches!(delta, Delta::Content(_)));
    let answer = client.answer(&question, &mut on_delta).await.unwrap();
    assert!(pieces > 3 && !answer.content.is_empty(), "{pieces} pieces: {answer:?}");
    assert!(answer.usage.unwrap().input > 5);

    let schema = json!({ "type": "object", "required": ["cause"],
        "properties": { "cause": { "type": "string", "maxLength": 30 } } });
    let shaped = ChatRequest { answer: Some(AnswerSchema { name: "cause".into(), schema }), ..question };
    let answer = client.answer(&shaped, &mut |_| {}).await.unwrap();
    assert!(json::find(&answer.content).unwrap()["cause"].is_string(), "{answer:?}");
}

#[test]
#[ignore = "needs llama.cpp's server: make test-servers"]
fn whole_runs_end_in_order_whatever_a_small_model_says() {
    let llama = Llama::start();
    let dir = tempfile::tempdir().unwrap();
    let config = llama.config(dir.path());
    let incident = root().join("examples/order-service");
    let mut diagnose = oncall(&indexed_data_dir());
    diagnose.arg("--config").arg(&config).args(["diagnose", "--json", "--max-time", "4m", "--incident"]).arg(&incident);
    let (code, out, err) = said(&diagnose.output().unwrap());
    assert!(code == 0 || code == 3, "{code}: {err}");
    let diagnosis: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!(diagnosis["schema"], "oncall.diagnosis/v1");
    assert!(diagnosis["usage"]["calls"].as_u64().unwrap() > 0, "{}", diagnosis["usage"]);

    let mut ask = oncall(&indexed_data_dir());
    ask.arg("--config").arg(&config).args(["ask", "--json", "How do I find what fills the disk?"]);
    let (code, out, err) = said(&ask.output().unwrap());
    assert_eq!(code, 0, "{err}");
    let answer: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert!(!answer["answer"].as_str().unwrap().is_empty());
}
