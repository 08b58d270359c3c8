"""Makes every example again in a temporary folder and compares it with the committed one, byte for byte.

Compressed files are compared by what they hold: another zlib may pack the same bytes differently. Exit 1 names each
file that differs.
"""

import gzip
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(HERE, "generator"))

from folder import GENERATED  # noqa: E402 (the path has to be set first)

EXAMPLES = {
    "order-service": "order_service.py",
    "oom-rollout": "oom_rollout.py",
    "expired-certificate": "expired_certificate.py",
}


def contents(root):
    """What the generator writes below `root`, by relative path, decompressed."""
    found = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, root)
            if relative.split(os.sep)[0] in GENERATED:
                with (gzip.open if name.endswith(".gz") else open)(path, "rb") as file:
                    found[relative] = file.read()
    return found


def main():
    wrong = []
    for name, script in EXAMPLES.items():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, os.path.join(HERE, "generator", script), "--out", folder], check=True)
            made, kept = contents(folder), contents(os.path.join(HERE, name))
        wrong += [f"{name}/{path}" for path in sorted(made.keys() | kept.keys()) if made.get(path) != kept.get(path)]
    for path in wrong:
        print(f"examples/{path} differs from what its generator makes; run the generator again", file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
