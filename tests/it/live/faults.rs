//! What can go wrong with a source: the others' evidence stays as it is, the strip says what happened, and the run ends in
//! time.

use std::io::Read;
use std::time::{Duration, Instant};

use oncall::source::unpack::unpack;
use serde_json::Value;

use super::{POOL, Setting, cause, strip};
use crate::program::root;
use crate::servers::http::{Reply, Served, nobody};

const LIST: &str = r#"{"status":"success","data":[]}"#;
const EMPTY: &str = r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#;

fn metrics(url: &str) -> String {
    format!("[sources.bad]\nkind = \"prometheus\"\nurl = \"{url}\"")
}

/// Sources beside some of the log lines of the example: all that are no routine, and a tenth of those.
fn beside_logs(sources: &str) -> Setting {
    let setting = Setting::with(&format!(
        "{sources}\n[sources.host]\nkind = \"files\"\ntimezone = \"Asia/Shanghai\"\npaths = [\"logs\"]\n"
    ));
    let to = setting.folder.path().join("logs/order-service");
    std::fs::create_dir_all(&to).unwrap();
    for entry in std::fs::read_dir(root().join("examples/order-service/logs/order-service")).unwrap().flatten() {
        let mut text = String::new();
        unpack(std::fs::File::open(entry.path()).unwrap()).unwrap().read_to_string(&mut text).unwrap();
        let kept = text.lines().enumerate().filter(|(number, line)| !line.contains("  INFO ") || number % 10 == 0);
        let kept: String = kept.map(|(_, line)| format!("{line}\n")).collect();
        let name = entry.file_name().into_string().unwrap();
        std::fs::write(to.join(name.trim_end_matches(".gz")), kept).unwrap();
    }
    setting
}

/// The document, and how long it took.
fn diagnose(setting: &Setting, more: &[&str]) -> (i32, Value, Duration) {
    // The alert of the committed example, whose time is over: the window is the same in every run.
    std::fs::copy(root().join("examples/order-service/alert.json"), setting.folder.path().join("alert.json")).unwrap();
    let started = Instant::now();
    let args = [&["diagnose", "--alert", "alert.json", "--json", "--quiet", "--lang", "en"][..], more].concat();
    let output = setting.output(&args, "10s");
    let took = started.elapsed();
    let document = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().unwrap(), document, took)
}

/// A call that a busy machine cut short stands in the strip by its tool's name, which is no matter here.
fn assert_has(document: &Value, entries: &[&str]) {
    let strip = strip(document);
    for entry in entries {
        assert!(strip.iter().any(|one| one == entry), "{entry} is not in {strip:?}");
    }
}

fn source<'d>(document: &'d Value, name: &str) -> &'d Value {
    document["sources"].as_array().unwrap().iter().find(|source| source["name"] == name).unwrap()
}

/// The fault's server with its address, or only an address; what the strip says of it, and a word of the detail.
fn faults() -> Vec<(&'static str, Option<Served>, String, &'static str, &'static str)> {
    let served = |name, status, word, reply: fn() -> Reply| {
        let server = Served::start(move |_| reply());
        let url = server.url();
        (name, Some(server), url, status, word)
    };
    let (self_signed, _) = Served::start_self_signed(|_| Reply::json(EMPTY));
    let self_signed_url = self_signed.url();
    vec![
        served("slow", "timeout", "no answer within 8 s", || Reply {
            pause: Duration::from_secs(30),
            ..Reply::json(EMPTY)
        }),
        ("down", None, nobody(), "error", "cannot reach"),
        served("401", "unauthorized", "check `auth`", || Reply::status(401, "who are you?")),
        served("403", "unauthorized", "answered 403: not for you", || Reply::status(403, "not for you\u{1b}[31m")),
        served("429", "error", "answered 429", || Reply::status(429, "slow down").header("retry-after", "120")),
        served("500", "error", "answered 500: oops", || Reply::status(500, "oops")),
        served("html", "error", "a page of HTML", || Reply::json("<html>please log in</html>")),
        served("cut", "error", "broke off", || Reply { cut_after: Some(20), ..Reply::json(EMPTY) }),
        ("self-signed", Some(self_signed), self_signed_url, "error", "certificate"),
        served("redirect", "error", "it redirects to http://login.example/x", || {
            Reply::status(302, "").header("location", "http://login.example/x?secret=1")
        }),
        served("huge", "error", "answered over 32 MiB", || Reply {
            times: 100,
            ..Reply::json("[\"".to_owned() + &"x".repeat(1 << 20))
        }),
    ]
}

