# SPDX-License-Identifier: GPL-3.0-or-later
"""A GATT server over the kernel's L2CAP: the channel of ATT on one controller, and the management socket that lets it advertise.

The protocol is that of the Bluetooth Core Specification, Vol 3, Part F. The server belongs to a reader, which says what it offers
and receives what is written.
"""
import ctypes
import socket
import struct
import threading

AF_BLUETOOTH, BTPROTO_L2CAP, BTPROTO_HCI = 31, 0, 1
ATT_CHANNEL, LE_PUBLIC = 4, 1
libc = ctypes.CDLL(None, use_errno=True)


def bind(connection, address):
    """bind(2) with an address that Python cannot make."""
    if libc.bind(connection.fileno(), address, len(address)):
        raise OSError(ctypes.get_errno(), "bind")


class Management:
    """The management socket of the kernel, doc/mgmt-api.txt of BlueZ, for one controller."""

    def __init__(self, index):
        self.index = index
        self.socket = socket.socket(AF_BLUETOOTH, socket.SOCK_RAW, BTPROTO_HCI)
        bind(self.socket, struct.pack("<HHH", AF_BLUETOOTH, 0xFFFF, 3))

    def ask(self, opcode, parameters=b""):
        """Sends a command; returns the status and the result."""
        self.socket.send(struct.pack("<HHH", opcode, self.index, len(parameters)) + parameters)
        while True:
            event, index, _, answered = struct.unpack_from("<HHHH", (packet := self.socket.recv(2048)) + bytes(2))
            if event in (1, 2) and (index, answered) == (self.index, opcode):
                return packet[8], packet[9:]

    def do(self, opcode, parameters=b""):
        status, result = self.ask(opcode, parameters)
        if status:
            raise OSError(f"management command {opcode:04X} of hci{self.index} ends with {status}")
        return result

    def wait_for_power(self):
        """Returns the address when bluetoothd has switched the controller on."""
        while True:
            status, information = self.ask(4)  # Read Controller Information
            if status == 0 and information[13] & 1:  # the current settings
                return information[:6]
            # Index Added, or New Settings.
            while struct.unpack_from("<HH", self.socket.recv(2048)) not in ((4, self.index), (6, self.index)):
                pass

    def advertise(self, data, response, every):
        """Advertises, connectable and with the flags of a general discoverable device; `every` is in milliseconds."""
        interval = round(every / 0.625)
        # Add Extended Advertising Parameters, with intervals; then the data.
        self.do(0x54, struct.pack("<BIHHIIb", 1, 1 | 2 | 1 << 14, 0, 0, interval, interval, 0))
        self.do(0x55, struct.pack("<BBB", 1, len(data), len(response)) + data + response)

    def set_interval(self, milliseconds):
        """Sets the interval of the connections that this controller asks for. Set Default System Configuration."""
        units = round(milliseconds / 1.25)
        self.do(0x4C, struct.pack("<HBHHBH", 0x17, 2, units, 0x18, 2, units))

    def disconnect(self, address):
        self.do(0x14, address + bytes([LE_PUBLIC]))


def uuid(text):
    """A UUID in the order of the radio; short ones have four digits."""
    return bytes.fromhex(text.replace("-", ""))[::-1]


PRIMARY, CHARACTERISTIC, CONFIGURATION = uuid("2800"), uuid("2803"), uuid("2902")
READ, WRITE_COMMAND, WRITE, NOTIFY = 2, 4, 8, 16
ERROR_HANDLE, ERROR_REQUEST, ERROR_NOT_FOUND, ERROR_LENGTH = 0x01, 0x06, 0x0A, 0x0D


class Attributes:
    """What the server offers: for each handle the type, the value and the last handle of its group."""

    def __init__(self, services):
        """`services`: pairs of a UUID and a list of (UUID, properties, value)."""
        self.all, self.handles = {}, {}
        for service, characteristics in services:
            first = self.add(PRIMARY, service)
            for kind, properties, value in characteristics:
                declaration = self.add(CHARACTERISTIC, b"")
                handle = self.handles[kind] = self.add(kind, value)
                self.all[declaration][1] = struct.pack("<BH", properties, handle) + kind
                if properties & NOTIFY:
                    self.add(CONFIGURATION, b"\0\0")
            self.all[first][2] = len(self.all)

    def add(self, kind, value):
        self.all[len(self.all) + 1] = [kind, value, 0]
        return len(self.all)

    def within(self, first, last, kind=None):
        return [(handle, entry) for handle, entry in self.all.items()
                if first <= handle <= last and kind in (None, entry[0])]


