//! `oncall session feedback`: what a person says of a diagnosis is stored, and what it teaches becomes a known incident of
//! the knowledge base, which later diagnoses of the same alert, or of one like it, are shown.

use clap::Args;
use jiff::Timestamp;

use super::{no_such, open_existing, resolve, trouble};
use crate::command::{Context, Exit, index, memory, recording};
use crate::domain::{Feedback, Judgement, Lang, SessionRecord};
use crate::knowledge::Use;
use crate::session::SessionStore;

#[derive(Debug, Args)]
pub(super) struct FeedbackArgs {
    /// An id, the beginning of one, or `last`
    id: String,
    /// The cause that was named is the cause
    #[arg(long, required_unless_present = "wrong", conflicts_with = "wrong")]
    right: bool,
    /// It is not
    #[arg(long)]
    wrong: bool,
    /// What the cause really was
    #[arg(long, value_name = "TEXT")]
    cause: Option<String>,
    /// What fixed it, or anything else worth keeping
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

pub(super) async fn run(args: FeedbackArgs, context: &Context) -> anyhow::Result<Exit> {
    let store = open_existing(context).await?.ok_or_else(|| no_such(&args.id, None))?;
    let id = resolve(&store, &args.id).await?;
    let redact = recording::redact(context)?;
    let feedback = Feedback {
        judgement: if args.right { Judgement::Right } else { Judgement::Wrong },
        cause: args.cause.map(|text| (redact.text)(&text)),
        note: args.note.map(|text| (redact.text)(&text)),
        at: Timestamp::now(),
    };
    store.add_feedback(&id, &feedback).await.map_err(trouble)?;
    let record = store.read(&id).await.map_err(trouble)?;
    store.close().await;
    let lang = context.lang.unwrap_or_default();
    context.note(&lang.pick(format!("noted for {id}"), format!("已记录到 {id}")));
    if let Some(record) = record
        && let Err(error) = learn(&record, lang, context).await
    {
        context.warn(&lang.pick(
            format!("similar alerts will not be shown this: {error:#}; give the feedback again to retry"),
            format!("相似告警暂时看不到这条经验：{error:#}；可再次提交反馈以重试"),
        ));
    }
    Ok(Exit::Success)
}

/// Keeps what the session taught, or takes back what it seemed to teach.
async fn learn(record: &SessionRecord, lang: Lang, context: &Context) -> anyhow::Result<()> {
    let lesson = memory::lesson(record);
    if lesson.is_none() && !record.feedback.iter().any(|earlier| earlier.judgement == Judgement::Right) {
        return Ok(());
    }
    let knowledge = index::open(context, Use::AsItIs).await?;
    match lesson {
        Some(incident) => {
            knowledge.remember(&incident).await?;
            context.note(lang.pick(
                "kept as a known incident: alerts like it will be shown its cause",
                "已记为已知故障：今后相似的告警会看到其原因",
            ));
        }
        None => knowledge.forget(&record.session.id).await?,
    }
    Ok(())
}
