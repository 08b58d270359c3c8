//! Disks: full, busy, out of inodes.

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
        variant("disk_full", "kafka", &["vm-kafka-2"], "disk_full_kafka", "disk_io_saturation", disk_full_kafka),
        variant("disk_full", "report-writer", &["node-3"], "disk_full_pvc_zh", "inode_exhausted", disk_full_pvc_zh),
        variant(
            "disk_full",
            "node-2",
            &["cache-warmer"],
            "disk_pressure_evicts",
            "node_not_ready",
            evicted_by_disk_pressure,
        ),
        variant(
            "disk_io_saturation",
            "postgres-events",
            &["vm-pg-events", "tracker"],
            "disk_io_postgres",
            "slow_query",
            disk_io_postgres,
        ),
        variant(
            "disk_io_saturation",
            "es-log",
            &["vm-es-1", "log-query"],
            "disk_io_elastic_zh",
            "cpu_saturation",
            disk_io_elastic_zh,
        ),
        variant("inode_exhausted", "session-files", &["vm-sess-1"], "inodes_sessions", "disk_full", inodes_sessions),
    ]
}

fn disk_full_kafka() -> World {
    World::new("2026-02-14T12:12:00Z", "UTC")
        .hosts()
        .calls("collector", &["kafka"])
        .service(Service::new("collector", Stack::Go).failing([(-18.0, 0.0), (-16.0, 0.4)], "500"))
        .service(Service::new("kafka", Stack::Plain).format(Format::Kafka).chatter(&["[UnifiedLog partition=events-{ms}, dir=/data/kafka] Rolled new log segment at offset {n}"]).replicas(1))
        .host(Host::machine("vm-kafka-2").disk("/data", 500.0, [(-75.0, 0.93), (-18.2, 1.0)]).disk("/", 60.0, 0.38))
        .host(Host::machine("vm-kafka-1").disk("/data", 500.0, 0.61))
        .says("kafka", "error", (-18.2, 0.0), 3.0, "Error while appending records to events-{ms} in dir /data/kafka: java.io.IOException: No space left on device")
        .line("kafka", "fatal", -17.9, "Shutdown broker because all log dirs in /data/kafka have failed")
        .says("collector", "error", (-18.0, 0.0), 12.0, "produce events: kafka server: Disk error when trying to access log file on the disk (partition {n})")
        .change(-420.0, "kafka", "config", "topic events: retention 24h -> 168h")
        .change(-50.0, "collector", "deploy", "collector 2.2.2")
        .alert(Alert::new(Shape::Webhook, "CollectorErrors", "job=collector,severity=critical", -14.0)
            .text("collector rejects 40% of its events", "5xx share above 5% for 2m"))
        .mentions(&["No space left"])
}

fn disk_full_pvc_zh() -> World {
    World::new("2026-11-20T09:09:00+08:00", "Asia/Shanghai")
        .namespace("bi")
        .calls("bi-web", &["report-writer"])
        .service(
            Service::new("bi-web", Stack::Spring)
                .failing([(-33.0, 0.0), (-31.0, 0.1)], "500")
                .chatter(&["看板 {n} 打开"]),
        )
        .service(
            Service::new("report-writer", Stack::Python)
                .failing([(-33.0, 0.0), (-31.0, 0.8)], "500")
                .chatter(&["报表 {n} 导出完成", "合并分片 {ms}"]),
        )
        .service(Service::new("meta", Stack::Go))
        .level(
            r#"kubelet_volume_stats_capacity_bytes{namespace="bi",persistentvolumeclaim="report-writer-data"}"#,
            107_374_182_400.0,
        )
        .level(
            r#"kubelet_volume_stats_available_bytes{namespace="bi",persistentvolumeclaim="report-writer-data"}"#,
            [(-75.0, 9.1e9), (-33.5, 0.0), (0.0, 0.0)],
        )
        .level(
            r#"kubelet_volume_stats_inodes_free{namespace="bi",persistentvolumeclaim="report-writer-data"}"#,
            6_100_000.0,
        )
        .says(
            "report-writer",
            "error",
            (-33.4, 0.0),
            9.0,
            "写入报表失败 任务={n}: OSError: [Errno 28] No space left on device: '/data/out/{hex}.parquet'",
        )
        .says("bi-web", "error", (-33.0, 0.0), 3.0, "导出失败 任务={n}: report-writer 返回 500")
        .line("meta", "warn", -50.0, "元数据刷新慢 2100ms")
        .change(-75.0, "report-writer", "config", "report-writer：保留导出文件 7 天 -> 60 天")
        .alert(
            Alert::new(Shape::Api, "报表导出失败", "service=report-writer,namespace=bi,severity=warning", -29.0)
                .text("report-writer 失败率 80%", "report-writer 最近 5 分钟失败率 80%"),
        )
        .mentions(&["No space left"])
}

