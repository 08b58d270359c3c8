//! What a process runs out of: processor, memory, threads, descriptors.

use super::Variant;
use super::alert::{Alert, Shape};
use super::curve::saw;
use super::format::Format;
use super::host::Host;
use super::kube::{Event, State};
use super::service::{Service, Stack};
use super::world::World;

pub fn variants() -> Vec<Variant> {
    let variant =
        |category, service, also, name, neighbour, world| Variant { category, service, also, name, neighbour, world };
    vec![
        variant(
            "cpu_saturation",
            "render",
            &["vm-render-1", "vm-render-2"],
            "cpu_hosts_regex",
            "traffic_surge",
            cpu_hosts_regex,
        ),
        variant("cpu_saturation", "pricing-engine", &["node-2"], "cpu_node_busy", "cpu_throttling", cpu_node_busy),
        variant("cpu_throttling", "quote-api", &[], "throttled_go", "cpu_saturation", throttled_go),
        variant("cpu_throttling", "invoice", &[], "throttled_java_zh", "gc_pressure", throttled_java_zh),
        variant("memory_leak", "ws-hub", &[], "leak_node_listeners", "oom_killed", leak_node_listeners),
        variant("memory_leak", "ingest", &[], "leak_go_goroutines", "traffic_surge", leak_go_goroutines),
        variant("oom_killed", "thumbnailer", &[], "oom_python_images", "memory_leak", oom_python_images),
        variant("oom_killed", "risk-batch", &[], "oom_java_zh", "crash_loop", oom_java_zh),
        variant("gc_pressure", "recommend", &[], "gc_g1_full", "memory_leak", gc_g1_full),
        variant("gc_pressure", "ledger-view", &[], "gc_dotnet_zh", "cpu_saturation", gc_dotnet_zh),
        variant(
            "thread_pool_exhausted",
            "claims",
            &[],
            "threads_tomcat",
            "db_connection_pool_exhausted",
            threads_tomcat,
        ),
        variant(
            "thread_pool_exhausted",
            "gateway-core",
            &[],
            "threads_executor_zh",
            "dependency_slow",
            threads_executor_zh,
        ),
        variant("file_descriptor_exhausted", "relay", &[], "fds_go_relay", "connection_table_full", fds_go_relay),
        variant(
            "file_descriptor_exhausted",
            "crawler",
            &["vm-crawl-1"],
            "fds_hosts_python",
            "disk_full",
            fds_hosts_python,
        ),
        variant(
            "connection_table_full",
            "node-3",
            &["nat-proxy", "lb"],
            "conntrack_node",
            "network_loss",
            conntrack_node,
        ),
    ]
}

