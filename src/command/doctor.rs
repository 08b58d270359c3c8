//! `oncall doctor`: configuration, data folder, store, embedder, model and sources, one line each, with what to do.

use std::path::Path;
use std::time::Instant;

use clap::Args;
use serde::Serialize;
use serde_json::json;

use super::{Context, Exit, models, services};
use crate::config::{EmbedderConfig, EndpointConfig, ModelConfig, ModelProvider, RemoteEmbedderConfig};
use crate::domain::Lang;
use crate::domain::text::{clean_line, counted};
use crate::knowledge::{Embedder, TextRole, Use};
use crate::llm::{ChatModel, JsonMode, ModelError};

mod sources;

const DETAIL_CHARS: usize = 300;

#[derive(Debug, Args)]
pub struct DoctorArgs {}

/// How a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Health {
    Ok,
    /// Works, but not as somebody may expect.
    Note,
    Failed,
}

/// One line of the answer.
#[derive(Debug, Serialize)]
struct Check {
    name: String,
    health: Health,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &str, detail: impl Into<String>) -> Self {
        Self { name: name.into(), health: Health::Ok, detail: detail.into(), remedy: None }
    }

    fn note(name: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.into(), health: Health::Note, detail: detail.into(), remedy: Some(remedy.into()) }
    }

    fn failed(name: &str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name: name.into(), health: Health::Failed, detail: detail.into(), remedy: Some(remedy.into()) }
    }
}

pub async fn run(_args: DoctorArgs, context: &Context) -> anyhow::Result<Exit> {
    let lang = context.lang.unwrap_or_default();
    let mut checks = vec![config(context, lang), data_dir(&context.config.data_dir, lang)];
    checks.push(embedder(context, lang).await);
    checks.extend(reranker(context, lang).await);
    checks.push(store(context, lang).await);
    checks.extend(model_profiles(context, lang).await);
    checks.extend(sources::checks(context, lang).await);
    checks.extend(servers(context, lang).await);
    let failed = checks.iter().any(|check| check.health == Health::Failed);
    if context.is_json() {
        context.print(&format!("{}\n", json!({ "schema": "oncall.doctor/v1", "checks": checks })))?;
    } else {
        context.print(&render(&checks, lang))?;
    }
    Ok(if failed { Exit::Incomplete } else { Exit::Success })
}

fn render(checks: &[Check], lang: Lang) -> String {
    let width =
        checks.iter().map(|check| unicode_width::UnicodeWidthStr::width(check.name.as_str())).max().unwrap_or(0);
    let mut text = String::new();
    for check in checks {
        let health = match check.health {
            Health::Ok => lang.pick("ok  ", "正常"),
            Health::Note => lang.pick("note", "注意"),
            Health::Failed => lang.pick("FAIL", "失败"),
        };
        let padding = " ".repeat(width - unicode_width::UnicodeWidthStr::width(check.name.as_str()));
        text.push_str(&format!("{health}  {}{padding}  {}\n", check.name, clean_line(&check.detail, DETAIL_CHARS)));
        if let Some(remedy) = &check.remedy {
            text.push_str(&format!("      {}  -> {}\n", " ".repeat(width), clean_line(remedy, DETAIL_CHARS)));
        }
    }
    text
}

fn config(context: &Context, lang: Lang) -> Check {
    match &context.config.file {
        Some(file) => Check::ok("config", file.display().to_string()),
        None => Check::ok("config", lang.pick("no oncall.toml: defaults are in force", "没有 oncall.toml：使用默认值")),
    }
}

/// Writes and removes a file: rights, space and a read-only disk show at once.
fn data_dir(dir: &Path, lang: Lang) -> Check {
    let probe = dir.join(".doctor");
    let written = std::fs::create_dir_all(dir)
        .and_then(|()| std::fs::write(&probe, b"oncall"))
        .and_then(|()| std::fs::remove_file(&probe));
    match written {
        Ok(()) => Check::ok("data", dir.display().to_string()),
        Err(error) => Check::failed(
            "data",
            format!("{}: {error}", dir.display()),
            lang.pick("give a folder that you may write to: --data-dir DIR", "指定一个可写目录：--data-dir DIR"),
        ),
    }
}

async fn embedder(context: &Context, lang: Lang) -> Check {
    match &context.config.embedder {
        EmbedderConfig::Embedded => embedded_embedder().await,
        EmbedderConfig::Remote(remote) => remote_embedder(remote, context, lang).await,
    }
}

