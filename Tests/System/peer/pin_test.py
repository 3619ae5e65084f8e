# SPDX-License-Identifier: GPL-3.0-or-later
"""AusweisApp2 changes PINs on our virtual card, through real pcscd and vpcd. Called by run.sh."""

import statistics
import sys
import time

import programs
from check import Check

PIN, CAN, PUK, NEW = "123456", "500540", "9876543210", "246802"

# name, the card, what is typed, the questions that must come (with the tries left that they show)
DIALOGUES = [
    ("right PIN", {}, {"ENTER_PIN": [PIN], "ENTER_NEW_PIN": [NEW]}, [("ENTER_PIN", 3), ("ENTER_NEW_PIN", 3)]),
    ("two wrong PINs, then CAN and PIN", {},
     {"ENTER_PIN": ["000000", "111111", PIN], "ENTER_CAN": [CAN], "ENTER_NEW_PIN": [NEW]},
     [("ENTER_PIN", 3), ("ENTER_PIN", 2), ("ENTER_CAN", 1), ("ENTER_PIN", 1), ("ENTER_NEW_PIN", 3)]),
    ("suspended card, a wrong CAN, then CAN and PIN", {"retryCounter": 1},
     {"ENTER_CAN": ["999999", CAN], "ENTER_PIN": [PIN], "ENTER_NEW_PIN": [NEW]},
     [("ENTER_CAN", 1), ("ENTER_CAN", 1), ("ENTER_PIN", 1), ("ENTER_NEW_PIN", 3)]),
    ("blocked card, PUK, then PIN", {"retryCounter": 0, "pukCounter": 7},
     {"ENTER_PUK": [PUK], "ENTER_PIN": [PIN], "ENTER_NEW_PIN": [NEW]},
     [("ENTER_PUK", 0), ("ENTER_PIN", 3), ("ENTER_NEW_PIN", 3)]),
    ("transport PIN", {"transportPin": "54321"},
     {"ENTER_PIN": ["54321"], "ENTER_NEW_PIN": [NEW]}, [("ENTER_PIN", 3), ("ENTER_NEW_PIN", 3)]),
]


def dialogue(terminal, new_card, name, description, answers, questions):
    print(f"{terminal.name}: {name}", flush=True)
    card = new_card(description)
    terminal.wait_for_card(True)
    puks = card.state()["pukCounter"]
    if "transportPin" in description:
        Check.that("the card is in transport state at first", card.state()["transport"] is True, card.state())
    asked, last = terminal.change_pin(answers)
    print("  " + " → ".join(f"{question} ({tries})" for question, tries in asked) + f" → {last}")
    state = card.state()
    Check.that("it asks what the card's counter demands", asked == questions, asked)
    Check.that("it reports success", last.get("success") is True, last)
    Check.that("the card has three tries", state["retryCounter"] == 3, state)
    used = sum(question == "ENTER_PUK" for question, _ in questions)
    Check.that(f"the card has lost {used} of its uses of the PUK", state["pukCounter"] == puks - used, state)
    Check.that("the card is not in transport state", state["transport"] is False, state)

    # The old PIN must be refused now and cost a try, the new one must open the card.
    old = description.get("transportPin", PIN)
    asked, last = terminal.change_pin({"ENTER_PIN": [old, NEW], "ENTER_NEW_PIN": ["135791"]})
    print("  " + " → ".join(f"{question} ({tries})" for question, tries in asked) + f" → {last}")
    Check.that("the old PIN is refused, the new one accepted",
               asked == [("ENTER_PIN", 3), ("ENTER_PIN", 2), ("ENTER_NEW_PIN", 3)] and last.get("success") is True,
               (asked, last))
    Check.that("the card has three tries again", card.state()["retryCounter"] == 3, card.state())
    card.remove()
    terminal.wait_for_card(False)


def wrong_pin_stays_wrong(terminal, new_card):
    print(f"{terminal.name}: three wrong PINs", flush=True)
    card = new_card({})
    terminal.wait_for_card(True)
    asked, last = terminal.change_pin({"ENTER_PIN": ["000000", "111111", "222222"], "ENTER_CAN": [CAN]})
    print("  " + " → ".join(f"{question} ({tries})" for question, tries in asked) + f" → {last}")
    Check.that("it ends at the PUK", asked[-1:] == [("ENTER_PUK", 0)], asked)
    Check.that("it reports no success", last.get("success") is False, last)
    Check.that("the card is blocked", card.state()["retryCounter"] == 0, card.state())
    card.remove()
    terminal.wait_for_card(False)


def compare(starts, new_card, blocks, runs):
    """Both programs change the PIN of one card in turns; milliseconds, and those that the card did not need."""
    print(f"RUN_CHANGE_PIN side by side, card known, {blocks} turns of {runs}", flush=True)
    card = new_card({})
    pins = [PIN, NEW]
    figures = {}
    for _ in range(blocks):
        for start in starts:
            terminal = start()
            terminal.wait_for_card(True)
            # The first workflow looks for readers and cards; it is not what is compared.
            for number in range(runs + 1):
                before = card.state()["busyMicroseconds"]
                begin = time.monotonic()
                _, last = terminal.change_pin({"ENTER_PIN": [pins[0]], "ENTER_NEW_PIN": [pins[1]]})
                total = (time.monotonic() - begin) * 1000
                inside = (card.state()["busyMicroseconds"] - before) / 1000
                if last.get("success") is not True:
                    Check.that(f"{terminal.name} changes the PIN", False, last)
                    return
                pins.reverse()
                if number:
                    figures.setdefault(terminal.name, []).append((total, total - inside))
            terminal.stop()
    card.remove()
    for name, pairs in figures.items():
        total, beyond = (statistics.median(column) for column in zip(*pairs))
        print(f"  {name}: median {total:.1f} ms, beyond the card {beyond:.1f} ms (n={len(pairs)})")


def main():
    binaries, folder = sys.argv[1:3]

    def new_card(description):
        return programs.Card(f"{binaries}/badged-virtual-card", folder, description)

    def peer():
        return programs.start_peer(folder, 24727)

    def ours():
        return programs.start_badged(f"{binaries}/badged", folder)

    for start in (peer, ours):
        terminal = start()
        for entry in DIALOGUES:
            dialogue(terminal, new_card, *entry)
        wrong_pin_stays_wrong(terminal, new_card)
        terminal.stop()
    compare([peer, ours], new_card, 4, 10)
    Check.end()


main()
