# SPDX-License-Identifier: GPL-3.0-or-later
"""For the scenarios: what can be run in the guest, and what a scenario wants to know of it.

As in the scripts of Tests/System every wait is for an event and has a limit, and each thing that was checked is said.
"""
import json
import os
import select
import struct
import subprocess
import time

import harness
from harness import Client, Daemon, check, finish  # noqa: F401  for the scenarios

from controller import structure

BIN = os.environ["BADGED_BIN"]
HERE = os.path.dirname(os.path.abspath(__file__))
RESULT = "/mnt/result"
WORK = "/run/scenario"
os.makedirs(WORK, mode=0o777, exist_ok=True)
os.chmod(WORK, 0o777)
# The guest shares its processors with whatever else the machine does.
harness.LIMIT = LIMIT = 60.0
NOBODY = 65534


def figure(what, value, goal=""):
    """A row of the table that run.sh prints in the end."""
    with open(os.path.join(RESULT, "figures"), "a", encoding="utf-8") as file:
        print(what, value, goal, sep="\t", file=file)
    print(f"  figure: {what}: {value}" + (f" (goal {goal})" if goal else ""), flush=True)


def keep(name, text):
    """For a person who wants to know why it failed."""
    with open(os.path.join(RESULT, name), "a", encoding="utf-8") as file:
        file.write(text)


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


# The system


def start(*command, log=None):
    """A program that runs until the scenario ends."""
    output = open(os.path.join(RESULT, log), "ab") if log else subprocess.DEVNULL
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    harness.children.append(child)
    return child


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False)


def start_bus():
    """The system's D-Bus; returns its process number when it listens."""
    os.makedirs("/run/dbus", exist_ok=True)
    command = ["dbus-daemon", "--system", "--fork", "--nopidfile", "--print-pid"]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def start_udev():
    """udevd, with everything that is plugged in already."""
    subprocess.run(["/lib/systemd/systemd-udevd", "--daemon"], check=True)
    subprocess.run(["udevadm", "trigger", "--action=add"], check=True)
    subprocess.run(["udevadm", "settle"], check=True)


def start_bluetoothd(*options):
    return start("/usr/libexec/bluetooth/bluetoothd", "-n", *options, log="bluetoothd.log")


def in_terminal(*command, seconds=5):
    """For programs that say nothing without a terminal, as btmgmt does."""
    ours, theirs = os.openpty()
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    output = b""
    end = time.monotonic() + seconds
    while select.select([ours], [], [], max(0, end - time.monotonic()))[0]:
        try:
            chunk = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        output += chunk
    child.kill()
    child.wait()
    os.close(ours)
    return output.decode(errors="replace")


def btmgmt(*arguments):
    return in_terminal("btmgmt", *arguments)


def processor_seconds(pid):
    """What a process has used so far, with all its threads; as clock_getcpuclockid(3) makes its clock."""
    return time.clock_gettime(~pid << 3 | 2)


