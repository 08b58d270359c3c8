"""Writes examples/expired-certificate: a certificate that ran out two hops behind the alert (see its README.md)."""

import os
import random

import background
import kube
from background import Cluster, Service
from clock import parse_arguments, utc
from folder import Folder
from logs import Logs, json_line, logback, logfmt, nginx_access, nginx_error
from metrics import Metrics, line, ratio, wave

HERE = os.path.dirname(os.path.abspath(__file__))
# 网关 → 订单中心 → 支付网关：the certificate of the last one ends at this time of day.
EXPIRY = "10:00"
TOPOLOGY = {
    "mall-gateway": ["order-center", "member-center", "goods-center"],
    "order-center": ["pay-gateway", "goods-center", "mysql-order"],
    "pay-gateway": ["bank-channel", "mysql-pay"],
    "member-center": ["mysql-order", "redis"],
    "goods-center": ["redis"],
}
EXPRESSION = (
    'sum by (service) (rate(http_requests_total{service="mall-gateway",status="502"}[5m]))'
    ' / sum by (service) (rate(http_requests_total{service="mall-gateway"}[5m])) > 0.05'
)
JAVA = (
    "javax.net.ssl.SSLHandshakeException: PKIX path validation failed: java.security.cert.CertPathValidatorException: validity check failed\n"
    "\tat java.base/sun.security.ssl.Alert.createSSLException(Alert.java:131)\n"
    "\tat java.base/sun.security.ssl.TransportContext.fatal(TransportContext.java:378)\n"
    "\tat com.mall.order.pay.PayGatewayClient.prepay(PayGatewayClient.java:74)\n"
    "Caused by: java.security.cert.CertificateExpiredException: NotAfter: {expiry}\n"
    "\tat java.base/sun.security.x509.CertificateValidity.valid(CertificateValidity.java:277)"
)


def services(clock):
    week = clock.at("09:00", -8)
    rows = (
        ("mall-gateway", 2, "2.31.0", "7c9f6b8d54", week, 26.0),
        ("order-center", 3, "5.8.2", "64d7f9b5c9", clock.at("09:37"), 9.0),
        ("pay-gateway", 2, "1.9.6", "55b8c7d6f4", clock.at("09:00", -93), 3.2),
        ("member-center", 2, "3.3.1", "6f5d8c9b7d", week, 8.0),
        ("goods-center", 2, "4.12.0", "7d4c5b9f86", week, 12.0),
    )
    return {
        name: Service(name, pods, f"harbor.mall.example/prod/{name}:{tag}", digest, since, load, namespace="prod")
        for name, pods, tag, digest, since, load in rows
    }


def failing(clock, share):
    """Kept-alive connections live on for a while; each new handshake fails."""
    return line(
        (clock.at("10:00"), 0.0),
        (clock.at("10:03"), share * 0.7),
        (clock.at("10:06"), share),
        (clock.at("10:25"), share),
    )


def certificate_metrics(metrics, clock):
    """The blackbox exporter's view of each TLS endpoint, and cert-manager's, which does not manage the one that ran out."""
    for name, days in (("pay-gateway", 0), ("bank-channel", 211), ("mall-gateway", 64)):
        labels = {"job": "blackbox-tls", "instance": f"{name}.prod.svc:8443"}
        expiry = clock.at(EXPIRY, days)
        metrics.gauge(
            "probe_ssl_earliest_cert_expiry",
            labels,
            expiry,
            "Unix time at which the certificate ends.",
            digits=0,
            step=60,
        )
        alive = (lambda t: 0 if t > clock.at(EXPIRY) else 1) if name == "pay-gateway" else 1
        metrics.gauge("probe_success", labels, alive, "Whether the probe succeeded.", digits=0, step=60)
    managed = {"name": "mall-gateway-tls", "namespace": "prod"}
    metrics.gauge(
        "certmanager_certificate_expiration_timestamp_seconds",
        managed,
        clock.at(EXPIRY, 64),
        "End of the certificate.",
        digits=0,
        step=60,
    )