fn disk_io_postgres() -> World {
    World::new("2026-05-05T05:55:00+00:00", "UTC")
        .hosts()
        .calls("tracker", &["postgres-events"])
        .service(
            Service::new("tracker", Stack::Rust)
                .seconds([(-26.0, 0.03), (-20.0, 1.9)])
                .failing([(-22.0, 0.0), (-18.0, 0.05)], "503"),
        )
        .service(Service::new("viewer", Stack::Python).seconds([(-26.0, 0.1), (-20.0, 1.1)]))
        .host(
            Host::machine("vm-pg-events")
                .iowait([(-27.0, 0.02), (-22.0, 0.54)])
                .io([(-27.0, 0.12), (-22.0, 0.995)], [(-27.0, 0.0012), (-22.0, 0.19)]),
        )
        .host(Host::machine("vm-app-9"))
        .level(r#"pg_up{instance="postgres-events:9187"}"#, 1.0)
        .counter(
            r#"pg_stat_bgwriter_checkpoint_sync_time_total{instance="postgres-events:9187"}"#,
            [(-27.0, 4.0), (-22.0, 510.0)],
        )
        .says(
            "postgres-events",
            "info",
            (-26.0, 0.0),
            1.2,
            "checkpoint complete: wrote 48211 buffers (9.2%); write=269.8 s, sync=41.{n} s, total=312.1 s",
        )
        .says("postgres-events", "info", (-25.0, 0.0), 4.0, "duration: {long}.221 ms  execute s3: COMMIT")
        .says("tracker", "warn", (-25.0, 0.0), 6.0, "insert batch took {long} ms")
        .says("tracker", "error", (-22.0, 0.0), 3.0, "insert batch timed out after 10s")
        .says("kernel", "warn", (-24.0, 0.0), 0.4, "INFO: task postgres:{n} blocked for more than 120 seconds.")
        .change(-29.0, "backup", "config", "base backup of vm-pg-events started, no rate limit")
        .alert(
            Alert::new(Shape::Webhook, "TrackerLatency", "service=tracker,severity=warning", -18.0)
                .text("tracker p95 is 6s", "p95 of tracker above 1s for 5m"),
        )
        .mentions(&["vm-pg-events"])
}

fn disk_io_elastic_zh() -> World {
    World::new("2026-08-27T22:05:00+08:00", "Asia/Shanghai")
        .hosts()
        .calls("log-query", &["es-log"])
        .service(
            Service::new("log-query", Stack::Spring)
                .seconds([(-35.0, 0.2), (-28.0, 6.0)])
                .failing([(-31.0, 0.0), (-26.0, 0.09)], "504")
                .chatter(&["查询日志 {n} 条", "索引路由 {hex}"]),
        )
        .service(
            Service::new("es-log", Stack::Plain)
                .format(Format::Log4j)
                .replicas(1)
                .chatter(&["[gc][young] overhead ok", "moving shard {ms}"]),
        )
        .host(
            Host::machine("vm-es-1")
                .busy(0.42)
                .iowait([(-36.0, 0.03), (-30.0, 0.47)])
                .io([(-36.0, 0.2), (-30.0, 0.99)], [(-36.0, 0.002), (-30.0, 0.24)]),
        )
        .host(Host::machine("vm-es-2"))
        .gauge(r#"elasticsearch_cluster_health_status{cluster="log",color="green"}"#, 1.0)
        .says("es-log", "warn", (-34.0, 0.0), 5.0, "[index-{ms}] fsync took [{long}ms] on translog, threshold 5s")
        .says(
            "log-query",
            "error",
            (-31.0, 0.0),
            5.0,
            "查询超时: 30,000 milliseconds timeout on connection http-outgoing-{ms} [ACTIVE]",
        )
        .line("log-query", "warn", -60.0, "慢查询 2100ms user=ops")
        .change(-37.0, "es-log", "config", "es-log：vm-es-1 开始强制合并（force merge）历史索引")
        .alert(
            Alert::new(Shape::Prometheus, "日志查询缓慢", "application=log-query,severity=warning", -25.0)
                .text("log-query 平均耗时 6s，阈值 2s", "日志平台查询缓慢"),
        )
        .mentions(&["vm-es-1"])
}

fn inodes_sessions() -> World {
    World::new("2026-04-13T10:01:00+03:00", "Europe/Kyiv")
        .hosts()
        .calls("forum", &["session-files"])
        .service(Service::new("forum", Stack::Nginx).failing([(-20.0, 0.0), (-19.0, 0.5)], "500"))
        .service(Service::new("session-files", Stack::Python).failing([(-20.0, 0.0), (-19.0, 0.9)], "500"))
        .host(Host::machine("vm-sess-1"))
        .level(r#"node_filesystem_files{instance="vm-sess-1",mountpoint="/var/sessions",fstype="ext4"}"#, 6_553_600.0)
        .level(
            r#"node_filesystem_files_free{instance="vm-sess-1",mountpoint="/var/sessions",fstype="ext4"}"#,
            [(-75.0, 120_000.0), (-20.2, 0.0), (0.0, 0.0)],
        )
        .level(
            r#"node_filesystem_avail_bytes{instance="vm-sess-1",mountpoint="/var/sessions",fstype="ext4"}"#,
            61_000_000_000.0,
        )
        .level(
            r#"node_filesystem_size_bytes{instance="vm-sess-1",mountpoint="/var/sessions",fstype="ext4"}"#,
            107_000_000_000.0,
        )
        .says(
            "session-files",
            "error",
            (-20.0, 0.0),
            12.0,
            "cannot create /var/sessions/sess_{hex}: [Errno 28] No space left on device",
        )
        .says("forum", "error", (-20.0, 0.0), 6.0, "session-files answered 500, client: {ip}")
        .change(-210.0, "forum", "deploy", "forum 11.2")
        .alert(
            Alert::new(Shape::Opsgenie, "ForumErrors", "service=forum,severity=critical", -17.0)
                .text("forum answers half of its requests with 500", "5xx share of forum 50%"),
        )
        .mentions(&["inode"])
}

/// The kubelet evicts what lives on the node.
fn evicted_by_disk_pressure() -> World {
    World::new("2026-07-21T03:03:00Z", "UTC")
        .calls("api", &["cache-warmer"])
        .service(Service::new("api", Stack::Go).failing([(-14.0, 0.0), (-12.0, 0.07)], "503"))
        .service(Service::new("cache-warmer", Stack::Node).nodes(&["node-2", "node-1"]).ready([(-14.2, 2.0), (-14.0, 1.0)]))
        .host(Host::new("node-2").disk("/", 100.0, [(-75.0, 0.83), (-14.5, 0.97)]))
        .pod("cache-warmer", 0, State::Evicted { message: "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 3Gi.", at: -14.0 })
        .node_condition(("node-2", "DiskPressure", "True", "KubeletHasDiskPressure", "kubelet has disk pressure", -14.2))
        .event(Event { on: ("Pod", "$cache-warmer"), level: "Warning", reason: "Evicted", message: "The node was low on resource: ephemeral-storage.", span: (-14.0, -14.0), count: 1 })
        .event(Event { on: ("Node", "node-2"), level: "Warning", reason: "FreeDiskSpaceFailed", message: "Failed to garbage collect required amount of images. Attempted to free 8 GiB, but only found 0 bytes eligible to free.", span: (-13.0, -1.0), count: 3 })
        .says("api", "error", (-14.0, 0.0), 5.0, "warm {n}: dial tcp {ip}:8080: connect: connection refused")
        .alert(Alert::new(Shape::Webhook, "KubeNodePressure", "node=node-2,severity=warning", -10.0)
            .text("node-2 has DiskPressure", "Node node-2 has had the condition DiskPressure for more than 3 minutes"))
        .mentions(&["node-2"])
}
