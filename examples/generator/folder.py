"""Writes an incident folder (DESIGN section 8): text, JSON, gzip with no time stamp, so that bytes repeat."""

import gzip
import json
import os
import shutil

# What a generator writes; anything else in the folder (README.md) is kept.
GENERATED = ("alert.json", "incident.toml", "changes.jsonl", "expected.toml", "metrics", "logs", "status")


class Folder:
    def __init__(self, path):
        self.path = path
        for name in GENERATED:
            old = os.path.join(path, name)
            if os.path.isdir(old):
                shutil.rmtree(old)
            elif os.path.exists(old):
                os.remove(old)

    def text(self, name, content):
        """A file of UTF-8 text; a name that ends in `.gz` is compressed."""
        path = os.path.join(self.path, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        data = content.encode("utf-8")
        if name.endswith(".gz"):
            data = gzip.compress(data, compresslevel=9, mtime=0)
        with open(path, "wb") as file:
            file.write(data)

    def json(self, name, value):
        self.text(name, json.dumps(value, ensure_ascii=False, indent=1) + "\n")

    def json_lines(self, name, values):
        self.text(name, "".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values))

    def incident(self, clock, name, zone, topology):
        lines = [f"name = {quote(name)}", f"now = {quote(clock.rfc3339(clock.now))}", f"timezone = {quote(zone)}"]
        lines += ["", "[topology]"]
        lines += [f"{quote(caller)} = {quote_list(callees)}" for caller, callees in topology.items()]
        self.text("incident.toml", "\n".join(lines) + "\n")

    def expected(self, category, service, must_mention, must_not_claim):
        lines = [f"category = {quote(category)}", f"service = {quote(service)}"]
        lines += [f"must_mention = {quote_list(must_mention)}", f"must_not_claim = {quote_list(must_not_claim)}"]
        self.text("expected.toml", "\n".join(lines) + "\n")


def quote(text):
    # A JSON string of printable text is a TOML basic string as well.
    return json.dumps(text, ensure_ascii=False)


def quote_list(texts):
    return "[" + ", ".join(quote(text) for text in texts) + "]"
