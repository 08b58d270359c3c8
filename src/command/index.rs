//! `oncall index`: splits, embeds and stores documents.

use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;

use super::logbook::Logbook;
use super::{BadInput, Context, Exit, Style, Verbosity, services};
use crate::config::{EmbedderConfig, IndexKind as ConfiguredKind};
use crate::domain::Lang;
use crate::domain::text::{clean_line, counted};
use crate::knowledge::collect::collect;
use crate::knowledge::{
    ChunkLimits, IndexEvent, IndexKind, IndexMode, IndexReport, Knowledge, KnowledgeSettings, Origin, Trouble, Use,
    VectorIndex,
};

/// How often `--watch` looks for changes.
const WATCH_EVERY: Duration = Duration::from_secs(2);
/// Failures that are listed one by one; the rest is counted.
const LISTED_FAILURES: usize = 50;

#[derive(Debug, clap::Args)]
pub struct IndexArgs {
    /// Files and folders; without any: the configured paths, else ./docs-kb, else the runbooks that come with oncall
    #[arg(value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// Replace everything that is stored by these documents, in one step
    #[arg(long, conflicts_with_all = ["prune", "watch"])]
    pub rebuild: bool,
    /// Forget documents below the paths that are no longer there
    #[arg(long)]
    pub prune: bool,
    /// Go on and index again whenever a document changes, until interrupted
    #[arg(long)]
    pub watch: bool,
}

pub async fn run(args: IndexArgs, context: &Context) -> anyhow::Result<Exit> {
    for path in &args.paths {
        path.metadata().map_err(|error| {
            let expected = "expected a file or a folder of documents";
            BadInput(format!("cannot index {}: {error}; {expected}", path.display()))
        })?;
    }
    let use_as = if args.rebuild { Use::Rebuild } else { Use::AsItIs };
    let knowledge = open(context, use_as).await?;
    let origin = match args.paths.is_empty() {
        true => knowledge.default_origin(),
        false => Origin::Paths(args.paths.clone()),
    };
    let mode = match (args.rebuild, args.prune) {
        (true, _) => IndexMode::Rebuild,
        (_, true) => IndexMode::Prune,
        _ => IndexMode::Update,
    };
    // Before the first run, so that what changes during it is seen.
    let seen = if args.watch { look(&origin) } else { Looks::new() };
    let exit = index_once(&knowledge, &origin, mode, context).await?;
    if args.watch && exit != Exit::Interrupted {
        return watch(&knowledge, &origin, mode, seen, context).await;
    }
    Ok(exit)
}

async fn index_once(
    knowledge: &Knowledge,
    origin: &Origin,
    mode: IndexMode,
    context: &Context,
) -> anyhow::Result<Exit> {
    let mut progress = Progress::new(context);
    let report = {
        let _stopper = Stopper::new(knowledge, context);
        knowledge.index(origin, mode, &mut |event| progress.on_event(&event)).await?
    };
    progress.finish();
    let passages = knowledge.passages().await?;
    tell_troubles(&report, context);
    if progress.documents == 0 && report.failed.is_empty() {
        context.warn(&nothing_found(origin, lang(context)));
    }
    let text = match context.is_json() {
        true => format!("{:#}\n", report_json(&report, passages)),
        false => summary(&report, passages, lang(context)),
    };
    context.print(&text)?;
    if report.interrupted {
        context.note(&match mode {
            IndexMode::Rebuild => lang(context).pick(NOT_REBUILT.0, NOT_REBUILT.1).to_string(),
            _ => kept(knowledge, lang(context)).await?,
        });
        return Ok(Exit::Interrupted);
    }
    Ok(if report.failed.is_empty() { Exit::Success } else { Exit::Incomplete })
}

const NOT_REBUILT: (&str, &str) =
    ("interrupted: nothing was replaced, what was stored before stands", "已中断：未作替换，原有内容保持不变");

/// What an interrupted run left in the store.
async fn kept(knowledge: &Knowledge, lang: Lang) -> anyhow::Result<String> {
    let (documents, passages) = (knowledge.documents().await?, knowledge.passages().await?);
    let (stored, of_passages) = (counted(documents, "document"), counted(passages, "passage"));
    Ok(lang.pick(
        format!("interrupted: {stored} ({of_passages}) in the store; run the same command again to continue"),
        format!("已中断：已存储 {documents} 篇文档（{passages} 个片段）；再次运行同一命令即可继续"),
    ))
}

/// While it lives, Ctrl-C ends indexing with what is embedded by then, and a second one leaves at once.
struct Stopper(tokio::task::JoinHandle<()>);

