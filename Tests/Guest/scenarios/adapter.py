# SPDX-License-Identifier: GPL-3.0-or-later
# An adapter is plugged in, unplugged and plugged in again: the scan waits for it and reports that it is missing.
# short
# kernel: time-travel=inf-cpu
from guest import BACKENDS, Badged, Controller, check, finish, seos, start_bluetoothd, start_bus

start_bus()
start_bluetoothd()
for backend in BACKENDS:
    badged = Badged(backend)
    client = badged.client()
    client.begin()
    check(f"{backend}: without an adapter, SCAN has an error", client.reports("there is no Bluetooth adapter"), client.scan)
    health = client.health()["bluetoothAdapter"]
    check("GET_HEALTH has advice", not health["ok"] and health["advice"] == "plug one in", health)
    for _ in range(3):
        controller = Controller(advertise=[seos(1)])
        check("with an adapter, a reader is received", client.receives(1), client.detail())
        check("the error is gone", client.reports(None), client.scan)
        controller.unplug()
        check("when the adapter is unplugged, SCAN has the error", client.reports("there is no Bluetooth adapter"), client.scan)
    badged.end()
finish()
