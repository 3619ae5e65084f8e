# SPDX-License-Identifier: GPL-3.0-or-later
# How long an opening takes beyond the link. Packets arrive at once, so that the rest is the time of the hosts. The guest has one
# processor, which also runs the controllers and the reader, so the figures serve for comparison only.
# limit: 300
import time

from doors import DoorBadged, Radio, Site
from guest import BACKENDS, check, figure, finish, percentile, percentile_figures, processor_seconds, start_bluetoothd, start_bus
from reader import point

OPENINGS = 15
NOTIFICATION, WRITES = "in 1b", ("out 12", "out 52")


def own_time(trace, sent, received):
    """The seconds that an opening spends at the host of badged: from each notification to the write that answers it, and from the
    last one to the result."""
    total, since = 0, None
    for at, number, what in trace:
        if number or not sent <= at <= received:
            continue
        if what == NOTIFICATION:
            since = at
        elif what in WRITES and since:
            total, since = total + at - since, None
    return total + received - since if since else None


start_bus()
start_bluetoothd()
for backend in BACKENDS:
    radio = Radio()
    site = Site()
    reader = site.reader(radio, 1, "front")
    badged = DoorBadged(backend, site)
    client = badged.client()
    client.enrol(site, siteKey=point(site.key).hex())
    client.begin()
    door = client.find("front")
    all_times, own_times, processor_times = [], [], []
    for _ in range(OPENINGS):
        client.wait_until_cool(door)
        if reader.connections:
            reader.wait_for_end()
        radio.set(trace=True)
        used = processor_seconds(badged.pid)
        sent = time.monotonic()
        result = client.open_now(door)
        received = time.monotonic()
        own = own_time(radio.set(trace=False)["trace"], sent, received)
        if result["status"] == "success" and own:
            all_times.append((received - sent) * 1000)
            own_times.append(own * 1000)
            processor_times.append((processor_seconds(badged.pid) - used) * 1000)
    check(f"{backend}: nearly all openings succeed", len(own_times) >= OPENINGS - 2, badged.log())
    figure(f"PKOC opening, {backend}: p50 with the connection and the services", f"{percentile(all_times, 0.5):.0f} ms")
    figure(f"PKOC opening, {backend}: p50 of the processor time of badged", f"{percentile(processor_times, 0.5):.1f} ms")
    percentile_figures(f"PKOC opening beyond the link, {backend}", own_times, goal="15 ms")
    badged.end()
    radio.unplug()
finish()
