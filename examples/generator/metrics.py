"""Time series as OpenMetrics text with time stamps, and the arithmetic of PromQL's `rate` to check them with."""

import bisect
import math

BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)


class Metrics:
    """Collects families of series over one span of time. `rng` makes the noise; the same seed gives the same text."""

    def __init__(self, rng, start, end, step=15):
        self.rng, self.start, self.end, self.step = rng, start, end, step
        self.families = {}
        self.values = {}

    def scrapes(self, labels, step=None):
        """Scrape times of a target: every `step` seconds, at an offset of its own as Prometheus spreads them."""
        step = step or self.step
        target = labels.get("instance") or labels.get("pod") or labels.get("node") or labels.get("service", "")
        offset = sum(ord(char) * (index + 7) for index, char in enumerate(target)) % (step - 1) + 0.37
        count = int((self.end - self.start - offset) // step) + 1
        return [self.start + offset + step * index for index in range(count)]

    def gauge(self, name, labels, value, help, noise=0.0, digits=4, step=None, floor=0.0):
        """`value(t)` with relative gaussian noise; `None` leaves the scrape out."""
        samples = []
        for t in self.scrapes(labels, step):
            level = value(t) if callable(value) else value
            if level is None:
                continue
            if noise:
                level = max(floor, level * (1 + self.rng.gauss(0, noise)))
            samples.append((t, round(level, digits)))
        self._add(name, "gauge", name, labels, samples, help)

    def counter(self, name, labels, rate, help, noise=0.08, start=None, digits=0, step=None):
        """A counter that grows by `rate(t)` a second; `name` without `_total`."""
        total = self.rng.randrange(20_000, 90_000) if start is None else start
        samples, before = [], None
        for t in self.scrapes(labels, step):
            if before is not None:
                grown = (rate(t) if callable(rate) else rate) * (t - before)
                total += max(0.0, grown * (1 + self.rng.gauss(0, noise)))
            before = t
            samples.append((t, round(total, digits) if digits else math.floor(total)))
        self._add(name, "counter", name + "_total", labels, samples, help)

    def counter_of(self, name, labels, times, help, start=None, step=None, since=0.0):
        """A counter of events whose sorted times are given; it does not exist before `since`."""
        base = self.rng.randrange(20_000, 90_000) if start is None else start
        samples = [(t, base + bisect.bisect_right(times, t)) for t in self.scrapes(labels, step) if t >= since]
        self._add(name, "counter", name + "_total", labels, samples, help)

    def histogram_of(self, name, labels, events, help, buckets=BUCKETS):
        """A histogram of `(time, seconds)` events sorted by time."""
        scrapes = self.scrapes(labels)
        base = 0
        for bound in (*buckets, math.inf):
            times = [t for t, seconds in events if seconds <= bound]
            base += self.rng.randrange(200, 4000)
            bucket = {**labels, "le": "+Inf" if bound == math.inf else repr(bound)}
            samples = [(t, base + bisect.bisect_right(times, t)) for t in scrapes]
            self._add(name, "histogram", name + "_bucket", bucket, samples, help)
        self._add(name, "histogram", name + "_count", labels, samples, help)
        times, sums, total = [t for t, _ in events], [0.0], 0.0
        for _, seconds in events:
            total += seconds
            sums.append(total)
        sum_samples = [(t, round(base * 0.041 + sums[bisect.bisect_right(times, t)], 3)) for t in scrapes]
        self._add(name, "histogram", name + "_sum", labels, sum_samples, help)

    def _add(self, family, kind, name, labels, samples, help):
        self.families.setdefault(family, (kind, help, []))[2].append((name, labels, samples))
        self.values[(name, tuple(sorted(labels.items())))] = samples

    def series(self, name, **match):
        """Samples of every series of this name whose labels match."""
        return [
            samples
            for (found, labels), samples in self.values.items()
            if found == name and all(dict(labels).get(key) == value for key, value in match.items())
        ]

    def write(self, folder, files):
        """One file for each `(file name, families' prefixes)`; the last takes what is left."""
        left = dict(self.families)
        for file, prefixes in files:
            chosen = [name for name in left if not prefixes or name.startswith(tuple(prefixes))]
            lines = []
            for family in sorted(chosen):
                kind, help, series = left.pop(family)
                lines += [f"# TYPE {family} {kind}", f"# HELP {family} {help}"]
                for name, labels, samples in series:
                    selector = name + "{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}"
                    lines += [f"{selector} {number(value)} {number(t)}" for t, value in samples]
            folder.text(f"metrics/{file}", "\n".join(lines) + "\n# EOF\n")


def number(value):
    text = f"{value:.3f}".rstrip("0").rstrip(".") if isinstance(value, float) and abs(value) >= 10 else repr(value)
    return text[:-2] if text.endswith(".0") else text


def rate(samples, at, window):
    """PromQL's `rate(...[window])` at an instant, with its extrapolation; `None` under two samples."""
    inside = [(t, value) for t, value in samples if at - window < t <= at]
    if len(inside) < 2:
        return None
    (first, start), (last, end) = inside[0], inside[-1]
    increase = end - start
    for (_, before), (_, after) in zip(inside, inside[1:]):
        increase += before if after < before else 0
    sampled = last - first
    gap = sampled / (len(inside) - 1)
    to_start, to_end = first - (at - window), at - last
    if increase > 0 and start >= 0:
        to_start = min(to_start, sampled * start / increase)
    extended = sampled
    extended += to_start if to_start < gap * 1.1 else gap / 2
    extended += to_end if to_end < gap * 1.1 else gap / 2
    return increase * extended / sampled / window


def ratio(part, whole, at, window):
    """`sum(rate(part[window])) / sum(rate(whole[window]))` at an instant."""
    total = lambda group: sum(rate(samples, at, window) or 0.0 for samples in group)
    return total(part) / total(whole)


def line(*points):
    """A function of time that goes straight from each `(time, value)` to the next, and is flat outside."""

    def value(t):
        if t <= points[0][0]:
            return points[0][1]
        for (left, low), (right, high) in zip(points, points[1:]):
            if t < right:
                return low + (high - low) * (t - left) / (right - left)
        return points[-1][1]

    return value


def wave(mean, swing, period=5400.0, phase=0.0):
    """A slow swing about a mean, as traffic has over a day."""
    return lambda t: mean * (1 + swing * math.sin(2 * math.pi * t / period + phase))
