#!/usr/bin/env python3
"""Pictures of the terminal front end, taken from the real program in a real terminal (tmux), as SVG.

    assets/screens/make.py target/debug/oncall

Each scene is typed into a shell in tmux; the pane is captured with its colours and drawn.
"""

import html
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parents[2]
OUT = ROOT / "assets" / "screens"
CELL = (8.4, 18)
FOREGROUND, BACKGROUND = "#d8dee9", "#16191f"
SIXTEEN = ["#2e3440", "#e0787f", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9",
           "#6b7280", "#f0959b", "#b5dba0", "#f0d6a0", "#8cc8f5", "#dba0ea", "#8ad0d8", "#ffffff"]


def color(n):
    """The n-th of the 256 colours."""
    if n < 16:
        return SIXTEEN[n]
    if n >= 232:
        return "#" + f"{8 + (n - 232) * 10:02x}" * 3
    levels = [0, 95, 135, 175, 215, 255]
    n -= 16
    return "#" + "".join(f"{levels[part]:02x}" for part in (n // 36, n // 6 % 6, n % 6))


class Style:
    def __init__(self):
        self.reset()

    def reset(self):
        self.fg = self.bg = None
        self.bold = self.underline = self.reverse = False

    def apply(self, codes):
        codes = [int(code or 0) for code in codes.split(";")]
        while codes:
            code = codes.pop(0)
            if code == 0:
                self.reset()
            elif code in (1, 4, 7):
                setattr(self, {1: "bold", 4: "underline", 7: "reverse"}[code], True)
            elif code in (22, 24, 27):
                setattr(self, {22: "bold", 24: "underline", 27: "reverse"}[code], False)
            elif code in (38, 48):
                kind = codes.pop(0)
                value = color(codes.pop(0)) if kind == 5 else "#%02x%02x%02x" % tuple(codes.pop(0) for _ in range(3))
                setattr(self, "fg" if code == 38 else "bg", value)
            elif code in (39, 49):
                setattr(self, "fg" if code == 39 else "bg", None)
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.fg = SIXTEEN[code - 30 if code < 90 else code - 82]
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.bg = SIXTEEN[code - 40 if code < 100 else code - 92]

    def colors(self):
        fg, bg = self.fg or FOREGROUND, self.bg
        return (bg or BACKGROUND, fg) if self.reverse else (fg, bg)


def width(char):
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def svg(pane, columns, rows):
    """The pane, with its colour sequences, as a picture."""
    w, h = columns * CELL[0] + 24, rows * CELL[1] + 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{w:.0f}" height="{h:.0f}" viewBox="0 0 {w:.0f} {h:.0f}">',
           f'<rect width="100%" height="100%" rx="8" fill="{BACKGROUND}"/>',
           '<g font-family="DejaVu Sans Mono, Menlo, Consolas, Noto Sans Mono CJK SC, monospace" font-size="14">']
    style = Style()
    for row, line in enumerate(pane.split("\n")[:rows]):
        column = 0
        y = 12 + row * CELL[1]
        for part in re.split(r"(\x1b\[[0-9;]*m|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]|[\x0e\x0f])", line):
            if part.startswith("\x1b[") and part.endswith("m"):
                style.apply(part[2:-1])
                continue
            if not part or part[0] in "\x1b\x0e\x0f":
                continue
            fg, bg = style.colors()
            cells = sum(width(char) for char in part)
            x = 12 + column * CELL[0]
            if bg:
                out.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{cells * CELL[0]:.1f}" height="{CELL[1]}" fill="{bg}"/>')
            if part.strip():
                extra = ' font-weight="bold"' if style.bold else ""
                extra += ' text-decoration="underline"' if style.underline else ""
                out.append(f'<text x="{x:.1f}" y="{y + 13.5:.1f}" fill="{fg}"{extra} textLength="{cells * CELL[0]:.1f}" '
                           f'xml:space="preserve">{html.escape(part)}</text>')
            column += cells
    return "\n".join(out + ["</g>", "</svg>", ""])


class Terminal:
    def __init__(self, folder, size, binary):
        self.size = size
        self.base = ["tmux", "-u", "-S", f"{folder}/socket", "-f", f"{folder}/conf"]
        pathlib.Path(folder, "conf").write_text("set -g default-terminal tmux-256color\n")
        bin_dir = pathlib.Path(folder, "bin")
        bin_dir.mkdir(exist_ok=True)
        if not (bin_dir / "oncall").exists():
            (bin_dir / "oncall").symlink_to(pathlib.Path(binary).resolve())
        shell = (f"exec env -i TERM=\"$TERM\" PATH={bin_dir}:/usr/bin:/bin HOME={folder} XDG_CONFIG_HOME={folder} "
                 f"ONCALL_DATA_DIR={folder}/data ONCALL_AGENT_TOOL_TIMEOUT=1m TZ=Asia/Shanghai LANG=C.UTF-8 PS1='$ ' sh")
        self.tmux("new-session", "-d", "-s", "t", "-x", str(size[0]), "-y", str(size[1]), "-c", str(ROOT), shell)

    def tmux(self, *arguments):
        return subprocess.run(self.base + list(arguments), check=True, capture_output=True, text=True).stdout

    def type(self, *keys):
        for key in keys:
            literal = [] if key in ("Enter", "Escape", "Tab", "C-c") else ["-l"]
            self.tmux("send-keys", "-t", "t", *literal, "--", key)
            time.sleep(0.15)

    def wait(self, text, seconds=180):
        until = time.time() + seconds
        while text not in (pane := self.tmux("capture-pane", "-p", "-t", "t")):
            if time.time() > until:
                sys.exit(f"no {text!r} on the screen:\n{pane}")
            time.sleep(0.05)

    def picture(self, name):
        time.sleep(0.3)
        pane = self.tmux("capture-pane", "-e", "-p", "-t", "t")
        (OUT / f"{name}.svg").write_text(svg(pane, *self.size))
        print(f"{name}.svg")

    def close(self):
        subprocess.run(self.base + ["kill-server"], capture_output=True)


def slowed(folder):
    """The example with one log that nobody writes to the end, so that there is something to watch."""
    target = pathlib.Path(folder, "order-service")
    shutil.copytree(ROOT / "examples" / "order-service", target)
    os.mkfifo(target / "logs" / "order-service" / "slow.log")


def main():
    binary = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        slowed(folder)
        environment = os.environ | {"ONCALL_DATA_DIR": f"{folder}/data", "XDG_CONFIG_HOME": folder}
        subprocess.run([binary, "index", "docs-kb"], cwd=ROOT, env=environment, check=True, capture_output=True)
        live = Terminal(folder, (100, 24), binary)
        live.type(f"cd {folder}; clear", "Enter")
        live.type("oncall diagnose --incident order-service", "Enter")
        live.wait("found ")
        live.picture("live")
        live.type("Escape")
        live.wait("$ ")
        live.close()

        full = Terminal(folder, (120, 36), binary)
        full.type("oncall diagnose --incident examples/order-service --tui", "Enter")
        full.wait("complete")
        full.type("6")
        full.picture("report")
        full.type("3", "g", "/", "db_pool", "Enter", "Enter")
        full.wait("! ")
        full.picture("evidence")
        full.type("Escape", "Escape", "4")
        full.picture("timeline")
        full.type("q")
        full.close()

        session = Terminal(folder, (100, 30), binary)
        session.type("oncall tui", "Enter")
        session.wait("Ask something")
        session.type("连接池耗尽怎么处理？", "Enter")
        session.wait("[E1]")
        session.type("/s")
        session.picture("session")
        session.close()


main()
