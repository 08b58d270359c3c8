#!/usr/bin/env python3
"""Measures root-cause ranking on PetShop (Hardt et al., CLeaR 2024, CC-BY-4.0).

Each labelled incident becomes an incident folder (metrics/petshop.om, incident.toml with the service graph, alert.json
on the front service), a binary is asked, and the place of the true root cause in its order gives AC@1 and AC@3.

    benches/rca_petshop.py BINARY DATA [--via diagnose|tool] [--history N] [--hide-names SEED] [--keep DIR]

BINARY   an oncall binary
DATA     the folder with high_traffic/, low_traffic/ ...: SCENARIO/graph.csv, SCENARIO/SPLIT/issue_N/{metrics.csv,target.json}
--via    diagnose: the services of the hypotheses of `oncall diagnose --json`, in order (default);
         tool: the services that `oncall tools call discover_metrics` ranks
--history  rows of normal operation put before the incident (default 60; 0: nothing but the five rows of the incident)
--hide-names  services get meaningless names, in another order for every SEED. A ranking by evidence keeps its figures;
         one that goes by names, or by the order in which callees are listed, does not. The public cases all have the
         same root cause, so that a constant answer would be right: do not believe a figure without this control.
--keep   write the incident folders here and leave them

The normal operation was recorded at another time than the incidents, so its rows are moved to end where an incident's
begin. Published on the test cases: traversal with mean deviation .654 / .827; NSigma .308 / .635.
"""

import argparse
import collections
import csv
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

STEP_SECONDS = 300
METRIC_NAMES = {
    ("latency", "Average"): "latency_seconds_avg",
    ("latency", "p50"): "latency_seconds_p50",
    ("latency", "p90"): "latency_seconds_p90",
    ("latency", "p95"): "latency_seconds_p95",
    ("latency", "p99"): "latency_seconds_p99",
    ("requests", "Sum"): "requests",
    ("availability", "Average"): "availability_percent",
}


def read_metrics(path):
    """Columns (node, metric, statistic) and rows (time, values), empty cells as None."""
    rows = list(csv.reader(path.open()))
    columns = list(zip(*(row[1:] for row in rows[:3])))
    data = [row for row in rows[3:] if row[0].replace(".", "", 1).isdigit()]
    return columns, [(int(float(row[0])), [float(cell) if cell else None for cell in row[1:]]) for row in data]


def read_graph(path):
    rows = list(csv.reader(path.open()))
    callees = rows[0][1:]
    graph = {row[0]: [callee for callee, edge in zip(callees, row[1:]) if float(edge)] for row in rows[1:]}
    return {caller: called for caller, called in graph.items() if called}


def hidden(name, seed):
    return "svc-" + hashlib.sha256(f"{seed}/{name}".encode()).hexdigest()[:8]


def hide_names(graph, tables, label, seed):
    """The same incident with other names, callees in the order of these."""
    def other(name):
        return hidden(name, seed)

    graph = {other(caller): sorted(map(other, called)) for caller, called in graph.items()}
    tables = [([(other(node), *rest) for node, *rest in columns], rows) for columns, rows in tables]
    return graph, tables, {**label, "target": {**label["target"], "node": other(label["target"]["node"])},
                           "root_cause": {**label["root_cause"], "node": other(label["root_cause"]["node"])}}


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def open_metrics(parts):
    """OpenMetrics text of [(columns, rows)], oldest first."""
    families = collections.defaultdict(lambda: collections.defaultdict(list))
    for columns, rows in parts:
        for time, values in rows:
            for (node, metric, statistic), value in zip(columns, values):
                if value is not None:
                    families[METRIC_NAMES[metric, statistic]][node].append(f"{value} {time}")
    lines = []
    for name, nodes in sorted(families.items()):
        lines.append(f"# TYPE {name} gauge")
        for node, samples in sorted(nodes.items()):
            lines += [f"{name}{{service={quoted(node)}}} {sample}" for sample in samples]
    return "\n".join(lines + ["# EOF", ""])


