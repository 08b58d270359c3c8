//! Embeddings and reranking over HTTP: the wire, what can go wrong on it, and the whole program with it.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use assert_cmd::Command;
use oncall::http::{HttpSettings, Retries};
use oncall::knowledge::{EmbedError, Embedder, RemoteEmbedder, RemoteSettings, ServiceSettings, TextRole};
use serde_json::{Value, json};
use wiremock::matchers::{body_string_contains, header, method, path};
use wiremock::{Mock, MockServer, Request, ResponseTemplate};

use crate::program::{oncall, said};
use crate::servers::embeddings::{Words, bodies, inputs, start, vector};

fn settings(server: &MockServer) -> RemoteSettings {
    let service = ServiceSettings {
        table: "embedder",
        base_url: format!("{}/v1", server.uri()),
        model: "words".into(),
        api_key: Some(("WORDS_KEY".into(), "k3y".into())),
        http: HttpSettings::default(),
        retries: Retries { first_pause: Duration::from_millis(1), ..Retries::default() },
        outgoing: Arc::new(str::to_owned),
    };
    RemoteSettings { service, dimensions: None, input_type: false, floor: 0.25 }
}

fn texts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("text {number}")).collect()
}

/// What one text is answered with, when the service always answers this.
async fn failure(response: ResponseTemplate, change: impl FnOnce(&mut RemoteSettings)) -> EmbedError {
    let server = MockServer::start().await;
    Mock::given(method("POST")).respond_with(response).mount(&server).await;
    let mut settings = settings(&server);
    change(&mut settings);
    let embedder = RemoteEmbedder::new(settings).unwrap();
    embedder.embed(TextRole::Query, &texts(1)).await.unwrap_err()
}

/// The message, with the server's address as it would be in life.
async fn complaint(response: ResponseTemplate) -> String {
    let message = failure(response, |_| {}).await.to_string();
    regex::Regex::new(r"http://127\.0\.0\.1:[0-9]+").unwrap().replace_all(&message, "http://HOST").into_owned()
}

#[tokio::test]
async fn a_request_says_model_role_and_key_and_its_answer_is_put_in_order() {
    let server = MockServer::start().await;
    Mock::given(method("POST"))
        .and(path("/v1/embeddings"))
        .and(header("authorization", "Bearer k3y"))
        .and(header("x-team", "shop"))
        .respond_with(Words::default())
        .mount(&server)
        .await;
    let mut settings = settings(&server);
    settings.input_type = true;
    settings.service.http.headers.insert("X-Team".into(), "shop".into());
    let embedder = RemoteEmbedder::new(settings).unwrap();
    let found = embedder.embed(TextRole::Passage, &["disk full".into(), "".into(), "pool".into()]).await.unwrap();
    let expected = ["disk full", "-", "pool"].map(|text| {
        let vector = vector(text, 64);
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        vector.into_iter().map(|value| value / length).collect::<Vec<_>>()
    });
    for (found, expected) in found.iter().zip(&expected) {
        assert!(found.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-6));
    }
    assert_eq!((found.len(), embedder.dimensions(), embedder.id()), (3, 64, "openai/words/typed/64"));
    embedder.embed(TextRole::Query, &["x".into()]).await.unwrap();
    let body = |input: Value, role: &str| json!({"model": "words", "input": input, "encoding_format": "float", "input_type": role, "truncate": "END"});
    assert_eq!(
        bodies(&server).await,
        [body(json!(["disk full", "-", "pool"]), "passage"), body(json!(["x"]), "query")]
    );
}

#[tokio::test]
async fn batches_are_halved_until_the_service_takes_them() {
    let server = start(Words { most_texts: 20, ..Words::default() }).await;
    let embedder = RemoteEmbedder::new(settings(&server)).unwrap();
    let texts = texts(100);
    let found = embedder.embed(TextRole::Passage, &texts).await.unwrap();
    let sent: Vec<usize> = bodies(&server).await.iter().map(|body| body["input"].as_array().unwrap().len()).collect();
    assert_eq!(sent, [64, 32, 16, 16, 16, 16, 16, 16, 4]);
    let alone = embedder.embed(TextRole::Passage, &texts[99..]).await.unwrap();
    assert_eq!((found.len(), &found[99]), (100, &alone[0]));
}

#[tokio::test]
async fn a_text_that_is_too_long_is_cut_in_half() {
    let server = MockServer::start().await;
    let respond = |request: &Request| match inputs(request)[0].chars().count() {
        0..=600 => ResponseTemplate::new(200).set_body_json(json!({"data": [{"index": 0, "embedding": [3.0, 4.0]}]})),
        _ => ResponseTemplate::new(400).set_body_json(json!({"error": {"message": "input exceeds 512 tokens"}})),
    };
    Mock::given(method("POST")).respond_with(respond).mount(&server).await;
    let embedder = RemoteEmbedder::new(settings(&server)).unwrap();
    let found = embedder.embed(TextRole::Passage, &["磁盘".repeat(1000)]).await.unwrap();
    assert_eq!((found, bodies(&server).await.len()), (vec![vec![0.6, 0.8]], 3));
}

