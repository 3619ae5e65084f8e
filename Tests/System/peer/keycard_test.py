# SPDX-License-Identifier: GPL-3.0-or-later
"""The Keycard applet of the vendor, unmodified, behind a real pcscd: our card layer and badged use it. Started by run.sh.

$KEYCARD_LAB is the folder whose `jars` has the applet and the simulator of Java cards. $KEYCARD_APPLET is the folder of the
tool that runs them; docs/testing.md, The Keycard applet.
"""

import os
import re
import subprocess
import sys

LAB, TOOL = os.environ.get("KEYCARD_LAB"), os.environ.get("KEYCARD_APPLET")
SUITES = ["CardTests.DialogueTests", "CardTests.FaultMatrixTests", "SystemTests.RealServices/KeycardTests"]


def missing():
    """What this machine lacks, in words; None if the applet can run."""
    if not LAB or not TOOL:
        return "KEYCARD_LAB (folder with jars/jcardsim.jar and jars/keycard-3.1.jar) and KEYCARD_APPLET (folder of the tool)"
    files = [f"{LAB}/jars/jcardsim.jar", f"{LAB}/jars/keycard-3.1.jar", f"{TOOL}/run.sh", f"{TOOL}/kccard.py"]
    return next((f"the file {file}" for file in files if not os.access(file, os.R_OK)), None)


def card_layer(card, root):
    """Our card layer in Swift: its dialogues, each fault at each of their commands, and the whole life through pcscd."""
    for suite in SUITES:
        card.remove()
        card.clear()
        environment = {**os.environ, "BADGED_CARD_PROCESS": card.path, "BADGED_SYSTEM_TESTS": "1"}
        done = subprocess.run(["swift", "test", "--skip-build", "--no-parallel", "--filter", suite], cwd=root,
                              env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, errors="replace", check=False)
        tests = re.search(r"Test run with (\d+) tests? .*passed", done.stdout)
        check(f"{suite} passes with the applet", done.returncode == 0 and tests and int(tests[1]) > 0, done.stdout[-8000:])


def reader_facts(card, wallet):
    """The members of READER for the applet. Recognition costs no try and no pairing slot."""
    uid = key_uid(WORDS)
    for name, make, expected in [
            ("a new card", lambda: card.fresh(), (None, False, None)),
            ("a card with PIN and PUK", lambda: card.init(), ("3.1", True, None)),
            ("a card with keys", lambda: card.load(words=WORDS), ("3.1", True, uid))]:
        card.remove()
        wallet.card(present=False)
        make()
        card.insert()
        told = wallet.card()
        facts = (told.get("version"), told.get("initialised"), told.get("keyUID"))
        check(f"READER tells {name}", told["kind"] == "keycard" and facts == expected, told)
        check("it does not know the counters without a pairing", told["pinTries"] is None and told["pukTries"] is None, told)
    card.clear()
    for fault in ("remove", "remove-after", "garbage-after", "flip", "sw-after"):
        card.remove()
        wallet.card(present=False)
        card.fault(3, fault)
        card.insert()
        if fault.startswith("remove"):
            while card.status()["inserted"]:
                pass
        else:
            wallet.card()
            card.remove()
        wallet.card(present=False)
        card.clear()
        card.insert()
        told = wallet.keycard()
        check(f"after {fault} while badged recognises it, the card is told at the next insertion", told.get("keyUID") == uid, told)
        inside = card.peek()
        tries = inside["pin"]["tries"], inside["duressPin"]["tries"], inside["puk"]["tries"]
        check("no try is lost, and no pairing slot used", tries == (3, 3, 5) and inside["freeSlots"] == 5, inside)


def tries(card):
    inside = card.peek()
    return inside["pin"]["tries"], inside["puk"]["tries"]


def new_card(card, wallet, fault=None):
    """Puts a card that is new from the factory into the reader. With `fault` it leaves after the first command with this
    instruction, whose answer is lost, and comes back."""
    card.remove()
    wallet.card(present=False)
    card.fresh()
    card.clear()
    if fault is not None:
        card.fault(1, "remove-after", 600, ins=fault)
    card.insert()
    wallet.card()


def lost_answers(card, wallet):
    """The card leaves in SETUP_DEVICE after it has run a command. badged finds out how far the card came."""
    for what, instruction in (("INIT", 0xFE), ("PAIR", 0x12), ("GENERATE MNEMONIC", 0xD2), ("LOAD KEY", 0xD0), ("EXPORT KEY", 0xC2)):
        new_card(card, wallet, instruction)
        messages, words = wallet_workflows.set_up(wallet)
        check(f"the answer to {what} is lost", len(card.fired()) == 1, card.fired())
        entity = wallet_workflows.last(messages)
        check("SETUP_DEVICE goes on with the card", isinstance(entity, dict) and entity["keyUID"] == key_uid(words), messages[-2:])
        check("no try is lost", tries(card) == (3, 5), card.peek())


reason = missing()
if reason:
    print(f"  keycard cannot run here: it needs {reason}", flush=True)
    sys.exit(77)
sys.path.insert(0, TOOL)

import antelope  # noqa: E402
import wallet_operations  # noqa: E402
import wallet_workflows  # noqa: E402
from harness import check, finish  # noqa: E402
from kccard import Card  # noqa: E402
from wallet import WORDS, Wallet, start_badged  # noqa: E402
from wallet_keys import derive, key_uid, times  # noqa: E402

binaries, folder = sys.argv[1:3]
node = antelope.Node(wallet_operations.ACCOUNT, times(derive(WORDS, wallet_operations.PATH)))
with Card(port=35963, removed=True) as applet:
    card_layer(applet, os.path.abspath(os.path.join(os.path.dirname(__file__), "../../..")))
    daemon, path = start_badged(f"{binaries}/badged", folder, [applet.status()["ca"]], node)
    client = Wallet(path)
    reader_facts(applet, client)
    new_card(applet, client)
    wallet_workflows.all_of_them(client, "applet 3.1", lambda: tries(applet))
    # The card has WORDS now.
    wallet_operations.all_of_them(client, "applet 3.1", node, lambda: tries(applet))
    lost_answers(applet, client)
    client.close()
    code, _ = daemon.end()
    check("badged ends without an error", code == 0, daemon.log())
    check("the log has no word of the wallet", not any(word in daemon.log() for word in WORDS.split()), daemon.log())
node.stop()
finish()