def memory(pid):
    """kB resident."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


# What is on the air


def seos(number, code=2, rssi=-60, every=100, **more):
    """A reader of the Seos kind: its service with the lock service code; its name only when it is asked."""
    service = bytes.fromhex("00009800000010008000" + "00177A") + code.to_bytes(3, "big")
    return {"address": address(number), "data": (structure(1, b"\6") + structure(7, service[::-1])).hex(),
            "response": structure(9, b"Seos").hex(), "rssi": rssi, "every": every, **more}


def pkoc(number, rssi=-60, every=100, **more):
    return {"address": address(number), "data": (structure(1, b"\6") + structure(3, b"\xF0\xFF")).hex(),
            "response": structure(9, b"door-%04d" % number).hex(), "rssi": rssi, "every": every, **more}


def aliro(number, rssi=-60, every=100, **more):
    value = b"\xF2\xFF" + struct.pack(">BbQHI", 0, 4, 0xA11F0, number, 0) + bytes(8)
    return {"address": address(number), "data": structure(0x16, value).hex(), "rssi": rssi, "every": every, **more}


def address(number):
    """A static random one."""
    return "C3:33:22:11:%02X:%02X" % (number >> 8 & 255, number & 255)


# Somebody comes, stands at the door, and goes.
WALK = {"curve": [[0, -95], [3, -90], [6, -55], [8, -45], [10, -55], [13, -90], [16, -95]]}


class Radio:
    """A controller that is plugged in now; see controller.py."""

    def __init__(self, *options):
        # Python's ends of pipes have buffers that select does not see, so the answers are read by line, one for each command.
        self.process = subprocess.Popen(["python3", os.path.join(HERE, "controller.py"), *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        harness.children.append(self.process)
        self.index = json.loads(self.process.stdout.readline())["index"]

    @property
    def pid(self):
        return self.process.pid

    def tell(self, **command):
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def unplug(self):
        self.process.stdin.close()
        self.process.wait(LIMIT)


# badged


class Badged(Daemon):
    """badged as it is installed: not root, and with CAP_NET_ADMIN only for the management socket."""

    def __init__(self, backend, user=str(NOBODY), is_capable=None, **ble):
        """is_capable: whether badged gets CAP_NET_ADMIN, as from its unit; by default where the backend needs it."""
        config = os.path.join(WORK, "badged.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"[ble]\nbackend = {backend}\n")
            file.writelines(f"{key} = {value}\n" for key, value in ble.items())
        if is_capable is None:
            is_capable = backend == "mgmt"
        capabilities = "+net_admin" if is_capable else "-all"
        self.path = os.path.join(WORK, "badged.sock")
        super().__init__("setpriv", [
            f"--reuid={user}", f"--regid={user}", "--clear-groups", "--bounding-set=-all,+net_admin" if is_capable
            else "--bounding-set=-all", f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}",
            f"{BIN}/badged", "--no-pcsc", "--no-nfc", "--virtual", "--log-level", "info", "--config", config, "--socket", self.path],
            WORK)

    def client(self):
        return Scan(self.path)


class Scan(Client):
    """A client that scans; remembers what it was told."""

    def __init__(self, path):
        super().__init__(path)
        self.readers, self.scan = {}, None
        self.lines, self.rest = [], b""

    def fetch(self, seconds):
        """Complete lines, which may be none when nothing comes in time."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return []
        chunk = self.socket.recv(1 << 20)
        if not chunk:
            raise EOFError("badged has closed the connection")
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        return lines

    def next(self):
        return self.until(lambda message: True)

    def remember(self, message):
        kind = message["msg"]
        if kind == "DOOR_READER":
            self.readers[message["reader"]["id"]] = message["reader"]
        elif kind == "DOOR_READER_LOST":
            self.readers.pop(message["id"], None)
        elif kind == "SCAN":
            self.scan = message

    def count(self, name, seconds):
        """How many messages of this name come in so many seconds, unread."""
        mark, end, count = f'"msg":"{name}"'.encode(), time.monotonic() + seconds, 0
        self.lines = []
        while (left := end - time.monotonic()) > 0:
            count += sum(mark in line for line in self.fetch(left))
        return count

    def begin(self, mode="performance", **wishes):
        self.send(cmd="START_SCAN", mode=mode, **{"lockServiceCodes": [], **wishes})
        return self.until(lambda message: message["msg"] == "SCAN")

    def until(self, condition, seconds=LIMIT):
        """The first message for which it is true; those before it are remembered only. None when there is none in time."""
        end = time.monotonic() + seconds
        while True:
            while not self.lines:
                left = end - time.monotonic()
                if left <= 0:
                    return None
                self.lines = self.fetch(left)[::-1]
            message = json.loads(self.lines.pop())
            self.remember(message)
            if condition(message):
                return message

    def known(self):
        """Readers that are remembered, also those that are silent."""
        self.send(cmd="GET_DOOR_READER_LIST", activeOnly=False)
        return self.until(lambda m: m["msg"] == "DOOR_READER_LIST")["readers"]

    def adverts(self):
        """How many advertisements of all these were heard."""
        return sum(reader["adverts"] for reader in self.known())

    def hears(self, number, seconds=LIMIT):
        """Waits for news of the reader with this address."""
        return self.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"]["address"] == address(number), seconds) is not None

    def says(self, text, seconds=LIMIT):
        """Waits for a SCAN whose error has this text; None: that has no error and listens."""
        def fits(scan):
            return text in scan.get("error", "") if text else "error" not in scan and scan["radio"]
        return self.scan is not None and fits(self.scan) or self.until(
            lambda m: m["msg"] == "SCAN" and fits(m), seconds) is not None

    def state(self):
        """SCAN, as it is now."""
        self.send(cmd="GET_SCAN")
        return self.until(lambda m: m["msg"] == "SCAN")

    def health(self):
        self.send(cmd="GET_HEALTH")
        checks = self.until(lambda m: m["msg"] == "HEALTH")["checks"]
        return {entry["name"]: entry for entry in checks}
