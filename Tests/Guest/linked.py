# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual Bluetooth LE controllers on /dev/vhci that receive and connect to one another; `doors.Radio` uses the program.

Controller 0 receives the advertisements of all others; the others receive only a phone, so that their scans are not silent. The phone
answers scan requests: in a discovery the kernel reports a single sender only together with its scan response. Packets of a connection
arrive at once, or with --paced at the next connection event. A controller whose signal is weaker than REACH is not received, and a
connection to it ends after its supervision timeout. Events and commands are those of the Bluetooth Core Specification, Vol 4, Part E.
The program reads one JSON command per line and answers each with one line.
"""
import argparse
import json
import os
import select
import struct
import sys
import time

from controller import COMMAND, Controller, Flood, Sender, strength, structure

ACL = 2
REACH = -94  # dBm
PHONE_EVERY = 0.5  # seconds
# Encryption, the exchange of features from both sides, and longer packets.
FEATURES = 1 | 1 << 3 | 1 << 5
EXTENDED_FEATURES = 1 << 12
# Reasons of Vol 1, Part F.
UNKNOWN_CONNECTION, SUPERVISION_TIMEOUT, LOCAL_HOST = 0x02, 0x08, 0x16


class LinkedController(Controller):
    """A controller of `air`. It advertises in legacy form only."""

    def __init__(self, air, number, extended):
        self.air, self.number = air, number
        self.random_address = bytes(6)
        # Of the advertisements: interval in seconds, own type of address, data, scan response.
        self.interval, self.own_type, self.data, self.response = 1.28, 0, b"", b""
        self.sender, self.advert_due = None, 0.0
        # While the host waits for a connection: the type and the address of the other device, and the parameters of the connection.
        self.target = None
        self.rssi, self.rssi_since = -60, time.monotonic()
        super().__init__(extended, False, "00:AA:EE:00:00:%02X" % (number + 1))

    def own_features(self):
        return struct.pack("<Q", FEATURES | (EXTENDED_FEATURES if self.extended else 0))

    def command(self, packet):
        opcode, length = struct.unpack_from("<HB", packet, 1)
        parameters = packet[4:4 + length]
        handler = self.HANDLERS.get(opcode)
        if handler is None:
            super().command(packet)
        else:
            handler(self, opcode, parameters)

    def status(self, opcode, code=0):
        self.event(0x0F, struct.pack("<BBH", code, 1, opcode))

    def meta(self, code, form, *values):
        self.event(0x3E, bytes([code]) + struct.pack("<" + form, *values))

    def reset(self, opcode, parameters):
        for link in self.air.links_of(self):
            self.air.end(link, LOCAL_HOST, tells=[end for end in link.ends if end is not self])
        self.sender = self.target = None
        super().command(struct.pack("<BHB", COMMAND, opcode, 0))

    def read_buffer_size(self, opcode, parameters):
        self.complete(opcode, struct.pack("<BHB", 0, 251, 8))

    def read_features(self, opcode, parameters):
        self.complete(opcode, b"\0" + self.own_features())

    def read_data_length(self, opcode, parameters):
        self.complete(opcode, struct.pack("<BHHHH", 0, 251, 2120, 251, 2120))

    def read_default_data_length(self, opcode, parameters):
        self.complete(opcode, struct.pack("<BHH", 0, 251, 2120))

    def set_data_length(self, opcode, parameters):
        self.complete(opcode, b"\0" + parameters[:2])

    def set_random_address(self, opcode, parameters):
        self.random_address = parameters[:6]
        self.complete(opcode)

    # Advertising

    def set_advertising(self, opcode, parameters):
        low, high, _, self.own_type = struct.unpack_from("<HHBB", parameters)
        self.interval = (low + high) / 2 * 0.000625
        self.complete(opcode)

    def set_advertising_data(self, opcode, parameters):
        data = parameters[1:1 + parameters[0]]
        if opcode == 0x2008:
            self.data = data
        else:
            self.response = data
        if self.sender:
            self.advertise_now()
        self.complete(opcode)

    def enable_advertising(self, opcode, parameters):
        if parameters[0]:
            self.advertise_now()
        else:
            self.sender = None
        self.complete(opcode)

    def advertise_now(self):
        is_random = bool(self.own_type & 1)
        address = self.random_address if is_random else self.address
        self.sender = Sender({"address": address[::-1].hex(), "random": is_random, "data": self.data.hex(),
                              "response": self.response.hex()})
        self.advert_due = time.monotonic()

    def strength(self, now):
        return strength(self.rssi, now - self.rssi_since)

    # Connections

    def create_connection(self, opcode, parameters):
        if opcode == 0x200D:
            kind, target = struct.unpack_from("<B6s", parameters, 5)
            settings = struct.unpack_from("<HHHH", parameters, 13)
        else:  # LE Extended Create Connection; the parameters of the first PHY count
            kind, target = struct.unpack_from("<B6s", parameters, 2)
            settings = struct.unpack_from("<HHHH", parameters, 14)
        self.status(opcode)
        self.air.note(self, "initiates")
        self.target = (kind & 1, target, settings)

    def cancel_connection(self, opcode, parameters):
        self.complete(opcode, b"\0" if self.target else b"\x0C")
        if self.target:
            kind, target, _ = self.target
            self.target = None
            self.connected(UNKNOWN_CONNECTION, 0, 0, kind, target, (0, 0, 0))

    def connected(self, status, handle, role, kind, address, settings):
        """Sends LE Connection Complete, or the enhanced event, which controllers with extended advertising send."""
        if self.extended:
            self.meta(0x0A, "BHBB6s6s6sHHHB", status, handle, role, kind, address, bytes(6), bytes(6), *settings, 0)
        else:
            self.meta(0x01, "BHBB6sHHHB", status, handle, role, kind, address, *settings, 0)

    def with_link(self, opcode, parameters, use):
        """Answers with Command Status, and uses the connection."""
        link = self.air.link(self, struct.unpack_from("<H", parameters)[0] & 0xFFF)
        self.status(opcode, 0 if link else UNKNOWN_CONNECTION)
        if link:
            use(link)

    def disconnect(self, opcode, parameters):
        self.with_link(opcode, parameters, lambda link: self.air.end(link, parameters[2], by=self))

    def read_remote_version(self, opcode, parameters):
        self.with_link(opcode, parameters, lambda link: self.event(0x0C, struct.pack("<BHBHH", 0, link.handle, 9, 0xFFFF, 1)))

    def read_remote_features(self, opcode, parameters):
        self.with_link(opcode, parameters, lambda link: self.meta(0x04, "BH8s", 0, link.handle, link.other(self).own_features()))

    def update_connection(self, opcode, parameters):
        def update(link):
            _, _, link.interval, link.latency, link.timeout = struct.unpack_from("<HHHHH", parameters)
            for end in link.ends:
                end.meta(0x03, "BHHHH", 0, link.handle, link.interval, link.latency, link.timeout)
            self.air.count["updates"] += 1
        self.with_link(opcode, parameters, update)

    HANDLERS = {
        0x0406: disconnect, 0x041D: read_remote_version, 0x0C03: reset, 0x2002: read_buffer_size, 0x2003: read_features,
        0x2005: set_random_address, 0x2006: set_advertising, 0x2008: set_advertising_data, 0x2009: set_advertising_data,
        0x200A: enable_advertising, 0x200D: create_connection, 0x200E: cancel_connection, 0x2013: update_connection,
        0x2016: read_remote_features, 0x2022: set_data_length, 0x2023: read_default_data_length,
        0x202F: read_data_length, 0x2043: create_connection,
    }


class Link:
    """A connection of two controllers; `ends` begins with the central. The handle is the same at both ends."""

    def __init__(self, handle, central, peripheral, settings, now):
        self.handle, self.ends = handle, (central, peripheral)
        _, self.interval, self.latency, self.timeout = settings
        # Packets on their way: the receiver, and the bytes.
        self.queue = []
        self.due, self.heard = now, now

    def other(self, end):
        return self.ends[self.ends[0] is end]


class Air:
    """What the controllers share."""

    def __init__(self, number, extended, paced):
        self.paced = paced
        self.links, self.last_handle = [], 0x3F
        self.count = {"connections": 0, "packets": 0, "updates": 0, "timeouts": 0}
        # Time in seconds, number of the controller, and what has happened; None: nothing is noted.
        self.trace = None
        self.phone = Sender({"address": "5B:00:00:00:00:01", "data": Flood.PHONE.hex(), "response": structure(0x0A, b"\4").hex()})
        self.phone_due = time.monotonic()
        self.input = b""
        self.controllers = []
        for index in range(number):
            self.controllers.append(LinkedController(self, index, extended and index == 0))

    def note(self, controller, what):
        if self.trace is not None:
            self.trace.append((time.monotonic(), controller.number, what))

    def links_of(self, controller):
        return [link for link in self.links if controller in link.ends]

    def link(self, controller, handle):
        return next((link for link in self.links_of(controller) if link.handle == handle), None)

    # Advertisements

    def advertise(self, controller, now):
        sender, rssi = controller.sender, controller.strength(now)
        controller.advert_due = now + controller.interval
        hearer = self.controllers[0]
        if rssi < REACH or controller is hearer:
            return
        if hearer.target and hearer.target[:2] == (sender.is_random, sender.address):
            self.connect(hearer, controller, now)
        else:
            hearer.advertise(sender, rssi)

    def connect(self, central, peripheral, now):
        kind, address, settings = central.target
        central.target = peripheral.sender = None
        self.last_handle += 1
        link = Link(self.last_handle, central, peripheral, settings, now)
        self.links.append(link)
        self.count["connections"] += 1
        self.note(central, "connected")
        central.connected(0, link.handle, 0, kind, address, settings[1:])
        peripheral.connected(0, link.handle, 1, 0, central.address, settings[1:])
        for end in link.ends:  # the controllers agree on long packets by themselves
            end.meta(0x07, "HHHHH", link.handle, 251, 2120, 251, 2120)

    # Connections

    def send(self, controller, packet):
        """Takes an ACL packet of a host."""
        word, = struct.unpack_from("<H", packet, 1)
        link = self.link(controller, word & 0xFFF)
        if not link:
            return
        self.note(controller, "out " + packet[9:10].hex())
        # 0 begins a message of a host, 2 a message for a host. 1 continues one.
        flags = 2 if word >> 12 & 3 == 0 else 1
        link.queue.append((link.other(controller), struct.pack("<BH", ACL, link.handle | flags << 12) + packet[3:]))
        if not self.paced:
            self.play(link, time.monotonic())

    def play(self, link, now):
        """A connection event: delivers what waits, unless the peripheral is out of reach."""
        link.due = now + link.interval * 0.00125
        if link.ends[1].strength(now) < REACH:
            if now - link.heard > link.timeout * 0.01:
                self.count["timeouts"] += 1
                self.end(link, SUPERVISION_TIMEOUT)
            return
        link.heard = now
        while link.queue:
            receiver, packet = link.queue.pop(0)
            self.count["packets"] += 1
            self.note(receiver, "in " + packet[9:10].hex())
            link.other(receiver).event(0x13, struct.pack("<BHH", 1, link.handle, 1))
            os.write(receiver.file, packet)

    def end(self, link, reason, by=None, tells=None):
        """Ends a connection; the host that has asked for it gets another reason than the other host."""
        if by:
            self.play(link, time.monotonic())
        if link in self.links:
            self.links.remove(link)
            for end in link.ends if tells is None else tells:
                self.note(end, "disconnected")
                end.event(0x05, struct.pack("<BHB", 0, link.handle, LOCAL_HOST if end is by else reason))

    # The program

    def execute(self, line):
        command = json.loads(line)
        controller = self.controllers[command.get("controller", 0)]
        if "rssi" in command:
            controller.rssi, controller.rssi_since = command["rssi"], time.monotonic()
        if "paced" in command:
            self.paced = command["paced"]
        answer = {**self.count, "links": len(self.links), "scans": self.controllers[0].scans,
                  "advertises": [bool(one.sender) for one in self.controllers], "trace": self.trace}
        if "trace" in command:
            self.trace = [] if command["trace"] else None
        print(json.dumps(answer), flush=True)

    def run(self):
        print(json.dumps({"indexes": [controller.index for controller in self.controllers]}), flush=True)
        by_file = {controller.file: controller for controller in self.controllers}
        while True:
            now = time.monotonic()
            for controller in self.controllers:
                if controller.sender and controller.advert_due <= now:
                    self.advertise(controller, now)
            for link in list(self.links):
                if link.due <= now:
                    self.play(link, now)
            if self.phone_due <= now:
                self.phone_due = now + PHONE_EVERY
                for controller in self.controllers:
                    controller.advertise(self.phone, -70)
            times = [controller.advert_due for controller in self.controllers if controller.sender]
            times += [link.due for link in self.links] + [self.phone_due]
            for file in select.select([*by_file, 0], [], [], max(0, min(times) - time.monotonic()))[0]:
                if file:
                    packet = os.read(file, 2048)
                    if packet[0] == COMMAND:
                        by_file[file].command(packet)
                    elif packet[0] == ACL:
                        self.send(by_file[file], packet)
                else:
                    self.serve()

    def serve(self):
        chunk = os.read(0, 65536)
        if not chunk:  # the scenario unplugs the controllers
            sys.exit(0)
        *lines, self.input = (self.input + chunk).split(b"\n")
        for line in lines:
            self.execute(line)


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--controllers", type=int, default=2)
    options.add_argument("--extended", action="store_true", help="controller 0 sends extended reports")
    options.add_argument("--paced", action="store_true")
    chosen = options.parse_args()
    Air(chosen.controllers, chosen.extended, chosen.paced).run()
