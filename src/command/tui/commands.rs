//! The slash commands that need more than the screen.

use std::fmt::Write as _;
use std::path::Path;

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::Owner;
use crate::command::session::view::SHORT_ID;
use crate::command::{alert, firing, recording, session, world};
use crate::domain::text::{clean_line, counted};
use crate::domain::{Alert, AlertStatus, Feedback, Judgement, Lang};
use crate::reason::facts;
use crate::session::{Filter, SessionStore};
use crate::source::incident::Incident;
use crate::ui::tui::Msg;
use crate::ui::tui::state::slash::Command;
use crate::ui::tui::state::{Menu, MenuItem, Pick};

/// Sessions and alerts in a menu.
const LISTED: usize = 200;
const LABEL_CHARS: usize = 200;
/// Where Alertmanager answers with its alerts.
const ALERTS_PATH: &str = "/api/v2/alerts";

impl Owner {
    pub(super) async fn command(&mut self, command: Command) -> anyhow::Result<()> {
        match command {
            Command::Diagnose(place) => self.begin(move |job| job.diagnosis(place)),
            Command::Alerts(place) => self.alerts(place).await?,
            Command::Sessions => self.sessions().await?,
            Command::Resume(id) => self.resume(&id).await,
            Command::Tools => self.tools().await?,
            Command::Sources => self.sources(),
            Command::Model(Some(name)) => self.choose_model(&name),
            Command::Model(None) => self.models(),
            Command::Feedback { judgement, cause } => self.feedback(judgement, cause).await?,
            Command::Export(file) => self.export(file.as_deref()).await?,
        }
        Ok(())
    }

    fn lang(&self) -> Lang {
        self.context.lang.unwrap_or_default()
    }

    /// The alerts that fire at the configured Alertmanagers, or those at a place, to choose from.
    async fn alerts(&mut self, place: Option<String>) -> anyhow::Result<()> {
        self.listed = match place {
            None => firing::alerts(&[], &self.context).await?.into_iter().map(|(alert, _)| alert).collect(),
            Some(place) => {
                let is_bare = place.starts_with("http") && !place.contains("/api/");
                let place = if is_bare { format!("{}{ALERTS_PATH}", place.trim_end_matches('/')) } else { place };
                alert::read_as_configured(&place, &self.context).await?.alerts
            }
        };
        self.listed.retain(|alert| alert.status != AlertStatus::Resolved);
        self.listed.truncate(LISTED);
        let label = |alert: &Alert| {
            let severity = alert.severity.map_or_else(String::new, |severity| format!("{severity:?}").to_lowercase());
            let service = alert.service.as_deref().unwrap_or("-");
            let since = alert.starts_at.map_or_else(String::new, |at| at.strftime("%m-%d %H:%MZ").to_string());
            clean_line(&format!("{severity:<9} {:<32} {service:<24} {since}", alert.name), LABEL_CHARS)
        };
        let items = self.listed.iter().enumerate();
        let items: Vec<MenuItem> =
            items.map(|(n, alert)| MenuItem { label: label(alert), pick: Pick::Alert(n) }).collect();
        if items.is_empty() {
            self.tell(Msg::Said(self.lang().pick("nothing is firing", "当前没有告警").into()));
        } else {
            let title = self.lang().pick(counted(items.len(), "alert"), format!("{} 条告警", items.len()));
            self.tell(Msg::Choose(Menu { title, items, cursor: 0 }));
        }
        Ok(())
    }

    async fn sessions(&mut self) -> anyhow::Result<()> {
        let filter = Filter { limit: Some(LISTED), ..Filter::default() };
        let sessions = match session::open_existing(&self.context).await? {
            Some(store) => {
                let listed = store.list(&filter).await.map_err(session::trouble);
                store.close().await;
                listed?
            }
            None => Vec::new(),
        };
        let zone = TimeZone::system();
        let items: Vec<MenuItem> = sessions
            .iter()
            .map(|stored| {
                let at = stored.started_at.to_zoned_datetime(zone.clone()).strftime("%m-%d %H:%M").to_string();
                let cause = session::view::cause(stored).unwrap_or_default();
                let id: String = stored.id.chars().take(SHORT_ID).collect();
                let label = format!("{id}  {at}  {:<11} {}  {cause}", stored.status.id(), stored.title);
                MenuItem { label: clean_line(&label, LABEL_CHARS), pick: Pick::Resume(stored.id.clone()) }
            })
            .collect();
        if items.is_empty() {
            self.tell(Msg::Said(self.lang().pick("no session is stored yet", "尚无已保存的会话").into()));
        } else {
            let title = self.lang().pick("Sessions, the newest first", "会话（最新在前）").to_owned();
            self.tell(Msg::Choose(Menu { title, items, cursor: 0 }));
        }
        Ok(())
    }

