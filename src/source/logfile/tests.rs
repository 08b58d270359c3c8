//! Whole events of real samples and of the usual formats.

use std::io::Cursor;

use proptest::prelude::*;

use super::*;
use crate::domain::Level;

/// The folder of the samples; `README.md` there says where they come from.
const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/logs");

fn options() -> ReadOptions {
    ReadOptions::new("2026-03-04T06:45:00Z".parse().unwrap(), TimeZone::UTC)
}

fn read_bytes(bytes: Vec<u8>, options: &ReadOptions) -> (Vec<LogEvent>, ReadReport) {
    let mut events = Vec::new();
    let report = read_from(Box::new(Cursor::new(bytes)), "a test", options, &mut |event| {
        events.push(event);
        ControlFlow::Continue(())
    });
    (events, report.unwrap())
}

fn read(text: &str) -> Vec<LogEvent> {
    read_bytes(text.into(), &options()).0
}

/// The events of a sample, and the notes.
fn sample(name: &str) -> (Vec<LogEvent>, Vec<String>) {
    let (events, report) = read_bytes(std::fs::read(format!("{SAMPLES}/{name}")).unwrap(), &options());
    (events, report.notes)
}

/// An event without service and instance on one line.
fn event(line: u64, at: &str, level: Option<Level>, message: &str) -> LogEvent {
    let at = (!at.is_empty()).then(|| at.parse().unwrap());
    LogEvent { at, level, service: None, instance: None, message: message.into(), line, lines: 1 }
}

fn from(service: &str, instance: &str, event: LogEvent) -> LogEvent {
    let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
    LogEvent { service: name(service), instance: name(instance), ..event }
}

const ERROR: Option<Level> = Some(Level::Error);
const WARN: Option<Level> = Some(Level::Warn);
const INFO: Option<Level> = Some(Level::Info);
const DEBUG: Option<Level> = Some(Level::Debug);
const ZONE_NOTE: &str = "time stamps without a zone were read as UTC";

#[test]
fn crlf_and_comma_millis_are_read() {
    let expected = vec![
        event(1, "2012-07-02T10:22:40.672Z", DEBUG, "foo bar baz"),
        event(2, "2014-10-08T16:56:38.344Z", WARN, "foo bar baz"),
    ];
    assert_eq!(sample("crlf_comma_millis.log"), (expected, vec![ZONE_NOTE.to_owned()]));
}

#[test]
fn an_epoch_in_milliseconds_is_a_stamp() {
    let expected = vec![
        event(1, "2015-04-10T02:58:07.123Z", None, "Hello, World!"),
        event(2, "2015-04-10T02:58:07.456Z", None, "Goodbye, World!"),
    ];
    assert_eq!(sample("epoch_ms_prefix.log"), (expected, Vec::new()));
}

#[test]
fn glog_takes_its_year_from_the_clock_and_says_so() {
    let (events, notes) = sample("glog_klog_no_year.log");
    let expected = vec![
        event(1, "2025-05-17T15:04:22.619632Z", ERROR, "Log every 3, iteration 19"),
        event(2, "2025-05-17T15:04:22.619642Z", INFO, "Log if every 1, iteration 19"),
        event(3, "2025-05-17T15:04:22.61974Z", INFO, "Log if every 1, iteration 20"),
        event(4, "2025-05-17T15:04:22.619751Z", WARN, "log_if this"),
        event(5, "2025-05-17T15:04:22.61976Z", INFO, "array"),
        event(6, "2025-05-17T15:04:22.619768Z", INFO, "const array"),
        event(7, "2025-05-17T15:04:22.619776Z", ERROR, "foo 1000 0000001000 3e8"),
    ];
    assert_eq!(events, expected);
    assert_eq!(notes[0], ZONE_NOTE);
    assert!(notes[1].starts_with("time stamps without a year were put into 2026"), "{notes:?}");
}

#[test]
fn pino_json_is_read_by_its_fields() {
    let expected = event(1, "2025-04-24T22:08:37.537Z", INFO, "Charge request received.");
    assert_eq!(sample("json_pino_epoch_ms_time.log"), (vec![from("payment", "7d82d3f28bad", expected)], Vec::new()));
}

