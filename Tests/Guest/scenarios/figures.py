# SPDX-License-Identifier: GPL-3.0-or-later
# What the scan costs, how late its news are, and how much of what is on the air arrives. All of it in a guest with one
# processor, which also plays the controller: for comparison, not for glory.
# limit: 600
import subprocess
import time

from guest import (Badged, Radio, check, figure, finish, memory, percentile, pkoc, processor_seconds, seos, start_bluetoothd, start_bus)


def count_lines():
    with open("/run/signals", "rb") as file:
        return sum(line.startswith(b"sig") for line in file)


start_bus()
bluetoothd = start_bluetoothd()
for backend, limit in (("mgmt", 20), ("bluez", 100)):
    radio = Radio()
    badged = Badged(backend)
    client = badged.client()
    client.begin()
    check(f"{backend}: the radio listens", client.says(None), client.scan)

    radio.tell(advertise=[seos(1), seos(2)], flood=280, addresses=100)
    client.hears(1)
    client.count("DOOR_READER", 3)
    before, other, sent = processor_seconds(badged.pid), processor_seconds(bluetoothd.pid), radio.tell()["sent"]
    start = time.monotonic()
    client.count("DOOR_READER", 20)
    seconds = time.monotonic() - start
    used = (processor_seconds(badged.pid) - before) / seconds
    used_by_other = (processor_seconds(bluetoothd.pid) - other) / seconds
    rate = (radio.tell()["sent"] - sent) / seconds
    figure(f"300 adverts/s, {backend}: processor of badged", f"{used:.2%}", "2 %" if backend == "mgmt" else "")
    figure(f"300 adverts/s, {backend}: processor of bluetoothd", f"{used_by_other:.2%}")
    figure(f"300 adverts/s, {backend}: memory of badged", f"{memory(badged.pid)} kB")
    check("the controller told of about 300 a second", rate > 200, rate)

    # News among all these. So many that the slowest one alone is not the p99.
    times = []
    for number in range(500, 1000):
        at = radio.tell(once=seos(number, code=number))["at"]
        if client.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"]["lockServiceCode"] == number, 1):
            times.append((time.monotonic() - at) * 1000)
    check("nearly every new reader among them is told of", len(times) > 400, len(times))
    for part, name in ((0.5, "p50"), (0.99, "p99")):
        figure(f"300 adverts/s, {backend}: new reader to event: {name}", f"{percentile(times, part):.1f} ms", f"{limit} ms" if part > 0.9 else "")

    radio.tell(advertise=[], flood=0)
    times = []
    for number in range(1000, 1200):
        at = radio.tell(once=seos(number, code=number))["at"]
        # A controller that does not listen at this moment tells nothing; and the kernel begins its discovery anew.
        heard = client.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"]["lockServiceCode"] == number, 1)
        if heard:
            times.append((time.monotonic() - at) * 1000)
    check("nearly every new reader is told of", len(times) > 180, len(times))
    for part, name in ((0.5, "p50"), (0.99, "p99")):
        figure(f"new reader to event, {backend}: {name}", f"{percentile(times, part):.1f} ms", f"{limit} ms" if part > 0.9 else "")

    client.begin(adverts="raw")
    times = []
    for number in range(200):
        rssi = -40 - number % 50
        at = radio.tell(once=seos(1, rssi=rssi))["at"]
        if client.until(lambda m: m["msg"] == "ADVERT" and m["rssi"] == rssi, 1):
            times.append((time.monotonic() - at) * 1000)
    check("and of its changing strength", len(times) > 180, len(times))
    for part, name in ((0.5, "p50"), (0.99, "p99")):
        figure(f"new strength to event, {backend}: {name}", f"{percentile(times, part):.1f} ms", f"{limit} ms" if part > 0.9 else "")

    for rate in (200, 500, 1000, 2000, 5000):
        # Readers, so that badged counts what it hears of each.
        radio.tell(flood=rate, addresses=200, data=pkoc(0)["data"])
        client.count("DOOR_READER", 2)
        monitor = None
        if backend == "bluez":
            # One line for each signal that leaves bluetoothd.
            monitor = subprocess.Popen(["dbus-monitor", "--system", "--profile", "type='signal',sender='org.bluez'"],
                                       stdout=open("/run/signals", "wb"))
            client.count("DOOR_READER", 1)
        start, sent, heard, lines = time.monotonic(), radio.tell()["sent"], client.adverts(), count_lines() if monitor else 0
        client.count("DOOR_READER", 5)
        seconds = time.monotonic() - start
        sent, heard = (radio.tell()["sent"] - sent) / seconds, (client.adverts() - heard) / seconds
        figure(f"{rate:4} adverts/s, {backend}: sent, heard by badged", f"{sent:.0f} {heard:.0f} /s")
        if monitor:
            figure(f"{rate:4} adverts/s, {backend}: signals of bluetoothd", f"{(count_lines() - lines) / seconds:.0f} /s")
            monitor.kill()
            monitor.wait()
        radio.tell(flood=0)
    badged.end()
    radio.unplug()
finish()