impl Stopper {
    fn new(knowledge: &Knowledge, context: &Context) -> Self {
        let (stop, lang) = (knowledge.stop().clone(), lang(context));
        let is_quiet = context.verbosity == Verbosity::Quiet;
        Self(tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                stop.cancel();
                if !is_quiet {
                    let text = lang.pick(
                        "storing what is done; Ctrl-C again leaves at once",
                        "正在保存已完成的部分；再按 Ctrl-C 立即退出",
                    );
                    let _ = writeln!(std::io::stderr(), "{text}");
                }
            }
            if tokio::signal::ctrl_c().await.is_ok() {
                std::process::exit(i32::from(Exit::Interrupted.code()));
            }
        }))
    }
}

impl Drop for Stopper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// How documents look from outside: fingerprint and key of each.
type Looks = Vec<(Option<(u64, SystemTime)>, String)>;

fn look(origin: &Origin) -> Looks {
    collect(origin).files.into_iter().map(|file| (file.fingerprint(), file.key)).collect()
}

/// Indexes again whenever the documents look different from what was seen.
async fn watch(
    knowledge: &Knowledge,
    origin: &Origin,
    mode: IndexMode,
    mut seen: Looks,
    context: &Context,
) -> anyhow::Result<Exit> {
    context.note(lang(context).pick("watching for changes; Ctrl-C ends", "正在监视文档变化；按 Ctrl-C 结束"));
    loop {
        tokio::select! {
            interrupted = tokio::signal::ctrl_c() => {
                interrupted.context("cannot wait for Ctrl-C")?;
                return Ok(Exit::Interrupted);
            }
            () = tokio::time::sleep(WATCH_EVERY) => {}
        }
        let now = look(origin);
        if now != seen {
            if index_once(knowledge, origin, mode, context).await? == Exit::Interrupted {
                return Ok(Exit::Interrupted);
            }
            seen = now;
        }
    }
}

/// The knowledge base as configured. The embedded model loads while the store opens.
pub(super) async fn open(context: &Context, use_as: Use) -> anyhow::Result<Knowledge> {
    let configured = &context.config.knowledge;
    let settings = KnowledgeSettings {
        paths: configured.paths.clone(),
        store: context.config.store_location(),
        top_k: configured.top_k,
        chunk: ChunkLimits {
            size: configured.chunk.size,
            overlap: configured.chunk.overlap,
            min: configured.chunk.min,
        },
        index: VectorIndex {
            kind: match configured.index.kind {
                ConfiguredKind::Auto => IndexKind::Auto,
                ConfiguredKind::None => IndexKind::None,
                ConfiguredKind::IvfFlat => IndexKind::IvfFlat,
            },
            lists: configured.index.lists,
        },
    };
    let knowledge = match &context.config.embedder {
        EmbedderConfig::Embedded => Knowledge::open_embedded(settings, use_as).await?,
        EmbedderConfig::Remote(remote) => {
            Knowledge::open_remote(settings, services::remote_embedder(remote, context)?, use_as).await?
        }
    };
    Ok(match &configured.rerank {
        Some(rerank) => knowledge.with_reranker(services::reranker(rerank, context)?),
        None => knowledge,
    })
}

/// Takes in new and changed documents before an answer is looked for, and says so. What cannot be refreshed is used
/// as it is, when there is something.
pub(super) async fn refresh(knowledge: &Knowledge, context: &Context) -> anyhow::Result<()> {
    let mut progress = Progress::new(context);
    let stopper = Stopper::new(knowledge, context);
    let refreshed = knowledge.refresh(&mut |event| progress.on_event(&event)).await;
    drop(stopper);
    progress.finish();
    let lang = lang(context);
    match refreshed {
        Ok(Some(report)) => {
            tell_troubles(&report, context);
            let changed = report.added + report.replaced;
            if changed > 0 {
                context.note(&lang.pick(
                    format!("knowledge base: {} indexed", counted(changed, "document")),
                    format!("知识库：已索引 {changed} 篇文档"),
                ));
            }
        }
        Ok(None) => context.note(lang.pick(
            "knowledge base: another process is indexing; what is stored so far is used",
            "知识库：另一个进程正在建立索引，先使用已有内容",
        )),
        Err(error) if knowledge.is_empty().await? => return Err(error.into()),
        Err(error) => context.warn(&lang.pick(
            format!("the knowledge base is used as it is: {error}"),
            format!("知识库未能更新，按现状使用：{error}"),
        )),
    }
    Ok(())
}