#[test]
fn nested_messages_of_rust_tracing_are_found() {
    let yak = "hello! I'm gonna shave a yak";
    let expected = vec![
        event(1, "2025-10-28T19:15:10.821315Z", INFO, "preparing to shave yaks"),
        event(2, "2025-10-28T19:15:10.821422Z", INFO, "shaving yaks"),
        event(3, "2025-10-28T19:15:10.821495Z", Some(Level::Trace), yak),
        event(4, "2025-10-28T19:15:10.82161Z", WARN, yak),
        event(5, "2025-10-28T19:15:10.821723Z", ERROR, yak),
    ];
    assert_eq!(sample("json_rust_tracing_nested_message.log").0, expected);
}

#[test]
fn logfmt_keeps_quoted_text_and_the_error_beside_it() {
    let pod = "fe-inc-1-domain-c14-ns-6-5-656d9bb695-4584b";
    let failed = "Failed to DeletePod in the provider\nerror: pod inc-1-domain-c14-ns-6/fe-inc-1-domain-c14-ns-6-5-656d9bb695-4584b is not found: PodNotFound";
    let (events, _) = sample("logfmt_nested_quotes.log");
    assert_eq!(events.len(), 5);
    assert_eq!(events[1], from("", pod, event(2, "2021-09-15T21:17:11.674149Z", WARN, failed)));
    assert_eq!(
        events[2],
        from("", pod, event(3, "2021-09-15T21:17:11.678991Z", INFO, "DeletionGracePeriodSeconds set to 0"))
    );
    assert_eq!(events[3], from("", pod, event(4, "2021-09-15T21:17:11.679036Z", INFO, "Pod deleted")));
}

#[test]
fn the_statement_of_a_slow_query_belongs_to_its_header() {
    let (events, notes) = sample("mysql_slow_multiline.log");
    let message = "# User@Host: owncloud[owncloud] @ localhost []  Id:     2\n\
        # Schema: owncloud  Last_errno: 0  Killed: 0\n\
        # Query_time: 0.011853  Lock_time: 0.011542  Rows_sent: 268  Rows_examined: 268  Rows_affected: 0\n\
        # Bytes_sent: 10121\nuse owncloud;\nSET timestamp=1611704757;\nSELECT * FROM `oc_appconfig`;";
    assert_eq!(events[0], LogEvent { lines: 8, ..event(1, "2021-01-26T23:45:57.678222Z", None, message) });
    let places: Vec<(u64, u32)> = events.iter().map(|event| (event.line, event.lines)).collect();
    assert_eq!((places, notes), (vec![(1, 8), (9, 7), (16, 7)], Vec::new()));
}

#[test]
fn json_within_docker_json_speaks_for_itself() {
    let (events, notes) = sample("nezha_docker_json_in_json.log");
    let message = "TraceID: 0200bdc70f6f1617d57ca905bafceea2 SpanID: f8805773ecb2131c List products end";
    assert_eq!(events[0], event(1, "2022-08-23T13:28:19.49401478Z", INFO, message));
    let message = "TraceID: 0200bdc70f6f1617d57ca905bafceea2 SpanID: 4feda128e0bfa731 Get currency data successful";
    let currency = event(21, "2022-08-23T13:28:42.883633514Z", INFO, message);
    assert_eq!(events[20], from("currencyservice-server", "currencyservice-cf787dd48-vpjrd", currency));
    assert_eq!((events.len(), notes), (40, Vec::new()));
}

#[test]
fn syslog_fields_without_priority_are_told_from_text() {
    let (events, notes) = sample("rfc3339_mixed_zones.log");
    let cron = "(root) CMD (   /usr/bin/nice -n 10 /opt/acme/bin/mem_usage_monitor.py >/dev/null 2>&1)";
    let arp = "dynamic arp entry(28b18eb1-3575-4179-956b-aae009433d27, 10.12.160.4) is created";
    let host = "space01.global-acme.entp";
    assert_eq!(events[1], from("CRON", host, event(2, "2022-08-27T14:22:01.694554Z", None, cron)));
    assert_eq!(events[2], from("NSX", host, event(3, "2022-08-27T14:22:01.888Z", INFO, arp)));
    assert!(events[0].message.starts_with("keep-alive check received resp {'seq': 1017276"));
    assert_eq!((events.len(), notes), (3, Vec::new()));
}