class GATTConnection:
    """A connection of a central. `written` is called with the handle and the value of each write. It is called after the answer
    to the write; if the server is hasty, before the answer."""

    def __init__(self, channel, attributes, mtu, is_hasty, written):
        self.channel, self.attributes, self.offered, self.written = channel, attributes, mtu, written
        self.is_hasty = is_hasty
        self.mtu = 23

    def notify(self, handle, value):
        self.channel.send(b"\x1B" + struct.pack("<H", handle) + value)

    def serve(self):
        """Answers until the connection ends."""
        while True:
            try:
                request = self.channel.recv(1024)
            except OSError:
                request = b""
            if not request:
                return
            if self.is_hasty:
                self.take(request)
            self.reply(request)
            if not self.is_hasty:
                self.take(request)

    def reply(self, request):
        answer = self.answer(request)
        if answer:
            self.channel.send(answer)

    def take(self, request):
        if request[0] in (0x12, 0x52):
            self.written(struct.unpack_from("<H", request, 1)[0], request[3:])

    def answer(self, request):
        code = request[0]
        method = self.METHODS.get(code)
        if method is None:
            # Commands and confirmations have no answer.
            return None if code & 0x40 or code == 0x1E else self.error(code, 0, ERROR_REQUEST)
        return method(self, code, request[1:])

    @staticmethod
    def error(code, handle, reason):
        return struct.pack("<BBHB", 1, code, handle, reason)

    def exchange(self, code, body):
        self.mtu = max(23, min(self.offered, struct.unpack("<H", body)[0]))
        return struct.pack("<BH", 3, self.offered)

    def list(self, code, body, entries, form):
        """A list of entries of the same length, as many as fit."""
        first = struct.unpack_from("<H", body)[0]
        if not entries:
            return self.error(code, first, ERROR_NOT_FOUND)
        size = len(entries[0])
        fitting = []
        for entry in entries:
            if len(entry) != size or 2 + size * (len(fitting) + 1) > self.mtu:
                break
            fitting.append(entry)
        return bytes([code + 1, form(size)]) + b"".join(fitting)

    def find_information(self, code, body):
        found = [struct.pack("<H", handle) + entry[0] for handle, entry in self.attributes.within(*struct.unpack("<HH", body))]
        return self.list(code, body, found, lambda size: 1 if size == 4 else 2)

    def find_by_type(self, code, body):
        first, last = struct.unpack_from("<HH", body)
        found = [struct.pack("<HH", handle, entry[2] or handle)
                 for handle, entry in self.attributes.within(first, last, body[4:6]) if entry[1] == body[6:]]
        return bytes([7]) + b"".join(found[:5]) if found else self.error(code, first, ERROR_NOT_FOUND)

    def read_by_type(self, code, body):
        first, last = struct.unpack_from("<HH", body)
        found = [struct.pack("<H", handle) + entry[1][:self.mtu - 4]
                 for handle, entry in self.attributes.within(first, last, body[4:])]
        return self.list(code, body, found, lambda size: size)

    def read_by_group(self, code, body):
        first, last = struct.unpack_from("<HH", body)
        found = [struct.pack("<HH", handle, entry[2]) + entry[1]
                 for handle, entry in self.attributes.within(first, last, body[4:]) if entry[2]]
        return self.list(code, body, found, lambda size: size)

    def read(self, code, body):
        handle, offset = struct.unpack("<HH", body + bytes(4 - len(body)))
        entry = self.attributes.all.get(handle)
        return bytes([code + 1]) + entry[1][offset:offset + self.mtu - 1] if entry else self.error(code, handle, ERROR_HANDLE)

    def write(self, code, body):
        handle = struct.unpack_from("<H", body)[0]
        return b"\x13" if handle in self.attributes.all else self.error(code, handle, ERROR_HANDLE)

    METHODS = {0x02: exchange, 0x04: find_information, 0x06: find_by_type, 0x08: read_by_type, 0x0A: read, 0x0C: read,
               0x10: read_by_group, 0x12: write}


class GATTServer:
    """Listens on one controller, and serves one connection after the other on a thread."""

    def __init__(self, address, accept):
        """`address` is that of the controller, `accept` is called with the channel and the address of each central."""
        listener = socket.socket(AF_BLUETOOTH, socket.SOCK_SEQPACKET, BTPROTO_L2CAP)
        bind(listener, struct.pack("<HH6sHBx", AF_BLUETOOTH, 0, address, ATT_CHANNEL, LE_PUBLIC))
        listener.listen(4)

        def serve():
            while True:
                channel, (central, _) = listener.accept()
                accept(channel, bytes.fromhex(central.replace(":", ""))[::-1])

        threading.Thread(target=serve, daemon=True).start()
