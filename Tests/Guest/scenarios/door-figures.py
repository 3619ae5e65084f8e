# SPDX-License-Identifier: GPL-3.0-or-later
# How long an opening takes beyond the link. The link is measured with a client that exchanges as
# many bytes without PKOC. The packets of a connection move at the interval that the kernel chooses.
# The guest has one processor, which also runs the controllers and the reader, so the figures serve
# for comparison only.
# limit: 300
import time

from doors import DoorBadged, Radio, Site
from guest import BACKENDS, check, figure, finish, percentile, start_bluetoothd, start_bus
from plainclient import PlainClient
from reader import point

OPENINGS = 8
NOTIFICATION, WRITES = "in 1b", ("out 12", "out 52")


def own_time(trace, begun, received):
    """The milliseconds that an opening spends at the host of badged. They run from each notification to the write that answers it,
    and from the last notification to the result."""
    total, since = 0, None
    for at, number, what in trace:
        if number or not begun <= at <= received:
            continue
        if what == NOTIFICATION:
            since = at
        elif what in WRITES and since:
            total, since = total + at - since, None
    return (total + received - since) * 1000 if since else None


start_bus()
start_bluetoothd()
for backend in BACKENDS:
    radio = Radio("--paced")
    site = Site()
    reader = site.reader(radio, 1, "front")
    badged = DoorBadged(backend, site)
    client = badged.client()
    client.enrol(site, siteKey=point(site.key).hex())
    client.begin()
    door = client.find("front")
    whole, opening, link = [], [], []
    plain = PlainClient("/org/bluez/hci0/dev_00_AA_EE_00_00_02")
    for _ in range(OPENINGS):
        client.sees(door)
        client.wait_until_cool(door)
        if reader.connections:
            reader.wait_for_end()
        radio.set(trace=True)
        begun = time.monotonic()
        result = client.open_now(door)
        received = time.monotonic()
        own = own_time(radio.set(trace=False)["trace"], begun, received)
        if result["status"] == "success" and own:
            whole.append((received - begun) * 1000)
            opening.append(own)
        reader.wait_for_end()
        reader.fault = "rehearsal"
        radio.set(trace=True)
        times = plain.converse()
        link.append(own_time(radio.set(trace=False)["trace"], *times))
        reader.wait_for_end()
        reader.fault = None
    check(f"{backend}: nearly all openings succeed", len(opening) >= OPENINGS - 2, badged.log())
    opening, link = percentile(opening, 0.5), percentile(link, 0.5)
    figure(f"PKOC opening, {backend}: p50 with the connection and the services", f"{percentile(whole, 0.5):.0f} ms")
    figure(f"PKOC opening, {backend}: p50 from notifications to answers; of a plain client", f"{opening:.1f} {link:.1f} ms")
    figure(f"PKOC opening, {backend}: beyond the link", f"{opening - link:.1f} ms", "15 ms")
    badged.end()
    radio.unplug()
finish()
