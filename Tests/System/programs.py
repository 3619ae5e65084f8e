# SPDX-License-Identifier: GPL-3.0-or-later
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request

from harness import LIMIT, Client, Daemon, check, children, children_of, finish, serves_browsers, sleeps, until

programs, work = sys.argv[1:]
PORT = 24727


def start(*command, **options):
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, **options)
    children.append(child)
    return child


def descriptors(pid):
    """The descriptors of a process, and what they refer to."""
    folder = f"/proc/{pid}/fd"
    found = {}
    for number in os.listdir(folder):
        try:
            found[int(number)] = os.readlink(f"{folder}/{number}")
        except FileNotFoundError:  # closed meanwhile
            pass
    return found


def sockets(pid):
    """The kernel's numbers of the sockets of a process."""
    found = (re.fullmatch(r"socket:\[(\d+)\]", target) for target in descriptors(pid).values())
    return {match[1] for match in found if match}


def table(name, state=None):
    """The sockets in this state, or all, in a table of the network: their kernel's numbers and local ports."""
    with open(f"/proc/net/{name}", encoding="ascii") as file:
        rows = [line.split() for line in list(file)[1:]]
    return {row[9]: int(row[1].rsplit(":", 1)[1], 16) for row in rows if state in (None, row[3])}


def status(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(line.split(":", 1)[1].strip() for line in file if line.startswith(name + ":"))


def child(name):
    """The process of a program that badged has started; None if it does not run."""
    return next(iter(children_of(daemon.pid, name)), None)


def memory(pid):
    """All memory of a process that it can write."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as file:
        places = [line.split()[0] for line in file if " rw" in line and "[v" not in line]
    content = []
    with open(f"/proc/{pid}/mem", "rb") as file:
        for place in places:
            begin, end = (int(number, 16) for number in place.split("-"))
            file.seek(begin)
            content.append(file.read(end - begin))
    return b"".join(content)


# badged with connections to a client, to pcscd and to an eID-Server
os.mkdir("/run/pcscd")
start("/usr/sbin/pcscd", "--foreground", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
check("pcscd runs", until(lambda: os.path.exists("/run/pcscd/pcscd.comm")))
anchors = os.path.join(work, "anchors", "test")
os.makedirs(anchors)
server = start(f"{programs}/badged-eidserver", "--out", anchors, stdout=subprocess.PIPE, text=True)
url = server.stdout.readline().strip()
config = os.path.join(work, "badged.conf")
with open(config, "w", encoding="utf-8") as file:
    # badged-nfc runs as long as a device is configured.
    file.write(f"[eid]\ntrust_anchors = {anchors}/..\n[activation]\nenabled = yes\n[nfc]\ndevices = pn532_uart:/dev/none\n")
path = os.path.join(work, "s.sock")
daemon = Daemon(f"{programs}/badged", ["--virtual", "--no-ble", "--config", config, "--socket", path], work)
client = Client(path)


def checks():
    return {entry["name"]: entry for entry in client.ask("HEALTH", cmd="GET_HEALTH")["checks"]}


before = len(sockets(daemon.pid))
check("badged is connected to pcscd", until(lambda: checks().get("pcscd", {}).get("ok")), daemon.log())
client.send(cmd="RUN_AUTH", tcTokenURL=url)
check("an authentication runs", client.wait_for("ACCESS_RIGHTS") is not None, daemon.log())
network = child("badged-network")
open_to_server = sockets(network) & set(table("tcp", "01"))
check("badged-network is connected to the eID-Server", open_to_server, descriptors(network))
internet = {number for name in ("tcp", "tcp6", "udp", "udp6") for number in table(name)}
check("badged has no socket of the Internet but those of the browser port", sockets(daemon.pid) & internet <= set(table("tcp", "0A")) | set(table("tcp6", "0A")), descriptors(daemon.pid))


def loads_network_libraries():
    with open(f"/proc/{daemon.pid}/maps", encoding="ascii") as file:
        return re.search("libcurl|libssl|libexpat|libwebsockets", file.read())


check("badged has no library of the network", not loads_network_libraries())

# Both programs are started now, while badged has these connections.
first = until(lambda: child("badged-nfc"))
check("badged-nfc runs", first, daemon.log())
os.kill(first, signal.SIGKILL)
nfc = until(lambda: (pid := child("badged-nfc")) != first and pid)
check("badged-nfc is started again", nfc, daemon.log())
with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/eID-Client?Status", timeout=LIMIT) as answer:
    check("badged-activation answers", answer.status == 200, answer.status)
activation = child("badged-activation")
# badged-nfc reports the missing device after it is confined.
check("badged-nfc reports the device", until(lambda: "pn532_uart:/dev/none" in " ".join(checks())), checks())



def diagnoses(pid):
    """The sockets of a process at which the kernel says who owns a connection: sock_diag(7), number 4 of netlink(7)."""
    with open(f"/proc/{pid}/net/netlink", encoding="ascii") as file:
        rows = [line.split() for line in list(file)[1:]]
    return sockets(pid) & {row[9] for row in rows if row[1] == "4"}


listening = {number for name in ("tcp", "tcp6") for number, port in table(name, "0A").items() if port == PORT}
check("badged listens at the browser port", listening and listening <= sockets(daemon.pid), listening)
log = os.path.realpath(daemon.log_path)
for name, pid, shared in (("badged-activation", activation, listening), ("badged-nfc", nfc, set()), ("badged-network", network, set())):
    if pid != network:
        # The connection of the request above may still be open for a moment.
        fits = until(lambda pid=pid, shared=shared: len(sockets(pid) - shared - diagnoses(pid)) == 1)
        check(f"{name} has one socket of its own" + (" and the listening sockets" if shared else ""), fits, descriptors(pid))
    check(f"{name} has {'one socket' if shared else 'no socket'} for questions about connections",
          len(diagnoses(pid)) == (1 if shared else 0), descriptors(pid))
    common = sockets(pid) & sockets(daemon.pid)
    check(f"{name} has no connection of badged", common == shared, (descriptors(pid), descriptors(daemon.pid)))
    if pid != network:
        check(f"{name} has the connection to the eID-Server least of all", not sockets(pid) & open_to_server)
    allowed = {"/dev/null", "/dev/urandom", log, "anon_inode:[eventpoll]", "anon_inode:[eventfd]"}
    others = [target for target in descriptors(pid).values()
              if target not in allowed and not target.startswith(("socket:", "pipe:"))]
    check(f"{name} has no open file but its log", not others, descriptors(pid))
    check(f"{name} sleeps when it has nothing to do", sleeps(pid))
    check(f"{name} has a filter for system calls", status(pid, "Seccomp") == "2")
    check(f"{name} cannot get privileges", status(pid, "NoNewPrivs") == "1")
    check(f"{name} cannot be debugged by its user", os.stat(f"/proc/{pid}/mem").st_uid == 0)
# A wrong PIN, and then the question for the next one: badged-network runs, and has never seen the first.
PIN = "740931"
client.send(cmd="ACCEPT")
client.wait_for("INSERT_CARD")
client.send(cmd="SET_CARD", name="Simulator")
client.wait_for("ENTER_PIN")
client.ask("ENTER_PIN", cmd="SET_PIN", value=PIN)
found = memory(network)
check("the memory of badged-network has the certificate of the eID-Server", b"localhost" in found)
check("the memory of badged-network has no PIN", PIN.encode() not in found)
check("badged has none after an authentication", not loads_network_libraries())
client.ask("AUTH", cmd="CANCEL")
check("badged-network ends with its authentication", until(lambda: not os.path.exists(f"/proc/{network}")))
spare = until(lambda: child("badged-network"))
check("another one waits for the next authentication", spare, daemon.log())
check("it waits without a wake-up", sleeps(spare))

# An end of badged-network at the question for the PIN ends the question: nobody types a PIN in vain.
client.send(cmd="RUN_AUTH", tcTokenURL=url)
client.wait_for("ACCESS_RIGHTS")
client.send(cmd="ACCEPT")
client.wait_for("INSERT_CARD")
client.send(cmd="SET_CARD", name="Simulator")
tries = client.wait_for("ENTER_PIN")["reader"]["card"]["retryCounter"]
check("it has taken the one that waited", child("badged-network") == spare)
os.kill(child("badged-network"), signal.SIGKILL)
end = client.wait_for("AUTH")
while "result" not in end:
    end = client.wait_for("AUTH")
check("an authentication whose badged-network was killed says so", "badged-network has ended" in end["result"].get("message", ""), end)
client.send(cmd="RUN_AUTH", tcTokenURL=url)
client.wait_for("ACCESS_RIGHTS")
client.send(cmd="ACCEPT")
client.wait_for("INSERT_CARD")
client.send(cmd="SET_CARD", name="Simulator")
left = client.wait_for("ENTER_PIN")["reader"]["card"]["retryCounter"]
check("it costs no try of the PIN", left >= tries, (tries, left))
client.ask("AUTH", cmd="CANCEL")
daemon.end()

# A program in the place of badged-activation that breaks the rules: two descriptors in one message. It ignores SIGTERM
# and does not end by itself.
folder = os.path.join(work, "programs")
os.mkdir(folder)
for name in ("badged", "badged-network"):
    shutil.copy(f"{programs}/{name}", folder)
broken, note = f"{folder}/badged-activation", os.path.join(work, "pid")
with open(broken, "w", encoding="utf-8") as file:
    file.write(f"""#!{sys.executable}
import os, signal, socket
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open("{note}.new", "w") as file:
    file.write(str(os.getpid()))
os.rename("{note}.new", "{note}")
ends = socket.socketpair()
socket.send_fds(socket.socket(fileno=3), [b"x"], [end.fileno() for end in ends])
while True:
    signal.pause()
""")
os.chmod(broken, 0o755)
daemon = Daemon(f"{folder}/badged", ["--no-pcsc", "--no-nfc", "--no-ble", "--config", config, "--socket", path], work)
until(lambda: serves_browsers(path))
own = sockets(daemon.pid)
waiting = socket.create_connection(("127.0.0.1", PORT))
check("the program that breaks the rules was started", until(lambda: os.path.exists(note)), daemon.log())
with open(note, encoding="ascii") as file:
    pid = int(file.read())
check("badged kills it", until(lambda: not os.path.exists(f"/proc/{pid}")), daemon.log())
check("the descriptors of its message are closed", until(lambda: sockets(daemon.pid) <= own),
      descriptors(daemon.pid))
waiting.close()
os.symlink(f"{programs}/badged-activation", broken + ".new")
os.replace(broken + ".new", broken)
with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/eID-Client?Status", timeout=LIMIT) as answer:
    check("the next connection starts badged-activation again", answer.status == 200, answer.status)
daemon.end()
finish()
