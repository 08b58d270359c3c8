"""Times whole commands of a built binary: `python3 benches/commands.py BINARY [RUNS]`.

Prints the median wall time in milliseconds of `--version`, a first and a later `search`, and `diagnose` of the
order-service example once the runbooks are indexed. A process start is part of every figure.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time


def wall_ms(command):
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1000


def main():
    binary = sys.argv[1]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 11
    with tempfile.TemporaryDirectory() as data:
        base = [binary, "--data-dir", data]
        figures = {"index docs-kb": wall_ms(base + ["index", "docs-kb"])}
        for name, command in {
            "--version": [binary, "--version"],
            "search": base + ["search", "connection pool exhausted"],
            "diagnose order-service": base + ["diagnose", "--incident", "examples/order-service"],
        }.items():
            figures[name] = statistics.median(wall_ms(command) for _ in range(runs))
        queries = "connection pool exhausted\n" * 101
        one = subprocess.run(base + ["search", "-", "--json"], input=b"warm\n", capture_output=True, check=True)
        started = time.perf_counter()
        subprocess.run(base + ["search", "-", "--json"], input=queries.encode(), capture_output=True, check=True)
        figures["search, each of 101 in one process"] = (time.perf_counter() - started) * 1000 / 101
        assert one.stdout
    print(json.dumps({name: round(ms, 1) for name, ms in figures.items()}, indent=2))


main()
