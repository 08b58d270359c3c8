//! The alert of a world, as one of the systems would send it.

use serde_json::{Map, Value, json};

use super::world::World;

#[derive(Clone, Copy, PartialEq)]
pub enum Shape {
    /// Alertmanager's webhook, version 4.
    Webhook,
    /// Alertmanager's `/api/v2/alerts`.
    Api,
    /// Prometheus' `/api/v1/alerts`.
    Prometheus,
    /// Grafana's unified alerting webhook.
    Grafana,
    /// PagerDuty's v3 webhook; only the title and the service's name say what it is about.
    Pagerduty,
    Opsgenie,
    /// A flat object of labels.
    Labels,
    /// Two lines of text.
    Text,
}

pub struct Alert {
    pub shape: Shape,
    pub name: &'static str,
    /// `service=cart,severity=critical`
    pub labels: &'static str,
    pub summary: &'static str,
    pub description: &'static str,
    pub expr: &'static str,
    /// When it fired, in minutes.
    pub at: f64,
}

impl Alert {
    pub fn new(shape: Shape, name: &'static str, labels: &'static str, at: f64) -> Alert {
        Alert { shape, name, labels, summary: "", description: "", expr: "", at }
    }

    pub fn text(self, summary: &'static str, description: &'static str) -> Alert {
        Alert { summary, description, ..self }
    }

    pub fn expr(self, expr: &'static str) -> Alert {
        Alert { expr, ..self }
    }

    /// The text of `alert.json`.
    pub fn payload(&self, world: &World) -> String {
        let at = world.time(self.at).to_string();
        let value = match self.shape {
            Shape::Webhook => self.webhook(&at),
            Shape::Grafana => self.grafana(&at),
            Shape::Api => {
                let state = json!({"state": "active", "silencedBy": [], "inhibitedBy": []});
                let mut alert = self.common(&at);
                alert["status"] = state;
                alert["receivers"] = json!([{"name": "default"}]);
                json!([alert])
            }
            Shape::Prometheus => json!({"status": "success", "data": {"alerts": [{
                "labels": self.labels(), "annotations": self.annotations(), "state": "firing", "activeAt": at, "value": "1e+00"}]}}),
            Shape::Pagerduty => self.pagerduty(&at),
            Shape::Opsgenie => {
                json!({"action": "Create", "integrationName": "prod", "source": {"name": "", "type": "API"},
                "alert": {"alertId": self.fingerprint(), "message": self.summary, "description": self.description, "alias": self.name,
                    "tags": ["prod"], "entity": self.about(), "priority": "P2", "createdAt": world.time(self.at).as_millisecond(),
                    "details": self.labels(), "source": "prometheus"}})
            }
            Shape::Labels => {
                let mut flat = self.labels();
                flat.insert("summary".to_string(), self.summary.into());
                flat.insert("startsAt".to_string(), at.into());
                Value::Object(flat)
            }
            Shape::Text => return format!("[FIRING] {}: {}\n{}\n{at}\n", self.name, self.summary, self.description),
        };
        format!("{value:#}\n")
    }

    fn labels(&self) -> Map<String, Value> {
        let pairs = self.labels.split(',').filter_map(|pair| pair.split_once('='));
        let mut labels: Map<String, Value> = pairs.map(|(name, value)| (name.to_string(), value.into())).collect();
        labels.insert("alertname".to_string(), self.name.into());
        labels
    }

    fn annotations(&self) -> Value {
        json!({"summary": self.summary, "description": self.description})
    }

    /// The first label that names something.
    fn about(&self) -> &str {
        self.labels.split(',').find_map(|pair| pair.split_once('=')).map_or(self.name, |(_, value)| value)
    }

    fn fingerprint(&self) -> String {
        let hash = self
            .name
            .bytes()
            .chain(self.labels.bytes())
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        format!("{hash:016x}")
    }

    fn common(&self, at: &str) -> Value {
        let encode = |byte| match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' | b'.' => char::from(byte).to_string(),
            b' ' => "+".to_string(),
            other => format!("%{other:02X}"),
        };
        let encoded: String = self.expr.bytes().map(encode).collect();
        json!({
            "status": "firing",
            "labels": self.labels(),
            "annotations": self.annotations(),
            "startsAt": at,
            "endsAt": "0001-01-01T00:00:00Z",
            "generatorURL": format!("http://prometheus:9090/graph?g0.expr={encoded}&g0.tab=1"),
            "fingerprint": self.fingerprint(),
        })
    }

    fn webhook(&self, at: &str) -> Value {
        json!({
            "version": "4", "groupKey": format!("{{}}:{{alertname={:?}}}", self.name), "truncatedAlerts": 0,
            "status": "firing", "receiver": "oncall", "groupLabels": {"alertname": self.name},
            "commonLabels": self.labels(), "commonAnnotations": self.annotations(),
            "externalURL": "http://alertmanager:9093", "alerts": [self.common(at)],
        })
    }

    fn grafana(&self, at: &str) -> Value {
        let mut value = self.webhook(at);
        value["version"] = json!("1");
        value["orgId"] = json!(1);
        value["title"] = json!(format!("[FIRING:1] {} ({})", self.name, self.about()));
        value["state"] = json!("alerting");
        value["message"] = json!(format!("**Firing**\n\n{}", self.description));
        let alert = &mut value["alerts"][0];
        alert["generatorURL"] = json!("http://grafana:3000/alerting/grafana/ce2fwbyk4x/view?orgId=1");
        alert["silenceURL"] = json!("http://grafana:3000/alerting/silence/new");
        alert["values"] = json!({"A": 1});
        alert["valueString"] = json!(format!("[ var='A' labels={{}} value=1 ] {}", self.expr));
        value
    }

    fn pagerduty(&self, at: &str) -> Value {
        let reference = json!({"id": "PX41KQ2", "type": "service_reference", "summary": self.about(),
            "self": "https://api.pagerduty.com/services/PX41KQ2", "html_url": null});
        json!({"event": {"id": "01CT6S0Y", "event_type": "incident.triggered", "resource_type": "incident", "occurred_at": at,
            "agent": null, "client": null, "data": {"id": "Q3NKZ", "type": "incident", "number": 77, "status": "triggered",
                "urgency": "high", "title": format!("[FIRING:1] {} {} - {}", self.name, self.about(), self.summary), "service": reference,
                "created_at": at, "priority": null, "body": {"type": "incident_body", "details": self.description}}}})
    }
}
