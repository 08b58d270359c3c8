//! Second incidents of what is seldom met: connection tables, inodes, quotas, clocks, blind spots.

use super::Variant;
use super::alert::{Alert, Shape};
use super::format::Format;
use super::host::Host;
use super::kube::Event;
use super::service::{Service, Stack};
use super::world::World;

pub fn variants() -> Vec<Variant> {
    let variant =
        |category, service, also, name, neighbour, world| Variant { category, service, also, name, neighbour, world };
    vec![
        variant(
            "connection_table_full",
            "vm-gw-1",
            &["api-lb"],
            "conntrack_hosts_zh",
            "dependency_slow",
            conntrack_hosts_zh,
        ),
        variant("inode_exhausted", "ci-runner", &["node-1"], "inodes_node_modules", "disk_full", inodes_node_modules),
        variant("quota_exceeded", "translator", &["llm-cloud"], "quota_cloud_api", "rate_limited", quota_cloud_api),
        variant("clock_skew", "ticketing", &["vm-tick-3"], "clock_hosts_zh", "config_error", clock_hosts_zh),
        variant("monitoring_gap", "node-3", &["prometheus"], "gap_exporter_zh", "node_not_ready", gap_exporter_zh),
    ]
}

fn conntrack_hosts_zh() -> World {
    World::new("2026-01-28T21:15:00+08:00", "Asia/Shanghai")
        .hosts()
        .calls("api-lb", &["game-core"])
        .service(Service::new("api-lb", Stack::Nginx).load(70.0).failing([(-17.0, 0.0), (-14.0, 0.15)], "504"))
        .service(Service::new("game-core", Stack::Go).chatter(&["玩家 {n} 上线", "房间 {hex} 结算"]))
        .host(Host::machine("vm-gw-1"))
        .host(Host::machine("vm-core-1"))
        .level(r#"node_nf_conntrack_entries_limit{instance="vm-gw-1"}"#, 65_536.0)
        .level(r#"node_nf_conntrack_entries{instance="vm-gw-1"}"#, [(-50.0, 21_000.0), (-17.2, 65_500.0), (0.0, 65_536.0)])
        .says("kernel", "warn", (-17.2, 0.0), 8.0, "nf_conntrack: table full, dropping packet")
        .says("api-lb", "error", (-17.0, 0.0), 9.0, "upstream timed out (110: Connection timed out) while connecting to upstream, upstream: \"http://game-core:8080/room/{n}\"")
        .change(-130.0, "game-core", "deploy", "game-core 2.2.0")
        .alert(Alert::new(Shape::Webhook, "接入层超时率过高", "service=api-lb,instance=vm-gw-1,severity=critical", -13.0)
            .text("api-lb 超时率 15%，阈值 2%", "接入层最近 2 分钟 504 比例 15%"))
        .mentions(&["conntrack"])
}

fn inodes_node_modules() -> World {
    World::new("2026-07-01T12:40:00Z", "UTC")
        .calls("ci-web", &["ci-runner"])
        .service(Service::new("ci-web", Stack::DotNet).failing([(-21.0, 0.0), (-20.0, 0.1)], "500"))
        .service(
            Service::new("ci-runner", Stack::Go)
                .format(Format::Klog)
                .failing([(-21.0, 0.0), (-20.0, 0.8)], "500")
                .nodes(&["node-1", "node-1"]),
        )
        .service(Service::new("artifacts", Stack::Rust))
        .level(r#"node_filesystem_files{node="node-1",mountpoint="/var/lib/runner",fstype="ext4"}"#, 3_276_800.0)
        .level(
            r#"node_filesystem_files_free{node="node-1",mountpoint="/var/lib/runner",fstype="ext4"}"#,
            [(-75.0, 410_000.0), (-21.2, 0.0), (0.0, 0.0)],
        )
        .level(
            r#"node_filesystem_avail_bytes{node="node-1",mountpoint="/var/lib/runner",fstype="ext4"}"#,
            88_000_000_000.0,
        )
        .level(
            r#"node_filesystem_size_bytes{node="node-1",mountpoint="/var/lib/runner",fstype="ext4"}"#,
            214_000_000_000.0,
        )
        .says(
            "ci-runner",
            "error",
            (-21.0, 0.0),
            9.0,
            "job {n}: mkdir /var/lib/runner/{hex}/node_modules: no space left on device",
        )
        .says("ci-web", "error", (-21.0, 0.0), 3.0, "job {n} failed before its first step")
        .change(-900.0, "ci-runner", "config", "ci-runner: workspaces are kept for 14 days")
        .alert(
            Alert::new(Shape::Grafana, "CI jobs failing", "job=ci-runner,severity=warning", -17.0)
                .text("80% of CI jobs fail", "share of failed jobs above 20%"),
        )
        .mentions(&["inode"])
}

fn quota_cloud_api() -> World {
    World::new("2026-10-31T23:10:00Z", "UTC")
        .calls("reader-app", &["translator"])
        .calls("translator", &["llm-cloud"])
        .service(Service::new("reader-app", Stack::Node).failing([(-30.0, 0.0), (-29.0, 0.3)], "502"))
        .service(Service::new("translator", Stack::Python).format(Format::Structlog).failing([(-30.0, 0.0), (-29.0, 0.95)], "502"))
        .service(Service::new("library", Stack::Go))
        .gauge(r#"provider_quota_used_ratio{service="translator",pod="$translator"}"#, [(-75.0, 0.972), (-30.0, 1.0), (0.0, 1.0)])
        .says("translator", "error", (-30.0, 0.0), 10.0, "translate chapter {n}: insufficient_quota: You exceeded your current quota for this month, please check your plan and billing details.")
        .says("reader-app", "error", (-30.0, 0.0), 5.0, "translator: 502 for chapter {n}")
        .change(-200.0, "library", "deploy", "library 7.7")
        .alert(Alert::new(Shape::Webhook, "TranslatorErrors", "service=translator,severity=critical", -26.0)
            .text("translator fails 95% of its requests", "5xx share above 10% for 3m"))
        .mentions(&["quota"])
}

fn clock_hosts_zh() -> World {
    World::new("2026-03-29T08:35:00+08:00", "Asia/Shanghai")
        .hosts()
        .calls("station-web", &["ticketing"])
        .service(
            Service::new("station-web", Stack::Spring)
                .failing([(-28.0, 0.0), (-20.0, 0.2)], "500")
                .chatter(&["查询车次 {n}"]),
        )
        .service(
            Service::new("ticketing", Stack::Rust)
                .failing([(-28.0, 0.0), (-20.0, 0.35)], "400")
                .chatter(&["出票成功 {n}", "退票完成 {hex}"]),
        )
        .host(Host::machine("vm-tick-2"))
        .host(Host::machine("vm-tick-3"))
        .gauge(r#"node_timex_offset_seconds{instance="vm-tick-2"}"#, 0.0004)
        .gauge(r#"node_timex_offset_seconds{instance="vm-tick-3"}"#, [(-60.0, 0.0004), (-59.0, 30.0), (0.0, 341.0)])
        .level(r#"node_timex_sync_status{instance="vm-tick-3"}"#, [(-60.0, 1.0), (-59.5, 0.0)])
        .level(r#"node_timex_sync_status{instance="vm-tick-2"}"#, 1.0)
        .says(
            "ticketing",
            "error",
            (-28.0, 0.0),
            9.0,
            "验签失败 订单={n}: 请求时间戳与服务器时间相差 3{ms} 秒, 超出允许的 300 秒",
        )
        .says("station-web", "error", (-28.0, 0.0), 5.0, "出票失败: RequestTimeTooSkewed, 订单={n}")
        .line("ntpd", "warn", -59.6, "no reply; clock not set")
        .change(-61.0, "vm-tick-3", "config", "vm-tick-3：宿主机迁移")
        .alert(
            Alert::new(Shape::Prometheus, "出票失败率过高", "service=ticketing,severity=critical", -18.0)
                .text("ticketing 失败率 35%", "出票接口失败率 35%，阈值 3%"),
        )
        .mentions(&["vm-tick-3"])
}

fn gap_exporter_zh() -> World {
    World::new("2026-11-25T04:50:00+08:00", "Asia/Shanghai")
        .calls("billing-web", &["billing"])
        .service(Service::new("billing-web", Stack::Node))
        .service(Service::new("billing", Stack::Spring).chatter(&["账单 {n} 已生成"]))
        .host(Host::new("node-3").silent(-16.0))
        .level(r#"up{job="node-exporter",node="node-3"}"#, [(-16.1, 1.0), (-16.0, 0.0)])
        .level(r#"up{job="node-exporter",node="node-1"}"#, 1.0)
        .level(r#"up{job="node-exporter",node="node-2"}"#, 1.0)
        .level(r#"kube_node_status_condition{node="node-3",condition="Ready",status="true"}"#, 1.0)
        .says(
            "prometheus",
            "warn",
            (-16.0, 0.0),
            2.0,
            "Scrape failed target=http://10.0.3.3:9100/metrics err=\"context deadline exceeded\"",
        )
        .event(Event {
            on: ("DaemonSet", "node-exporter"),
            level: "Normal",
            reason: "SuccessfulDelete",
            message: "Deleted pod: node-exporter-x7k2p",
            span: (-16.2, -16.2),
            count: 1,
        })
        .change(-16.3, "node-exporter", "config", "node-exporter：节点选择器排除 node-3")
        .alert(
            Alert::new(Shape::Api, "监控目标丢失", "job=node-exporter,node=node-3,severity=warning", -10.0)
                .text("node-3 的指标丢失", "node-exporter 目标 node-3 超过 5 分钟没有数据")
                .expr(r#"up{job="node-exporter"} == 0"#),
        )
        .mentions(&["node-3"])
}
