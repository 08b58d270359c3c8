//! One service of a world: healthy unless told otherwise. It makes the metrics that its stack exports, those of
//! its containers, and its everyday log lines.

use super::curve::Curve;
use super::format::Format;
use super::world::World;

/// What a service is built with; it decides the names of its metrics.
#[derive(Clone, Copy, PartialEq)]
pub enum Stack {
    /// Spring Boot with Micrometer.
    Spring,
    /// Go with client_golang.
    Go,
    /// Node with prom-client.
    Node,
    /// Python with prometheus-flask-exporter.
    Python,
    /// .NET with OpenTelemetry.
    DotNet,
    /// Rust with axum-prometheus.
    Rust,
    /// nginx ingress.
    Nginx,
    /// Envoy sidecar or gateway.
    Envoy,
    /// Not an HTTP service: a worker, a database, a broker. Only container metrics.
    Plain,
}

pub struct Service {
    pub name: &'static str,
    pub stack: Stack,
    pub format: Format,
    pub replicas: usize,
    pub version: &'static str,
    /// Requests a second over all pods.
    pub load: Curve,
    /// Share of requests that fail, and the status they end with.
    pub failing: Curve,
    pub status: &'static str,
    /// Mean seconds to answer.
    pub seconds: Curve,
    /// Per pod: cores in use and allowed, MiB in use and allowed, share of throttled periods.
    pub cores: Curve,
    pub core_limit: f64,
    pub memory: Curve,
    pub memory_limit: f64,
    pub throttled: Curve,
    /// Restarts of each pod since the start of the world, and how many pods are ready.
    pub restarts: Curve,
    pub ready: Curve,
    /// How many pods are wanted; as many as there are unless told otherwise.
    pub wanted: Curve,
    pub chatter: &'static [&'static str],
    /// Everyday log lines a minute, by minute: a service that is down says nothing.
    pub chatter_rate: Curve,
    /// Nodes of its pods in order; else they are spread.
    pub nodes: &'static [&'static str],
    /// Pods (by index) that are gone since a minute: no series and no log lines any more.
    pub gone: Vec<(usize, f64)>,
}

impl Service {
    pub fn new(name: &'static str, stack: Stack) -> Service {
        let (format, chatter): (_, &[&str]) = match stack {
            Stack::Spring => (
                Format::Logback,
                &["Completed 200 OK in {ms} ms", "Published event {uuid}", "Loaded aggregate {n} version {ms}"],
            ),
            Stack::Go => (Format::Zap, &["request handled in {ms}ms", "refreshed snapshot {hex}", "job {n} done"]),
            Stack::Node => (Format::Pino, &["request completed", "session {hex} extended", "rendered page in {ms}ms"]),
            Stack::Python => (
                Format::Python,
                &["GET /v1/items/{n} 200 {ms}ms", "task {uuid} succeeded in 0.{ms}s", "synced {ms} rows"],
            ),
            Stack::DotNet => (
                Format::DotNet,
                &["Request finished HTTP/1.1 GET - 200 in {ms}ms", "Executed endpoint {n}", "Handled command {uuid}"],
            ),
            Stack::Rust => {
                (Format::Tracing, &["finished processing request latency={ms} ms status=200", "flushed {n} records"])
            }
            Stack::Nginx => (Format::Nginx, &["client {ip} closed keepalive connection"]),
            Stack::Envoy => (Format::Logfmt, &["cds: add/update {ms} cluster(s)", "lds: listener 0.0.0.0_{n} updated"]),
            Stack::Plain => (Format::Log4j, &["processed batch {n} in {ms} ms", "heartbeat ok"]),
        };
        Service {
            name,
            stack,
            format,
            replicas: 2,
            version: "1.14.2",
            load: 12.0.into(),
            failing: 0.0.into(),
            status: "500",
            seconds: 0.045.into(),
            cores: 0.22.into(),
            core_limit: 1.0,
            memory: 310.0.into(),
            memory_limit: 768.0,
            throttled: 0.004.into(),
            restarts: 0.0.into(),
            ready: f64::NAN.into(),
            wanted: f64::NAN.into(),
            chatter,
            chatter_rate: 14.0.into(),
            nodes: &[],
            gone: Vec::new(),
        }
    }

