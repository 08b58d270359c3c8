use super::*;

fn clock() -> Clock {
    Clock::new("2026-03-04T06:45:00Z".parse().unwrap(), TimeZone::get("Asia/Shanghai").unwrap())
}

fn read(text: &str) -> Option<(String, usize)> {
    parse_at(text.as_bytes(), 0, &clock())
        .map(|(stamp, end)| (stamp.at.map_or("no time".into(), |at| at.to_string()), end))
}

#[test]
fn stamps_that_say_everything_are_read_exactly() {
    for (text, expected) in [
        ("2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"),
        ("2024-01-02T03:04:05.678901234+08:00", "2024-01-01T19:04:05.678901234Z"),
        ("2024-01-02 03:04:05,678 +0800", "2024-01-01T19:04:05.678Z"),
        ("2024-01-02 03:04:05.678 UTC", "2024-01-02T03:04:05.678Z"),
        ("2024/01/02 03:04:05 -0700", "2024-01-02T10:04:05Z"),
        ("10/Oct/2000:13:55:36 -0700", "2000-10-10T20:55:36Z"),
        ("Mon, 02 Jan 2006 15:04:05 GMT", "2006-01-02T15:04:05Z"),
        ("02 Jan 2006 15:04:05.250 GMT", "2006-01-02T15:04:05.25Z"),
        ("Mon Jan  2 15:04:05 UTC 2006", "2006-01-02T15:04:05Z"),
        ("1428634687", "2015-04-10T02:58:07Z"),
        ("1428634687.5", "2015-04-10T02:58:07.5Z"),
        ("1428634687123", "2015-04-10T02:58:07.123Z"),
        ("1428634687123456", "2015-04-10T02:58:07.123456Z"),
        ("1428634687123456789", "2015-04-10T02:58:07.123456789Z"),
    ] {
        let (stamp, end) = parse_at(text.as_bytes(), 0, &clock()).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(
            (stamp.at.unwrap().to_string(), stamp.assumed, end),
            (expected.into(), Assumed::default(), text.len()),
            "{text}"
        );
    }
}

#[test]
fn what_a_stamp_leaves_open_comes_from_the_clock() {
    for (text, expected) in [
        ("2024-01-02 03:04:05", "2024-01-01T19:04:05Z"),
        ("2005-06-03-15.42.50.363779", "2005-06-03T07:42:50.363779Z"),
        ("20171223-22:15:29:606", "2017-12-23T14:15:29.606Z"),
        ("20171224-0:7:9:6", "2017-12-23T16:07:09.006Z"),
        ("20240102030405", "2024-01-01T19:04:05Z"),
        ("081109 203615", "2008-11-09T12:36:15Z"),
        ("210126  3:45:57", "2021-01-25T19:45:57Z"),
        ("17/06/09 20:10:40", "2017-06-09T12:10:40Z"),
        ("01/02/2024 03:04:05 PM", "2024-01-02T07:04:05Z"),
        ("31/12/2023 03:04:05", "2023-12-30T19:04:05Z"),
        ("02.01.2024 03:04:05", "2024-01-01T19:04:05Z"),
        ("03-02 16:13:38.811", "2026-03-02T08:13:38.811Z"),
        ("10.30 16:49:06", "2025-10-30T08:49:06Z"),
        ("Mar  4 14:30:00", "2026-03-04T06:30:00Z"),
        ("Dec 31 23:59:59", "2025-12-31T15:59:59Z"),
        ("Feb 29 10:00:00", "2024-02-29T02:00:00Z"),
        ("Sun Dec 04 04:47:44 2005", "2005-12-03T20:47:44Z"),
        ("E0517 15:04:22.619632", "2025-05-17T07:04:22.619632Z"),
        ("14:30:00.5", "2026-03-04T06:30:00.5Z"),
        ("23:30:00", "2026-03-03T15:30:00Z"),
    ] {
        let (stamp, end) = parse_at(text.as_bytes(), 0, &clock()).unwrap_or_else(|| panic!("{text}"));
        assert!(stamp.assumed.zone, "{text}");
        assert_eq!((stamp.at.unwrap().to_string().as_str(), end), (expected, text.len()), "{text}");
    }
}

#[test]
fn text_that_only_resembles_a_stamp_is_none() {
    for text in [
        "2024-01-02",
        "1234567890123456789012",
        "10.0.0.1 x",
        "42 errors",
        "Monday",
        "Mary had",
        "99:99:99",
        "2024-01-02T03:04:05Zulu",
        "5 - 6",
        "1.2.3.4:80",
        "0123456789",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn a_date_or_time_that_does_not_exist_is_a_stamp_without_a_time() {
    for text in [
        "2024-13-02 03:04:05",
        "2024-02-30T03:04:05Z",
        "2024-02-30T03:04:05.678+08:00",
        "2023-02-29 03:04:05",
        "2024-01-02 25:00:00",
        "2024-01-02 03:61:00",
        "2024-01-02T03:04:99",
        "0000-00-00 00:00:00",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "9999-01-01 00:00:00",
        "20240230-22:15:29:606",
        "20240230 030405",
        "31/Feb/2000:13:55:36 -0700",
        "Mon, 32 Jan 2006 15:04:05 GMT",
        "31.02.2024 03:04:05",
        "Feb 30 10:00:00",
        "Mar  4 24:30:00",
    ] {
        assert_eq!(read(text), Some(("no time".into(), text.len())), "{text}");
    }
    assert_eq!(parse_text("2024-02-30T03:04:05Z", &clock()).map(|stamp| stamp.at), Some(None));
}

#[test]
fn numbers_of_structured_logs_tell_their_unit_by_size() {
    assert_eq!(from_integer(1_745_532_517_537).unwrap().at.unwrap().to_string(), "2025-04-24T22:08:37.537Z");
    assert_eq!(from_number(1_745_532_517.537).unwrap().at.unwrap().to_string(), "2025-04-24T22:08:37.537Z");
    assert_eq!(from_integer(17), None);
}

proptest::proptest! {
    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        for from in 0..bytes.len() {
            if let Some((_, end)) = parse_at(&bytes, from, &clock()) {
                assert!(from < end && end <= bytes.len());
            }
        }
    }

    #[test]
    fn stamp_like_text_is_survived(text in "[0-9A-Za-z:./, +-]{0,40}") {
        parse_at(text.as_bytes(), 0, &clock());
    }
}
