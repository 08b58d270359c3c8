//! Load: more than usual, refused, queued up, no longer cached; clocks and blind spots.

use super::Variant;
use super::alert::{Alert, Shape};
use super::format::Format;
use super::host::Host;
use super::service::{Service, Stack};
use super::world::World;

pub fn variants() -> Vec<Variant> {
    let variant =
        |category, service, also, name, neighbour, world| Variant { category, service, also, name, neighbour, world };
    vec![
        variant("traffic_surge", "news-api", &["edge"], "surge_news", "cpu_saturation", surge_news),
        variant("traffic_surge", "seckill", &["seckill-gw"], "surge_seckill_zh", "retry_storm", surge_seckill_zh),
        variant(
            "rate_limited",
            "price-feed",
            &["market-api"],
            "limited_by_vendor",
            "dependency_unavailable",
            limited_by_vendor,
        ),
        variant("rate_limited", "address-svc", &["map-gateway"], "limited_map_zh", "auth_expired", limited_map_zh),
        variant("queue_backlog", "invoice-worker", &["rabbitmq"], "backlog_rabbit", "dependency_slow", backlog_rabbit),
        variant("queue_backlog", "risk-consumer", &["kafka"], "backlog_kafka_zh", "slow_query", backlog_kafka_zh),
        variant("cache_failure", "redis-session", &["account"], "cache_redis_down", "db_unavailable", cache_redis_down),
        variant("cache_failure", "redis-item", &["item-api"], "cache_evicting_zh", "slow_query", cache_evicting_zh),
        variant("clock_skew", "token-api", &["vm-auth-2"], "clock_tokens", "auth_expired", clock_tokens),
        variant("monitoring_gap", "shipment", &["prometheus"], "gap_scrapes", "dependency_unavailable", gap_scrapes),
    ]
}