#[test]
fn a_source_in_trouble_is_told_and_hides_no_other() {
    let server = Served::start(|asked| Reply::json(if asked.path() == "/api/v1/series" { LIST } else { EMPTY }));
    let (_, healthy, _) = diagnose(&beside_logs(&metrics(&server.url())), &[]);
    assert_eq!(strip(&healthy)[..2], ["bad empty", "host ok"]);
    let logs = |document: &Value| -> Vec<Value> {
        let evidence = document["evidence"].as_array().unwrap().iter();
        evidence.filter(|one| one["kind"] == "log").map(|one| one["data"].clone()).collect()
    };
    assert!(logs(&healthy).len() > 3);
    for (name, _server, url, status, word) in faults() {
        let (code, document, took) = diagnose(&beside_logs(&metrics(&url)), &[]);
        assert_eq!(logs(&document), logs(&healthy), "{name}");
        assert_eq!(cause(&document), POOL, "{name}");
        assert_eq!((code, document["status"].as_str()), (0, Some("complete")), "{name}: {}", document["status_reason"]);
        assert_has(&document, &[&format!("bad {status}"), "host ok"]);
        let detail = source(&document, "bad")["detail"].as_str().unwrap();
        assert!(detail.contains(word) && !detail.contains('\u{1b}') && !detail.contains("secret"), "{name}: {detail}");
        let unchecked = document["unchecked"].to_string();
        assert!(unchecked.contains("metrics could not be read"), "{name}: {unchecked}");
        assert!(took < Duration::from_secs(90), "{name}: {took:?}");
    }
}

/// The same faults of every other kind of source, all at once: each is told by its own name, and the lines of the host
/// are enough.
#[test]
fn every_kind_of_source_tells_its_trouble() {
    for (name, _server, url, status, word) in faults() {
        let kubeconfig = tempfile::tempdir().unwrap();
        let mut sources = super::kubernetes::table_of(kubeconfig.path(), &url, "");
        for kind in ["loki", "elasticsearch", "victorialogs"] {
            sources.push_str(&format!("[sources.{kind}]\nkind = \"{kind}\"\nurl = \"{url}\"\n"));
        }
        let (code, document, took) = diagnose(&beside_logs(&sources), &[]);
        assert_eq!((code, cause(&document)), (0, POOL), "{name}: {document:#}");
        assert_has(&document, &["host ok"]);
        for kind in ["cluster", "elasticsearch", "loki", "victorialogs"] {
            let report = source(&document, kind);
            let detail = report["detail"].as_str().unwrap();
            // Reading four answers without end may take longer than there is time.
            let is_late = name == "huge" && report["status"] == "timeout";
            assert!(is_late || report["status"] == status, "{name} {kind}: {report}");
            let remedy =
                if kind == "cluster" { word.replace("check `auth`", "check the user") } else { word.to_owned() };
            assert!(is_late || detail.contains(&remedy), "{name} {kind}: {detail}");
            assert!(!detail.contains('\u{1b}') && !detail.contains("secret"), "{name}: {detail}");
        }
        assert!(took < Duration::from_secs(90), "{name}: {took:?}");
    }
}

#[test]
fn a_certificate_can_be_vouched_for_or_not_looked_at() {
    let (server, pem) = Served::start_self_signed(|_| Reply::json(EMPTY));
    let url = server.url().replace("127.0.0.1", "localhost");
    for tls in ["ca_file = \"ca.pem\"", "insecure_skip_verify = true"] {
        let setting =
            Setting::with(&format!("[sources.prod]\nkind = \"prometheus\"\nurl = \"{url}\"\ntls = {{ {tls} }}\n"));
        std::fs::write(setting.folder.path().join("ca.pem"), &pem).unwrap();
        assert_eq!(setting.run(&["metrics", "up"]).1, "no data for up\n", "{tls}");
    }
    let broken = Setting::with(&format!(
        "[sources.prod]\nkind = \"prometheus\"\nurl = \"{url}\"\ntls = {{ ca_file = \"none.pem\" }}\n"
    ));
    let (_, _, err) = broken.run(&["metrics", "up"]);
    assert!(err.contains("sources.prod: ") && err.contains("none.pem: No such file"), "{err}");
}

#[test]
fn a_clock_that_is_off_is_told() {
    let hour_ahead = || {
        let at = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
        let text = jiff::fmt::strtime::format("%a, %d %b %Y %H:%M:%S GMT", at).unwrap();
        Reply::json(EMPTY).header("date", &text)
    };
    let server = Served::start(move |asked| match asked.path() {
        "/api/v1/series" => Reply { body: LIST.into(), ..hour_ahead() },
        _ => hour_ahead(),
    });
    let (code, document, _) = diagnose(&beside_logs(&metrics(&server.url())), &[]);
    assert_eq!(code, 0);
    let detail = source(&document, "bad")["detail"].as_str().unwrap();
    assert!(detail.contains("ahead of this machine's: its times may be off"), "{detail}");
}

#[test]
fn when_every_source_fails_a_human_is_needed() {
    let setting = Setting::with(&format!(
        "[sources.prod]\nkind = \"prometheus\"\nurl = \"{0}\"\n[sources.logs]\nkind = \"loki\"\nurl = \"{0}\"\n",
        nobody()
    ));
    let (code, document, _) = diagnose(&setting, &[]);
    assert_eq!((code, document["status"].as_str()), (3, Some("incomplete")));
    assert_eq!(document["status_reason"], "tool layer failing, a human is needed");
    assert_has(&document, &["logs error", "prod error"]);
}

