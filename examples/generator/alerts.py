"""Alert payloads as the senders shape them."""

import hashlib
from urllib.parse import quote_plus

from clock import utc


def fingerprint(labels):
    text = "\n".join(f"{key}={labels[key]}" for key in sorted(labels))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def graph_url(expression):
    """Prometheus puts the rule's expression into the link of its alert."""
    return f"http://prometheus.monitoring:9090/graph?g0.expr={quote_plus(expression)}&g0.tab=1"


def alertmanager_webhook(alerts, group_labels, receiver):
    """Webhook version 4. `alerts`: `(labels, annotations, starts, expression)`, all firing."""
    common = lambda maps: {k: v for k, v in maps[0].items() if all(m.get(k) == v for m in maps)}
    group = ", ".join(f'{key}="{value}"' for key, value in group_labels.items())
    return {
        "receiver": receiver,
        "status": "firing",
        "alerts": [
            {
                "status": "firing",
                "labels": labels,
                "annotations": annotations,
                "startsAt": utc(starts),
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": graph_url(expression),
                "fingerprint": fingerprint(labels),
            }
            for labels, annotations, starts, expression in alerts
        ],
        "groupLabels": group_labels,
        "commonLabels": common([alert[0] for alert in alerts]),
        "commonAnnotations": common([alert[1] for alert in alerts]),
        "externalURL": "http://alertmanager.monitoring:9093",
        "version": "4",
        "groupKey": "{}:{" + group + "}",
        "truncatedAlerts": 0,
    }