/// A line with its time (UTC), level, service, instance and message.
type Case<'a> = (&'a str, &'a str, Option<Level>, &'a str, &'a str, &'a str);

#[test]
fn headers_of_many_loggers_are_read() {
    let cases: &[Case<'_>] = &[
        (
            "2024-01-02 03:04:05.678  INFO 12345 --- [           main] c.e.shop.OrderController : started in 3 s",
            "2024-01-02T03:04:05.678Z",
            INFO,
            "",
            "",
            "started in 3 s",
        ),
        (
            "2024-01-02T03:04:05.678+08:00 ERROR 12345 --- [order-service] [nio-8080-exec-1] o.a.c.c.C.[.[.[/].[dispatcherServlet] : it threw",
            "2024-01-01T19:04:05.678Z",
            ERROR,
            "",
            "",
            "it threw",
        ),
        (
            "2024-01-02 03:04:05,678 - my.module - WARNING - disk is filling",
            "2024-01-02T03:04:05.678Z",
            WARN,
            "",
            "",
            "disk is filling",
        ),
        (
            "03:04:05.678 [main] INFO  com.example.App - hello logback",
            "2026-03-04T03:04:05.678Z",
            INFO,
            "",
            "",
            "hello logback",
        ),
        (
            "2024-01-02 03:04:05,678 [http-nio-1] ERROR c.e.Foo - boom",
            "2024-01-02T03:04:05.678Z",
            ERROR,
            "",
            "",
            "boom",
        ),
        (
            "[2024-01-02T03:04:05,678][INFO ][o.e.n.Node               ] [node-1] started",
            "2024-01-02T03:04:05.678Z",
            INFO,
            "",
            "",
            "started",
        ),
        (
            "[2024-01-02 03:04:05.678][1][info][main] [source/server/server.cc:123] starting main dispatch loop",
            "2024-01-02T03:04:05.678Z",
            INFO,
            "",
            "",
            "starting main dispatch loop",
        ),
        (
            "2024/01/02 03:04:05 http: TLS handshake error from 10.0.0.1:123: EOF",
            "2024-01-02T03:04:05Z",
            None,
            "",
            "",
            "http: TLS handshake error from 10.0.0.1:123: EOF",
        ),
        (
            "2024-01-02T03:04:05.678Z\tINFO\tctrl\tmain.go:12\tstarted\t{\"port\": 80}",
            "2024-01-02T03:04:05.678Z",
            INFO,
            "",
            "",
            "started\t{\"port\": 80}",
        ),
        (
            "[2024-01-02 03:04:05 +0000] [1234] [INFO] Booting worker with pid: 1234",
            "2024-01-02T03:04:05Z",
            INFO,
            "",
            "",
            "Booting worker with pid: 1234",
        ),
        (
            "I, [2024-01-02T03:04:05.678901 #1234]  INFO -- : Started GET",
            "2024-01-02T03:04:05.678901Z",
            INFO,
            "",
            "",
            "Started GET",
        ),
        (
            "2024-01-02 03:04:05.678 UTC [1234] ERROR:  deadlock detected",
            "2024-01-02T03:04:05.678Z",
            ERROR,
            "",
            "",
            "deadlock detected",
        ),
        (
            "2024-01-02T03:04:05.678901Z 0 [Warning] [MY-010068] [Server] CA certificate is self signed.",
            "2024-01-02T03:04:05.678901Z",
            WARN,
            "",
            "",
            "CA certificate is self signed.",
        ),
        ("2024-01-02 03:04:05 42 connections open", "2024-01-02T03:04:05Z", None, "", "", "42 connections open"),
        (
            "[Sun Dec 04 04:47:44 2005] [notice] workerEnv.init() ok /etc/workers2.properties",
            "2005-12-04T04:47:44Z",
            INFO,
            "",
            "",
            "workerEnv.init() ok /etc/workers2.properties",
        ),
        (
            "2024/01/02 03:04:05 [error] 1234#1234: *5 connect() failed (111: Connection refused)",
            "2024-01-02T03:04:05Z",
            ERROR,
            "",
            "",
            "connect() failed (111: Connection refused)",
        ),
        (
            "203.0.113.9 - frank [10/Oct/2000:13:55:36 -0700] \"GET /a?b=1 HTTP/1.1\" 502 2326 \"-\" \"curl/8\"",
            "2000-10-10T20:55:36Z",
            ERROR,
            "",
            "",
            "203.0.113.9 \"GET /a?b=1 HTTP/1.1\" 502 2326 \"-\" \"curl/8\"",
        ),
        (
            "<34>1 2003-10-11T22:14:15.003Z mymachine su 12 ID47 - 'su root' failed",
            "2003-10-11T22:14:15.003Z",
            Some(Level::Fatal),
            "su",
            "mymachine",
            "'su root' failed",
        ),
        (
            "<165>1 2003-10-11T22:14:15.003Z host evntslog 12 ID47 [a@32473 iut=\"3\" source=\"App]\"] An event",
            "2003-10-11T22:14:15.003Z",
            INFO,
            "evntslog",
            "host",
            "An event",
        ),
        (
            "<34>Oct 11 22:14:15 mymachine su[12]: 'su root' failed",
            "2025-10-11T22:14:15Z",
            Some(Level::Fatal),
            "su",
            "mymachine",
            "'su root' failed",
        ),
        (
            "Jul  1 09:00:55 host sshd(pam_unix)[19939]: check pass; user unknown",
            "2025-07-01T09:00:55Z",
            None,
            "sshd",
            "host",
            "check pass; user unknown",
        ),
        (
            "2024-01-02T03:04:05+0800 web-1 nginx[12]: something",
            "2024-01-01T19:04:05Z",
            None,
            "nginx",
            "web-1",
            "something",
        ),
        (
            "I0102 03:04:05.678901       1 controller.go:116] \"Starting\" worker=3",
            "2026-01-02T03:04:05.678901Z",
            INFO,
            "",
            "",
            "\"Starting\" worker=3",
        ),
        ("2024-01-02T03:04:05.678901234Z stdout F hello", "2024-01-02T03:04:05.678901234Z", None, "", "", "hello"),
        (
            "03-02 16:13:38.811  1702  2395 W ActivityManager: slow operation",
            "2026-03-02T16:13:38.811Z",
            WARN,
            "",
            "",
            "slow operation",
        ),
        (
            "20171223-22:15:29:606|Step_LSC|30002312|onStandStepChanged 3579",
            "2017-12-23T22:15:29.606Z",
            None,
            "",
            "",
            "onStandStepChanged 3579",
        ),
        (
            "- 1117838570 2005.06.03 R02-M1 2005-06-03-15.42.50.363779 R02-M1 RAS KERNEL INFO parity error corrected",
            "2005-06-03T22:42:50Z",
            INFO,
            "",
            "R02-M1",
            "parity error corrected",
        ),
        (
            "\u{1b}[32m2024-01-02T03:04:05Z\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m boom",
            "2024-01-02T03:04:05Z",
            ERROR,
            "",
            "",
            "boom",
        ),
        (
            "{\"t\":{\"$date\":\"2020-05-01T15:16:17.180+00:00\"},\"s\":\"E\",\"c\":\"NETWORK\",\"ctx\":\"l\",\"msg\":\"Listening\"}",
            "2020-05-01T15:16:17.18Z",
            ERROR,
            "",
            "",
            "Listening",
        ),
        (
            "{\"name\":\"myapp\",\"hostname\":\"banana\",\"pid\":1,\"level\":50,\"msg\":\"hi\",\"time\":\"2013-01-04T18:46:23.851Z\",\"v\":0}",
            "2013-01-04T18:46:23.851Z",
            ERROR,
            "myapp",
            "banana",
            "hi",
        ),
        (
            "{\"__REALTIME_TIMESTAMP\":\"1423944916375353\",\"PRIORITY\":\"3\",\"_HOSTNAME\":\"h1\",\"SYSLOG_IDENTIFIER\":\"foo\",\"MESSAGE\":\"oops\"}",
            "2015-02-14T20:15:16.375353Z",
            ERROR,
            "foo",
            "h1",
            "oops",
        ),
        (
            "{\"@timestamp\":\"2024-01-02T03:04:05Z\",\"log.level\":\"WARN\",\"message\":\"x\",\"kubernetes\":{\"labels\":{\"app\":\"cart\"},\"pod_name\":\"cart-1\"}}",
            "2024-01-02T03:04:05Z",
            WARN,
            "cart",
            "cart-1",
            "x",
        ),
    ];
    for (line, at, level, service, instance, message) in cases {
        assert_eq!(read(line), [from(service, instance, event(1, at, *level, message))], "{line}");
    }
}

