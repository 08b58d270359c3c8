"""What the services of the order-service incident log."""

from logs import bracketed, json_line, logback, logfmt, pino, postgres, redis
from order_service_load import PODS


def order_logs(logs, clock, rng, requests, since):
    for request in (r for r in requests if r.at >= since):
        file = f"order-service/{request.pod}.log.gz"
        thread, end = f"nio-8080-exec-{rng.randrange(1, 90)}", request.at + request.seconds
        order = rng.randrange(700_000, 999_999)
        write = lambda level, logger, message, at=end: logs.add(
            file, at, logback(clock, at, level, thread, logger, message)
        )
        if request.cause is not None:
            failed_order(write, rng, request, order)
        elif request.status == "500":
            write(
                "ERROR",
                "c.shop.order.api.OrderController",
                f"order {order}: unexpected status 422 from promotion rules",
            )
        elif request.seconds > 1.4 and request.at > clock.at("14:23") and rng.random() < 0.12:
            write(
                "WARN",
                "c.shop.order.db.OrderRepository",
                f"connection pool timeout on first attempt for order {order}, retrying (waited 1000ms)",
                request.at + 1.0,
            )
        if request.status in ("200", "201", "404"):
            path = request.path.replace("{id}", str(order))
            write(
                "INFO",
                "c.shop.order.api.AccessLog",
                f"{request.method} {path} {request.status} {request.seconds * 1000:.0f}ms",
            )
    for index, pod in enumerate(PODS):
        at = clock.at("14:22:31") + index * 4.7
        logs.add(
            f"order-service/{pod}.log.gz",
            at,
            logback(
                clock,
                at,
                "INFO",
                "scheduling-1",
                "c.shop.order.job.StatementExport",
                f"monthly statement export started, partition {index + 1}/3, 12 workers, one transaction per merchant",
            ),
        )


def failed_order(write, rng, request, order):
    """Two wordings of one fault: by the pool, and by the code that asked for a connection."""
    waiting = rng.randrange(11, 26)
    if request.cause == 0:
        write(
            "ERROR",
            "com.zaxxer.hikari.pool.HikariPool",
            f"connection pool timeout: HikariPool-1 - Connection is not available, request timed out after {request.seconds * 1000:.0f}ms"
            f" (total=20, active=20, idle=0, waiting={waiting})",
        )
    else:
        write(
            "ERROR",
            "c.shop.order.db.OrderRepository",
            f"failed to connect to database: could not obtain a JDBC connection for order {order}\n"
            "java.sql.SQLTransientConnectionException: HikariPool-1 - Connection is not available\n"
            "\tat com.zaxxer.hikari.pool.HikariPool.createTimeoutException(HikariPool.java:696)\n"
            "\tat com.zaxxer.hikari.pool.HikariPool.getConnection(HikariPool.java:197)\n"
            "\tat com.shop.order.db.OrderRepository.load(OrderRepository.java:88)",
        )


def other_logs(logs, clock, rng, requests, since):
    for request in (r for r in requests if r.at >= since):
        status = "502" if request.status == "500" and request.cause is not None else request.status
        logs.add(
            "api-gateway/api-gateway.log.gz",
            request.at + request.seconds,
            json_line(
                request.at + request.seconds,
                "error" if status == "502" else "info",
                "upstream answered 500" if status == "502" else "request",
                method=request.method,
                route=request.path,
                status=int(status),
                upstream="order-service",
                ms=round(request.seconds * 1000),
            ),
        )
    t = since
    while (t := t + rng.expovariate(2.6)) < clock.now:
        kind = rng.random()
        if kind < 0.4:
            logs.add(
                "inventory-service/inventory-service.log.gz",
                t,
                bracketed(
                    clock,
                    t,
                    "INFO",
                    "inventory.stock",
                    f"reserved sku={rng.randrange(1000, 1400)} qty={rng.randrange(1, 4)} warehouse=w{rng.randrange(1, 5)}",
                ),
            )
        elif kind < 0.8:
            logs.add(
                "user-service/user-service.log.gz",
                t,
                pino(t, "info", "session refreshed", userId=rng.randrange(10_000, 99_999)),
            )
        else:
            logs.add(
                "payment-service/payment-service.log.gz",
                t,
                logfmt(
                    t, "info", "charge captured", amount=rng.randrange(900, 90_000), currency="CNY", provider="unionpay"
                ),
            )
    herrings(logs, clock, rng, since)


def herrings(logs, clock, rng, since):
    """What looks like trouble and is none; see README.md."""
    at = clock.at
    for time, pause in (("14:04:12", 412), ("14:19:40", 388), ("14:26:03", 430), ("14:37:51", 401)):
        logs.add(
            "inventory-service/inventory-service.log.gz",
            at(time),
            bracketed(
                clock, at(time), "WARNING", "inventory.gc", f"gc generation 2 took {pause} ms, 18231 objects collected"
            ),
        )
    for index in range(9):
        t = at("13:52") + index * 352 + rng.random() * 40
        logs.add(
            "user-service/user-service.log.gz",
            t,
            pino(
                t,
                "warn",
                "slow query",
                ms=rng.randrange(2050, 2900),
                sql="select * from login_history where user_id = $1 order by at desc",
            ),
        )
    logs.add(
        "user-service/user-service.log.gz",
        at("13:45:30"),
        pino(at("13:45:30"), "warn", "feature flag cache is cold after start"),
    )
    t = since
    while (t := t + 60 + rng.random() * 30) < clock.now:
        logs.add("redis/redis.log", t, redis(clock, t, "Background saving terminated with success"))
        logs.add(
            "postgres/postgres.log",
            t + 9,
            postgres(clock, t + 9, "LOG", f"checkpoint complete: wrote {rng.randrange(300, 900)} buffers"),
        )
