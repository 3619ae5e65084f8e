# SPDX-License-Identifier: GPL-3.0-or-later
"""For the Python scripts of this folder: checks that speak, a service manager, and a client.

Every wait is for an event and has a limit after which the script fails; nothing sleeps.
"""
import atexit
import json
import os
import select
import socket
import subprocess
import sys
import time

LIMIT = 20.0  # seconds, for what should take milliseconds
failures = 0


def check(sentence, condition, detail=""):
    global failures
    if condition:
        print(f"  ok: {sentence}", flush=True)
    else:
        failures += 1
        print(f"  FAILED: {sentence}\n    {detail}", flush=True)


def finish():
    sys.exit(1 if failures else 0)


children = []


@atexit.register
def end_children():
    """However the script ends, what it started ends with it."""
    for child in children:
        if child.poll() is None:
            child.kill()


class Manager:
    """Listens where sd_notify(3) speaks to."""

    def __init__(self, address):
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        if not address.startswith("@"):
            os.chmod(address, 0o777)
        self.socket.settimeout(LIMIT)

    def next(self):
        """The next datagram as a dictionary, and when it came."""
        text = self.socket.recv(65536).decode()
        return dict(line.split("=", 1) for line in text.splitlines()), time.monotonic()

    def wait_for(self, key):
        while True:
            state, when = self.next()
            if key in state:
                return state, when

    def close(self):
        self.socket.close()
        if not self.address.startswith("@"):
            os.unlink(self.address)


class Daemon:
    """badged as a child; ready when the constructor returns, unless told not to wait."""

    def __init__(self, program, arguments, work, wait=True, environment=None, user=None, abstract=False):
        number = Daemon.count = getattr(Daemon, "count", 0) + 1
        name = f"notify-{os.getpid()}-{number}"
        self.manager = Manager("@" + name if abstract else os.path.join(work, name))
        self.log_path = os.path.join(work, f"log-{number}")
        clean = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", "JOURNAL_STREAM")}
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(
                [program, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, user=user, group=user,
                extra_groups=None if user is None else [],
                env={**clean, "NOTIFY_SOCKET": self.manager.address, **(environment or {})})
        children.append(self.process)
        if wait:
            self.ready, _ = self.manager.wait_for("READY")

    @property
    def pid(self):
        return self.process.pid

    def log(self):
        with open(self.log_path, encoding="utf-8") as log:
            return log.read()

    def end(self, signal=15):
        """Sends the signal; gives exit code and seconds."""
        start = time.monotonic()
        self.process.send_signal(signal)
        code = self.process.wait(LIMIT)
        return code, time.monotonic() - start

    def finished(self):
        """Waits for the end by itself; gives exit code, stdout and stderr."""
        out, _ = self.process.communicate(timeout=LIMIT)
        return self.process.returncode, out.decode(), self.log()


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LIMIT)
        self.socket.connect(path)
        self.file = self.socket.makefile("rwb")

    def send(self, **command):
        self.file.write(json.dumps(command).encode() + b"\n")
        self.file.flush()

    def next(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def wait_for(self, message):
        """The next message of that name; those before it are dropped. None when the daemon closes."""
        while True:
            got = self.next()
            if got is None or got["msg"] == message:
                return got

    def ask(self, message, **command):
        self.send(**command)
        return self.wait_for(message)

    def close(self):
        self.file.close()
        self.socket.close()


def readable(descriptor, seconds):
    return bool(select.select([descriptor], [], [], seconds)[0])
