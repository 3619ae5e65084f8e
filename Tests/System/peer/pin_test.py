# SPDX-License-Identifier: GPL-3.0-or-later
"""AusweisApp2 and badged change PINs on our virtual card, through a real pcscd and vpcd. Started by run.sh."""

import sys

from cards import Card
from harness import check, finish
from programs import CAN, PIN, start_badged, start_peer

PUK, NEW = "9876543210", "246802"

# name, the card, the answers, the questions that must come with the retry counter that they show
DIALOGUES = [
    ("right PIN", {}, {"old": PIN}, [("ENTER_PIN", 3), ("ENTER_NEW_PIN", 3)]),
    ("two wrong PINs, then CAN and PIN", {}, {"old": ["000000", "111111", PIN], "ENTER_CAN": CAN},
     [("ENTER_PIN", 3), ("ENTER_PIN", 2), ("ENTER_CAN", 1), ("ENTER_PIN", 1), ("ENTER_NEW_PIN", 3)]),
    ("suspended card, a wrong CAN, then CAN and PIN", {"retryCounter": 1},
     {"old": PIN, "ENTER_CAN": ["999999", CAN]},
     [("ENTER_CAN", 1), ("ENTER_CAN", 1), ("ENTER_PIN", 1), ("ENTER_NEW_PIN", 3)]),
    ("blocked card, PUK, then PIN", {"retryCounter": 0, "pukCounter": 7}, {"old": PIN, "ENTER_PUK": PUK},
     [("ENTER_PUK", 0), ("ENTER_PIN", 3), ("ENTER_NEW_PIN", 3)]),
    ("transport PIN", {"transportPin": "54321"}, {"old": "54321"}, [("ENTER_PIN", 3), ("ENTER_NEW_PIN", 3)]),
]


def show(asked, last):
    print("  " + " → ".join(f"{question} ({tries})" for question, tries in asked) + f" → {last}", flush=True)


def dialogue(terminal, new_card, name, description, answers, questions):
    print(f"{terminal.name}: {name}", flush=True)
    card = new_card(description)
    terminal.wait_for_card(True)
    puks = card.state()["pukCounter"]
    if "transportPin" in description:
        check("the card is in transport state at first", card.state()["transport"] is True, card.state())
    asked, last = terminal.change_pin(new=NEW, **answers)
    show(asked, last)
    state = card.state()
    check("it asks what the counter of the card demands", asked == questions, asked)
    check("it reports success", last.get("success") is True, last)
    check("the card has three tries", state["retryCounter"] == 3, state)
    used = sum(question == "ENTER_PUK" for question, _ in questions)
    check(f"the card has lost {used} uses of the PUK", state["pukCounter"] == puks - used, state)
    check("the card is not in transport state", state["transport"] is False, state)

    # Now the card must refuse the old PIN, which costs a try, and accept the new one.
    asked, last = terminal.change_pin([description.get("transportPin", PIN), NEW], "135791")
    show(asked, last)
    check("the old PIN is refused, the new one accepted",
          asked == [("ENTER_PIN", 3), ("ENTER_PIN", 2), ("ENTER_NEW_PIN", 3)] and last.get("success") is True,
          (asked, last))
    check("the card has three tries again", card.state()["retryCounter"] == 3, card.state())
    card.remove()
    terminal.wait_for_card(False)


def three_wrong_pins(terminal, new_card):
    print(f"{terminal.name}: three wrong PINs", flush=True)
    card = new_card({})
    terminal.wait_for_card(True)
    asked, last = terminal.change_pin(["000000", "111111", "222222"], [], ENTER_CAN=CAN)
    show(asked, last)
    check("it ends at the PUK", asked[-1:] == [("ENTER_PUK", 0)], asked)
    check("it reports no success", last.get("success") is False, last)
    check("the card is blocked", card.state()["retryCounter"] == 0, card.state())
    card.remove()
    terminal.wait_for_card(False)


def main():
    binaries, folder = sys.argv[1:3]

    def new_card(description):
        return Card(f"{binaries}/badged-virtual-card", folder, description)

    for start in (lambda: start_peer(folder), lambda: start_badged(f"{binaries}/badged", folder)):
        terminal = start()
        for entry in DIALOGUES:
            dialogue(terminal, new_card, *entry)
        three_wrong_pins(terminal, new_card)
        terminal.stop()
    finish()


main()
