"""Writes examples/oom-rollout: a release whose cache does not fit into its memory limit (see its README.md)."""

import os
import random

import background
import kube
from background import Cluster, Service
from clock import parse_arguments, utc
from folder import Folder
from logs import Logs, bracketed, json_line, logfmt, pino
from metrics import Metrics, line, wave

HERE = os.path.dirname(os.path.abspath(__file__))
LIMIT = 768 * 1024 * 1024
IMAGE = "registry.shop.example/catalog-service:"
# Seconds until a pod is ready: it fills its cache first.
WARM_UP = 205
# When each pod of the new release was killed; the last one waits in CrashLoopBackOff.
KILLS = {
    "catalog-service-5f7d9c6b8d-4xkqp": ["20:51:20", "20:59:05", "21:07:10"],
    "catalog-service-5f7d9c6b8d-8mz2t": ["20:53:10", "21:01:40", "21:10:20"],
    "catalog-service-5f7d9c6b8d-tq7vd": ["20:54:30", "21:02:20", "21:09:40"],
}
STARTS = {name: start for name, start in zip(KILLS, ("20:42:05", "20:43:20", "20:44:35"))}
TOPOLOGY = {
    "storefront-bff": ["catalog-service", "cart-service", "search-service"],
    "search-service": ["catalog-service", "opensearch"],
    "catalog-service": ["mongodb", "redis"],
    "cart-service": ["redis"],
}


def lives(clock, pod):
    """The runs of a pod of the new release: `(start, end)`, the end `None` while it runs or waits."""
    runs, start = [], clock.at(STARTS[pod])
    for index, kill in enumerate(KILLS[pod]):
        runs.append((start, clock.at(kill)))
        # The kubelet waits 10 s, 20 s, then 40 s before it starts the container again.
        start = clock.at(kill) + (12, 24, 44)[index]
    if start < clock.now and pod != "catalog-service-5f7d9c6b8d-8mz2t":
        runs.append((start, None))
    return runs


def running(clock, pod, t):
    """Seconds since the container's start, or `None` while it does not run."""
    return next((t - start for start, end in lives(clock, pod) if start <= t and (end is None or t < end)), None)


def ready_share(clock):
    return lambda t: sum((running(clock, pod, t) or 0) > WARM_UP for pod in KILLS) / 3 if t > clock.at("20:49") else 1.0


def old_pods(clock):
    return {
        f"catalog-service-84c5b7f6d9-{suffix}": clock.at(end)
        for suffix, end in (("b2kfn", "20:45:40"), ("j9xwd", "20:46:55"), ("mm4hs", "20:48:10"))
    }


def catalog_metrics(metrics, clock):
    runs = {**{pod: None for pod in KILLS}, **old_pods(clock)}
    for pod, end in runs.items():
        labels = {"namespace": "shop", "pod": pod, "container": "catalog-service"}
        age = (
            (lambda t, pod=pod: running(clock, pod, t))
            if end is None
            else (lambda t, end=end: 9000.0 if t < end else None)
        )
        fresh = end is None
        # The warm-up loads 2,000,000 entries instead of 150,000; the process dies at the limit.
        grown = line((0, 9e7), (40, 2.9e8), (300, 5.6e8), (480, 7.9e8)) if fresh else line((0, 3.4e8))
        level = lambda t: None if age(t) is None else min(grown(age(t)), LIMIT * 0.996)
        metrics.gauge("container_memory_working_set_bytes", labels, level, "Working set.", 0.004, 0)
        metrics.gauge(
            "container_spec_memory_limit_bytes",
            labels,
            lambda t: None if age(t) is None else LIMIT,
            "Limit.",
            digits=0,
            step=60,
        )
        heap = lambda t: None if age(t) is None else min(grown(age(t)), LIMIT) * 0.78
        metrics.gauge(
            "nodejs_heap_size_used_bytes",
            {"service": "catalog-service", "pod": pod},
            heap,
            "Heap in use.",
            0.02,
            0,
            step=30,
        )
        if fresh:
            restart_metrics(metrics, clock, labels, pod)
    metrics.gauge(
        "kube_deployment_spec_replicas",
        {"namespace": "shop", "deployment": "catalog-service"},
        3,
        "Wanted replicas.",
        digits=0,
        step=30,
    )
    metrics.gauge(
        "kube_deployment_status_replicas_available",
        {"namespace": "shop", "deployment": "catalog-service"},
        lambda t: round(3 * ready_share(clock)(t)),
        "Ready replicas.",
        digits=0,
        step=30,
    )
    for status, rate in (("200", lambda t: 24 * ready_share(clock)(t)), ("500", 0.01)):
        metrics.counter(
            "http_requests",
            {"service": "catalog-service", "status": status},
            rate,
            "Requests answered, by status.",
            0.05,
        )