#[test]
fn a_stack_trace_joins_its_message() {
    let text = "2024-01-02T03:04:05Z ERROR [main] c.e.A - failed\njava.lang.IllegalStateException: pool exhausted\n\tat c.e.A.b(A.java:12)\nCaused by: java.sql.SQLException: gone\n\t... 12 more\n2024-01-02T03:04:06Z INFO [main] c.e.A - next\n";
    let message = "failed\njava.lang.IllegalStateException: pool exhausted\n\tat c.e.A.b(A.java:12)\nCaused by: java.sql.SQLException: gone\n\t... 12 more";
    let trace = LogEvent { lines: 5, ..event(1, "2024-01-02T03:04:05Z", ERROR, message) };
    assert_eq!(read(text), [trace, event(6, "2024-01-02T03:04:06Z", INFO, "next")]);
}

#[test]
fn lines_without_any_time_stand_for_themselves() {
    let text = "ERROR: no space left\nplain\n  indented\nWARNING:root:careful\n";
    let plain = LogEvent { lines: 2, ..event(2, "", None, "plain\n  indented") };
    assert_eq!(
        read(text),
        [event(1, "", ERROR, "ERROR: no space left"), plain, event(4, "", WARN, "WARNING:root:careful")]
    );
}

#[test]
fn pieces_that_a_runtime_cut_are_put_together() {
    let cri =
        "2024-01-02T03:04:05Z stderr P {\"level\":\"error\",\n2024-01-02T03:04:05.5Z stderr F \"msg\":\"joined\"}\n";
    let joined = LogEvent { lines: 2, ..event(1, "2024-01-02T03:04:05Z", ERROR, "joined") };
    assert_eq!(read(cri), std::slice::from_ref(&joined));
    let docker = "{\"log\":\"{\\\"level\\\":\\\"error\\\",\",\"stream\":\"stderr\",\"time\":\"2024-01-02T03:04:05Z\"}\n{\"log\":\"\\\"msg\\\":\\\"joined\\\"}\\n\",\"stream\":\"stderr\",\"time\":\"2024-01-02T03:04:05.5Z\"}\n";
    assert_eq!(read(docker), [joined]);
}

