# SPDX-License-Identifier: GPL-3.0-or-later
# 5000 advertisements a second from door readers, each with a new address. Other clients are
# answered, and memory and table stay within bounds. Afterwards a reader at the door is received.
# limit: 600
import time

from guest import (BACKENDS, Client, Controller, check, figure, finish, memory, percentile_figures, pkoc, processor_seconds, scan,
                   seos, start_bluetoothd, start_bus, stop)

SECONDS = 20
start_bus()
bluetoothd = start_bluetoothd()
for backend in BACKENDS:
    controller = Controller(advertise=[seos(1)])
    badged, client = scan(backend)
    before = memory(badged.pid)
    controller.set(flood=5000, data=pkoc(0)["data"])
    other, times, most = Client(badged.path), [], 0
    other.ask("INFO", cmd="GET_INFO")
    used = processor_seconds(badged.pid)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        start = time.monotonic()
        other.ask("INFO", cmd="GET_INFO")
        times.append((time.monotonic() - start) * 1000)
        most = max(most, memory(badged.pid))
        client.count("DOOR_READER", 0.02)
    used = (processor_seconds(badged.pid) - used) / SECONDS
    sent = controller.set(flood=0)["sent"]
    name = f"flood of {sent / SECONDS:.0f}/s, {backend}"
    percentile_figures(f"{name}: GET_INFO", times, digits=2)
    figure(f"{name}: memory of badged before, at most", f"{before} {most} kB")
    figure(f"{name}: processor of badged", f"{used:.0%}")
    check("another client is answered", len(times) > 20, len(times))
    check("the memory of badged grows by less than 32 MB", most - before < 32_768, (before, most))
    readers = len(client.known())
    check("badged remembers at most 4096 readers", 0 < readers <= 4096, readers)
    if backend == "bluez":
        # bluetoothd 5.66 keeps an object for each address and is busy with them for minutes.
        stop(bluetoothd)
        bluetoothd = start_bluetoothd()
        check("bluetoothd is restarted", client.reports(None), client.scan)
    check("afterwards the reader is received", client.receives(1), client.detail())
    badged.end()
    controller.unplug()
finish()
