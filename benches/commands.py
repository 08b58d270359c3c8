"""Times whole commands of a built binary: `python3 benches/commands.py BINARY [RUNS]`.

Prints median wall times in milliseconds: of `--version`; of `diagnose` of the order-service example once the runbooks
are indexed; and of `search` over 5,000 short passages, as a whole command and, with a query a line, within one process.
A process start is part of every figure but the last.
"""

import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time


def wall_ms(command):
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - started) * 1000


PASSAGES = 5_000
WORDS = (
    "pool connection timeout latency replica disk inode certificate broker consumer lag queue leader election memory "
    "heap pause throttle quota probe rollout restart eviction node kernel socket retry storm cache miss index lock"
).split()


def write_passages(folder):
    """Short passages of made sentences, fifty to a file."""
    words = random.Random(7)
    for file in range(PASSAGES // 50):
        sections = []
        for n in range(50):
            text = " ".join(words.choice(WORDS) for _ in range(60))
            sections.append(f"# Note {file}-{n}\n\n{text}. {text[::-1]}.\n")
        with open(os.path.join(folder, f"{file:03}.md"), "w") as out:
            out.write("\n".join(sections))


def main():
    binary = sys.argv[1]
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 11
    figures = {}
    with tempfile.TemporaryDirectory() as data:
        base = [binary, "--data-dir", data]
        figures["index docs-kb"] = wall_ms(base + ["index", "docs-kb"])
        figures["--version"] = statistics.median(wall_ms([binary, "--version"]) for _ in range(runs))
        diagnose = base + ["diagnose", "--incident", "examples/order-service"]
        figures["diagnose order-service"] = statistics.median(wall_ms(diagnose) for _ in range(runs))
    with tempfile.TemporaryDirectory() as data:
        docs = os.path.join(data, "docs")
        os.mkdir(docs)
        write_passages(docs)
        # Otherwise the first search would take in the runbooks of the folder it runs in.
        config = os.path.join(data, "oncall.toml")
        with open(config, "w") as out:
            out.write(f"[knowledge]\npaths = [{json.dumps(docs)}]\n")
        base = [binary, "--data-dir", data, "--config", config]
        figures["index 5,000 passages"] = wall_ms(base + ["index", docs])
        search = base + ["search", "connection pool exhausted", "--json", "--quiet"]
        subprocess.run(search, check=True, stdout=subprocess.DEVNULL)
        times = []
        for _ in range(runs):
            started = time.perf_counter()
            subprocess.run(search, check=True, stdout=subprocess.DEVNULL)
            times.append((time.perf_counter() - started) * 1000)
        figures["search of 5,000 passages, whole command"] = statistics.median(times)
        queries = [f"{a} {b} of a {c}" for a, b, c in zip(WORDS, WORDS[3:], WORDS[5:])] * 4
        started = time.perf_counter()
        many = base + ["search", "-", "--json", "--quiet"]
        subprocess.run(many, input="\n".join(queries).encode(), check=True, stdout=subprocess.DEVNULL)
        spent = (time.perf_counter() - started) * 1000 - figures["search of 5,000 passages, whole command"]
        figures["search of 5,000 passages, each further one"] = spent / (len(queries) - 1)
    print(json.dumps({name: round(ms, 1) for name, ms in figures.items()}, indent=2))


if __name__ == "__main__":
    main()
