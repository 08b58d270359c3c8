//! What the miner counts, merges and keeps apart.

use jiff::SignedDuration;
use proptest::prelude::*;

use super::*;

const OPTIONS: MinerOptions = MinerOptions { window: None, services: Services::Apart, assignments: Assignments::Kept };

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

fn event(second: i64, level: Option<Level>, message: &str) -> LogEvent {
    LogEvent { at: Some(at(second)), level, service: None, instance: None, message: message.into(), line: 1, lines: 1 }
}

/// The templates with their counts, the most frequent first.
fn templates<'a>(messages: impl IntoIterator<Item = &'a str>) -> Vec<(u64, String)> {
    let mut miner = Miner::new(OPTIONS);
    for message in messages {
        miner.add(&event(0, None, message));
    }
    miner.finish().patterns.into_iter().map(|pattern| (pattern.count, pattern.template)).collect()
}

#[test]
fn messages_that_differ_in_what_varies_are_one_pattern() {
    let mined = templates([
        "connection pool timeout after 3000ms",
        "connection pool timeout after 5000ms",
        "user 17 logged in from 10.0.0.1",
    ]);
    let expected = [(2, "connection pool timeout after <*>"), (1, "user <*> logged in from <*>")];
    assert_eq!(mined, expected.map(|(count, template)| (count, template.to_owned())));
}

#[test]
fn a_word_with_many_values_is_variable_and_recurring_states_are_not() {
    let names = ["alice", "bob", "carol", "dave", "erin", "frank"];
    let logins: Vec<String> = names.iter().map(|name| format!("password of {name} expired")).collect();
    let states = ["VM Started now", "VM Stopped now", "VM Paused now"];
    let all = logins.iter().map(String::as_str).chain(states).chain(states);
    let mut mined = templates(all);
    mined.sort();
    let expected = [(2, "VM Paused now"), (2, "VM Started now"), (2, "VM Stopped now"), (6, "password of <*> expired")];
    assert_eq!(mined, expected.map(|(count, template)| (count, template.to_owned())));
}

#[test]
fn levels_and_services_stay_apart() {
    let mut miner = Miner::new(OPTIONS);
    for (level, service) in [
        (Some(Level::Info), "cart"),
        (Some(Level::Error), "cart"),
        (Some(Level::Error), "order"),
        (Some(Level::Error), "order"),
    ] {
        miner.add(&LogEvent { service: Some(service.into()), ..event(0, level, "cache miss 7") });
    }
    let mined = miner.finish();
    let patterns: Vec<_> =
        mined.patterns.iter().map(|p| (p.id.as_str(), p.count, p.level, p.service.as_deref())).collect();
    assert_eq!(
        patterns,
        [
            ("P1", 2, Some(Level::Error), Some("order")),
            ("P2", 1, Some(Level::Info), Some("cart")),
            ("P3", 1, Some(Level::Error), Some("cart")),
        ]
    );
}

#[test]
fn a_pattern_is_counted_over_its_window_and_the_time_before() {
    let window = Window::new(at(0), at(2400));
    let mut miner = Miner::new(MinerOptions { window: Some(window), ..OPTIONS });
    for (second, instance) in [(-3000, "a"), (-100, "a"), (0, "a"), (150, "b"), (2400, "b"), (2401, "b")] {
        miner.add(&LogEvent { instance: Some(instance.into()), ..event(second, Some(Level::Error), "pool timeout 5") });
    }
    let mut histogram = vec![0; 24];
    (histogram[0], histogram[1], histogram[23]) = (1, 1, 1);
    let expected = LogPattern {
        id: "P1".into(),
        level: Some(Level::Error),
        service: None,
        count: 3,
        before: Some(1),
        first: Some(at(0)),
        last: Some(at(2400)),
        template: "pool timeout <*>".into(),
        sample: "pool timeout 5".into(),
        histogram,
        instances: [("a".to_owned(), 1), ("b".to_owned(), 2)].into(),
    };
    let mined = miner.finish();
    assert_eq!(mined.patterns, [expected]);
    assert_eq!((mined.volume.events, mined.volume.levels), (3, [("error".to_owned(), 3)].into()));
}

