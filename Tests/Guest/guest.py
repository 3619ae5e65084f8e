# SPDX-License-Identifier: GPL-3.0-or-later
"""Steps that the scenarios share: services of the guest, the virtual Bluetooth controller, badged and a client that scans.

As in Tests/System, every wait is for an event and has a time limit that only a hang reaches.
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
ROOT = os.path.dirname(os.path.dirname(HERE))
RESULT = "/mnt/result"
WORK = "/run/scenario"
os.makedirs(WORK, exist_ok=True)
# As /tmp: badged takes no configuration from a folder where others could replace it.
os.chmod(WORK, 0o1777)
# Seconds. The guest shares the processors of the host with other programs.
harness.LIMIT = LIMIT = 120.0
NOBODY = 65534
BACKENDS = ("mgmt", "bluez")


def figure(what, value, goal=""):
    """Adds a row to the table that run.sh prints at its end."""
    with open(os.path.join(RESULT, "figures"), "a", encoding="utf-8") as file:
        print(what, value, goal, sep="\t", file=file)
    print(f"  figure: {what}: {value}" + (f" (goal {goal})" if goal else ""), flush=True)


def percentile(values, part):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * part))] if values else float("nan")


def percentile_figures(what, values, digits=1, goal=""):
    """Adds a row for the median and one for the 99th percentile of times in milliseconds."""
    figure(f"{what}: p50", f"{percentile(values, 0.5):.{digits}f} ms")
    figure(f"{what}: p99", f"{percentile(values, 0.99):.{digits}f} ms", goal)


# System services


def start(*command, log=None):
    """Starts a program that runs until the scenario ends."""
    output = open(os.path.join(RESULT, log), "ab") if log else subprocess.DEVNULL
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    harness.children.append(child)
    return child


def stop(child):
    child.kill()
    child.wait()


def run(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT, check=False)


def make_user():
    """Creates the user and the group badged, as the installation does."""
    subprocess.run(["systemd-sysusers", f"{ROOT}/systemd/badged-sysusers.conf"], check=True)


def start_bus():
    """Starts the system's D-Bus; returns its process number when the bus listens."""
    os.makedirs("/run/dbus", exist_ok=True)
    command = ["dbus-daemon", "--system", "--fork", "--nopidfile", "--print-pid"]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def start_udev():
    """Starts udevd, which handles all devices that are present."""
    subprocess.run(["/lib/systemd/systemd-udevd", "--daemon"], check=True)
    subprocess.run(["udevadm", "trigger", "--action=add"], check=True)
    subprocess.run(["udevadm", "settle"], check=True)


BLUETOOTHD = "/usr/libexec/bluetooth/bluetoothd"
# That of this machine, and that of Debian 13 for scenarios with the line `# bluetoothd`.
BLUETOOTHDS = [BLUETOOTHD, *filter(None, [os.environ.get("BADGED_NEWER_BLUETOOTHD")])]


def start_bluetoothd(*options, program=BLUETOOTHD):
    return start(program, "-n", *options, log="bluetoothd.log")


def keep_bluetoothd_running():
    """Starts bluetoothd, and starts it again whenever it ends."""
    start("sh", "-c", f"while :; do {BLUETOOTHD} -n; sleep 1; done", log="bluetoothd.log")


def in_terminal(*command):
    """Runs a program that prints nothing without a terminal, as btmgmt does; returns its output."""
    ours, theirs = os.openpty()
    child = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    output = b""
    end = time.monotonic() + LIMIT
    while select.select([ours], [], [], max(0, end - time.monotonic()))[0]:
        try:
            output += os.read(ours, 4096)
        except OSError:  # the program has ended
            break
    stop(child)
    os.close(ours)
    return output.decode(errors="replace")


def set_power(value):
    """Switches the adapter with btmgmt: "on" or "off"."""
    return in_terminal("btmgmt", "power", value)


def is_powered():
    """Whether the adapter is switched on, as the kernel reports."""
    return any("powered" in line for line in in_terminal("btmgmt", "info").splitlines() if "current settings" in line)


def processor_seconds(pid):
    """The processor time of a process with all its threads; the clock is that of clock_getcpuclockid(3)."""
    return time.clock_gettime(~pid << 3 | 2)


def status_field(pid, name):
    """A line of /proc/PID/status."""
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        return next(line.split(":", 1)[1].strip() for line in file if line.startswith(name + ":"))


def memory(pid):
    """Resident memory in kB."""
    return int(status_field(pid, "VmRSS").split()[0])


# Advertisements


def seos(number, code=2, rssi=-60, every=100, **more):
    """A reader of the Seos kind: the advertisement has the service with the lock service code, the scan response the name."""
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
    """A static random address."""
    return "C3:33:22:11:%02X:%02X" % (number >> 8 & 255, number & 255)


# The signal strength while a person comes, stands at the door and leaves.
WALK = {"curve": [[0, -95], [3, -90], [6, -55], [8, -45], [10, -55], [13, -90], [16, -95]]}


