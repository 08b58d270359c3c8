"""Writes examples/order-service: a database connection pool that runs dry (see its README.md).

Metrics and logs come from one simulation of requests, so that they agree. The figures of the alert are checked with
the arithmetic of PromQL before anything is written.
"""

import os
import random

import alerts
import kube
from clock import parse_arguments
from folder import Folder
from logs import Logs
from metrics import Metrics, line, ratio, wave
from order_service_load import PATHS, PODS, error_share, simulate_orders
from order_service_logs import order_logs, other_logs

HERE = os.path.dirname(os.path.abspath(__file__))
POOL = 20
EXPRESSION = (
    'sum by (service) (rate(http_requests_total{service="order-service",status=~"5.."}[1m]))'
    ' / sum by (service) (rate(http_requests_total{service="order-service"}[1m])) * 100 > 5'
)
TOPOLOGY = {
    "api-gateway": ["order-service", "user-service", "inventory-service"],
    "order-service": ["inventory-service", "payment-service", "postgres", "redis"],
    "payment-service": ["postgres"],
    "inventory-service": ["postgres", "redis"],
    "user-service": ["postgres", "redis"],
}


def order_metrics(metrics, clock, requests):
    for pod in PODS:
        labels = {"service": "order-service", "pod": pod}
        mine = [request for request in requests if request.pod == pod]
        for method, path, _ in PATHS:
            for status in ("201" if method == "POST" else "200", "404", "500"):
                times = sorted(r.at + r.seconds for r in mine if (r.method, r.path, r.status) == (method, path, status))
                full = {**labels, "method": method, "path": path, "status": status}
                metrics.counter_of("http_requests", full, times, "Requests answered, by status.")
        pool_metrics(metrics, clock, labels)
    events = sorted((r.at + r.seconds, r.seconds) for r in requests)
    metrics.histogram_of("http_request_duration_seconds", {"service": "order-service"}, events, "Time to answer.")


def pool_metrics(metrics, clock, labels):
    """HikariCP as Micrometer names it."""
    full = {**labels, "pool": "HikariPool-1"}
    at = clock.at
    active = line(
        (at("14:20"), 6.0),
        (at("14:22"), 9.0),
        (at("14:23"), 17.0),
        (at("14:26"), 19.6),
        (at("14:27"), 20.6),
        (at("14:32"), 20.6),
        (at("14:33"), 19.8),
        (at("14:40"), 18.6),
        (at("14:45"), 17.6),
    )
    pending = line(
        (at("14:22"), 0.0),
        (at("14:23"), 1.5),
        (at("14:27"), 6.0),
        (at("14:28:30"), 17.0),
        (at("14:31:50"), 21.0),
        (at("14:32:30"), 7.0),
        (at("14:45"), 2.6),
    )
    noisy = lambda value: lambda t: min(POOL, round(value(t) + metrics.rng.gauss(0, 0.8)))
    metrics.gauge("hikaricp_connections_active", full, noisy(active), "Connections in use.", digits=0)
    metrics.gauge(
        "hikaricp_connections_idle", full, lambda t: max(0, POOL - round(active(t))), "Idle connections.", digits=0
    )
    metrics.gauge(
        "hikaricp_connections_pending",
        full,
        lambda t: max(0, round(pending(t) + metrics.rng.gauss(0, 0.6) * (pending(t) > 1))),
        "Threads that wait for a connection.",
        digits=0,
    )
    metrics.gauge("hikaricp_connections_max", full, POOL, "Size of the pool.", digits=0, step=60)
    timeouts = lambda t: error_share(clock)(t) * 5.6 / 3 * 1.4
    metrics.counter("hikaricp_connections_timeout", full, timeouts, "Waits that ended in a time-out.", start=3)
    busy = line(
        (at("14:22"), 14.0), (at("14:23"), 40.0), (at("14:28"), 96.0), (at("14:32"), 104.0), (at("14:33"), 60.0)
    )
    metrics.gauge("tomcat_threads_busy_threads", labels, busy, "Busy request threads (of 200).", noise=0.1, digits=0)
    metrics.gauge(
        "jvm_memory_used_bytes",
        {**labels, "area": "heap"},
        wave(4.1e8, 0.2, 600, len(labels["pod"])),
        "Heap in use.",
        0.03,
        0,
    )


