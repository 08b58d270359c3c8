//! `oncall eval`: diagnoses every incident that says what is right (`expected.toml`) and counts what was found.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use futures::StreamExt;

use super::models::BudgetArgs;
use super::{BadInput, Context, Exit, bad_input};
use crate::config::{Overrides, Surroundings};
use crate::source::incident::Expected;

mod junit;
mod run;
mod score;
mod view;

use score::Scored;

#[derive(Debug, Args)]
pub struct EvalArgs {
    /// Every incident folder below it that holds an expected.toml
    dir: PathBuf,
    /// Diagnose each incident so many times
    #[arg(short = 'n', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// Diagnose so many at once; without it, one for each processor
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: Option<u32>,
    /// Exit 3 when fewer than this part of the runs is right, from 0 to 1
    #[arg(long, default_value_t = 1.0, value_name = "PART", value_parser = parse_part)]
    threshold: f64,
    /// Compare these model profiles side by side, separated by commas ("none": the rules alone)
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    compare: Vec<String>,
    /// Write the results as JUnit XML too
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    #[command(flatten)]
    budget: BudgetArgs,
}

fn parse_part(text: &str) -> Result<f64, String> {
    let part = text.parse::<f64>().ok().filter(|part| (0.0..=1.0).contains(part));
    part.ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// An incident with its right answer.
#[derive(Debug, Clone)]
struct Case {
    /// Its folder below the one that was given.
    name: String,
    folder: PathBuf,
    expected: Expected,
}

pub async fn run(args: EvalArgs, context: &Context) -> anyhow::Result<Exit> {
    let cases = cases(&args.dir)?;
    let contexts = contexts(&args.compare, context)?;
    let jobs = args.jobs.map_or_else(processors, |jobs| jobs as usize);
    let budget = Arc::new(args.budget);
    let mut runs = Vec::new();
    for context in &contexts {
        for case in &cases {
            for _ in 0..args.repeat {
                runs.push((case.clone(), Arc::clone(context), Arc::clone(&budget)));
            }
        }
    }
    // The agent of each run is a task of its own.
    let started =
        runs.into_iter().map(|(case, context, budget)| async move { run::diagnose(&case, &context, &budget).await });
    // In the order of the cases, however the runs end.
    let results: Vec<anyhow::Result<Scored>> = futures::stream::iter(started).buffered(jobs).collect().await;
    let scored = results.into_iter().collect::<anyhow::Result<Vec<_>>>()?;

    let rows = score::rows(&scored);
    let text = match context.is_json() {
        true => format!("{:#}\n", view::json(&scored, args.threshold)),
        false => view::table(&rows, context.lang.unwrap_or_default()),
    };
    context.print(&text)?;
    if let Some(file) = &args.junit {
        super::session::write_out(&junit::report(&scored)?, Some(file), context)?;
    }
    let right = scored.iter().filter(|scored| scored.is_right()).count();
    let reached = right as f64 / scored.len() as f64;
    Ok(if reached >= args.threshold { Exit::Success } else { Exit::Incomplete })
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// The incidents with an `expected.toml` at or below a folder, by name.
///
/// # Errors
/// A folder that is not there or holds none, an `expected.toml` that cannot be read: exit 2.
fn cases(dir: &Path) -> anyhow::Result<Vec<Case>> {
    if !dir.is_dir() {
        return Err(bad_input(format!("{}: there is no such folder: expected incident folders", dir.display())));
    }
    let mut cases = Vec::new();
    for entry in ignore::WalkBuilder::new(dir).standard_filters(false).build() {
        let entry = entry.map_err(bad_input)?;
        let Some(folder) = entry.path().parent().filter(|_| entry.file_name() == "expected.toml") else { continue };
        let Some(expected) = Expected::read(folder).map_err(bad_input)? else { continue };
        let below = folder.strip_prefix(dir).unwrap_or(folder);
        let name = if below.as_os_str().is_empty() { folder } else { below };
        cases.push(Case { name: name.display().to_string(), folder: folder.to_path_buf(), expected });
    }
    if cases.is_empty() {
        let message = format!("{}: no expected.toml is in it: expected incident folders with one", dir.display());
        return Err(BadInput(message).into());
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(cases)
}

/// The configuration once for each profile that is compared; without any, the one in force.
///
/// # Errors
/// A profile that does not exist: exit 2.
fn contexts(compare: &[String], context: &Context) -> anyhow::Result<Vec<Arc<Context>>> {
    // Progress of several runs at once would be a muddle; warnings are told.
    let quiet = |context: Context| Arc::new(Context { verbosity: super::Verbosity::Quiet, ..context });
    if compare.is_empty() {
        return Ok(vec![quiet(context.clone())]);
    }
    let with = |name: &String| {
        let overrides = Overrides {
            file: context.config.file.clone(),
            data_dir: Some(context.config.data_dir.clone()),
            model: Some(name.clone()),
            offline: false,
        };
        let config = crate::config::load(&overrides, &Surroundings::of_process())?;
        Ok(quiet(Context { config, ..context.clone() }))
    };
    compare.iter().map(with).collect()
}
