//! `oncall diagnose`: an alert and the evidence around it become a diagnosis.

use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use tokio_util::sync::CancellationToken;

use super::diagnosing::{self, Case, Diagnosing, Settings};
use super::models::BudgetArgs;
use super::screen::{self, ScreenArgs};
use super::world::{self, World};
use super::{BadInput, Context, Exit, Style, Verbosity, bad_input, firing, live};
use super::{record, recording};
use crate::alert;
use crate::domain::text::counted;
use crate::domain::{Alert, AlertBatch, AlertStatus, Diagnosis, RunStatus};
use crate::event::EventKind;
use crate::reason::facts;
use crate::source::incident::Incident;
use crate::ui::{JsonRenderer, PlainRenderer, Progress, Renderer};

#[derive(Debug, Args)]
pub struct DiagnoseArgs {
    /// The alert: a file, - for standard input, or a URL
    #[arg(long, value_name = "FILE|-|URL", required_unless_present_any = ["incident", "from_alertmanager"])]
    alert: Option<String>,
    /// List what fires at the configured Alertmanagers, and diagnose the group that is chosen (the first, where nobody
    /// can be asked)
    #[arg(long, conflicts_with_all = ["alert", "incident"])]
    from_alertmanager: bool,
    /// With --from-alertmanager: only alerts that match, such as 'severity="critical"'; may be given more than once
    #[arg(long, value_name = "MATCHER", requires = "from_alertmanager")]
    filter: Vec<String>,
    /// A folder that holds an alert and the evidence around it
    #[arg(long, value_name = "DIR")]
    incident: Option<PathBuf>,
    /// Diagnose the N-th alert of the payload alone (counted from 1, as `oncall alert show` lists them)
    #[arg(long, value_name = "N", value_parser = parse_position)]
    select: Option<usize>,
    /// With --json: print every event as a JSON line, as it happens; the last one holds the diagnosis
    #[arg(long)]
    events: bool,
    /// Keep the alert, the clock, the configuration and every exchange with tools and models in this folder, from which
    /// --incident diagnoses it again
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Refuse what earlier runs were told, where a source does not answer now
    #[arg(long)]
    no_stale: bool,
    #[command(flatten)]
    budget: BudgetArgs,
    #[command(flatten)]
    screen: ScreenArgs,
}

fn parse_position(text: &str) -> Result<usize, String> {
    let position = text.parse().ok().filter(|position| *position > 0);
    position.ok_or_else(|| "expected a number from 1 up, as `oncall alert show` lists the alerts".to_owned())
}

impl DiagnoseArgs {
    fn settings(&self) -> Settings<'_> {
        Settings { budget: &self.budget, record: self.record.as_deref(), refuses_stale: self.no_stale, steered: None }
    }
}

pub async fn run(args: DiagnoseArgs, context: &Context) -> anyhow::Result<Exit> {
    if args.events && !context.is_json() {
        return Err(BadInput("--events goes with --json".into()).into());
    }
    args.screen.check(context)?;
    let incident = open_incident(args.alert.as_deref(), args.incident.as_deref())?;
    let Some(mut alerts) = chosen_alerts(&args, incident.as_ref(), context).await? else { return Ok(Exit::Success) };
    let zone = incident.as_ref().map_or_else(TimeZone::system, |incident| incident.zone.clone());
    let now = incident.as_ref().map_or_else(Timestamp::now, |incident| incident.now);
    if incident.is_none() {
        live::add_expression(&mut alerts[0], context).await;
    }
    let mut facts = facts::analyze(&alerts, now);
    facts.lang = context.lang.unwrap_or(facts.lang);

    let cancel = CancellationToken::new();
    let interrupts = tokio::spawn(watch_interrupts(cancel.clone()));
    let mode = args.screen.mode(context);
    // With a screen somebody is there who can be asked.
    let context = &Context { attended: mode.is_some(), ..context.clone() };
    let world = world::build(incident.as_ref(), alerts.first(), &facts, &zone, facts.lang, context).await;
    let world = match &args.record {
        Some(dir) => record::begin(dir, &alerts, now, &zone, world, context)?,
        None => world,
    };
    let folder = incident.map(|incident| incident.folder);
    let case = Case { alerts, facts, zone, folder };
    if let Some(mode) = mode {
        // The screen watches signals by itself, and gives the terminal back first.
        interrupts.abort();
        let wanted = screen::Wanted { mode, theme: screen::theme(&args.screen.theme, context) };
        return screen::diagnose(case, world, args.settings(), wanted, context, cancel).await;
    }
    let diagnosis = diagnose(case, world, &args, context, cancel).await;
    interrupts.abort();
    Ok(exit_of(diagnosis?.status))
}

pub(super) fn exit_of(status: RunStatus) -> Exit {
    match status {
        RunStatus::Complete => Exit::Success,
        RunStatus::Incomplete => Exit::Incomplete,
        RunStatus::Cancelled => Exit::Interrupted,
    }
}

/// Ctrl-C, or a termination signal, once ends with the best so far; twice leaves at once.
pub(super) async fn watch_interrupts(cancel: CancellationToken) {
    recording::interrupted().await;
    cancel.cancel();
    recording::interrupted().await;
    std::process::exit(i32::from(Exit::Interrupted.code()));
}