def other_metrics(metrics, clock):
    """The rest of the shop: healthy but for what the README names as a red herring."""
    at, rng = clock.at, metrics.rng
    shops = [("api-gateway", 11.0), ("user-service", 7.5), ("inventory-service", 6.2), ("payment-service", 1.6)]
    for service, load in shops:
        labels = {"service": service, "pod": f"{service}-{rng.randrange(16**6):06x}-{rng.randrange(16**5):05x}"}
        for status, share in (("200", 0.989), ("404", 0.0105), ("500", 0.0005)):
            metrics.counter(
                "http_requests",
                {**labels, "method": "GET", "path": "/", "status": status},
                lambda t, share=share: wave(load, 0.12)(t) * share,
                "Requests answered, by status.",
                step=30,
            )
        extra = (lambda t: error_share(clock)(t) * 5.6) if service == "api-gateway" else 0.0
        metrics.counter(
            "http_requests",
            {**labels, "method": "GET", "path": "/", "status": "502"},
            extra,
            "Requests answered, by status.",
            noise=0.02,
            start=41,
            step=30,
        )
        slow = (
            line((at("14:22"), 0.09), (at("14:28"), 0.9), (at("14:32"), 1.1), (at("14:33"), 0.4))
            if service == "api-gateway"
            else 0.06
        )
        metrics.gauge(
            "http_request_duration_p95_seconds", labels, slow, "95th percentile of the last minute.", 0.08, step=30
        )
    for pod, service, cores in [(pod, "order-service", 0.21) for pod in PODS] + [(f"{s}-0", s, 0.18) for s, _ in shops]:
        labels = {"service": service, "pod": pod, "container": service}
        level = wave(cores, 0.15)
        if service == "payment-service":
            # A reconciliation job, over long before the trouble.
            bump = line((at("13:40"), 0.0), (at("13:42"), 0.55), (at("13:55"), 0.55), (at("13:57"), 0.0))
            level = lambda t, bump=bump: wave(cores, 0.15)(t) + bump(t)
        metrics.counter(
            "container_cpu_usage_seconds", labels, level, "Processor time.", start=5000.0, digits=2, step=30
        )
        metrics.gauge("container_memory_working_set_bytes", labels, wave(6.2e8, 0.03), "Working set.", 0.01, 0, step=30)
        metrics.counter("kube_pod_container_status_restarts", labels, 0.0, "Restarts.", start=0, step=60)
    for service, count in (("order-service", 3), *[(s, 1) for s, _ in shops]):
        metrics.gauge(
            "kube_deployment_status_replicas_available",
            {"deployment": service},
            count,
            "Ready replicas.",
            digits=0,
            step=60,
        )
    for node in ("node-a", "node-b", "node-c"):
        metrics.gauge("node_load1", {"node": node}, wave(2.1, 0.2), "Load.", 0.08, 2, step=60)
        metrics.gauge(
            "node_memory_MemAvailable_bytes", {"node": node}, wave(1.7e10, 0.03), "Memory left.", 0.01, 0, step=60
        )


