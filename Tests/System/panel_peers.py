# SPDX-License-Identifier: GPL-3.0-or-later
"""libosdp as door panel and as reader in the wall, on ptys and sockets, and lines that lose and change bytes."""
import os
import random
import select
import socket
import threading
import time
import tty

import osdp
from osdp import (
    CardFormat,
    Channel,
    ControlPanel,
    Event,
    EventNotification,
    LibFlag,
    LogLevel,
    PDCapabilities,
    PDInfo,
    PeripheralDevice,
)

from harness import until


class Pty:
    """A serial line: badged-osdp has the device, and a peer has the descriptor."""

    def __init__(self):
        self.descriptor, other = os.openpty()
        tty.setraw(other)
        os.set_blocking(self.descriptor, False)
        self.device = os.ttyname(other)
        # The line stays open while nobody has the device.
        self.other = other

    def close(self):
        os.close(self.descriptor)
        os.close(self.other)


class Line(Channel):
    """The end of a line, for libosdp."""

    def __init__(self, descriptor):
        super().__init__()
        self.descriptor = descriptor

    def read(self, max_bytes):
        try:
            return os.read(self.descriptor, max_bytes)
        except (BlockingIOError, OSError):
            return b""

    def write(self, buf):
        try:
            return os.write(self.descriptor, buf)
        except OSError:
            return -1

    def flush(self):
        while self.read(4096):
            pass


class Noise:
    """A line whose bytes are lost and changed in both directions. `rate` is the share of pieces that suffer."""

    def __init__(self, descriptor, rate, seed):
        self.inner, outer = socket.socketpair()
        self.inner.setblocking(False)
        self.outer = outer
        self.outer.setblocking(False)
        self.descriptor, self.rate, self.random = descriptor, rate, random.Random(seed)
        self.faults = 0
        self.ends = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def spoil(self, data):
        if self.random.random() >= self.rate:
            return data
        self.faults += 1
        kind = self.random.randrange(4)
        changed = bytearray(data)
        place = self.random.randrange(len(changed))
        if kind == 0:
            return b""
        if kind == 1:
            changed[place] ^= 1 << self.random.randrange(8)
        elif kind == 2:
            del changed[place]
        else:
            changed[place:place] = bytes([0x53, 0x00, 0xFF])[: self.random.randrange(1, 4)]
        return bytes(changed)

    def run(self):
        other = {self.descriptor: self.inner.fileno(), self.inner.fileno(): self.descriptor}
        while not self.ends:
            for ready in select.select(list(other), [], [], 0.1)[0]:
                try:
                    data = os.read(ready, 4096)
                    if data and (data := self.spoil(data)):
                        os.write(other[ready], data)
                except OSError:
                    time.sleep(0.001)

    def close(self):
        self.ends = True
        self.thread.join()
        self.inner.close()
        self.outer.close()


class Driver:
    """Calls libosdp without the pauses of 20 ms that its own threads make."""

    def __init__(self, peer):
        self.peer, self.ends = peer, False
        peer.lock = threading.Lock()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.ends:
            with self.peer.lock:
                self.peer.ctx.refresh()
            time.sleep(0.002)

    def end(self):
        self.ends = True
        self.thread.join()


class Panel:
    """A door panel of libosdp for one reader. `key` None: SCBK-D."""

    def __init__(self, descriptor, key, address=0, flags=(LibFlag.EnforceSecure,)):
        self.address, self.cards, self.replies, self.has_fallen = address, [], [], 0
        flags = [*flags, LibFlag.EnableNotification]
        info = PDInfo(address, Line(descriptor), scbk=key, flags=flags)
        self.panel = ControlPanel([info], log_level=LogLevel.Emergency, event_handler=self.event)
        self.driver = Driver(self.panel)

    def event(self, _, event):
        if event["event"] == Event.CardRead:
            self.cards.append((event["length"], bytes(event["data"])))
        elif event["event"] == Event.ManufacturerReply:
            self.replies.append((event["vendor_code"], bytes(event["data"])))
        elif event["event"] == Event.Notification and event["type"] == EventNotification.PeripheralDeviceStatus:
            self.has_fallen += not event["arg0"]
        return 0

    def revive(self):
        """Begins anew with a reader that libosdp would leave alone for five minutes."""
        if self.has_fallen:
            self.panel.disable_pd(self.address)
            until(lambda: not self.panel.is_pd_enabled(self.address))
            # libosdp has told that as well.
            self.has_fallen = 0
            self.panel.enable_pd(self.address)

    def is_secure(self):
        return self.panel.is_sc_active(self.address)

    def becomes_secure(self):
        """Whether the secure channel is open. It begins anew when an attempt has failed, as when the line still has an
        answer to an earlier panel."""
        self.revive()
        return self.is_secure()

    def is_online(self):
        return self.panel.is_online(self.address)

    def send(self, **command):
        return until(lambda: self.panel.submit_command(self.address, command))

    def end(self):
        self.driver.end()


class WallReader:
    """A reader of libosdp, whose cards a control panel fetches."""

    def __init__(self, descriptor, key, address=0):
        # Its descriptor may change: the line is another one then.
        self.line = Line(descriptor)
        info = PDInfo(address, self.line, scbk=key, flags=[LibFlag.EnforceSecure])
        self.device = PeripheralDevice(info, PDCapabilities([]), log_level=LogLevel.Emergency)
        self.driver = Driver(self.device)

    def show(self, bits, data):
        event = {"event": Event.CardRead, "reader_no": 0, "direction": 0, "length": bits,
                 "format": CardFormat.Unspecified, "data": data}
        return self.device.submit_event(event)

    def end(self):
        self.driver.end()


__all__ = ["Noise", "Panel", "Pty", "WallReader", "osdp"]
