//! Where the program's own words go: to stderr, and while a screen of ours is on the terminal, to that screen.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing_subscriber::fmt::MakeWriter;

/// Cloned freely; all clones write to the same place.
#[derive(Debug, Clone, Default)]
pub struct Logbook(Arc<Mutex<Option<UnboundedSender<String>>>>);

/// While it lives, lines are held for a screen; those that nobody took come out on stderr when it is dropped.
#[derive(Debug)]
pub struct Held {
    book: Logbook,
    lines: UnboundedReceiver<String>,
}

impl Logbook {
    /// Writes a line.
    pub fn line(&self, text: &str) {
        let held = self.place().clone();
        if held.is_none_or(|screen| screen.send(text.to_owned()).is_err()) {
            let _ = writeln!(io::stderr(), "{text}");
        }
    }

    /// Takes what is written from here on.
    pub fn hold(&self) -> Held {
        let (sender, lines) = unbounded_channel();
        *self.place() = Some(sender);
        Held { book: self.clone(), lines }
    }

    fn place(&self) -> MutexGuard<'_, Option<UnboundedSender<String>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// The next line; waits for it.
    pub async fn next(&mut self) -> Option<String> {
        self.lines.recv().await
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        *self.book.place() = None;
        while let Ok(line) = self.lines.try_recv() {
            self.book.line(&line);
        }
    }
}

impl Write for Logbook {
    /// One write of the subscriber is one event.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line(String::from_utf8_lossy(bytes).trim_end_matches('\n'));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Logbook {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn held_lines_come_in_order_and_later_ones_do_not() {
        let book = Logbook::default();
        let mut held = book.hold();
        book.line("first");
        writeln!(book.clone(), "second").unwrap();
        assert_eq!([held.next().await, held.next().await], [Some("first".into()), Some("second".into())]);
        drop(held);
        assert!(book.place().is_none());
    }
}
