//! What kind of trouble an alert reports: its name weighs most, then its expression, then its text.

use std::sync::LazyLock;

use regex::Regex;

use crate::domain::{Alert, Symptom};

/// In the order of how much a word tells: `certificate` says more than `error`.
const WORDS: &[(Symptom, &str)] = &[
    (Symptom::Certificate, r"cert|x509|tls|ssl|证书"),
    (Symptom::Queue, r"kafka|rabbit|consumer.?lag|lag\b|queue|backlog|消费|积压|队列|堆积"),
    (Symptom::Cache, r"redis|memcache|cache|缓存"),
    (
        Symptom::Database,
        r"mysql|postgres|\bpg_|mongo|database|\bdb\b|hikari|connection.?pool|deadlock|slow.?quer|数据库|连接池|慢查询|死锁",
    ),
    (Symptom::Disk, r"disk|filesystem|inode|volume|\bpvc?\b|磁盘|硬盘|文件系统|存储空间|iowait"),
    (Symptom::Restarts, r"crash.?loop|restart|oom|重启|崩溃"),
    (
        Symptom::Rollout,
        r"rollout|replicas?.?mismatch|generation.?mismatch|image.?pull|deployment.?(failed|stuck)|发布|部署失败|镜像",
    ),
    (Symptom::Node, r"node.?(not.?ready|down|unreachable|pressure)|kubelet|节点|主机"),
    (Symptom::Memory, r"memory|heap|working.?set|\bgc\b|内存|堆|垃圾回收"),
    (Symptom::Cpu, r"cpu|throttl|load.?(average|high|1)|处理器|负载|节流"),
    (Symptom::Latency, r"latency|slow|duration|response.?time|\bp9\d|quantile|延迟|时延|响应时间|耗时|变慢|超时"),
    (Symptom::Network, r"network|packet|conntrack|dns|tcp|网络|丢包|解析"),
    (
        Symptom::Unavailable,
        r"unavailable|down\b|not.?ready|unreachable|probe.?(fail|success)|absent|availability|replicas.?available|不可用|宕机|掉线|探测失败|未就绪",
    ),
    (Symptom::Errors, r"error|fail|5xx|50\d|exception|错误|失败|异常|报错"),
    (Symptom::Traffic, r"traffic|request.?rate|\bqps\b|\brps\b|requests.?(high|surge|per.?second)|流量|请求量|并发"),
];

static COMPILED: LazyLock<Vec<(Symptom, Regex)>> = LazyLock::new(|| {
    // Constants that the tests compile.
    WORDS.iter().map(|(symptom, words)| (*symptom, Regex::new(&format!("(?i){words}")).expect("constant"))).collect()
});

/// The symptom that the name tells; else the text; else the expression; else `Other`.
pub(super) fn of(alert: &Alert, expr: Option<&str>) -> Symptom {
    let summary: String = ["summary", "title", "message", "description"]
        .iter()
        .filter_map(|key| alert.annotations.get(*key))
        .map(|text| format!("{text}\n"))
        .collect();
    let name = words_of(&alert.name);
    [name.as_str(), summary.as_str(), expr.unwrap_or_default()]
        .into_iter()
        .find_map(|text| COMPILED.iter().find(|(_, words)| words.is_match(text)).map(|(symptom, _)| *symptom))
        .unwrap_or(Symptom::Other)
}

/// `KubeNodeNotReady` beside itself as `Kube Node Not Ready`, so that word boundaries are seen.
fn words_of(name: &str) -> String {
    let mut split = String::with_capacity(name.len() * 2);
    let mut previous_lower = false;
    for c in name.chars() {
        if c.is_ascii_uppercase() && previous_lower {
            split.push(' ');
        }
        split.push(c);
        previous_lower = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    format!("{name} {split}")
}
