# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of a node of an Antelope chain and of the server of a dapp, on this computer. It checks transactions and signatures
as nodeos does, with keys and encodings of its own."""

import base64
import hashlib
import http.server
import json
import struct
import threading
import time

from wallet_keys import compressed, recover

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def base58(data):
    number, text = int.from_bytes(data, "big"), ""
    while number:
        number, digit = divmod(number, 58)
        text = ALPHABET[digit] + text
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + text


def unbase58(text, count):
    number = 0
    for character in text:
        number = number * 58 + ALPHABET.index(character)
    return number.to_bytes(count, "big")


def ripemd160(data):
    return hashlib.new("ripemd160", data).digest()


def public_key(point):
    """The new form of the text, PUB_K1_."""
    key = compressed(point)
    return "PUB_K1_" + base58(key + ripemd160(key + b"K1")[:4])


def signer(digest, text):
    """The point that has made the signature; None for a wrong, high or not canonical one."""
    data = unbase58(text.removeprefix("SIG_K1_"), 69)
    signature, check = data[:65], data[65:]
    r, s = signature[1:33], signature[33:]
    canonical = all(not n[0] & 0x80 and not (n[0] == 0 and not n[1] & 0x80) for n in (r, s))
    if not text.startswith("SIG_K1_") or ripemd160(signature + b"K1")[:4] != check or not canonical:
        return None
    return recover(digest, r + s + bytes([signature[0] - 4]))


def name(text):
    value = 0
    for i, character in enumerate(text.ljust(13, ".")):
        digit = ".12345abcdefghijklmnopqrstuvwxyz".index(character)
        value = value << 5 | digit if i < 12 else value << 4 | digit
    return struct.pack("<Q", value)


class Reader:
    def __init__(self, data):
        self.data = data

    def take(self, count):
        taken, self.data = self.data[:count], self.data[count:]
        if len(taken) < count:
            raise ValueError("the transaction is too short")
        return taken

    def number(self, form):
        return struct.unpack("<" + form, self.take(struct.calcsize(form)))[0]

    def varuint(self):
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value, shift = value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value


def token_abi():
    """The ABI of a token contract with its action transfer, packed."""
    def text(string):
        return bytes([len(string)]) + string.encode()

    fields = [("from", "name"), ("to", "name"), ("quantity", "asset"), ("memo", "string")]
    struct_ = text("transfer") + text("") + bytes([len(fields)]) + b"".join(text(a) + text(b) for a, b in fields)
    action = name("transfer") + text("transfer") + text("")
    return text("eosio::abi/1.1") + b"\0" + b"\1" + struct_ + b"\1" + action + bytes(5)


class Node:
    """One account, whose permission `active` has one key, and one token. `executed` has the transfers that were made;
    `callbacks` the bodies that were posted to the dapp."""

    CHAIN = bytes([0xC4]) * 32
    BLOCK = struct.pack(">I", 0x0012ABCD) + bytes(range(4, 32))

    def __init__(self, account, point):
        self.account, self.point = account, point
        self.forget()
        node = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, answer = node.answer(self.path, json.loads(body or b"{}"))
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def forget(self):
        """Forgets what was done."""
        self.balance = 100_000
        self.executed, self.refused, self.callbacks = [], [], []

    def answer(self, path, question):
        match path.rsplit("/", 1)[-1]:
            case "callback":
                self.callbacks.append(question)
                return 200, {"code": 0}
            case "get_info":
                now = time.strftime("%Y-%m-%dT%H:%M:%S.000", time.gmtime())
                return 200, {"chain_id": self.CHAIN.hex(), "head_block_time": now, "last_irreversible_block_id": self.BLOCK.hex()}
            case "get_account":
                keys = [{"key": public_key(self.point), "weight": 1}]
                active = {"perm_name": "active", "parent": "owner", "required_auth": {"threshold": 1, "keys": keys}}
                return 200, {"account_name": question["account_name"], "permissions": [active]}
            case "get_raw_abi":
                abi = token_abi()
                return 200, {"abi_hash": hashlib.sha256(abi).hexdigest(), "abi": base64.b64encode(abi).decode()}
            case "get_currency_stats":
                return 200, {"EOS": {"supply": "10.0000 EOS"}}
            case "get_currency_balance":
                return 200, [f"{self.balance // 10000}.{self.balance % 10000:04} EOS"]
            case "push_transaction":
                try:
                    return 202, self.push(question)
                except ValueError as error:
                    self.refused.append(str(error))
                    return 500, {"code": 500, "message": "Internal Service Error", "error": {
                        "code": 3040000, "name": "transaction_exception", "what": str(error), "details": []}}
        return 404, {"code": 404, "message": "Unknown Endpoint", "error": {"code": 0, "name": "x", "what": "x", "details": []}}

    def push(self, question):
        packed = bytes.fromhex(question["packed_trx"])
        reader = Reader(packed)
        if not time.time() < reader.number("I") <= time.time() + 3600:
            raise ValueError("expired transaction")
        if (reader.number("H"), reader.take(4)) != (struct.unpack(">I", self.BLOCK[:4])[0] & 0xFFFF, self.BLOCK[8:12]):
            raise ValueError("the reference block does not match")
        if (reader.varuint(), reader.take(1), reader.varuint(), reader.varuint()) != (0, b"\0", 0, 0):
            raise ValueError("limits, a delay, or context-free actions")
        digest = hashlib.sha256(self.CHAIN + packed + bytes(32)).digest()
        if [signer(digest, text) for text in question["signatures"]] != [self.point]:
            raise ValueError("the signature is wrong")
        transfers = []
        for _ in range(reader.varuint()):
            if (reader.take(8), reader.take(8), reader.varuint()) != (name("eosio.token"), name("transfer"), 1):
                raise ValueError("another action, or not one authority")
            if (reader.take(8), reader.take(8)) != (name(self.account), name("active")):
                raise ValueError("missing authority")
            data = Reader(reader.take(reader.varuint()))
            sender, receiver, amount, symbol = data.take(8), data.take(8), data.number("q"), data.take(8)
            memo = data.take(data.varuint()).decode()
            if sender != name(self.account) or symbol != b"\4EOS\0\0\0\0" or data.data or not 0 < amount <= self.balance:
                raise ValueError("a wrong transfer")
            transfers.append((receiver, amount, memo))
        if reader.varuint() != 0 or reader.data:
            raise ValueError("bytes behind the transaction")
        self.balance -= sum(amount for _, amount, _ in transfers)
        self.executed += transfers
        return {"transaction_id": hashlib.sha256(packed).hexdigest(), "processed": {"receipt": {"status": "executed"}}}

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
