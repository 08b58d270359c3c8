//! The variables of OpenTelemetry that name a receiver of traces
//! (<https://opentelemetry.io/docs/specs/otel/protocol/exporter/>).

use std::collections::BTreeMap;

use super::OtlpConfig;

const SERVICE_NAME: &str = "oncall";

/// What the variables say.
pub(super) fn receiver(variables: &BTreeMap<String, String>) -> OtlpConfig {
    let value = |name: &str| variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
    // The general address is a base for all kinds of telemetry, the special one is used as it stands.
    let general = value("OTEL_EXPORTER_OTLP_ENDPOINT").map(|base| format!("{}/v1/traces", base.trim_end_matches('/')));
    let endpoint = value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT").map(str::to_owned).or(general);
    let headers = value("OTEL_EXPORTER_OTLP_TRACES_HEADERS").or_else(|| value("OTEL_EXPORTER_OTLP_HEADERS"));
    OtlpConfig {
        endpoint,
        headers: headers.map(otlp_headers).unwrap_or_default(),
        service_name: value("OTEL_SERVICE_NAME").unwrap_or(SERVICE_NAME).to_owned(),
    }
}

/// `key=value,key=value`, as W3C baggage is written; values may be percent-encoded.
fn otlp_headers(text: &str) -> BTreeMap<String, String> {
    text.split(',')
        .filter_map(|pair| pair.split_once('='))
        .map(|(name, value)| (name.trim().to_owned(), decoded(value.trim())))
        .collect()
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(code) if bytes[at] == b'%' => {
                out.push(code);
                at += 3;
            }
            _ => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> OtlpConfig {
        receiver(&pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn the_variable_for_traces_beats_the_general_one() {
        let both =
            [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a:4318"), ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://b/t")];
        assert_eq!(of(&[]).endpoint, None);
        assert_eq!(of(&both[..1]).endpoint.as_deref(), Some("http://a:4318/v1/traces"));
        assert_eq!(of(&both).endpoint.as_deref(), Some("http://b/t"));
    }

    #[test]
    fn headers_and_the_name_of_the_service_are_read() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://a"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20eA==, x=1"),
            ("OTEL_SERVICE_NAME", "night-shift"),
        ];
        let headers = [("authorization".to_owned(), "Basic eA==".to_owned()), ("x".to_owned(), "1".to_owned())];
        let want = OtlpConfig {
            endpoint: Some("http://a/v1/traces".into()),
            headers: headers.into(),
            service_name: "night-shift".into(),
        };
        assert_eq!(of(&variables), want);
    }
}