    /// The tools that a run would have now.
    async fn tools(&mut self) -> anyhow::Result<()> {
        let incident = self.incident.as_deref().map(Incident::open).transpose()?;
        let zone = incident.as_ref().map_or_else(TimeZone::system, |incident| incident.zone.clone());
        let now = incident.as_ref().map_or_else(Timestamp::now, |incident| incident.now);
        let facts = facts::analyze(&[crate::agent::ask::question_alert("")], now);
        let world = world::build(incident.as_ref(), None, &facts, &zone, self.lang(), &self.context).await;
        let mut text = String::new();
        for spec in world.registry.specs() {
            let first = clean_line(spec.description.split(". ").next().unwrap_or_default(), LABEL_CHARS);
            let asks = world.registry.get(&spec.name).is_ok_and(|tool| tool.needs_consent());
            let writes = if asks { self.lang().pick(" (asks first)", "（需批准）") } else { "" };
            let _ = writeln!(text, "- `{}` [{}]{writes} {first}", spec.name, spec.server);
        }
        for absent in &world.absent {
            let _ = writeln!(text, "- {}: {}", absent.name, clean_line(&absent.detail, LABEL_CHARS));
        }
        world.fleet.close().await;
        self.tell(Msg::Said(text));
        Ok(())
    }

    fn sources(&self) {
        let lang = self.lang();
        let mut text = String::new();
        for source in self.last.iter().flat_map(|diagnosis| &diagnosis.sources) {
            let status = source.status.title(lang);
            let (name, detail) = (clean_line(&source.name, 80), clean_line(&source.detail, LABEL_CHARS));
            let _ = writeln!(text, "- **{name}**: {status} {detail}");
        }
        if text.is_empty() {
            for (name, source) in &self.context.config.sources {
                let _ = writeln!(
                    text,
                    "- **{name}**: {:?} {}",
                    source.kind(),
                    source.remote().map_or("", |remote| remote.url.as_str())
                );
            }
        }
        if text.is_empty() {
            text = lang
                .pick("no source is configured, and nothing was diagnosed", "未配置数据来源，也没有诊断记录")
                .into();
        }
        self.tell(Msg::Said(text));
    }

    fn models(&self) {
        let config = &self.context.config;
        let mut names: Vec<&str> = config.models.keys().map(String::as_str).collect();
        names.push("none");
        let items = names
            .into_iter()
            .map(|name| {
                let mark = if name == config.model { "* " } else { "  " };
                let model = config.models.get(name).and_then(|profile| profile.model.clone()).unwrap_or_default();
                MenuItem { label: format!("{mark}{name}  {model}"), pick: Pick::Model(name.to_owned()) }
            })
            .collect();
        let title = self.lang().pick("Model profiles", "模型配置").to_owned();
        self.tell(Msg::Choose(Menu { title, items, cursor: 0 }));
    }

    async fn feedback(&mut self, judgement: Judgement, cause: Option<String>) -> anyhow::Result<()> {
        let Some(id) = self.session_id.clone() else {
            anyhow::bail!(self.lang().pick("there is no session yet", "尚无会话"));
        };
        let Some(store) = session::open_existing(&self.context).await? else {
            anyhow::bail!(self.lang().pick("nothing is stored yet", "尚未保存任何内容"));
        };
        let redact = recording::redact(&self.context)?;
        let cause = cause.map(|text| (redact.text)(&text));
        let feedback = Feedback { judgement, cause, note: None, at: Timestamp::now() };
        let added = store.add_feedback(&id, &feedback).await.map_err(session::trouble);
        store.close().await;
        added?;
        self.tell(Msg::Said(self.lang().pick(format!("noted for {id}"), format!("已记录到 {id}"))));
        Ok(())
    }

    /// Writes the session as Markdown; a file that is there already stays as it is.
    async fn export(&mut self, file: Option<&str>) -> anyhow::Result<()> {
        let Some(id) = self.session_id.clone() else {
            anyhow::bail!(self.lang().pick("there is no session yet", "尚无会话"));
        };
        let record = session::read(&id, &self.context).await?;
        let text = session::export_markdown(&record, self.lang(), &TimeZone::system());
        let short: String = id.chars().take(SHORT_ID).collect();
        let name = file.map_or_else(|| format!("oncall-{short}.md"), str::to_owned);
        if Path::new(&name).exists() {
            anyhow::bail!(self.lang().pick(
                format!("{name} is there already: give another name, /export FILE"),
                format!("{name} 已存在：请指定其他文件名，/export FILE"),
            ));
        }
        session::write_out(&text, Some(Path::new(&name)), &self.context)?;
        self.tell(Msg::Said(self.lang().pick(format!("written to `{name}`"), format!("已写入 `{name}`"))));
        Ok(())
    }
}
