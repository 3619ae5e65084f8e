# SPDX-License-Identifier: GPL-3.0-or-later
# People walk to a PKOC door and away from it, also in the middle of an opening. They are asked
# before it opens, and open it with a gesture. The wake-ups of an idle badged with an open vault are
# counted, too.
# kernel: time-travel=inf-cpu
import os
import time

from doors import DoorBadged, Radio, Site
from gattserver import Management
from guest import BACKENDS, WALK, check, figure, finish, start_bluetoothd, start_bus
from reader import DEVICE_KEY, point


def switches(pid):
    """The context switches of all threads of a process."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if "ctxt_switches" in line)
    return total


start_bus()
start_bluetoothd()
for backend in BACKENDS:
    radio = Radio("--paced")
    # The reader's kernel asks for at least 30 ms.
    adapter = Management(radio.indexes[0])
    adapter.wait_for_power()
    adapter.set_interval(7.5)
    site = Site()
    reader = site.reader(radio, 1, "front")
    badged = DoorBadged(backend, site, limit_proximity=-70)
    client = badged.client()
    key = client.enrol(site, siteKey=point(site.key).hex())
    radio.set(controller=1, rssi=WALK)
    client.begin()
    client.send(cmd="SET_AUTO_OPEN", mode="on", openingType="proximity")
    results = [client.until(lambda m: m["msg"] == "OPENING_RESULT") for _ in range(2)]
    check(f"{backend}: the door opens at each of two visits", [(r["status"], r["accessDecision"]) for r in results]
          == [("success", "granted")] * 2 and reader.visitors == [key] * 2, (results, badged.log()))
    check("there is one connection for each visit", radio.set()["connections"] == 2, radio.set())
    check("the reader asks for a slower connection and gets it", radio.set()["updates"] > 0, radio.set())

    radio.set(controller=1, rssi=-60)
    client.count("OPENING", 30)
    check("a door at which somebody stands opens once", radio.set()["connections"] <= 3, radio.set())
    before, visits = radio.set()["connections"], len(reader.visitors)
    radio.set(controller=1, rssi=WALK)
    client.send(cmd="SET_AUTO_OPEN", mode="ask", openingType="proximity")
    question = client.until(lambda m: m["msg"] == "ASK_OPEN")
    check("a visit is a question, and nothing is connected before the answer", radio.set()["connections"] == before, question)
    client.send(cmd="ALLOW_OPEN", token=question["token"], allow=True)
    result = client.until(lambda m: m["msg"] == "OPENING_RESULT")
    check("the door opens when the client allows it", result["status"] == "success" and len(reader.visitors) == visits + 1,
          (result, badged.log()))
    question = client.until(lambda m: m["msg"] == "ASK_OPEN")
    answer = client.call("AUTO_OPEN", cmd="ALLOW_OPEN", token=question["token"], allow=False)
    question = client.until(lambda m: m["msg"] == "ASK_OPEN")
    client.count("OPENING", question["expiresMs"] / 1000 + 1)
    check("a question that nobody answers expires", client.call("BAD_STATE", cmd="ALLOW_OPEN", token=question["token"], allow=True))
    check("a door that is not allowed stays closed", answer["mode"] == "ask" and radio.set()["connections"] == before + 1, answer)
    client.send(cmd="SET_AUTO_OPEN", mode="off")

    def comes(is_near):
        """Waits until the reader comes into range, or leaves the range."""
        return client.until(lambda m: m["msg"] == "DOOR_READER" and m["reader"]["inRange"]["proximity"] == is_near)

    radio.set(controller=1, rssi=-110)
    comes(False)
    radio.set(controller=1, rssi=-88)
    client.find("front")
    refused = client.call("OPENING_RESULT", cmd="TRIGGER", openingType="proximity")
    radio.set(controller=1, rssi=-60)
    comes(True)
    client.send(cmd="TRIGGER", openingType="proximity")
    result = client.until(lambda m: m["msg"] == "OPENING_RESULT")
    check("a gesture far from the door does not open it", refused["status"] == "outOfRange" and refused["token"] is None, refused)
    check("a gesture at the door opens it", result["status"] == "success" and len(reader.visitors) == visits + 2, (result, badged.log()))
    reader.wait_for_end()
    door = client.find("front")

    reader.fault = lambda: radio.set(controller=1, rssi=-110)
    result = client.open(door)
    check("a walk away in the middle of an opening ends it", result["status"] == "bluetoothCommunicationFailed",
          (result, badged.log()))
    check("the connection ends by its supervision timeout", radio.set()["timeouts"] == 1, radio.set())
    reader.fault = None
    radio.set(controller=1, rssi=-60)
    result = client.open(door)
    check("the door opens after the way back", result["status"] == "success", (result, badged.log()))

    client.wait_until_cool(door)
    radio.set(controller=1, rssi=-110)
    result = client.open_now(door)
    check("a reader that has gone is not connected in time", result["status"] == "timedOut", (result, badged.log()))
    radio.set(controller=1, rssi=-60)
    result = client.open(door)
    check("the door opens when the reader is there again", result["status"] == "success", (result, badged.log()))

    client.send(cmd="STOP_SCAN")
    client.until(lambda m: m["msg"] == "SCAN" and not m["radio"])
    client.count("OPENING", 10)
    before = switches(badged.pid)
    time.sleep(60)
    woken = switches(badged.pid) - before
    figure(f"wake-ups in a minute of an idle badged with an open vault, {backend}", woken, "0")
    check("an idle badged does not wake up", woken == 0, woken)
    badged.end()
    radio.unplug()
finish()
