# SPDX-License-Identifier: GPL-3.0-or-later
"""Phones for the scenarios: the program is phone_peer.py."""
import glob
import json
import os
import subprocess
import time

import harness
from guest import HERE, LIMIT, ROOT, WORK, Badged, ScanClient

MAIN = "/etc/bluetooth/main.conf"
KEPT = "/var/lib/bluetooth"
# The advice of docs/mobile-documents.md.
SETTINGS = "[LE]\nMinAdvertisementInterval = 32\nMaxAdvertisementInterval = 48\n[GATT]\nExchangeMTU = 513\nCache = yes\n"


def set_bluetoothd():
    """Writes the settings of bluetoothd as badged advises."""
    os.makedirs(os.path.dirname(MAIN), exist_ok=True)
    with open(MAIN, "w", encoding="utf-8") as file:
        file.write(SETTINGS)


def kept():
    """What bluetoothd keeps of other devices: a folder, and a file of its cache."""
    return glob.glob(f"{KEPT}/*/*:*") + glob.glob(f"{KEPT}/*/cache/*")


class Phone:
    """A phone and the controller of the kernel, plugged in until `unplug`."""

    def __init__(self):
        log = open("/mnt/result/phone.log", "ab")
        self.process = subprocess.Popen([f"{ROOT}/.build-tools/bin/python3", f"{HERE}/phone_peer.py"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=log, text=True)
        harness.children.append(self.process)

    def set(self, **command):
        """Sends a command; returns the answer."""
        self.process.stdin.write(json.dumps(command) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def show(self, mode, **more):
        """Shows a new QR code; returns its text."""
        shown = self.set(show=mode, **more)
        os.makedirs(f"{WORK}/mdoc", exist_ok=True)
        with open(f"{WORK}/mdoc/authority.cer", "wb") as file:
            file.write(bytes.fromhex(shown["authority"]))
        return shown["code"]

    def story(self):
        return self.set()["story"]

    def is_gone(self):
        """Waits until nothing is advertised, nobody is connected, and bluetoothd has forgotten the phone."""
        return harness.until(lambda: not ((state := self.set())["advertises"] or state["links"] or kept()))

    def unplug(self):
        self.process.stdin.close()
        self.process.wait(LIMIT)


class Counter(ScanClient):
    """A client that reads phones."""

    def read(self, code, **more):
        """Reads the phone that shows this code; returns MDOC and the seconds that it took."""
        begin = time.monotonic()
        self.send(cmd="RUN_READ_MDOC", engagement=code, **more)
        return self.result(), time.monotonic() - begin

    def result(self):
        """The last message of a reading."""
        return self.until(lambda message: message["msg"] == "MDOC" and "success" in message)


def start_badged(backend):
    return Badged(backend, sections=f"[mdoc]\nanchors = {WORK}/mdoc\n")
