#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repeats the dialogues of Tests/Vectors/mpin-apache.json, recorded from Apache's servers, with the double in server.py.

Each answer of the double must have the recorded status, and no member that the recorded answer lacks or has in another type.
"""

import http.client
import json
import os
import re
import threading
import urllib.parse

import bn254cx as curve
import mpin
import server

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../Vectors/mpin-apache.json")
# The parts of the recorded servers that badged does not use, so that the double does not have them.
UNUSED = ("/rps/access", "/storage/")
# What a relying party answers here is its own affair, but for the times of a one-time code.
OWN_ANSWERS = ("/mpinAuthenticate",)


class User:
    """A client's side of the recorded dialogues."""

    def __init__(self):
        self.identity = self.ott = self.token = self.permit = self.x = self.y = None
        self.login = self.number = self.logout = None
        self.shares, self.permits = [], []

    def request(self, method, path, query, body, secrets):
        """The recorded request as this user sends it to the double."""
        if path.startswith("/rps/user/") or path.startswith("/rps/signature/") or path.startswith("/rps/timePermit/"):
            path = "/".join(path.split("/")[:3] + [self.identity])
        if path in ("/clientSecret", "/timePermit"):
            path = "/dta" + path
        if "regOTT" in query:
            query["regOTT"] = self.ott
        if "hash_mpin_id" in query:
            query["hash_mpin_id"] = mpin.sha256(bytes.fromhex(self.identity)).hex()
        if path == "/rps/timePermit/" + str(self.identity):
            self.permits = []
        if "userId" in body:
            body["userId"] = body["userId"].replace("+activation-link", "+link")
        if "regOTT" in body:
            body["regOTT"] = self.ott
        if path == "/rps/pass1":
            self.x = mpin.random_scalar()
            u, ut = mpin.pass_one(self.x, bytes.fromhex(self.identity), int(secrets["day"]))
            body.update(mpin_id=self.identity, U=curve.encode(u).hex(), UT=curve.encode(ut).hex())
        if path == "/rps/pass2":
            v = mpin.pass_two(self.x, self.y, self.token, secrets["PIN as number"], bytes.fromhex(self.identity), self.permit)
            body.update(mpin_id=self.identity, V=curve.encode(v).hex(), WID=self.number if body["WID"] != "0" else "0")
        if "mpinResponse" in body:
            body["mpinResponse"] = self.login
        if "sessionToken" in body:
            body = self.logout
        return method, path + ("?" + urllib.parse.urlencode(query) if query else ""), body

    def receive(self, answer, pin):
        if "mpinId" in answer:
            self.identity, self.ott, self.shares = answer["mpinId"], answer["regOTT"], []
        for name in ("clientSecretShare", "clientSecret"):
            if name in answer:
                self.shares.append(curve.decode(bytes.fromhex(answer[name])))
        if len(self.shares) == 2:
            self.token = mpin.token(curve.add(*self.shares), pin, bytes.fromhex(self.identity))
            self.shares = []
        if "timePermit" in answer:
            self.permits.append(curve.decode(bytes.fromhex(answer["timePermit"])))
        if len(self.permits) == 2:
            self.permit = curve.add(*self.permits)
        if "y" in answer:
            self.y = int(answer["y"], 16)
        if "authOTT" in answer:
            self.login = answer
        self.number = answer.get("accessNumber", self.number)
        self.logout = answer.get("logoutData", self.logout)


def main():
    listener = server.Listener(0)
    threading.Thread(target=listener.serve_forever, daemon=True).start()

    def send(method, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", listener.server_address[1])
        connection.request(method, path, json.dumps(body) if body else None)
        response = connection.getresponse()
        text = response.read()
        return response.status, json.loads(text) if text else ""

    with open(PATH, encoding="utf-8") as file:
        dialogues = json.load(file)["dialogues"]
    user, compared = User(), 0
    for dialogue in dialogues:
        secrets = (dialogue.get("client's secrets") or [{}])[0]
        named = re.search(r"PIN (\d+)$", dialogue["what"])
        pin = int(named[1]) if named else None
        if dialogue["what"].startswith("after the link was followed"):
            send("POST", "/lab/activate/" + user.identity, None)
        for exchange in dialogue["exchanges"]:
            address = urllib.parse.urlsplit(exchange["url"])
            if address.path.startswith(UNUSED) or "redirectURL" in exchange["answer"]:
                continue
            if address.path == "/mpinAuthenticate" and "browser" in dialogue["what"]:
                continue
            if address.path == "/rps/user" and "userId" in exchange["body"] and user.identity:
                user = User()
            if "day" in secrets:
                secrets["day"] = listener.servers.day()
            request = user.request(
                exchange["method"], address.path, dict(urllib.parse.parse_qsl(address.query)), dict(exchange.get("body") or {}),
                secrets)
            status, answer = send(*request)
            where = "%s: %s %s" % (dialogue["what"], exchange["method"], address.path[:40])
            if status != exchange["status"]:
                raise SystemExit("%s: %d, recorded %d" % (where, status, exchange["status"]))
            recorded = exchange["answer"]
            if isinstance(answer, dict) and isinstance(recorded, dict) and address.path not in OWN_ANSWERS:
                for name, value in answer.items():
                    if type(value) is not type(recorded.get(name)):
                        raise SystemExit("%s: %s is %r, recorded %r" % (where, name, value, recorded.get(name)))
            if isinstance(answer, dict):
                user.receive(answer, pin)
            compared += 1
    if compared < 40:
        raise SystemExit("only %d answers were compared" % compared)
    print(compared, "answers compared")


main()
