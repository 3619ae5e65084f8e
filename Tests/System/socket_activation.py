# SPDX-License-Identifier: GPL-3.0-or-later
import os
import re
import signal
import socket
import subprocess
import sys

from harness import LIMIT, Client, Manager, check, children, finish, free_port

program, work = sys.argv[1:]
path = os.path.join(work, "s.sock")
manager = Manager(os.path.join(work, "notify"))


def activate(*options, config=None):
    """Starts systemd-socket-activate, which becomes the daemon with the first connection. Returns when it listens."""
    process = subprocess.Popen(
        ["systemd-socket-activate", *options, f"--setenv=NOTIFY_SOCKET={manager.address}", program, "--virtual", "--no-pcsc",
         "--socket", os.path.join(work, "unused.sock"), *(["--config", config] if config else [])],
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    children.append(process)
    while "Listening on" not in (line := process.stderr.readline()):
        if not line:
            break
    return process


daemon = activate(f"--listen={path}")
client = Client(path)
info = client.ask("INFO", cmd="GET_INFO", request="first")
check("the client whose connection starts the daemon is served", info is not None and info.get("request") == "first", info)
check("the next client is served", Client(path).ask("INFO", cmd="GET_INFO") is not None)
state, _ = manager.wait_for("READY")
check("READY=1 names the socket of systemd", path in state.get("STATUS", ""), state)
check("the socket of --socket is not used", not os.path.exists(os.path.join(work, "unused.sock")))
daemon.send_signal(signal.SIGTERM)
check("SIGTERM ends the daemon with 0", daemon.wait(LIMIT) == 0)
check("the socket file belongs to systemd and is kept", os.path.exists(path))
os.unlink(path)

# A badged that does not start answers the clients that wait, so systemd does not start it again at once for them.
config = os.path.join(work, "badged.conf")
with open(config, "w") as file:
    file.write("[acces]\ndefault = none\n")
daemon = activate(f"--listen={path}", config=config)
clients = [Client(path), Client(path)]
answers = [client.wait_for("INTERNAL_ERROR") for client in clients]
check("each waiting client is told that badged does not start",
      all(answer is not None and "does not start" in answer["error"] for answer in answers), answers)
_, log = daemon.communicate(timeout=LIMIT)
check("a wrong configuration ends badged with 78", daemon.returncode == 78 and "unknown section [acces]" in log, log)
os.unlink(path)

port = free_port()
for sentence, options, connect in [
    ("a datagram socket", [f"--listen={path}", "--datagram"],
     lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"x", path)),
    ("a network socket", [f"--listen=127.0.0.1:{port}"], lambda: socket.create_connection(("127.0.0.1", port))),
    ("more than one socket", [f"--listen={path}", f"--listen={path}.2"], lambda: Client(path)),
]:
    process = activate(*options)
    # Kept until the daemon has ended.
    connection = connect()
    _, log = process.communicate(timeout=LIMIT)
    check(f"{sentence} is refused with a reason",
          process.returncode == 1 and re.search(r"badged: error: .*systemd passes", log),
          (process.returncode, log))
    for file in (path, path + ".2"):
        if os.path.exists(file):
            os.unlink(file)
finish()