#[test]
fn journal_export_records_end_with_a_blank_line() {
    let text = "__CURSOR=s=1;i=2\n__REALTIME_TIMESTAMP=1423944916375353\nPRIORITY=4\n_HOSTNAME=h1\n_SYSTEMD_UNIT=foo.service\nMESSAGE=low disk\n\n__CURSOR=s=1;i=3\n__REALTIME_TIMESTAMP=1423944917375353\nPRIORITY=6\nMESSAGE=ok\n";
    let first = LogEvent { lines: 7, ..event(1, "2015-02-14T20:15:16.375353Z", WARN, "low disk") };
    let second = LogEvent { lines: 4, ..event(8, "2015-02-14T20:15:17.375353Z", INFO, "ok") };
    assert_eq!(read(text), [from("foo", "h1", first), second]);
}

#[test]
fn the_hints_of_a_place_fill_what_a_line_leaves_open() {
    let options = ReadOptions { service: Some("order".into()), instance: Some("order-1".into()), ..options() };
    let (events, _) = read_bytes(
        b"2024-01-02T03:04:05Z a\n{\"time\":\"2024-01-02T03:04:05Z\",\"msg\":\"b\",\"service\":\"cart\"}".to_vec(),
        &options,
    );
    let names: Vec<_> = events.iter().map(|event| (event.service.as_deref(), event.instance.as_deref())).collect();
    assert_eq!(names, [(Some("order"), Some("order-1")), (Some("cart"), Some("order-1"))]);
}

