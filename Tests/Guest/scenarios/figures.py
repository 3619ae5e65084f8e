# SPDX-License-Identifier: GPL-3.0-or-later
# Processor time of a scan, delays, and the share of advertisements that arrive. The guest has one processor, which also runs the
# controller, so the figures serve for comparison only.
# limit: 600
import subprocess
import time

from guest import (BACKENDS, Badged, Controller, check, figure, finish, memory, percentile_figures, pkoc, processor_seconds, seos,
                   start_bluetoothd, start_bus, stop)


def delays(client, controller, numbers, sender, condition):
    """Sends one advertisement for each number and measures the time to the message that it causes, in milliseconds."""
    times = []
    for number in numbers:
        sent = controller.set(once=sender(number))
        # A controller that does not scan at this moment sends no report.
        if sent["reported"] and client.until(lambda m: condition(m, number), 1):
            times.append((time.monotonic() - sent["at"]) * 1000)
    return times


def new_readers(client, controller, numbers):
    return delays(client, controller, numbers, lambda number: seos(number, code=number),
                  lambda m, number: m["msg"] == "DOOR_READER" and m["reader"]["lockServiceCode"] == number)


def count_signals():
    with open("/run/signals", "rb") as file:
        return sum(line.startswith(b"sig") for line in file)


start_bus()
bluetoothd = start_bluetoothd()
for backend, limit in zip(BACKENDS, (20, 100)):
    controller = Controller()
    badged = Badged(backend)
    client = badged.client()
    client.begin()
    check(f"{backend}: the radio listens", client.reports(None), client.scan)

    name = f"300 adverts/s, {backend}"
    controller.set(advertise=[seos(1), seos(2)], flood=280, addresses=100)
    client.receives(1)
    client.count("DOOR_READER", 3)
    before = [processor_seconds(process) for process in (badged.pid, bluetoothd.pid)]
    start, sent = time.monotonic(), controller.state()["sent"]
    client.count("DOOR_READER", 20)
    seconds = time.monotonic() - start
    used = [(processor_seconds(process) - old) / seconds for process, old in zip((badged.pid, bluetoothd.pid), before)]
    rate = (controller.state()["sent"] - sent) / seconds
    figure(f"{name}: processor of badged", f"{used[0]:.2%}", "2 %" if backend == "mgmt" else "")
    figure(f"{name}: processor of bluetoothd", f"{used[1]:.2%}")
    figure(f"{name}: memory of badged", f"{memory(badged.pid)} kB")
    check("the controller sends about 300 reports a second", rate > 200, rate)
    # Enough values that p99 is not the largest one.
    times = new_readers(client, controller, range(500, 1000))
    check("nearly every new reader is reported", len(times) > 400, len(times))
    percentile_figures(f"{name}: new reader to event", times, goal=f"{limit} ms")

    controller.set(advertise=[], flood=0)
    times = new_readers(client, controller, range(1000, 1200))
    check("without other advertisements, nearly every new reader is reported", len(times) > 180, len(times))
    percentile_figures(f"new reader to event, {backend}", times, goal=f"{limit} ms")

    client.begin(adverts="raw")
    times = delays(client, controller, range(200), lambda number: seos(1, rssi=-40 - number % 50),
                   lambda m, number: m["msg"] == "ADVERT" and m["rssi"] == -40 - number % 50)
    check("nearly every new signal strength is reported", len(times) > 180, len(times))
    percentile_figures(f"new strength to event, {backend}", times, goal=f"{limit} ms")

    for rate in (200, 500, 1000, 2000, 5000):
        # Door readers, because badged counts the advertisements of each reader.
        controller.set(flood=rate, addresses=200, data=pkoc(0)["data"])
        client.count("DOOR_READER", 2)
        monitor = None
        if backend == "bluez":
            # Prints one line for each signal of bluetoothd.
            monitor = subprocess.Popen(["dbus-monitor", "--system", "--profile", "type='signal',sender='org.bluez'"],
                                       stdout=open("/run/signals", "wb"))
            client.count("DOOR_READER", 1)
        start, sent, received = time.monotonic(), controller.state()["sent"], client.adverts()
        signals = count_signals() if monitor else 0
        client.count("DOOR_READER", 5)
        seconds = time.monotonic() - start
        sent, received = (controller.state()["sent"] - sent) / seconds, (client.adverts() - received) / seconds
        figure(f"{rate:4} adverts/s, {backend}: sent, received by badged", f"{sent:.0f} {received:.0f} /s")
        if monitor:
            figure(f"{rate:4} adverts/s, {backend}: signals of bluetoothd", f"{(count_signals() - signals) / seconds:.0f} /s")
            stop(monitor)
        controller.set(flood=0)
    badged.end()
    controller.unplug()
finish()