fn lang(context: &Context) -> Lang {
    context.lang.unwrap_or_default()
}

fn tell_troubles(report: &IndexReport, context: &Context) {
    let lang = lang(context);
    let line = |trouble: &Trouble| format!("{}: {}", clean_line(&trouble.path, 300), clean_line(&trouble.why, 300));
    for trouble in &report.skipped {
        context.note(&lang.pick(format!("skipped {}", line(trouble)), format!("已跳过 {}", line(trouble))));
    }
    for trouble in report.failed.iter().take(LISTED_FAILURES) {
        context.warn(&lang.pick(format!("cannot index {}", line(trouble)), format!("无法索引 {}", line(trouble))));
    }
    let rest = report.failed.len().saturating_sub(LISTED_FAILURES);
    if rest > 0 {
        context.warn(&lang.pick(format!("and {} more", counted(rest, "failure")), format!("另有 {rest} 处失败")));
    }
}

fn nothing_found(origin: &Origin, lang: Lang) -> String {
    let places = match origin {
        Origin::BuiltIn => lang.pick("the built-in runbooks", "内置手册").to_string(),
        Origin::Paths(paths) => paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", "),
    };
    lang.pick(
        format!("no documents in {places}: expected files that end in .md, .txt, .rst or .adoc"),
        format!("{places} 中没有文档：需要以 .md、.txt、.rst 或 .adoc 结尾的文件"),
    )
}

fn summary(report: &IndexReport, passages: usize, lang: Lang) -> String {
    let IndexReport { added, replaced, unchanged, pruned, failed, skipped, .. } = report;
    let (failed, skipped) = (failed.len(), skipped.len());
    lang.pick(
        format!(
            "{added} added, {replaced} replaced, {unchanged} unchanged, {pruned} removed, {skipped} skipped, \
             {failed} failed; {} in all\n",
            counted(passages, "passage")
        ),
        format!(
            "新增 {added}，更新 {replaced}，未变 {unchanged}，移除 {pruned}，跳过 {skipped}，失败 {failed}；共 {passages} 个片段\n"
        ),
    )
}

fn report_json(report: &IndexReport, passages: usize) -> serde_json::Value {
    let troubles = |troubles: &[Trouble]| -> Vec<_> {
        troubles.iter().map(|trouble| json!({"path": trouble.path, "why": trouble.why})).collect()
    };
    json!({
        "schema": "oncall.index/v1",
        "added": report.added,
        "replaced": report.replaced,
        "unchanged": report.unchanged,
        "pruned": report.pruned,
        "skipped": troubles(&report.skipped),
        "failed": troubles(&report.failed),
        "embedded_passages": report.chunks,
        "passages": passages,
        "interrupted": report.interrupted,
    })
}

/// A bar on a terminal, nothing elsewhere.
struct Progress {
    bar: ProgressBar,
    lang: Lang,
    documents: usize,
    /// Off a terminal a line tells that work begins which may take minutes.
    announces: bool,
    logbook: Logbook,
}

impl Progress {
    fn new(context: &Context) -> Self {
        let shown = context.stderr == Style::Colored && context.verbosity > Verbosity::Quiet;
        let target = if shown { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        // The template is a constant of ours and holds no key that indicatif does not know.
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix} {pos}  {wide_msg}") {
            bar.set_style(style);
        }
        let announces = !shown && context.verbosity > Verbosity::Quiet;
        Self { bar, lang: context.lang.unwrap_or_default(), documents: 0, announces, logbook: context.logbook.clone() }
    }

    fn on_event(&mut self, event: &IndexEvent) {
        match event {
            IndexEvent::Waiting => {
                let waiting = "another process is indexing; waiting for it";
                self.bar.set_message(self.lang.pick(waiting, "另一个进程正在建立索引，等待中"));
                self.bar.tick();
            }
            IndexEvent::Found { documents, changed } => {
                self.documents = *documents;
                if self.announces && *changed > 0 {
                    let text = self.lang.pick(
                        format!("indexing {changed} of {}", counted(*documents, "document")),
                        format!("正在索引 {documents} 篇文档中的 {changed} 篇"),
                    );
                    self.logbook.line(&text);
                }
                self.bar.set_prefix(self.lang.pick("passages", "片段"));
            }
            IndexEvent::Embedded { source, chunks } => {
                self.bar.set_message(clean_line(source, 80));
                self.bar.set_position(*chunks as u64);
            }
            IndexEvent::Failed(_) | IndexEvent::Skipped(_) => {}
        }
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