    pub fn format(mut self, format: Format) -> Service {
        self.format = format;
        self
    }

    pub fn replicas(mut self, replicas: usize) -> Service {
        self.replicas = replicas;
        self
    }

    pub fn version(mut self, version: &'static str) -> Service {
        self.version = version;
        self
    }

    pub fn load(mut self, per_second: impl Into<Curve>) -> Service {
        self.load = per_second.into();
        self
    }

    pub fn failing(mut self, share: impl Into<Curve>, status: &'static str) -> Service {
        self.failing = share.into();
        self.status = status;
        self
    }

    pub fn seconds(mut self, mean: impl Into<Curve>) -> Service {
        self.seconds = mean.into();
        self
    }

    pub fn cores(mut self, used: impl Into<Curve>, limit: f64) -> Service {
        self.cores = used.into();
        self.core_limit = limit;
        self
    }

    pub fn memory(mut self, mebibytes: impl Into<Curve>, limit: f64) -> Service {
        self.memory = mebibytes.into();
        self.memory_limit = limit;
        self
    }

    pub fn throttled(mut self, share: impl Into<Curve>) -> Service {
        self.throttled = share.into();
        self
    }

    pub fn restarts(mut self, count: impl Into<Curve>) -> Service {
        self.restarts = count.into();
        self
    }

    pub fn ready(mut self, pods: impl Into<Curve>) -> Service {
        self.ready = pods.into();
        self
    }

    pub fn wanted(mut self, pods: impl Into<Curve>) -> Service {
        self.wanted = pods.into();
        self
    }