#[test]
fn an_endless_event_is_cut_and_said_so() {
    let mut text = String::from("2024-01-02T03:04:05Z start\n");
    for _ in 0..3000 {
        text.push_str(&format!("\t{}\n", "x".repeat(100)));
    }
    let (events, report) = read_bytes(text.into(), &options());
    assert_eq!((events.len(), events[0].lines), (1, 3001));
    assert!(events[0].message.len() <= 64 * 1024);
    assert_eq!(report.notes, ["events cut because their continuation lines are too long: 1"]);
}

#[test]
fn a_truncated_archive_gives_what_it_holds() {
    let mut text = Vec::new();
    for second in 0..20_000u32 {
        text.extend(
            format!("2024-01-02T03:04:05Z number {} {}\n", second, second.wrapping_mul(2_654_435_761)).into_bytes(),
        );
    }
    let mut packed = zstd::encode_all(text.as_slice(), 1).unwrap();
    packed.truncate(packed.len() / 2);
    let (events, report) = read_bytes(packed, &options());
    assert!(events.len() > 1000, "{}", events.len());
    let broken = report.broken.unwrap();
    let expected =
        format!("reading broke off after line {}: the zstd archive is damaged or cut off at byte ", report.lines);
    assert!(broken.starts_with(&expected) && broken.ends_with("; what came before is used"), "{broken}");
}

#[test]
fn an_archive_that_gives_nothing_is_named_as_damaged() {
    let packed = [&[0x28, 0xb5, 0x2f, 0xfd], [0xff; 40].as_slice()].concat();
    let result = read_from(Box::new(Cursor::new(packed)), "a.log.zst", &options(), &mut |_| ControlFlow::Continue(()));
    let error = result.unwrap_err().to_string();
    assert!(error.starts_with("skipped a.log.zst: the zstd archive is damaged or cut off at byte "), "{error}");
    assert!(error.ends_with("copy it again, or unpack what can be saved of it"), "{error}");
}

#[test]
fn a_date_that_does_not_exist_begins_an_event_without_a_time() {
    let text = "2026-03-04T06:00:00Z ERROR a\n2026-02-30T06:00:01Z ERROR b\n\tat x\n2026-03-04 25:00:00 WARN c\n\
                9999-12-31T23:59:59Z INFO d\n0000-00-00 00:00:00 e\n{\"time\":\"2026-13-01T06:00:00Z\",\"msg\":\"f\"}\n\
                2026-03-04T06:00:01Z INFO g\n";
    let (events, report) = read_bytes(text.into(), &options());
    let expected = [
        event(1, "2026-03-04T06:00:00Z", ERROR, "a"),
        LogEvent { lines: 2, ..event(2, "", ERROR, "b\n\tat x") },
        event(4, "", WARN, "c"),
        event(5, "", INFO, "d"),
        event(6, "", None, "e"),
        event(7, "", None, "f"),
        event(8, "2026-03-04T06:00:01Z", INFO, "g"),
    ];
    assert_eq!(events, expected);
    assert_eq!(
        report.notes,
        ["events without a time: 5 of 7", "events of a date or time that does not exist, kept without a time: 5"]
    );
    assert_eq!(read("2026-13-01T06:00:00Z stdout F h"), [event(1, "", None, "h")]);
}

#[test]
fn holes_of_nul_bytes_are_noted() {
    let text = [b"2026-03-04T06:00:00Z ERROR a\n".as_slice(), &[0; 5000], b"2026-03-04T06:00:01Z INFO b\n"].concat();
    let (events, report) = read_bytes(text, &options());
    assert_eq!(events, [event(1, "2026-03-04T06:00:00Z", ERROR, "a"), event(2, "2026-03-04T06:00:01Z", INFO, "b")]);
    assert_eq!(report.notes, ["NUL bytes dropped (a torn write, or a hole in a sparse file): 5000"]);
}

