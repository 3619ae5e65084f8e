# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures of badged-mqtt and of a fleet on one mosquitto, by hand: mqtt_figures.py BINARIES FOLDER [HOSTS]."""

import json
import os
import subprocess
import sys
import time

import brokers
from brokers import Broker, FakeBadged, Host
from harness import children, free_port, until

brokers.use(sys.argv[1], sys.argv[2])
work, hosts = sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 0
os.makedirs(work, exist_ok=True)
sock, port = os.path.join(work, "badged.sock"), free_port()


def switches(pid):
    """How often the threads of a process have slept and were woken."""
    total = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status", encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt_switches"))
    return total


def memory(pid):
    """The proportional set size in KiB."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:"))


def subscribe(name, *options):
    path = os.path.join(work, name)
    process = subprocess.Popen(["mosquitto_sub", "-p", str(port), "-V", "5", "-q", "1", "-t", "badged/1/+/credential", *options],
                               stdout=open(path, "w", encoding="utf-8"))
    children.append(process)
    time.sleep(1)
    return path


def lines(path):
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


badged, broker = FakeBadged(sock), Broker("figures", port, "allow_anonymous true")
path = subscribe("taps", "-F", "%U %p")
host = Host("figures", port, sock)
until(lambda: badged.watchers and host.status()["connected"])
time.sleep(8)
before = switches(host.process.pid)
time.sleep(10)
print("wake-ups in 10 idle seconds:", switches(host.process.pid) - before)
for number in range(1000):
    badged.tap()
    time.sleep(0.01)
until(lambda: len(lines(path)) >= 1000)
delays = sorted(float(line.split(" ", 1)[0]) * 1000 - json.loads(line.split(" ", 1)[1])["time"] for line in lines(path))
print(f"taps at 100 a second, to a consumer: {delays[500]:.1f} ms half, {delays[990]:.1f} ms 99 %, {delays[-1]:.1f} ms all")
print("memory (PSS):", memory(host.process.pid), "KiB")
broker.end()
for number in range(9000):
    badged.tap()
    if number % 100 == 0:
        time.sleep(0.02)
time.sleep(3)
host.end()
broker.start()
path = subscribe("queue", "-F", "%U")
host.start()
until(lambda: len(lines(path)) >= 9000)
times = [float(line) for line in lines(path)]
print(f"from the queue file: {len(times)} events, {len(times) / (times[-1] - times[0]):.0f} a second")
print("memory (PSS) after a queue of 9000:", memory(host.process.pid), "KiB")
host.end()
if hosts:
    broker.end()
    port = free_port()
    broker = Broker("fleet", port, "allow_anonymous true")
    empty = memory(broker.process.pid)
    fleet = [Host(f"host{number}", port, os.path.join(work, "none.sock"), broker="reconnect_max = 60") for number in range(hosts)]
    until(lambda: all(os.path.exists(one.folder + "/status.json") and one.status()["connected"] for one in fleet))
    time.sleep(3)
    print(f"{hosts} hosts: {(memory(broker.process.pid) - empty) / hosts:.1f} KiB of the broker for each")
    print("memory (PSS) of one of them:", memory(fleet[0].process.pid), "KiB")
    broker.end()
    broker.start()
    begin = time.monotonic()
    until(lambda: all(one.status()["connected"] for one in fleet))
    print(f"broker killed: all are back after {time.monotonic() - begin:.1f} s")
