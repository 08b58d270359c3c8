//! `get_current_time`: the clock of the investigation, which in an incident folder is not the wall's.
//!
//! In: nothing. Out: now in UTC and in the zone of the incident.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::Tool;
use super::arguments::{ToolClock, input_schema, outcome, parse_arguments};
use crate::domain::{Failure, Finding, Outcome, Output, Served, ToolSpec};

pub const NAME: &str = "get_current_time";

#[derive(Debug, Deserialize, JsonSchema)]
struct Arguments {}

/// The tool.
pub struct CurrentTime {
    spec: ToolSpec,
    clock: ToolClock,
}

impl CurrentTime {
    pub fn new(clock: ToolClock) -> Self {
        let spec = ToolSpec {
            name: NAME.to_owned(),
            description: "The present time of the investigation (of a recorded incident: its own), in UTC and in the \
                          local zone, and the window that other tools ask when a call names none."
                .to_owned(),
            input_schema: input_schema::<Arguments>(),
            server: "builtin".to_owned(),
            read_only: true,
        };
        Self { spec, clock }
    }

    fn answer(&self, arguments: Value) -> Result<Output, Failure> {
        let Arguments {} = parse_arguments(arguments)?;
        let local = self.clock.now.to_zoned_datetime(self.clock.zone.clone());
        let value = json!({
            "now": self.clock.now.to_string(),
            "local": local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            "weekday": local.strftime("%A").to_string(),
            "zone": self.clock.zone.iana_name().map_or_else(|| local.offset().to_string(), str::to_owned),
            "default_window": self.clock.window,
        });
        Ok(Output {
            source: "clock".to_owned(),
            window: None,
            findings: vec![Finding::Other { value }],
            notes: Vec::new(),
            truncated: false,
            served: Served::Live,
            asked: Vec::new(),
            retrieval: None,
        })
    }
}

#[async_trait]
impl Tool for CurrentTime {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value, _cancel: &CancellationToken) -> Outcome {
        outcome(self.answer(arguments))
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;
    use jiff::tz::TimeZone;

    use super::*;
    use crate::domain::Window;

    #[tokio::test]
    async fn the_time_is_the_incident_s_in_both_zones() {
        let now = "2026-03-04T06:45:00Z".parse().unwrap();
        let window = Window::ending_at(now, SignedDuration::from_mins(30));
        let clock = ToolClock { now, window, zone: TimeZone::get("Asia/Shanghai").unwrap() };
        let outcome = CurrentTime::new(clock).call(Value::Null, &CancellationToken::new()).await;
        let Outcome::Output(output) = outcome else { panic!("{outcome:?}") };
        let value = json!({
            "now": "2026-03-04T06:45:00Z",
            "local": "2026-03-04T14:45:00+08:00",
            "weekday": "Wednesday",
            "zone": "Asia/Shanghai",
            "default_window": {"start": "2026-03-04T06:15:00Z", "end": "2026-03-04T06:45:00Z"},
        });
        assert_eq!(output.findings, [Finding::Other { value }]);
    }
}
