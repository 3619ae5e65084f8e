# SPDX-License-Identifier: GPL-3.0-or-later
# A day in a busy place: readers at a door, a person who walks past, and 100 000 addresses that are received once. badged forgets
# them, its memory does not grow after the first hours, and the scan works all day.
# kernel: time-travel
# limit: 1500
import os
import sys

from guest import BACKENDS, WALK, Controller, address, check, figure, finish, memory, pkoc, scan, seos, start_bluetoothd, start_bus

HOURS, ADDRESSES = 24, 100_000

start_bus()
start_bluetoothd()
for backend in sys.argv[1:] or BACKENDS:
    # Addresses come in groups of 20, because each wake-up of the guest costs some milliseconds.
    controller = Controller(advertise=[seos(1, every=5000), pkoc(2, rssi=WALK, every=2000)],
                            flood=ADDRESSES / HOURS / 3600, burst=20, data=pkoc(0)["data"])
    badged, client = scan(backend, updates=60_000)
    kilobytes, descriptors, most, faults = [], [], 0, []
    for hour in range(HOURS):
        client.count("DOOR_READER", 3600)
        kilobytes.append(memory(badged.pid))
        descriptors.append(len(os.listdir(f"/proc/{badged.pid}/fd")))
        readers = client.known()
        most = max(most, len(readers))
        state = client.state()
        if "error" in state or not any(r["address"] == address(1) and r["rssi"]["ageMs"] < 20_000 for r in readers):
            faults.append((hour, state))
    check("in every hour the reader is received, without an error", not faults, faults)
    sent = controller.state()["sent"]
    figure(f"a day, {backend}: advertisements sent, addresses", f"{sent} {ADDRESSES}")
    figure(f"a day, {backend}: memory after 1, 12 and 24 hours", f"{kilobytes[0]} {kilobytes[11]} {kilobytes[-1]} kB")
    figure(f"a day, {backend}: most readers remembered", most, "4096")
    check("all addresses were sent", sent > ADDRESSES, sent)
    check("the memory does not grow after the first hours", kilobytes[-1] - kilobytes[2] < 2048, kilobytes)
    check("the number of descriptors does not grow", descriptors[-1] <= descriptors[0], descriptors)
    check("the table is bounded", most <= 4096, most)
    check("the log is short", len(badged.log().splitlines()) < 200, badged.log()[:2000])
    badged.end()
    controller.unplug()
finish()
