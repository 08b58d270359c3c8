"""Times what slow sources cost: `python3 benches/sources.py BINARY [RUNS]`.

A Prometheus, a Loki and a Kubernetes API server on loopback, which have nothing to say, take 2.0, 2.5 and 3.0 s over it.
Prints the seconds of the parallel node of `diagnose`, as the run itself tells them: the median and the longest. One after
another the three take 7.5 s.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

ALERT = "examples/order-service/alert.json"
ANSWERS = {
    "/api/v1/query": {"status": "success", "data": {"resultType": "vector", "result": []}},
    "/api/v1/query_range": {"status": "success", "data": {"resultType": "matrix", "result": []}},
    "/loki/api/v1/query_range": {"status": "success", "data": {"resultType": "matrix", "result": []}},
    "/loki/api/v1/labels": {"status": "success", "data": ["app"]},
    "/loki/api/v1/label/app/values": {"status": "success", "data": ["order-service"]},
}


def serve(seconds, other):
    """A server that takes its time over one kind of question; gives its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            path = self.path.split("?")[0]
            if path in ("/api/v1/series", "/api/v1/pods") or "sum%28" in self.path:
                time.sleep(seconds)
            body = json.dumps(ANSWERS.get(path, other)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    class Server(ThreadingHTTPServer):
        # With the usual 5 a connection of many at once waits for a second.
        request_queue_size = 128

    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def main():
    binary = os.path.abspath(sys.argv[1])
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    nothing = {"status": "success", "data": []}
    metrics, logs = serve(2.0, nothing), serve(2.5, nothing)
    cluster = serve(3.0, {"kind": "List", "apiVersion": "v1", "items": []})
    with tempfile.TemporaryDirectory() as folder:
        # Outside of its incident folder, so that these sources are asked.
        alert = shutil.copy(ALERT, folder)
        kubeconfig = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "x",
            "clusters": [{"name": "c", "cluster": {"server": cluster}}],
            "users": [{"name": "u", "user": {"token": "x"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        }
        with open(os.path.join(folder, "kubeconfig"), "w") as out:
            json.dump(kubeconfig, out)
        with open(os.path.join(folder, "oncall.toml"), "w") as out:
            out.write(
                f'[sources.metrics]\nkind = "prometheus"\nurl = "{metrics}"\n'
                f'[sources.logs]\nkind = "loki"\nurl = "{logs}"\n'
                '[sources.cluster]\nkind = "kubernetes"\nkubeconfig = "kubeconfig"\nlogs = false\n'
            )
        command = [binary, "--data-dir", folder, "diagnose", "--alert", alert, "--json", "--quiet"]
        seconds = []
        # The first run indexes the runbooks.
        for _ in range(runs + 1):
            done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE)
            timings = json.loads(done.stdout)["timings"]
            seconds += [t["milliseconds"] / 1000 for t in timings if t["node"] == "parallel_query"][:1]
        del seconds[0]
    print(f"sources of 2.0, 2.5 and 3.0 s: parallel node {statistics.median(seconds):.2f} s, longest {max(seconds):.2f} s ({runs} runs)")


main()
