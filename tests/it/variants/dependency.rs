//! What a service calls: gone, slow, not to be found by name, not to be trusted, or refusing.

use super::Variant;
use super::alert::{Alert, Shape};
use super::curve::Curve;
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
            "dependency_unavailable",
            "geocoder",
            &["dispatch"],
            "dependency_down_external",
            "dns_failure",
            dependency_down_external,
        ),
        variant(
            "dependency_unavailable",
            "stock",
            &["cart"],
            "dependency_down_scaled_to_zero",
            "db_unavailable",
            dependency_down_scaled,
        ),
        variant(
            "dependency_slow",
            "scoring",
            &["loan-api"],
            "dependency_slow_model",
            "slow_query",
            dependency_slow_model,
        ),
        variant(
            "dependency_slow",
            "sms-provider",
            &["notify"],
            "dependency_slow_provider",
            "thread_pool_exhausted",
            dependency_slow_provider,
        ),
        variant("dns_failure", "coredns", &["search-api", "web"], "dns_coredns", "dependency_unavailable", dns_coredns),
        variant("dns_failure", "device-hub", &[], "dns_resolver_hosts", "network_loss", dns_resolver_hosts),
        variant(
            "tls_certificate_expired",
            "auth-proxy",
            &["mobile-api"],
            "tls_node_expired",
            "auth_expired",
            tls_node_expired,
        ),
        variant(
            "tls_certificate_expired",
            "mq-broker",
            &["report"],
            "tls_python_expired",
            "dependency_unavailable",
            tls_python_expired,
        ),
        variant(
            "auth_expired",
            "exporter-job",
            &["object-store"],
            "auth_token_expired",
            "tls_certificate_expired",
            auth_token_expired,
        ),
        variant("auth_expired", "crm-sync", &["crm"], "auth_secret_rotated", "rate_limited", auth_secret_rotated),
        variant(
            "network_loss",
            "media-edge",
            &["node-2", "origin"],
            "network_loss_node",
            "dependency_slow",
            network_loss_node,
        ),
        variant("network_loss", "replicator", &["dc-link"], "network_loss_hosts", "dns_failure", network_loss_hosts),
        variant("retry_storm", "inventory", &["order-router"], "retry_storm_go", "traffic_surge", retry_storm_go),
        variant("retry_storm", "profile-api", &["app-gateway"], "retry_storm_zh", "dependency_slow", retry_storm_zh),
    ]
}

