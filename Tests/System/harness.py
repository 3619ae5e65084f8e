# SPDX-License-Identifier: GPL-3.0-or-later
"""Shared parts of the Python scripts in Tests/System and Tests/Guest: checks, a service manager, badged, and a client.

Each wait is for an event. LIMIT only ends a script that hangs.
"""
import atexit
import json
import os
import random
import socket
import subprocess
import sys
import time

LIMIT = 120.0  # seconds
failures = 0
# Whether a wait has failed. What follows rests on it, and would wait in vain as well, perhaps a thousand times.
has_waited_in_vain = False


def check(sentence, condition, detail=""):
    """Prints the sentence with the result; a failure is shown with its detail and makes `finish` exit with 1. After a
    wait that has failed this is the last check: the script ends."""
    global failures
    if condition:
        print(f"  ok: {sentence}", flush=True)
    else:
        failures += 1
        print(f"  FAILED: {sentence}\n    {detail}", flush=True)
    if has_waited_in_vain:
        finish()


def until(condition):
    """Waits for something that no event announces, and returns the result of the condition. Its end without one is a
    failure, whether the caller looks at the result or not. The caller may show it with `check`; then the script ends."""
    global has_waited_in_vain
    if has_waited_in_vain:
        finish()
    end = time.monotonic() + LIMIT
    while not (result := condition()):
        if time.monotonic() > end:
            caller = sys._getframe(1)
            check(f"{os.path.basename(caller.f_code.co_filename)}, line {caller.f_lineno}: it happens in {LIMIT} s", False)
            has_waited_in_vain = True
            break
        time.sleep(0.02)
    return result


def free_port():
    """A free port below those that the kernel gives to outgoing connections (ip_local_port_range in ip(7))."""
    while True:
        port = random.randrange(10000, 32000)
        try:
            socket.create_server(("127.0.0.1", port)).close()
            return port
        except OSError:
            pass


def serves_browsers(path):
    """Whether the badged at this socket has opened its browser port."""
    client = Client(path)
    checks = client.ask("HEALTH", cmd="GET_HEALTH")["checks"]
    client.close()
    return any(found["name"] == "browserPort" and found["ok"] for found in checks)


def internet_sockets(pid):
    """The sockets of a process that its own network has in its tables of TCP and UDP."""
    own = {os.readlink(f"/proc/{pid}/fd/{number}") for number in os.listdir(f"/proc/{pid}/fd")}
    found = set()
    for name in ("tcp", "tcp6", "udp", "udp6"):
        with open(f"/proc/{pid}/net/{name}", encoding="ascii") as file:
            found |= {f"socket:[{line.split()[9]}]" for line in list(file)[1:]}
    return own & found


def sleeps(pid):
    """Waits until no thread of a process runs. A thread that spins never sleeps."""
    def states():
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/stat", encoding="ascii") as file:
                yield file.read().rsplit(")", 1)[1].split()[0]
    return until(lambda: set(states()) == {"S"})


def children_of(pid, name):
    """The processes of a program that this process has started."""
    found = []
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/status", encoding="ascii") as file:
                parent = next(line.split()[1] for line in file if line.startswith("PPid:"))
            if parent == str(pid) and os.readlink(f"/proc/{number}/exe").endswith("/" + name):
                found.append(int(number))
        except OSError:  # has ended
            pass
    return found


def finish():
    sys.exit(1 if failures else 0)


children = []


@atexit.register
def end_children():
    """Kills the programs that still run when the script ends."""
    for child in children:
        if child.poll() is None:
            child.kill()


class Manager:
    """Receives the messages that sd_notify(3) sends to a service manager."""

    def __init__(self, address):
        """`address` is a path, or @NAME in the abstract namespace."""
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.address = address
        if address.startswith("@"):
            self.socket.bind("\0" + address[1:])
        else:
            self.socket.bind(address)
            os.chmod(address, 0o777)
        self.socket.settimeout(LIMIT)
        # All messages so far.
        self.messages = []

    def wait_for(self, key):
        """The next message with this key, as a dictionary, and the time of its arrival."""
        while True:
            text = self.socket.recv(65536).decode()
            state = dict(line.split("=", 1) for line in text.splitlines())
            self.messages.append(state)
            if key in state:
                return state, time.monotonic()

    def close(self):
        self.socket.close()
        if not self.address.startswith("@"):
            os.unlink(self.address)


class Daemon:
    """badged as a child process. It is ready when the constructor returns, unless `wait` is false."""

    count = 0

    def __init__(self, program, arguments, work, wait=True, environment=None, user=None, abstract=False,
                 stderr=None, descriptors=()):
        """`stderr` is a descriptor for the log instead of a file."""
        Daemon.count += 1
        name = f"notify-{os.getpid()}-{Daemon.count}"
        self.manager = Manager("@" + name if abstract else os.path.join(work, name))
        self.log_path = os.path.join(work, f"log-{Daemon.count}")
        clean = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", "JOURNAL_STREAM")}
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=log if stderr is None else stderr, user=user, group=user,
                pass_fds=descriptors, extra_groups=None if user is None else [],
                env={**clean, "NOTIFY_SOCKET": self.manager.address, **(environment or {})})
        children.append(self.process)
        if wait:
            try:
                self.ready, _ = self.manager.wait_for("READY")
            except TimeoutError:
                raise TimeoutError(f"{program} is not ready: {self.log()}") from None

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        with open(self.log_path, encoding="utf-8") as log:
            return log.read()

    def reload(self):
        """Sends SIGHUP and waits until badged is ready again. Returns the message RELOADING."""
        self.process.send_signal(1)
        state, _ = self.manager.wait_for("RELOADING")
        self.manager.wait_for("READY")
        return state

    def end(self, signal=15):
        """Sends the signal and waits for the end. Returns the exit code and the seconds that the end took."""
        start = time.monotonic()
        self.process.send_signal(signal)
        code = self.process.wait(LIMIT)
        return code, time.monotonic() - start

    def finished(self):
        """Waits until the process ends by itself. Returns its exit code, stdout and stderr."""
        out, _ = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out.decode(), self.log()


class Client:
    """A client of badged: JSON lines over its socket."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        self.socket.connect(path)
        self.file = self.socket.makefile("rwb")

    def send(self, **command):
        self.file.write(json.dumps(command).encode() + b"\n")
        self.file.flush()

    def next(self):
        """The next message; None when badged has closed the connection."""
        line = self.file.readline()
        return json.loads(line) if line else None

    def wait_for(self, message):
        """The next message of this name; earlier ones are dropped. None when badged has closed the connection."""
        while True:
            got = self.next()
            if got is None or got["msg"] == message:
                return got

    def ask(self, message, **command):
        """Sends the command and waits for the message of this name."""
        self.send(**command)
        return self.wait_for(message)

    def close(self):
        self.file.close()
        self.socket.close()
