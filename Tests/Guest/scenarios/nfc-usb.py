# SPDX-License-Identifier: GPL-3.0-or-later
# NFC boards on USB: real udev with the installed rule, real libusb and libnfc, and badged as the user that the rule gives them to.
# short
import grp
import os
import subprocess
import time

import harness
from guest import BIN, LIMIT, WORK, Client, Daemon, check, figure, finish, run, start_udev

# udevadm does nothing where it sees another root than the first process.
os.environ["SYSTEMD_IGNORE_CHROOT"] = "1"
ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
# What `make install` and the system's start do.
run("systemd-sysusers", f"{ROOT}/systemd/badged-sysusers.conf")
os.makedirs("/run/udev/rules.d", exist_ok=True)
with open(f"{ROOT}/udev/94-badged.rules", encoding="utf-8") as rule, open("/run/udev/rules.d/94-badged.rules", "w", encoding="utf-8") as copy:
    copy.write(rule.read())
start_udev()
PIN, OTHER = "123456", "654321"


class Board:
    """badged-nfc-board: one line for each command."""

    def __init__(self, model):
        self.process = subprocess.Popen([f"{BIN}/badged-nfc-board", model], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        harness.children.append(self.process)

    def tell(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def end(self):
        self.process.stdin.close()
        self.process.wait(LIMIT)


class Badged(Daemon):
    def __init__(self, devices):
        config = os.path.join(WORK, "nfc.conf")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"[nfc]\ndevices = {devices}\n")
        self.path = os.path.join(WORK, "nfc.sock")
        super().__init__("setpriv", ["--reuid=badged", "--regid=badged", "--init-groups", "--bounding-set=-all", "--inh-caps=-all",
                                     f"{BIN}/badged", "--no-pcsc", "--no-ble", "--config", config, "--socket", self.path], WORK)

    def wake_ups(self, seconds):
        """A second. Waiting is what is measured."""
        def count():
            total = 0
            for task in os.listdir(f"/proc/{self.pid}/task"):
                with open(f"/proc/{self.pid}/task/{task}/status", encoding="utf-8") as status:
                    total += next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))
            return total
        before, start = count(), time.monotonic()
        time.sleep(seconds)
        return (count() - before) / (time.monotonic() - start)


def properties(identity):
    """What udev knows of the device, when it has made it ready."""
    vendor, product = identity.split(":")
    end, found = time.monotonic() + LIMIT, []
    while not any(line.startswith("SYSTEMD_WANTS") for line in found) and time.monotonic() < end:
        run("udevadm", "settle")
        path = run("udevadm", "trigger", "--dry-run", "--verbose", "--subsystem-match=usb", f"--attr-match=idVendor={vendor}",
                   f"--attr-match=idProduct={product}").stdout.strip()
        found = run("udevadm", "info", "--query=property", "--path", path).stdout.split("\n")
    return found


def wants(found):
    return [word for line in found if line.startswith("SYSTEMD_WANTS=") for word in line[len("SYSTEMD_WANTS="):].split()]


def reader(client, condition):
    """The next READER for which it is true."""
    while True:
        message = client.wait_for("READER")
        if message is None or condition(message):
            return message


def change(client, old, new, before_answer=lambda: None):
    """RUN_CHANGE_PIN to its end, or to the next question for a card; `before_answer` is called at the first question."""
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


def health(client):
    checks = client.ask("HEALTH", cmd="GET_HEALTH")["checks"]
    return {entry["name"]: entry for entry in checks if entry["name"].startswith("nfc")}


def until_well(client):
    """GET_HEALTH has it looked at again, so the news of the end comes some messages later."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        found = health(client)
        if all(entry["ok"] for entry in found.values()):
            return True
    return False


# Model; libnfc's name; vendor and product; cards; in [nfc] devices; most wake-ups a second.
for model, name, identity, types, devices, goal in (
        ("pn533", "SCM Micro / SCL3711-NFC&RW", "04e6:5591", "ab", "", 4),
        ("pn531", "NXP / PN531", "04cc:0531", "a", "", 0),
        ("acr122u", "ACS / ACR122U PICC Interface", "072f:2200", "ab", "acr122_usb", 4)):
    badged, board = Badged(devices), Board(model)
    client = Client(badged.path)
    check(f"{model}: plugged in", (said := board.tell("plug")) == "done", said)
    if devices:
        # A CCID device stays root's, so that pcscd alone has it; an administrator who wants otherwise gives it away.
        found = properties(identity)
        check("udev has systemd start badged", "badged.service" in wants(found), found)
        owner = os.stat([line for line in found if line.startswith("DEVNAME=")][0][8:]).st_gid
        check("and leaves it to pcscd", owner != grp.getgrnam("badged").gr_gid, owner)
        vendor, product = identity.split(":")
        rule = f'SUBSYSTEM=="usb", ATTR{{idVendor}}=="{vendor}", ATTR{{idProduct}}=="{product}", GROUP="badged", MODE="0660"\n'
        with open("/run/udev/rules.d/95-mine.rules", "w", encoding="utf-8") as file:
            file.write(rule)
        run("udevadm", "control", "--reload")
        board.tell("unplug")
        board.tell("plug")
    found = reader(client, lambda m: m["name"] == name and m["attached"])
    check("udev gives it to group badged, and badged notices by itself", found is not None, badged.log())
    check("health is good", until_well(client), health(client))
    if not devices:
        found = properties(identity)
        check("udev has systemd start badged", "badged.service" in wants(found), found)
    client.ask("INFO", cmd="GET_INFO")
    # What udev still had to tell may be in the first ten seconds; what wakes up by itself is in each of them.
    for _ in range(3):
        if (rate := badged.wake_ups(10)) <= goal:
            break
    figure(f"wake-ups of badged with a {model} on USB and no card, per second", f"{rate:.1f}", f"at most {goal}")
    check(f"wakes up at most {goal} times a second without a card", rate <= goal, rate)

    pin, other = PIN, OTHER
    for kind in types:
        board.tell(f"insert {kind}")
        check(f"a card of type {kind.upper()} is noticed", reader(client, lambda m: m["name"] == name and m.get("card")) is not None)
        check("its PIN is changed", change(client, pin, other) is True, badged.log())
        check("on the card, too", board.tell(f"pin {other}") == "yes" and board.tell("tries") == "3")
        pin, other = other, pin
        board.tell("remove")
        check("it is missed when it is gone", reader(client, lambda m: m["name"] == name and not m.get("card")) is not None)

    board.tell("insert a")
    reader(client, lambda m: m["name"] == name and m.get("card"))
    end = change(client, pin, other, before_answer=lambda: board.tell("unplug after 3"))
    check("pulled out in the middle of a dialogue: a card is asked for", end == "INSERT_CARD", end)
    left = board.tell("tries"), board.tell(f"pin {pin}")
    check("no try is lost", left == ("3", "yes"), left)
    client.ask("CHANGE_PIN", cmd="CANCEL")
    if not devices:
        check("nothing is wrong then", until_well(client), health(client))
    board.tell("plug")
    check("it is back when it is plugged in again", reader(client, lambda m: m["name"] == name and m.get("card")) is not None)
    check("and the PIN can be changed", change(client, pin, other) is True, badged.log())
    code, seconds = badged.end()
    check("badged ends in a second", code == 0 and seconds < 1, (code, seconds))
    client.close()
    board.end()
    run("udevadm", "settle")
finish()