/// Embeds one text, as the service's key, address, model and dimension would all have to be right for.
async fn remote_embedder(remote: &RemoteEmbedderConfig, context: &Context, lang: Lang) -> Check {
    let remedy = lang.pick(
        "mend [embedder] in oncall.toml; until then --offline uses the embedded model",
        "修正 oncall.toml 中的 [embedder]；在此之前可用 --offline 改用内置模型",
    );
    let embedder = match services::remote_embedder(remote, context) {
        Ok(embedder) => embedder,
        Err(error) => return Check::failed("embedder", error.to_string(), remedy),
    };
    let started = Instant::now();
    match embedder.embed(TextRole::Query, &["connection pool exhausted".to_string()]).await {
        Ok(_) => {
            let (model, url) = (&remote.endpoint.model, &remote.endpoint.base_url);
            let (dimensions, latency) = (embedder.dimensions(), started.elapsed().as_millis());
            Check::ok(
                "embedder",
                lang.pick(
                    format!("{model} at {url}, {dimensions} dimensions, {latency} ms for a query"),
                    format!("{url} 的 {model}，{dimensions} 维，一次查询 {latency} 毫秒"),
                ),
            )
        }
        Err(error) => Check::failed("embedder", error.to_string(), remedy),
    }
}

async fn reranker(context: &Context, lang: Lang) -> Option<Check> {
    let configured = context.config.knowledge.rerank.as_ref()?;
    let remedy = lang.pick(
        "mend [knowledge.rerank] in oncall.toml; until then passages stay in their own order",
        "修正 oncall.toml 中的 [knowledge.rerank]；在此之前段落沿用原有次序",
    );
    let reranker = match services::reranker(configured, context) {
        Ok(reranker) => reranker,
        Err(error) => return Some(Check::failed("rerank", error.to_string(), remedy)),
    };
    let started = Instant::now();
    let (model, url) = (&configured.endpoint.model, &configured.endpoint.base_url);
    Some(match reranker.check().await {
        Ok(()) => Check::ok("rerank", format!("{model}, {url}, {} ms", started.elapsed().as_millis())),
        Err(error) => Check::failed("rerank", error.to_string(), remedy),
    })
}

async fn embedded_embedder() -> Check {
    let started = Instant::now();
    let loaded = tokio::task::spawn_blocking(crate::knowledge::embed::EmbeddedModel::shared).await;
    let model = match loaded {
        Ok(Ok(model)) => model,
        Ok(Err(error)) => return Check::failed("embedder", error.to_string(), REBUILD),
        Err(error) => return Check::failed("embedder", error.to_string(), REBUILD),
    };
    let loading = started.elapsed().as_millis();
    let query = vec!["connection pool exhausted".to_string()];
    match model.embed(TextRole::Query, &query).await {
        Ok(_) => Check::ok(
            "embedder",
            format!(
                "{}, {} dimensions, {loading} ms to load, {} ms for a query",
                model.id(),
                model.dimensions(),
                started.elapsed().as_millis() - loading
            ),
        ),
        Err(error) => Check::failed("embedder", error.to_string(), REBUILD),
    }
}

const REBUILD: &str = "the model is compiled in: build or install oncall again";

async fn store(context: &Context, lang: Lang) -> Check {
    let location = context.config.store_location();
    if !location.contains("://") && !Path::new(&location).exists() {
        return Check::note(
            "knowledge",
            lang.pick("nothing is indexed yet", "尚未建立索引"),
            lang.pick(
                "oncall index (ask and diagnose do it on first use)",
                "oncall index（ask 与 diagnose 首次使用时会自动执行）",
            ),
        );
    }
    let passages = async {
        let knowledge = super::index::open(context, Use::AsItIs).await?;
        anyhow::Ok(knowledge.passages().await?)
    };
    match passages.await {
        Ok(0) => Check::note("knowledge", location, lang.pick("it is empty: oncall index", "索引为空：oncall index")),
        Ok(count) => Check::ok(
            "knowledge",
            lang.pick(format!("{} in {location}", counted(count, "passage")), format!("{location} 中有 {count} 段")),
        ),
        Err(error) => {
            let is_remote = location.contains("://");
            let remedy = if is_remote { "[knowledge] store in oncall.toml" } else { "oncall index --rebuild" };
            Check::failed("knowledge", error.to_string(), remedy)
        }
    }
}

