#!/usr/bin/env python3
"""What sessions cost: listing one store of 100,000, and the whole `diagnose` of each example with and without storing.

    benches/sessions.py BINARY [RUNS]

Prints medians. Without storing means that the folder of the store is a file, so that the writer gives up at once.
"""

import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SESSIONS = 100_000


def timed(binary, data_dir, *args, **environment):
    env = {**os.environ, "ONCALL_DATA_DIR": data_dir, "XDG_CONFIG_HOME": data_dir, **environment}
    began = time.perf_counter()
    ran = subprocess.run([binary, *args], cwd=ROOT, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    if ran.returncode != 0:
        sys.exit(f"{' '.join(args)}: exit {ran.returncode}: {ran.stderr.decode()}")
    return time.perf_counter() - began


def multiply(path):
    """Fills the store with copies of its one session, a minute apart."""
    store = sqlite3.connect(path)
    cursor = store.execute("SELECT * FROM diagnosis_session")
    columns = [column[0] for column in cursor.description]
    row = dict(zip(columns, cursor.fetchone()))
    row["diagnosis"] = None
    started = row["started_at"]

    def copies():
        for n in range(1, SESSIONS):
            copy = {**row, "id": str(uuid.uuid4()), "started_at": started - n * 60_000_000}
            yield [copy[column] for column in columns]

    marks = ", ".join("?" for _ in columns)
    with store:
        store.executemany(f"INSERT INTO diagnosis_session ({', '.join(columns)}) VALUES ({marks})", copies())
    store.execute("ANALYZE")
    store.close()


def main():
    binary, runs = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 9
    with tempfile.TemporaryDirectory() as data:
        timed(binary, data, "index", "docs-kb")
        for example in ["order-service", "oom-rollout", "expired-certificate"]:
            args = ["diagnose", "--incident", f"examples/{example}", "--quiet"]
            closed = os.path.join(data, "no-folder")
            open(closed, "w").close()
            without = {"ONCALL_DATA_DIR": closed, "ONCALL_KNOWLEDGE_STORE": os.path.join(data, "knowledge")}
            timed(binary, data, *args)
            pairs = [(timed(binary, data, *args), timed(binary, data, *args, **without)) for _ in range(runs)]
            with_store, without_store = (statistics.median(times) for times in zip(*pairs))
            share = 100 * (with_store / without_store - 1)
            print(f"diagnose {example}: {with_store:.3f} s stored, {without_store:.3f} s not stored: {share:+.1f} %")
        store = os.path.join(data, "sessions.db")
        connection = sqlite3.connect(store)
        with connection:
            connection.execute(
                "DELETE FROM diagnosis_session WHERE id NOT IN (SELECT id FROM diagnosis_session LIMIT 1)"
            )
        connection.close()
        multiply(store)
        for what in [[], ["--status", "complete"], ["--service", "order-service"], ["--since", "7d"]]:
            times = [timed(binary, data, "session", "list", *what) for _ in range(runs)]
            name = " ".join(["session list", *what])
            print(f"{name}: {1000 * statistics.median(times):.0f} ms of {SESSIONS} sessions, whole command")


if __name__ == "__main__":
    main()
