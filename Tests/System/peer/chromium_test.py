# SPDX-License-Identifier: GPL-3.0-or-later
"""Web pages in headless Chromium cannot open a WebSocket of badged, unless their origin is listed."""
import http.server
import os
import queue
import subprocess
import sys
import threading
import time

from harness import LIMIT, Daemon, check, children, finish, free_port

bin, work = sys.argv[1:]
work = os.path.join(work, "chromium")
os.mkdir(work)
config = os.path.join(work, "badged.conf")
reports = queue.Queue()
may_begin = threading.Event()


class Pages(http.server.BaseHTTPRequestHandler):
    """A page that waits for /begin, opens a WebSocket, and reports the end."""

    def do_GET(self):
        if self.path.startswith("/begin"):
            reports.put("loaded")
            may_begin.wait(LIMIT)
        if self.path.startswith("/report"):
            reports.put(self.path.split("?", 1)[1])
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Type", "text/html")
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(PAGE.encode())

    def log_message(self, *arguments):
        pass


def serve(port):
    end = time.monotonic() + LIMIT
    while True:
        try:
            server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Pages)
            break
        except OSError:
            # badged-activation, which has the port, ends after badged.
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


port, foreign = free_port(), free_port()
base = f"http://127.0.0.1:{foreign}"
PAGE = f"""<!doctype html><script>
fetch("{base}/begin").then(() => {{
    const socket = new WebSocket("ws://localhost:{port}/eID-Kernel");
    const report = text => fetch("{base}/report?" + text);
    socket.onopen = () => report("open");
    socket.onerror = () => report("refused");
}});
</script>"""
pages = serve(foreign)


def start(*lines):
    with open(config, "w", encoding="ascii") as file:
        file.write("\n".join(["[activation]", "enabled = yes", f"port = {port}", *lines]) + "\n")
    return Daemon(os.path.join(bin, "badged"), ["--virtual", "--no-pcsc", "--no-nfc", "--no-ble", "--socket",
                                                os.path.join(work, "s.sock"), "--config", config], work)


def visit(address):
    """Loads the page. Returns the browser when the page waits for /begin."""
    may_begin.clear()
    browser = subprocess.Popen(
        ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run",
         f"--user-data-dir={os.path.join(work, 'profile')}", address],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    children.append(browser)
    check(f"Chromium loads {address}", reports.get(timeout=LIMIT) == "loaded")
    return browser


def outcome(browser):
    may_begin.set()
    got = reports.get(timeout=LIMIT)
    browser.kill()
    browser.wait()
    return got


daemon = start()
for address in [f"http://localhost:{foreign}/", base + "/"]:
    got = outcome(visit(address))
    check("a page of another port cannot open a WebSocket", got == "refused", got)
check("the log says so", f"WebSocket refused: Origin '{base}' is a web page" in daemon.log(), daemon.log())
daemon.end()

daemon = start(f"origins = {base}")
got = outcome(visit(base + "/"))
check("a page whose origin is listed can open a WebSocket", got == "open", got)
daemon.end()

# Another program had the port, and its page is still open when badged starts.
before = serve(port)
browser = visit(f"http://localhost:{port}/")
before.shutdown()
before.server_close()
daemon = start()
got = outcome(browser)
check("a page that another program has served at this port cannot open a WebSocket", got == "refused", got)
check("the log says so", "is a page of this port in a browser" in daemon.log(), daemon.log())
daemon.end()
finish()