#[test]
fn one_of_several_sources_of_a_kind_may_be_slow_or_down() {
    let slow = Served::start(|_| Reply { pause: Duration::from_secs(60), ..Reply::json(EMPTY) });
    let good = super::prometheus();
    let setting = Setting::with(&format!(
        "[sources.good]\nkind = \"prometheus\"\nurl = \"{}\"\n[sources.down]\nkind = \"prometheus\"\nurl = \"{}\"\n\
         [sources.slow]\nkind = \"prometheus\"\nurl = \"{}\"\n",
        good.url(),
        nobody(),
        slow.url()
    ));
    let (_folder, alert) = super::alert();
    let output = setting.output(&["diagnose", "--alert", &alert, "--json", "--quiet"], "20s");
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), cause(&document)), (Some(0), POOL));
    assert_has(&document, &["down error", "good ok", "slow timeout"]);
}

#[test]
fn what_a_source_said_before_stands_in_when_it_is_down() {
    let is_up = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(true));
    let up = std::sync::Arc::clone(&is_up);
    let server = Served::start(move |asked| {
        if !up.load(std::sync::atomic::Ordering::Relaxed) {
            return Reply::status(503, "gone");
        }
        match asked.path() {
            "/api/v1/query_range" => Reply::json(
                r#"{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"service":"order-service"},
                    "values":[[1772604000,"1"],[1772605000,"1"],[1772605800,"30"]]}]}}"#,
            ),
            "/api/v1/series" => Reply::json(r#"{"status":"success","data":[]}"#),
            _ => Reply::json(EMPTY),
        }
    });
    let setting = Setting::with(&format!("[sources.prod]\nkind = \"prometheus\"\nurl = \"{}\"\n", server.url()));
    let (_, first, _) = diagnose(&setting, &[]);
    assert_eq!(strip(&first)[0], "prod ok");
    is_up.store(false, std::sync::atomic::Ordering::Relaxed);
    let (code, document, _) = diagnose(&setting, &[]);
    assert_eq!((code, strip(&document)[0].as_str()), (0, "prod stale"));
    assert!(source(&document, "prod")["detail"].as_str().unwrap().ends_with(" s old"));
    assert!(document["evidence"].as_array().unwrap().iter().any(|one| one["stale_seconds"].is_number()));
    assert!(
        document["unchecked"].to_string().contains("prod did not answer: what it said"),
        "{}",
        document["unchecked"]
    );
    let (code, document, _) = diagnose(&setting, &["--no-stale"]);
    assert_eq!((code, strip(&document)[0].as_str()), (3, "prod error"));
}

/// The issue's own figure: sources that take 2.0, 2.5 and 3.0 s are asked at the same time, not one after another.
#[test]
fn slow_sources_are_waited_for_together() {
    let slow = |milliseconds: u64, other: &'static str| {
        Served::start(move |asked| {
            let body = match asked.path() {
                "/api/v1/query" | "/api/v1/query_range" => EMPTY,
                "/loki/api/v1/query_range" => r#"{"status":"success","data":{"resultType":"matrix","result":[]}}"#,
                "/loki/api/v1/labels" => r#"{"status":"success","data":["app"]}"#,
                path if path.ends_with("/values") => r#"{"status":"success","data":["order-service"]}"#,
                _ => other,
            };
            let is_slow = matches!(asked.path(), "/api/v1/series" | "/api/v1/pods") || asked.target.contains("sum%28");
            Reply { pause: Duration::from_millis(if is_slow { milliseconds } else { 0 }), ..Reply::json(body) }
        })
    };
    let nothing = r#"{"kind":"List","apiVersion":"v1","items":[]}"#;
    let (metrics, logs, cluster) = (slow(2000, LIST), slow(2500, LIST), slow(3000, nothing));
    let setting = Setting::with("");
    let table = super::kubernetes::table(setting.folder.path(), &cluster, "logs = false");
    std::fs::write(
        setting.folder.path().join("oncall.toml"),
        format!(
            "[sources.prod]\nkind = \"prometheus\"\nurl = \"{}\"\n[sources.logs]\nkind = \"loki\"\nurl = \"{}\"\n{table}",
            metrics.url(),
            logs.url()
        ),
    )
    .unwrap();
    std::fs::copy(root().join("examples/order-service/alert.json"), setting.folder.path().join("alert.json")).unwrap();
    let (code, out, err) = setting.run(&["diagnose", "--alert", "alert.json", "--json", "--quiet"]);
    assert_eq!(code, 0, "{err}");
    let document: Value = serde_json::from_str(&out).unwrap();
    let timings = document["timings"].as_array().unwrap();
    let parallel = timings.iter().find(|timing| timing["node"] == "parallel_query").unwrap();
    let milliseconds = parallel["milliseconds"].as_u64().unwrap();
    // One after another they take 7.5 s. A machine at rest does it in under 3.2 s; a busy one is given more.
    assert!((3000..6000).contains(&milliseconds), "parallel_query took {milliseconds} ms");
}
