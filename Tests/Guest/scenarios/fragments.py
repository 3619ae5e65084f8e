# SPDX-License-Identifier: GPL-3.0-or-later
# Extended advertisements that the controller reports in fragments. The kernel drops the structure
# in which a fragment ends, so they cannot be joined. Through the management socket a later fragment
# never makes a reader.
# short
# kernel: time-travel=inf-cpu
from controller import structure
from guest import BACKENDS, Badged, Controller, address, check, figure, finish, start_bluetoothd, start_bus

service = structure(7, (bytes.fromhex("00009800000010008000" + "00177A") + (2).to_bytes(3, "big"))[::-1])
flags, name = structure(1, b"\6"), structure(9, b"Lobby")
# Manufacturer data of an unknown company that contains what looks like a service of PKOC.
other = structure(0xFF, b"\xFF\xFF" + bytes(40) + structure(3, b"\xF0\xFF"))
# What the advertisement contains, the lengths of its fragments but the last one.
SPLITS = {
    "whole": (flags + service + name, []),
    "before the service": (flags + service + name, [3]),
    "inside the service": (flags + service + name, [11]),
    "before the name": (flags + service + name, [21]),
    "inside the name": (flags + service + name, [24]),
    "inside manufacturer data": (flags + other + name, [47]),
}
WHOLE, NAMELESS, NONE, WRONG = [("seos", "Lobby")], [("seos", None)], [], [("pkoc", "Lobby")]
EXPECTED = {"mgmt": [WHOLE, NONE, NONE, WHOLE, NAMELESS, NONE], "bluez": [WHOLE, WHOLE, NONE, WHOLE, NAMELESS, WRONG]}
start_bus()
start_bluetoothd()
for backend in BACKENDS:
    badged = Badged(backend)
    for number, (what, (data, lengths)) in enumerate(SPLITS.items()):
        controller = Controller("--extended", advertise=[
            {"address": address(10 + number), "data": data.hex(), "fragments": lengths, "rssi": -60, "every": 100}])
        client = badged.client()
        client.begin()
        client.reports(None)
        client.count("DOOR_READER", 5)
        found = [reader for reader in client.known() if reader["address"] == address(10 + number)]
        said = [(reader["profile"], reader["name"]) for reader in found]
        check(f"{backend}, {what}: {said or 'no reader'}", said == EXPECTED[backend][number], (said, client.detail()))
        fault = not client.health()["bluetoothFragments"]["ok"]
        check("GET_HEALTH tells of a sender that is ignored", fault == (backend == "mgmt" and number in (1, 5)), fault)
        figure(f"fragments, {backend}, {what}: advertisements sent in 5 s", controller.state()["sent"])
        controller.unplug()
        client.close()
    badged.end()
finish()
