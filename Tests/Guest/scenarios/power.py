# SPDX-License-Identifier: GPL-3.0-or-later
# The adapter is switched off, and blocked by rfkill: SCAN and GET_HEALTH have advice, and afterwards the scan continues.
# short
# kernel: time-travel=inf-cpu
from guest import BACKENDS, Controller, check, finish, run, scan, seos, set_power, start_bluetoothd, start_bus

start_bus()
start_bluetoothd()
controller = Controller(advertise=[seos(1)])
for backend in BACKENDS:
    badged, client = scan(backend)
    output = set_power("off")
    check("btmgmt power off: SCAN has advice", client.reports("switched off: bluetoothctl power on"), (client.scan, output))
    output = set_power("on")
    check("btmgmt power on: the error is gone", client.reports(None), (client.scan, output))
    check("a reader is received", client.receives(1), client.scan)
    output = run("rfkill", "block", "bluetooth")
    check("rfkill block: SCAN has advice", client.reports("rfkill unblock bluetooth"), (client.detail(), output))
    health = client.health()["bluetoothAdapter"]
    check("GET_HEALTH has the advice", health.get("advice") == "rfkill unblock bluetooth", health)
    run("rfkill", "unblock", "bluetooth")
    check("rfkill unblock: the error is gone", client.reports(None), client.detail())
    check("a reader is received", client.receives(1), client.scan)
    badged.end()
finish()