/// Every profile in use, by one real call each.
async fn model_profiles(context: &Context, lang: Lang) -> Vec<Check> {
    let Some(chosen) = &context.config.chosen else {
        return vec![Check::ok("model", lang.pick("none: the rules reasoner", "无：使用规则推理"))];
    };
    let mut profiles = vec![&chosen.planner, &chosen.executor, &chosen.synthesizer];
    profiles.dedup_by_key(|model| model.profile.clone());
    let mut checks = Vec::new();
    for model in profiles {
        checks.push(model_check(model, context, lang).await);
    }
    checks
}

async fn model_check(model: &ModelConfig, context: &Context, lang: Lang) -> Check {
    let name = format!("models.{}", model.profile);
    let remedy = lang.pick(
        format!("mend [{name}] in oncall.toml; until then --model none reasons by rules"),
        format!("修正 oncall.toml 中的 [{name}]；在此之前可用 --model none 以规则推理"),
    );
    let started = Instant::now();
    let probed = match &model.provider {
        ModelProvider::Replay(path) => match models::model(model, None) {
            Ok(_) => return Check::ok(&name, path.display().to_string()),
            Err(error) => return Check::failed(&name, error.to_string(), remedy),
        },
        ModelProvider::OpenAi(endpoint) => probe_open_ai(model, endpoint, lang).await,
        ModelProvider::Anthropic(_) => probe(model).await,
    };
    match probed {
        Ok(abilities) => {
            let (latency, called) = (started.elapsed().as_millis(), model.called());
            let redacts = models::redacts(model, context).unwrap_or(true);
            let redaction = match redacts {
                true => lang.pick("secrets are taken out", "密钥等敏感信息已脱敏"),
                false => lang.pick("sent as it is", "原样发送"),
            };
            Check::ok(&name, format!("{called}, {latency} ms; {abilities}; {redaction}"))
        }
        Err(error) => Check::failed(&name, error.to_string(), remedy),
    }
}

/// An answer of a given shape, and one with a tool at hand; what the endpoint refused shows in how it was asked at last.
async fn probe_open_ai(model: &ModelConfig, endpoint: &EndpointConfig, lang: Lang) -> Result<String, ModelError> {
    let client = models::open_ai(model, endpoint)?;
    client.answer(&models::shaped_probe(), &mut |_| {}).await?;
    client.answer(&models::tool_probe(), &mut |_| {}).await?;
    let wire = client.wire();
    let json = match wire.json {
        JsonMode::Schema => lang.pick("JSON by schema", "支持 JSON schema"),
        JsonMode::Object => lang.pick("JSON objects without a schema", "支持 JSON 对象，不支持 schema"),
        JsonMode::Instruction => lang.pick("JSON by instruction only", "只能以提示词要求 JSON"),
    };
    let tools = if wire.tools {
        lang.pick("tools", "支持工具调用")
    } else {
        lang.pick("no tools: they stand in the prompt", "不支持工具调用，写入提示词")
    };
    let stream = if wire.stream {
        lang.pick("streams", "支持流式")
    } else {
        lang.pick("does not stream", "不支持流式")
    };
    Ok(format!("{json}, {tools}, {stream}"))
}

async fn probe(model: &ModelConfig) -> Result<String, ModelError> {
    let client = models::model(model, None).map_err(|error| ModelError::Settings(error.to_string()))?;
    client.answer(&models::shaped_probe(), &mut |_| {}).await?;
    Ok("Messages".into())
}

/// Every MCP server, connected as in a run.
async fn servers(context: &Context, lang: Lang) -> Vec<Check> {
    let fleet = super::servers::connect(|_| true, context).await;
    let failed = fleet.failures.iter().map(|(name, error)| {
        Check::failed(
            &format!("mcp.{name}"),
            error.to_string(),
            lang.pick(
                format!("mend [mcp.{name}] in oncall.toml, or `oncall mcp remove {name}`; runs go on without it"),
                format!("修正 oncall.toml 中的 [mcp.{name}]，或执行 `oncall mcp remove {name}`；运行时会跳过它"),
            ),
        )
    });
    let connected = fleet.servers.iter().map(|server| {
        let about = server.about();
        let tools = server.offers().len();
        let (who, latency) = (about.server.as_deref().unwrap_or("-"), about.connected_in.as_millis());
        let tools = lang.pick(counted(tools, "tool"), format!("{tools} 个工具"));
        Check::ok(&format!("mcp.{}", server.name()), format!("{who}, {}, {latency} ms, {tools}", about.protocol))
    });
    let checks = failed.chain(connected).collect();
    fleet.close().await;
    checks
}
