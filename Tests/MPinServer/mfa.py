# SPDX-License-Identifier: GPL-3.0-or-later
"""The service that MPinMFA talks to, as a part of server.py. It follows the public clients of MIRACL, not its servers.

The backend is that of server.py, with the folder rps/v2. A user's fate is in the name, as there. NAME+renew@... must make
the identity again once, NAME+renew+always@... each time. The registration code is any text but "wrong". Points of faults: v2settings v2user
v2signature v2secret v2status v2pass1 v2pass2 v2authenticate v2dvs service authorize.
"""

import json
import secrets
import time

import bn254cx as curve
import mpin

KEY_DIGITS = 256


def decode_key(text):
    """A public key of a client, on the curve of the second group."""
    if len(text) != KEY_DIGITS:
        raise ValueError("no public key")
    part = [int(text[k:k + 64], 16) for k in range(0, KEY_DIGITS, 64)]
    x, y = (part[0], part[1]), (part[2], part[3])
    left, cube = curve.Fp2.mul(y, y), curve.Fp2.mul(x, curve.Fp2.mul(x, x))
    if max(part) >= curve.P or curve.Fp2.sub(left, cube) != (1, curve.P - 1):
        raise ValueError("not on the curve")
    return x, y


class Service:
    """What the service knows. `refusal` is the class of exceptions with a status."""

    def __init__(self, servers, refusal):
        self.servers, self.refusal = servers, refusal
        self.registrations, self.identities, self.passes, self.proofs, self.tries = {}, {}, {}, {}, {}
        self.sessions, self.permissions, self.renewed, self.seen = {}, {}, set(), []

    def refuse(self, status, error=None):
        raise self.refusal(status, json.dumps({"error": error}).encode() if error else None)

    def settings(self, request):
        return {"appID": "app"} if "v2defaults" in request.faults else {
            "registerURL": "/rps/v2/user", "signatureURL": "/rps/v2/signature", "mpinAuthServerURL": "/rps/v2",
            "authenticateURL": "/rps/v2/authenticate", "codeStatusURL": "/rps/v2/codeStatus",
            "dvsRegURL": "/rps/v2/dvsregister", "appID": "app",
        }

    def new_identity(self, user):
        return json.dumps({"issued": "2026-11-22 08:14:38", "userID": user, "salt": secrets.token_hex(16)}).encode().hex()

    def register(self, request, path):
        data, customer = request.json(), request.headers.get("X-MIRACL-CID")
        user, old = data["userId"], self.registrations.pop(path.strip("/"), None)
        if not user or not customer or data.get("mobile") != 1:
            self.refuse(400)
        self.servers.fate(user, "register")
        if data.get("activateCode") == "wrong":
            self.refuse(403, "INVALID_ACTIVATION_TOKEN")
        self.seen.append({name: data.get(name) for name in ("userId", "wid", "pushToken", "activateCode")})
        identity = path.strip("/") if old else self.new_identity(user)
        token = old["regOTT"] if old else secrets.token_hex(16)
        self.registrations[identity] = {"regOTT": token, "user": user}
        return {"mpinId": identity, "regOTT": token, "projectId": customer}

    def share(self, request, identity, user, key):
        public = decode_key(key)
        whole = bytes.fromhex(identity) + bytes.fromhex(key)
        digest = mpin.sha256(whole)
        self.identities[identity, key] = {"user": user, "public": public}
        return {"dvsClientSecretShare": curve.encode(self.servers.customer.client_share(digest)).hex(),
                "cs2url": request.home + "/dta/dvsSecret?hash=" + digest.hex(), "curve": "BN254CX", "dtas": "WyJvbmUiXQ=="}

    def signature(self, request, identity):
        registration = self.registrations.get(identity)
        if registration is None or registration["regOTT"] != request.query["regOTT"]:
            self.refuse(404)
        self.servers.fate(registration["user"], "signature")
        del self.registrations[identity]
        return self.share(request, identity, registration["user"], request.query["publicKey"])

    def second_share(self, request):
        share = self.servers.community.client_share(bytes.fromhex(request.query["hash"]))
        return {"dvsClientSecret": curve.encode(share).hex()}

    def dvs_register(self, request):
        data = request.json()
        user = self.permissions.pop(data["dvsRegisterToken"], None)
        if user is None:
            self.refuse(401)
        identity = self.new_identity(user)
        return {"mpinId": identity, **self.share(request, identity, user, data["publicKey"])}

    def permit(self, user):
        token = secrets.token_hex(16)
        self.permissions[token] = user
        return token

    def pass_one(self, request):
        data, y = request.json(), mpin.random_scalar()
        if (data["mpin_id"], data["publicKey"]) not in self.identities or data["dtas"] != "WyJvbmUiXQ==":
            self.refuse(403, "EXPIRED_MPINID")
        self.passes[data["mpin_id"]] = data["publicKey"], data["U"], y, data["scope"][0], request.headers.get("Authorization")
        return {"y": "%064x" % y}

    def accepts(self, identity, key, commitment, y, v):
        base = mpin.identity_point(bytes.fromhex(identity) + bytes.fromhex(key))
        left = curve.add(curve.times(y, base), curve.decode(bytes.fromhex(commitment)))
        return curve.product_is_one([(curve.decode(bytes.fromhex(v)), decode_key(key)), (left, self.servers.server_secret)])

    def pass_two(self, request):
        data = request.json()
        key, u, y, scope, authorization = self.passes.pop(data["mpin_id"])
        right = self.accepts(data["mpin_id"], key, u, y, data["V"])
        ott = secrets.token_hex(16)
        self.proofs[ott] = data["mpin_id"], key, right, scope, data["WID"], authorization
        return {"authOTT": ott}

    def authenticate(self, request):
        data = request.json()
        if data["wam"] != "dvs" or data["authOTT"] not in self.proofs:
            self.refuse(408, "INVALID_AUTH_SESSION")
        identity, key, right, scope, wid, authorization = self.proofs.pop(data["authOTT"])
        user, tried = self.identities[identity, key]["user"], self.tries.get(identity, 0)
        if not right or tried >= 3:
            self.tries[identity] = tried + 1
            self.refuse(403 if tried >= 2 else 401, "REVOKED_MPINID" if tried >= 2 else "UNSUCCESSFUL_AUTHENTICATION")
        self.tries[identity] = 0
        if scope == "dvs-auth" and "+nosign" in user and authorization != "MAAS-HMAC-SHA256 x":
            self.refuse(403)
        if wid != "0" and wid not in self.sessions:
            self.refuse(412)
        if "+renew" in user and (user not in self.renewed or "+always" in user):
            self.renewed.add(user)
            return {"dvsRegister": {"token": self.permit(user), "curve": "BN254CX"}}
        # Neither code nor time has the digits of the PIN that tests look for in messages.
        now, code = 1_795_000_000_000, "".join(secrets.choice("024568") for _ in range(6))
        times = {"otp": code, "expireTime": now + 60000, "ttlSeconds": 60, "nowTime": now}
        return {"userId": user, "code": "c-" + wid, **(times if scope in ("otp", "reg-code") else {})}

    # Sessions

    def service(self, request):
        return {"name": "Lab", "url": request.home, "rps_prefix": "rps/v2", "logo_url": "https://lab.test/logo.png",
                "type": "online"}

    def authorize(self, request):
        code = secrets.token_hex(16)
        self.sessions[code] = "new"
        return {"qrURL": "https://lab.test/#" + code}

    def status(self, request):
        data = request.json()
        if data["wid"] not in self.sessions:
            self.refuse(404)
        self.sessions[data["wid"]] = [data["status"], data.get("userId")]
        if data["status"] != "wid":
            return {}
        return {"prerollId": "alice", "appName": "App", "appLogoURL": "https://lab.test/a", "customerId": "c1",
                "customerName": "Customer", "customerLogoURL": "https://lab.test/c"}

    # For tests

    def verify(self, request):
        """What the service of the signed document asks: is this signature right?"""
        data = request.json()
        u, when = bytes.fromhex(data["u"]), int(data["epochTime"]).to_bytes(4, "big")
        digest = mpin.sha256(when + u + bytes.fromhex(data["hash"]))
        y = int.from_bytes(digest, "big") % curve.N
        return {"valid": self.accepts(data["mpinId"], data["publicKey"], data["u"], y, data["v"])}


