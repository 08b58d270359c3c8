//! The stable identifiers of root causes. They appear in `expected.toml`, in JSON and in signature files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! categories {
    ($($variant:ident = $id:literal, $en:literal, $zh:literal;)*) => {
        /// A kind of root cause.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        pub enum Category {
            $(#[serde(rename = $id)] $variant,)*
        }

        impl Category {
            pub const ALL: &'static [Category] = &[$(Category::$variant,)*];

            /// The stable identifier, as in JSON.
            pub fn id(self) -> &'static str {
                match self { $(Category::$variant => $id,)* }
            }

            /// The category of an identifier.
            pub fn from_id(id: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|category| category.id() == id)
            }

            /// A short name for people.
            pub fn title(self, lang: super::Lang) -> &'static str {
                match self { $(Category::$variant => lang.pick($en, $zh),)* }
            }
        }
    };
}

categories! {
    DbConnectionPoolExhausted = "db_connection_pool_exhausted", "Database connection pool exhausted", "数据库连接池耗尽";
    DbUnavailable = "db_unavailable", "Database unavailable", "数据库不可用";
    DbLockContention = "db_lock_contention", "Database lock contention", "数据库锁争用";
    SlowQuery = "slow_query", "Slow database queries", "数据库慢查询";
    DependencyUnavailable = "dependency_unavailable", "Dependency unavailable", "依赖服务不可用";
    DependencySlow = "dependency_slow", "Slow dependency", "依赖服务响应慢";
    RetryStorm = "retry_storm", "Retry storm", "重试风暴";
    DnsFailure = "dns_failure", "DNS resolution failing", "DNS 解析失败";
    TlsCertificateExpired = "tls_certificate_expired", "TLS certificate expired", "TLS 证书过期";
    NetworkLoss = "network_loss", "Network packet loss", "网络丢包";
    CpuSaturation = "cpu_saturation", "CPU saturated", "CPU 饱和";
    CpuThrottling = "cpu_throttling", "CPU throttled by its limit", "CPU 受限额节流";
    MemoryLeak = "memory_leak", "Memory leak", "内存泄漏";
    OomKilled = "oom_killed", "Killed for lack of memory (OOM)", "内存不足被杀 (OOM)";
    GcPressure = "gc_pressure", "Garbage collection pressure", "垃圾回收压力过大";
    DiskFull = "disk_full", "Disk full", "磁盘写满";
    DiskIoSaturation = "disk_io_saturation", "Disk I/O saturated", "磁盘 I/O 饱和";
    InodeExhausted = "inode_exhausted", "Out of inodes", "inode 耗尽";
    FileDescriptorExhausted = "file_descriptor_exhausted", "Out of file descriptors", "文件描述符耗尽";
    ConnectionTableFull = "connection_table_full", "Connection tracking table full", "连接跟踪表已满";
    ThreadPoolExhausted = "thread_pool_exhausted", "Thread pool exhausted", "线程池耗尽";
    BadDeployment = "bad_deployment", "Bad deployment", "有问题的发布";
    ConfigError = "config_error", "Configuration error", "配置错误";
    CrashLoop = "crash_loop", "Crash loop", "反复崩溃重启";
    ImagePullFailure = "image_pull_failure", "Image cannot be pulled", "镜像拉取失败";
    ProbeFailure = "probe_failure", "Health probe failing", "健康探针失败";
    Unschedulable = "unschedulable", "Pods cannot be scheduled", "Pod 无法调度";
    NodeNotReady = "node_not_ready", "Node not ready", "节点未就绪";
    TrafficSurge = "traffic_surge", "Traffic surge", "流量突增";
    RateLimited = "rate_limited", "Rate limited", "被限流";
    QueueBacklog = "queue_backlog", "Queue backlog", "队列积压";
    CacheFailure = "cache_failure", "Cache failure", "缓存故障";
    AuthExpired = "auth_expired", "Credentials expired or refused", "凭证过期或被拒绝";
    ClockSkew = "clock_skew", "Clock skew", "时钟偏移";
    QuotaExceeded = "quota_exceeded", "Quota exceeded", "配额超限";
    MonitoringGap = "monitoring_gap", "Gap in monitoring", "监控数据缺口";
    Unknown = "unknown", "Unknown", "原因不明";
}
