# SPDX-License-Identifier: GPL-3.0-or-later
# Door readers of all kinds are found through both backends, with a real kernel and bluetoothd.
# short
# kernel: time-travel=inf-cpu
from guest import BACKENDS, BIN, WALK, Controller, aliro, check, finish, pkoc, run, scan, seos, start_bluetoothd, start_bus

start_bus()
start_bluetoothd()
for backend in BACKENDS:
    for options in ([], ["--extended"]):
        controller = Controller(*options, advertise=[
            seos(1), seos(2, code=33, rssi=-70), pkoc(3, rssi=-80), aliro(4, rssi=WALK)])
        badged, client = scan(backend, f"{backend}, {'extended' if options else 'legacy'} reports")
        received = [client.receives(number) for number in (2, 3, 4)]
        check("readers of all kinds are received", all(received), (received, badged.log()))
        named = client.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"]["name"] == "door-0003")
        check("the name in a scan response is received", named is not None, client.readers)
        codes = sorted(str(reader["lockServiceCode"]) for reader in client.readers.values())
        check("the lock service codes are decoded", codes == ["2", "33", "None", "None"], codes)
        closest = client.ask("CLOSEST_DOOR_READER", cmd="GET_CLOSEST_DOOR_READER", openingType="motion")
        check("there is a closest reader", closest["reader"] is not None, closest)
        faults = {name: entry for name, entry in client.health().items() if name.startswith("bluetooth") and not entry["ok"]}
        check("GET_HEALTH has no fault of the radio", not faults, faults)
        shown = run(f"{BIN}/badgectl", "scan", "--code", "0", "--socket", badged.path)
        check("badgectl scan shows the readers", shown.returncode == 0 and "door-0003" in shown.stdout and "33" in shown.stdout,
              shown)
        check("the log contains no address", "C3:33:22" not in badged.log().upper(), badged.log())
        badged.end()
        controller.unplug()
finish()
