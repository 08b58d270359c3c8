"""The requests of order-service in its incident: one simulation that metrics and logs are both drawn from."""

from metrics import line, wave

PODS = ["order-service-6c9f7d5b84-4xkqp", "order-service-6c9f7d5b84-8mz2t", "order-service-6c9f7d5b84-tq7vd"]
PATHS = [("POST", "/api/v1/orders", 0.3), ("GET", "/api/v1/orders/{id}", 0.5), ("GET", "/api/v1/orders", 0.2)]


class Request:
    __slots__ = ("at", "method", "path", "pod", "status", "seconds", "cause")

    def __init__(self, at, method, path, pod, status, seconds, cause):
        self.at, self.method, self.path, self.pod = at, method, path, pod
        self.status, self.seconds, self.cause = status, seconds, cause


def error_share(clock):
    """Share of requests that find no connection, by minute of the story."""
    told = [
        ("14:22:50", 0.0),
        ("14:23", 0.001),
        ("14:26", 0.002),
        ("14:27", 0.006),
        ("14:27:30", 0.022),
        ("14:28", 0.085),
        ("14:28:20", 0.15),
        ("14:29", 0.215),
        ("14:30", 0.245),
        ("14:31", 0.245),
        ("14:31:38", 0.225),
        ("14:31:56", 0.03),
        ("14:38", 0.024),
        ("14:45", 0.016),
    ]
    return line(*[(clock.at(time), share) for time, share in told])


def waiting_share(clock):
    """Share of requests that wait for a connection and still get one: the pool is tight before it is dry."""
    told = [("14:21", 0.0), ("14:23", 0.06), ("14:28", 0.5), ("14:32", 0.55), ("14:33", 0.3), ("14:45", 0.2)]
    return line(*[(clock.at(time), share) for time, share in told])


def simulate_orders(clock, rng, start):
    """Every request of order-service. Failures are spread by carrying the remainder, so that shares are exact."""
    failing, waiting = error_share(clock), waiting_share(clock)
    requests, owed, t, turn = [], 0.0, start, 0
    while t < clock.now:
        t += rng.expovariate(wave(5.6, 0.12)(t))
        draw, method, path = rng.random(), *PATHS[0][:2]
        for method, path, share in PATHS:
            if (draw := draw - share) < 0:
                break
        owed += failing(t)
        status, cause, seconds = "201" if method == "POST" else "200", None, 0.02 + rng.expovariate(30)
        if owed >= 1:
            owed, status, cause, seconds = owed - 1, "500", turn % 2, 3.0 + rng.random() * 0.03
            turn += 1
        elif rng.random() < waiting(t):
            seconds += 0.3 + rng.random() * 2.4
        elif rng.random() < 0.012:
            status = "404"
        elif rng.random() < 0.0002:
            status = "500"
        requests.append(Request(t, method, path, rng.choice(PODS), status, seconds, cause))
    return requests
