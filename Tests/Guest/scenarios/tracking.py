# SPDX-License-Identifier: GPL-3.0-or-later
# The readers that badged reports are compared with the advertisements that the controller has sent.
# A motionless reader stays in range, also in the pauses of power saving and when its address
# changes. The data that a reader sends in parts are complete.
# short
# kernel: time-travel=inf-cpu
import time

from controller import structure
from guest import BACKENDS, Badged, Controller, address, check, figure, finish, seos, start_bluetoothd, start_bus

start_bus()
start_bluetoothd()


def service(code):
    return structure(7, (bytes.fromhex("00009800000010008000" + "00177A") + code.to_bytes(3, "big"))[::-1])


def questions(client, controller, seconds):
    """Asks for the closest reader twice a second. Returns the number of answers by reason or id, the number of lost readers, and
    the number of advertisements that were sent meanwhile."""
    answers, sent = {}, [sender["sent"] for sender in controller.state()["senders"]]
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        client.count("SCAN", 0.5)
        answer = client.ask("CLOSEST_DOOR_READER", cmd="GET_CLOSEST_DOOR_READER", openingType="motion")
        key = answer["reader"]["id"] if answer["reader"] else answer["reason"]
        answers[key] = answers.get(key, 0) + 1
    return answers, [sender["sent"] - old for sender, old in zip(controller.state()["senders"], sent)]


# A reader with a changing address that names itself in scan responses.
NAME = structure(9, b"Lobby").hex()
ROTATING = seos(1, rssi=[-60, 3], every=250) | {"address": "5B:33:22:11:00:00", "response": NAME}
for backend in BACKENDS:
    for mode in ("powerSaving", "performance"):
        name = f"{backend}, {mode}"
        controller = Controller(advertise=[seos(1, rssi=[-60, 3])])
        badged = Badged(backend)
        client = badged.client()
        client.begin(mode=mode, updates=60_000)
        check(f"{name}: the reader is received", client.receives(1), client.detail())
        client.count("DOOR_READER", 3)
        answers, sent = questions(client, controller, 60)
        figure(f"{name}: a motionless reader, advertisements received by the adapter in a minute", sent[0])
        check(f"{name}: a motionless reader is in range at every question", len(answers) == 1 and address(1) in str(answers), answers)

        # Rotation: every 20 s a new address.
        controller.set(advertise=[ROTATING | {"rotate": 20}])
        named = client.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"]["address"].startswith("5B:33:22:11:00"))
        check(f"{name}: the reader with a changing address is received", named is not None, client.detail())
        before = {reader["id"]: reader for reader in client.known() if reader["address"].startswith("5B")}
        check(f"{name}: it is one reader", len(before) == 1, list(before))
        # Until the reader of the first part is lost.
        client.count("DOOR_READER", 25)
        answers, sent = questions(client, controller, 100)
        readers = {reader["id"]: reader for reader in client.known() if reader["address"].startswith("5B")}
        addresses = int(controller.state()["senders"][0]["address"][-2:], 16) + 1
        figure(f"{name}: addresses of one reader; readers that badged has told of", f"{addresses} {len(readers)}")
        check(f"{name}: the reader has had several addresses", addresses >= 5, addresses)
        check(f"{name}: its name is known", all(r["name"] == "Lobby" for r in readers.values()), readers)
        check(f"{name}: badged knows one reader", list(readers) == list(before), (list(before), list(readers)))
        check(f"{name}: it is in range at every question", list(answers) == list(before), (answers, sent))
        badged.end()
        controller.unplug()

    # The data that a reader sends in parts: the name first, then the service; two lock service
    # codes.
    parts = {"address": "5B:44:22:11:00:00", "data": (structure(1, b"\6") + structure(9, b"Gate") + structure(10, b"\4")).hex(),
             "rssi": -60, "every": 200}
    two = seos(3, code=2) | {"response": service(33).hex()}
    controller = Controller(advertise=[parts, two])
    badged = Badged(backend)
    client = badged.client()
    client.begin(mode="performance", lockServiceCodes=[], adverts="raw", updates=0)
    check(f"{backend}: the reader with two codes is received", client.receives(3), client.detail())

    def types(number):
        """The address types in advertisements of the first sender."""
        found = set()
        while number:
            message = client.until(lambda m: m["msg"] == "ADVERT" and m["address"] == parts["address"])
            found.add(message and message["addressType"])
            number -= 1
        return found
    check(f"{backend}: every advertisement has the type of the address that was sent", types(20) == {"resolvable"})
    controller.set(advertise=[parts | {"data": (structure(1, b"\6") + service(5)).hex()}, two])
    late = client.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"]["lockServiceCode"] == 5)
    check(f"{backend}: the reader whose service comes late is found", late is not None, client.detail())
    late = late["reader"]
    check(f"{backend}: its address type is kept", late["addressType"] == "resolvable", late)
    if backend == "bluez":
        # Only bluetoothd keeps what was received before the service.
        check("bluez: its name and power are kept", (late["name"], late["txPower"]) == ("Gate", 4), late)
    both = client.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"].get("lockServiceCodes") == [2, 33])
    check(f"{backend}: both lock service codes are kept", both is not None, client.known())
    for code in (2, 33):
        client.begin(mode="performance", lockServiceCodes=[code])
        check(f"{backend}: the filter {code} lets the reader pass", client.receives(3), client.detail())
    badged.end()
    controller.unplug()
finish()