def data_metrics(metrics, clock):
    """Databases and caches are well; the member cache is slower than usual, which it often is at this hour."""
    for name in ("mysql-order", "mysql-pay"):
        labels = {"instance": f"{name}:9104"}
        metrics.gauge("mysql_up", labels, 1, "Whether mysql answers.", digits=0, step=60)
        metrics.gauge("mysql_global_status_threads_running", labels, wave(7, 0.2), "Running threads.", 0.15, 0, step=30)
        metrics.gauge("mysql_global_status_threads_connected", labels, wave(96, 0.03), "Connections.", 0.02, 0, step=30)
        metrics.counter("mysql_global_status_slow_queries", labels, 0.004, "Slow queries.", 0.3, step=60)
    slower = line((clock.at("09:50"), 0.0006), (clock.at("09:56"), 0.0021), (clock.at("10:14"), 0.0019))
    metrics.gauge(
        "redis_command_duration_p99_seconds",
        {"instance": "redis-member:9121"},
        slower,
        "99th percentile.",
        0.07,
        6,
        step=30,
    )
    metrics.gauge("redis_up", {"instance": "redis-member:9121"}, 1, "Whether redis answers.", digits=0, step=60)


def gateway_logs(logs, clock, rng):
    """nginx in front of everything: an access log, and 502s that name order-center only."""
    share, t = failing(clock, 0.34), clock.at("09:25")
    while (t := t + rng.expovariate(7.0)) < clock.now:
        route, target = rng.choice(
            [
                ("POST /api/order/submit", "order-center"),
                ("GET /api/goods/list", "goods-center"),
                ("GET /api/order/list", "order-center"),
                ("GET /api/member/profile", "member-center"),
                ("GET /api/goods/detail", "goods-center"),
                ("POST /api/order/pay", "order-center"),
            ]
        )
        client, failed = (
            f"117.136.{rng.randrange(256)}.{rng.randrange(256)}",
            "POST" in route and rng.random() < share(t) * 2.2,
        )
        status, took = (502, 0.4 + rng.random()) if failed else (200, 0.01 + rng.random() * 0.15)
        logs.add(
            "mall-gateway/access.log.gz",
            t,
            nginx_access(
                clock, t, client, f"{route} HTTP/1.1", status, 157 if failed else rng.randrange(300, 9000), took, target
            ),
        )
        if failed and rng.random() < 0.5:
            logs.add(
                "mall-gateway/error.log",
                t,
                nginx_error(
                    clock,
                    t,
                    "error",
                    f'*{rng.randrange(10**6)} upstream 返回 502, 请求: "{route}", upstream: "http://order-center:8080"',
                ),
            )


def order_logs(logs, clock, rng, pods):
    share, expiry = failing(clock, 0.96), clock.text(clock.at(EXPIRY), "%a %b %d %H:%M:%S CST %Y")
    t = clock.at("09:25")
    while (t := t + rng.expovariate(4.0)) < clock.now:
        file, thread, order = (
            f"order-center/{rng.choice(pods)}.log.gz",
            f"http-nio-8080-exec-{rng.randrange(1, 120)}",
            rng.randrange(10**7, 10**8),
        )
        write = lambda level, logger, message: logs.add(file, t, logback(clock, t, level, thread, logger, message))
        draw = rng.random()
        if draw < 0.3 and rng.random() < share(t):
            write(
                "ERROR",
                "c.mall.order.pay.PayGatewayClient",
                f"调用支付网关失败, 订单号={order}, url=https://pay-gateway.prod.svc:8443/v2/prepay\n"
                + JAVA.replace("{expiry}", expiry),
            )
            if rng.random() < 0.4:
                write(
                    "WARN",
                    "c.mall.order.pay.PayService",
                    f"预支付失败, 订单号={order}, 稍后重试 (第 {rng.randrange(1, 4)} 次)",
                )
        elif draw < 0.3:
            write(
                "INFO", "c.mall.order.pay.PayService", f"预支付成功, 订单号={order}, 耗时 {rng.randrange(40, 190)} ms"
            )
        else:
            write(
                "INFO",
                "c.mall.order.api.OrderController",
                f"查询订单列表, 会员={rng.randrange(10**5, 10**6)}, 条数={rng.randrange(0, 20)}",
            )


