# SPDX-License-Identifier: GPL-3.0-or-later
# A phone of another stack shows its mobile documents over Bluetooth, in both modes, and nothing of it is left in bluetoothd.
# A phone that leaves and a stranger that is faster make a reading fail, or last longer, and no later one. A door scan goes on.
# short
# bluetoothd
# kernel: time-travel=inf-cpu
import time

from guest import BACKENDS, BLUETOOTHDS, check, figure, finish, pkoc, run, start_bluetoothd, start_bus
from phones import Counter, Phone, kept, set_bluetoothd, start_badged

PORTRAIT = 100_000
WAYS = {"central": "bleCentral", "peripheral": "blePeripheral"}
# Seconds from the command to the verdict: an age, and a portrait.
GOALS = {"central": (0.5, 2.0), "peripheral": (0.8, 2.0)}
LICENCE, SPACE = "org.iso.18013.5.1.mDL", "org.iso.18013.5.1"

start_bus()
set_bluetoothd()
for bluetoothd in BLUETOOTHDS:
    service = start_bluetoothd(program=bluetoothd)
    version = run(bluetoothd, "--version").stdout.strip()
    for backend in BACKENDS:
        case = f"bluetoothd {version}, {backend}"
        phone = Phone()
        phone.show("central", fault="absent")
        phone.set(door=pkoc(1))
        badged = start_badged(backend)
        doors, counter = badged.client(), Counter(badged)
        doors.begin(updates=0)
        check(f"{case}: a door reader is received", doors.receives(1), doors.detail())
        health = counter.health().get("mdoc")
        check("badged is content with the settings of bluetoothd", health and health["ok"], health)

        def read(mode, asked=None, **more):
            """Reads a phone; checks what must be so whatever happens."""
            code = phone.show(mode, **more)
            result, seconds = counter.read(code, **asked or {"ageOver": 18})
            held, before = kept(), doors.adverts()
            check(f"{case}, {mode}: the adapter is free, and bluetoothd has forgotten the phone", phone.is_gone(),
                  (result, phone.set(), kept(), badged.log()))
            check("the door scan goes on", doors.wait_until(lambda: doors.adverts() > before + 2), doors.detail())
            if result["success"]:
                check("until then bluetoothd kept a folder of it", len(held) == 1, held)
            return result, seconds, phone.story()

        for mode, way in WAYS.items():
            goals = GOALS[mode]
            result, seconds, story = read(mode)
            check("an age is proven", result["success"] and (result["verdict"], result["transport"], result["age"])
                  == ("genuine", way, {"over": 18, "answer": "yes"}), (result, story, badged.log()))
            figure(f"{case}, {mode}: command to verdict, an age", f"{seconds:.2f} s", f"{goals[0]} s")

            asked = {"documents": [{"docType": LICENCE, "items": {SPACE: [{"name": "family_name"}, {"name": "portrait"}]}}]}
            result, seconds, story = read(mode, asked, portrait=PORTRAIT)
            items = result["success"] and result["documents"][0]["items"][SPACE]
            check("a portrait of 100 KB is read", items and result["verdict"] == "genuine"
                  and items["family_name"] == "Eriksson" and len(str(items["portrait"])) > PORTRAIT,
                  (str(result)[:2000], story, badged.log()))
            figure(f"{case}, {mode}: command to verdict, a portrait of 100 KB", f"{seconds:.2f} s", f"{goals[1]} s")

            result, _, story = read(mode, fault="leaves")
            check("a phone that leaves within its answer is lost",
                  (result["success"], result.get("error")) == (False, "ConnectionLost"), (result, story, badged.log()))

            result, _, story = read(mode, strangers=2, fault="absent")
            check("a stranger proves nothing", (result["success"], result.get("error")) == (False, "SessionError"),
                  (result, story, badged.log()))

        for pause in (None, 0, 0.01, 1, 2):
            counter.send(cmd="RUN_READ_MDOC", ageOver=18, engagement=phone.show("peripheral", fault="absent"))
            if pause is not None:
                time.sleep(pause)
                counter.send(cmd="CANCEL")
            result, begin = counter.result(), time.monotonic()
            before = doors.adverts()
            doors.wait_until(lambda: doors.adverts() > before + 2)
            seconds = time.monotonic() - begin
            check("after a search in vain the door scan goes on at once", result["error"]
                  == ("ConnectionFailed" if pause is None else "User_Cancelled") and seconds < 2, (pause, seconds, result, doors.detail()))

        result, _, story = read("central", strangers=1)
        check("after a stranger, the phone is read", result["success"] and result["verdict"] == "genuine"
              and story[:2] == ["stranger", "phone"], (result, story, badged.log()))
        result, _, story = read("peripheral")
        check("after all of it, the phone is read", result["success"] and result["verdict"] == "genuine",
              (result, story, badged.log()))
        badged.end()
        phone.unplug()
    # bluetoothd stores what it still has in memory.
    service.terminate()
    service.wait()
    check(f"{case}: nothing of a phone is left", not kept(), kept())
finish()