class Controller:
    """A virtual Bluetooth controller, plugged in until `unplug`; the program is controller.py."""

    def __init__(self, *options, **settings):
        # The program answers each command with one line, so reading a line blocks only until the answer.
        self.process = subprocess.Popen(["python3", os.path.join(HERE, "controller.py"), *options], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        harness.children.append(self.process)
        self.index = json.loads(self.process.stdout.readline())["index"]
        if settings:
            self.set(**settings)

    def set(self, **command):
        """Sends a command; returns the answer with the state of the controller."""
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def state(self):
        return self.set()

    def unplug(self):
        self.process.stdin.close()
        self.process.wait(LIMIT)


# badged


class Badged(Daemon):
    """badged as an unprivileged user, with CAP_NET_ADMIN for the management socket, or with the socket."""

    def __init__(self, backend, user=str(NOBODY), is_capable=None, management=None, sections="", folder=None, **ble):
        """is_capable: whether badged gets CAP_NET_ADMIN; by default when the backend needs it. management: the descriptor that badged
        gets as from systemd. sections: further sections of the configuration. folder: where badged keeps its store, if anywhere.
        ble: further keys of [ble]."""
        config = os.path.join(WORK, "badged.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"[ble]\nbackend = {backend}\n")
            file.writelines(f"{key} = {value}\n" for key, value in ble.items())
            file.write(sections)
        if is_capable is None:
            is_capable = backend == "mgmt" and management is None
        capabilities = "+net_admin" if is_capable else "-all"
        bounds = "-all,+net_admin" if is_capable else "-all"
        self.path = os.path.join(WORK, "badged.sock")
        # systemd passes descriptors from 3 on, and names the process.
        passing = [] if management is None else ["sh", "-c", f"""exec 3<&{management}
            [ {management} = 3 ] || exec {management}<&-
            export LISTEN_FDS=1 LISTEN_FDNAMES=bluetooth LISTEN_PID=$$
            exec "$@" """, "sh"]
        super().__init__("env", [
            *passing, "setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", f"--bounding-set={bounds}",
            f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}",
            f"{BIN}/badged", "--no-pcsc", "--no-nfc", "--virtual", "--log-level", "info",
            "--config", config, "--socket", self.path], WORK, descriptors=[] if management is None else [management],
            environment={"STATE_DIRECTORY": folder} if folder else None)

    def client(self):
        return ScanClient(self)


def scan(backend, name=None, number=1, badged=None, **parameters):
    """Starts badged, a client and a scan, and checks that the reader is received; returns badged and the client."""
    badged = badged or Badged(backend)
    client = badged.client()
    client.begin(**parameters)
    check(f"{name or backend}: a reader is received", client.receives(number), client.detail())
    return badged, client


class ScanClient(Client):
    """A client that scans. It remembers the readers and the last SCAN."""

    def __init__(self, badged):
        super().__init__(badged.path)
        self.badged = badged
        self.readers, self.scan = {}, None
        self.lines, self.partial = [], b""

    def detail(self):
        """What helps to explain a failure."""
        return self.scan, self.badged.log()

    def fetch(self, seconds):
        """Reads complete lines; none when nothing arrives in this time."""
        if not select.select([self.socket], [], [], seconds)[0]:
            return []
        chunk = self.socket.recv(1 << 20)
        if not chunk:
            raise EOFError("badged has closed the connection")
        *lines, self.partial = (self.partial + chunk).split(b"\n")
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
        """Counts the messages of this name that arrive in this time; other messages are dropped."""
        mark, end, count = f'"msg":"{name}"'.encode(), time.monotonic() + seconds, 0
        self.lines = []
        while (left := end - time.monotonic()) > 0:
            count += sum(mark in line for line in self.fetch(left))
        return count

    def begin(self, mode="performance", **parameters):
        self.send(cmd="START_SCAN", mode=mode, **{"lockServiceCodes": [], **parameters})
        return self.until(lambda message: message["msg"] == "SCAN")

    def until(self, condition, seconds=LIMIT):
        """Returns the first message that meets the condition; None when the time is over. Earlier messages are remembered."""
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

    def wait_until(self, condition):
        """Waits until a condition holds that no message announces. Reads messages meanwhile."""
        end = time.monotonic() + LIMIT
        while not (result := condition()) and time.monotonic() < end:
            self.fetch(0.01)
        return result

    def known(self):
        """All readers that badged remembers, also lost ones."""
        self.send(cmd="GET_DOOR_READER_LIST", activeOnly=False)
        return self.until(lambda m: m["msg"] == "DOOR_READER_LIST")["readers"]

    def adverts(self):
        """The number of advertisements received from all readers."""
        return sum(reader["adverts"] for reader in self.known())

    def receives(self, number, times=1):
        """Waits for messages about the reader with this number."""
        return all(self.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"]["address"] == address(number))
                   for _ in range(times))

    def reports(self, text):
        """Waits for a SCAN whose error contains this text; None: for one without an error whose radio listens."""
        def fits(message):
            return text in message.get("error", "") if text else "error" not in message and message["radio"]
        return self.scan is not None and fits(self.scan) or self.until(
            lambda m: m["msg"] == "SCAN" and fits(m)) is not None

    def state(self):
        """SCAN, as it is now."""
        self.send(cmd="GET_SCAN")
        return self.until(lambda m: m["msg"] == "SCAN")

    def health(self):
        self.send(cmd="GET_HEALTH")
        checks = self.until(lambda m: m["msg"] == "HEALTH")["checks"]
        return {entry["name"]: entry for entry in checks}
