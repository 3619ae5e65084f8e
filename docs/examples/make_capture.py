#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_capture.py FILE: writes the capture door-readers.btsnoop. It is made up: three readers, and a person who walks to one."""
import random, struct, sys

UART, RECEIVED_EVENT, EPOCH = 1002, 3, 0x00DCDDB30F2F8000  # data link; flags; microseconds from the year 0 to 1970
START = 1_767_225_600_000_000  # 2026-01-01 00:00 UTC
noise = random.Random(1)


def structure(kind, value):
    return bytes([len(value) + 1, kind]) + value


def record(time, event_type, address, data, rssi):
    """An LE Advertising Report of the controller: Bluetooth Core, Vol 4, Part E, 7.7.65.2."""
    report = bytes([2, 1, event_type, 1]) + bytes.fromhex(address)[::-1] + bytes([len(data)]) + data + struct.pack("b", rssi)
    packet = bytes([4, 0x3E, len(report)]) + report
    return struct.pack(">IIIIQ", len(packet), len(packet), RECEIVED_EVENT, 0, EPOCH + START + time) + packet


seos = bytes.fromhex("00009800000010008000" + "00177A" + "000002")[::-1]  # a 128-bit service with lock service code 2
aliro = struct.pack(">BbQHI", 0, 4, 0xA11F0, 1, 0) + bytes(8)
READERS = [  # address, advertisement, scan response, signal strength in dBm after SECONDS
    ("C3332211AA01", structure(7, seos), structure(9, b"Main entrance"), lambda s: min(-46, -88 + 5 * s)),
    ("C3332211AA02", structure(3, b"\xF0\xFF"), structure(9, b"Garage"), lambda s: -82),
    ("C3332211AA03", structure(0x16, b"\xF2\xFF" + aliro), b"", lambda s: -64),
]
with open(sys.argv[1], "wb") as file:
    file.write(b"btsnoop\0" + struct.pack(">II", 1, UART))
    for tick in range(60):
        for number, (address, data, response, strength) in enumerate(READERS):
            time, rssi = tick * 250_000 + number * 40_000, round(strength(tick / 4) + noise.uniform(-3, 3))
            file.write(record(time, 0, address, structure(1, b"\6") + data, rssi))
            if response:
                file.write(record(time + 1_000, 4, address, response, rssi))
