# SPDX-License-Identifier: GPL-3.0-or-later
import os
import select
import signal
import socket
import subprocess
import sys
import threading

from harness import LIMIT, Client, Daemon, check, children, finish, until

program, work = sys.argv[1:]
path = os.path.join(work, "badged.sock")
config = os.path.join(work, "badged.conf")
usual = ["--virtual", "--no-pcsc", "--no-nfc", "--no-ble", "--socket", path]

asked = os.path.join(work, "asked")
os.mkfifo(asked)
# Open for writing, too: a badged-network of the badged before may end only now, and would be the end of the file.
fifo = os.open(asked, os.O_RDWR)


def is_looked_up():
    """Waits until getaddrinfo is called."""
    return bool(select.select([fifo], [], [], LIMIT)[0]) and os.read(fifo, 1) == b"?"


daemon = Daemon(program, usual, work, environment={"LD_PRELOAD": os.path.join(work, "hosts.so"), "ASKED": asked})
client = Client(path)
for attempt in ["an authentication", "a second one"]:
    client.send(cmd="RUN_AUTH", tcTokenURL="https://dienst.example/token")
    client.wait_for("AUTH")
    check("the name is looked up", is_looked_up())
    end = client.ask("AUTH", cmd="CANCEL")
    check(f"CANCEL ends {attempt} while getaddrinfo hangs", end["result"]["reason"] == "User_Cancelled", end)
code, _ = daemon.end()
check("SIGTERM ends badged while getaddrinfo hangs", code == 0, code)

# The same where systemd starts badged-network: badged cannot end a process that is not its child.
listener = socket.socket(socket.AF_UNIX)
listener.bind(os.path.join(work, "network.sock"))
listener.listen()
environment = {**os.environ, "HOSTS": os.path.join(work, "hosts.so"), "ASKED": asked}
started = []


def serve():
    """Starts a program for each connection, as badged-network.socket does with Accept=yes."""
    while True:
        connection, _ = listener.accept()
        move = 'exec 3<&0 </dev/null && LD_PRELOAD="$HOSTS" exec "$0"'
        run = subprocess.Popen(["sh", "-c", move, os.path.join(os.path.dirname(program), "badged-network")],
                               stdin=connection, env=environment)
        connection.close()
        children.append(run)
        started.append(run)


threading.Thread(target=serve, daemon=True).start()
daemon = Daemon(program, usual, work, environment={"BADGED_NETWORK_SOCKET": listener.getsockname()})
client = Client(path)
client.send(cmd="RUN_AUTH", tcTokenURL="https://dienst.example/token")
client.wait_for("AUTH")
check("the name is looked up by a badged-network of systemd", is_looked_up())
client.ask("AUTH", cmd="CANCEL")
check("it ends after CANCEL while getaddrinfo hangs", started[0].wait(LIMIT) == 0)
code, _ = daemon.end()
check("SIGTERM ends badged as well", code == 0, code)

with open(config, "w", encoding="ascii") as file:
    file.write("[access]\nuser:somebody = none\n")
daemon = Daemon(program, usual + ["--config", config], work,
                environment={"LD_PRELOAD": os.path.join(work, "users.so"), "ASKED": asked})
check("badged starts and serves root while getpwnam_r hangs", Client(path).ask("INFO", cmd="GET_INFO") is not None)
check("the log says that the name service does not answer", "the name service does not answer" in daemon.log(), daemon.log())
while select.select([fifo], [], [], 0)[0]:
    os.read(fifo, 4096)
daemon.process.send_signal(signal.SIGHUP)
check("SIGHUP looks up the name again", is_looked_up())
with open(config, "w", encoding="ascii") as file:
    file.write("[log]\nlevel = loud\n")
daemon.process.send_signal(signal.SIGHUP)
check("a wrong file does not end the reload that waits for the name",
      until(lambda: "configuration not changed" in daemon.log() and "configuration read again" in daemon.log()), daemon.log())
# The reload that waited has told its end after that of the wrong file, unless the machine is slow.
for _ in range(2):
    state, _ = daemon.manager.wait_for("READY")
check("the status line still says that the file was not read again", "was not read again" in state["STATUS"], state)
code, _ = daemon.end()
check("SIGTERM ends badged while getpwnam_r hangs", code == 0, code)
finish()