#[tokio::test]
async fn a_busy_service_is_asked_again() {
    let server = MockServer::start().await;
    for status in [429, 503] {
        let busy = ResponseTemplate::new(status).insert_header("retry-after-ms", "1");
        Mock::given(method("POST")).respond_with(busy).up_to_n_times(1).mount(&server).await;
    }
    Mock::given(method("POST")).respond_with(Words::default()).mount(&server).await;
    let embedder = RemoteEmbedder::new(settings(&server)).unwrap();
    assert_eq!(embedder.embed(TextRole::Query, &texts(1)).await.unwrap().len(), 1);
    assert_eq!(bodies(&server).await.len(), 3);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_asked_for_once_more_and_a_service_that_is_gone_is_said_to_be() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = std::thread::spawn(move || {
        let whole = json!({"data": [{"index": 0, "embedding": [3.0, 4.0]}]}).to_string();
        for answer in [&whole[..10], &whole] {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 4096]).unwrap();
            write!(stream, "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{answer}", whole.len())
                .unwrap();
        }
    });
    let server = MockServer::start().await;
    let mut settings = settings(&server);
    settings.service.base_url = format!("http://{address}/v1");
    let embedder = RemoteEmbedder::new(settings).unwrap();
    assert_eq!(embedder.embed(TextRole::Query, &texts(1)).await.unwrap(), [[0.6, 0.8]]);
    serve.join().unwrap();
    let gone = embedder.embed(TextRole::Query, &texts(1)).await.unwrap_err().to_string();
    let expected = format!("cannot reach http://{address}/v1/embeddings: ");
    assert!(
        gone.starts_with(&expected) && gone.ends_with("; with --offline the embedded model is used instead"),
        "{gone}"
    );
}

#[tokio::test]
async fn refusals_say_what_to_set() {
    let refused = |status: u16, text: &str| ResponseTemplate::new(status).set_body_string(text);
    assert_eq!(
        complaint(refused(401, "bad key")).await,
        "http://HOST/v1/embeddings answered 401: bad key: the key in WORDS_KEY was refused; set WORDS_KEY to one that is \
         valid for this service"
    );
    assert_eq!(
        complaint(refused(404, "no such model")).await,
        "http://HOST/v1/embeddings answered 404: no such model: check [embedder] base_url = \"http://HOST/v1\" and model = \
         \"words\""
    );
    let keyless = failure(refused(401, "who?"), |settings| settings.service.api_key = None).await;
    assert!(matches!(&keyless, EmbedError::Settings(why) if why.ends_with(
        "the service wants a key; name the variable that holds it in [embedder] api_key_env"
    )));
}

#[tokio::test]
async fn answers_that_are_none_are_told_as_they_are() {
    let json = |answer: Value| ResponseTemplate::new(200).set_body_json(answer);
    let hint = "; with --offline the embedded model is used instead";
    for (answer, expected) in [
        (json(json!({"error": {"message": "model is loading"}})), "an error: model is loading"),
        (json(json!({"object": "error", "message": "out of memory"})), "an error: out of memory"),
        (json(json!({"data": []})), "0 embeddings for 1 texts"),
        (json(json!({"data": [{"index": 3, "embedding": [1.0]}]})), "an embedding of text 3, of 1"),
        (
            json(json!({"data": [{"index": 0, "embedding": [null]}]})),
            "an embedding of text 0 that holds null, no number",
        ),
        (json(json!({"data": [{"embedding": "AADAfw=="}]})), "an embedding of text 0 whose number 0 is not finite"),
        (ResponseTemplate::new(200).set_body_string("<html>"), "no JSON (expected value at line 1 column 1): <html>"),
    ] {
        assert_eq!(complaint(answer).await, format!("http://HOST/v1/embeddings answered {expected}{hint}"));
    }
}

#[tokio::test]
async fn a_dimension_that_is_not_the_configured_one_is_an_error_and_one_that_need_not_be_said_is_none() {
    let server = MockServer::start().await;
    let refusal = ResponseTemplate::new(400).set_body_string("this model does not support dimensions");
    Mock::given(body_string_contains("\"dimensions\"")).respond_with(refusal).mount(&server).await;
    Mock::given(method("POST")).respond_with(Words::default()).mount(&server).await;
    let with = |dimensions| RemoteSettings { dimensions: Some(dimensions), ..settings(&server) };
    let right = RemoteEmbedder::new(with(64)).unwrap();
    right.embed(TextRole::Query, &texts(1)).await.unwrap();
    right.embed(TextRole::Query, &texts(1)).await.unwrap();
    assert_eq!(bodies(&server).await.len(), 3);
    let wrong = RemoteEmbedder::new(with(32)).unwrap().embed(TextRole::Query, &texts(1)).await.unwrap_err().to_string();
    assert!(wrong.contains("vectors of 64 dimensions, and [embedder] dimensions is 32: set it to 64"), "{wrong}");
}