def write_incident(folder, graph, normal, issue, target, history):
    columns, rows = issue
    normal_columns, normal_rows = normal
    before = normal_rows[len(normal_rows) - history :] if history else []
    first = rows[0][0]
    moved = [(first - STEP_SECONDS * (len(before) - place), values) for place, (_, values) in enumerate(before)]
    (folder / "metrics").mkdir(parents=True)
    (folder / "metrics" / "petshop.om").write_text(open_metrics([(normal_columns, moved), (columns, rows)]))
    topology = "".join(f"{quoted(caller)} = {json.dumps(called)}\n" for caller, called in sorted(graph.items()))
    now = rows[-1][0]
    (folder / "incident.toml").write_text(f'now = "{utc(now)}"\ntimezone = "UTC"\n\n[topology]\n{topology}')
    symptom = "Latency" if target["metric"] == "latency" else "Availability"
    summary = {"Latency": "the response time is too high", "Availability": "too many requests fail"}[symptom]
    alert = {
        "status": "firing",
        "labels": {"alertname": f"{symptom}SLOViolated", "service": target["node"], "severity": "critical"},
        "annotations": {"summary": f"{target['node']}: {summary}"},
        "startsAt": utc(target["timestamp"]),
    }
    (folder / "alert.json").write_text(json.dumps({"version": "4", "status": "firing", "alerts": [alert]}))


def utc(seconds):
    import datetime

    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def ranked_services(binary, folder, target, via):
    """Services in the order of likelihood, each once."""
    if via == "diagnose":
        document = run([binary, "diagnose", "--incident", folder, "--offline", "--json"])
        services = [hypothesis["service"] for hypothesis in document["hypotheses"]]
    else:
        arguments = {
            "show": "services",
            "alert_at": utc(target["timestamp"]),
            "alerting_service": target["node"],
            "symptom": "latency" if target["metric"] == "latency" else "errors",
        }
        command = [binary, "tools", "call", "discover_metrics", json.dumps(arguments), "--incident", folder, "--json"]
        services = list(find_services(run(command)))
    return list(dict.fromkeys(service for service in services if service))


def find_services(value):
    """The `service` of every ranked service in a document, in order."""
    if isinstance(value, dict):
        if value.get("type") == "ranked_service":
            yield value["service"]
        for part in value.values():
            yield from find_services(part)
    elif isinstance(value, list):
        for part in value:
            yield from find_services(part)


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode not in (0, 3):
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--via", choices=["diagnose", "tool"], default="diagnose")
    parser.add_argument("--history", type=int, default=60)
    parser.add_argument("--hide-names", metavar="SEED")
    parser.add_argument("--keep", type=pathlib.Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        measure(arguments, arguments.keep or pathlib.Path(scratch))


def measure(arguments, scratch):
    places = []
    for target_path in sorted(arguments.data.glob("*/*/issue_*/target.json")):
        issue_folder, scenario = target_path.parent, target_path.parents[2]
        noissue = scenario / "noissue" / "metrics.csv"
        # Where a scenario has no normal operation of its own, that under low traffic stands in.
        normal = noissue if noissue.exists() else arguments.data / "low_traffic" / "noissue" / "metrics.csv"
        label = json.loads(target_path.read_text())
        graph = read_graph(scenario / "graph.csv")
        tables = [read_metrics(normal), read_metrics(issue_folder / "metrics.csv")]
        if arguments.hide_names:
            graph, tables, label = hide_names(graph, tables, label, arguments.hide_names)
        target, cause = label["target"], label["root_cause"]["node"]
        folder = scratch / scenario.name / issue_folder.parent.name / issue_folder.name
        write_incident(folder, graph, *tables, target, arguments.history)
        services = ranked_services(arguments.binary, folder, target, arguments.via)
        place = services.index(cause) + 1 if cause in services else None
        places.append(place)
        print(f"{scenario.name:18} {issue_folder.name:9} {target['metric']:13} place {place}  first: {services[:1]}")
    if not places:
        sys.exit(f"{arguments.data}: no */*/issue_*/target.json in it")
    for k in (1, 3):
        hits = sum(place is not None and place <= k for place in places)
        print(f"AC@{k} {hits / len(places):.3f}  ({hits} of {len(places)})")


if __name__ == "__main__":
    main()
