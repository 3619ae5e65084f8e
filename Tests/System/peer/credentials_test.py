# SPDX-License-Identifier: GPL-3.0-or-later
"""credentials_test.py BIN WORK: badged reads cards of others, and readers of others read our virtual card. PKOC_PEERS is a
folder with the programs credential-nfc and reader-nfc.

credential-nfc --peer p1|p3 --stdin is a card in a reader of vpcd. It prints `ready POINT`, and obeys `insert`, `remove` and
`quit`. reader-nfc --peer p1|p6 --reader NAME reads a card once through PC/SC, and prints `granted POINT` or `failed`.
docs/testing.md, AusweisApp2 as the judge.
"""
import json
import os
import subprocess
import sys

from cards import READER, Card
from harness import Client, Daemon, check, finish

binaries, work = sys.argv[1:]
path, configuration = os.path.join(work, "credentials.sock"), os.path.join(work, "credentials.conf")
with open(configuration, "w", encoding="utf-8") as file:
    file.write("[nfc]\nenabled=no\n[ble]\nenabled=no\n")
daemon = Daemon(f"{binaries}/badged", ["--socket", path, "--config", configuration], work)
client = Client(path)
while client.wait_for("READER")["name"] != READER:
    pass
client.ask("CREDENTIALS", cmd="START_CREDENTIALS")

for peer in ("p1", "p3"):
    with subprocess.Popen([os.path.join(os.environ["PKOC_PEERS"], "credential-nfc"), "--peer", peer, "--stdin"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as card:
        try:
            while not (line := card.stdout.readline()).startswith("ready "):
                if not line:
                    sys.exit(f"{peer}: credential-nfc has ended")
            point = line.split()[1].lower()
            transactions = set()
            for tap in range(20):
                if tap > 0:
                    card.stdin.write("remove\n")
                    while client.wait_for("READER").get("card") is not None:
                        pass
                    card.stdin.write("insert\n")
                told = client.wait_for("CREDENTIAL")
                fits = told["verified"] and told["publicKey"] == point and told["numbers"]["bits256"] == point[2:66]
                if tap == 0 or not fits:
                    check(f"{peer}: the key of the card is read", fits, told)
                transactions.add(told.get("transaction"))
            check(f"{peer}: 20 taps have 20 transactions", len(transactions) == 20, transactions)
            card.stdin.write("quit\n")
        finally:
            card.kill()
    while client.wait_for("READER").get("card") is not None:
        pass

# badged reports when pcscd has a card. It only recognises the card, before the reader of others
# reads it.
client.ask("CREDENTIALS", cmd="STOP_CREDENTIALS")
here = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(here, "../../Vectors/pkoc-nfc.json"), encoding="utf-8") as file:
    own = json.load(file)["own"]["card"]
for reader in ("p1", "p6"):
    for signature, expected in (("right", ["granted", own["public"]]), ("wrong", ["failed"])):
        virtual = Card(f"{binaries}/badged-virtual-card", work,
                       {"kind": "pkoc", "key": own["private"], "signature": signature})
        while client.wait_for("READER").get("card") is None:
            pass
        program = [os.path.join(os.environ["PKOC_PEERS"], "reader-nfc"), "--peer", reader, "--reader", READER]
        words = subprocess.run(program, stdout=subprocess.PIPE, text=True, check=False).stdout.split()
        check(f"{reader} reads our card with a {signature} signature: {expected[0]}", words[:len(expected)] == expected,
              words)
        check("our card has signed", virtual.state()["signatures"] == 1)
        virtual.remove()
        while client.wait_for("READER").get("card") is not None:
            pass

client.close()
code, _ = daemon.end()
check("badged ends without an error", code == 0, daemon.log())
finish()