def restart_metrics(metrics, clock, labels, pod):
    kills = [clock.at(kill) for kill in KILLS[pod]]
    born = clock.at(STARTS[pod])
    again = [start for start, _ in lives(clock, pod)[1:]]
    metrics.counter_of("kube_pod_container_status_restarts", labels, again, "Restarts.", start=0, step=30, since=born)
    reason = {**labels, "reason": "OOMKilled"}
    metrics.gauge(
        "kube_pod_container_status_last_terminated_reason",
        reason,
        lambda t: 1 if t > kills[0] else None,
        "Why it ended.",
        digits=0,
        step=30,
    )
    metrics.gauge(
        "kube_pod_container_resource_limits",
        {**labels, "resource": "memory", "unit": "byte"},
        lambda t: LIMIT if t > born else None,
        "Limits.",
        digits=0,
        step=60,
    )


def catalog_logs(logs, clock, rng):
    for pod in KILLS:
        file = f"catalog-service/{pod}.log.gz"
        for start, end in lives(clock, pod):
            for after, message in (
                (1.1, "starting catalog-service 2.15.0 (node v22.11.0)"),
                (1.9, "cache: policy=all-variants maxEntries=2000000"),
                (2.4, "mongodb connected"),
                (3.0, "listening on :8080"),
                (WARM_UP - 1.0, "cache warm-up: 800000 entries loaded, accepting requests"),
            ):
                if start + after < (end or clock.now):
                    logs.add(file, start + after, pino(start + after, "info", message, svc="catalog-service"))
            requests(logs, rng, file, start + WARM_UP, end or clock.now, 2.2)
    for pod, end in old_pods(clock).items():
        requests(logs, rng, f"catalog-service/{pod}.log.gz", clock.at("20:12"), end, 2.2)
        logs.add(
            f"catalog-service/{pod}.log.gz",
            end,
            pino(end, "info", "SIGTERM received, closing server", svc="catalog-service"),
        )


def requests(logs, rng, file, start, end, rate):
    t = start
    while (t := t + rng.expovariate(rate)) < end:
        logs.add(
            file,
            t,
            pino(
                t,
                "info",
                "request completed",
                method="GET",
                url=f"/products/{rng.randrange(1, 60000)}",
                status=200,
                ms=rng.randrange(4, 40),
            ),
        )


def caller_logs(logs, clock, rng):
    """What the callers say: refused and reset connections, never the reason."""
    share, addresses = ready_share(clock), ["10.42.1.63", "10.42.2.87", "10.42.0.141"]
    t = clock.at("20:12")
    while (t := t + rng.expovariate(5.0)) < clock.now:
        sku, target = rng.randrange(1, 60000), f"{rng.choice(addresses)}:8080"
        failed = rng.random() > share(t) + 0.12 and rng.random() < 0.6
        if rng.random() < 0.72:
            if failed:
                error = rng.choice(
                    [
                        f"dial tcp {target}: connect: connection refused",
                        f"read tcp 10.42.3.9:41876->{target}: read: connection reset by peer",
                    ]
                )
                logs.add(
                    "storefront-bff/storefront-bff.log.gz",
                    t,
                    logfmt(t, "error", "catalog lookup failed", sku=sku, error=error),
                )
            else:
                logs.add(
                    "storefront-bff/storefront-bff.log.gz",
                    t,
                    logfmt(t, "info", "page served", route="/p/:sku", sku=sku, ms=rng.randrange(20, 140)),
                )
        elif failed:
            logs.add(
                "search-service/search-service.log.gz",
                t,
                bracketed(
                    clock,
                    t,
                    "ERROR",
                    "search.enrich",
                    f"enrichment of sku {sku} failed: ('Connection aborted.', ConnectionResetError(104, 'Connection reset by peer'))",
                ),
            )
        else:
            logs.add(
                "search-service/search-service.log.gz",
                t,
                bracketed(
                    clock,
                    t,
                    "INFO",
                    "search.query",
                    f"query served hits={rng.randrange(0, 400)} took={rng.randrange(9, 80)}ms",
                ),
            )
    while (t := t - rng.expovariate(1.2)) > clock.at("20:12"):
        logs.add(
            "cart-service/cart-service.log.gz",
            t,
            json_line(t, "info", "cart updated", cart=f"{rng.randrange(16**8):08x}", items=rng.randrange(1, 9)),
        )
    for time, ms in (("20:33:10", 1630), ("20:48:02", 1844), ("21:05:27", 1702)):
        logs.add(
            "cart-service/cart-service.log.gz",
            clock.at(time),
            json_line(clock.at(time), "warn", "slow redis command", command="HGETALL", ms=ms),
        )


