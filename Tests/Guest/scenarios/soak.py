# SPDX-License-Identifier: GPL-3.0-or-later
# A day in a busy place: readers at a door, somebody who walks past, and 100 000 addresses that come once. badged forgets what
# has passed, needs no more memory in the evening than in the morning, and still scans.
# kernel: time-travel
# limit: 1500
import os
import sys
import time

from guest import WALK, Badged, Radio, address, check, figure, finish, memory, pkoc, seos, start_bluetoothd, start_bus

HOURS, ADDRESSES = 24, 100_000

start_bus()
start_bluetoothd()
for backend in sys.argv[1:] or ("mgmt", "bluez"):
    radio = Radio()
    # A bus load at a time, since each waking of the guest's processes costs this machine some milliseconds.
    radio.tell(advertise=[seos(1, every=5000), pkoc(2, rssi=WALK, every=2000)], flood=ADDRESSES / HOURS / 3600, burst=20,
               data=pkoc(0)["data"])
    badged = Badged(backend)
    client = badged.client()
    client.begin(updates=60_000)
    check(f"{backend}: a reader is heard", client.hears(1), (client.scan, badged.log()))
    kilobytes, descriptors, most, deaf = [], [], 0, []
    for hour in range(HOURS):
        client.count("DOOR_READER", 3600)
        kilobytes.append(memory(badged.pid))
        descriptors.append(len(os.listdir(f"/proc/{badged.pid}/fd")))
        readers = client.known()
        most = max(most, len(readers))
        scan = client.state()
        if "error" in scan or not any(r["address"] == address(1) and r["rssi"]["ageMs"] < 20_000 for r in readers):
            deaf.append((hour, scan))
    check("every hour it hears the reader, and nothing is wrong", not deaf, deaf)
    sent = radio.tell()["sent"]
    figure(f"a day, {backend}: advertisements heard, addresses", f"{sent} {ADDRESSES}")
    figure(f"a day, {backend}: memory after 1, 12 and 24 hours", f"{kilobytes[0]} {kilobytes[11]} {kilobytes[-1]} kB")
    figure(f"a day, {backend}: most readers remembered", most, "4096")
    check("addresses came and went", sent > ADDRESSES, sent)
    check("no more memory after the first hours", kilobytes[-1] - kilobytes[2] < 2048, kilobytes)
    check("no more descriptors", descriptors[-1] <= descriptors[0], descriptors)
    check("the table is bounded", most <= 4096, most)
    lines = len(badged.log().splitlines())
    check("the log is short", lines < 200, badged.log()[:2000])
    badged.end()
    radio.unplug()
finish()
