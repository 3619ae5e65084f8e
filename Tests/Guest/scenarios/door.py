# SPDX-License-Identifier: GPL-3.0-or-later
# A PKOC door opens, with a real bluetoothd and the kernel on both sides of an emulated link. A
# foreign reader gets no key.
# short
# kernel: time-travel=inf-cpu
from doors import DoorBadged, Radio, Site
from guest import BACKENDS, BIN, check, finish, run, start_bluetoothd, start_bus
from reader import DEVICE_KEY, ENCRYPTED, point, wrong_vectors

check("the model of the reader repeats the vectors", wrong_vectors() == 0)
start_bus()
start_bluetoothd()
for options, backend in zip(([], ["--extended"]), BACKENDS):
    radio = Radio("--paced", *options)
    site = Site()
    reader = site.reader(radio, 1, "front")
    badged = DoorBadged(backend, site)
    client = badged.client()
    key = client.enrol(site, siteKey=point(site.key).hex())
    client.begin()
    door = client.find("front")
    result = client.open(door)
    check(f"{backend}: the door opens", [result[name] for name in ("status", "accessDecision", "payload")]
          == ["success", "granted", "03"], (result, badged.log()))
    # bluetoothd disconnects two seconds after it is asked to.
    check("the result does not wait for the end of the connection", result["durationMs"] < 2000, result)
    states = [message.get("state") for message in client.openings]
    check("each state is told", states == ["connecting", "connected", "authenticating", None], states)
    check("the reader has verified the key, and has heard nothing else", reader.visitors == [key]
          and reader.learned() == [DEVICE_KEY, ENCRYPTED], (reader.visitors, reader.learned()))
    check("the reader is disconnected", reader.wait_for_end() and client.wait_until(lambda: radio.set()["links"] == 0))
    check("the scan goes on", client.sees(door), client.detail())
    client.wait_until_cool(door)
    shown = run(f"{BIN}/badgectl", "open", door, "--type", "applicationSpecific", "--socket", badged.path)
    check("badgectl open opens it", shown.returncode == 0 and reader.visitors == [key] * 2, shown)
    reader.fault = "wrongSiteKey"
    result = client.open(door)
    check("a reader that has not the key of the site fails", result["status"] == "readerFailure", result)
    check("it learns neither the key nor its number", reader.visitors == [key] * 2 and reader.learned() == [DEVICE_KEY]
          and key[1:33] not in b"".join(reader.connections[-1].messages), reader.learned())
    reader.wait_for_end()
    badged.end()
    radio.unplug()
finish()
