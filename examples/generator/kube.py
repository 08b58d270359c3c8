"""Kubernetes objects as `kubectl get … -o json` prints them, with the fields that tell a state."""

from clock import utc


def when(seconds):
    return utc(seconds, "seconds")


def items(objects):
    return {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": objects}


def condition(kind, status, since, reason=None, message=None):
    made = {"type": kind, "status": status, "lastTransitionTime": when(since)}
    if reason:
        made["reason"] = reason
    if message:
        made["message"] = message
    return made


def pod(namespace, name, service, owner, image, node, since, container=None, ready=True, memory="1Gi", cpu="1"):
    """A pod with one container; `container` overrides fields of its status."""
    state = {
        "name": service,
        "image": image,
        "ready": ready,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": when(since + 3)}},
        "lastState": {},
        **(container or {}),
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "creationTimestamp": when(since),
            "labels": {"app": service},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "controller": True}],
        },
        "spec": {
            "nodeName": node,
            "containers": [
                {
                    "name": service,
                    "image": image,
                    "resources": {
                        "limits": {"cpu": cpu, "memory": memory},
                        "requests": {"cpu": "250m", "memory": memory},
                    },
                }
            ],
        },
        "status": {
            "phase": "Running",
            "conditions": [
                condition("PodScheduled", "True", since),
                condition("Initialized", "True", since),
                condition("ContainersReady", "True" if ready else "False", since + 20),
                condition("Ready", "True" if ready else "False", since + 20),
            ],
            "startTime": when(since),
            "containerStatuses": [state],
        },
    }


def deployment(namespace, service, image, desired, since, ready=None, revision=1, updated=None, conditions=None):
    ready = desired if ready is None else ready
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": service,
            "namespace": namespace,
            "generation": revision,
            "creationTimestamp": when(since),
            "annotations": {"deployment.kubernetes.io/revision": str(revision)},
            "labels": {"app": service},
        },
        "spec": {
            "replicas": desired,
            "selector": {"matchLabels": {"app": service}},
            "template": {"spec": {"containers": [{"name": service, "image": image}]}},
        },
        "status": {
            "observedGeneration": revision,
            "replicas": desired,
            "updatedReplicas": desired if updated is None else updated,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "unavailableReplicas": desired - ready,
            "conditions": conditions or [condition("Available", "True", since, "MinimumReplicasAvailable")],
        },
    }


def replica_set(namespace, service, digest, image, desired, ready, since, revision):
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{service}-{digest}",
            "namespace": namespace,
            "creationTimestamp": when(since),
            "annotations": {"deployment.kubernetes.io/revision": str(revision)},
            "labels": {"app": service, "pod-template-hash": digest},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": service, "controller": True}],
        },
        "spec": {"replicas": desired, "template": {"spec": {"containers": [{"name": service, "image": image}]}}},
        "status": {"replicas": desired, "readyReplicas": ready, "availableReplicas": ready, "observedGeneration": 1},
    }


def event(namespace, kind, name, level, reason, message, first, last=None, count=1):
    last = first if last is None else last
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{name}.{int(first):x}{count:x}",
            "namespace": namespace,
            "creationTimestamp": when(first),
        },
        "involvedObject": {"kind": kind, "name": name, "namespace": namespace},
        "type": level,
        "reason": reason,
        "message": message,
        "count": count,
        "firstTimestamp": when(first),
        "lastTimestamp": when(last),
        "source": {"component": "kubelet"},
    }


def node(name, since, ready=True):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "creationTimestamp": when(since)},
        "spec": {},
        "status": {
            "capacity": {"cpu": "8", "memory": "32778240Ki", "pods": "110"},
            "conditions": [
                condition("MemoryPressure", "False", since, "KubeletHasSufficientMemory"),
                condition("DiskPressure", "False", since, "KubeletHasNoDiskPressure"),
                condition("PIDPressure", "False", since, "KubeletHasSufficientPID"),
                condition("Ready", "True" if ready else "False", since, "KubeletReady"),
            ],
        },
    }
