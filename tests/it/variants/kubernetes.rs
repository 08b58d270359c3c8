//! Workloads: releases, settings, images, probes, scheduling, nodes.

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
        variant("bad_deployment", "checkout-api", &[], "release_null_pointer", "config_error", release_null_pointer),
        variant("bad_deployment", "fare", &[], "release_zh_slow", "slow_query", release_zh_slow),
        variant("config_error", "mailer", &[], "config_missing_key", "crash_loop", config_missing_key),
        variant(
            "config_error",
            "gateway-edge",
            &["member"],
            "config_wrong_host_zh",
            "bad_deployment",
            config_wrong_host_zh,
        ),
        variant("crash_loop", "matcher", &[], "crash_go_panic", "oom_killed", crash_go_panic),
        variant("crash_loop", "label-printer", &[], "crash_node_zh", "probe_failure", crash_node_zh),
        variant("image_pull_failure", "insights", &[], "pull_not_found", "unschedulable", pull_not_found),
        variant("image_pull_failure", "vision", &[], "pull_unauthorized_zh", "auth_expired", pull_unauthorized_zh),
        variant("probe_failure", "documents", &[], "probe_liveness_timeout", "crash_loop", probe_liveness_timeout),
        variant("probe_failure", "seat-map", &[], "probe_readiness_zh", "dependency_unavailable", probe_readiness_zh),
        variant("unschedulable", "encoder", &[], "unschedulable_cpu", "quota_exceeded", unschedulable_cpu),
        variant("unschedulable", "vector-db", &[], "unschedulable_taint_zh", "node_not_ready", unschedulable_taint_zh),
        variant(
            "node_not_ready",
            "node-2",
            &["orders", "kubelet"],
            "node_kubelet_gone",
            "unschedulable",
            node_kubelet_gone,
        ),
        variant(
            "node_not_ready",
            "node-1",
            &["im-push", "containerd"],
            "node_runtime_zh",
            "probe_failure",
            node_runtime_zh,
        ),
        variant("quota_exceeded", "etl", &[], "quota_pods", "unschedulable", quota_pods),
    ]
}

