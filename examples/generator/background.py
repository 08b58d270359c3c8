"""The world around an incident: services that are well, nodes, and the objects that a cluster keeps of them."""

import kube
from metrics import wave


class Service:
    """A deployment with what is common to its pods. `digest` is the hash in the name of its replica set."""

    def __init__(self, name, pods, image, digest, since, load, memory="512Mi", namespace="shop"):
        self.namespace = namespace
        self.name, self.image, self.digest, self.since, self.load, self.memory = (
            name,
            image,
            digest,
            since,
            load,
            memory,
        )
        self.pods = [f"{name}-{digest}-{suffix}" for suffix in ("4xkqp", "8mz2t", "tq7vd", "lw5cn")[:pods]]


def traffic(metrics, service, failing=0.0, status="502"):
    """Requests of every pod by status; `failing` is the share (of time) that ends with `status`."""
    share = failing if callable(failing) else (lambda t: failing)
    load = wave(service.load / len(service.pods), 0.1)
    for pod in service.pods:
        labels = {"service": service.name, "pod": pod}
        for code, rate in (
            ("200", lambda t: load(t) * (0.988 - share(t))),
            ("404", lambda t: load(t) * 0.012),
            (status, lambda t: load(t) * (share(t) + 0.0004)),
        ):
            metrics.counter(
                "http_requests", {**labels, "status": code}, rate, "Requests answered, by status.", noise=0.05
            )


def containers(metrics, service, cores=0.18, bytes=2.6e8):
    """cAdvisor and kube-state-metrics of a service that neither grows nor restarts."""
    for index, pod in enumerate(service.pods):
        labels = {"namespace": service.namespace, "pod": pod, "container": service.name}
        level = wave(cores, 0.15, phase=index)
        metrics.counter(
            "container_cpu_usage_seconds", labels, level, "Processor time.", start=5000.0, digits=2, step=30
        )
        metrics.gauge(
            "container_memory_working_set_bytes",
            labels,
            wave(bytes, 0.02, 2400, index),
            "Working set.",
            0.01,
            0,
            step=30,
        )
        metrics.counter("kube_pod_container_status_restarts", labels, 0.0, "Restarts.", start=0, step=60)


def replicas(metrics, service, available=None):
    labels = {"namespace": service.namespace, "deployment": service.name}
    count = len(service.pods)
    ready = count if available is None else available
    metrics.gauge("kube_deployment_spec_replicas", labels, count, "Wanted replicas.", digits=0, step=60)
    metrics.gauge("kube_deployment_status_replicas_available", labels, ready, "Ready replicas.", digits=0, step=60)


def nodes(metrics, names, load=2.1):
    """Node exporter; `load` may be a function of `(node, t)`."""
    for node in names:
        level = (lambda t, node=node: load(node, t)) if callable(load) else wave(load, 0.2, 3000, len(node))
        metrics.gauge("node_load1", {"node": node}, level, "Load.", 0.08, 2, step=60)
        metrics.gauge(
            "node_memory_MemAvailable_bytes", {"node": node}, wave(1.7e10, 0.03), "Memory left.", 0.01, 0, step=60
        )
        free = {"node": node, "mountpoint": "/"}
        metrics.gauge("node_filesystem_avail_bytes", free, wave(9.1e10, 0.001), "Space left.", 0.0005, 0, step=60)


class Cluster:
    """Objects to be written below `status/`; healthy services are added whole, others by hand."""

    def __init__(self, clock, namespace="shop"):
        self.clock, self.namespace = clock, namespace
        self.pods, self.deployments, self.sets, self.events = [], [], [], []

    def healthy(self, service, revision=12):
        owner = f"{service.name}-{service.digest}"
        for index, pod in enumerate(service.pods):
            node = f"node-{'abc'[index % 3]}"
            self.pods.append(
                kube.pod(
                    self.namespace, pod, service.name, owner, service.image, node, service.since, memory=service.memory
                )
            )
        born, count = self.clock.at("09:00", -120), len(service.pods)
        self.deployments.append(
            kube.deployment(self.namespace, service.name, service.image, count, born, revision=revision)
        )
        self.sets.append(
            kube.replica_set(
                self.namespace, service.name, service.digest, service.image, count, count, service.since, revision
            )
        )

    def write(self, folder):
        born = self.clock.at("09:00", -200)
        folder.json("status/pods.json", kube.items(self.pods))
        folder.json("status/deployments.json", kube.items(self.deployments))
        folder.json("status/replicasets.json", kube.items(self.sets))
        folder.json("status/events.json", kube.items(self.events))
        folder.json("status/nodes.json", kube.items([kube.node(f"node-{name}", born) for name in "abc"]))
