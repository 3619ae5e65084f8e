# SPDX-License-Identifier: GPL-3.0-or-later
# badged is killed in an opening: a later badged ends the connection, so that the door opens again. A
# reader to which another program is connected is named in GET_HEALTH. A reader is found again after
# ten openings, also when it advertises another service, and one that it does not offer.
# bluetoothd
# kernel: time-travel=inf-cpu
import os
import signal

from doors import DoorBadged, Radio, Site
from gattserver import uuid
from guest import BACKENDS, BLUETOOTHDS, check, finish, run, start_bluetoothd, start_bus, stop
from plainclient import PlainClient
from reader import SERVICE, point

DEVICE = "/org/bluez/hci0/dev_00_AA_EE_00_00_02"
# A lock service of another make, with the code 33.
LOCK_SERVICE = uuid("00009800-0000-1000-8000-00177a000021")
OLD_SERVICE = uuid("41fb60a1-d4d0-4ae9-8cbb-b62b5ae81810")

start_bus()
for bluetoothd in BLUETOOTHDS:
    service = start_bluetoothd(program=bluetoothd)
    version = run(bluetoothd, "--version").stdout.strip()
    for backend in BACKENDS:
        case = f"bluetoothd {version}, {backend}"
        radio = Radio("--paced")
        site = Site()
        reader = site.reader(radio, 1, "front")
        trust = {"siteKey": point(site.key).hex()}

        def begin():
            badged = DoorBadged(backend, site)
            client = badged.client()
            client.enrol(site, **trust)
            client.begin()
            return badged, client, client.find("front")

        # Milliseconds from the start of the opening until badged is killed.
        for after in (0, 150, 600, 1200):
            badged, client, door = begin()
            client.openings = []
            client.send(cmd="OPEN_READER", reader=door, openingType="applicationSpecific")
            client.until(lambda m: m["msg"] == "OPENING")
            client.count("OPENING", after / 1000)
            os.kill(badged.pid, signal.SIGKILL)
            badged.process.wait()
            badged = DoorBadged(backend, site)
            client = badged.client()
            client.enrol(site, **trust)
            client.begin()
            check(f"{case}: killed after {after} ms, and the reader is received again", client.find("front"),
                  (radio.set(), badged.log()))
            check("it is not connected", client.wait_until(lambda: radio.set()["links"] == 0), radio.set())
            check("its door opens", client.open(door)["status"] == "success", badged.log())
            reader.wait_for_end()
            check("GET_HEALTH names no reader", "bluetoothReaders" not in client.health(), client.health())
            badged.end()

        badged, client, door = begin()
        for number in range(10):
            result = client.open(door)
            reader.wait_for_end()
            if result["status"] != "success":
                check(f"{case}: opening {number}", False, (result, badged.log()))
        reader.advertise(service=OLD_SERVICE)
        badged.end()
        badged, client, door = begin()
        check(f"{case}: after ten openings, a reader that advertises another service is found", door, client.detail())
        client.sees(door)
        client.send(cmd="OPEN_READER", reader=door, openingType="applicationSpecific")
        client.until(lambda m: m["msg"] == "OPENING")
        client.send(cmd="STOP_SCAN")
        result = client.until(lambda m: m["msg"] == "OPENING_RESULT")
        check("it opens, and the scan ends meanwhile", result["status"] == "success", (result, badged.log()))
        reader.wait_for_end()
        reader.advertise(service=LOCK_SERVICE)
        badged.end()
        badged, client, _ = begin()
        client.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"]["profile"] == "seos", 30)
        seen = [(reader["profile"], reader["lockServiceCodes"]) for reader in client.known()]
        check(f"{case}: what it advertises counts, not what it offers", seen == [("seos", [33])], (seen, client.detail()))
        reader.advertise(service=SERVICE)
        badged.end()
        badged, client, door = begin()

        client.sees(door)
        client.open(door)
        reader.wait_for_end()
        badged.end()
        radio.unplug()
    stop(service)
finish()
