# SPDX-License-Identifier: GPL-3.0-or-later
"""The client's half of RFC 6455, as far as AusweisApp2 needs it: JSON objects in text frames over ws://."""

import base64
import hashlib
import json
import os
import select
import socket
import struct
import time

from harness import LIMIT

TEXT, CLOSE, PING, PONG = 0x1, 0x8, 0x9, 0xA
GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


class WebSocket:
    """A client of AusweisApp2, with the methods of harness.Client."""

    def __init__(self, port, path="/eID-Kernel"):
        self.socket = socket.create_connection(("127.0.0.1", port), LIMIT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        key = base64.b64encode(os.urandom(16))
        request = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", "Connection: Upgrade", "Upgrade: websocket",
                   f"Sec-WebSocket-Key: {key.decode()}", "Sec-WebSocket-Version: 13", "", ""]
        self.socket.sendall("\r\n".join(request).encode())
        while b"\r\n\r\n" not in self.received:
            self._read(LIMIT)
        head, self.received = self.received.split(b"\r\n\r\n", 1)
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
        if b" 101 " not in head.split(b"\r\n")[0] or accept not in head:
            raise ConnectionError(head.decode(errors="replace"))

    def send(self, **command):
        self._send(TEXT, json.dumps(command).encode())

    def next(self, seconds=LIMIT):
        """The next message; raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while True:
            kind, payload = self._frame(deadline)
            if kind == TEXT:
                return json.loads(payload)
            if kind == PING:
                self._send(PONG, payload)
            elif kind == CLOSE:
                raise ConnectionError("AusweisApp2 closed the connection")

    def close(self):
        self._send(CLOSE, b"")
        self.socket.close()

    def _send(self, kind, payload):
        size = len(payload)
        length = bytes([0x80 | size]) if size < 126 else b"\xfe" + struct.pack(">H", size)
        mask = os.urandom(4)
        masked = bytes(byte ^ mask[i & 3] for i, byte in enumerate(payload))
        self.socket.sendall(bytes([0x80 | kind]) + length + mask + masked)

    def _frame(self, deadline):
        self._need(2, deadline)
        kind, size, offset = self.received[0] & 0x0F, self.received[1] & 0x7F, 2
        if size >= 126:
            offset = 4 if size == 126 else 10
            self._need(offset, deadline)
            size = int.from_bytes(self.received[2:offset], "big")
        self._need(offset + size, deadline)
        payload, self.received = self.received[offset:offset + size], self.received[offset + size:]
        return kind, payload

    def _need(self, count, deadline):
        while len(self.received) < count:
            self._read(deadline - time.monotonic())

    def _read(self, seconds):
        # AusweisApp2 waits for each acknowledgement before it sends the next message, and Linux delays it by 40 ms.
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        if seconds <= 0 or not select.select([self.socket], [], [], seconds)[0]:
            raise TimeoutError("no message")
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("AusweisApp2 closed the connection")
        self.received += data
