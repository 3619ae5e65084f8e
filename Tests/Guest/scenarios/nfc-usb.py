# SPDX-License-Identifier: GPL-3.0-or-later
# NFC boards on USB, with real udev and the installed rule, and real libusb and libnfc. badged runs
# as the user to whom the rule gives the boards.
# short
# kernel: time-travel=inf-cpu
import grp
import os
import shutil
import subprocess
import time

import harness
from guest import BIN, LIMIT, ROOT, WORK, Client, Daemon, check, figure, finish, make_user, run, start_udev, status_field

# Without this, udevadm does nothing when its root is not that of the first process.
os.environ["SYSTEMD_IGNORE_CHROOT"] = "1"
make_user()
os.makedirs("/run/udev/rules.d", exist_ok=True)
shutil.copyfile(f"{ROOT}/udev/94-badged.rules", "/run/udev/rules.d/94-badged.rules")
start_udev()
PIN, OTHER = "123456", "654321"


class Board:
    """A virtual board on USB with a virtual card; the program is badged-nfc-board."""

    def __init__(self, model):
        self.process = subprocess.Popen([f"{BIN}/badged-nfc-board", model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        harness.children.append(self.process)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        self.process.wait(LIMIT)


def parent(pid):
    """The parent of a process; None when the process has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("PPid:"))
    except OSError:
        return None


class Badged(Daemon):
    def __init__(self, devices):
        config = os.path.join(WORK, "nfc.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"[nfc]\ndevices = {devices}\n")
        self.path = os.path.join(WORK, "nfc.sock")
        super().__init__("setpriv", ["--reuid=badged", "--regid=badged", "--init-groups", "--bounding-set=-all", "--inh-caps=-all",
                                     f"{BIN}/badged", "--no-pcsc", "--no-ble", "--config", config, "--socket", self.path], WORK)

    def programs(self):
        """The processes that badged has started."""
        return [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and parent(pid) == self.pid]

    def wake_ups(self, seconds):
        """Measures the wake-ups per second of badged and badged-nfc while they have nothing to do."""
        nfc = self.programs()
        check("badged has started badged-nfc", len(nfc) == 1, nfc)

        def switches():
            tasks = [task for pid in [self.pid, *nfc] for task in os.listdir(f"/proc/{pid}/task")]
            return sum(int(status_field(task, "voluntary_ctxt_switches")) for task in tasks)
        before, start = switches(), time.monotonic()
        time.sleep(seconds)
        return (switches() - before) / (time.monotonic() - start)


def wait_until(condition):
    """Waits for something that no event announces; the pause lets the guest's clock advance."""
    end = time.monotonic() + LIMIT
    while not (result := condition()) and time.monotonic() < end:
        time.sleep(0.05)
    return result


def properties(identity):
    """The properties of the device in udev's database."""
    vendor, product = identity.split(":")
    path = run("udevadm", "trigger", "--dry-run", "--verbose", "--subsystem-match=usb", f"--attr-match=idVendor={vendor}",
               f"--attr-match=idProduct={product}").stdout.strip()
    lines = run("udevadm", "info", "--query=property", "--path", path).stdout.splitlines()
    return dict(line.split("=", 1) for line in lines)


def starts_badged(identity):
    """Whether udev lets systemd start badged for the device."""
    return "badged.service" in properties(identity).get("SYSTEMD_WANTS", "").split()


def may_open(node, group):
    """Whether an ordinary user in this group may read and write the device."""
    command = ["setpriv", "--reuid=nobody", f"--regid={group}", "--clear-groups", "sh", "-c", 'test -r "$0" && test -w "$0"', node]
    return run(*command).returncode == 0


def confinement(client):
    """The advice of the check `confinement` in GET_HEALTH."""
    checks = client.ask("HEALTH", cmd="GET_HEALTH")["checks"]
    return next(entry.get("advice", "") for entry in checks if entry["name"] == "confinement")


def reader(client, condition):
    """Waits for a READER message that meets the condition."""
    while True:
        message = client.wait_for("READER")
        if message is None or condition(message):
            return message


def change(client, old, new, before_answer=lambda: None):
    """Runs RUN_CHANGE_PIN to its end, or until a card is requested again. Calls `before_answer` at the first question."""
    client.send(cmd="RUN_CHANGE_PIN")
    answers = {"ENTER_PIN": {"cmd": "SET_PIN", "value": old}, "ENTER_NEW_PIN": {"cmd": "SET_NEW_PIN", "value": new}}
    started = False
    while (message := client.next()) is not None:
        kind = message["msg"]
        if kind in answers:
            if not started:
                before_answer()
            started = True
            client.send(**answers[kind])
        elif kind == "CHANGE_PIN" and "success" in message:
            return message["success"]
        elif kind in ("INSERT_CARD", "PAUSE") and started:
            return kind
    return None


def faults(client):
    """The failed checks of NFC in GET_HEALTH. The check of the devices runs after the answer, so ask again for its result."""
    checks = client.ask("HEALTH", cmd="GET_HEALTH")["checks"]
    return [entry for entry in checks if entry["name"].startswith("nfc") and not entry["ok"]]


# Model; name in libnfc; vendor and product; types of cards; value of [nfc] devices; limit of wake-ups per second.
for model, name, identity, types, devices, goal in (
        ("pn533", "SCM Micro / SCL3711-NFC&RW", "04e6:5591", "ab", "", 4),
        ("pn531", "NXP / PN531", "04cc:0531", "a", "", 0),
        ("acr122u", "ACS / ACR122U PICC Interface", "072f:2200", "ab", "acr122_usb", 4)):
    badged, board = Badged(devices), Board(model)
    client = Client(badged.path)
    check(f"{model}: the board is plugged in", (answer := board.ask("plug")) == "done", answer)
    check("udev lets systemd start badged", wait_until(lambda: starts_badged(identity)), properties(identity))
    if devices:
        # A CCID device is left to pcscd; an administrator can give it to badged with a rule.
        owner = os.stat(properties(identity)["DEVNAME"]).st_gid
        check("udev leaves the device to pcscd", owner != grp.getgrnam("badged-devices").gr_gid, owner)
        vendor, product = identity.split(":")
        rule = f'SUBSYSTEM=="usb", ATTR{{idVendor}}=="{vendor}", ATTR{{idProduct}}=="{product}", GROUP="badged-devices", MODE="0660"\n'
        with open("/run/udev/rules.d/95-mine.rules", "w", encoding="utf-8") as file:
            file.write(rule)
        run("udevadm", "control", "--reload")
        board.ask("unplug")
        board.ask("plug")
    found = reader(client, lambda m: m["name"] == name and m["attached"])
    check("udev gives the device to group badged-devices, and badged finds it", found is not None, badged.log())
    node = properties(identity)["DEVNAME"]
    check("the device belongs to group badged-devices", os.stat(node).st_gid == grp.getgrnam("badged-devices").gr_gid, os.stat(node))
    check("a client, which is in group badged, cannot open the device", not may_open(node, "badged"), os.stat(node))
    check("a member of group badged-devices can", may_open(node, "badged-devices"), os.stat(node))
    check("badged-nfc is confined", [status_field(pid, "Seccomp") for pid in badged.programs()] == ["2"])
    check("GET_HEALTH says that this kernel has no Landlock", "Landlock is missing" in confinement(client), confinement(client))
    check("GET_HEALTH has no fault", wait_until(lambda: not faults(client)), faults(client))
    client.ask("INFO", cmd="GET_INFO")
    # While a client watches readers, badged asks badged-nfc every five seconds whether it lives.
    client.close()
    # The first seconds may contain late events of udev.
    rate = min(badged.wake_ups(10) for _ in range(3))
    figure(f"wake-ups of badged and badged-nfc with a {model} on USB and no card, per second", f"{rate:.1f}", f"at most {goal}")
    check(f"without a card and a client, badged wakes up at most {goal} times a second", rate <= goal, rate)
    client = Client(badged.path)

    # A board that fails again and again soon after it was opened comes back by itself, without a
    # request for the health.
    waiting = Client(badged.path)
    waiting.send(cmd="RUN_CHANGE_PIN")
    waiting.wait_for("INSERT_CARD")
    for _ in range(3):
        board.ask("disturb")
        gone = reader(client, lambda m: m["name"] == name and not m["attached"])
        found = reader(client, lambda m: m["name"] == name and m["attached"])
        check("after an error on the line the board comes back by itself", gone and found, badged.log())
    told = waiting.wait_for("INSERT_CARD")
    check("a workflow that waits is told", told is not None and "tried again" in told.get("error", ""), told)
    waiting.ask("CHANGE_PIN", cmd="CANCEL")
    waiting.close()

    pin, other = PIN, OTHER
    for kind in types:
        board.ask(f"insert {kind}")
        found = reader(client, lambda m: m["name"] == name and m.get("card"))
        check(f"a card of type {kind.upper()} is found", found is not None)
        check("the PIN is changed", change(client, pin, other) is True, badged.log())
        check("the card has the new PIN", board.ask(f"pin {other}") == "yes" and board.ask("tries") == "3")
        pin, other = other, pin
        board.ask("remove")
        found = reader(client, lambda m: m["name"] == name and not m.get("card"))
        check("the removal of the card is noticed", found is not None)

    board.ask(f"keycard {types[-1]}")
    found = reader(client, lambda m: m["name"] == name and m.get("card"))
    wallet = (found or {}).get("card") or {}
    check("a Keycard is told with its state", (wallet.get("kind"), wallet.get("version"), wallet.get("initialised")) ==
          ("keycard", "3.1", True), found)
    board.ask("remove")
    reader(client, lambda m: m["name"] == name and not m.get("card"))

    board.ask("insert a")
    reader(client, lambda m: m["name"] == name and m.get("card"))
    end = change(client, pin, other, before_answer=lambda: board.ask("unplug after 3"))
    check("the board is unplugged during a PIN change: a card is requested", end == "INSERT_CARD", end)
    left = board.ask("tries"), board.ask(f"pin {pin}")
    check("the retry counter and the PIN are unchanged", left == ("3", "yes"), left)
    client.ask("CHANGE_PIN", cmd="CANCEL")
    if not devices:
        check("GET_HEALTH has no fault", wait_until(lambda: not faults(client)), faults(client))
    board.ask("plug")
    found = reader(client, lambda m: m["name"] == name and m.get("card"))
    check("the board is plugged in again: the card is found", found is not None)
    check("the PIN is changed", change(client, pin, other) is True, badged.log())
    code, seconds = badged.end()
    check("badged ends with exit code 0 within a second", code == 0 and seconds < 1, (code, seconds))
    client.close()
    board.end()
    run("udevadm", "settle")
finish()
