"""An MCP server on standard streams that can be told to misbehave. Only the standard library.

Options: --dialect legacy|crash|ignore|modern   what it does at server/discover (legacy: refuses it)
         --delay SECONDS                        before it reads anything
         --noise                                lines that are no JSON around every message, and much on stderr
         --tools FILE                           a JSON list of tools, read anew at every listing
         --log FILE                             every message that it gets, one a line
         --pages                                one tool a page
"""

import json
import os
import sys
import time


def option(name, default=None):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


DIALECT = option("--dialect", "legacy")
NOISE = "--noise" in sys.argv
LOG = option("--log")
READS = {"readOnlyHint": True}
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
TOOLS = [
    {"name": "echo", "description": "Says it again.", "inputSchema": TEXT, "annotations": READS},
    {"name": "write", "description": "Writes something.", "inputSchema": TEXT},
    {"name": "big.answer", "description": "Answers 10 MB.", "inputSchema": {}, "annotations": READS},
    {"name": "slow", "description": "Answers late.", "inputSchema": {"properties": {"seconds": {}}}, "annotations": READS},
    {"name": "die", "description": "Ends the process.", "inputSchema": TEXT, "annotations": READS},
    {"name": "fail", "description": "Fails.", "inputSchema": TEXT, "annotations": READS},
    {"name": "ask", "description": "Asks the user.", "inputSchema": TEXT, "annotations": READS},
    {"name": "change", "description": "Changes the tools.", "inputSchema": TEXT, "annotations": READS},
    {"name": "environment", "description": "Tells its variables.", "inputSchema": TEXT, "annotations": READS},
    {"name": "refers", "description": "Another document.", "inputSchema": {"$ref": "http://h/s.json"}, "annotations": READS},
]
gone = set()


def send(message):
    if NOISE:
        sys.stdout.write("starting up...\n{not json\n\n" * 200)
    try:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody waits for this answer; what was said before may still be read.
        pass


def receive():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    if LOG:
        with open(LOG, "a") as log:
            log.write(line)
    return json.loads(line)


def tools():
    path = option("--tools")
    every = json.load(open(path)) if path else TOOLS
    return [tool for tool in every if tool["name"] not in gone]


def listing(cursor):
    every = tools()
    if "--pages" not in sys.argv:
        return {"tools": every}
    at = int(cursor or 0)
    page = {"tools": every[at : at + 1]}
    if at + 1 < len(every):
        page["nextCursor"] = str(at + 1)
    return page


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def call(name, arguments):
    if name == "echo":
        return text(arguments.get("text", ""))
    if name == "write":
        return text("written")
    if name == "big.answer":
        return text("x" * (10 << 20))
    if name == "slow":
        time.sleep(float(arguments.get("seconds", 60)))
        return text("late")
    if name == "die":
        # Once: the marker tells the next process that its forebear is dead.
        marker = arguments.get("text")
        if marker and os.path.exists(marker):
            return text("alive again")
        if marker:
            open(marker, "w").close()
        sys.stderr.write("out of memory\n")
        sys.stderr.flush()
        os._exit(3)
    if name == "fail":
        return {**text("disk /var is full"), "isError": True}
    if name == "ask":
        send({"id": "q1", "method": "elicitation/create", "params": {"message": "who?", "requestedSchema": {"type": "object", "properties": {}}}})
        return text("the user said: " + json.dumps(receive().get("result")))
    if name == "change":
        gone.add("echo")
        send({"method": "notifications/tools/list_changed"})
        return text("changed")
    if name == "environment":
        return text(json.dumps(sorted(os.environ)))
    return None


def answer(message):
    method, params = message["method"], message.get("params") or {}
    if method == "server/discover":
        if DIALECT == "crash":
            os._exit(1)
        if DIALECT == "ignore":
            return None
        return {"error": {"code": -32601, "message": "Method not found"}}
    if method == "initialize":
        return {
            "result": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {"listChanged": True}},
                "serverInfo": {"name": "misbehaving", "version": "1.0"},
            }
        }
    if method == "tools/list":
        return {"result": listing(params.get("cursor"))}
    if method == "tools/call":
        result = call(params["name"], params.get("arguments") or {})
        if result is None:
            return {"error": {"code": -32602, "message": "Unknown tool: " + params["name"]}}
        return {"result": result}
    if method == "ping":
        return {"result": {}}
    return {"error": {"code": -32601, "message": "Method not found"}}


time.sleep(float(option("--delay", 0)))
if NOISE:
    sys.stderr.write("debug line\n" * 20000)
while True:
    got = receive()
    if "method" in got and "id" in got:
        said = answer(got)
        if said is not None:
            send({"id": got["id"], **said})
