# SPDX-License-Identifier: GPL-3.0-or-later
"""badged and AusweisApp2 in turns, with one card and one eID-Server. Started by run.sh.

Each line `ratio ROW NUMBER` is a figure of badged divided by that of AusweisApp2. Tests/Benchmarks reads and judges them.
"""

import contextlib
import os
import statistics
import sys
import time

import cards
import programs
from harness import Client, check, finish
from programs import PIN
from websocket import WebSocket

NEW = "654321"
TURNS, RUNS, STARTS, ROUND_TRIPS = 4, 10, 20, 2000
# Seconds between two workflows, of both programs: nobody authenticates twice at once.
PAUSE = 0.1
PORT = 24727
BADGED, PEER = "badged", "AusweisApp2"


def start_time(name, binaries, folder):
    """Milliseconds from exec to the first answer to GET_INFO."""
    begin = time.monotonic()
    if name == BADGED:
        daemon, path = programs.launch_badged(f"{binaries}/badged", folder)
        process, connect = daemon.process, lambda: Client(path)
    else:
        process, connect = programs.launch_peer(folder, PORT), lambda: WebSocket(PORT)
    while True:
        try:
            client = connect()
            break
        except (ConnectionRefusedError, FileNotFoundError):
            time.sleep(0.0002)
    client.send(cmd="GET_INFO")
    while client.next().get("msg") != "INFO":
        pass
    milliseconds = (time.monotonic() - begin) * 1000
    client.close()
    cards.stop(process)
    return milliseconds


def memory(process):
    """Proportional share of resident memory (PSS) in MB."""
    with open(f"/proc/{process.pid}/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


@contextlib.contextmanager
def one_processor(process):
    """Keeps the process and this client on one processor: waking another one can take longer than the answer."""
    everywhere = os.sched_getaffinity(0)
    for processors in ({min(everywhere)}, everywhere):
        for task in (0, *map(int, os.listdir(f"/proc/{process.pid}/task"))):
            # A thread may end at any moment.
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(task, processors)
        if processors != everywhere:
            yield


def round_trip(terminal):
    """Microseconds from GET_INFO to INFO, median. The bytes are prepared, so that little of the time is our own."""
    question = b'{"cmd":"GET_INFO"}'
    if terminal.name == BADGED:
        question += b"\n"
    else:
        # A text frame whose mask is 0.
        question = bytes([0x81, 0x80 | len(question), 0, 0, 0, 0]) + question
    terminal.client.send(cmd="GET_INFO")
    while terminal.next().get("msg") != "INFO":
        pass
    times = []
    with one_processor(terminal.process):
        for _ in range(ROUND_TRIPS):
            begin = time.perf_counter()
            terminal.client.socket.sendall(question)
            answer = terminal.client.socket.recv(65536)
            times.append((time.perf_counter() - begin) * 1e6)
            if b"INFO" not in answer:
                raise RuntimeError(f"{terminal.name} answered {answer}")
    return statistics.median(times)


def change_pin(terminal, pins):
    """Milliseconds of a RUN_CHANGE_PIN, with a client that answers at once."""
    begin = time.monotonic()
    _, last = terminal.change_pin(*pins)
    milliseconds = (time.monotonic() - begin) * 1000
    if last.get("success") is not True:
        raise RuntimeError(f"{terminal.name} does not change the PIN: {last}")
    pins.reverse()
    return milliseconds


def authenticate(terminal, server):
    """Milliseconds of a RUN_AUTH, with a client that answers at once."""
    begin = time.monotonic()
    last = terminal.authenticate(server.url({}), {"ENTER_PIN": PIN})
    milliseconds = (time.monotonic() - begin) * 1000
    if not last.get("result", {}).get("major", "").endswith("#ok"):
        raise RuntimeError(f"{terminal.name} does not authenticate: {last}")
    return milliseconds


def main():
    binaries, folder = sys.argv[1:3]
    server = programs.EIDServer(f"{binaries}/badged-eidserver", folder)
    starts = {BADGED: lambda: programs.start_badged(f"{binaries}/badged", folder, server.roots),
              PEER: lambda: programs.start_peer(folder, PORT, server.roots)}
    rows = {}  # (row, unit): {program: [figure]}

    def add(row, unit, name, value):
        rows.setdefault((row, unit), {}).setdefault(name, []).append(value)

    for _ in range(STARTS):
        for name in starts:
            add("Start", "ms", name, start_time(name, binaries, folder))
    for turn in range(TURNS):
        # Each program is the first as often as the other.
        for name in starts if turn % 2 == 0 else reversed(starts):
            terminal = starts[name]()
            card = cards.Card(f"{binaries}/badged-virtual-card", folder, {})
            terminal.wait_for_card(True)
            add("Memory", "MB", name, memory(terminal.process))
            add("RoundTrip", "µs", name, round_trip(terminal))
            pins = [PIN, NEW]
            for row, measure in [("Change", lambda: change_pin(terminal, pins)),
                                 ("Auth", lambda: authenticate(terminal, server))]:
                # The first run loads libraries and fills caches.
                measure()
                for _ in range(RUNS):
                    time.sleep(PAUSE)
                    add(row, "ms", name, measure())
                if pins[0] != PIN:
                    change_pin(terminal, pins)
            card.remove()
            terminal.stop()
    server.stop()
    for (row, unit), figures in rows.items():
        # The lower quartile: other work of the machine disturbs it less than the median.
        typical = {name: statistics.quantiles(values, n=4)[0] for name, values in figures.items()}
        print(f"  {row}: " + ", ".join(f"{name} {value:.1f} {unit}" for name, value in typical.items()), flush=True)
        ratio = typical[BADGED] / typical[PEER]
        print(f"ratio peer{row} {ratio:.3f}", flush=True)
        check(f"badged needs less than AusweisApp2: {row}", ratio < 1, typical)
    finish()


main()
