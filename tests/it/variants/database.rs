//! Databases: pools, outages, locks and slow statements.

use super::Variant;
use super::alert::{Alert, Shape};
use super::format::Format;
use super::host::Host;
use super::kube::{Event, State};
use super::service::{Service, Stack};
use super::world::World;

pub fn variants() -> Vec<Variant> {
    let variant =
        |category, service, also, name, neighbour, world| Variant { category, service, also, name, neighbour, world };
    vec![
        variant("db_connection_pool_exhausted", "billing", &[], "pool_go_pgx", "db_unavailable", pool_go_pgx),
        variant(
            "db_connection_pool_exhausted",
            "settlement",
            &[],
            "pool_python_sqlalchemy",
            "slow_query",
            pool_python_sqlalchemy,
        ),
        variant(
            "db_connection_pool_exhausted",
            "booking-api",
            &[],
            "pool_dotnet_npgsql",
            "db_unavailable",
            pool_dotnet_npgsql,
        ),
        variant(
            "db_unavailable",
            "postgres-main",
            &["ledger"],
            "db_down_postgres",
            "db_connection_pool_exhausted",
            db_down_postgres,
        ),
        variant("db_unavailable", "mysql-trade", &["trade"], "db_down_mysql", "dependency_unavailable", db_down_mysql),
        variant("db_lock_contention", "mysql-wallet", &["wallet"], "lock_innodb", "slow_query", lock_innodb),
        variant(
            "db_lock_contention",
            "postgres-core",
            &["subscriptions"],
            "lock_postgres_ddl",
            "db_connection_pool_exhausted",
            lock_postgres_ddl,
        ),
        variant("slow_query", "mysql-catalog", &["catalog"], "slow_mysql", "db_lock_contention", slow_mysql),
        variant("slow_query", "mongo-feed", &["feed-api"], "slow_mongo", "dependency_slow", slow_mongo),
    ]
}

