# SPDX-License-Identifier: GPL-3.0-or-later
"""A card in a reader of a real pcscd: badged-virtual-card behind vpcd."""

import json
import os
import select
import signal
import subprocess

from harness import LIMIT, children

READER = "Virtual PCD 00 00"
VPCD = "127.0.0.1:35963"


def stop(process):
    process.send_signal(signal.SIGTERM)
    process.wait(LIMIT)


class Card:
    """badged-virtual-card in the reader, until `remove`. SIGUSR1 takes the card out or puts it in."""

    def __init__(self, program, folder, description, vpcd=VPCD, arguments=()):
        path = os.path.join(folder, "card.json")
        with open(path, "w", encoding="ascii") as file:
            json.dump({"card": description}, file)
        with open(os.path.join(folder, "card.log"), "ab") as log:
            self.process = subprocess.Popen([program, "--vpcd", vpcd, "--card", path, *arguments], stdin=subprocess.DEVNULL,
                                            stdout=subprocess.PIPE, stderr=log)
        children.append(self.process)
        self.received = b""

    def state(self):
        """The state of the card, with the microseconds that it has worked so far."""
        self.process.send_signal(signal.SIGUSR2)
        while not (line := self._line()).startswith(b"{"):
            pass
        return json.loads(line)

    def wait_for(self, word):
        """Waits until the program prints `inserted` or `withdrawn`."""
        while self._line().decode() != word:
            pass

    def toggle(self):
        self.process.send_signal(signal.SIGUSR1)

    def remove(self):
        stop(self.process)
        self.process.stdout.close()

    def _line(self):
        while b"\n" not in self.received:
            if not select.select([self.process.stdout], [], [], LIMIT)[0]:
                raise TimeoutError("badged-virtual-card prints nothing")
            data = os.read(self.process.stdout.fileno(), 65536)
            if not data:
                raise RuntimeError("badged-virtual-card has ended; see card.log")
            self.received += data
        line, self.received = self.received.split(b"\n", 1)
        return line