def catalog_status(cluster, clock):
    born, at = clock.at("09:00", -120), clock.at
    for index, pod in enumerate(KILLS):
        runs = lives(clock, pod)
        current = runs[-1] if runs[-1][1] is None else None
        ended = [run for run in runs if run[1] is not None][-1]
        dead = {
            "terminated": {
                "exitCode": 137,
                "reason": "OOMKilled",
                "startedAt": kube.when(ended[0]),
                "finishedAt": kube.when(ended[1]),
            }
        }
        backoff = {
            "waiting": {
                "reason": "CrashLoopBackOff",
                "message": f"back-off 40s restarting failed container=catalog-service pod={pod}_shop",
            }
        }
        ready = current is not None and clock.now - current[0] > WARM_UP
        container = {
            "restartCount": len(KILLS[pod]) - (current is None),
            "ready": ready,
            "started": current is not None,
            "lastState": dead,
            "state": {"running": {"startedAt": kube.when(current[0])}} if current else backoff,
        }
        cluster.pods.append(
            kube.pod(
                "shop",
                pod,
                "catalog-service",
                "catalog-service-5f7d9c6b8d",
                IMAGE + "2.15.0",
                f"node-{'abc'[index]}",
                at(STARTS[pod]),
                container,
                ready,
                memory="768Mi",
            )
        )
        for kill in KILLS[pod]:
            cluster.events.append(
                kube.event(
                    "default",
                    "Node",
                    f"node-{'abc'[index]}",
                    "Warning",
                    "OOMKilling",
                    f"Memory cgroup out of memory: Killed process {21000 + int(at(kill)) % 900} (node) total-vm:24117248kB, anon-rss:771204kB",
                    at(kill),
                )
            )
        cluster.events.append(
            kube.event(
                "shop",
                "Pod",
                pod,
                "Warning",
                "BackOff",
                f"Back-off restarting failed container catalog-service in pod {pod}",
                at(KILLS[pod][0]) + 2,
                at(KILLS[pod][-1]) + 2,
                9,
            )
        )
    ready = sum(pod["status"]["containerStatuses"][0]["ready"] for pod in cluster.pods)
    conditions = [
        kube.condition(
            "Available",
            "False",
            at("20:59:10"),
            "MinimumReplicasUnavailable",
            "Deployment does not have minimum availability.",
        ),
        kube.condition(
            "Progressing",
            "True",
            at("20:45:10"),
            "NewReplicaSetAvailable",
            'ReplicaSet "catalog-service-5f7d9c6b8d" has successfully progressed.',
        ),
    ]
    cluster.deployments.append(
        kube.deployment("shop", "catalog-service", IMAGE + "2.15.0", 3, born, ready, 48, conditions=conditions)
    )
    cluster.sets.append(
        kube.replica_set("shop", "catalog-service", "5f7d9c6b8d", IMAGE + "2.15.0", 3, ready, at("20:42"), 48)
    )
    cluster.sets.append(
        kube.replica_set("shop", "catalog-service", "84c5b7f6d9", IMAGE + "2.14.3", 0, 0, at("11:20", -9), 47)
    )
    cluster.events.append(
        kube.event(
            "shop",
            "Deployment",
            "catalog-service",
            "Normal",
            "ScalingReplicaSet",
            "Scaled up replica set catalog-service-5f7d9c6b8d to 1",
            at("20:42"),
        )
    )
    cluster.events.append(
        kube.event(
            "shop",
            "HorizontalPodAutoscaler",
            "search-service",
            "Normal",
            "SuccessfulRescale",
            "New size: 2; reason: cpu resource utilization above target",
            at("20:20"),
        )
    )