/// Postgres as its exporter sees it when all is well, but for what `curves` say.
fn postgres(world: World, instance: &str, up: &[(f64, f64); 3], sessions: [(f64, f64); 3]) -> World {
    let me = format!(r#"instance="{instance}:9187""#);
    world
        .level(&format!("pg_up{{{me}}}"), *up)
        .level(&format!("pg_settings_max_connections{{{me}}}"), 400.0)
        .gauge(&format!(r#"pg_stat_activity_count{{{me},datname="main",state="idle"}}"#), 41.0)
        .gauge(&format!(r#"pg_stat_activity_count{{{me},datname="main",state="active"}}"#), sessions)
        .counter(
            &format!(r#"pg_stat_database_xact_commit_total{{{me},datname="main"}}"#),
            up.map(|(minute, up)| (minute, up * 210.0)),
        )
        .counter(&format!(r#"pg_stat_database_deadlocks_total{{{me},datname="main"}}"#), 0.0)
}

const ALWAYS_UP: &[(f64, f64); 3] = &[(-75.0, 1.0), (-30.0, 1.0), (0.0, 1.0)];

fn pool_go_pgx() -> World {
    let world = World::new("2026-02-11T08:47:00Z", "UTC")
        .namespace("finance")
        .calls("portal", &["billing", "accounts"])
        .calls("billing", &["postgres-bill", "accounts"])
        .service(
            Service::new("portal", Stack::Node).failing([(-24.0, 0.0), (-17.0, 0.11), (0.0, 0.16)], "502").load(30.0),
        )
        .service(
            Service::new("billing", Stack::Go)
                .replicas(3)
                .failing([(-26.0, 0.0), (-18.0, 0.2), (0.0, 0.31)], "503")
                .seconds([(-31.0, 0.04), (-22.0, 1.4), (0.0, 2.3)]),
        )
        .service(Service::new("accounts", Stack::Rust))
        .level(r#"go_sql_max_open_connections{db_name="billing",pod="$billing"}"#, 25.0)
        .level(
            r#"go_sql_in_use_connections{db_name="billing",pod="$billing"}"#,
            [(-62.0, 4.0), (-31.0, 19.0), (-25.0, 25.0)],
        )
        .level(r#"go_sql_idle_connections{db_name="billing",pod="$billing"}"#, [(-62.0, 6.0), (-31.0, 0.0), (0.0, 0.0)])
        .counter(
            r#"go_sql_wait_count_total{db_name="billing",pod="$billing"}"#,
            [(-30.0, 0.0), (-22.0, 3.1), (0.0, 3.8)],
        )
        .counter(
            r#"go_sql_wait_duration_seconds_total{db_name="billing",pod="$billing"}"#,
            [(-30.0, 0.0), (-22.0, 6.0), (0.0, 9.5)],
        );
    postgres(world, "postgres-bill", ALWAYS_UP, [(-60.0, 6.0), (-25.0, 7.0), (0.0, 7.0)])
        .says("billing", "error", (-26.0, 0.0), 11.0, "list invoices: acquire connection: context deadline exceeded (pool stats: total=25 idle=0 acquired=25 max=25)")
        .says("billing", "error", (-24.0, 0.0), 6.0, "create invoice {n}: failed to acquire connection from pool: context deadline exceeded")
        .says("billing", "warn", (-31.0, 0.0), 3.0, "slow acquire: waited {long}ms for a pooled connection")
        .says("portal", "error", (-24.0, 0.0), 8.0, "upstream billing replied 503 for /invoices/{n}")
        .says("accounts", "warn", (-70.0, 0.0), 0.3, "cache miss ratio above 40% for tenant {n}")
        .change(-118.0, "accounts", "deploy", "accounts v0.44.1: new tenant page")
        .alert(Alert {
            shape: Shape::Webhook,
            name: "BillingErrorBudgetBurn",
            labels: "job=billing,namespace=finance,severity=critical",
            summary: "billing burns its error budget 14 times too fast",
            description: "More than 14.4% of requests of billing fail over 5m and over 1h.",
            expr: r#"sum(rate(http_requests_total{job="billing",code=~"5.."}[5m])) / sum(rate(http_requests_total{job="billing"}[5m])) > 0.144"#,
            at: -17.0,
        })
        .mentions(&["acquire"])
}

fn pool_python_sqlalchemy() -> World {
    World::new("2026-04-02T16:20:00+08:00", "Asia/Shanghai")
        .namespace("fund")
        .calls("fund-gateway", &["settlement", "quote"])
        .calls("settlement", &["mysql-fund"])
        .service(Service::new("fund-gateway", Stack::Nginx).load(25.0).failing([(-21.0, 0.0), (-15.0, 0.13), (0.0, 0.15)], "504"))
        .service(
            Service::new("settlement", Stack::Python)
                .failing([(-22.0, 0.0), (-16.0, 0.35), (0.0, 0.4)], "500")
                .seconds([(-27.0, 0.06), (-18.0, 9.0), (0.0, 12.0)])
                .chatter(&["清算批次 {n} 完成, 耗时 {ms} ms", "查询持仓 {n} 成功", "GET /settle/{n} 200 {ms}ms"]),
        )
        .service(Service::new("quote", Stack::Go).chatter(&["行情快照已更新 {n}"]))
        .level(r#"sqlalchemy_pool_size{service="settlement",pod="$settlement"}"#, 10.0)
        .level(r#"sqlalchemy_pool_overflow_max{service="settlement",pod="$settlement"}"#, 20.0)
        .level(r#"sqlalchemy_pool_checked_out{service="settlement",pod="$settlement"}"#, [(-29.0, 5.0), (-22.0, 30.0), (0.0, 30.0)])
        .level(r#"mysql_up{instance="mysql-fund:9104"}"#, 1.0)
        .level(r#"mysql_global_variables_max_connections{instance="mysql-fund:9104"}"#, 800.0)
        .gauge(r#"mysql_global_status_threads_connected{instance="mysql-fund:9104"}"#, [(-29.0, 88.0), (-22.0, 139.0)])
        .gauge(r#"mysql_global_status_threads_running{instance="mysql-fund:9104"}"#, 6.0)
        .counter(r#"mysql_global_status_slow_queries_total{instance="mysql-fund:9104"}"#, 0.01)
        .says(
            "settlement",
            "error",
            (-22.0, 0.0),
            9.0,
            "请求处理失败 trace={hex}: QueuePool limit of size 10 overflow 20 reached, connection timed out, timeout 30.00 (Background on this error at: https://sqlalche.me/e/20/3o7r)",
        )
        .says("settlement", "warn", (-27.0, 0.0), 2.0, "获取数据库会话等待超过 {long} ms")
        .says("fund-gateway", "error", (-21.0, 0.0), 5.0, "upstream timed out (110: Connection timed out) while reading response header from upstream, upstream: \"http://settlement:8000/settle/{n}\"")
        .says("quote", "warn", (-60.0, 0.0), 0.4, "行情源延迟 {ms} ms")
        .change(-95.0, "quote", "config", "quote: 行情刷新间隔 3s -> 2s")
        .alert(Alert {
            shape: Shape::Prometheus,
            name: "清算服务接口错误率过高",
            labels: "service=settlement,severity=critical,namespace=fund",
            summary: "settlement 接口错误率 36%，阈值 10%",
            description: "settlement 最近 5 分钟 5xx 比例超过 10%，影响日终清算。",
            expr: r#"sum(rate(flask_http_request_total{service="settlement",status=~"5.."}[5m])) / sum(rate(flask_http_request_total{service="settlement"}[5m])) > 0.1"#,
            at: -16.0,
        })
        .mentions(&["QueuePool"])
}

fn pool_dotnet_npgsql() -> World {
    let world = World::new("2026-08-19T21:33:00-05:00", "America/Chicago")
        .calls("kiosk", &["booking-api", "pricing"])
        .calls("booking-api", &["postgres-book", "pricing"])
        .service(Service::new("kiosk", Stack::Node).failing([(-15.0, 0.0), (-9.0, 0.22), (0.0, 0.25)], "502"))
        .service(
            Service::new("booking-api", Stack::DotNet)
                .format(Format::Serilog)
                .failing([(-16.0, 0.0), (-10.0, 0.3), (0.0, 0.33)], "500")
                .seconds([(-18.0, 0.05), (-11.0, 5.2), (0.0, 5.8)]),
        )
        .service(
            Service::new("pricing", Stack::Go).cores([(-50.0, 0.2), (-46.0, 0.6), (-35.0, 0.6), (-31.0, 0.2)], 1.0),
        )
        .level(
            r#"db_client_connections_usage{service_name="booking-api",state="used",pod="$booking-api"}"#,
            [(-20.0, 21.0), (-16.0, 100.0)],
        )
        .level(
            r#"db_client_connections_usage{service_name="booking-api",state="idle",pod="$booking-api"}"#,
            [(-20.0, 30.0), (-16.0, 0.0)],
        )
        .level(r#"db_client_connections_max{service_name="booking-api",pod="$booking-api"}"#, 100.0)
        .gauge(
            r#"db_client_connections_pending_requests{service_name="booking-api",pod="$booking-api"}"#,
            [(-17.0, 0.0), (-11.0, 44.0), (0.0, 52.0)],
        );
    postgres(world, "postgres-book", ALWAYS_UP, [(-60.0, 9.0), (-16.0, 11.0), (0.0, 11.0)])
        .says(
            "booking-api",
            "error",
            (-16.0, 0.0),
            14.0,
            "Npgsql.NpgsqlException (0x80004005): The connection pool has been exhausted, either raise 'Max Pool Size' (currently 100) or 'Timeout' (currently 5 seconds) in your connection string.",
        )
        .says("booking-api", "error", (-15.0, 0.0), 4.0, "An exception occurred while iterating over the results of a query for context type BookingContext, booking {n}")
        .says("kiosk", "error", (-15.0, 0.0), 7.0, "POST booking-api/holds failed: 500 Internal Server Error")
        .says("pricing", "info", (-50.0, -31.0), 3.0, "repricing season table, part {n}")
        .alert(Alert {
            shape: Shape::Grafana,
            name: "Booking API 5xx",
            labels: "service_name=booking-api,severity=critical",
            summary: "booking-api answers more than 10% with 5xx",
            description: "5xx share of booking-api is 31%.",
            expr: r#"sum(rate(http_server_request_duration_seconds_count{service_name="booking-api",http_response_status_code="500"}[2m]))"#,
            at: -9.5,
        })
        .mentions(&["pool"])
}

fn db_down_postgres() -> World {
    let world = World::new("2026-01-22T03:18:00+01:00", "Europe/Paris")
        .hosts()
        .calls("bank-web", &["ledger", "profile"])
        .calls("ledger", &["postgres-main"])
        .calls("profile", &["redis-main"])
        .service(Service::new("bank-web", Stack::Nginx).failing([(-19.5, 0.0), (-18.5, 0.42)], "500"))
        .service(Service::new("ledger", Stack::Rust).failing([(-20.0, 0.0), (-19.0, 0.97)], "500"))
        .service(Service::new("profile", Stack::Python))
        .host(Host::machine("pg-main-1").busy([(-20.0, 0.35), (-19.0, 0.03)]))
        .host(Host::machine("app-1"));
    postgres(world, "postgres-main", &[(-20.2, 1.0), (-19.8, 0.0), (0.0, 0.0)], [(-20.0, 8.0), (-19.5, 0.0), (0.0, 0.0)])
        .says("ledger", "error", (-20.0, 0.0), 25.0, "post entry {n}: error connecting to server: Connection refused (os error 111) host=postgres-main port=5432")
        .says("ledger", "error", (-19.6, 0.0), 4.0, "health: database ping failed: connection to server at \"10.20.0.14\", port 5432 failed: Connection refused")
        .says("ledger", "error", (-20.1, -19.8), 30.0, "db error: FATAL: terminating connection due to administrator command")
        .says("bank-web", "error", (-19.8, 0.0), 10.0, "upstream sent 500 while reading response header from upstream, upstream: \"http://10.20.1.4:8080/ledger/{n}\"")
        .line("postgres-main", "info", -20.3, "received fast shutdown request")
        .line("postgres-main", "error", -20.1, "PANIC: could not write to file \"pg_wal/xlogtemp.31337\": Input/output error")
        .says("profile", "warn", (-70.0, 0.0), 0.5, "avatar service slow: {long}ms")
        .change(-160.0, "profile", "deploy", "profile 7.2: avatars from the CDN")
        .alert(Alert {
            shape: Shape::Api,
            name: "LedgerAvailability",
            labels: "service=ledger,severity=page",
            summary: "ledger fails most requests",
            description: "97% of ledger's requests fail.",
            expr: r#"sum(rate(axum_http_requests_total{service="ledger",status="500"}[5m])) / sum(rate(axum_http_requests_total{service="ledger"}[5m])) > 0.5"#,
            at: -17.0,
        })
        .mentions(&["refused"])
}

fn db_down_mysql() -> World {
    World::new("2026-09-01T11:05:00+08:00", "Asia/Shanghai")
        .namespace("trade")
        .calls("app-bff", &["trade", "coupon"])
        .calls("trade", &["mysql-trade", "coupon"])
        .service(Service::new("app-bff", Stack::Node).failing([(-12.0, 0.0), (-11.0, 0.3)], "502"))
        .service(
            Service::new("trade", Stack::Spring)
                .format(Format::Log4j)
                .failing([(-12.3, 0.0), (-11.6, 0.93)], "500")
                .seconds([(-12.3, 0.05), (-11.6, 1.1)])
                .chatter(&["下单成功 订单={n}", "扣减库存完成 sku={n}", "订单状态流转 {n} PAID"]),
        )
        .service(Service::new("coupon", Stack::Go).chatter(&["领券成功 {n}"]))
        .service(
            Service::new("mysql-trade", Stack::Plain)
                .replicas(1)
                .format(Format::Mysql)
                .chatter(&["Aborted connection {n} to db: 'trade' user: 'app' (Got timeout reading communication packets)"])
                .chatter_rate([(-12.8, 1.0), (-12.7, 0.0)])
                .ready([(-12.5, 1.0), (-12.3, 0.0)])
                .memory([(-12.6, 2900.0), (-12.4, 40.0)], 4096.0),
        )
        .pod("mysql-trade", 0, State::Unready { restarts: 0, at: -12.4 })
        .level(r#"mysql_up{instance="mysql-trade:9104"}"#, [(-12.6, 1.0), (-12.4, 0.0)])
        .says("trade", "error", (-12.3, 0.0), 22.0, "创建订单失败 订单={n}: com.mysql.cj.jdbc.exceptions.CommunicationsException: Communications link failure\nThe last packet sent successfully to the server was 0 milliseconds ago. The driver has not received any packets from the server.\nCaused by: java.net.ConnectException: Connection refused")
        .says("trade", "warn", (-12.0, 0.0), 3.0, "数据库健康检查失败: mysql-trade.trade.svc:3306 不可达")
        .says("app-bff", "error", (-12.0, 0.0), 9.0, "trade 返回 500 path=/order/{n}")
        .line("mysql-trade", "error", -12.6, "InnoDB: Unable to lock ./ibdata1 error: 11")
        .line("mysql-trade", "error", -12.5, "Aborting")
        .event(Event { on: ("Pod", "$mysql-trade"), level: "Warning", reason: "Unhealthy", message: "Readiness probe failed: mysqladmin: connect to server at '127.0.0.1' failed", span: (-12.3, -0.4), count: 71 })
        .event(Event { on: ("HorizontalPodAutoscaler", "coupon"), level: "Normal", reason: "SuccessfulRescale", message: "New size: 2", span: (-66.0, -66.0), count: 1 })
        .change(-66.0, "coupon", "scale", "coupon 1 -> 2")
        .alert(Alert {
            shape: Shape::Webhook,
            name: "交易接口异常",
            labels: "application=trade,severity=critical",
            summary: "交易服务 5xx 比例 93%",
            description: "trade 最近 3 分钟 5xx 比例 93%，阈值 5%。",
            expr: r#"sum(rate(http_server_requests_seconds_count{application="trade",status=~"5.."}[3m])) / sum(rate(http_server_requests_seconds_count{application="trade"}[3m])) > 0.05"#,
            at: -9.0,
        })
        .mentions(&["mysql"])
}

fn lock_innodb() -> World {
    World::new("2026-06-05T20:12:00+08:00", "Asia/Shanghai")
        .calls("member-app", &["wallet", "points"])
        .calls("wallet", &["mysql-wallet"])
        .service(Service::new("member-app", Stack::Go).failing([(-30.0, 0.0), (-24.0, 0.07)], "504"))
        .service(
            Service::new("wallet", Stack::Spring)
                .failing([(-33.0, 0.0), (-25.0, 0.14), (0.0, 0.17)], "500")
                .seconds([(-34.0, 0.05), (-26.0, 3.9), (0.0, 4.4)])
                .chatter(&["余额查询成功 用户={n}", "红包入账 {n} 完成"]),
        )
        .service(Service::new("points", Stack::Python))
        .level(r#"mysql_up{instance="mysql-wallet:9104"}"#, 1.0)
        .gauge(r#"mysql_global_status_innodb_row_lock_current_waits{instance="mysql-wallet:9104"}"#, [(-35.0, 0.2), (-29.0, 31.0), (0.0, 38.0)])
        .counter(r#"mysql_global_status_innodb_row_lock_waits_total{instance="mysql-wallet:9104"}"#, [(-35.0, 0.1), (-29.0, 7.0)])
        .counter(r#"mysql_info_schema_innodb_metrics_lock_lock_timeouts_total{instance="mysql-wallet:9104"}"#, [(-34.0, 0.0), (-28.0, 1.2)])
        .gauge(r#"mysql_global_status_threads_running{instance="mysql-wallet:9104"}"#, [(-35.0, 6.0), (-29.0, 44.0)])
        .gauge(r#"mysql_global_status_threads_connected{instance="mysql-wallet:9104"}"#, [(-35.0, 60.0), (-29.0, 104.0)])
        .counter(r#"mysql_global_status_slow_queries_total{instance="mysql-wallet:9104"}"#, [(-35.0, 0.01), (-29.0, 0.5)])
        .level(r#"mysql_global_variables_max_connections{instance="mysql-wallet:9104"}"#, 1000.0)
        .says("wallet", "error", (-32.0, 0.0), 7.0, "扣款失败 用户={n}\norg.springframework.dao.CannotAcquireLockException: ### Error updating database.  Cause: com.mysql.cj.jdbc.exceptions.MySQLTransactionRollbackException: Lock wait timeout exceeded; try restarting transaction")
        .says("wallet", "error", (-31.0, 0.0), 2.2, "余额更新失败: Deadlock found when trying to get lock; try restarting transaction, 事务={hex}")
        .says("member-app", "error", (-30.0, 0.0), 4.0, "call wallet: context deadline exceeded (Client.Timeout exceeded while awaiting headers)")
        .says("points", "warn", (-70.0, 0.0), 0.4, "retrying message {uuid}")
        .change(-140.0, "points", "deploy", "points 3.3.0 -> 3.4.0")
        .alert(Alert {
            shape: Shape::Labels,
            name: "WalletLatencyP99",
            labels: "service=wallet,severity=critical,threshold=1s,value=5.8s",
            summary: "钱包服务 P99 延迟 5.8s，阈值 1s",
            description: "",
            expr: "",
            at: -24.0,
        })
        .mentions(&["lock"])
}

fn lock_postgres_ddl() -> World {
    let world = World::new("2026-10-13T14:02:00Z", "UTC")
        .calls("checkout", &["subscriptions", "tax"])
        .calls("subscriptions", &["postgres-core"])
        .service(Service::new("checkout", Stack::DotNet).failing([(-10.0, 0.0), (-7.0, 0.21)], "502"))
        .service(
            Service::new("subscriptions", Stack::Python)
                .format(Format::Structlog)
                .failing([(-11.0, 0.0), (-8.0, 0.6)], "500")
                .seconds([(-12.0, 0.05), (-9.0, 14.0)]),
        )
        .service(Service::new("tax", Stack::Go));
    postgres(world, "postgres-core", ALWAYS_UP, [(-12.2, 8.0), (-9.0, 74.0), (0.0, 81.0)])
        .gauge(r#"pg_locks_count{instance="postgres-core:9187",datname="main",mode="accessexclusivelock"}"#, [(-12.4, 0.0), (-12.2, 2.0)])
        .gauge(r#"pg_stat_activity_wait_event_count{instance="postgres-core:9187",wait_event_type="Lock"}"#, [(-12.2, 0.0), (-9.0, 66.0), (0.0, 74.0)])
        .gauge(r#"pg_stat_activity_max_tx_duration_seconds{instance="postgres-core:9187",datname="main",state="active"}"#, [(-12.4, 1.5), (0.0, 744.0)])
        .says("subscriptions", "error", (-11.0, 0.0), 10.0, "renew {n}: psycopg.errors.LockNotAvailable: canceling statement due to lock timeout CONTEXT: while updating tuple (0,{ms}) in relation \"subscription\"")
        .says("subscriptions", "error", (-11.0, 0.0), 5.0, "psycopg.errors.QueryCanceled: canceling statement due to statement timeout")
        .says("postgres-core", "info", (-12.0, 0.0), 6.0, "process {n} still waiting for RowExclusiveLock on relation 16421 of database 16384 after 1000.113 ms")
        .line("postgres-core", "info", -12.4, "process 7712 acquired AccessExclusiveLock on relation 16421 of database 16384: ALTER TABLE subscription ADD COLUMN trial_ends timestamptz")
        .says("checkout", "error", (-10.0, 0.0), 6.0, "Call to subscriptions failed with status 500 after {long}ms")
        .change(-13.0, "subscriptions", "config", "migration 0142: ALTER TABLE subscription ADD COLUMN trial_ends")
        .alert(Alert {
            shape: Shape::Opsgenie,
            name: "SubscriptionsHighLatency",
            labels: "service=subscriptions,severity=critical",
            summary: "subscriptions: mean latency 14s over 1s",
            description: "Mean latency of subscriptions over 5 minutes is above 1s.",
            expr: "",
            at: -7.5,
        })
        .mentions(&["lock"])
}

fn slow_mysql() -> World {
    World::new("2026-07-07T10:40:00+02:00", "Europe/Berlin")
        .hosts()
        .calls("shop-front", &["catalog", "basket"])
        .calls("catalog", &["mysql-catalog"])
        .service(Service::new("shop-front", Stack::Node).seconds([(-38.0, 0.1), (-30.0, 2.8)]).failing([(-34.0, 0.0), (-28.0, 0.04)], "504"))
        .service(Service::new("catalog", Stack::Spring).seconds([(-40.0, 0.04), (-30.0, 3.2), (0.0, 3.4)]).failing([(-34.0, 0.0), (-28.0, 0.05)], "500"))
        .service(Service::new("basket", Stack::Go))
        .host(Host::machine("mysql-catalog").busy([(-40.0, 0.22), (-31.0, 0.83)]).iowait([(-40.0, 0.01), (-31.0, 0.05)]))
        .host(Host::machine("app-3"))
        .level(r#"mysql_up{instance="mysql-catalog:9104"}"#, 1.0)
        .counter(r#"mysql_global_status_slow_queries_total{instance="mysql-catalog:9104"}"#, [(-41.0, 0.01), (-33.0, 5.5)])
        .counter(r#"mysql_global_status_handlers_total{instance="mysql-catalog:9104",handler="read_rnd_next"}"#, [(-41.0, 9e3), (-33.0, 4.1e6)])
        .counter(r#"mysql_global_status_select_full_join_total{instance="mysql-catalog:9104"}"#, [(-41.0, 0.02), (-33.0, 4.8)])
        .gauge(r#"mysql_global_status_threads_running{instance="mysql-catalog:9104"}"#, [(-41.0, 5.0), (-33.0, 29.0)])
        .gauge(r#"mysql_global_status_innodb_row_lock_current_waits{instance="mysql-catalog:9104"}"#, 0.2)
        .says("catalog", "warn", (-40.0, 0.0), 8.0, "SlowQueryLogger: Slow SQL {long} ms: select p.* from product p left join attribute a on a.ref = p.ref where p.season = ? order by p.rank")
        .says("catalog", "error", (-34.0, 0.0), 3.0, "Query execution was interrupted, maximum statement execution time exceeded (errno 3024)")
        .says("mysql-catalog", "info", (-40.0, 0.0), 7.0, "Query_time: 3.{n}  Lock_time: 0.000021 Rows_sent: 48  Rows_examined: 2{n}31 select p.* from product p left join attribute a")
        .says("shop-front", "warn", (-38.0, 0.0), 6.0, "GET /season/{n} took {long}ms")
        .says("basket", "warn", (-70.0, 0.0), 0.4, "basket {hex} merged with conflict")
        .change(-44.0, "catalog", "flag", "season page shows attributes")
        .alert(Alert {
            shape: Shape::Text,
            name: "CatalogSlow",
            labels: "",
            summary: "catalog p95 response time is 9.4s (limit 1s)",
            description: "Service: catalog, environment: prod",
            expr: "",
            at: -28.0,
        })
        .mentions(&["slow"])
}

fn slow_mongo() -> World {
    World::new("2026-03-18T19:25:00-07:00", "America/Los_Angeles")
        .namespace("social")
        .calls("edge", &["feed-api", "media"])
        .calls("feed-api", &["mongo-feed", "media"])
        .service(Service::new("edge", Stack::Envoy).load(60.0).failing([(-25.0, 0.0), (-20.0, 0.06)], "504"))
        .service(Service::new("feed-api", Stack::Node).format(Format::Winston).seconds([(-27.0, 0.07), (-19.0, 2.6)]).failing([(-24.0, 0.0), (-19.0, 0.08)], "503"))
        .service(Service::new("media", Stack::Rust).memory([(-75.0, 300.0), (0.0, 330.0)], 768.0))
        .service(Service::new("mongo-feed", Stack::Plain).replicas(1).cores([(-28.0, 0.8), (-21.0, 3.4)], 4.0).memory(5200.0, 8192.0))
        .counter(r#"mongodb_ss_metrics_queryExecutor_scannedObjects_total{instance="mongo-feed:9216"}"#, [(-28.0, 900.0), (-21.0, 1.9e6)])
        .counter(r#"mongodb_ss_metrics_operation_scanAndOrder_total{instance="mongo-feed:9216"}"#, [(-28.0, 0.1), (-21.0, 38.0)])
        .level(r#"mongodb_up{instance="mongo-feed:9216"}"#, 1.0)
        .gauge(r#"mongodb_ss_globalLock_currentQueue{instance="mongo-feed:9216",count_type="readers"}"#, [(-28.0, 0.1), (-21.0, 6.0)])
        .says("mongo-feed", "info", (-28.0, 0.0), 9.0, "Slow query ns=feed.posts command=find planSummary=COLLSCAN keysExamined:0 docsExamined:{n}20 hasSortStage:true durationMillis:{long}")
        .says("feed-api", "warn", (-27.0, 0.0), 6.0, "mongo find posts took {long} ms (threshold 500)")
        .says("feed-api", "error", (-24.0, 0.0), 4.0, "MongoServerError: operation exceeded time limit (maxTimeMSExpired)")
        .says("edge", "warn", (-25.0, 0.0), 4.0, "upstream request timeout cluster=feed-api path=/feed/{n}")
        .change(-31.0, "mongo-feed", "config", "dropped index posts.author_1_created_-1 (unused according to the weekly report)")
        .change(-90.0, "media", "deploy", "media 0.9.3")
        .alert(Alert {
            shape: Shape::Webhook,
            name: "FeedLatencyHigh",
            labels: "app=feed-api,namespace=social,severity=warning",
            summary: "feed-api mean latency over 1s",
            description: "Mean latency of feed-api is 2.4s for 5 minutes.",
            expr: r#"sum(rate(http_request_duration_seconds_sum{app="feed-api"}[5m])) / sum(rate(http_request_duration_seconds_count{app="feed-api"}[5m])) > 1"#,
            at: -17.0,
        })
        .mentions(&["COLLSCAN"])
}