/// A folder with runbooks and a configuration, and the program in it.
struct Site {
    folder: tempfile::TempDir,
}

impl Site {
    fn new(config: &str) -> Self {
        let site = Self { folder: tempfile::tempdir().unwrap() };
        fs::create_dir(site.path().join("docs")).unwrap();
        site.document("pool.md", "# Pool\n\nconnection pool exhausted: raise the limit of connections");
        site.document("disk.md", "# Disk\n\nfull disk of a database host: remove old logs");
        site.document("cert.md", "# Certificate\n\nexpired certificate of the gateway: renew it");
        site.configure(config);
        site
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn document(&self, name: &str, text: &str) {
        fs::write(self.path().join("docs").join(name), text).unwrap();
    }

    fn configure(&self, config: &str) {
        // The table first: what follows may open others.
        fs::write(self.path().join("oncall.toml"), format!("[knowledge]\npaths = [\"docs\"]\n{config}")).unwrap();
    }

    fn oncall(&self, args: &[&str]) -> Command {
        let mut command = oncall(&self.path().join("data"));
        command.current_dir(self.path()).env("WORDS_KEY", "k3y").args(args);
        command
    }

    /// Exit code, stdout and stderr.
    fn run(&self, args: &[&str]) -> (i32, String, String) {
        said(&self.oncall(args).output().unwrap())
    }

    /// Source and `via` of each hit.
    fn search(&self, args: &[&str], query: &str) -> Vec<(String, Vec<String>)> {
        let (code, out, err) = self.run(&[args, &["search", query, "-k", "3", "--json"]].concat());
        assert_eq!(code, 0, "{err}");
        let hit = |line: &str| {
            let hit: Value = serde_json::from_str(line).unwrap();
            (hit["source"].as_str().unwrap().to_owned(), serde_json::from_value(hit["via"].clone()).unwrap())
        };
        out.lines().map(hit).collect()
    }
}

fn embedder(server: &MockServer) -> String {
    format!(
        "[embedder]\nkind = \"openai\"\nbase_url = \"{}/v1\"\nmodel = \"words\"\napi_key_env = \"WORDS_KEY\"\n",
        server.uri()
    )
}

#[tokio::test]
async fn documents_are_indexed_and_found_through_the_service() {
    let server = start(Words::default()).await;
    let site = Site::new(&embedder(&server));
    let (code, _, err) = site.run(&["index"]);
    assert_eq!(code, 0, "{err}");
    let found = site.search(&[], "connection pool exhausted");
    assert_eq!(found[0], ("pool.md".into(), vec!["vector".into(), "text".into()]));
    assert_eq!(site.search(&[], "bread recipe"), []);
    let (code, out, err) = site.run(&["doctor"]);
    assert_eq!(code, 0, "{out}{err}");
    let line = out.lines().find(|line| line.contains("embedder")).unwrap();
    assert!(line.contains(&format!("words at {}/v1, 64 dimensions, ", server.uri())), "{line}");
}

#[tokio::test]
async fn a_changed_embedder_asks_for_a_rebuild_and_offline_has_a_store_of_its_own() {
    let server = start(Words::default()).await;
    let site = Site::new("");
    assert_eq!(site.run(&["index", "-q"]).0, 0);
    site.configure(&embedder(&server));
    let (code, out, err) = site.run(&["search", "pool"]);
    assert_eq!((code, out.as_str()), (1, ""));
    let expected = "was made with the embedder multilingual-e5-small-en-zh-q4_0/1/384, and the present one is \
                    openai/words/64: run `oncall index --rebuild`";
    assert!(err.contains(expected), "{err}");
    let (code, _, err) = site.run(&["index", "--rebuild"]);
    assert_eq!(code, 0, "{err}");
    assert_eq!(site.search(&[], "pool")[0].0, "pool.md");
    // The service is gone: nothing is asked, and its store stays.
    drop(server);
    assert_eq!(site.search(&["--offline"], "连接池耗尽")[0].0, "pool.md");
    let stores: Vec<bool> =
        ["knowledge", "knowledge-embedded"].iter().map(|name| site.path().join("data").join(name).is_dir()).collect();
    assert_eq!(stores, [true, true]);
}

#[tokio::test]
async fn what_is_missing_is_named_with_its_exit_code() {
    let server = start(Words::default()).await;
    let site = Site::new(&embedder(&server));
    let output = site.oncall(&["search", "pool"]).env_remove("WORDS_KEY").output().unwrap();
    let (code, _, err) = said(&output);
    assert_eq!(code, 2);
    assert!(err.contains("the variable WORDS_KEY, which [embedder] api_key_env names, is not set"), "{err}");
    server.reset().await;
    Mock::given(method("POST")).respond_with(ResponseTemplate::new(401)).mount(&server).await;
    let (code, _, err) = site.run(&["search", "pool"]);
    assert_eq!(code, 2);
    assert!(err.contains("the key in WORDS_KEY was refused"), "{err}");
    let (code, out, _) = site.run(&["doctor"]);
    assert_eq!(code, 3);
    assert!(out.contains("FAIL  embedder") && out.contains("the key in WORDS_KEY was refused"), "{out}");
    server.reset().await;
    Mock::given(method("POST"))
        .respond_with(ResponseTemplate::new(500).insert_header("retry-after-ms", "1"))
        .mount(&server)
        .await;
    let (code, _, err) = site.run(&["search", "pool"]);
    assert_eq!(code, 4);
    assert!(err.contains("answered 500") && err.contains("with --offline the embedded model is used instead"), "{err}");
}

#[tokio::test]
async fn secrets_of_documents_and_queries_stay_on_the_machine() {
    let server = start(Words::default()).await;
    let site =
        Site::new(&format!("{}[redact]\nenabled = \"always\"\npatterns = [\"EMP-[0-9]+\"]\n", embedder(&server)));
    site.document("login.md", "# Login\n\nthe database wants password=hunter2, ask EMP-1734");
    assert_eq!(site.run(&["index"]).0, 0);
    site.search(&[], "login fails with token=a1b2c3d4");
    let sent = format!("{:?}", bodies(&server).await);
    assert!(sent.contains("password=[redacted:password]") && sent.contains("token=[redacted:token]"), "{sent}");
    assert!(["hunter2", "1734", "a1b2c3d4"].iter().all(|secret| !sent.contains(secret)), "{sent}");
}

#[tokio::test]
async fn a_pattern_that_is_none_is_bad_input() {
    let site = Site::new("[redact]\npatterns = [\"a(b\"]\n");
    let (code, _, err) = site.run(&["search", "pool"]);
    assert_eq!(code, 2);
    assert!(err.contains("redact.patterns: \"a(b\" cannot be used: unclosed group"), "{err}");
}

#[tokio::test]
async fn a_reranker_has_the_last_word_and_its_failure_is_told_once() {
    let server = start(Words::default()).await;
    // The certificate is what it finds, whatever is asked.
    let respond = |request: &Request| {
        let body: Value = request.body_json().unwrap();
        let documents = body["documents"].as_array().unwrap();
        let score = |document: &Value| if document.as_str().unwrap().contains("certificate") { 0.9 } else { 0.1 };
        let result = |(index, document)| json!({"index": index, "relevance_score": score(document)});
        let results: Vec<Value> = documents.iter().enumerate().map(result).collect();
        ResponseTemplate::new(200).set_body_json(json!({ "results": results }))
    };
    let rerank = format!("[knowledge.rerank]\nbase_url = \"{}/v1\"\nmodel = \"judge\"\n", server.uri());
    let site = Site::new(&format!("{}floor = -1.0\n{rerank}", embedder(&server)));
    assert_eq!(site.run(&["index", "-q"]).0, 0);
    Mock::given(path("/v1/rerank")).respond_with(respond).mount(&server).await;
    let found = site.search(&[], "connection pool exhausted");
    assert_eq!(found[0], ("cert.md".into(), vec!["vector".into(), "rerank".into()]));
    let asked = bodies(&server).await.pop().unwrap();
    assert_eq!(
        (&asked["model"], &asked["query"], &asked["top_n"]),
        (&json!("judge"), &json!("connection pool exhausted"), &json!(3))
    );
    assert_eq!(site.run(&["doctor"]).0, 0);

    server.reset().await;
    Mock::given(path("/v1/embeddings")).respond_with(Words::default()).mount(&server).await;
    Mock::given(path("/v1/rerank")).respond_with(ResponseTemplate::new(404)).mount(&server).await;
    let output = site.oncall(&["search", "-", "-k", "1"]).write_stdin("connection pool\nfull disk\n").output().unwrap();
    let (code, out, err) = said(&output);
    assert_eq!((code, out.matches("pool.md").count(), out.matches("disk.md").count()), (0, 1, 1), "{out}{err}");
    assert_eq!(err.matches("passages are not reranked").count(), 1, "{err}");
    assert!(err.contains("check [knowledge.rerank] base_url"), "{err}");
    let (code, out, _) = site.run(&["doctor", "--lang", "zh"]);
    assert!(code == 3 && out.contains("失败  rerank"), "{out}");
}
