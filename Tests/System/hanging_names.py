# SPDX-License-Identifier: GPL-3.0-or-later
import os
import sys

from harness import Client, Daemon, check, finish

program, work = sys.argv[1:]
path = os.path.join(work, "badged.sock")
config = os.path.join(work, "badged.conf")
usual = ["--virtual", "--no-pcsc", "--no-nfc", "--no-ble", "--socket", path]

asked = os.path.join(work, "asked")
os.mkfifo(asked)
daemon = Daemon(program, usual, work, environment={"LD_PRELOAD": os.path.join(work, "hosts.so"), "ASKED": asked})
client = Client(path)
for attempt in ["an authentication", "a second one"]:
    client.send(cmd="RUN_AUTH", tcTokenURL="https://dienst.example/token")
    client.wait_for("AUTH")
    with open(asked, "rb") as fifo:
        check("the name is looked up", fifo.read(1) == b"?")
    end = client.ask("AUTH", cmd="CANCEL")
    check(f"CANCEL ends {attempt} while getaddrinfo hangs", end["result"]["reason"] == "User_Cancelled", end)
code, _ = daemon.end()
check("SIGTERM ends badged while getaddrinfo hangs", code == 0, code)

with open(config, "w", encoding="ascii") as file:
    file.write("[access]\nuser:somebody = none\n")
daemon = Daemon(program, usual + ["--config", config], work, environment={"LD_PRELOAD": os.path.join(work, "users.so")})
check("badged starts and serves root while getpwnam_r hangs", Client(path).ask("INFO", cmd="GET_INFO") is not None)
check("the log says that the name service does not answer", "the name service does not answer" in daemon.log(), daemon.log())
code, _ = daemon.end()
check("SIGTERM ends badged while getpwnam_r hangs", code == 0, code)
finish()
