//! Incidents in which nothing explains the alert: ordinary noise only. A diagnosis must not name a cause.

use super::Variant;
use super::alert::{Alert, Shape};
use super::service::{Service, Stack};
use super::world::World;

pub fn variants() -> Vec<Variant> {
    let variant =
        |name, neighbour, world| Variant { category: "unknown", service: "", also: &[], name, neighbour, world };
    vec![
        variant("unknown_business_metric", "bad_deployment", business_metric),
        variant("unknown_noise_zh", "slow_query", noise_zh),
        variant("unknown_short_blip", "dependency_slow", short_blip),
    ]
}

/// Fewer sign-ups than usual: nothing technical is wrong, and a release of another service was long before.
fn business_metric() -> World {
    World::new("2026-04-05T10:30:00Z", "UTC")
        .calls("landing", &["signup"])
        .calls("signup", &["postgres-users"])
        .service(Service::new("landing", Stack::Node))
        .service(Service::new("signup", Stack::Spring))
        .service(Service::new("campaigns", Stack::Go))
        .level(r#"pg_up{instance="postgres-users:9187"}"#, 1.0)
        .gauge(r#"signup_conversions_per_minute{application="signup"}"#, [(-75.0, 21.0), (-40.0, 17.0), (0.0, 11.0)])
        .says("signup", "warn", (-75.0, 0.0), 0.6, "password {n} rejected: too short")
        .says("campaigns", "warn", (-75.0, 0.0), 0.4, "banner {n} has no translation")
        .change(-420.0, "campaigns", "deploy", "campaigns 5.0.1")
        .alert(
            Alert::new(Shape::Webhook, "SignupsBelowExpectation", "application=signup,severity=warning", -12.0)
                .text("sign-ups are 40% below last week", "signup_conversions_per_minute is 12, expected 20")
                .expr("signup_conversions_per_minute < 14"),
        )
}

/// An anomaly detector's alert about nothing.
fn noise_zh() -> World {
    World::new("2026-09-17T15:15:00+08:00", "Asia/Shanghai")
        .namespace("ops")
        .calls("console", &["asset", "audit"])
        .service(Service::new("console", Stack::Spring).chatter(&["用户 {n} 登录", "菜单加载 {ms} ms"]))
        .service(Service::new("asset", Stack::Go).chatter(&["资产 {n} 同步完成"]))
        .service(Service::new("audit", Stack::Python))
        .says("asset", "warn", (-75.0, 0.0), 0.5, "资产 {n} 缺少负责人字段")
        .says("audit", "warn", (-75.0, 0.0), 0.3, "审计记录 {hex} 重复, 已忽略")
        .alert(
            Alert::new(Shape::Prometheus, "智能基线异常", "service=asset,severity=info,namespace=ops", -6.0)
                .text("asset 指标偏离智能基线", "检测到 asset 的综合健康分由 98 变为 95"),
        )
}

/// One probe from afar failed once; every metric and log inside is as always.
fn short_blip() -> World {
    World::new("2026-12-02T22:50:00+01:00", "Europe/Vienna")
        .hosts()
        .calls("portal", &["content"])
        .service(Service::new("portal", Stack::Nginx))
        .service(Service::new("content", Stack::Rust))
        .service(Service::new("feeds", Stack::DotNet))
        .says("content", "warn", (-75.0, 0.0), 0.5, "asset {n} has an unknown colour profile")
        .says("feeds", "warn", (-75.0, 0.0), 0.4, "feed {n} declares the wrong charset")
        .change(-300.0, "feeds", "config", "feeds: two sources added")
        .alert(Alert::new(Shape::Text, "SyntheticCheckFailed", "", -4.0).text(
            "check portal-home from eu-south failed once",
            "Location eu-south reported one failure; eu-west and us-east are fine.",
        ))
}