def pay_logs(logs, clock, rng, pods):
    """A Go service: its side of the handshake is an `info` line of the HTTP server."""
    share, t = failing(clock, 0.96), clock.at("09:25")
    while (t := t + rng.expovariate(1.6)) < clock.now:
        file = f"pay-gateway/{rng.choice(pods)}.log.gz"
        if rng.random() < share(t):
            address = f"10.8.{rng.randrange(1, 4)}.{rng.randrange(10, 200)}:{rng.randrange(32768, 60999)}"
            logs.add(
                file,
                t,
                logfmt(t, "info", f"http: TLS handshake error from {address}: remote error: tls: certificate unknown"),
            )
        else:
            logs.add(
                file,
                t,
                logfmt(
                    t,
                    "info",
                    "预支付单已创建",
                    channel=rng.choice(["cmb", "icbc", "unionpay"]),
                    cost_ms=rng.randrange(30, 160),
                ),
            )
    for day_left, time in ((30, "09:26"), (30, "09:56")):
        logs.add(
            f"pay-gateway/{pods[0]}.log.gz",
            clock.at(time),
            logfmt(clock.at(time), "info", "渠道对账文件已拉取", channel="icbc", rows=18_000 + day_left),
        )


def other_logs(logs, clock, rng):
    t = clock.at("09:25")
    while (t := t + rng.expovariate(2.2)) < clock.now:
        if rng.random() < 0.5:
            logs.add(
                "goods-center/goods-center.log.gz",
                t,
                json_line(t, "info", "商品详情命中缓存", sku=rng.randrange(10**5, 10**6), ms=rng.randrange(1, 12)),
            )
        else:
            logs.add(
                "member-center/member-center.log.gz",
                t,
                json_line(t, "info", "会员等级已刷新", member=rng.randrange(10**5, 10**6)),
            )
    for time in ("09:52:11", "09:58:40", "10:03:05", "10:09:33", "10:13:20"):
        logs.add(
            "member-center/member-center.log.gz",
            clock.at(time),
            json_line(clock.at(time), "warn", "redis 响应慢", command="MGET", ms=rng.randrange(210, 330)),
        )
    for time in ("09:37:41", "09:38:20", "09:39:02"):
        logs.add(
            "mall-gateway/error.log",
            clock.at(time),
            nginx_error(
                clock,
                clock.at(time),
                "error",
                '*99121 connect() failed (111: Connection refused) while connecting to upstream, upstream: "http://order-center:8080"',
            ),
        )


def status(cluster, shop, clock):
    for service in shop.values():
        cluster.healthy(service)
    old = shop["order-center"]
    cluster.sets.append(
        kube.replica_set(
            "prod", "order-center", "5b7f8d6c44", old.image.replace("5.8.2", "5.8.1"), 0, 0, clock.at("09:00", -12), 11
        )
    )
    cluster.events.append(
        kube.event(
            "prod",
            "Deployment",
            "order-center",
            "Normal",
            "ScalingReplicaSet",
            "Scaled up replica set order-center-64d7f9b5c9 to 3",
            clock.at("09:37"),
        )
    )
    cluster.events.append(
        kube.event(
            "prod",
            "Pod",
            shop["goods-center"].pods[0],
            "Warning",
            "Unhealthy",
            "Readiness probe failed: HTTP probe failed with statuscode: 503",
            clock.at("09:12"),
        )
    )


