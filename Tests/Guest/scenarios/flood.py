# SPDX-License-Identifier: GPL-3.0-or-later
# 5000 advertisements a second from addresses that are always new, all with the mark of a door reader: nobody waits longer for
# an answer, memory and table stay within bounds, and afterwards the reader at the door is heard.
# limit: 600
import time

from guest import Badged, Client, Radio, check, figure, finish, memory, percentile, pkoc, processor_seconds, seos
from guest import start_bluetoothd, start_bus

start_bus()
bluetoothd = start_bluetoothd()
for backend in ("mgmt", "bluez"):
    radio = Radio()
    radio.tell(advertise=[seos(1)])
    badged = Badged(backend)
    client = badged.client()
    client.begin()
    check(f"{backend}: a reader is heard", client.hears(1), (client.scan, badged.log()))
    before = memory(badged.pid)
    radio.tell(flood=5000, data=pkoc(0)["data"])
    other, times, most = Client(badged.path), [], 0
    other.ask("INFO", cmd="GET_INFO")
    used = processor_seconds(badged.pid)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        start = time.monotonic()
        other.ask("INFO", cmd="GET_INFO")
        times.append((time.monotonic() - start) * 1000)
        most = max(most, memory(badged.pid))
        client.count("DOOR_READER", 0.02)
    used = (processor_seconds(badged.pid) - used) / 20
    sent = radio.tell(flood=0)["sent"]
    for part, name in ((0.5, "p50"), (0.99, "p99")):
        figure(f"flood of {sent / 20:.0f}/s, {backend}: GET_INFO {name}", f"{percentile(times, part):.2f} ms")
    figure(f"flood of {sent / 20:.0f}/s, {backend}: memory of badged before, at most", f"{before} {most} kB")
    figure(f"flood of {sent / 20:.0f}/s, {backend}: processor of badged", f"{used:.0%}")
    check("badged answers meanwhile", len(times) > 20, len(times))
    check("its memory grows by less than 32 MB", most - before < 32_768, (before, most))
    readers = len(client.known())
    check("it remembers 4096 readers at most", 0 < readers <= 4096, readers)
    if backend == "bluez":
        # bluetoothd 5.66 keeps an object for each of the addresses and is busy with them for minutes; SCAN advises to restart it.
        bluetoothd.kill()
        bluetoothd.wait()
        bluetoothd = start_bluetoothd()
        check("bluetoothd is restarted", client.says(None), client.scan)
    check("afterwards the reader is heard", client.hears(1), (client.scan, badged.log()))
    badged.end()
    radio.unplug()
finish()
