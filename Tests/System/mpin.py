# SPDX-License-Identifier: GPL-3.0-or-later
"""mpin.py PROGRAM WORK URL: badged registers a user of M-Pin at the backend, and logs the user in in each way."""
import json
import os
import re
import sys
import threading
import urllib.request
import uuid

from harness import Client, Daemon, check, finish
from network_recorder import NetworkRecorder

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../MPinServer"))
import bn254cx as curve
import mpin as reference

program, work, url = sys.argv[1:]
path = os.path.join(work, "s.sock")
folder = os.path.join(work, "state")
user = f"alice-{uuid.uuid4().hex}@mpin.test"
PIN, WRONG = "7391", "1937"
network = NetworkRecorder(os.path.dirname(program), work)


def start(configuration="[access]\ndefault = cards, mpin\n[mpin]\nprivate_servers = yes\n"):
    """Starts badged as a service whose state is kept, and connects a client."""
    file = os.path.join(work, "badged.conf")
    with open(file, "w", encoding="utf-8") as out:
        out.write(configuration)
    daemon = Daemon(program, ["--config", file, "--no-pcsc", "--no-nfc", "--socket", path], work,
                    environment={"STATE_DIRECTORY": folder, **network.environment})
    return daemon, Client(path)


def run(client, command, pin=PIN, **members):
    """Sends a command and answers its questions. Returns the result."""
    client.send(cmd=command, **members)
    while True:
        message = client.next()
        if message is None or message["msg"] in ("MPIN_RESULT", "ACCESS_DENIED", "BAD_STATE", "UNKNOWN_COMMAND"):
            return message
        if message["msg"] in ("ENTER_PIN", "ENTER_NEW_PIN"):
            client.send(cmd="SET_PIN" if message["msg"] == "ENTER_PIN" else "SET_NEW_PIN", value=pin,
                        question=message["question"])


def succeeds(client, command, **members):
    result = run(client, command, **members)
    check(f"{command} succeeds", result.get("status") == 0, result)
    return result


def connect(client):
    succeeds(client, "MPIN_INIT")
    succeeds(client, "MPIN_SET_BACKEND", url=url)


def log_in(client, pin=PIN, **members):
    succeeds(client, "MPIN_START_AUTHENTICATION", userId=user)
    return run(client, "MPIN_FINISH_AUTHENTICATION", pin, userId=user, **members)


def post(tail, data):
    """What a browser sends. Returns the answer."""
    request = urllib.request.Request(url + tail, json.dumps(data).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.loads(answer.read() or "{}")


def browse(session, stop):
    """Logs a browser in as soon as the user has proved the access number."""
    # The double does not wait for a browser.
    while "webOTT" in session and not stop.is_set():
        state = post("/rps/access", {"webOTT": session["webOTT"]})
        if state["status"] == "authenticate":
            post("/mpinAuthenticate", {"mpinResponse": {"authOTT": state["authOTT"]}})
            return


daemon, client = start()
connect(client)
check("TEST_BACKEND", run(client, "MPIN_TEST_BACKEND", url=url)["status"] == 0)
check("the settings of the backend", len(run(client, "MPIN_CLIENT_PARAM", key="appID")["value"]) == 32)
check("a new user is INVALID", succeeds(client, "MPIN_MAKE_USER", userId=user)["user"]["state"] == "INVALID")
first = succeeds(client, "MPIN_START_REGISTRATION", userId=user)["user"]
check("the server has activated the user", first["state"] == "ACTIVATED" and first["mpinId"], first)
again = succeeds(client, "MPIN_RESTART_REGISTRATION", userId=user)["user"]
check("a registration that is repeated has the same M-Pin id", again["mpinId"] == first["mpinId"], again)
succeeds(client, "MPIN_CONFIRM_REGISTRATION", userId=user)
check("the user is registered",
      succeeds(client, "MPIN_FINISH_REGISTRATION", userId=user)["user"]["state"] == "REGISTERED")
check("a login with the right PIN", log_in(client)["status"] == 0)

code, _ = daemon.end()
check("badged ends with 0", code == 0, daemon.log())
check("the log has no PIN", PIN not in daemon.log(), daemon.log())
daemon, client = start()
connect(client)
check("the user is still there", [u["state"] for u in run(client, "MPIN_USERS")["users"]] == ["REGISTERED"])
result = log_in(client)
check("badged that was started again logs in", result["status"] == 0, result)
data = json.loads(result["authResultData"])
check("the data of the service arrive", isinstance(data, dict) and data, data)

otp = log_in(client, mode="OTP")
check("a one-time code", otp["status"] == 0 and len(otp["otp"]["otp"]) == 6 and otp["otp"]["ttlSeconds"] == 60, otp)
check("the code has its times in seconds", otp["otp"]["expireTime"] - otp["otp"]["nowTime"] == 60, otp)

session = post("/rps/getAccessNumber", {})
number, stop = session["accessNumber"], threading.Event()
check("the check digit of an access number",
      run(client, "MPIN_CHECK_ACCESS_NUMBER", accessNumber=number)["status"] == 0, number)
browser = threading.Thread(target=browse, args=(session, stop))
browser.start()
result = log_in(client, mode="AN", accessNumber=number)
stop.set()
browser.join()
check("an access number logs a browser in", result["status"] == 0 and result["canLogout"], result)
check("and out again", run(client, "MPIN_LOGOUT", userId=user)["status"] == 0)

check("a wrong PIN", log_in(client, WRONG)["statusCodeAsString"] == "INCORRECT_PIN")
check("a right PIN after it", log_in(client)["status"] == 0)
results = [log_in(client, WRONG) for _ in range(3)]
check("three wrong PINs", [r["statusCodeAsString"] for r in results] == ["INCORRECT_PIN"] * 3, results)
check("the third one blocks the user", [r["user"]["state"] for r in results] == ["REGISTERED", "REGISTERED", "BLOCKED"],
      results)
check("a blocked user is refused", run(client, "MPIN_START_AUTHENTICATION", userId=user)["status"] == 6)
check("the user is deleted", run(client, "MPIN_DELETE_USER", userId=user)["status"] == 0)
check("no user is left", run(client, "MPIN_USERS")["users"] == [])
daemon.end()
shares = [re.findall(rb'"clientSecret(?:Share)?": *"([0-9a-f]+)"', got) for _, got in network.runs]
check("no process has seen both shares of a secret", sorted(map(len, shares))[-3:] == [0, 1, 1], shares)
secret = curve.add(*(curve.decode(bytes.fromhex(share.decode())) for found in shares for share in found))
token = reference.token(secret, int(PIN), bytes.fromhex(first["mpinId"]))
# The numbers of a point in binary and in hexadecimal digits, without the kind of the point.
points = [curve.encode(point)[1:] for point in (secret, token)]
halves = [half for point in points for half in (point[:32], point[32:])]
digits = [text.encode() for half in halves for text in (half.hex(), half.hex().upper())]
# Four digits alone can be part of a number, so only a PIN that is a whole text counts.
network.check([f'"{pin}"'.encode() for pin in (PIN, WRONG)] + halves + digits, b"/mpinAuthenticate")

daemon, client = start("[access]\ndefault = readers, cards, agent\n")
if os.getuid() != 0:
    check("nobody has the permission by default", run(client, "MPIN_INIT")["msg"] == "ACCESS_DENIED")
daemon.end()
finish()