fn dependency_down_external() -> World {
    World::new("2026-05-09T12:48:00Z", "UTC")
        .calls("driver-app", &["dispatch"])
        .calls("dispatch", &["geocoder", "postgis"])
        .service(Service::new("driver-app", Stack::Node).failing([(-22.0, 0.0), (-20.0, 0.35)], "502"))
        .service(Service::new("dispatch", Stack::Go).failing([(-22.0, 0.0), (-20.5, 0.46)], "502").load(20.0))
        .service(Service::new("fleet", Stack::Rust))
        .level(r#"probe_success{job="blackbox",instance="https://geocoder.maps.example/health"}"#, [(-22.6, 1.0), (-22.2, 0.0)])
        .level(r#"pg_up{instance="postgis:9187"}"#, 1.0)
        .counter(r#"outbound_requests_total{job="dispatch",target="geocoder",code="503"}"#, [(-22.5, 0.0), (-21.0, 9.4)])
        .counter(r#"outbound_requests_total{job="dispatch",target="geocoder",code="200"}"#, [(-22.5, 9.4), (-21.0, 0.0)])
        .says("dispatch", "error", (-22.2, 0.0), 16.0, "geocode lookup {n} failed: unexpected status 503 Service Unavailable from https://geocoder.maps.example/v1/geocode")
        .says("dispatch", "error", (-22.0, 0.0), 5.0, "geocode lookup {n} failed: Post \"https://geocoder.maps.example/v1/batch\": dial tcp 203.0.113.40:443: connect: connection refused")
        .says("dispatch", "warn", (-21.5, 0.0), 2.0, "circuit breaker \"geocoder\" is open")
        .says("driver-app", "error", (-22.0, 0.0), 8.0, "dispatch answered 502 for ride {hex}")
        .says("fleet", "warn", (-74.0, 0.0), 0.5, "gps fix older than 30s for vehicle {n}")
        .change(-55.0, "fleet", "deploy", "fleet 0.30.1")
        .alert(Alert::new(Shape::Webhook, "DispatchErrors", "job=dispatch,severity=critical", -18.0)
            .text("dispatch: 46% errors", "Share of 5xx of dispatch over 5m is above 10%.")
            .expr(r#"sum(rate(http_requests_total{job="dispatch",code=~"5.."}[5m])) / sum(rate(http_requests_total{job="dispatch"}[5m])) > 0.1"#))
        .mentions(&["geocoder"])
}

fn dependency_down_scaled() -> World {
    World::new("2026-11-11T00:34:00+08:00", "Asia/Shanghai")
        .namespace("mall")
        .calls("h5", &["cart", "goods"])
        .calls("cart", &["stock", "redis-cart"])
        .service(Service::new("h5", Stack::Nginx).load(50.0).failing([(-13.0, 0.0), (-12.0, 0.2)], "503"))
        .service(Service::new("cart", Stack::Spring).failing([(-13.2, 0.0), (-12.5, 0.55)], "503").chatter(&["加购成功 用户={n}", "购物车合并 {hex}"]))
        .service(Service::new("goods", Stack::Go))
        .service(
            Service::new("stock", Stack::DotNet)
                .load(18.0)
                .gone(0, -13.3)
                .gone(1, -13.3)
                .chatter(&["库存查询 sku={n}", "库存同步完成 {n}"])
                .wanted([(-13.5, 2.0), (-13.4, 0.0)])
                .ready([(-13.4, 2.0), (-13.2, 0.0)]),
        )
        .pod("stock", 0, State::Gone)
        .pod("stock", 1, State::Gone)
        .level(r#"redis_up{instance="redis-cart:9121"}"#, 1.0)
        .says("cart", "error", (-13.2, 0.0), 20.0, "查询库存失败: feign.RetryableException: Connection refused (Connection refused) executing GET http://stock.mall.svc:8080/stock/{n}")
        .says("cart", "error", (-13.0, 0.0), 4.0, "No instances available for stock")
        .says("h5", "error", (-13.0, 0.0), 6.0, "no live upstreams while connecting to upstream, client: {ip}, server: h5, request: \"GET /cart/{n} HTTP/1.1\"")
        .line("stock", "info", -13.4, "Application is shutting down...")
        .event(Event { on: ("Deployment", "stock"), level: "Normal", reason: "ScalingReplicaSet", message: "Scaled down replica set stock from 2 to 0", span: (-13.5, -13.5), count: 1 })
        .change(-13.5, "stock", "scale", "stock 2 -> 0：库存团队盘点维护")
        .change(-62.0, "goods", "deploy", "goods 2.0.9")
        .alert(Alert::new(Shape::Grafana, "购物车可用率", "application=cart,severity=critical", -11.0)
            .text("购物车成功率低于 95%", "cart 最近 2 分钟成功率 45%。"))
        .mentions(&["stock"])
}

fn dependency_slow_model() -> World {
    World::new("2026-03-26T09:15:00Z", "UTC")
        .calls("broker-ui", &["loan-api"])
        .calls("loan-api", &["scoring", "postgres-loan"])
        .service(Service::new("broker-ui", Stack::DotNet).seconds([(-28.0, 0.2), (-20.0, 5.0)]).failing([(-24.0, 0.0), (-19.0, 0.05)], "504"))
        .service(Service::new("loan-api", Stack::Spring).seconds([(-29.0, 0.3), (-21.0, 5.6)]).failing([(-24.0, 0.0), (-19.0, 0.06)], "504"))
        .service(Service::new("scoring", Stack::Python).load(6.0).seconds([(-31.0, 0.2), (-22.0, 5.3), (0.0, 5.6)]).chatter(&["scored application {n} model=v7", "features joined for {n}"]))
        .service(Service::new("archive", Stack::Go))
        .level(r#"pg_up{instance="postgres-loan:9187"}"#, 1.0)
        .gauge(r#"pg_stat_statements_mean_exec_milliseconds{instance="postgres-loan:9187"}"#, 1.9)
        .counter(r#"http_client_requests_seconds_count{application="loan-api",pod="$loan-api",client_name="scoring",status="200"}"#, 3.0)
        .counter(r#"http_client_requests_seconds_sum{application="loan-api",pod="$loan-api",client_name="scoring",status="200"}"#, [(-31.0, 0.6), (-22.0, 15.5)])
        .says("loan-api", "error", (-26.0, 0.0), 6.0, "score {n}: java.net.SocketTimeoutException: Read timed out calling http://scoring:8000/score")
        .says("loan-api", "warn", (-30.0, 0.0), 8.0, "call to scoring took {long} ms")
        .says("scoring", "warn", (-31.0, 0.0), 5.0, "feature store lookup took {long} ms for applicant {n}")
        .says("broker-ui", "warn", (-27.0, 0.0), 5.0, "loan-api responded slowly: {long}ms")
        .says("archive", "warn", (-74.0, 0.0), 0.4, "chunk {hex} re-uploaded")
        .change(-170.0, "archive", "config", "archive: chunk size 8 MiB")
        .alert(Alert::new(Shape::Prometheus, "LoanApiLatency", "application=loan-api,severity=warning", -20.0)
            .text("loan-api mean latency is 5.2s", "Mean latency over 5m above 2s.")
            .expr(r#"sum(rate(http_server_requests_seconds_sum{application="loan-api"}[5m])) / sum(rate(http_server_requests_seconds_count{application="loan-api"}[5m])) > 2"#))
        .mentions(&["scoring"])
}

fn dependency_slow_provider() -> World {
    World::new("2026-08-03T15:50:00+08:00", "Asia/Shanghai")
        .namespace("msg")
        .calls("passport", &["notify"])
        .calls("notify", &["sms-provider", "redis-msg"])
        .service(Service::new("passport", Stack::Spring).seconds([(-25.0, 0.06), (-19.0, 2.2)]).chatter(&["登录成功 用户={n}", "下发验证码 手机尾号={ms}"]))
        .service(Service::new("notify", Stack::Go).format(Format::Logfmt).seconds([(-26.0, 0.12), (-20.0, 4.4)]).failing([(-22.0, 0.0), (-17.0, 0.04)], "504").chatter(&["短信已提交 id={n}", "模板渲染完成 {ms}ms"]))
        .service(Service::new("audit", Stack::Rust))
        .gauge(r#"notify_provider_duration_p95_seconds{provider="sms-provider",pod="$notify"}"#, [(-27.0, 0.3), (-20.0, 7.4), (0.0, 7.9)])
        .gauge(r#"notify_provider_duration_p95_seconds{provider="email-provider",pod="$notify"}"#, 0.4)
        .gauge(r#"go_goroutines{job="notify",pod="$notify"}"#, [(-27.0, 180.0), (-19.0, 610.0)])
        .level(r#"redis_up{instance="redis-msg:9121"}"#, 1.0)
        .says("notify", "warn", (-26.0, 0.0), 9.0, "调用短信通道耗时过长 provider=sms-provider cost={long}ms")
        .says("notify", "error", (-23.0, 0.0), 3.0, "短信发送失败: Post \"https://sms-provider.example/send\": context deadline exceeded (Client.Timeout exceeded while awaiting headers)")
        .says("passport", "warn", (-25.0, 0.0), 5.0, "notify 接口响应慢 {long} ms")
        .says("audit", "warn", (-70.0, 0.0), 0.5, "audit segment {hex} compacted late")
        .change(-33.0, "audit", "deploy", "audit 1.2.0 -> 1.2.1")
        .alert(Alert::new(Shape::Webhook, "验证码下发延迟过高", "service=notify,severity=warning", -18.0)
            .text("notify P95 延迟 7.4s，阈值 2s", "短信验证码下发缓慢，用户投诉收不到验证码。"))
        .mentions(&["sms-provider"])
}

fn dns_coredns() -> World {
    World::new("2026-02-25T17:41:00Z", "UTC")
        .calls("web", &["search-api", "session"])
        .calls("search-api", &["opensearch", "session"])
        .calls("session", &["valkey"])
        .service(Service::new("web", Stack::Node).failing([(-17.0, 0.0), (-14.0, 0.19)], "500"))
        .service(Service::new("search-api", Stack::Go).failing([(-17.0, 0.0), (-14.0, 0.27)], "500").seconds([(-17.0, 0.05), (-14.0, 1.9)]))
        .service(Service::new("session", Stack::Rust).failing([(-17.0, 0.0), (-14.0, 0.12)], "500"))
        .service(Service::new("coredns", Stack::Plain).format(Format::Klog).chatter(&["plugin/reload: Running configuration SHA512 = {hex}"]).chatter_rate(0.4).memory(150.0, 170.0))
        .counter(r#"coredns_dns_responses_total{pod="$coredns",rcode="SERVFAIL"}"#, [(-17.6, 0.02), (-15.0, 44.0)])
        .counter(r#"coredns_dns_responses_total{pod="$coredns",rcode="NOERROR"}"#, [(-17.6, 120.0), (-15.0, 71.0)])
        .counter(r#"coredns_forward_healthcheck_failures_total{pod="$coredns",to="169.254.20.2:53"}"#, [(-17.6, 0.0), (-16.0, 1.8)])
        .says("search-api", "error", (-17.0, 0.0), 12.0, "query {hex}: dial tcp: lookup opensearch.data.svc.cluster.local on 10.96.0.10:53: server misbehaving")
        .says("search-api", "error", (-17.0, 0.0), 4.0, "dial tcp: lookup session.prod.svc.cluster.local: i/o timeout")
        .says("session", "error", (-17.0, 0.0), 5.0, "failed to lookup address information: Temporary failure in name resolution host=valkey")
        .says("web", "error", (-17.0, 0.0), 8.0, "Error: getaddrinfo EAI_AGAIN search-api")
        .says("coredns", "error", (-17.5, 0.0), 9.0, "[ERROR] plugin/errors: 2 opensearch.data.svc.cluster.local. A: read udp {ip}:43121->169.254.20.2:53: i/o timeout")
        .change(-80.0, "web", "deploy", "web 88.1")
        .alert(Alert::new(Shape::Pagerduty, "SearchErrors", "service=search-api,severity=critical", -13.0)
            .text("27% of searches fail", "5xx share of search-api above 5%"))
        .mentions(&["lookup"])
}

fn dns_resolver_hosts() -> World {
    World::new("2026-07-30T06:05:00+09:00", "Asia/Tokyo")
        .hosts()
        .calls("portal", &["device-hub"])
        .calls("device-hub", &["mqtt", "timeseries"])
        .service(Service::new("portal", Stack::Python).failing([(-26.0, 0.0), (-24.0, 0.3)], "502"))
        .service(Service::new("device-hub", Stack::Spring).failing([(-26.3, 0.0), (-24.5, 0.6)], "500"))
        .host(Host::machine("hub-1"))
        .host(Host::machine("hub-2"))
        .counter(r#"node_network_receive_errs_total{instance="hub-1",device="eth0"}"#, 0.0)
        .says("device-hub", "error", (-26.3, 0.0), 13.0, "push {n} failed: java.net.UnknownHostException: timeseries.internal.example: Name or service not known")
        .says("device-hub", "warn", (-26.0, 0.0), 3.0, "Failed to resolve 'mqtt.internal.example' [A(1)] after 4 queries")
        .says("portal", "error", (-26.0, 0.0), 6.0, "HTTPConnectionPool(host='device-hub', port=8080): Max retries exceeded with url: /d/{n} (Caused by ResponseError('too many 500 error responses'))")
        .says("systemd-resolved", "warn", (-26.6, 0.0), 3.0, "Using degraded feature set UDP instead of UDP+EDNS0 for DNS server 10.1.0.2.")
        .line("systemd-resolved", "error", -26.6, "Failed to send hostname reply: no servers could be reached")
        .change(-27.0, "network", "config", "firewall: rule set 2026-07-30 applied to vlan 110")
        .change(-180.0, "portal", "deploy", "portal 5.5.0")
        .alert(Alert::new(Shape::Api, "DeviceHubErrors", "application=device-hub,severity=critical", -23.0)
            .text("device-hub fails 60% of its requests", "above 5% for 2m")
            .expr(r#"sum(rate(http_server_requests_seconds_count{application="device-hub",status="500"}[2m])) > 1"#))
        .mentions(&["UnknownHost"])
}

fn tls_node_expired() -> World {
    World::new("2026-10-01T00:21:00Z", "UTC")
        .calls("mobile-api", &["auth-proxy", "offers"])
        .calls("auth-proxy", &["ldap"])
        .service(Service::new("mobile-api", Stack::Node).failing([(-21.0, 0.0), (-19.0, 0.5)], "500"))
        .service(Service::new("auth-proxy", Stack::Envoy).load([(-21.0, 20.0), (-19.0, 0.4)]))
        .service(Service::new("offers", Stack::Go))
        .level(r#"probe_ssl_earliest_cert_expiry{instance="auth-proxy:8443"}"#, 1_790_812_800.0)
        .level(r#"probe_ssl_earliest_cert_expiry{instance="offers:8443"}"#, 1_799_812_800.0)
        .counter(r#"envoy_listener_ssl_connection_error_total{service="auth-proxy",pod="$auth-proxy"}"#, [(-21.0, 0.01), (-20.0, 9.0)])
        .says("mobile-api", "error", (-21.0, 0.0), 18.0, "token introspection failed: Error: certificate has expired code=CERT_HAS_EXPIRED host=auth-proxy:8443")
        .says("auth-proxy", "warn", (-21.0, 0.0), 8.0, "TLS_error:|268436501:SSL routines:OPENSSL_internal:SSLV3_ALERT_CERTIFICATE_EXPIRED:TLS_error_end remote={ip}:51022")
        .says("offers", "warn", (-74.0, 0.0), 0.5, "offer {n} has no image")
        .change(-70.0, "offers", "deploy", "offers 12.4.0")
        .alert(Alert::new(Shape::Webhook, "MobileApiErrorRatio", "app=mobile-api,severity=critical", -18.0)
            .text("mobile-api 5xx ratio 0.5", "5xx ratio over 5m above 0.05")
            .expr(r#"sum(rate(http_request_duration_seconds_count{app="mobile-api",status_code="500"}[5m])) / sum(rate(http_request_duration_seconds_count{app="mobile-api"}[5m])) > 0.05"#))
        .mentions(&["expired"])
}

fn tls_python_expired() -> World {
    World::new("2026-12-15T13:17:00+01:00", "Europe/Zurich")
        .calls("dashboard", &["report"])
        .calls("report", &["mq-broker", "postgres-rep"])
        .service(Service::new("dashboard", Stack::DotNet).failing([(-16.0, 0.0), (-14.0, 0.2)], "502"))
        .service(Service::new("report", Stack::Python).failing([(-17.0, 0.0), (-15.0, 0.7)], "500"))
        .service(Service::new("mq-broker", Stack::Plain).format(Format::Logback).chatter(&["client {ip} subscribed topic {n}"]))
        .level(r#"x509_cert_not_after{subject_CN="mq-broker",secret_name="mq-broker-tls"}"#, 1_797_336_000.0)
        .level(r#"x509_cert_not_after{subject_CN="report",secret_name="report-tls"}"#, 1_809_336_000.0)
        .says("report", "error", (-17.0, 0.0), 12.0, "publish job {uuid} failed: [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired (_ssl.c:1006)")
        .says("mq-broker", "warn", (-17.0, 0.0), 8.0, "SSL handshake failed with {ip}: Received fatal alert: certificate_expired")
        .says("dashboard", "fatal", (-16.0, -15.0), 1.0, "report service answered 500 three times in a row")
        .says("dashboard", "error", (-16.0, 0.0), 6.0, "Response status code does not indicate success: 500 (Internal Server Error) for report/{n}")
        .event(Event { on: ("Certificate", "mq-broker-tls"), level: "Warning", reason: "Failed", message: "The certificate request has failed to complete and will be retried: Failed to wait for order resource to become ready: order is in \"invalid\" state", span: (-2000.0, -40.0), count: 31 })
        .change(-140.0, "dashboard", "config", "dashboard: theme switch")
        .alert(Alert::new(Shape::Opsgenie, "ReportFailing", "service=report,severity=high", -13.0)
            .text("report answers 70% with 500", "report: share of 5xx over 5m is 70%, allowed are 5%"))
        .mentions(&["expired"])
}

fn auth_token_expired() -> World {
    World::new("2026-01-07T04:30:00Z", "UTC")
        .calls("scheduler", &["exporter-job"])
        .calls("exporter-job", &["object-store"])
        .service(Service::new("scheduler", Stack::Go))
        .service(Service::new("exporter-job", Stack::Python).failing([(-30.2, 0.0), (-29.5, 0.9)], "500"))
        .service(Service::new("object-store", Stack::Rust).failing([(-30.2, 0.0), (-29.5, 0.4)], "403"))
        .says("exporter-job", "error", (-30.0, 0.0), 10.0, "upload part {n}: botocore.exceptions.ClientError: An error occurred (ExpiredToken) when calling the PutObject operation: The provided token has expired.")
        .says("exporter-job", "warn", (-30.0, 0.0), 3.0, "export {uuid} postponed after 3 attempts: 403 Forbidden")
        .says("object-store", "warn", (-30.0, 0.0), 8.0, "request denied: session token expired at 2026-01-07T04:00:00Z access_key=AK{n}")
        .says("scheduler", "error", (-30.0, 0.0), 4.0, "job exporter-job finished with 500")
        .change(-65.0, "object-store", "deploy", "object-store 0.12.4")
        .alert(Alert::new(Shape::Prometheus, "ExportsFailing", "service=exporter-job,severity=warning", -25.0)
            .text("exports fail", "90% of the exports of the last 5 minutes failed"))
        .mentions(&["expired"])
}

fn auth_secret_rotated() -> World {
    World::new("2026-06-18T10:10:00+08:00", "Asia/Singapore")
        .namespace("sales")
        .calls("sales-web", &["crm-sync"])
        .calls("crm-sync", &["crm", "mysql-crm"])
        .service(Service::new("sales-web", Stack::Nginx).load(20.0).failing([(-24.0, 0.0), (-22.0, 0.12)], "500"))
        .service(Service::new("crm-sync", Stack::DotNet).failing([(-24.5, 0.0), (-23.0, 0.8)], "500").chatter(&["同步客户 {n} 完成", "拉取线索 {ms} 条"]))
        .service(Service::new("leads", Stack::Node))
        .counter(r#"crm_client_responses_total{service_name="crm-sync",pod="$crm-sync",code="401"}"#, [(-24.6, 0.0), (-23.5, 5.0)])
        .counter(r#"crm_client_responses_total{service_name="crm-sync",pod="$crm-sync",code="200"}"#, [(-24.6, 5.0), (-23.5, 0.0)])
        .level(r#"mysql_up{instance="mysql-crm:9104"}"#, 1.0)
        .says("crm-sync", "error", (-24.5, 0.0), 14.0, "同步客户 {n} 失败: 401 Unauthorized {\"error\":\"invalid_client\",\"error_description\":\"client secret is no longer valid\"}")
        .says("crm-sync", "warn", (-24.5, 0.0), 3.0, "刷新访问令牌失败: invalid_grant")
        .says("sales-web", "error", (-24.0, 0.0), 4.0, "crm-sync 返回 500, client: {ip}")
        .change(-26.0, "crm", "config", "crm: client secrets of Q2 revoked after rotation")
        .change(-100.0, "leads", "deploy", "leads 3.1.0")
        .alert(Alert::new(Shape::Webhook, "客户同步失败率高", "service_name=crm-sync,namespace=sales,severity=critical", -21.0)
            .text("crm-sync 失败率 80%", "crm-sync 最近 5 分钟失败率超过 20%。"))
        .mentions(&["401"])
}

fn network_loss_node() -> World {
    World::new("2026-04-20T22:31:00Z", "UTC")
        .calls("player", &["media-edge"])
        .calls("media-edge", &["origin"])
        .service(Service::new("player", Stack::Node).failing([(-18.0, 0.0), (-15.0, 0.06)], "504"))
        .service(Service::new("media-edge", Stack::Envoy).load(80.0).failing([(-18.0, 0.0), (-15.0, 0.08)], "503").seconds([(-18.0, 0.05), (-15.0, 1.3)]).nodes(&["node-2", "node-2"]))
        .service(Service::new("origin", Stack::Rust).nodes(&["node-1", "node-3"]))
        .counter(r#"node_network_receive_drop_total{node="node-2",device="eth0"}"#, [(-18.5, 0.0), (-16.0, 410.0)])
        .counter(r#"node_network_transmit_errs_total{node="node-2",device="eth0"}"#, [(-18.5, 0.0), (-16.0, 96.0)])
        .counter(r#"node_netstat_Tcp_RetransSegs_total{node="node-2"}"#, [(-18.5, 2.0), (-16.0, 930.0)])
        .counter(r#"node_netstat_Tcp_RetransSegs_total{node="node-1"}"#, 2.0)
        .counter(r#"node_netstat_Tcp_RetransSegs_total{node="node-3"}"#, 3.0)
        .says("media-edge", "warn", (-18.0, 0.0), 9.0, "upstream reset: reset reason: connection timeout, transport failure reason: delayed connect error: 110 cluster=origin")
        .says("media-edge", "warn", (-18.0, 0.0), 4.0, "connection to {ip}:8080 terminated: Connection reset by peer")
        .says("kernel", "warn", (-18.5, 0.0), 2.0, "eth0: Rx ring buffer overrun, {n} packets dropped")
        .says("player", "warn", (-18.0, 0.0), 5.0, "segment {n} timed out")
        .change(-130.0, "origin", "deploy", "origin 0.7.7")
        .alert(Alert::new(Shape::Webhook, "EdgeErrors", "service=media-edge,severity=warning", -13.0)
            .text("media-edge: 8% of segments fail", "5xx share of media-edge over 5m above 2%"))
        .mentions(&["node-2"])
}

fn network_loss_hosts() -> World {
    World::new("2026-09-12T02:02:00+02:00", "Europe/Madrid")
        .hosts()
        .calls("replicator", &["archive-remote"])
        .service(
            Service::new("replicator", Stack::Go)
                .format(Format::Logfmt)
                .failing([(-33.0, 0.0), (-29.0, 0.2)], "504")
                .seconds([(-33.0, 0.08), (-29.0, 3.0)]),
        )
        .service(Service::new("archive-remote", Stack::Rust))
        .host(Host::machine("dc-a-7"))
        .host(Host::machine("dc-b-2"))
        .gauge(r#"smokeping_loss_ratio{source="dc-a-7",target="dc-b-2"}"#, [(-34.0, 0.0), (-31.0, 0.17), (0.0, 0.21)])
        .gauge(
            r#"probe_icmp_duration_seconds{source="dc-a-7",target="dc-b-2",phase="rtt"}"#,
            [(-34.0, 0.011), (-31.0, 0.19)],
        )
        .counter(r#"node_netstat_Tcp_RetransSegs_total{instance="dc-a-7"}"#, [(-34.0, 4.0), (-31.0, 1400.0)])
        .says(
            "replicator",
            "error",
            (-33.0, 0.0),
            8.0,
            "replicate segment {hex}: write tcp {ip}:40112->10.9.2.2:9000: i/o timeout",
        )
        .says("replicator", "error", (-33.0, 0.0), 3.0, "replicate segment {hex}: read: connection reset by peer")
        .says("replicator", "warn", (-33.0, 0.0), 3.0, "link quality poor: 21% packet loss to dc-b-2")
        .change(-300.0, "archive-remote", "deploy", "archive-remote 2.0.0")
        .alert(
            Alert::new(
                Shape::Labels,
                "ReplicationErrors",
                "job=replicator,severity=warning,value=20%,threshold=5%",
                -27.0,
            )
            .text("replication fails for 20% of segments", ""),
        )
        .mentions(&["loss"])
}

fn retry_storm_go() -> World {
    World::new("2026-02-02T18:20:00-03:00", "America/Sao_Paulo")
        .calls("store-web", &["order-router"])
        .calls("order-router", &["inventory", "tax"])
        .service(Service::new("store-web", Stack::Node).load(20.0).failing([(-19.0, 0.0), (-13.0, 0.3)], "503"))
        .service(
            Service::new("order-router", Stack::Go)
                .load(20.0)
                .failing([(-19.0, 0.0), (-13.0, 0.32)], "503")
                .seconds([(-19.0, 0.06), (-12.0, 2.8)]),
        )
        .service(
            Service::new("inventory", Stack::Rust)
                .load([(-20.0, 21.0), (-19.0, 30.0), (-12.0, 118.0)])
                .failing([(-20.0, 0.0), (-19.0, 0.2), (-12.0, 0.7)], "503")
                .seconds([(-20.0, 0.03), (-12.0, 1.0)])
                .cores([(-20.0, 0.3), (-12.0, 1.4)], 2.0),
        )
        .service(Service::new("tax", Stack::Go))
        .counter(
            r#"order_router_retries_total{target="inventory",pod="$order-router"}"#,
            [(-20.0, 0.05), (-19.0, 4.0), (-12.0, 46.0)],
        )
        .counter(r#"order_router_requests_total{pod="$order-router"}"#, 10.0)
        .says(
            "order-router",
            "warn",
            (-20.0, 0.0),
            22.0,
            "retrying reserve {n} against inventory: attempt 4 of 5, last error: 503 Service Unavailable",
        )
        .says(
            "order-router",
            "error",
            (-19.0, 0.0),
            8.0,
            "reserve {n}: giving up after 5 attempts: 503 Service Unavailable",
        )
        .says("inventory", "warn", (-19.0, 0.0), 12.0, "request {hex} shed: 64 in flight")
        .line("inventory", "warn", -20.2, "snapshot compaction paused requests for 2400 ms")
        .says("store-web", "error", (-19.0, 0.0), 8.0, "order-router: 503")
        .change(-160.0, "order-router", "config", "order-router: retries to inventory 1 -> 5, no back-off")
        .alert(
            Alert::new(Shape::Webhook, "OrderRouterErrors", "job=order-router,severity=critical", -12.0)
                .text("order-router: 32% errors", "5xx share of order-router over 5m above 5%"),
        )
        .mentions(&["retr"])
}

fn retry_storm_zh() -> World {
    let surge: Curve = [(-23.0, 30.0), (-22.0, 55.0), (-16.0, 190.0), (0.0, 205.0)].into();
    World::new("2026-05-20T13:14:00+08:00", "Asia/Shanghai")
        .calls("app-gateway", &["profile-api", "feed"])
        .calls("profile-api", &["mongo-user"])
        .service(Service::new("app-gateway", Stack::Spring).load(40.0).failing([(-22.0, 0.0), (-16.0, 0.4)], "504").chatter(&["路由转发 {n}", "令牌校验通过 用户={n}"]))
        .service(Service::new("profile-api", Stack::Go).load(surge).failing([(-23.0, 0.0), (-16.0, 0.66)], "503").seconds([(-23.0, 0.05), (-16.0, 2.4)]).cores([(-23.0, 0.4), (-16.0, 1.5)], 2.0))
        .service(Service::new("feed", Stack::Python))
        .level(r#"mongodb_up{instance="mongo-user:9216"}"#, 1.0)
        .counter(r#"resilience4j_retry_calls_total{application="app-gateway",name="profile",kind="failed_with_retry",pod="$app-gateway"}"#, [(-23.0, 0.02), (-16.0, 13.0)])
        .counter(r#"resilience4j_retry_calls_total{application="app-gateway",name="profile",kind="successful_with_retry",pod="$app-gateway"}"#, [(-23.0, 0.1), (-16.0, 6.0)])
        .says("app-gateway", "warn", (-22.5, 0.0), 24.0, "调用 profile-api 超时, 第 3 次重试 (共 4 次) 用户={n}")
        .says("app-gateway", "error", (-22.0, 0.0), 8.0, "调用 profile-api 重试次数已用尽 用户={n}")
        .says("profile-api", "warn", (-22.0, 0.0), 10.0, "请求排队过长, 丢弃 {hex}")
        .line("profile-api", "warn", -23.2, "主从切换中, 读请求阻塞 1800ms")
        .change(-90.0, "feed", "deploy", "feed 4.4.0")
        .alert(Alert::new(Shape::Prometheus, "网关超时率过高", "application=app-gateway,severity=critical", -15.0)
            .text("app-gateway 超时率 40%，阈值 5%", "用户资料接口大量超时"))
        .mentions(&["重试"])
}
