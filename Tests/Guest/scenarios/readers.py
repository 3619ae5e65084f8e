# SPDX-License-Identifier: GPL-3.0-or-later
# Door readers of all kinds are found, by both ways to the radio, as a real kernel and bluetoothd show them.
# short
from guest import BIN, WALK, Badged, Radio, aliro, check, finish, pkoc, run, seos, start_bluetoothd, start_bus

start_bus()
start_bluetoothd()
for backend in ("mgmt", "bluez"):
    for options in ([], ["--extended"]):
        radio = Radio(*options)
        radio.tell(advertise=[seos(1), seos(2, code=33, rssi=-70), pkoc(3, rssi=-80), aliro(4, rssi=WALK)])
        badged = Badged(backend)
        client = badged.client()
        client.begin()
        kind = "extended" if options else "legacy"
        heard = [client.hears(number) for number in (1, 2, 3, 4)]
        check(f"{backend}, {kind} reports: readers of four kinds are heard", all(heard), (heard, badged.log()))
        named = client.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"]["name"] == "door-0003")
        check("and a name that is only told when asked for", named is not None, client.readers)
        by = {reader["address"]: reader for reader in client.readers.values()}
        codes = sorted(str(reader["lockServiceCode"]) for reader in by.values())
        check("with their lock service codes", codes == ["2", "33", "None", "None"], codes)
        closest = client.ask("CLOSEST_DOOR_READER", cmd="GET_CLOSEST_DOOR_READER", openingType="motion")
        check("the strongest is the closest", closest["reader"] is not None, closest)
        health = client.health()
        wrong = {name: entry for name, entry in health.items() if name.startswith("bluetooth") and not entry["ok"]}
        check("nothing is wrong with the radio", not wrong, wrong)
        shown = run(f"{BIN}/badgectl", "scan", "--code", "0", "--socket", badged.path)
        check("badgectl scan shows them", shown.returncode == 0 and "door-0003" in shown.stdout and "33" in shown.stdout, shown)
        check("no address is in the log", "C3:33:22" not in badged.log().upper(), badged.log())
        badged.end()
        radio.unplug()
finish()