#[test]
fn events_of_one_instant_stand_in_one_slice() {
    let slices_of = |seconds: &[i64]| -> Vec<(usize, u64)> {
        let mut miner = Miner::new(OPTIONS);
        for second in seconds {
            miner.add(&event(*second, None, "tick"));
        }
        let histogram = miner.finish().patterns.remove(0).histogram;
        histogram.into_iter().enumerate().filter(|(_, count)| *count > 0).collect()
    };
    assert_eq!(slices_of(&[1_000_000; 5]), [(0, 5)]);
    assert_eq!(slices_of(&[1_000_000, 1_000_000, 1_000_001]), [(0, 2), (12, 1)]);
    assert_eq!(slices_of(&[0, 11]), [(0, 1), (22, 1)]);
}

#[test]
fn without_a_window_the_histogram_spans_what_was_seen() {
    let mut miner = Miner::new(OPTIONS);
    for second in (0..24_000).rev() {
        miner.add(&event(second, None, "tick"));
    }
    let histogram = miner.finish().patterns.remove(0).histogram;
    assert_eq!(histogram.iter().sum::<u64>(), 24_000);
    assert!(histogram.iter().all(|count| (900..=1100).contains(count)), "{histogram:?}");
}

#[test]
fn memory_is_bounded_and_no_event_goes_uncounted() {
    let mut miner = Miner::new(OPTIONS);
    let letters = |mut n: u64| {
        std::iter::repeat_with(|| {
            let letter = char::from(b'g' + (n % 20) as u8);
            n /= 20;
            letter
        })
        .take(6)
        .collect::<String>()
    };
    let mut tickets = Vec::new();
    for n in 0..2 * MAX_SHAPES as u64 {
        // Two words that vary at once, and a length that does: nothing merges.
        let message = format!("{} {}{}", letters(n * 7919), letters(n * 104_729), " x".repeat((n % 8) as usize));
        tickets.push(miner.add(&event(n as i64, Some(Level::Warn), &message)));
        assert!(miner.shapes.len() <= MAX_SHAPES + 8);
    }
    let mined = miner.finish();
    assert_eq!(mined.patterns.iter().map(|pattern| pattern.count).sum::<u64>(), 2 * MAX_SHAPES as u64);
    assert!(tickets.into_iter().all(|ticket| mined.pattern_of(ticket).is_some()));
}

#[test]
fn every_event_finds_its_pattern_after_merges() {
    let mut miner = Miner::new(OPTIONS);
    let names = ["alice", "bob", "carol", "dave", "erin", "frank", "grace"];
    let tickets: Vec<Ticket> =
        names.iter().map(|name| miner.add(&event(0, None, &format!("hello {name} there")))).collect();
    let mined = miner.finish();
    assert!(tickets.into_iter().all(|ticket| mined.pattern_of(ticket) == Some(0)));
    assert_eq!(mined.patterns[0].count, 7);
}

proptest! {
    #[test]
    fn any_message_is_survived_and_counted(messages in proptest::collection::vec("\\PC{0,80}|[ -~]{0,80}|[a-c0-2 ().:,=<>-]{0,30}", 0..60)) {
        let mut miner = Miner::new(OPTIONS);
        let tickets: Vec<Ticket> = messages.iter().enumerate().map(|(n, message)| miner.add(&event(n as i64, None, message))).collect();
        let mined = miner.finish();
        prop_assert_eq!(mined.patterns.iter().map(|pattern| pattern.count).sum::<u64>(), messages.len() as u64);
        for ticket in tickets {
            prop_assert!(mined.pattern_of(ticket).is_some());
        }
    }

    #[test]
    fn any_span_is_held_by_the_histogram(seconds in proptest::collection::vec(-1_000_000_000i64..1_000_000_000, 1..50)) {
        let mut miner = Miner::new(OPTIONS);
        for second in &seconds {
            miner.add(&event(*second, None, "tick"));
        }
        let histogram = miner.finish().patterns.remove(0).histogram;
        prop_assert_eq!(histogram.iter().sum::<u64>(), seconds.len() as u64);
    }
}

#[test]
fn a_burst_is_told_from_the_time_before() {
    let window = Window::ending_at(at(600), SignedDuration::from_secs(600));
    let mut miner = Miner::new(MinerOptions { window: Some(window), ..OPTIONS });
    for second in 0..120 {
        miner.add(&event(second, None, "failed to connect to database"));
    }
    let pattern = miner.finish().patterns.remove(0);
    // Nothing of the time before was read: that is not the same as nothing having happened.
    assert_eq!((pattern.count, pattern.before), (120, None));
}
