# SPDX-License-Identifier: GPL-3.0-or-later
"""What crosses between badged and badged-network."""
import os
import re
import socket
import struct
import subprocess
import threading

from harness import check, children, internet_sockets


class NetworkRecorder:
    """Starts badged-network as badged-network.socket does, a process for each connection, and records what badged sends to it
    and what it reports. Looks at badged each time."""

    def __init__(self, programs, work):
        self.program = os.path.join(programs, "badged-network")
        self.listener = socket.socket(socket.AF_UNIX)
        self.path = os.path.join(work, "network.sock")
        self.listener.bind(self.path)
        self.listener.listen(64)
        # For each process: what badged has sent, and what it has got.
        self.runs = []
        self.sockets, self.libraries = set(), set()
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def environment(self):
        return {"BADGED_NETWORK_SOCKET": self.path}

    def _accept(self):
        while True:
            badged, _ = self.listener.accept()
            own, other = socket.socketpair()
            run = subprocess.Popen(["sh", "-c", 'exec 3<&0 </dev/null && exec "$0"', self.program], stdin=other)
            other.close()
            children.append(run)
            record = (bytearray(), bytearray())
            self.runs.append(record)
            pid, _, _ = struct.unpack("3i", badged.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
            threading.Thread(target=self._pump, args=(badged, own, record[0], pid), daemon=True).start()
            threading.Thread(target=self._pump, args=(own, badged, record[1], pid), daemon=True).start()

    def _pump(self, source, target, record, pid):
        try:
            while data := source.recv(65536):
                record += data
                self._look(pid)
                target.sendall(data)
        except OSError:  # one side has ended
            pass
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def _look(self, pid):
        try:
            self.sockets |= internet_sockets(pid)
            with open(f"/proc/{pid}/maps", encoding="ascii") as file:
                self.libraries |= set(re.findall("lib(?:curl|ssl|expat|websockets)[^/ ]*", file.read()))
        except OSError:  # badged has ended
            pass

    def check(self, secrets, expected):
        """Checks that what is expected has crossed, and that no secret has, in either direction."""
        crossed = b"\0".join(bytes(record) for run in self.runs for record in run)
        check("badged has asked badged-network", expected in crossed, len(crossed))
        check("no secret crosses", not [secret for secret in secrets if secret in crossed])
        check("badged had no socket of the Internet meanwhile", not self.sockets, self.sockets)
        check("and no library of the network", not self.libraries, self.libraries)
