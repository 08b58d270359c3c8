"""The clock of a generated incident: command line in, unix seconds out.

Every script names its times as they are told in the story ("14:23:10"); `--now` moves the whole story so that it
ends at another instant, and keeps its zone.
"""

import argparse
from datetime import datetime, timedelta, timezone


class Clock:
    """Turns times of the story into unix seconds, and unix seconds into text."""

    def __init__(self, now, shift=timedelta(0)):
        self.day = now
        self.shift = shift
        self.zone = now.tzinfo
        self.now = (now + shift).timestamp()

    def at(self, text, days=0):
        """Unix seconds of a time of day of the story, `days` after the day on which it ends."""
        hour, minute, second = (text + ":00").split(":")[:3]
        moment = self.day.replace(hour=int(hour), minute=int(minute), second=int(second), microsecond=0)
        return (moment + timedelta(days=days) + self.shift).timestamp()

    def local(self, seconds):
        return datetime.fromtimestamp(seconds, self.zone)

    def rfc3339(self, seconds):
        """With the offset of the story's zone, to the second."""
        return self.local(seconds).isoformat(timespec="seconds")

    def text(self, seconds, form):
        """`strftime` in the story's zone; `%L` gives milliseconds."""
        moment = self.local(seconds)
        return moment.strftime(form.replace("%L", f"{moment.microsecond // 1000:03d}"))


def utc(seconds, digits="milliseconds"):
    """RFC 3339 in UTC with a `Z`."""
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec=digits).replace("+00:00", "Z")


def parse_arguments(description, default_now, default_out):
    """`--now` and `--out` as every generator has them; gives the clock and the folder."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--now", metavar="TIME", help="end the incident at this RFC 3339 instant (default: its own day)"
    )
    parser.add_argument("--out", metavar="DIR", default=default_out, help="folder to write (default: %(default)s)")
    arguments = parser.parse_args()
    told = datetime.fromisoformat(default_now)
    if arguments.now is None:
        return Clock(told), arguments.out
    wanted = datetime.fromisoformat(arguments.now.replace("Z", "+00:00"))
    if wanted.tzinfo is None:
        parser.error(f"--now {arguments.now}: expected an offset, as in 2026-03-04T14:45:00+08:00")
    return Clock(told, wanted - told), arguments.out