/// `--incident`, or the alert's own folder when it holds an `incident.toml`.
pub(super) fn open_incident(alert: Option<&str>, incident: Option<&Path>) -> anyhow::Result<Option<Incident>> {
    let own_folder = || {
        let folder = Path::new(alert?).parent()?;
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        folder.join("incident.toml").is_file().then(|| folder.to_path_buf())
    };
    let Some(dir) = incident.map(Path::to_path_buf).or_else(own_folder) else { return Ok(None) };
    Incident::open(&dir).map(Some).map_err(bad_input)
}

/// The alerts to diagnose; `None` when nothing fires at the Alertmanagers, which is said.
async fn chosen_alerts(
    args: &DiagnoseArgs,
    incident: Option<&Incident>,
    context: &Context,
) -> anyhow::Result<Option<Vec<Alert>>> {
    if !args.from_alertmanager {
        let batch = read_batch(args.alert.as_deref(), incident, context).await?;
        return choose(&batch, args.select, context).map(Some);
    }
    let firing = firing::read(&args.filter, args.select, context).await?;
    if firing.batch.alerts.is_empty() {
        return Ok(None);
    }
    match firing.chosen {
        Some(chosen) => Ok(Some(chosen)),
        None => choose(&firing.batch, args.select, context).map(Some),
    }
}

/// The payload: `--alert`, else the incident's own.
pub(super) async fn read_batch(
    alert: Option<&str>,
    incident: Option<&Incident>,
    context: &Context,
) -> anyhow::Result<AlertBatch> {
    let place = match (alert, incident) {
        (Some(place), _) => place.to_owned(),
        (None, Some(incident)) if !incident.alert_path.is_file() => {
            let folder = incident.folder.display();
            return Err(BadInput(format!(
                "{folder} holds no alert.json: put the alert there, or give it with --alert"
            ))
            .into());
        }
        (None, Some(incident)) => incident.alert_path.display().to_string(),
        (None, None) => return Err(BadInput("no alert: give --alert or --incident".into()).into()),
    };
    super::alert::read_as_configured(&place, context).await
}

/// The alerts to diagnose together: the one selected alone, else the largest group of one root, firing ones first.
pub(super) fn choose(batch: &AlertBatch, select: Option<usize>, context: &Context) -> anyhow::Result<Vec<Alert>> {
    let count = batch.alerts.len();
    if let Some(n) = select {
        let alert = batch.alerts.get(n - 1);
        let held = counted(count, "alert");
        let alert = alert.ok_or_else(|| BadInput(format!("--select {n}: the payload holds {held}")))?;
        return Ok(vec![alert.clone()]);
    }
    let groups = alert::groups(&batch.alerts);
    let Some(first) = groups.first() else {
        return Err(BadInput("the payload holds no alert: nothing is firing".into()).into());
    };
    if groups.len() > 1 {
        let others = groups.len() - 1;
        context.note(&context.lang.unwrap_or_default().pick(
            format!(
                "{} of {}; diagnosing the first, {others} left (--select N picks one)",
                counted(count, "alert"),
                counted(groups.len(), "root")
            ),
            format!("共 {count} 条告警，{} 个根源；先诊断第一个，另有 {others} 个（用 --select N 选择）", groups.len()),
        ));
    }
    let alerts: Vec<Alert> = first.iter().map(|&i| batch.alerts[i].clone()).collect();
    if alerts.iter().all(|alert| alert.status == AlertStatus::Resolved) {
        context.note(context.lang.unwrap_or_default().pick("the alert is resolved already", "该告警已恢复"));
    }
    Ok(alerts)
}

/// Runs the agent while a front end follows its events.
async fn diagnose(
    case: Case,
    world: World,
    args: &DiagnoseArgs,
    context: &Context,
    cancel: CancellationToken,
) -> anyhow::Result<Diagnosis> {
    let mut renderer = renderer(args, context, &case);
    let settings = args.settings();
    let Diagnosing { mut events, run, mut recording, fleet, .. } =
        diagnosing::begin(case, world, settings, context, cancel)?;
    while let Some(event) = events.recv().await {
        recording.event(&event);
        if let (EventKind::Warning { message }, true) = (&event.kind, context.is_json() && !args.events) {
            context.warn(message);
        }
        renderer.event(&event)?;
    }
    let diagnosis = run.await?;
    renderer.finish(&diagnosis)?;
    recording.finish(context).await;
    fleet.close().await;
    Ok(diagnosis)
}

fn renderer(args: &DiagnoseArgs, context: &Context, case: &Case) -> Box<dyn Renderer> {
    if context.is_json() {
        let out = io::stdout();
        return if args.events { Box::new(JsonRenderer::events(out)) } else { Box::new(JsonRenderer::document(out)) };
    }
    let progress = match (context.verbosity, context.stderr) {
        (Verbosity::Quiet, _) => Progress::Silent,
        (_, Style::Colored) => Progress::Spinner,
        (_, Style::Plain) => Progress::Lines,
    };
    let columns = (context.stdout == Style::Colored).then(|| context.columns());
    Box::new(PlainRenderer::new(io::stdout(), io::stderr(), progress, case.facts.lang, case.zone.clone(), columns))
}