def pagerduty(clock):
    """A PagerDuty v3 webhook, as its Prometheus integration words it."""
    reference = lambda kind, id, summary: {
        "id": id,
        "type": f"{kind}_reference",
        "summary": summary,
        "self": f"https://api.pagerduty.com/{kind}s/{id}",
        "html_url": f"https://shop.pagerduty.com/{kind}s/{id}",
    }
    return {
        "event": {
            "id": "01DQ7X2M5T3JHNPS8ZB4K6VW1C",
            "event_type": "incident.triggered",
            "resource_type": "incident",
            "occurred_at": utc(clock.at("21:04:30")),
            "agent": reference("service", "PC4TLG9", "catalog-service"),
            "client": None,
            "data": {
                "id": "Q1VRN2X8KD04ZT",
                "type": "incident",
                "number": 4182,
                "status": "triggered",
                "urgency": "high",
                "self": "https://api.pagerduty.com/incidents/Q1VRN2X8KD04ZT",
                "html_url": "https://shop.pagerduty.com/incidents/Q1VRN2X8KD04ZT",
                "created_at": utc(clock.at("21:04:30"), "seconds"),
                "title": "[FIRING:1] DeploymentReplicasUnavailable catalog-service (shop critical): fewer than 3 of 3 replicas available for 5 minutes",
                "service": reference("service", "PC4TLG9", "catalog-service"),
                "assignees": [reference("user", "PU71QZA", "Sam Okafor")],
                "escalation_policy": reference("escalation_policy", "PEP22KX", "shop backend"),
                "teams": [],
                "priority": {"id": "PP1", "type": "priority_reference", "summary": "P1"},
                "conference_bridge": None,
                "resolve_reason": None,
                "body": {
                    "type": "incident_body",
                    "details": 'kube_deployment_status_replicas_available{namespace="shop",deployment="catalog-service"} is 1, threshold 3',
                },
            },
        }
    }


def main():
    clock, out = parse_arguments(
        __doc__.splitlines()[0], "2026-05-18T21:12:00+02:00", os.path.join(HERE, "..", "oom-rollout")
    )
    rng, week = random.Random(20260518), clock.at("09:00", -5)
    bff, search, cart = (
        Service(name, pods, f"registry.shop.example/{name}:{tag}", digest, week, load)
        for name, pods, tag, digest, load in (
            ("storefront-bff", 2, "7.3.1", "6b9d8f7c5f", 30.0),
            ("search-service", 2, "3.9.0", "75c8d4b6f7", 14.0),
            ("cart-service", 2, "1.22.5", "58d7b9c4c8", 9.0),
        )
    )
    metrics, logs, cluster = Metrics(rng, clock.at("19:00"), clock.now, 30), Logs(), Cluster(clock)
    catalog_metrics(metrics, clock)
    lost = lambda factor: lambda t: (1 - ready_share(clock)(t)) * factor
    background.traffic(metrics, bff, lost(0.38))
    background.traffic(metrics, search, lost(0.2), "500")
    background.traffic(metrics, cart)
    for service, cores in ((bff, 0.3), (search, 0.42), (cart, 0.12)):
        background.containers(metrics, service, cores)
        background.replicas(metrics, service)
        cluster.healthy(service)
    # Red herring: node-b is busy with a backup in the very minutes.
    busy = line((clock.at("20:48"), 2.0), (clock.at("20:50"), 6.6), (clock.at("21:06"), 6.4), (clock.at("21:08"), 2.2))
    background.nodes(
        metrics, ["node-a", "node-b", "node-c"], lambda node, t: busy(t) if node == "node-b" else wave(2.1, 0.2)(t)
    )
    catalog_status(cluster, clock)
    catalog_logs(logs, clock, rng)
    caller_logs(logs, clock, rng)

    folder = Folder(out)
    folder.json("alert.json", pagerduty(clock))
    folder.incident(clock, "catalog-service: rollout killed for memory", "Europe/Berlin", TOPOLOGY)
    metrics.write(folder, [("cluster.om", ("kube_", "node_", "container_")), ("services.om", ())])
    logs.write(folder)
    cluster.write(folder)
    change = lambda time, service, kind, summary: {
        "time": clock.rfc3339(clock.at(time)),
        "service": service,
        "kind": kind,
        "summary": summary,
    }
    folder.json_lines(
        "changes.jsonl",
        [
            change("20:20", "search-service", "scale", "search-service 1 -> 2 replicas (autoscaler)"),
            change(
                "20:42",
                "catalog-service",
                "deploy",
                "catalog-service 2.14.3 -> 2.15.0: keep all variants in the in-process cache",
            ),
            change("21:02", "storefront-bff", "config", "storefront-bff: catalog time-out 800ms -> 1500ms"),
        ],
    )
    folder.expected(
        "oom_killed", "catalog-service", ["OOMKilled", "2.15.0"], ["db_unavailable", "node_not_ready", "cpu_saturation"]
    )


if __name__ == "__main__":
    main()