fn surge_news() -> World {
    let load = [(-16.0, 40.0), (-12.0, 290.0), (0.0, 310.0)];
    World::new("2026-06-29T21:04:00Z", "UTC")
        .calls("edge", &["news-api"])
        .calls("news-api", &["valkey-news"])
        .service(
            Service::new("edge", Stack::Nginx)
                .load(load)
                .seconds([(-14.0, 0.08), (-10.0, 1.2)])
                .failing([(-14.0, 0.0), (-10.0, 0.06)], "503"),
        )
        .service(
            Service::new("news-api", Stack::Go)
                .load(load)
                .seconds([(-14.0, 0.04), (-10.0, 0.9)])
                .failing([(-13.0, 0.0), (-10.0, 0.07)], "503")
                .cores([(-16.0, 0.2), (-12.0, 0.93)], 1.0)
                .chatter_rate([(-16.0, 14.0), (-12.0, 60.0)]),
        )
        .service(Service::new("comments", Stack::Python))
        .level(r#"redis_up{instance="valkey-news:9121"}"#, 1.0)
        .says("news-api", "warn", (-13.0, 0.0), 5.0, "server overloaded: 512 requests in flight, shedding {hex}")
        .says("edge", "warn", (-13.0, 0.0), 4.0, "a client request body is buffered to a temporary file, client: {ip}")
        .change(-140.0, "comments", "deploy", "comments 2.7.0")
        .alert(
            Alert::new(Shape::Webhook, "NewsApiLatency", "job=news-api,severity=warning", -9.0)
                .text("news-api p95 above 1s", "p95 over 2m is 2.5s"),
        )
        .mentions(&["news-api"])
}

fn surge_seckill_zh() -> World {
    let load = [(-10.2, 25.0), (-10.0, 260.0), (-4.0, 300.0)];
    World::new("2026-11-11T00:10:00+08:00", "Asia/Shanghai")
        .namespace("mall")
        .calls("seckill-gw", &["seckill"])
        .calls("seckill", &["redis-stock", "mysql-order"])
        .service(
            Service::new("seckill-gw", Stack::Envoy)
                .load(load)
                .failing([(-10.0, 0.0), (-9.0, 0.12)], "503")
                .seconds([(-10.0, 0.05), (-8.5, 1.0)]),
        )
        .service(
            Service::new("seckill", Stack::Spring)
                .load(load)
                .failing([(-10.0, 0.0), (-9.0, 0.13)], "503")
                .seconds([(-10.0, 0.05), (-8.5, 1.1)])
                .cores([(-10.2, 0.5), (-9.8, 3.5)], 4.0)
                .chatter(&["抢购请求受理 用户={n}", "库存预扣 sku={ms}"])
                .chatter_rate([(-10.2, 10.0), (-10.0, 80.0)]),
        )
        .service(Service::new("member", Stack::Go))
        .level(r#"redis_up{instance="redis-stock:9121"}"#, 1.0)
        .level(r#"mysql_up{instance="mysql-order:9104"}"#, 1.0)
        .gauge(r#"mysql_global_status_threads_running{instance="mysql-order:9104"}"#, [(-10.2, 5.0), (-9.5, 14.0)])
        .says("seckill", "warn", (-10.0, 0.0), 12.0, "并发过高, 请求排队 {n}, 当前在途 800")
        .says("seckill-gw", "warn", (-10.0, 0.0), 6.0, "upstream overflow cluster=seckill")
        .change(-240.0, "member", "deploy", "member 6.1")
        .alert(
            Alert::new(
                Shape::Prometheus,
                "秒杀接口失败率",
                "application=seckill,severity=critical,namespace=mall",
                -8.0,
            )
            .text("seckill 失败率 13%", "秒杀接口 5xx 13%，阈值 5%"),
        )
        .mentions(&["seckill"])
}

fn limited_by_vendor() -> World {
    World::new("2026-04-08T14:32:00Z", "UTC")
        .calls("terminal", &["price-feed"])
        .calls("price-feed", &["market-api"])
        .service(Service::new("terminal", Stack::Node).failing([(-20.0, 0.0), (-18.0, 0.25)], "502"))
        .service(Service::new("price-feed", Stack::Python).failing([(-20.0, 0.0), (-18.0, 0.4)], "502"))
        .service(Service::new("alerts", Stack::Go))
        .counter(r#"vendor_responses_total{service="price-feed",vendor="market-api",code="429",pod="$price-feed"}"#, [(-20.0, 0.0), (-18.0, 2.6)])
        .counter(r#"vendor_responses_total{service="price-feed",vendor="market-api",code="200",pod="$price-feed"}"#, [(-20.0, 6.0), (-18.0, 3.5)])
        .gauge(r#"vendor_ratelimit_remaining{service="price-feed",pod="$price-feed"}"#, [(-50.0, 420.0), (-20.0, 0.0), (0.0, 0.0)])
        .says("price-feed", "error", (-20.0, 0.0), 11.0, "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://market-api.example/v3/quotes?page={n}")
        .says("price-feed", "warn", (-20.0, 0.0), 3.0, "market-api asks to wait: Retry-After 37")
        .says("terminal", "error", (-20.0, 0.0), 6.0, "price-feed: Bad Gateway")
        .change(-31.0, "price-feed", "config", "price-feed: polling 30s -> 5s")
        .change(-88.0, "alerts", "deploy", "alerts 0.8")
        .alert(Alert::new(Shape::Webhook, "PriceFeedErrors", "service=price-feed,severity=critical", -16.0)
            .text("price-feed: 40% errors", "share of 5xx above 5%"))
        .mentions(&["429"])
}

fn limited_map_zh() -> World {
    World::new("2026-08-21T18:44:00+08:00", "Asia/Shanghai")
        .namespace("delivery")
        .calls("rider-app", &["address-svc"])
        .calls("address-svc", &["map-gateway"])
        .service(Service::new("rider-app", Stack::Nginx).failing([(-15.0, 0.0), (-13.0, 0.2)], "500"))
        .service(
            Service::new("address-svc", Stack::Spring)
                .failing([(-15.0, 0.0), (-13.0, 0.45)], "500")
                .chatter(&["地址解析成功 {n}", "路径规划 {ms} ms"]),
        )
        .service(Service::new("map-gateway", Stack::Rust).failing([(-15.0, 0.0), (-13.0, 0.45)], "429"))
        .says(
            "address-svc",
            "error",
            (-15.0, 0.0),
            11.0,
            "地址解析失败 运单={n}: 429 Too Many Requests: 超出每秒调用配额 (limit=50/s)",
        )
        .says("map-gateway", "warn", (-15.0, 0.0), 9.0, "rate limit exceeded tenant=address-svc limit=50 window=1s")
        .says("rider-app", "error", (-15.0, 0.0), 5.0, "address-svc 返回 500, client: {ip}")
        .change(-15.5, "map-gateway", "config", "map-gateway：租户 address-svc 限额 200/s -> 50/s")
        .alert(
            Alert::new(Shape::Opsgenie, "地址解析失败率高", "service=address-svc,severity=critical", -11.0)
                .text("address-svc 失败率 45%", "address-svc 最近 2 分钟失败率 45%，阈值 5%"),
        )
        .mentions(&["429"])
}

fn backlog_rabbit() -> World {
    World::new("2026-02-05T11:48:00+01:00", "Europe/Rome")
        .calls("shop", &["rabbitmq"])
        .calls("invoice-worker", &["rabbitmq", "postgres-inv"])
        .service(Service::new("shop", Stack::Node).load(30.0))
        .service(
            Service::new("invoice-worker", Stack::Plain)
                .format(Format::Python)
                .chatter(&["Task invoices.render[{uuid}] succeeded in {ms}.2s", "prefetch 4"])
                .chatter_rate([(-50.0, 16.0), (-48.0, 3.0)]),
        )
        .service(Service::new("mail", Stack::Go))
        .gauge(r#"rabbitmq_queue_messages_ready{queue="invoices",vhost="/"}"#, [(-50.0, 20.0), (0.0, 48_200.0)])
        .gauge(r#"rabbitmq_queue_messages_ready{queue="mail",vhost="/"}"#, 4.0)
        .level(r#"rabbitmq_queue_consumers{queue="invoices",vhost="/"}"#, [(-50.2, 16.0), (-50.0, 3.0)])
        .counter(r#"rabbitmq_queue_messages_published_total{queue="invoices"}"#, 18.0)
        .counter(r#"rabbitmq_queue_messages_delivered_total{queue="invoices"}"#, [(-50.0, 18.0), (-49.0, 2.1)])
        .level(r#"pg_up{instance="postgres-inv:9187"}"#, 1.0)
        .says(
            "invoice-worker",
            "warn",
            (-48.0, 0.0),
            2.0,
            "queue invoices: oldest message is {long} s old, processing 2 messages/s",
        )
        .says("mail", "info", (-70.0, 0.0), 2.0, "mail {n} sent")
        .change(-50.5, "invoice-worker", "config", "invoice-worker: concurrency 16 -> 3")
        .alert(
            Alert::new(
                Shape::Webhook,
                "RabbitmqTooManyMessagesInQueue",
                "queue=invoices,vhost=/,severity=warning",
                -35.0,
            )
            .text(
                "queue invoices holds more than 10000 messages",
                "Queue is filling up (> 10000 messages)\n  VALUE = 14211",
            )
            .expr(r#"rabbitmq_queue_messages_ready{queue="invoices"} > 10000"#),
        )
        .mentions(&["invoices"])
}

fn backlog_kafka_zh() -> World {
    World::new("2026-10-30T02:25:00+08:00", "Asia/Shanghai")
        .namespace("risk")
        .calls("risk-api", &["kafka"])
        .calls("risk-consumer", &["kafka", "mysql-risk"])
        .service(
            Service::new("risk-api", Stack::Spring)
                .chatter(&["事件已投递 {uuid}"])
                .load([(-40.0, 20.0), (-38.0, 74.0)]),
        )
        .service(
            Service::new("risk-consumer", Stack::Plain)
                .format(Format::Logback)
                .chatter(&["消费批次完成 500 条 耗时 {ms}0 ms", "提交位点 {n}"]),
        )
        .service(
            Service::new("kafka", Stack::Plain)
                .format(Format::Kafka)
                .replicas(1)
                .chatter(&["[GroupCoordinator 1]: Stabilized group risk-scorer generation {ms}"])
                .chatter_rate(1.0),
        )
        .gauge(
            r#"kafka_consumergroup_lag{consumergroup="risk-scorer",topic="risk-events",partition="0"}"#,
            [(-39.0, 300.0), (0.0, 190_000.0)],
        )
        .gauge(
            r#"kafka_consumergroup_lag{consumergroup="risk-scorer",topic="risk-events",partition="1"}"#,
            [(-39.0, 280.0), (0.0, 186_000.0)],
        )
        .gauge(r#"kafka_consumergroup_lag{consumergroup="audit",topic="audit-events",partition="0"}"#, 12.0)
        .counter(
            r#"kafka_topic_partition_current_offset_total{topic="risk-events",partition="0"}"#,
            [(-40.0, 60.0), (-38.0, 230.0)],
        )
        .level(r#"mysql_up{instance="mysql-risk:9104"}"#, 1.0)
        .counter(r#"mysql_global_status_slow_queries_total{instance="mysql-risk:9104"}"#, 0.01)
        .says("risk-consumer", "warn", (-36.0, 0.0), 2.0, "消费延迟过高: 分区 {ms} 积压 {n} 条, 消费速度跟不上生产速度")
        .change(-39.5, "risk-api", "flag", "risk-api：历史订单回补任务开始")
        .alert(
            Alert::new(
                Shape::Api,
                "Kafka 消费积压",
                "consumergroup=risk-scorer,topic=risk-events,severity=warning",
                -25.0,
            )
            .text("消费组 risk-scorer 积压超过 10 万", "risk-events 积压 13 万条，阈值 10 万")
            .expr(r#"sum by (consumergroup) (kafka_consumergroup_lag{consumergroup="risk-scorer"}) > 100000"#),
        )
        .mentions(&["risk-scorer"])
}

fn cache_redis_down() -> World {
    World::new("2026-07-03T04:14:00Z", "UTC")
        .hosts()
        .calls("web", &["account"])
        .calls("account", &["redis-session", "postgres-acc"])
        .service(Service::new("web", Stack::Node).failing([(-12.0, 0.0), (-11.0, 0.3)], "500"))
        .service(Service::new("account", Stack::Spring).failing([(-12.2, 0.0), (-11.5, 0.45)], "500").seconds([(-12.2, 0.04), (-11.0, 0.8)]))
        .service(Service::new("redis-session", Stack::Plain).format(Format::Redis).replicas(1).chatter(&["Background saving terminated with success", "1 changes in 3600 seconds. Saving..."]).chatter_rate([(-12.6, 1.0), (-12.3, 0.0)]))
        .host(Host::machine("vm-redis-1").memory([(-12.5, 26.0), (-12.3, 3.0)]))
        .level(r#"redis_up{instance="redis-session:9121"}"#, [(-12.5, 1.0), (-12.3, 0.0)])
        .level(r#"pg_up{instance="postgres-acc:9187"}"#, 1.0)
        .gauge(r#"pg_stat_activity_count{instance="postgres-acc:9187",state="active"}"#, [(-12.3, 6.0), (-11.0, 17.0)])
        .says("account", "error", (-12.2, 0.0), 14.0, "load session {hex}: io.lettuce.core.RedisConnectionException: Unable to connect to redis-session:6379\nCaused by: java.net.ConnectException: Connection refused")
        .says("web", "error", (-12.0, 0.0), 7.0, "account answered 500 for session {hex}")
        .line("redis-session", "warn", -12.5, "# Can't save in background: fork: Cannot allocate memory")
        .line("redis-session", "error", -12.4, "# Redis is now ready to exit, bye bye...")
        .change(-95.0, "web", "deploy", "web 61.0")
        .alert(Alert::new(Shape::Webhook, "AccountErrors", "application=account,severity=critical", -9.0)
            .text("account answers 45% with 500", "5xx share above 5%"))
        .mentions(&["redis"])
}

fn cache_evicting_zh() -> World {
    World::new("2026-03-21T20:52:00+08:00", "Asia/Shanghai")
        .namespace("goods")
        .calls("mini-app", &["item-api"])
        .calls("item-api", &["redis-item", "mysql-item"])
        .service(Service::new("mini-app", Stack::Nginx).seconds([(-30.0, 0.06), (-24.0, 0.9)]))
        .service(
            Service::new("item-api", Stack::Go)
                .seconds([(-31.0, 0.02), (-24.0, 0.95)])
                .failing([(-28.0, 0.0), (-22.0, 0.03)], "504")
                .chatter(&["商品 {n} 命中缓存", "类目 {ms} 刷新"]),
        )
        .service(Service::new("coupon", Stack::Spring))
        .level(r#"redis_up{instance="redis-item:9121"}"#, 1.0)
        .level(r#"redis_memory_max_bytes{instance="redis-item:9121"}"#, 4_294_967_296.0)
        .gauge(
            r#"redis_memory_used_bytes{instance="redis-item:9121"}"#,
            [(-50.0, 3.1e9), (-31.5, 4.29e9), (0.0, 4.29e9)],
        )
        .counter(r#"redis_evicted_keys_total{instance="redis-item:9121"}"#, [(-32.0, 0.0), (-29.0, 860.0)])
        .counter(r#"redis_keyspace_hits_total{instance="redis-item:9121"}"#, [(-32.0, 940.0), (-27.0, 210.0)])
        .counter(r#"redis_keyspace_misses_total{instance="redis-item:9121"}"#, [(-32.0, 30.0), (-27.0, 780.0)])
        .level(r#"mysql_up{instance="mysql-item:9104"}"#, 1.0)
        .gauge(r#"mysql_global_status_threads_running{instance="mysql-item:9104"}"#, [(-31.0, 5.0), (-25.0, 31.0)])
        .counter(r#"mysql_global_status_queries_total{instance="mysql-item:9104"}"#, [(-31.0, 120.0), (-25.0, 900.0)])
        .says("item-api", "warn", (-31.0, 0.0), 8.0, "缓存未命中, 回源数据库 商品={n} 耗时 {long}ms")
        .says(
            "item-api",
            "error",
            (-29.0, 0.0),
            2.0,
            "写缓存失败: OOM command not allowed when used memory > 'maxmemory'.",
        )
        .change(-52.0, "item-api", "flag", "item-api：详情页缓存增加推荐位大对象")
        .change(-170.0, "coupon", "deploy", "coupon 3.0")
        .alert(
            Alert::new(Shape::Grafana, "商品接口延迟升高", "job=item-api,severity=warning,namespace=goods", -20.0)
                .text("item-api 平均延迟 950ms", "item-api 延迟超过 500ms 已 5 分钟"),
        )
        .mentions(&["redis"])
}

fn clock_tokens() -> World {
    World::new("2026-05-31T09:20:00Z", "UTC")
        .hosts()
        .calls("app", &["token-api"])
        .service(Service::new("app", Stack::Node).failing([(-24.0, 0.0), (-18.0, 0.22)], "401"))
        .service(Service::new("token-api", Stack::Go).failing([(-24.0, 0.0), (-18.0, 0.5)], "401"))
        .host(Host::machine("vm-auth-1"))
        .host(Host::machine("vm-auth-2"))
        .gauge(r#"node_timex_offset_seconds{instance="vm-auth-1"}"#, 0.0002)
        .gauge(r#"node_timex_offset_seconds{instance="vm-auth-2"}"#, [(-40.0, 0.0003), (-38.0, -4.0), (0.0, -97.0)])
        .level(r#"node_timex_sync_status{instance="vm-auth-2"}"#, [(-40.0, 1.0), (-39.5, 0.0)])
        .level(r#"node_timex_sync_status{instance="vm-auth-1"}"#, 1.0)
        .says(
            "token-api",
            "error",
            (-24.0, 0.0),
            10.0,
            "verify token {hex}: Token used before issued (iat is 9{ms} s in the future) host=vm-auth-2",
        )
        .says("app", "warn", (-24.0, 0.0), 6.0, "401 from token-api, asking for a new token")
        .says("chronyd", "warn", (-39.5, 0.0), 0.2, "Can't synchronise: no selectable sources (4 unreachable sources)")
        .change(-210.0, "app", "deploy", "app 31.2")
        .alert(
            Alert::new(Shape::Webhook, "TokenApiUnauthorized", "job=token-api,severity=critical", -16.0)
                .text("half of all tokens are refused", "401 share of token-api above 10%"),
        )
        .mentions(&["vm-auth-2"])
}

fn gap_scrapes() -> World {
    World::new("2026-08-30T13:30:00Z", "UTC")
        .calls("tracking", &["shipment"])
        .service(Service::new("tracking", Stack::Node))
        .service(Service::new("shipment", Stack::Rust))
        .service(Service::new("prometheus", Stack::Plain).replicas(1).format(Format::Logfmt).chatter(&["WAL checkpoint complete", "Head GC completed"]).chatter_rate(0.4))
        .level(r#"up{job="shipment",instance="10.4.1.8:9100"}"#, [(-14.2, 1.0), (-14.0, 0.0)])
        .level(r#"up{job="shipment",instance="10.4.1.9:9100"}"#, [(-14.2, 1.0), (-14.0, 0.0)])
        .level(r#"up{job="tracking",instance="10.4.2.3:9100"}"#, 1.0)
        .says("prometheus", "warn", (-14.0, 0.0), 3.0, "Error on ingesting samples: scrape pool shipment: server returned HTTP status 403 Forbidden target=http://10.4.1.8:9100/metrics")
        .change(-14.5, "shipment", "config", "network policy metrics-only: port 9100 closed for the monitoring namespace")
        .alert(Alert::new(Shape::Webhook, "TargetDown", "job=shipment,severity=warning", -9.0)
            .text("One or more targets are unreachable.", "100% of the shipment targets are down.")
            .expr(r#"100 * (count by (job) (up == 0) / count by (job) (up)) > 10"#))
        .mentions(&["up"])
}
