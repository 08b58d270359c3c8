"""Log lines in the formats that services really write. Each function gives one event as text, without its line end."""

import json

from clock import utc


class Logs:
    """Collects events by file; writing sorts them by time."""

    def __init__(self):
        self.files = {}

    def add(self, file, seconds, text):
        self.files.setdefault(file, []).append((seconds, text))

    def count(self, text, start, end):
        """How many events hold this text between two instants."""
        return sum(text in line and start <= t <= end for events in self.files.values() for t, line in events)

    def write(self, folder):
        for file, events in self.files.items():
            events.sort(key=lambda event: event[0])
            folder.text(f"logs/{file}", "".join(line + "\n" for _, line in events))


def logback(clock, seconds, level, thread, logger, message):
    """Spring Boot's console pattern, local time without a zone."""
    return f"{clock.text(seconds, '%Y-%m-%d %H:%M:%S.%L')} {level:>5} 1 --- [{thread}] {logger:<40} : {message}"


def bracketed(clock, seconds, level, logger, message):
    """Python's `logging` with a common format, local time with a comma before the milliseconds."""
    return f"{clock.text(seconds, '%Y-%m-%d %H:%M:%S,%L')} [{level}] {logger}: {message}"


def json_line(seconds, level, message, **fields):
    """One JSON object, UTC."""
    return json.dumps({"time": utc(seconds), "level": level, "msg": message, **fields}, ensure_ascii=False)


def pino(seconds, level, message, **fields):
    """Node's pino: level as a number, time in epoch milliseconds."""
    numbers = {"debug": 20, "info": 30, "warn": 40, "error": 50, "fatal": 60}
    head = {"level": numbers[level], "time": int(seconds * 1000), "pid": 1}
    return json.dumps({**head, **fields, "msg": message}, ensure_ascii=False)


def logfmt(seconds, level, message, **fields):
    """Go's logfmt, UTC."""
    rest = "".join(f" {key}={json.dumps(v, ensure_ascii=False) if ' ' in str(v) else v}" for key, v in fields.items())
    return f"time={utc(seconds)} level={level} msg={json.dumps(message, ensure_ascii=False)}{rest}"


def nginx_access(clock, seconds, client, request, status, size, took, upstream):
    """The combined format with request and upstream times."""
    stamp = clock.text(seconds, "%d/%b/%Y:%H:%M:%S %z")
    return f'{client} - - [{stamp}] "{request}" {status} {size} "-" "shop-app/8.4.1" rt={took:.3f} urt={took:.3f} ua={upstream}'


def nginx_error(clock, seconds, level, message):
    """The error log: local time to the second."""
    return f"{clock.text(seconds, '%Y/%m/%d %H:%M:%S')} [{level}] 31#31: {message}"


def redis(clock, seconds, message):
    return f"1:M {clock.text(seconds, '%d %b %Y %H:%M:%S.%L')} * {message}"


def postgres(clock, seconds, level, message, user="orders"):
    return f"{clock.text(seconds, '%Y-%m-%d %H:%M:%S.%L %z')} [214] {user}@shop {level}:  {message}"
