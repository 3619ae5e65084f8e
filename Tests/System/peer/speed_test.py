# SPDX-License-Identifier: GPL-3.0-or-later
"""badged and AusweisApp2 authenticate in turns: one card, one eID-Server, one run. Fails when badged is slower. Called by
run.sh."""

import statistics
import sys
import time

import programs
from check import Check

PIN = "123456"
TURNS, RUNS = 4, 10


def measure(terminal, card, server):
    """Milliseconds of a RUN_AUTH with a client that answers at once: in all, of the card, of the server without TLS."""
    before = card.state()["busyMicroseconds"]
    begin = time.monotonic()
    last, _ = terminal.authenticate(server.url({}), {"ENTER_PIN": [PIN]})
    total = (time.monotonic() - begin) * 1000
    inside = (card.state()["busyMicroseconds"] - before) / 1000
    if not last.get("result", {}).get("major", "").endswith("#ok"):
        raise RuntimeError(f"{terminal.name} does not authenticate: {last}")
    return total, inside, server.report()["busyMicroseconds"] / 1000


def main():
    binaries, folder = sys.argv[1:3]
    server = programs.EIDServer(f"{binaries}/badged-eidserver", folder)
    card = programs.Card(f"{binaries}/badged-virtual-card", folder, {})
    starts = [lambda: programs.start_badged(f"{binaries}/badged", folder, server.roots),
              lambda: programs.start_peer(folder, 24727, server.roots)]
    print(f"RUN_AUTH in turns, {TURNS} of {RUNS} each", flush=True)
    figures = {}
    for turn in range(TURNS):
        # Whoever comes first finds the processors in another state: each does, as often.
        for start in starts if turn % 2 == 0 else reversed(starts):
            terminal = start()
            terminal.wait_for_card(True)
            # The first one looks for readers, loads libraries and fills caches; it is not what is compared.
            for number in range(RUNS + 1):
                row = measure(terminal, card, server)
                if number:
                    figures.setdefault(terminal.name, []).append(row)
            terminal.stop()
    card.remove()
    server.stop()
    medians = {}
    for name, rows in figures.items():
        total, inside, serving = (statistics.median(column) for column in zip(*rows))
        medians[name] = total
        print(f"  {name}: median {total:.1f} ms, smallest {min(row[0] for row in rows):.1f}; of that the card {inside:.1f} "
              f"ms, the server {serving:.1f} ms without TLS (n={len(rows)})", flush=True)
    ratio = medians["badged"] / medians["AusweisApp2"]
    print(f"ratio {ratio:.3f}", flush=True)
    Check.that("badged is faster than AusweisApp2", ratio < 1, medians)
    Check.end()


main()
