# SPDX-License-Identifier: GPL-3.0-or-later
import os
import re
import signal
import socket
import subprocess
import sys

from harness import LIMIT, Client, Manager, check, children, finish

program, work = sys.argv[1:]
path = os.path.join(work, "s.sock")
manager = Manager(os.path.join(work, "notify"))


def activate(*options, connect=None):
    """Starts systemd-socket-activate and makes the first connection, at which it turns into the daemon."""
    process = subprocess.Popen(
        ["systemd-socket-activate", *options, f"--setenv=NOTIFY_SOCKET={manager.address}", program, "--virtual", "--no-pcsc",
         "--socket", os.path.join(work, "unused.sock")],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    children.append(process)
    while "Listening on" not in (line := process.stderr.readline()):
        if not line:
            break
    return process


daemon = activate(f"--listen={path}")
client = Client(path)
info = client.ask("INFO", cmd="GET_INFO", request="first")
check("the first client, who woke the daemon, is served", info is not None and info.get("request") == "first", info)
check("so is the next", Client(path).ask("INFO", cmd="GET_INFO") is not None)
state, _ = manager.wait_for("READY")
check("READY=1 names the passed socket", path in state.get("STATUS", ""), state)
check("--socket is not used beside it", not os.path.exists(os.path.join(work, "unused.sock")))
daemon.send_signal(signal.SIGTERM)
check("SIGTERM ends it with 0", daemon.wait(LIMIT) == 0)
check("the socket file is systemd's and stays", os.path.exists(path))
os.unlink(path)

# A port that is free now; the program for it does not print what it got for port 0.
with socket.create_server(("127.0.0.1", 0)) as probe:
    port = probe.getsockname()[1]
for sentence, options, family in [
    ("a datagram socket", [f"--listen={path}", "--datagram"], "datagram"),
    ("a network socket", [f"--listen=127.0.0.1:{port}"], "inet"),
    ("two sockets", [f"--listen={path}", f"--listen={path}.2"], "two"),
]:
    process = activate(*options)
    if family == "inet":
        socket.create_connection(("127.0.0.1", port))
    elif family == "datagram":
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", path)
    else:
        Client(path)
    _, log = process.communicate(timeout=LIMIT)
    check(f"{sentence} is refused with a reason",
          process.returncode == 1 and re.search(r"badged: error: (what systemd passes is no listening|systemd passes 2)", log),
          (process.returncode, log))
    for left in (path, path + ".2"):
        if os.path.exists(left):
            os.unlink(left)
finish()