def database_metrics(metrics, clock):
    """Postgres and redis answer as always; only the number of open sessions follows the pool."""
    at, db = clock.at, {"instance": "postgres-0:9187", "datname": "shop"}
    held = line(
        (at("14:22"), 1.0),
        (at("14:23"), 9.0),
        (at("14:27"), 33.0),
        (at("14:32"), 36.0),
        (at("14:33"), 22.0),
        (at("14:45"), 16.0),
    )
    metrics.gauge("pg_up", {"instance": "postgres-0:9187"}, 1, "Whether postgres answers.", digits=0, step=60)
    metrics.gauge("pg_settings_max_connections", {"instance": "postgres-0:9187"}, 300, "Limit.", digits=0, step=60)
    metrics.gauge("pg_stat_activity_count", {**db, "state": "active"}, wave(9, 0.1), "Sessions.", 0.15, 0, step=30)
    metrics.gauge("pg_stat_activity_count", {**db, "state": "idle"}, wave(84, 0.02), "Sessions.", 0.03, 0, step=30)
    metrics.gauge("pg_stat_activity_count", {**db, "state": "idle in transaction"}, held, "Sessions.", 0.08, 0, step=30)
    metrics.gauge("pg_locks_count", {**db, "mode": "rowexclusivelock"}, wave(12, 0.2), "Locks held.", 0.2, 0, step=30)
    metrics.counter("pg_stat_database_xact_commit", db, wave(62, 0.1), "Commits.", 0.05, step=30)
    metrics.counter("pg_stat_database_deadlocks", db, 0.0, "Deadlocks.", start=2, step=60)
    metrics.gauge(
        "pg_stat_statements_mean_exec_milliseconds", db, wave(2.3, 0.06), "Mean statement time.", 0.06, 2, step=30
    )
    metrics.counter(
        "process_cpu_seconds", {"instance": "postgres-0:9187"}, 0.6, "Processor time.", start=9000.0, digits=2, step=30
    )
    metrics.gauge("redis_up", {"instance": "redis-0:9121"}, 1, "Whether redis answers.", digits=0, step=60)
    metrics.gauge("redis_connected_clients", {"instance": "redis-0:9121"}, wave(46, 0.05), "Clients.", 0.04, 0, step=60)
    metrics.gauge(
        "redis_memory_used_bytes", {"instance": "redis-0:9121"}, wave(3.1e8, 0.01), "Memory.", 0.005, 0, step=60
    )


def status(folder, clock):
    at, shop = clock.at, "shop"
    week = at("09:00", -6)
    image = "registry.shop.example/order-service:3.12.0"
    pods = [
        kube.pod(shop, pod, "order-service", "order-service-6c9f7d5b84", image, f"node-{'abc'[i]}", week)
        for i, pod in enumerate(PODS)
    ]
    deployments = [kube.deployment(shop, "order-service", image, 3, at("09:00", -90), revision=31)]
    sets = [kube.replica_set(shop, "order-service", "6c9f7d5b84", image, 3, 3, week, 31)]
    for service, tag, digest, since in (
        ("api-gateway", "1.44.2", "5d8c6b7f9d", week),
        ("user-service", "2.8.1", "79b4c8d6c5", at("13:31")),
        ("inventory-service", "4.0.7", "66fd9c7b4b", week),
        ("payment-service", "1.19.3", "7f5b6d9c88", week),
    ):
        name = f"registry.shop.example/{service}:{tag}"
        pods.append(kube.pod(shop, f"{service}-{digest}-q4x7z", service, f"{service}-{digest}", name, "node-b", since))
        deployments.append(kube.deployment(shop, service, name, 1, at("09:00", -90), revision=12))
        sets.append(kube.replica_set(shop, service, digest, name, 1, 1, since, 12))
    sets.append(
        kube.replica_set(shop, "user-service", "6dd5b9d7f4", "registry.shop.example/user-service:2.8.0", 0, 0, week, 11)
    )
    events = [
        kube.event(
            shop,
            "Deployment",
            "user-service",
            "Normal",
            "ScalingReplicaSet",
            "Scaled up replica set user-service-79b4c8d6c5 to 1",
            at("13:31"),
        ),
        kube.event(
            shop,
            "Pod",
            "user-service-79b4c8d6c5-q4x7z",
            "Normal",
            "Started",
            "Started container user-service",
            at("13:31:06"),
        ),
        kube.event(
            shop,
            "CronJob",
            "report-mailer",
            "Normal",
            "SawCompletedJob",
            "Saw completed job: report-mailer-29543",
            at("14:10"),
        ),
    ]
    folder.json("status/pods.json", kube.items(pods))
    folder.json("status/deployments.json", kube.items(deployments))
    folder.json("status/replicasets.json", kube.items(sets))
    folder.json("status/events.json", kube.items(events))
    folder.json("status/nodes.json", kube.items([kube.node(f"node-{x}", at("09:00", -200)) for x in "abc"]))


