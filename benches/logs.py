#!/usr/bin/env python3
"""Throughput of template mining beside Drain3, and memory at ten times the lines, in one run on one core.

Two figures are ours: mining alone (`mining.rs`: the same lines, without reading or parsing them), and the whole command
`oncall logs`, which also reads the file, finds times, levels and services, and joins continuation lines.

usage: logs.py ONCALL_BINARY LOGHUB_DIR [LINES]

LOGHUB_DIR holds HDFS/HDFS_2k.log and OpenSSH/OpenSSH_2k.log (https://github.com/logpai/loghub). They are repeated
to LINES lines (1,000,000). Drain3 (`pip install drain3`) runs in this process with its defaults and no masking, on
the same lines without their line ends, reading the file included. Unix only.
"""
import os
import subprocess
import sys
import tempfile
import time


def repeated(folder, lines, path):
    """Writes `lines` lines to `path`: the two samples in turn."""
    samples = []
    for name in ("HDFS", "OpenSSH"):
        with open(os.path.join(folder, name, f"{name}_2k.log"), encoding="utf-8") as file:
            samples += file.read().splitlines()
    with open(path, "w", encoding="utf-8") as file:
        for index in range(lines):
            file.write(samples[index % len(samples)] + "\n")


def run_oncall(binary, path):
    """Seconds and peak memory in MiB of one whole process."""
    start = time.perf_counter()
    child = os.fork()
    if child == 0:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.execv(binary, [binary, "logs", path, "--json"])
    _, status, usage = os.wait4(child, 0)
    if status != 0:
        sys.exit(f"{binary} logs {path}: wait status {status}")
    # Linux counts ru_maxrss in KiB, macOS in bytes.
    unit = 1024 if sys.platform != "darwin" else 1024 * 1024
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit


def run_mining(path):
    """Seconds of the miner alone, the best of three runs."""
    command = ["cargo", "bench", "--locked", "--quiet", "--workspace", "--bench", "mining", "--", path]
    return min(float(subprocess.check_output(command).split()[0]) for _ in range(3))


def run_drain3(path):
    from drain3 import TemplateMiner

    miner = TemplateMiner()
    cpu = time.process_time()
    start = time.perf_counter()
    with open(path, encoding="utf-8") as file:
        for line in file:
            miner.add_log_message(line.rstrip("\n"))
    return time.perf_counter() - start, time.process_time() - cpu, len(miner.drain.clusters)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    binary, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    lines = int(sys.argv[3]) if len(sys.argv) > 3 else 1_000_000
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with tempfile.TemporaryDirectory() as temporary:
        large, small = os.path.join(temporary, "large.log"), os.path.join(temporary, "small.log")
        repeated(folder, lines, large)
        repeated(folder, lines // 10, small)
        _, _, small_memory = run_oncall(binary, small)
        runs = [run_oncall(binary, large) for _ in range(3)]
        elapsed, processor, memory = min(runs)
        print(f"oncall logs  {lines / processor:12,.0f} lines/s of processor time  ({lines / elapsed:,.0f} of wall time)")
        print(f"             {small_memory:12.1f} MiB peak at {lines // 10:,} lines, {memory:.1f} MiB at {lines:,}")
        mining = run_mining(large)
        print(f"mining alone {lines / mining:12,.0f} lines/s")
        drain_elapsed, drain_processor, clusters = run_drain3(large)
        print(f"Drain3       {lines / drain_processor:12,.0f} lines/s of processor time  ({lines / drain_elapsed:,.0f} of wall time), {clusters} clusters")
        print(f"ratio        {drain_processor / mining:12.1f} for mining, {drain_processor / processor:.1f} for the whole command")


main()