fn cpu_hosts_regex() -> World {
    World::new("2026-03-09T11:11:00Z", "UTC")
        .hosts()
        .calls("site", &["render"])
        .service(Service::new("site", Stack::Nginx).seconds([(-25.0, 0.1), (-19.0, 2.5)]).failing([(-22.0, 0.0), (-18.0, 0.05)], "504"))
        .service(Service::new("render", Stack::Node).seconds([(-26.0, 0.08), (-20.0, 2.6)]))
        .host(Host::machine("vm-render-1").busy([(-27.0, 0.3), (-22.0, 0.985)]))
        .host(Host::machine("vm-render-2").busy([(-27.0, 0.31), (-22.0, 0.99)]))
        .host(Host::machine("vm-site-1"))
        .counter(r#"process_cpu_seconds_total{app="render",instance="vm-render-1:3000"}"#, [(-27.0, 2.1), (-22.0, 7.7)])
        .gauge(r#"nodejs_eventloop_lag_p99_seconds{app="render",instance="vm-render-1:3000"}"#, [(-27.0, 0.02), (-22.0, 1.8)])
        .says("render", "warn", (-25.0, 0.0), 6.0, "event loop blocked for {long} ms while rendering template {n}")
        .says("site", "error", (-22.0, 0.0), 4.0, "upstream timed out (110: Connection timed out) while reading response header from upstream, upstream: \"http://render:3000/p/{n}\"")
        .change(-150.0, "site", "config", "site: gzip level 5")
        .alert(Alert::new(Shape::Webhook, "HostHighCpuLoad", "instance=vm-render-1,job=node,severity=warning", -17.0)
            .text("CPU of vm-render-1 is 98%", "CPU load is > 80% for 5 minutes\n  VALUE = 98.5")
            .expr(r#"(1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[2m]))) * 100 > 80"#))
        .mentions(&["vm-render-1"])
}

fn cpu_node_busy() -> World {
    World::new("2026-10-21T15:36:00+02:00", "Europe/Warsaw")
        .calls("shop", &["pricing-engine", "search"])
        .service(Service::new("shop", Stack::DotNet).seconds([(-24.0, 0.1), (-17.0, 1.6)]))
        .service(
            Service::new("pricing-engine", Stack::Rust)
                .seconds([(-25.0, 0.05), (-18.0, 1.9)])
                .cores([(-26.0, 0.9), (-20.0, 3.6)], 8.0)
                .nodes(&["node-2", "node-2"]),
        )
        .service(Service::new("search", Stack::Go).nodes(&["node-1", "node-3"]))
        .host(Host::new("node-2").busy([(-26.0, 0.35), (-20.0, 0.97)]))
        .says("pricing-engine", "warn", (-24.0, 0.0), 5.0, "repricing of basket {hex} took {long} ms")
        .says("pricing-engine", "info", (-26.0, 0.0), 4.0, "recomputing discount graph, {n} edges")
        .says("shop", "warn", (-24.0, 0.0), 4.0, "pricing-engine slow: {long}ms")
        .change(-27.0, "pricing-engine", "flag", "discount graph v2 for all countries")
        .change(-200.0, "search", "deploy", "search 6.6.1")
        .alert(Alert::new(Shape::Prometheus, "NodeCPUHighUsage", "node=node-2,severity=warning", -15.0)
            .text("High CPU usage on node-2", "CPU usage at node-2 has been above 90% for the last 15 minutes, is currently at 96.9%.")
            .expr(r#"sum without(mode) (avg without (cpu) (rate(node_cpu_seconds_total{mode!~"idle|iowait"}[2m]))) * 100 > 90"#))
        .mentions(&["node-2"])
}

fn throttled_go() -> World {
    World::new("2026-06-23T07:28:00Z", "UTC")
        .calls("desk", &["quote-api"])
        .calls("quote-api", &["rates"])
        .service(Service::new("desk", Stack::Node).seconds([(-31.0, 0.1), (-26.0, 1.1)]))
        .service(Service::new("quote-api", Stack::Go).seconds([(-32.0, 0.03), (-27.0, 0.9)]).cores([(-32.0, 0.17), (-27.0, 0.248)], 0.25).throttled([(-32.0, 0.03), (-27.0, 0.83)]).failing([(-27.0, 0.0), (-22.0, 0.02)], "503"))
        .service(Service::new("rates", Stack::Rust))
        .says("quote-api", "warn", (-30.0, 0.0), 5.0, "slow request: quote {n} took {long}ms")
        .says("desk", "warn", (-30.0, 0.0), 4.0, "quote-api took {long}ms")
        .change(-33.0, "quote-api", "config", "quote-api: cpu limit 1000m -> 250m (cost saving round)")
        .change(-120.0, "rates", "deploy", "rates 0.5.5")
        .alert(Alert::new(Shape::Webhook, "QuoteApiLatencyP95", "job=quote-api,severity=warning", -24.0)
            .text("quote-api p95 above 1s", "p95 of quote-api is 2.6s")
            .expr(r#"histogram_quantile(0.95, sum by (le) (rate(http_request_duration_seconds_bucket{job="quote-api"}[5m]))) > 1"#))
        .mentions(&["throttl"])
}

fn throttled_java_zh() -> World {
    World::new("2026-01-31T23:40:00+08:00", "Asia/Shanghai")
        .namespace("tax")
        .calls("tax-portal", &["invoice"])
        .service(Service::new("tax-portal", Stack::Spring).seconds([(-22.0, 0.1), (-16.0, 2.0)]).chatter(&["纳税人 {n} 登录", "页面渲染 {ms} ms"]))
        .service(
            Service::new("invoice", Stack::Spring)
                .seconds([(-24.0, 0.08), (-17.0, 2.1)])
                .cores([(-24.0, 0.9), (-18.0, 1.98)], 2.0)
                .throttled([(-24.0, 0.05), (-18.0, 0.71)])
                .chatter(&["开票成功 号码={n}", "签章完成 {uuid}"]),
        )
        .service(Service::new("archive", Stack::Go))
        .host(Host::new("node-1").busy(0.4))
        .gauge(r#"jvm_gc_overhead{application="invoice",pod="$invoice"}"#, 0.012)
        .says("invoice", "warn", (-23.0, 0.0), 6.0, "开票耗时过长 号码={n} cost={long}ms")
        .says("tax-portal", "warn", (-22.0, 0.0), 5.0, "invoice 接口响应慢 {long}ms")
        .line("archive", "warn", -40.0, "磁盘清理任务跳过 1 次")
        .change(-88.0, "archive", "deploy", "archive 1.8")
        .alert(Alert::new(Shape::Api, "CPUThrottlingHigh", "namespace=tax,container=invoice,severity=info", -14.0)
            .text("invoice 容器 CPU 被限流 71%", "命名空间 tax 的容器 invoice 的 CPU 限流比例 71%，阈值 25%。")
            .expr(r#"sum(increase(container_cpu_cfs_throttled_periods_total{container="invoice"}[5m])) / sum(increase(container_cpu_cfs_periods_total{container="invoice"}[5m])) > 0.25"#))
        .mentions(&["invoice"])
}

fn leak_node_listeners() -> World {
    World::new("2026-09-24T16:00:00Z", "UTC")
        .calls("console", &["ws-hub"])
        .service(Service::new("console", Stack::Go))
        .service(Service::new("ws-hub", Stack::Node).memory([(-75.0, 520.0), (0.0, 1490.0)], 1600.0).load(9.0))
        .service(Service::new("presence", Stack::Rust))
        .gauge(r#"nodejs_heap_size_used_bytes{app="ws-hub",pod="$ws-hub"}"#, [(-75.0, 4.2e8), (0.0, 1.37e9)])
        .gauge(r#"nodejs_heap_space_size_used_bytes{app="ws-hub",space="old",pod="$ws-hub"}"#, [(-75.0, 3.9e8), (0.0, 1.33e9)])
        .gauge(r#"ws_connections{app="ws-hub",pod="$ws-hub"}"#, 410.0)
        .says("ws-hub", "warn", (-75.0, 0.0), 0.6, "MaxListenersExceededWarning: Possible EventEmitter memory leak detected. 11 close listeners added to [Socket]. Use emitter.setMaxListeners() to increase limit")
        .says("presence", "warn", (-70.0, 0.0), 0.5, "presence key {hex} expired early")
        .change(-400.0, "ws-hub", "deploy", "ws-hub 3.0.0")
        .alert(Alert::new(Shape::Webhook, "ContainerMemoryNearLimit", "namespace=prod,container=ws-hub,severity=warning", -10.0)
            .text("ws-hub uses 90% of its memory limit", "Working set of ws-hub is above 85% of its limit.")
            .expr(r#"container_memory_working_set_bytes{container="ws-hub"} / on (pod, container) kube_pod_container_resource_limits{resource="memory"} > 0.85"#))
        .mentions(&["memory"])
}

fn leak_go_goroutines() -> World {
    World::new("2026-02-19T02:45:00+08:00", "Asia/Shanghai")
        .namespace("iot")
        .calls("collector", &["ingest"])
        .service(Service::new("collector", Stack::Rust))
        .service(
            Service::new("ingest", Stack::Go)
                .memory([(-75.0, 800.0), (0.0, 2650.0)], 3072.0)
                .chatter(&["批次写入完成 {n} 行", "设备 {hex} 上线"]),
        )
        .service(Service::new("rule-engine", Stack::Spring).format(Format::Docker))
        .gauge(r#"go_goroutines{job="ingest",pod="$ingest"}"#, [(-75.0, 9200.0), (0.0, 41_000.0)])
        .gauge(r#"go_memstats_heap_inuse_bytes{job="ingest",pod="$ingest"}"#, [(-75.0, 6.1e8), (0.0, 2.3e9)])
        .says("rule-engine", "warn", (-70.0, 0.0), 0.6, "规则 {n} 执行超过 200ms")
        .says("ingest", "warn", (-75.0, 0.0), 0.4, "订阅者 {hex} 未在期限内关闭")
        .change(-900.0, "ingest", "deploy", "ingest 5.2.0：新的订阅通道")
        .alert(
            Alert::new(Shape::Grafana, "内存持续增长", "job=ingest,severity=warning,namespace=iot", -8.0)
                .text("ingest 内存一小时增长 1.5GB", "ingest 内存使用 85%，并持续上涨"),
        )
        .mentions(&["goroutine"])
}

fn oom_python_images() -> World {
    World::new("2026-08-08T13:37:00Z", "UTC")
        .calls("upload", &["thumbnailer"])
        .service(Service::new("upload", Stack::Go).format(Format::Docker).failing([(-25.0, 0.0), (-24.0, 0.11)], "502"))
        .service(
            Service::new("thumbnailer", Stack::Python)
                .replicas(3)
                .memory(saw(-27.0, 260.0, 1018.0, &[-24.0, -17.0, -11.0, -4.0]), 1024.0)
                .restarts([(-24.2, 0.0), (-24.0, 1.0), (-17.0, 2.0), (-11.0, 3.0), (-4.0, 4.0)]),
        )
        .service(Service::new("albums", Stack::Node))
        .pod("thumbnailer", 0, State::Restarted { reason: "OOMKilled", exit: 137, restarts: 4, at: -4.0 })
        .pod("thumbnailer", 1, State::Restarted { reason: "OOMKilled", exit: 137, restarts: 4, at: -4.2 })
        .pod("thumbnailer", 2, State::Restarted { reason: "OOMKilled", exit: 137, restarts: 3, at: -11.0 })
        .level(r#"kube_pod_container_status_last_terminated_reason{namespace="prod",container="thumbnailer",reason="OOMKilled",pod="$thumbnailer"}"#, [(-24.2, 0.0), (-24.0, 1.0)])
        .says("thumbnailer", "info", (-27.0, 0.0), 4.0, "resizing upload {uuid} 21600x14400 px")
        .says("thumbnailer", "error", (-24.0, 0.0), 0.6, "[ERROR] Worker (pid:{n}) was sent SIGKILL! Perhaps out of memory?")
        .says("upload", "error", (-25.0, 0.0), 5.0, "thumbnail {hex}: Post \"http://thumbnailer:8000/t\": EOF")
        .says("albums", "warn", (-70.0, 0.0), 0.5, "album {n} has no cover")
        .event(Event { on: ("Node", "node-1"), level: "Warning", reason: "SystemOOM", message: "System OOM encountered, victim process: gunicorn, pid: 88123", span: (-24.0, -4.0), count: 4 })
        .change(-90.0, "albums", "deploy", "albums 8.0.2")
        .alert(Alert::new(Shape::Webhook, "KubePodRestarting", "namespace=prod,container=thumbnailer,severity=warning", -16.0)
            .text("thumbnailer restarted 3 times", "Containers of thumbnailer restarted more than twice in 15 minutes."))
        .mentions(&["OOM"])
}

fn oom_java_zh() -> World {
    World::new("2026-12-31T01:30:00+08:00", "Asia/Shanghai")
        .namespace("risk")
        .calls("risk-console", &["risk-batch"])
        .service(
            Service::new("risk-console", Stack::Spring)
                .failing([(-40.0, 0.0), (-39.0, 0.2)], "502")
                .chatter(&["查看任务 {n}"]),
        )
        .service(
            Service::new("risk-batch", Stack::Spring)
                .memory(saw(-47.0, 1500.0, 4070.0, &[-40.0, -28.0, -15.0]), 4096.0)
                .restarts([(-40.2, 0.0), (-40.0, 1.0), (-28.0, 2.0), (-15.0, 3.0)])
                .chatter(&["特征计算 {n} 完成", "加载名单 {ms} 条"]),
        )
        .service(Service::new("blacklist", Stack::Go))
        .pod("risk-batch", 0, State::Restarted { reason: "OOMKilled", exit: 137, restarts: 3, at: -15.0 })
        .pod("risk-batch", 1, State::CrashLoop { reason: "OOMKilled", exit: 137, restarts: 3, at: -2.5 })
        .says("risk-batch", "info", (-47.0, 0.0), 2.0, "年度名单全量加载, 第 {ms} 批")
        .says(
            "risk-console",
            "error",
            (-40.0, 0.0),
            4.0,
            "调用 risk-batch 失败: java.io.IOException: unexpected end of stream on http://risk-batch:8080/...",
        )
        .event(Event {
            on: ("Pod", "$risk-batch"),
            level: "Warning",
            reason: "BackOff",
            message: "Back-off restarting failed container risk-batch in pod $pod",
            span: (-28.0, -2.0),
            count: 14,
        })
        .change(-49.0, "risk-batch", "config", "risk-batch：年度名单任务改为全量加载")
        .alert(
            Alert::new(
                Shape::Prometheus,
                "KubePodCrashLooping",
                "namespace=risk,container=risk-batch,severity=critical",
                -13.0,
            )
            .text("risk-batch 反复重启", "容器 risk-batch 在 30 分钟内重启 3 次"),
        )
        .mentions(&["OOMKilled"])
}

fn gc_g1_full() -> World {
    World::new("2026-05-28T08:55:00-04:00", "America/New_York")
        .calls("home", &["recommend", "users"])
        .calls("recommend", &["feature-store"])
        .service(Service::new("home", Stack::Go).seconds([(-34.0, 0.1), (-24.0, 1.8)]).failing([(-28.0, 0.0), (-20.0, 0.06)], "504"))
        .service(Service::new("recommend", Stack::Spring).seconds([(-36.0, 0.09), (-25.0, 2.2)]).memory(3650.0, 4096.0).cores([(-36.0, 0.8), (-25.0, 2.7)], 4.0))
        .service(Service::new("users", Stack::Python))
        .gauge(r#"jvm_memory_used_bytes{application="recommend",area="heap",id="G1 Old Gen",pod="$recommend"}"#, [(-40.0, 1.6e9), (-26.0, 2.93e9), (0.0, 2.95e9)])
        .level(r#"jvm_memory_max_bytes{application="recommend",area="heap",id="G1 Old Gen",pod="$recommend"}"#, 3_006_477_107.0)
        .counter(r#"jvm_gc_pause_seconds_sum{application="recommend",action="end of major GC",cause="G1 Compaction Pause",pod="$recommend"}"#, [(-36.0, 0.0), (-25.0, 0.42), (0.0, 0.47)])
        .counter(r#"jvm_gc_pause_seconds_count{application="recommend",action="end of major GC",cause="G1 Compaction Pause",pod="$recommend"}"#, [(-36.0, 0.0), (-25.0, 0.15)])
        .gauge(r#"jvm_gc_overhead{application="recommend",pod="$recommend"}"#, [(-36.0, 0.015), (-25.0, 0.46)])
        .says("recommend", "warn", (-35.0, 0.0), 5.0, "[gc] GC({n}) Pause Full (G1 Compaction Pause) 2861M->2794M(2868M) {long}.112ms")
        .says("recommend", "warn", (-33.0, 0.0), 2.0, "HikariPool-1 - Thread starvation or clock leap detected (housekeeper delta=31s{ms}ms).")
        .says("home", "warn", (-34.0, 0.0), 4.0, "recommend: context deadline exceeded")
        .change(-220.0, "users", "deploy", "users 4.1.1")
        .alert(Alert::new(Shape::Webhook, "RecommendSlow", "application=recommend,severity=warning", -22.0)
            .text("recommend mean latency above 1s", "Mean latency over 5m is 2.1s"))
        .mentions(&["GC"])
}

fn gc_dotnet_zh() -> World {
    World::new("2026-04-29T18:18:00+08:00", "Asia/Shanghai")
        .namespace("acct")
        .calls("acct-web", &["ledger-view"])
        .calls("ledger-view", &["sqlserver-acct"])
        .service(Service::new("acct-web", Stack::Node).seconds([(-27.0, 0.1), (-20.0, 2.0)]))
        .service(Service::new("ledger-view", Stack::DotNet).seconds([(-28.0, 0.06), (-21.0, 2.4)]).cores([(-28.0, 0.6), (-21.0, 1.6)], 4.0).memory([(-45.0, 1900.0), (-25.0, 2900.0), (0.0, 2930.0)], 3072.0).chatter(&["报表 {n} 已生成", "查询分录 {ms} 条"]))
        .service(Service::new("fx-rate", Stack::Go))
        .counter(r#"dotnet_gc_pause_time_seconds_total{service_name="ledger-view",pod="$ledger-view"}"#, [(-28.0, 0.01), (-21.0, 0.52)])
        .counter(r#"dotnet_gc_collections_total{service_name="ledger-view",generation="gen2",pod="$ledger-view"}"#, [(-28.0, 0.01), (-21.0, 1.3)])
        .gauge(r#"dotnet_gc_last_collection_heap_size_bytes{service_name="ledger-view",generation="gen2",pod="$ledger-view"}"#, [(-45.0, 1.2e9), (-25.0, 2.4e9)])
        .says("ledger-view", "warn", (-27.0, 0.0), 5.0, "垃圾回收暂停 {long} ms (gen2, blocking), 堆占用 96%")
        .says("ledger-view", "warn", (-27.0, 0.0), 3.0, "As of \"{hex}\", the heartbeat has been running for \"00:00:04\" which is longer than \"00:00:01\". This could be caused by thread pool starvation.")
        .says("acct-web", "warn", (-27.0, 0.0), 4.0, "ledger-view 响应 {long}ms")
        .change(-180.0, "fx-rate", "config", "fx-rate：汇率源切换到备用")
        .alert(Alert::new(Shape::Labels, "账务查询响应慢", "service=ledger-view,severity=warning,threshold=1s,value=2.4s", -18.0)
            .text("ledger-view 平均响应 2.4s，阈值 1s", ""))
        .mentions(&["gen2"])
}

fn threads_tomcat() -> World {
    World::new("2026-07-16T14:44:00Z", "UTC")
        .calls("agent-ui", &["claims"])
        .calls("claims", &["oracle-claims", "document-store"])
        .service(Service::new("agent-ui", Stack::Node).failing([(-17.0, 0.0), (-13.0, 0.15)], "504"))
        .service(Service::new("claims", Stack::Spring).failing([(-18.0, 0.0), (-13.0, 0.18)], "503").seconds([(-20.0, 0.1), (-14.0, 7.0)]))
        .service(Service::new("document-store", Stack::Rust))
        .level(r#"tomcat_threads_config_max_threads{application="claims",name="http-nio-8080",pod="$claims"}"#, 200.0)
        .level(r#"tomcat_threads_busy_threads{application="claims",name="http-nio-8080",pod="$claims"}"#, [(-22.0, 24.0), (-18.0, 200.0), (0.0, 200.0)])
        .level(r#"tomcat_threads_current_threads{application="claims",name="http-nio-8080",pod="$claims"}"#, [(-22.0, 60.0), (-18.0, 200.0)])
        .level(r#"hikaricp_connections_active{application="claims",pool="main",pod="$claims"}"#, 7.0)
        .level(r#"hikaricp_connections_max{application="claims",pool="main",pod="$claims"}"#, 30.0)
        .level(r#"hikaricp_connections_pending{application="claims",pool="main",pod="$claims"}"#, 0.0)
        .says("claims", "error", (-18.0, 0.0), 9.0, "The executor [http-nio-8080] rejected the task: Maximum number of threads (200) created for connector with address [null] and port [8080]")
        .says("claims", "warn", (-18.0, 0.0), 4.0, "Thread pool is EXHAUSTED! Thread Name: http-nio-8080, Pool Size: 200 (active: 200, core: 10, max: 200), queue 100/100")
        .says("agent-ui", "error", (-17.0, 0.0), 6.0, "claims: socket hang up")
        .change(-140.0, "document-store", "deploy", "document-store 1.1.0")
        .alert(Alert::new(Shape::Pagerduty, "ClaimsErrors", "service=claims,severity=critical", -12.0)
            .text("claims answers 18% with 503", "5xx share above 5% for 5 minutes"))
        .mentions(&["thread"])
}

fn threads_executor_zh() -> World {
    World::new("2026-06-01T12:02:00+08:00", "Asia/Shanghai")
        .namespace("pay")
        .calls("merchant-web", &["gateway-core"])
        .calls("gateway-core", &["channel-adapter", "mysql-pay"])
        .service(Service::new("merchant-web", Stack::Nginx).load(30.0).failing([(-14.0, 0.0), (-11.0, 0.2)], "502"))
        .service(Service::new("gateway-core", Stack::Spring).format(Format::Log4j).failing([(-15.0, 0.0), (-11.0, 0.36)], "500").seconds([(-16.0, 0.1), (-12.0, 3.0)]).chatter(&["支付单 {n} 受理", "回调商户成功 {uuid}"]))
        .service(Service::new("channel-adapter", Stack::Go))
        .level(r#"executor_pool_max_threads{application="gateway-core",name="dubbo",pod="$gateway-core"}"#, 300.0)
        .level(r#"executor_active_threads{application="gateway-core",name="dubbo",pod="$gateway-core"}"#, [(-18.0, 38.0), (-15.0, 300.0)])
        .gauge(r#"executor_queued_tasks{application="gateway-core",name="dubbo",pod="$gateway-core"}"#, [(-15.5, 0.0), (-13.0, 990.0)])
        .level(r#"mysql_up{instance="mysql-pay:9104"}"#, 1.0)
        .gauge(r#"mysql_global_status_threads_running{instance="mysql-pay:9104"}"#, 6.0)
        .says("gateway-core", "error", (-15.0, 0.0), 12.0, "处理支付请求失败\njava.util.concurrent.RejectedExecutionException: Thread pool is EXHAUSTED! Thread Name: DubboServerHandler-10.8.0.4:20880, Pool Size: 300 (active: 300, core: 300, max: 300, largest: 300)")
        .says("merchant-web", "error", (-14.0, 0.0), 5.0, "upstream prematurely closed connection while reading response header from upstream, client: {ip}")
        .change(-65.0, "channel-adapter", "deploy", "channel-adapter 2.3.4")
        .alert(Alert::new(Shape::Webhook, "支付网关失败率", "application=gateway-core,severity=critical", -10.0)
            .text("gateway-core 失败率 36%", "gateway-core 最近 1 分钟失败率 36%，阈值 3%"))
        .mentions(&["EXHAUSTED"])
}

fn fds_go_relay() -> World {
    World::new("2026-11-03T20:08:00Z", "UTC")
        .calls("chat", &["relay"])
        .service(Service::new("chat", Stack::Rust).failing([(-22.0, 0.0), (-19.0, 0.25)], "502"))
        .service(Service::new("relay", Stack::Go).failing([(-22.0, 0.0), (-19.0, 0.28)], "500"))
        .service(Service::new("roster", Stack::Node))
        .level(r#"process_max_fds{job="relay",pod="$relay"}"#, 1024.0)
        .level(r#"process_open_fds{job="relay",pod="$relay"}"#, [(-75.0, 240.0), (-22.0, 1023.0), (0.0, 1024.0)])
        .says(
            "relay",
            "error",
            (-22.0, 0.0),
            14.0,
            "http: Accept error: accept tcp [::]:8080: accept4: too many open files; retrying in 1s",
        )
        .says("relay", "error", (-22.0, 0.0), 4.0, "open session {hex}: socket: too many open files")
        .says("chat", "error", (-22.0, 0.0), 6.0, "relay unreachable: connection timed out after {long} ms")
        .change(-300.0, "roster", "deploy", "roster 9.9")
        .alert(
            Alert::new(Shape::Webhook, "RelayErrors", "job=relay,severity=critical", -18.0)
                .text("relay: 28% errors", "5xx share of relay above 5% for 3m"),
        )
        .mentions(&["too many open files"])
}

fn fds_hosts_python() -> World {
    World::new("2026-03-30T05:20:00+08:00", "Asia/Shanghai")
        .hosts()
        .calls("crawler", &["queue", "store"])
        .service(Service::new("crawler", Stack::Python).chatter(&["抓取完成 {n}", "解析页面 {hex} 耗时 {ms}ms"]).failing([(-28.0, 0.0), (-25.0, 0.5)], "500"))
        .service(Service::new("store", Stack::Go))
        .host(Host::machine("vm-crawl-1"))
        .level(r#"process_open_fds{job="crawler",instance="vm-crawl-1:8000"}"#, [(-75.0, 6100.0), (-28.0, 65_530.0), (0.0, 65_535.0)])
        .level(r#"process_max_fds{job="crawler",instance="vm-crawl-1:8000"}"#, 65_535.0)
        .says("crawler", "error", (-28.0, 0.0), 12.0, "抓取失败 url={hex}: OSError: [Errno 24] Too many open files: '/var/lib/crawler/tmp/{hex}'")
        .says("crawler", "error", (-28.0, 0.0), 4.0, "aiohttp.client_exceptions.ClientConnectorError: Cannot connect to host store:443 ssl:default [Too many open files]")
        .says("store", "warn", (-70.0, 0.0), 0.5, "分片 {n} 合并延迟")
        .change(-500.0, "crawler", "config", "crawler：并发 200 -> 900")
        .alert(Alert::new(Shape::Text, "抓取失败率高", "", -24.0).text("crawler 失败率 50%，阈值 10%", "服务：crawler 实例：vm-crawl-1"))
        .mentions(&["Too many open files"])
}

fn conntrack_node() -> World {
    World::new("2026-10-05T19:19:00Z", "UTC")
        .calls("lb", &["nat-proxy"])
        .service(Service::new("lb", Stack::Envoy).load(90.0).failing([(-16.0, 0.0), (-13.0, 0.12)], "503"))
        .service(
            Service::new("nat-proxy", Stack::Go)
                .seconds([(-16.0, 0.05), (-13.0, 1.2)])
                .failing([(-16.0, 0.0), (-13.0, 0.14)], "504")
                .nodes(&["node-3", "node-3"]),
        )
        .service(Service::new("portal", Stack::Node))
        .level(r#"node_nf_conntrack_entries_limit{node="node-3"}"#, 262_144.0)
        .level(r#"node_nf_conntrack_entries{node="node-3"}"#, [(-60.0, 61_000.0), (-17.0, 262_000.0), (0.0, 262_144.0)])
        .level(r#"node_nf_conntrack_entries_limit{node="node-1"}"#, 262_144.0)
        .gauge(r#"node_nf_conntrack_entries{node="node-1"}"#, 41_000.0)
        .says("kernel", "warn", (-16.5, 0.0), 6.0, "nf_conntrack: nf_conntrack: table full, dropping packet")
        .says("nat-proxy", "error", (-16.0, 0.0), 8.0, "dial tcp {ip}:443: i/o timeout")
        .says(
            "lb",
            "warn",
            (-16.0, 0.0),
            6.0,
            "upstream connect error or disconnect/reset before headers. reset reason: connection timeout",
        )
        .change(-100.0, "portal", "deploy", "portal 3.3.3")
        .alert(
            Alert::new(Shape::Grafana, "NAT proxy errors", "job=nat-proxy,severity=critical", -12.0)
                .text("nat-proxy fails 14% of its requests", "share above 5%"),
        )
        .mentions(&["conntrack"])
}