def check(metrics, clock, logs):
    """The figures that the story promises, as PromQL computes them. Gives the value that the alert reports."""
    every = metrics.series("http_requests_total", service="order-service")
    failed = metrics.series("http_requests_total", service="order-service", status="500")
    share = lambda t, window: 100 * ratio(failed, every, t, window)
    at = clock.at
    value = share(at("14:30"), 60)
    assert 22.5 <= value < 23.5, value
    before = [share(at("13:00") + 15 * i, 300) for i in range(353)]  # to 14:28:00
    assert max(before) < 1, max(before)
    course = [share(at("14:28") + 15 * i, 300) for i in range(69)]  # 14:28 to 14:45
    peak = max(course)
    assert 17.5 <= peak < 18.5 and 17.5 <= share(at("14:32"), 300) < 18.5, (peak, share(at("14:32"), 300))
    assert course.index(peak) <= 18, course.index(peak)
    assert all(later < earlier + 0.4 for earlier, later in zip(course[18:], course[19:]))
    assert share(at("14:45"), 300) < 3
    for text in ("connection pool timeout", "failed to connect to database"):
        assert logs.count(text, at("14:23"), at("14:45")) > 120, text
        assert logs.count(text, 0, at("14:23")) == 0, text
    return value


def alert(folder, clock, value):
    labels = {
        "alertname": "http_requests_error_rate",
        "service": "order-service",
        "namespace": "shop",
        "severity": "critical",
        "cluster": "prod-sh",
    }
    annotations = {
        "summary": f"order-service answers {value:.0f}% of its requests with an error",
        "description": f"http_requests_error_rate of order-service is {value:.0f}% over the last minute (threshold 5%).",
        "runbook_url": "https://runbooks.shop.example/order-service/error-rate",
    }
    group = {"alertname": labels["alertname"], "service": "order-service"}
    folder.json(
        "alert.json",
        alerts.alertmanager_webhook([(labels, annotations, clock.at("14:30"), EXPRESSION)], group, "oncall-shop"),
    )


# Seeds that are tried.
SEEDS = 30


def story(clock, seed):
    """Requests, metrics and logs, and the value that the alert reports. Noise that tells another story is refused."""
    rng, start, since = random.Random(seed), clock.at("11:45"), clock.at("13:45")
    requests = simulate_orders(clock, rng, start)
    metrics, logs = Metrics(rng, start, clock.now), Logs()
    order_metrics(metrics, clock, requests)
    other_metrics(metrics, clock)
    database_metrics(metrics, clock)
    order_logs(logs, clock, rng, requests, since)
    other_logs(logs, clock, rng, requests, since)
    return metrics, logs, check(metrics, clock, logs)


def main():
    clock, out = parse_arguments(
        __doc__.splitlines()[0], "2026-03-04T14:45:00+08:00", os.path.join(HERE, "..", "order-service")
    )
    # At another time of day the same noise falls otherwise: the first seed is used whose figures are the story's.
    for seed in range(20260304, 20260304 + SEEDS):
        try:
            metrics, logs, value = story(clock, seed)
            break
        except AssertionError:
            if seed == 20260304 + SEEDS - 1:
                raise

    folder = Folder(out)
    alert(folder, clock, value)
    folder.incident(clock, "order-service: connection pool", "Asia/Shanghai", TOPOLOGY)
    metrics.write(
        folder,
        [
            ("databases.om", ("pg_", "redis_", "process_")),
            ("cluster.om", ("kube_", "node_", "container_")),
            ("services.om", ()),
        ],
    )
    logs.write(folder)
    status(folder, clock)
    folder.json_lines(
        "changes.jsonl",
        [
            {
                "time": clock.rfc3339(clock.at("13:31")),
                "service": "user-service",
                "kind": "deploy",
                "summary": "user-service 2.8.0 -> 2.8.1 (login history page)",
            },
            {
                "time": clock.rfc3339(clock.at("12:10")),
                "service": "api-gateway",
                "kind": "config",
                "summary": "api-gateway: access log sampling 50% -> 100%",
            },
        ],
    )
    folder.expected(
        "db_connection_pool_exhausted",
        "order-service",
        ["connection pool timeout", "hikaricp_connections"],
        ["crash_loop", "oom_killed", "bad_deployment", "db_unavailable"],
    )


if __name__ == "__main__":
    main()