#[test]
fn the_console_logger_of_dotnet_names_its_levels_in_four_letters() {
    let levels = |text: &str| read(text).iter().map(|event| event.level).collect::<Vec<_>>();
    let text = "fail: Shop.Orders[13]\n      Timed out\ncrit: Shop[0]\n      x\nwarn: Shop[0]\n      x\ninfo: Shop[14]\n      \
                x\ndbug: Shop[0]\n      x\ntrce: Shop[0]\n      x\n";
    let expected = [ERROR, Some(Level::Fatal), WARN, INFO, DEBUG, Some(Level::Trace)];
    assert_eq!(levels(text), expected);
    let stamped: String = text
        .lines()
        .map(|line| if line.starts_with(' ') { format!("{line}\n") } else { format!("2026-03-04 06:00:00 {line}\n") })
        .collect();
    assert_eq!(levels(&stamped), expected);
    // A sentence that begins with the word is no level.
    assert_eq!(
        read("2026-03-04T06:00:00Z Fail to connect"),
        [event(1, "2026-03-04T06:00:00Z", None, "Fail to connect")]
    );
}

#[test]
fn redis_writes_its_level_as_a_mark() {
    let text = "1:M 04 Mar 2026 06:00:00.123 * Ready\n1:S 04 Mar 2026 06:00:01.000 # Connection lost\n\
                7:C 04 Mar 2026 06:00:02.000 - Accepted\n7:X 04 Mar 2026 06:00:03.000 . 0 clients\n\
                [4018] 04 Mar 06:00:04.000 # Old\n";
    assert_eq!(
        read(text),
        [
            event(1, "2026-03-04T06:00:00.123Z", INFO, "Ready"),
            event(2, "2026-03-04T06:00:01Z", WARN, "Connection lost"),
            event(3, "2026-03-04T06:00:02Z", DEBUG, "Accepted"),
            event(4, "2026-03-04T06:00:03Z", DEBUG, "0 clients"),
            event(5, "2026-03-04T06:00:04Z", WARN, "Old"),
        ]
    );
}

#[test]
fn binary_files_are_named() {
    let result = read_from(Box::new(Cursor::new(b"\x7fELF\0\0\0".to_vec())), "core.1", &options(), &mut |_| {
        ControlFlow::Continue(())
    });
    assert_eq!(
        result.unwrap_err().to_string(),
        "skipped core.1: it is binary, not text; give a text log, or one packed with gzip or zstd"
    );
}

/// A line of any of the formats, or rubbish.
fn any_line() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,60}",
        "\\PC{0,40}",
        "2024-01-0[1-9][T ]03:04:0[0-9](\\.[0-9]{1,9})?(Z|\\+08:00)? (INFO|error|\\[[a-z:@= ]{0,9}\\]|[0-9]{1,6})? ?[ -~]{0,30}",
        "<[0-9]{1,3}>(1 )?[ -~]{0,40}",
        "\\{\"(log|msg|time|level)\":(\"[a-z\\\\\"{}]{0,10}\"|[0-9]{1,20})[,}]?[ -~]{0,20}",
        "(time|level|msg|a)=(\"[ -~]{0,9}\"?|[a-z0-9]{0,5})( [a-z]=[ -~]{0,5}){0,3}",
        "[IWEF][0-9]{4} [0-9:.]{5,15} +[0-9]+ [a-z.:0-9\\]]{0,20}",
        "__CURSOR=[a-z]{0,5}",
        "",
        "\t at [a-z.]{0,10}",
    ]
}

proptest! {
    #[test]
    fn no_line_is_lost(lines in proptest::collection::vec(any_line(), 0..40)) {
        // A line break within a line would make it two.
        let lines: Vec<String> = lines.into_iter().map(|line| line.replace(['\n', '\r'], " ")).collect();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        prop_assume!(!text.contains('\0'));
        let mut spans = Vec::new();
        let read = read_from(Box::new(Cursor::new(text.into_bytes())), "a test", &options(), &mut |event| {
            spans.push((event.line, event.lines));
            ControlFlow::Continue(())
        });
        // Lines of nothing but control characters make a file binary.
        if let Ok(report) = read {
            let mut next = 1;
            for (line, count) in spans {
                prop_assert_eq!(line, next);
                next += u64::from(count);
            }
            prop_assert_eq!(next - 1, lines.len() as u64);
            prop_assert_eq!(report.lines, lines.len() as u64);
        }
    }

    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        let _ = read_from(Box::new(Cursor::new(bytes)), "a test", &options(), &mut |_| ControlFlow::Continue(()));
    }
}