fn release_null_pointer() -> World {
    World::new("2026-05-13T16:25:00Z", "UTC")
        .calls("storefront", &["checkout-api", "promo"])
        .calls("checkout-api", &["postgres-co", "promo"])
        .service(Service::new("storefront", Stack::Node).failing([(-14.5, 0.0), (-13.0, 0.12)], "502"))
        .service(Service::new("checkout-api", Stack::Spring).version("2.41.0").failing([(-15.0, 0.0), (-13.5, 0.24)], "500"))
        .service(Service::new("promo", Stack::Go))
        .level(r#"pg_up{instance="postgres-co:9187"}"#, 1.0)
        .rollout(-15.5, "checkout-api", "2.40.3", "checkout-api 2.40.3 -> 2.41.0: gift cards as a payment method")
        .says("checkout-api", "error", (-15.0, 0.0), 12.0, "Servlet.service() for servlet [dispatcherServlet] threw exception\njava.lang.NullPointerException: Cannot invoke \"GiftCard.balance()\" because \"card\" is null\n\tat com.example.checkout.PaymentPlanner.plan(PaymentPlanner.java:141)\n\tat com.example.checkout.CheckoutController.submit(CheckoutController.java:77)")
        .says("storefront", "error", (-14.5, 0.0), 6.0, "checkout-api answered 500 for cart {hex}")
        .says("promo", "warn", (-70.0, 0.0), 0.5, "promo {n} expired while in a cart")
        .alert(Alert::new(Shape::Webhook, "CheckoutErrorRate", "application=checkout-api,severity=critical", -11.0)
            .text("24% of checkouts fail", "5xx share over 2m is above 5%")
            .expr(r#"sum(rate(http_server_requests_seconds_count{application="checkout-api",status="500"}[2m])) / sum(rate(http_server_requests_seconds_count{application="checkout-api"}[2m])) > 0.05"#))
        .mentions(&["2.41.0"])
}

fn release_zh_slow() -> World {
    World::new("2026-09-29T19:40:00+08:00", "Asia/Shanghai")
        .namespace("travel")
        .calls("trip-app", &["fare", "seat"])
        .calls("fare", &["redis-fare", "mysql-fare"])
        .service(Service::new("trip-app", Stack::Nginx).load(40.0).seconds([(-20.0, 0.1), (-18.0, 1.2)]).failing([(-20.0, 0.0), (-18.0, 0.1)], "504"))
        .service(Service::new("fare", Stack::Go).version("v6.3.0").failing([(-20.5, 0.0), (-19.0, 0.2)], "500").seconds([(-20.5, 0.05), (-18.5, 0.4)]).chatter(&["报价完成 航段={n}", "运价缓存命中 {hex}"]))
        .service(Service::new("seat", Stack::Rust))
        .level(r#"mysql_up{instance="mysql-fare:9104"}"#, 1.0)
        .counter(r#"mysql_global_status_slow_queries_total{instance="mysql-fare:9104"}"#, 0.01)
        .level(r#"redis_up{instance="redis-fare:9121"}"#, 1.0)
        .rollout(-21.0, "fare", "v6.2.4", "fare v6.2.4 -> v6.3.0：联程票新计价规则")
        .says("fare", "error", (-20.5, 0.0), 11.0, "计价失败 航段={n}: runtime error: index out of range [2] with length 2\ngoroutine 4411 [running]:\nmain.(*Pricer).Combine(...)\n\t/src/pricer/combine.go:88")
        .says("trip-app", "error", (-20.0, 0.0), 5.0, "upstream fare 返回 500, client: {ip}")
        .line("seat", "warn", -45.0, "座位图刷新耗时 2300ms")
        .change(-110.0, "seat", "config", "seat：缓存时长 30s -> 20s")
        .alert(Alert::new(Shape::Prometheus, "报价失败率过高", "job=fare,severity=critical,namespace=travel", -17.0)
            .text("fare 5xx 20%，阈值 2%", "机票报价接口最近 2 分钟失败率 20%"))
        .mentions(&["v6.3.0"])
}

fn config_missing_key() -> World {
    World::new("2026-03-03T07:07:00Z", "UTC")
        .calls("signup", &["mailer"])
        .service(Service::new("signup", Stack::Rust).failing([(-11.0, 0.0), (-10.0, 0.3)], "502"))
        .service(
            Service::new("mailer", Stack::Python)
                .chatter_rate([(-12.0, 14.0), (-11.5, 0.0)])
                .load([(-12.0, 9.0), (-11.5, 0.0)])
                .ready([(-12.0, 2.0), (-11.5, 0.0)])
                .restarts([(-11.8, 0.0), (-11.5, 1.0), (0.0, 7.0)]),
        )
        .service(Service::new("billing", Stack::Go))
        .pod("mailer", 0, State::CrashLoop { reason: "Error", exit: 1, restarts: 7, at: -1.1 })
        .pod("mailer", 1, State::CrashLoop { reason: "Error", exit: 1, restarts: 7, at: -0.6 })
        .change(-12.2, "mailer", "config", "config map mailer: SMTP settings moved to the new section mail.smtp")
        .says(
            "mailer",
            "fatal",
            (-11.6, 0.0),
            1.4,
            "invalid configuration: required key SMTP_HOST is missing, refusing to start",
        )
        .says(
            "signup",
            "error",
            (-11.0, 0.0),
            7.0,
            "send welcome mail: error sending request for url (http://mailer:8000/send): connection refused",
        )
        .event(Event {
            on: ("Pod", "$mailer"),
            level: "Warning",
            reason: "BackOff",
            message: "Back-off restarting failed container mailer in pod $pod",
            span: (-11.2, -0.3),
            count: 41,
        })
        .change(-77.0, "billing", "deploy", "billing 2.0.0")
        .alert(
            Alert::new(Shape::Grafana, "Mailer down", "service=mailer,severity=critical", -9.0)
                .text("mailer has no ready pod", "kube_deployment_status_replicas_available of mailer is 0"),
        )
        .mentions(&["SMTP_HOST"])
}

fn config_wrong_host_zh() -> World {
    World::new("2026-12-08T15:30:00+08:00", "Asia/Shanghai")
        .namespace("member")
        .calls("gateway-edge", &["member", "points"])
        .calls("member", &["redis-member"])
        .service(
            Service::new("gateway-edge", Stack::Envoy)
                .load(40.0)
                .failing([(-10.2, 0.0), (-10.0, 0.33)], "404")
                .chatter(&["配置版本 {hex} 已生效", "集群健康检查通过 {ms}"]),
        )
        .service(
            Service::new("member", Stack::Spring)
                .load([(-10.3, 14.0), (-10.0, 0.5)])
                .chatter(&["会员 {n} 查询成功"])
                .chatter_rate([(-10.3, 14.0), (-10.0, 0.6)]),
        )
        .service(Service::new("points", Stack::Go))
        .level(r#"redis_up{instance="redis-member:9121"}"#, 1.0)
        .change(-10.4, "gateway-edge", "config", "gateway-edge：路由配置 v118 -> v119，/member 前缀改写")
        .says(
            "gateway-edge",
            "error",
            (-10.2, 0.0),
            14.0,
            "路由匹配失败 path=/member/profile/{n}: unknown cluster 'member-svc-v2', check route configuration",
        )
        .line(
            "gateway-edge",
            "warn",
            -10.3,
            "config update rejected partially: invalid value for field cluster in route 'member': no such cluster",
        )
        .says("points", "warn", (-70.0, 0.0), 0.5, "积分流水 {n} 重复, 已忽略")
        .change(-130.0, "points", "deploy", "points 1.9.9")
        .alert(
            Alert::new(
                Shape::Webhook,
                "会员接口大量 404",
                "service=gateway-edge,severity=critical,namespace=member",
                -8.0,
            )
            .text("gateway-edge 失败率 33%", "会员接口 33% 的请求返回 404，阈值 5%"),
        )
        .mentions(&["v119"])
}

fn crash_go_panic() -> World {
    World::new("2026-04-24T02:50:00Z", "UTC")
        .calls("exchange-ui", &["matcher"])
        .calls("matcher", &["nats"])
        .service(Service::new("exchange-ui", Stack::Node).failing([(-28.0, 0.0), (-27.0, 0.35)], "503"))
        .service(Service::new("matcher", Stack::Go).failing([(-28.0, 0.0), (-27.0, 0.3)], "503").restarts([(-28.2, 0.0), (-28.0, 1.0), (0.0, 9.0)]).ready([(-28.2, 2.0), (-28.0, 0.0)]).memory(240.0, 1024.0).chatter_rate([(-28.2, 14.0), (-28.0, 2.0)]))
        .service(Service::new("tape", Stack::Rust))
        .pod("matcher", 0, State::CrashLoop { reason: "Error", exit: 2, restarts: 9, at: -1.4 })
        .pod("matcher", 1, State::CrashLoop { reason: "Error", exit: 2, restarts: 8, at: -2.9 })
        .says("matcher", "fatal", (-28.0, 0.0), 0.7, "panic: assignment to entry in nil map\n\ngoroutine 71 [running]:\nmain.(*Book).restore(0xc000318000)\n\t/src/book/restore.go:203 +0x1c5")
        .says("matcher", "info", (-28.0, 0.0), 0.7, "restoring book snapshot {hex}")
        .says("exchange-ui", "error", (-28.0, 0.0), 7.0, "connect ECONNREFUSED {ip}:8080 (matcher)")
        .event(Event { on: ("Pod", "$matcher"), level: "Warning", reason: "BackOff", message: "Back-off restarting failed container matcher in pod $pod", span: (-27.5, -0.5), count: 102 })
        .change(-260.0, "tape", "deploy", "tape 1.1.1")
        .alert(Alert::new(Shape::Webhook, "KubePodCrashLooping", "namespace=prod,container=matcher,severity=critical", -20.0)
            .text("Pod is crash looping.", "Pod prod/matcher is in waiting state (reason: \"CrashLoopBackOff\").")
            .expr(r#"max_over_time(kube_pod_container_status_waiting_reason{reason="CrashLoopBackOff"}[5m]) >= 1"#))
        .mentions(&["panic"])
}

fn crash_node_zh() -> World {
    World::new("2026-06-11T11:30:00+08:00", "Asia/Shanghai")
        .namespace("wms")
        .calls("wms-web", &["label-printer"])
        .service(Service::new("wms-web", Stack::Spring).failing([(-22.0, 0.0), (-21.0, 0.15)], "500").chatter(&["波次 {n} 已释放", "拣货完成 {hex}"]))
        .service(Service::new("label-printer", Stack::Node).failing([(-22.0, 0.0), (-21.0, 0.5)], "503").restarts([(-22.2, 0.0), (-22.0, 1.0), (0.0, 8.0)]).ready([(-22.2, 2.0), (-22.0, 0.0)]).chatter_rate([(-22.2, 14.0), (-22.0, 2.0)]).chatter(&["面单已打印 {n}"]))
        .service(Service::new("dock", Stack::Go))
        .pod("label-printer", 0, State::CrashLoop { reason: "Error", exit: 1, restarts: 8, at: -0.8 })
        .pod("label-printer", 1, State::CrashLoop { reason: "Error", exit: 1, restarts: 8, at: -2.0 })
        .says("label-printer", "fatal", (-22.0, 0.0), 0.8, "未捕获的异常, 进程退出: TypeError: Cannot read properties of undefined (reading 'carrier')\n    at formatLabel (/app/src/label.js:57:22)\n    at process.processTicksAndRejections (node:internal/process/task_queues:95:5)")
        .says("wms-web", "error", (-22.0, 0.0), 5.0, "打印面单失败 运单={n}: Connection refused: label-printer/{ip}:3000")
        .event(Event { on: ("Pod", "$label-printer"), level: "Warning", reason: "BackOff", message: "Back-off restarting failed container label-printer in pod $pod", span: (-21.5, -0.5), count: 77 })
        .change(-95.0, "dock", "deploy", "dock 0.3")
        .alert(Alert::new(Shape::Api, "容器反复重启", "namespace=wms,deployment=label-printer,severity=critical", -17.0)
            .text("label-printer 容器反复重启", "label-printer 最近 10 分钟重启 4 次"))
        .mentions(&["TypeError"])
}

fn pull_not_found() -> World {
    World::new("2026-08-12T09:33:00+02:00", "Europe/Amsterdam")
        .calls("bi", &["insights"])
        .service(Service::new("bi", Stack::Go).failing([(-13.0, 0.0), (-12.0, 0.05)], "503"))
        .service(Service::new("insights", Stack::Python).version("2026.08.12").gone(0, -75.0).gone(1, -75.0).ready([(-14.0, 2.0), (-13.5, 0.0)]))
        .service(Service::new("loader", Stack::Rust))
        .rollout(-14.0, "insights", "2026.08.05", "insights 2026.08.05 -> 2026.08.12")
        .pod("insights", 0, State::Waiting { reason: "ImagePullBackOff", message: "Back-off pulling image \"registry.example/insights:2026.08.12\"", at: -13.9 })
        .pod("insights", 1, State::Waiting { reason: "ErrImagePull", message: "rpc error: code = NotFound desc = failed to pull and unpack image \"registry.example/insights:2026.08.12\": not found", at: -13.9 })
        .event(Event { on: ("Pod", "$insights"), level: "Warning", reason: "Failed", message: "Failed to pull image \"registry.example/insights:2026.08.12\": rpc error: code = NotFound desc = failed to resolve reference: manifest unknown", span: (-13.8, -0.8), count: 6 })
        .event(Event { on: ("Pod", "$insights"), level: "Normal", reason: "BackOff", message: "Back-off pulling image \"registry.example/insights:2026.08.12\"", span: (-13.0, -0.2), count: 52 })
        .says("bi", "error", (-13.0, 0.0), 3.0, "no endpoints available for service \"insights\"")
        .alert(Alert::new(Shape::Webhook, "KubeDeploymentReplicasMismatch", "namespace=prod,deployment=insights,severity=warning", -4.0)
            .text("Deployment has not matched the expected number of replicas.", "Deployment prod/insights has not matched the expected number of replicas for longer than 10 minutes.")
            .expr(r#"kube_deployment_spec_replicas != kube_deployment_status_replicas_available"#))
        .mentions(&["2026.08.12"])
}

fn pull_unauthorized_zh() -> World {
    World::new("2026-10-16T14:14:00+08:00", "Asia/Shanghai")
        .namespace("ai")
        .calls("studio", &["vision"])
        .service(Service::new("studio", Stack::Spring).failing([(-17.0, 0.0), (-16.0, 0.2)], "503").chatter(&["作品 {n} 保存"]))
        .service(Service::new("vision", Stack::Python).version("v9").load(6.0).gone(0, -17.5).gone(1, -17.3).ready([(-17.5, 2.0), (-17.0, 0.0)]).chatter_rate([(-18.0, 8.0), (-17.5, 0.0)]))
        .service(Service::new("billing", Stack::Go))
        .change(-18.0, "vision", "scale", "vision：节点维护，副本迁移到新节点")
        .pod("vision", 0, State::Waiting { reason: "ImagePullBackOff", message: "Back-off pulling image \"registry.example/vision:v9\"", at: -17.4 })
        .pod("vision", 1, State::Waiting { reason: "ImagePullBackOff", message: "Back-off pulling image \"registry.example/vision:v9\"", at: -17.4 })
        .event(Event { on: ("Pod", "$vision"), level: "Warning", reason: "Failed", message: "Failed to pull image \"registry.example/vision:v9\": failed to authorize: failed to fetch anonymous token: unexpected status: 401 Unauthorized", span: (-17.2, -0.7), count: 8 })
        .event(Event { on: ("Pod", "$vision"), level: "Warning", reason: "FailedToRetrieveImagePullSecret", message: "Unable to retrieve some image pull secrets (harbor-pull); attempting to pull the image may not succeed.", span: (-17.2, -0.7), count: 81 })
        .says("studio", "error", (-17.0, 0.0), 5.0, "识图失败: vision 无可用实例")
        .alert(Alert::new(Shape::Prometheus, "副本不可用", "namespace=ai,deployment=vision,severity=critical", -12.0)
            .text("vision 可用副本 0/2", "vision 的可用副本低于期望值超过 5 分钟"))
        .mentions(&["pull"])
}

fn probe_liveness_timeout() -> World {
    World::new("2026-02-27T13:05:00Z", "UTC")
        .calls("intranet", &["documents"])
        .service(Service::new("intranet", Stack::DotNet).failing([(-24.0, 0.0), (-22.0, 0.2)], "502"))
        .service(Service::new("documents", Stack::Spring).failing([(-24.0, 0.0), (-22.0, 0.22)], "503").restarts([(-24.2, 0.0), (-23.0, 1.0), (-16.0, 2.0), (-9.0, 3.0), (-2.0, 4.0)]).ready([(-24.2, 2.0), (-23.0, 1.0)]))
        .service(Service::new("mailbox", Stack::Go))
        .pod("documents", 0, State::Restarted { reason: "Error", exit: 143, restarts: 4, at: -2.0 })
        .pod("documents", 1, State::Unready { restarts: 4, at: -3.0 })
        .change(-25.0, "documents", "config", "documents: liveness probe time-out 5s -> 1s, period 10s -> 5s")
        .event(Event { on: ("Pod", "$documents"), level: "Warning", reason: "Unhealthy", message: "Liveness probe failed: Get \"http://10.1.2.3:8080/actuator/health\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)", span: (-24.0, -0.5), count: 63 })
        .event(Event { on: ("Pod", "$documents"), level: "Normal", reason: "Killing", message: "Container documents failed liveness probe, will be restarted", span: (-23.0, -2.0), count: 8 })
        .says("documents", "info", (-24.0, 0.0), 0.6, "Commencing graceful shutdown. Waiting for active requests to complete")
        .says("documents", "info", (-24.0, 0.0), 0.6, "Started DocumentsApplication in 4{ms}.2 seconds")
        .says("intranet", "error", (-24.0, 0.0), 5.0, "documents: connection refused ({ip}:8080)")
        .change(-190.0, "mailbox", "deploy", "mailbox 2.1")
        .alert(Alert::new(Shape::Webhook, "DocumentsAvailability", "application=documents,severity=critical", -18.0)
            .text("documents answers 22% with 503", "share of 5xx over 5m"))
        .mentions(&["iveness"])
}

fn probe_readiness_zh() -> World {
    World::new("2026-05-02T20:20:00+08:00", "Asia/Shanghai")
        .namespace("ticket")
        .calls("ticket-web", &["seat-map"])
        .service(Service::new("ticket-web", Stack::Nginx).failing([(-16.0, 0.0), (-15.0, 0.4)], "503").load(30.0))
        .service(
            Service::new("seat-map", Stack::Go)
                .load([(-16.0, 12.0), (-15.5, 0.2)])
                .ready([(-16.2, 2.0), (-16.0, 0.0)])
                .chatter(&["座位图渲染 {n}", "场次 {ms} 已同步"]),
        )
        .service(Service::new("queue-page", Stack::Node))
        .pod("seat-map", 0, State::Unready { restarts: 0, at: -16.1 })
        .pod("seat-map", 1, State::Unready { restarts: 0, at: -16.0 })
        .change(-17.0, "seat-map", "config", "seat-map：就绪探针路径 /ready -> /readyz")
        .event(Event {
            on: ("Pod", "$seat-map"),
            level: "Warning",
            reason: "Unhealthy",
            message: "Readiness probe failed: HTTP probe failed with statuscode: 404",
            span: (-16.2, -0.1),
            count: 194,
        })
        .says("seat-map", "info", (-16.2, 0.0), 12.0, "GET /readyz 404 0ms")
        .says(
            "ticket-web",
            "error",
            (-16.0, 0.0),
            8.0,
            "no live upstreams while connecting to upstream, upstream: \"http://seat-map/plan/{n}\"",
        )
        .change(-140.0, "queue-page", "deploy", "queue-page 3.2")
        .alert(
            Alert::new(Shape::Labels, "座位图服务不可用", "service=seat-map,severity=critical,namespace=ticket", -13.0)
                .text("seat-map 无就绪实例", ""),
        )
        .mentions(&["probe"])
}

fn unschedulable_cpu() -> World {
    World::new("2026-07-25T17:17:00Z", "UTC")
        .calls("studio", &["encoder"])
        .service(Service::new("studio", Stack::Go).failing([(-10.0, 0.0), (-8.0, 0.04)], "503"))
        .service(Service::new("encoder", Stack::Rust).replicas(4).wanted([(-19.2, 2.0), (-19.1, 4.0)]).ready(2.0).gone(2, -75.0).gone(3, -75.0).cores(5.6, 6.0))
        .service(Service::new("drafts", Stack::Node))
        .pod("encoder", 2, State::Pending { message: "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.", at: -19.1 })
        .pod("encoder", 3, State::Pending { message: "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.", at: -19.1 })
        .change(-19.2, "encoder", "scale", "encoder 2 -> 4 replicas for the festival")
        .event(Event { on: ("Pod", "$encoder.2"), level: "Warning", reason: "FailedScheduling", message: "0/3 nodes are available: 3 Insufficient cpu.", span: (-19.0, -0.5), count: 23 })
        .says("studio", "warn", (-15.0, 0.0), 2.0, "encode job {hex} waits for a free encoder")
        .change(-88.0, "drafts", "deploy", "drafts 1.0.4")
        .alert(Alert::new(Shape::Webhook, "KubePodNotReady", "namespace=prod,deployment=encoder,severity=warning", -3.0)
            .text("Pod has been in a non-ready state for more than 15 minutes.", "encoder has 2 pods that are not ready."))
        .mentions(&["Insufficient cpu"])
}

fn unschedulable_taint_zh() -> World {
    World::new("2026-01-15T10:50:00+08:00", "Asia/Shanghai")
        .namespace("search")
        .calls("qa", &["vector-db"])
        .service(Service::new("qa", Stack::Python).failing([(-20.0, 0.0), (-19.0, 0.7)], "503").chatter(&["问答完成 {n}"]))
        .service(Service::new("vector-db", Stack::Rust).version("0.9.1").gone(0, -75.0).gone(1, -75.0).ready([(-21.0, 2.0), (-20.5, 0.0)]))
        .service(Service::new("embedder", Stack::Go))
        .rollout(-21.0, "vector-db", "0.9.0", "vector-db 0.9.0 -> 0.9.1：改用 nvme 节点池")
        .pod("vector-db", 0, State::Pending { message: "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.", at: -20.9 })
        .pod("vector-db", 1, State::Pending { message: "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.", at: -20.9 })
        .event(Event { on: ("Pod", "$vector-db"), level: "Warning", reason: "FailedScheduling", message: "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector.", span: (-20.8, -0.8), count: 25 })
        .says("qa", "error", (-20.0, 0.0), 8.0, "检索失败: vector-db 连接被拒绝 ({ip}:6333)")
        .alert(Alert::new(Shape::Grafana, "检索服务不可用", "deployment=vector-db,namespace=search,severity=critical", -15.0)
            .text("vector-db 可用副本为 0", "vector-db 副本 Pending 超过 5 分钟"))
        .mentions(&["affinity"])
}

fn node_kubelet_gone() -> World {
    World::new("2026-03-14T01:59:00Z", "UTC")
        .calls("portal", &["orders", "catalog"])
        .service(
            Service::new("portal", Stack::Node)
                .failing([(-12.0, 0.0), (-11.0, 0.2), (0.0, 0.12)], "502")
                .nodes(&["node-1", "node-3"]),
        )
        .service(
            Service::new("orders", Stack::Spring)
                .failing([(-12.0, 0.0), (-11.0, 0.1)], "503")
                .ready([(-11.5, 2.0), (-11.0, 1.0)])
                .nodes(&["node-2", "node-3"]),
        )
        .service(
            Service::new("catalog", Stack::Go)
                .ready([(-11.5, 2.0), (-11.0, 1.0)])
                .nodes(&["node-1", "node-2"])
                .gone(1, -12.0),
        )
        .host(Host::new("node-2").silent(-12.0))
        .pod("orders", 0, State::Lost { at: -11.2 })
        .pod("catalog", 1, State::Lost { at: -11.2 })
        .node_condition((
            "node-2",
            "Ready",
            "Unknown",
            "NodeStatusUnknown",
            "Kubelet stopped posting node status.",
            -11.4,
        ))
        .node_condition((
            "node-2",
            "MemoryPressure",
            "Unknown",
            "NodeStatusUnknown",
            "Kubelet stopped posting node status.",
            -11.4,
        ))
        .event(Event {
            on: ("Node", "node-2"),
            level: "Normal",
            reason: "NodeNotReady",
            message: "Node node-2 status is now: NodeNotReady",
            span: (-11.4, -11.4),
            count: 1,
        })
        .event(Event {
            on: ("Pod", "$orders"),
            level: "Warning",
            reason: "NodeNotReady",
            message: "Node is not ready",
            span: (-11.3, -11.3),
            count: 1,
        })
        .level(
            r#"kube_node_status_condition{node="node-2",condition="Ready",status="true"}"#,
            [(-11.5, 1.0), (-11.4, 0.0)],
        )
        .level(r#"kube_node_status_condition{node="node-1",condition="Ready",status="true"}"#, 1.0)
        .level(r#"up{job="node-exporter",node="node-2"}"#, [(-12.1, 1.0), (-12.0, 0.0)])
        .says("portal", "error", (-12.0, 0.0), 5.0, "GET http://orders:8080/o/{n}: connect EHOSTUNREACH 10.244.2.{ms}")
        .change(-170.0, "catalog", "deploy", "catalog 4.5.6")
        .alert(
            Alert::new(Shape::Webhook, "PortalErrors", "app=portal,severity=critical", -9.0)
                .text("portal answers 15% with 502", "share over 2m"),
        )
        .mentions(&["node-2"])
}

fn node_runtime_zh() -> World {
    World::new("2026-11-02T18:06:00+08:00", "Asia/Shanghai")
        .namespace("im")
        .calls("im-gateway", &["im-push"])
        .service(
            Service::new("im-gateway", Stack::Go)
                .failing([(-18.0, 0.0), (-17.0, 0.1)], "503")
                .chatter(&["长连接 {n} 建立", "消息投递 {uuid}"])
                .nodes(&["node-2", "node-3"]),
        )
        .service(Service::new("im-push", Stack::Rust).ready([(-18.0, 2.0), (-17.5, 1.0)]).nodes(&["node-1", "node-2"]))
        .service(Service::new("im-history", Stack::Spring).nodes(&["node-1", "node-3"]))
        .pod("im-push", 0, State::Lost { at: -17.6 })
        .pod("im-history", 0, State::Lost { at: -17.6 })
        .node_condition((
            "node-1",
            "Ready",
            "False",
            "KubeletNotReady",
            "container runtime is down: PLEG is not healthy: pleg was last seen active 4m12s ago; threshold is 3m0s",
            -17.8,
        ))
        .event(Event {
            on: ("Node", "node-1"),
            level: "Warning",
            reason: "ContainerRuntimeUnhealthy",
            message: "rpc error: code = DeadlineExceeded desc = context deadline exceeded",
            span: (-17.8, -0.2),
            count: 35,
        })
        .level(
            r#"kube_node_status_condition{node="node-1",condition="Ready",status="true"}"#,
            [(-17.9, 1.0), (-17.8, 0.0)],
        )
        .says("im-gateway", "error", (-18.0, 0.0), 5.0, "推送失败: dial tcp {ip}:9000: connect: no route to host")
        .change(-95.0, "im-history", "flag", "im-history：打开冷热分层")
        .alert(
            Alert::new(Shape::Pagerduty, "KubeNodeNotReady", "node=node-1,severity=critical", -14.0)
                .text("节点 node-1 未就绪", "节点 node-1 处于 NotReady 超过 3 分钟"),
        )
        .mentions(&["node-1"])
}

fn quota_pods() -> World {
    World::new("2026-09-05T06:45:00Z", "UTC")
        .namespace("data")
        .calls("airflow", &["etl"])
        .service(Service::new("airflow", Stack::Python).format(Format::Structlog))
        .service(Service::new("etl", Stack::Spring).replicas(2).version("4.0.1").ready(2.0))
        .service(Service::new("warehouse", Stack::Go))
        .event(Event { on: ("ReplicaSet", "etl"), level: "Warning", reason: "FailedCreate", message: "Error creating: pods \"etl-5c9d-\" is forbidden: exceeded quota: data-quota, requested: limits.memory=8Gi, used: limits.memory=64Gi, limited: limits.memory=64Gi", span: (-20.0, -0.4), count: 18 })
        .level(r#"kube_resourcequota{namespace="data",resourcequota="data-quota",resource="limits.memory",type="used"}"#, [(-40.0, 4.2e10), (-20.0, 6.87e10)])
        .level(r#"kube_resourcequota{namespace="data",resourcequota="data-quota",resource="limits.memory",type="hard"}"#, 68_719_476_736.0)
        .says("airflow", "error", (-20.0, 0.0), 2.0, "cannot scale etl to 5: pods is forbidden: exceeded quota: data-quota")
        .change(-20.4, "etl", "scale", "etl 2 -> 5 replicas for the month end")
        .change(-180.0, "warehouse", "deploy", "warehouse 2.6")
        .alert(Alert::new(Shape::Webhook, "EtlBacklogDeadline", "deployment=etl,namespace=data,severity=warning", -10.0)
            .text("etl cannot reach its 5 replicas", "etl runs 2 of 5 wanted replicas for 10 minutes"))
        .mentions(&["quota"])
}
