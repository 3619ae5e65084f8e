# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual Bluetooth LE controller on /dev/vhci. It reports advertisements to the kernel and supports no connections;
linked.py has controllers that do.

The program reads one JSON command per line and answers each with one line; `guest.Controller` uses it. Commands and events are
those of the Bluetooth Core Specification, Vol 4, Part E. A packet of /dev/vhci begins with its type: 1 is a command, 4 an event,
0xFF a message of the driver. FF 00 creates a controller; the answer is FF 00 and the number of the controller.
"""
import argparse
import errno
import heapq
import json
import os
import random
import select
import struct
import sys
import time

COMMAND, EVENT, DRIVER = 1, 4, 0xFF


def structure(kind, value):
    """An AD structure."""
    return bytes([len(value) + 1, kind]) + value


def strength(spec, seconds):
    """The signal strength in dBm. `spec` is a number, [mean, deviation], or {"curve": [[second, dBm], ...]}, which repeats."""
    if isinstance(spec, dict):
        points = spec["curve"]
        at = seconds % points[-1][0]
        for (t0, v0), (t1, v1) in zip(points, points[1:]):
            if at <= t1:
                spec = v0 + (v1 - v0) * (at - t0) / max(t1 - t0, 1e-9)
                break
    elif isinstance(spec, list):
        spec = random.gauss(*spec)
    return round(max(-127, min(20, spec)))


class Sender:
    """A device that advertises."""

    def __init__(self, entry):
        self.address = bytes.fromhex(entry["address"].replace(":", ""))[::-1]
        self.is_random = entry.get("random", True)
        self.data = bytes.fromhex(entry["data"])
        self.response = bytes.fromhex(entry.get("response", ""))
        self.rssi = entry.get("rssi", -60)
        self.every = entry.get("every", 100) / 1000
        # Seconds after which the address changes; 0: never. The last byte counts the addresses.
        self.rotate = entry.get("rotate", 0)
        # The lengths of all fragments of an extended advertisement but the last one; None: the advertisement is a legacy one.
        self.fragments = entry.get("fragments")
        # Advertisements that were reported to the kernel, under any address.
        self.sent = 0

    def turn(self, seconds):
        """Changes the address when its time is over."""
        if self.rotate:
            self.address = bytes([int(seconds / self.rotate) & 0xFF]) + self.address[1:]

    def state(self):
        return {"address": ":".join("%02X" % byte for byte in self.address[::-1]), "sent": self.sent}


class Controller:
    # LE without BR/EDR. The supported commands, by octet and bit.
    FEATURES = bytes([0, 0, 0, 0, 0x60, 0, 0, 0])
    COMMANDS = {0: [5], 2: [7], 5: [6, 7], 14: [3, 5, 7], 15: [1], 25: [0, 1, 2, 4, 5, 6, 7], 26: list(range(8)),
                27: [0, 1, 2, 3, 6, 7], 28: [3]}
    EXTENDED = {36: [1, 2, 3, 4, 5, 6], 37: [5, 6, 7]}

    def __init__(self, extended, filters, address):
        self.extended, self.filters = extended, filters
        self.address = bytes.fromhex(address.replace(":", ""))[::-1]
        self.scans = self.is_active = self.drops_repeated = False
        # What was reported since the scan began, for a controller that drops repeated advertisements.
        self.reported = set()
        # None, or what ends the silence of the controller: "restart" of the scan, "reset", or "never".
        self.silent = None
        # Seconds until the controller completes a reset or the end of a scan, and the completions that are due later.
        self.slow = 0
        self.delayed = []
        self.count = {"sent": 0, "dropped": 0, "scanStarts": 0, "resets": 0}
        self.file = os.open("/dev/vhci", os.O_RDWR)
        os.write(self.file, bytes([DRIVER, 0]))
        while (packet := os.read(self.file, 2048))[0] == COMMAND:
            self.command(packet)
        self.index = struct.unpack_from("<H", packet, 2)[0]

    def event(self, code, body):
        try:
            os.write(self.file, bytes([EVENT, code, len(body)]) + body)
        except OSError as error:
            # The kernel has closed the controller.
            if error.errno != errno.ENXIO:
                raise

    def complete(self, opcode, result=b"\0"):
        self.event(0x0E, struct.pack("<BH", 1, opcode) + result)

    def command(self, packet):
        opcode, length = struct.unpack_from("<HB", packet, 1)
        parameters = packet[4:4 + length]
        results = {
            0x1001: struct.pack("<BBHBHH", 0, 9, 1, 9, 0xFFFF, 1),  # version 5.0
            0x1002: b"\0" + self.supported(),
            0x1003: b"\0" + self.FEATURES,
            0x1005: struct.pack("<BHBHH", 0, 192, 1, 1, 0),
            0x1009: b"\0" + self.address,
            0x0C14: b"\0" + bytes(248),
            0x2002: struct.pack("<BHB", 0, 27, 4),
            0x2003: b"\0" + struct.pack("<Q", 1 | (1 << 12 if self.extended else 0)),
            0x2007: b"\0\0",
            0x200F: b"\0\x10",
            0x2018: b"\0" + os.urandom(8),
            0x201C: b"\0" + struct.pack("<Q", 0x3FF_FFFF_FFFF),
            0x202A: b"\0\0",
            0x2036: b"\0\0",
            0x203A: struct.pack("<BH", 0, 251),
            0x203B: b"\0\4",
        }
        if opcode == 0x0C03:  # Reset
            self.scans = False
            self.count["resets"] += 1
            if self.silent == "reset":
                self.silent = None
        elif opcode == 0x200B:  # LE Set Scan Parameters
            self.is_active = parameters[0] == 1
        elif opcode == 0x2041:  # LE Set Extended Scan Parameters
            self.is_active = parameters[3] == 1
        elif opcode in (0x200C, 0x2042):  # LE Set (Extended) Scan Enable
            self.scan(parameters[0] == 1, parameters[1] != 0)
        if self.slow and (opcode == 0x0C03 or opcode in (0x200C, 0x2042) and not self.scans):
            self.delayed.append((time.monotonic() + self.slow, opcode))
        elif opcode in results:
            self.complete(opcode, results[opcode])
        elif opcode >> 10 in (3, 8) or opcode == 0x0C01:  # what sets something
            self.complete(opcode)
        else:
            self.complete(opcode, b"\1")  # unknown command

    def complete_delayed(self, now):
        """Sends the completions that are due."""
        while self.delayed and self.delayed[0][0] <= now:
            self.complete(self.delayed.pop(0)[1])

    def supported(self):
        bits = bytearray(64)
        for octet, numbers in {**self.COMMANDS, **(self.EXTENDED if self.extended else {})}.items():
            for number in numbers:
                bits[octet] |= 1 << number
        return bytes(bits)

    def scan(self, on, drops_repeated):
        if on and not self.scans:
            self.count["scanStarts"] += 1
            if self.silent == "restart":
                self.silent = None
        self.scans, self.drops_repeated = on, drops_repeated
        self.reported.clear()

    def report(self, sender, rssi, is_response=False):
        """Sends a report; returns false when the controller does not scan or drops the report."""
        if not self.scans or self.silent:
            self.count["dropped"] += 1
            return False
        if self.filters and self.drops_repeated:
            key = (sender.address, is_response)
            if key in self.reported:
                self.count["dropped"] += 1
                return False
            self.reported.add(key)
        data = sender.response if is_response else sender.data
        kind = 1 if sender.is_random else 0
        if sender.fragments is not None:
            self.report_fragments(sender, rssi, kind)
            self.count["sent"] += 1
            return True
        if self.extended:
            # Event types of a legacy advertisement, connectable and scannable, and of its scan response.
            body = struct.pack("<BBHB6sBBBbbHB6sB", 0x0D, 1, 0x1B if is_response else 0x13, kind, sender.address, 1, 0, 0xFF, 127,
                               rssi, 0, 0, bytes(6), len(data)) + data
        else:
            body = struct.pack("<BBBB6sB", 2, 1, 4 if is_response else 0, kind, sender.address, len(data)) + data
            body += struct.pack("b", rssi)
        self.event(0x3E, body)
        self.count["sent"] += 1
        return True

    def report_fragments(self, sender, rssi, kind):
        """Sends an extended advertisement, connectable, as one report for each fragment."""
        ends = [sum(sender.fragments[:n + 1]) for n in range(len(sender.fragments))] + [len(sender.data)]
        for start, end in zip([0] + ends, ends):
            data = sender.data[start:end]
            more = 0x20 if end < len(sender.data) else 0
            self.event(0x3E, struct.pack("<BBHB6sBBBbbHB6sB", 0x0D, 1, 0x01 | more, kind, sender.address, 1, 1, 0, 127, rssi, 0, 0,
                                         bytes(6), len(data)) + data)

    def advertise(self, sender, rssi):
        sent = self.report(sender, rssi)
        sender.sent += sent
        if self.is_active and sender.response:
            self.report(sender, rssi, True)
        return sent


class Flood:
    """`rate` reports a second from random addresses, `burst` at once. There are `addresses` different addresses; with 0, each
    address is new."""
    # The data of a phone: flags and manufacturer data.
    PHONE = structure(1, b"\x1A") + structure(0xFF, b"\x4C\x00\x10\x05\x0B\x1C\x2A\x3F\x4D")

    def __init__(self, rate, addresses, burst, data):
        self.rate, self.addresses, self.burst = rate, addresses, burst
        self.sender = Sender({"address": "40:00:00:00:00:00", "data": data or self.PHONE.hex()})
        self.due, self.number = time.monotonic(), 0

    def play(self, controller, now):
        """Sends the reports that are due; yields after 64 of them."""
        self.due = max(self.due, now - 1)  # makes up for one second at most
        while self.due <= now:
            self.due += self.burst / self.rate
            for _ in range(self.burst):
                self.number += 1
                number = self.number % self.addresses if self.addresses else self.number
                # The factor spreads the addresses; the highest byte makes them resolvable.
                scattered = number * 0x9E3779B1 & 0xFFFFFFFFFF
                self.sender.address = scattered.to_bytes(5, "little") + b"\x5B"
                controller.advertise(self.sender, -50 - self.number % 45)
            if self.number % 64 == 0:
                yield


class Program:
    def __init__(self, controller):
        self.controller = controller
        self.start = time.monotonic()
        self.due, self.flood, self.senders = [], None, []
        self.input = b""

    def execute(self, line):
        command = json.loads(line)
        answer = {}
        if "advertise" in command:
            now = time.monotonic()
            self.start = now
            senders = [Sender(entry) for entry in command["advertise"]]
            self.senders = senders
            self.due = [(now + sender.every * random.random(), n, sender) for n, sender in enumerate(senders)]
            heapq.heapify(self.due)
        if "flood" in command:
            self.flood = None
            if command["flood"]:
                self.flood = Flood(command["flood"], command.get("addresses", 0), command.get("burst", 1), command.get("data"))
        if "slow" in command:
            self.controller.slow = command["slow"]
        if "silent" in command:
            self.controller.silent = command["silent"]
        if "once" in command:
            sender = Sender(command["once"])
            answer["at"] = time.monotonic()
            answer["reported"] = self.controller.advertise(sender, strength(sender.rssi, 0))
        controller = self.controller
        answer.update(controller.count, scans=controller.scans, active=controller.is_active, filter=controller.drops_repeated,
                      silent=controller.silent, isBusy=bool(controller.delayed), senders=[s.state() for s in self.senders])
        print(json.dumps(answer), flush=True)

    def run(self):
        print(json.dumps({"index": self.controller.index}), flush=True)
        descriptors = [self.controller.file, 0]
        while True:
            now = time.monotonic()
            self.controller.complete_delayed(now)
            while self.due and self.due[0][0] <= now:
                _, number, sender = self.due[0]
                sender.turn(now - self.start)
                self.controller.advertise(sender, strength(sender.rssi, now - self.start))
                # The advDelay of the specification: up to 10 ms, so that senders do not stay synchronous.
                heapq.heapreplace(self.due, (now + sender.every + random.random() / 100, number, sender))
            if self.flood:
                for _ in self.flood.play(self.controller, now):
                    self.serve(descriptors, 0)
            times = [entry[0] for entry in self.due[:1] + self.controller.delayed[:1]]
            if self.flood:
                times.append(self.flood.due)
            self.serve(descriptors, max(0, min(times) - time.monotonic()) if times else None)

    def serve(self, descriptors, timeout):
        """Handles commands of the kernel and of the scenario until none arrives within the timeout."""
        while True:
            ready = select.select(descriptors, [], [], timeout)[0]
            if self.controller.file in ready:
                packet = os.read(self.controller.file, 2048)
                if packet[0] == COMMAND:
                    self.controller.command(packet)
            if 0 in ready:
                chunk = os.read(0, 65536)
                if not chunk:  # the scenario unplugs the controller
                    sys.exit(0)
                *lines, self.input = (self.input + chunk).split(b"\n")
                for line in lines:
                    self.execute(line)
            if not ready:
                return
            timeout = 0


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--extended", action="store_true")
    options.add_argument("--filters", action="store_true")
    options.add_argument("--address", default="00:AA:EE:00:00:01")
    chosen = options.parse_args()
    Program(Controller(chosen.extended, chosen.filters, chosen.address)).run()
