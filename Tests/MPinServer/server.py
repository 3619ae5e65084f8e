#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""M-Pin servers for tests: two trust authorities, a login server and a relying party in one process. A double.

server.py [PORT]: listens on 127.0.0.1 and prints "ready PORT". It keeps everything in memory and ends with its input, or
by SIGTERM with --stay.

The backend is http://127.0.0.1:PORT. http://127.0.0.1:PORT/fault/NAME,NAME is the same backend with faults. A name is
POINT-ACTION. Points: settings register signature secret permit storage permit2 pass1 pass2 login mobile logout. A fault
of storage, or the name storage alone, gives the settings a storage of time permits. Actions:
  NNN         this status without a body          drop        the connection ends without an answer
  hang        no answer until the client leaves   redirect    status 302
  lost        the work is done, then as hang
  huge        more bytes than a client takes      nojson      half an answer
  empty       no body                             garbage     bytes that are no text
  array       the answer in an array              foreign     absolute addresses on another host
  no-F, null-F, number-F                          member F is missing, null, 17
  zero-F, short-F, offcurve-F, letters-F          hexadecimal member F is wrong
  long-F                                          member F has 20 000 characters
With @N behind it, a fault applies to the N-th request of its point only.
mfa.py adds the service of MPinMFA.
A user's fate is in the name: NAME+POINT-NNN@... ; NAME+link@... must be activated at /lab/activate/MPINID.
GET /lab/tries tells the wrong tries of each user. GET /lab/requests?home=/fault/... lists method, path and body
of the requests of this backend.
GET /lab/spent tells the microseconds of its own work;
POST /lab/plain does none. GET /lab/arrival?home=/fault/... waits until a
request of this backend meets hang or lost.
"""

import http.server
import json
import re
import secrets
import signal
import sys
import threading
import time
import urllib.parse

import bn254cx as curve
import mfa
import mpin

HEX = "([0-9a-fA-F]+)"
MAXIMUM_TRIES = 3


class Refusal(Exception):
    def __init__(self, status, body=None):
        super().__init__(status)
        self.status, self.body = status, body


class Servers:
    """What all parties know."""

    def __init__(self):
        self.lock = threading.Lock()
        self.customer, self.community = mpin.Authority(), mpin.Authority()
        self.master = self.customer.master + self.community.master
        self.server_secret = curve.add(self.customer.server_share, self.community.server_share, curve.Fp2)
        self.app_id = secrets.token_hex(16)
        self.registrations, self.first_passes, self.proofs, self.tries = {}, {}, {}, {}
        self.mfa = mfa.Service(self, Refusal)
        self.numbers, self.sessions, self.requests, self.devices, self.hits = set(), {}, [], {}, {}
        self.arrivals, self.arrived = set(), threading.Condition()
        self.spent = 0

    def day(self):
        return int(time.time()) // 86400

    @staticmethod
    def user_of(identity):
        return json.loads(bytes.fromhex(identity))["userID"]

    @staticmethod
    def fate(user, point):
        match = re.search(r"\+%s-(\d{3})" % point, user)
        if match:
            raise Refusal(int(match[1]))

    # Login server

    def settings(self, request):
        rps = "/rps"
        return {
            "registerURL": rps + "/user", "signatureURL": rps + "/signature", "timePermitsURL": rps + "/timePermit",
            "mpinAuthServerURL": rps, "authenticateURL": "/mpinAuthenticate", "appID": self.app_id,
            "mobileAuthenticateURL": rps + "/authenticate", "certivoxURL": request.home + "/dta/",
            "timePermitsStorageURL": self.storage_url(request),
            "accessNumberUseCheckSum": True, "accessNumberDigits": 7, "cSum": 1,
            "requestOTP": False, "setDeviceName": True,
            **({"usePermits": False} if "nopermits" in request.faults else {}),
        }

    @staticmethod
    def storage_url(request):
        if not any(name.startswith("storage") for name in request.faults):
            return ""
        # This port has no TLS.
        return request.home.replace("http:", "https:" if "storage-tls" in request.faults else "http:") + "/storage"

    def stored_permit(self, request, day, digest):
        """A second share, in hexadecimal digits alone."""
        of = mpin.sha256(bytes.fromhex(digest)) if "storage-other" in request.faults else bytes.fromhex(digest)
        return curve.encode(self.community.permit_share(of, int(day))).hex().encode()

    def register(self, request, path):
        data = request.json()
        user, old = data.get("userId"), self.registrations.pop(path.strip("/"), None)
        if not user or data.get("mobile") != 1:
            raise Refusal(400)
        if old and old["regOTT"] != data.get("regOTT"):
            raise Refusal(400)
        self.fate(user, "register")
        if data.get("activateCode") == "wrong":
            raise Refusal(403)
        self.devices[user] = {name: data.get(name) for name in ("deviceName", "userData", "activateCode")}
        identity = path.strip("/") if old else json.dumps({
            "mobile": 1, "issued": "2026-11-22 08:14:38", "userID": user, "salt": secrets.token_hex(16)}).encode().hex()
        token = old["regOTT"] if old else secrets.token_hex(16)
        active = "+link" not in user or bool(data.get("activateCode"))
        self.registrations[identity] = {"regOTT": token, "active": active}
        return {"mpinId": identity, "regOTT": token, "active": active, "nowTime": "2026-11-22T09:14:38.848642",
                "expireTime": "2026-11-22T10:14:38.848642"}

    def signature(self, request, identity):
        self.fate(self.user_of(identity), "signature")
        registration = self.registrations.get(identity)
        if registration is None or registration["regOTT"] != request.query.get("regOTT"):
            self.registrations.pop(identity, None)
            raise Refusal(400)
        if not registration["active"]:
            raise Refusal(401)
        del self.registrations[identity]
        digest = mpin.sha256(bytes.fromhex(identity))
        share = curve.encode(self.customer.client_share(digest)).hex()
        return {"clientSecretShare": share, "params": "hash_mpin_id=%s&app_id=%s" % (digest.hex(), self.app_id)}

    def permit(self, request, identity):
        self.fate(self.user_of(identity), "permit")
        digest, day = mpin.sha256(bytes.fromhex(identity)), self.day()
        return {"date": day, "timePermit": curve.encode(self.customer.permit_share(digest, day)).hex(),
                "storageId": digest.hex(), "signature": digest.hex(), "version": "0.3"}

    def pass_one(self, request):
        data, y = request.json(), mpin.random_scalar()
        self.first_passes[data["mpin_id"]] = data["U"], data["UT"], y
        return {"y": "%064x" % y, "pass": 1}

    def pass_two(self, request):
        data = request.json()
        identity = data["mpin_id"]
        if identity not in self.first_passes:
            raise Refusal(500)
        u, ut, y = self.first_passes[identity]
        day = self.day() if ut else None
        v = curve.decode(bytes.fromhex(data["V"]))
        # At midnight the permit is of yesterday.
        right = any(
            mpin.is_answer(self.master, bytes.fromhex(identity), when, curve.decode(bytes.fromhex(ut or u)), y, v)
            for when in ([None] if day is None else [day, day - 1] if time.time() % 86400 < 3600 else [day]))
        ott, otp = secrets.token_hex(16), "%06d" % secrets.randbelow(10**6) if data["OTP"] else None
        self.proofs[ott] = identity, right, otp, data["WID"]
        return {"authOTT": ott, "pass": 2, **({"OTP": otp} if otp else {})}

    def judge(self, request):
        """Counts the try. Returns user and one-time code."""
        ott = request.json()["mpinResponse"]["authOTT"]
        if ott not in self.proofs:
            raise Refusal(408)
        identity, right, otp, number = self.proofs.pop(ott)
        tried = self.tries.get(identity, 0)
        if not right or tried >= MAXIMUM_TRIES:
            self.tries[identity] = tried + 1
            raise Refusal(410 if tried + 1 >= MAXIMUM_TRIES else 401)
        self.tries[identity] = 0
        self.fate(self.user_of(identity), "login")
        return self.user_of(identity), otp, number

    def login(self, request):
        user, otp, _ = self.judge(request)
        now = int(time.time()) * 1000
        times = {"expireTime": now + 60000, "ttlSeconds": 60, "nowTime": now}
        return {"userId": user, "message": "Authentication successful", **(times if otp and "+notimes" not in user else {})}

    def mobile(self, request):
        user, _, number = self.judge(request)
        if number not in self.numbers:
            raise Refusal(412)
        session = secrets.token_hex(8)
        self.sessions[session] = user
        return {"logoutURL": "/logout", "logoutData": {"sessionToken": session, "userId": user}}

    def logout(self, request):
        data = request.json()
        if self.sessions.pop(data.get("sessionToken"), None) != data.get("userId"):
            raise Refusal(400)
        return {}

    # The trust authority of the community

    def secret(self, request):
        share = self.community.client_share(bytes.fromhex(request.query["hash_mpin_id"]))
        return {"clientSecret": curve.encode(share).hex(), "message": "OK"}

    def second_permit(self, request):
        share = self.community.permit_share(bytes.fromhex(request.query["hash_mpin_id"]), self.day())
        return {"timePermit": curve.encode(share).hex(), "message": "OK"}

    # For tests

    def number(self, request):
        while True:
            digits = "%06d" % secrets.randbelow(10**6)
            check = (11 - sum(int(d) * w for d, w in zip(digits, range(7, 1, -1))) % 11) % 11
            if check < 10:
                self.numbers.add(digits + str(check))
                return {"accessNumber": digits + str(check)}

    def activate(self, request, identity):
        self.registrations[identity]["active"] = True
        return {}

    def forget(self, request):
        """As if the login server had been started again."""
        self.registrations.clear()
        self.first_passes.clear()
        return {}

    ROUTES = mfa.routes() + [
        ("GET", "/rps/clientSettings", "settings", settings), ("PUT", "/rps/user(/?[0-9a-fA-F]*)", "register", register),
        ("GET", "/rps/signature/" + HEX, "signature", signature), ("GET", "/rps/timePermit/" + HEX, "permit", permit),
        ("POST", "/rps/pass1", "pass1", pass_one), ("POST", "/rps/pass2", "pass2", pass_two),
        ("POST", "/mpinAuthenticate", "login", login), ("POST", "/rps/authenticate", "mobile", mobile),
        ("POST", "/logout", "logout", logout), ("GET", "/dta/clientSecret", "secret", secret),
        ("GET", "/storage/[0-9a-f]+/([0-9]+)/" + HEX, "storage", stored_permit),
        ("GET", "/dta/timePermit", "permit2", second_permit), ("POST", "/rps/getAccessNumber", "", number),
        ("POST", "/lab/activate/" + HEX, "", activate), ("POST", "/lab/forget", "", forget),
        ("GET", "/lab/requests", "", lambda servers, request: {"requests": [
            one for one in servers.requests if one["path"].startswith(request.query["home"])]}),
        ("GET", "/lab/spent", "", lambda servers, request: {"microseconds": int(servers.spent * 1e6)}),
        ("GET", "/lab/tries", "", lambda servers, request: {
            servers.user_of(identity): count for identity, count in servers.tries.items()}),
        ("POST", "/lab/plain", "", lambda servers, request: {}),
        ("GET", "/lab/devices", "", lambda servers, request: servers.devices),
    ]


class Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without this each answer waits for the acknowledgement of its headers.
    wbufsize = -1

    def json(self):
        try:
            data = json.loads(self.body)
        except ValueError:
            raise Refusal(400)
        if not isinstance(data, dict):
            raise Refusal(500)
        return data

    def handle_request(self):
        self.begun = time.perf_counter()
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.partition("?")
        self.query = dict(urllib.parse.parse_qsl(query))
        prefix = re.match("/fault/([^/]*)", path)
        self.faults = urllib.parse.unquote(prefix[1]).split(",") if prefix else []
        self.home = "http://" + self.headers["Host"] + (prefix[0] if prefix else "")
        path = path[len(prefix[0]):] if prefix else path
        if path == "/lab/arrival":
            return self.wait_for_arrival()
        if not path.startswith("/lab/"):
            self.server.servers.requests.append({
                "method": self.command, "path": self.path, "body": self.body.decode(), "headers": dict(self.headers)})
        for method, pattern, point, function in Servers.ROUTES:
            match = re.fullmatch(pattern, path)
            if match and method == self.command:
                return self.serve(point, function, list(match.groups()))
        self.reply(404)

    do_GET = do_POST = do_PUT = handle_request

    def serve(self, point, function, arguments):
        actions = [name[len(point) + 1:] for name in self.faults if point and name.startswith(point + "-")]
        actions = [action for action in (self.counted(point, action) for action in actions) if action]
        for action in actions:
            if action.isdigit():
                return self.reply(int(action))
            if action == "hang":
                return self.keep_waiting()
            if action == "drop":
                self.close_connection = True
                return None
            if action == "redirect":
                return self.reply(302, headers={"Location": self.home + "/elsewhere"})
        try:
            with self.server.servers.lock:
                answer = function(self.server.servers, self, *arguments)
        except Refusal as refusal:
            return self.reply(refusal.status, refusal.body or b"")
        except (KeyError, ValueError, TypeError):
            return self.reply(403)
        if "lost" in actions:
            return self.keep_waiting()
        for action in actions:
            answer = self.spoil(answer, *action.split("-", 1))
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        return self.reply(200, data)

    def keep_waiting(self):
        """Answers nothing until the client leaves."""
        servers = self.server.servers
        with servers.arrived:
            servers.arrivals.add(self.path.partition("?")[0])
            servers.arrived.notify_all()
        self.rfile.read(1)
        self.close_connection = True

    def wait_for_arrival(self):
        """Answers when a request has begun to wait; without the lock of the servers, which the request may need."""
        servers, home = self.server.servers, self.query["home"]
        with servers.arrived:
            servers.arrived.wait_for(lambda: any(path.startswith(home + "/") for path in servers.arrivals), 240)
        self.reply(200, b"{}")

    def counted(self, point, action):
        """The action without its number; None at a request with another number."""
        action, _, number = action.partition("@")
        hits, key = self.server.servers.hits, (self.home, point, action)
        hits[key] = hits.get(key, 0) + 1
        return None if number and hits[key] != int(number) else action

    def spoil(self, answer, action, member=None):
        """Makes an answer wrong."""
        if action in ("huge", "empty", "garbage"):
            return {"huge": b" " * (1 << 20), "empty": b"", "garbage": b"\x00\xff{"}[action]
        if isinstance(answer, bytes):
            return {"short": answer[:-2], "long": answer * 100,
                    "offcurve": answer[:-1] + b"%x" % (int(answer[-1:], 16) ^ 1),
                    "array": b"[]", "nojson": answer + b"{"}.get(action, answer)
        if action == "nojson":
            return json.dumps(answer).encode()[:-1]
        if action == "array":
            return json.dumps([answer]).encode()
        if action == "foreign":
            return {name: re.sub("^(/|%s/)" % self.home, "http://other.test/", value) if isinstance(value, str) else value
                    for name, value in answer.items()}
        if action == "no":
            del answer[member]
            return answer
        value = answer[member]
        answer[member] = {
            "null": lambda: None, "number": lambda: 17, "long": lambda: "0" * 20000, "zero": lambda: "0" * len(value), "short": lambda: value[:-2],
            "offcurve": lambda: value[:-1] + "%x" % (int(value[-1], 16) ^ 1), "letters": lambda: "xy" + value[2:],
        }[action]()
        return answer

    def reply(self, status, body=b"", headers=None):
        if not self.path.startswith("/lab/"):
            with self.server.servers.lock:
                self.server.servers.spent += time.perf_counter() - self.begun
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=UTF-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    # Many tests connect at once. A connection beyond this number waits for seconds until it is tried again.
    request_queue_size = 128

    def __init__(self, port):
        super().__init__(("127.0.0.1", port), Request)
        self.servers = Servers()

    def handle_error(self, request, address):
        pass  # a client that leaves is no fault


def main():
    stays = "--stay" in sys.argv
    if stays:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    listener = Listener(next((int(text) for text in sys.argv[1:] if text.isdigit()), 0))
    print("ready", listener.server_address[1], flush=True)
    threading.Thread(target=listener.serve_forever, daemon=True).start()
    if stays:
        signal.sigwait({signal.SIGTERM})
    else:
        sys.stdin.read()


if __name__ == "__main__":
    main()