    pub fn chatter(mut self, messages: &'static [&'static str]) -> Service {
        self.chatter = messages;
        self
    }

    pub fn chatter_rate(mut self, per_minute: impl Into<Curve>) -> Service {
        self.chatter_rate = per_minute.into();
        self
    }

    pub fn nodes(mut self, nodes: &'static [&'static str]) -> Service {
        self.nodes = nodes;
        self
    }

    pub fn gone(mut self, pod: usize, minute: f64) -> Service {
        self.gone.push((pod, minute));
        self
    }

    /// When a pod's series end; after now for one that runs.
    fn end(&self, pod: usize) -> f64 {
        self.gone.iter().find(|gone| gone.0 == pod).map_or(f64::INFINITY, |gone| gone.1)
    }

    /// The pods that run at a minute.
    pub fn alive(&self, minute: f64) -> Vec<String> {
        let pods = self.pods().into_iter().enumerate();
        pods.filter(|(index, _)| minute < self.end(*index)).map(|(_, pod)| pod).collect()
    }

    /// The hash in the names of its pods, from name and version.
    pub fn digest(&self, version: &str) -> String {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in self.name.bytes().chain(version.bytes()) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        // The alphabet of Kubernetes' names, which spells no words.
        let letters = b"bcdfghjklmnpqrstvwxz2456789";
        (0..10).map(|index| char::from(letters[(hash >> (index * 5)) as usize % letters.len()])).collect()
    }

    pub fn pods(&self) -> Vec<String> {
        let digest = self.digest(self.version);
        let suffixes = ["4xkqp", "8mz2t", "tq7vd", "lw5cn", "9hr6j", "zc2fs"];
        suffixes[..self.replicas].iter().map(|suffix| format!("{}-{digest}-{suffix}", self.name)).collect()
    }

    pub fn generate(&self, world: &mut World) {
        for (index, pod) in self.pods().iter().enumerate() {
            world.end = self.end(index);
            self.http_metrics(world, pod);
            if world.objects.kubernetes {
                self.container_metrics(world, pod);
            }
        }
        world.end = f64::INFINITY;
        if world.objects.kubernetes {
            self.replica_metrics(world);
        }
        let mut minute = -world.minutes;
        while minute < 0.0 {
            let rate = self.chatter_rate.at(minute).max(0.2);
            minute += -(1.0 - world.rng.unit()).ln() / rate;
            if minute < 0.0 && self.chatter_rate.at(minute) > 0.3 {
                let message = self.chatter[world.rng.below(self.chatter.len() as u64) as usize];
                world.put_line_as(self.format, self.name, &self.alive(minute), "info", minute, message);
            }
        }
    }

    /// Load of one pod with the share that fails or does not, sampled at each minute.
    fn rate(&self, world: &World, failing: bool) -> Curve {
        let pods = self.replicas as f64;
        sampled(world, |minute| {
            let share = self.failing.at(minute);
            self.load.at(minute) / pods * if failing { share + 0.0005 } else { (1.0 - share).max(0.0) }
        })
    }

    fn http_metrics(&self, world: &mut World, pod: &str) {
        let (good, bad) = (self.rate(world, false), self.rate(world, true));
        let (namespace, name, status) = (world.objects.namespace, self.name, self.status);
        let (count, labels, code) = match self.stack {
            Stack::Spring => (
                "http_server_requests_seconds_count",
                format!(r#"application="{name}",namespace="{namespace}",pod="{pod}",uri="/api/v1/**",method="GET""#),
                "status",
            ),
            Stack::Go => (
                "http_requests_total",
                format!(r#"job="{name}",namespace="{namespace}",pod="{pod}",handler="/v1""#),
                "code",
            ),
            Stack::Node => (
                "http_request_duration_seconds_count",
                format!(r#"app="{name}",namespace="{namespace}",pod="{pod}",route="/:id""#),
                "status_code",
            ),
            Stack::Python => (
                "flask_http_request_total",
                format!(r#"service="{name}",namespace="{namespace}",pod="{pod}",method="GET""#),
                "status",
            ),
            Stack::DotNet => (
                "http_server_request_duration_seconds_count",
                format!(r#"service_name="{name}",namespace="{namespace}",pod="{pod}",http_route="api/{{id}}""#),
                "http_response_status_code",
            ),
            Stack::Rust => {
                ("axum_http_requests_total", format!(r#"service="{name}",pod="{pod}",endpoint="/v1""#), "status")
            }
            Stack::Nginx => (
                "nginx_ingress_controller_requests",
                format!(r#"service="{name}",controller_pod="{pod}",host="www.example""#),
                "status",
            ),
            Stack::Envoy => (
                "envoy_cluster_upstream_rq_total",
                format!(r#"service="{name}",pod="{pod}",envoy_cluster_name="outbound""#),
                "envoy_response_code",
            ),
            Stack::Plain => return,
        };
        world.put_counter(&format!(r#"{count}{{{labels},{code}="200"}}"#), &good);
        world.put_counter(&format!(r#"{count}{{{labels},{code}="{status}"}}"#), &bad);
        self.latency(world, count, &labels, code);
        self.process_metrics(world, pod);
    }

    /// A sum beside a count where the stack has one, else a histogram of its own.
    fn latency(&self, world: &mut World, count: &str, labels: &str, code: &str) {
        let pods = self.replicas as f64;
        let busy = sampled(world, |minute| self.load.at(minute) / pods * self.seconds.at(minute));
        if let Some(base) = count.strip_suffix("_count") {
            return world.put_counter(&format!(r#"{base}_sum{{{labels},{code}="200"}}"#), &busy);
        }
        let base = match self.stack {
            Stack::Python => "flask_http_request_duration_seconds",
            Stack::Rust => "axum_http_requests_duration_seconds",
            Stack::Nginx => "nginx_ingress_controller_request_duration_seconds",
            _ => "http_request_duration_seconds",
        };
        for bound in [0.05, 0.25, 1.0, 2.5, 10.0, f64::INFINITY] {
            // Times to answer are about exponential around their mean.
            let below = sampled(world, |minute| {
                self.load.at(minute) / pods * (1.0 - (-bound / self.seconds.at(minute).max(1e-3)).exp())
            });
            let bound = if bound.is_infinite() { "+Inf".to_string() } else { format!("{bound:?}") };
            world.put_counter(&format!(r#"{base}_bucket{{{labels},le="{bound}"}}"#), &below);
        }
        world.put_counter(&format!("{base}_sum{{{labels}}}"), &busy);
        world.put_counter(&format!("{base}_count{{{labels}}}"), &self.load.map(|load| load / pods));
    }

    /// What the runtime says of itself; enough to be looked at, nothing in it is ever wrong.
    fn process_metrics(&self, world: &mut World, pod: &str) {
        let name = self.name;
        match self.stack {
            Stack::Spring => {
                let labels = format!(r#"application="{name}",pod="{pod}""#);
                world.put_gauge(&format!("jvm_threads_live_threads{{{labels}}}"), &84.0.into(), 0.02);
            }
            Stack::Go | Stack::Rust => {
                let labels = format!(r#"job="{name}",pod="{pod}""#);
                world.put_gauge(
                    &format!("process_resident_memory_bytes{{{labels}}}"),
                    &self.memory.map(|mib| mib * 9e5),
                    0.02,
                );
            }
            Stack::Node => {
                let labels = format!(r#"app="{name}",pod="{pod}""#);
                world.put_gauge(&format!("nodejs_eventloop_lag_p99_seconds{{{labels}}}"), &0.013.into(), 0.1);
            }
            _ => {}
        }
    }

    fn container_metrics(&self, world: &mut World, pod: &str) {
        let mebi = 1024.0 * 1024.0;
        let labels = format!(r#"namespace="{}",pod="{pod}",container="{}""#, world.objects.namespace, self.name);
        world.put_counter(&format!("container_cpu_usage_seconds_total{{{labels}}}"), &self.cores);
        world.put_gauge(
            &format!("container_memory_working_set_bytes{{{labels}}}"),
            &self.memory.map(|mib| mib * mebi),
            0.01,
        );
        world.put_counter(&format!("container_cpu_cfs_periods_total{{{labels}}}"), &10.0.into());
        world.put_counter(
            &format!("container_cpu_cfs_throttled_periods_total{{{labels}}}"),
            &self.throttled.map(|share| share * 10.0),
        );
        let limit = |resource: &str, unit: &str| {
            format!(r#"kube_pod_container_resource_limits{{{labels},resource="{resource}",unit="{unit}"}}"#)
        };
        world.put_gauge(&limit("cpu", "core"), &self.core_limit.into(), 0.0);
        world.put_gauge(&limit("memory", "byte"), &(self.memory_limit * mebi).into(), 0.0);
        let (from, restarts) = (world.rng.below(2) as f64, &self.restarts);
        let whole = sampled(world, |minute| from + restarts.at(minute).floor());
        world.put_restarts(&format!("kube_pod_container_status_restarts_total{{{labels}}}"), &whole);
    }

    fn replica_metrics(&self, world: &mut World) {
        let labels = format!(r#"namespace="{}",deployment="{}""#, world.objects.namespace, self.name);
        let all = self.replicas as f64;
        let count = |world: &World, told: &Curve| {
            sampled(world, |minute| Some(told.at(minute)).filter(|pods| !pods.is_nan()).map_or(all, f64::round))
        };
        let (wanted, ready) = (count(world, &self.wanted), count(world, &self.ready));
        world.put_gauge(&format!("kube_deployment_spec_replicas{{{labels}}}"), &wanted, 0.0);
        world.put_gauge(&format!("kube_deployment_status_replicas_available{{{labels}}}"), &ready, 0.0);
    }
}

/// A curve through the values of a function at every half minute of the world.
pub fn sampled(world: &World, value: impl Fn(f64) -> f64) -> Curve {
    let count = (world.minutes * 2.0) as i64;
    Curve::through((-count..=0).map(|half| (half as f64 / 2.0, value(half as f64 / 2.0))).collect())
}