def prometheus_alerts(clock, share):
    """The answer of Prometheus' `/api/v1/alerts`."""
    labels = {
        "alertname": "网关上游错误率过高",
        "service": "mall-gateway",
        "namespace": "prod",
        "severity": "critical",
        "team": "交易",
    }
    annotations = {
        "summary": f"mall-gateway 的 502 比例为 {share * 100:.1f}%，阈值 5%",
        "description": f"网关 mall-gateway 最近 5 分钟有 {share * 100:.1f}% 的请求返回 502，超过阈值 5%，下单和支付受影响。",
        "runbook_url": "https://wiki.mall.example/runbook/gateway-5xx",
        "query": EXPRESSION,
    }
    fired = {
        "labels": labels,
        "annotations": annotations,
        "state": "firing",
        "activeAt": utc(clock.at("10:05:30")),
        "value": f"{share:.6e}",
    }
    return {"status": "success", "data": {"alerts": [fired]}}


def main():
    clock, out = parse_arguments(
        __doc__.splitlines()[0], "2026-06-30T10:15:00+08:00", os.path.join(HERE, "..", "expired-certificate")
    )
    rng, shop = random.Random(20260630), services(clock)
    metrics, logs, cluster = Metrics(rng, clock.at("08:00"), clock.now, 30), Logs(), Cluster(clock, "prod")
    for name, share in (
        ("mall-gateway", 0.17),
        ("order-center", 0.3),
        ("pay-gateway", 0.0),
        ("member-center", 0.0),
        ("goods-center", 0.0),
    ):
        background.traffic(metrics, shop[name], failing(clock, share), "502" if name == "mall-gateway" else "500")
        background.containers(metrics, shop[name])
        background.replicas(metrics, shop[name])
    dials = lambda t: 3.0 * failing(clock, 0.96)(t)
    metrics.counter(
        "pay_client_errors",
        {"service": "order-center", "target": "pay-gateway", "kind": "connect"},
        dials,
        "Failed calls of pay-gateway.",
        start=12,
    )
    certificate_metrics(metrics, clock)
    data_metrics(metrics, clock)
    background.nodes(metrics, ["node-a", "node-b", "node-c"])
    gateway_logs(logs, clock, rng)
    order_logs(logs, clock, rng, shop["order-center"].pods)
    pay_logs(logs, clock, rng, shop["pay-gateway"].pods)
    other_logs(logs, clock, rng)
    status(cluster, shop, clock)
    failed, every = (
        metrics.series("http_requests_total", service="mall-gateway", **match) for match in ({"status": "502"}, {})
    )
    share = ratio(failed, every, clock.at("10:08"), 300)
    assert 0.1 < share < 0.2 and ratio(failed, every, clock.at("10:00"), 300) < 0.01, share

    folder = Folder(out)
    folder.json("alert.json", prometheus_alerts(clock, share))
    folder.incident(clock, "支付网关证书过期", "Asia/Shanghai", TOPOLOGY)
    metrics.write(
        folder,
        [
            ("cluster.om", ("kube_", "node_", "container_")),
            ("probes.om", ("probe_", "certmanager_", "mysql_", "redis_")),
            ("services.om", ()),
        ],
    )
    logs.write(folder)
    cluster.write(folder)
    folder.json_lines(
        "changes.jsonl",
        [
            {
                "time": clock.rfc3339(clock.at("09:37")),
                "service": "order-center",
                "kind": "deploy",
                "summary": "order-center 5.8.1 -> 5.8.2：订单列表分页优化",
            },
            {
                "time": clock.rfc3339(clock.at("09:55")),
                "service": "goods-center",
                "kind": "flag",
                "summary": "goods-center：打开暑期大促专区开关",
            },
        ],
    )
    folder.expected(
        "tls_certificate_expired",
        "pay-gateway",
        ["NotAfter", "pay-gateway"],
        ["bad_deployment", "db_unavailable", "cache_failure"],
    )


if __name__ == "__main__":
    main()
