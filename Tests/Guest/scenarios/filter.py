# SPDX-License-Identifier: GPL-3.0-or-later
# Many controllers report each device once and drop repeated advertisements, when the system asks
# them to. Then badged gets a signal strength every ten seconds only. A monitor of advertisements
# prevents this. It is a monitor in the kernel, or one in bluetoothd, if bluetoothd supports it
# (5.66: with option -E). Without a monitor badged reports the fault, and does not take a reader for
# lost between two values.
# short
# kernel: time-travel=inf-cpu
from guest import Controller, check, figure, finish, scan, seos, start_bluetoothd, start_bus, stop

start_bus()
SECONDS = 12
ADVICE = "reports each sender only once"
for backend, options in (("mgmt", []), ("bluez", ["-E"]), ("bluez", [])):
    for mode in ("performance", "powerSaving"):
        bluetoothd = start_bluetoothd(*options)
        controller = Controller("--filters", advertise=[seos(1, rssi=[-60, 4], every=100)])
        name = f"{backend} with monitors, {mode}" if options else f"{backend}, {mode}"
        badged, client = scan(backend, name, updates=0, mode=mode)
        # The first discovery may begin before the monitor is active.
        client.count("DOOR_READER", 3)
        sent, before = controller.state()["senders"][0]["sent"], client.adverts()
        rate = client.count("DOOR_READER", SECONDS) / SECONDS
        sent, received = controller.state()["senders"][0]["sent"] - sent, client.adverts() - before
        figure(f"filtering controller, {name}: values of a reader that sends 9.5 a second", f"{rate:.1f} /s")
        figure(f"filtering controller, {name}: reported by the controller, received by badged", f"{sent} {received}")
        if backend == "mgmt" or options:
            check("the signal strength is updated all the time", rate > 4, rate)
            check("SCAN has no error", "error" not in client.state(), client.state())
        else:
            check("the controller reports nearly nothing", sent < 5, sent)
            check("SCAN says so", client.reports(ADVICE), client.detail())
            fault = client.health()["bluetoothScan"]
            check("GET_HEALTH says what to do", not fault["ok"] and "-E" in fault["advice"], fault)
            lost = client.until(lambda m: m["msg"] == "DOOR_READER_LOST", 60)
            check("the reader is not lost between two values", lost is None, lost)
            controller.set(advertise=[])
            lost = client.until(lambda m: m["msg"] == "DOOR_READER_LOST", 90)
            check("the reader is lost when it is gone", lost is not None, client.known())
        check("bluetoothd runs", bluetoothd.poll() is None, bluetoothd.poll())
        badged.end()
        controller.unplug()
        stop(bluetoothd)
finish()