HEX = "([0-9a-fA-F]+)"


def routes():
    """In the form of server.py, for a Service that stands at `servers.mfa`."""
    def of(function):
        return lambda servers, request, *arguments: function(servers.mfa, request, *arguments)
    return [(method, pattern, point, of(function)) for method, pattern, point, function in [
        ("GET", "/rps/v2/clientSettings", "v2settings", Service.settings),
        ("PUT", "/rps/v2/user(/?[0-9a-fA-F]*)", "v2user", Service.register),
        ("GET", "/rps/v2/signature/" + HEX, "v2signature", Service.signature),
        ("GET", "/dta/dvsSecret", "v2secret", Service.second_share),
        ("POST", "/rps/v2/dvsregister", "v2dvs", Service.dvs_register),
        ("POST", "/rps/v2/pass1", "v2pass1", Service.pass_one), ("POST", "/rps/v2/pass2", "v2pass2", Service.pass_two),
        ("POST", "/rps/v2/authenticate", "v2authenticate", Service.authenticate),
        ("POST", "/rps/v2/codeStatus", "v2status", Service.status),
        ("GET", "/service", "service", Service.service), ("POST", "/authorize", "authorize", Service.authorize),
        ("POST", "/lab/verify", "", Service.verify),
        ("POST", "/lab/permit/(.+)", "", lambda service, request, user: {"token": service.permit(user)}),
        ("GET", "/lab/registrations", "", lambda service, request: {"seen": service.seen}),
        ("GET", "/lab/sessions", "", lambda service, request: service.sessions),
    ]]
