# SPDX-License-Identifier: GPL-3.0-or-later
import asyncio
import json
import os
import pwd
import signal
import socket
import sys
import time

import websocket  # websocket-client, which sends the address of the server as Origin
import websockets

from harness import LIMIT, Client, Daemon, check, finish, free_port, serves_browsers, until

program, work = sys.argv[1:]
path = os.path.join(work, "badged.sock")
config = os.path.join(work, "badged.conf")


def configure(*lines):
    with open(config, "w", encoding="ascii") as file:
        file.write("\n".join(["[activation]", "enabled = yes", f"port = {port}", *lines]) + "\n")


def start(*lines):
    configure(*lines)
    started = Daemon(program, ["--virtual", "--no-pcsc", "--no-nfc", "--socket", path, "--config", config], work)
    until(lambda: serves_browsers(path))
    return started


def client(address, **options):
    """What websocket-client gets: the name in INFO, or the status of the refusal."""
    try:
        connection = websocket.create_connection(f"ws://{address}:{port}/eID-Kernel", timeout=LIMIT, **options)
    except websocket.WebSocketBadStatusException as refusal:
        return refusal.status_code
    connection.send('{"cmd":"GET_INFO"}')
    while (message := json.loads(connection.recv()))["msg"] != "INFO":
        pass
    connection.close()
    return message["VersionInfo"]["Name"]


async def asynchronous(host, **options):
    """The same with websockets."""
    try:
        async with websockets.connect(f"ws://{host}:{port}/eID-Kernel", open_timeout=LIMIT, **options) as connection:
            await connection.send('{"cmd":"GET_INFO"}')
            while (message := json.loads(await connection.recv()))["msg"] != "INFO":
                pass
            return message["VersionInfo"]["Name"]
    except websockets.exceptions.InvalidStatusCode as refusal:
        return refusal.status_code


def is_activation(pid):
    """Whether a process is a badged-activation of this daemon that runs."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            name, rest = file.read().split("(", 1)[1].rsplit(")", 1)
    except OSError:
        return False
    state, parent = rest.split()[:2]
    return name == "badged-activati" and state != "Z" and int(parent) == daemon.pid


port = free_port()
daemon = start()
has_ipv6 = socket.has_ipv6 and os.path.exists("/proc/net/if_inet6")
for host in ["localhost", "127.0.0.1"] + (["[::1]"] if has_ipv6 else []):
    got = client(host)
    check(f"websocket-client connects to {host} with the Origin that it sends by default", got == "badged", got)
    got = client(host, suppress_origin=True)
    check(f"websocket-client connects to {host} without an Origin", got == "badged", got)
    got = asyncio.run(asynchronous(host))
    check(f"websockets connects to {host}", got == "badged", got)
origin = f"http://localhost:{port}"
got = asyncio.run(asynchronous("localhost", origin=origin))
check("websockets connects with the Origin of the port", got == "badged", got)
for origin in ["https://evil.example", f"http://localhost:{port + 1}", "null"]:
    got = client("localhost", origin=origin)
    check(f"the Origin {origin} gets 403", got == 403, got)
    check("the log says so at its default level, with the reason",
          f"<5>port for browsers: WebSocket refused: Origin '{origin}' is a web page that [activation] origins does not list"
          in daemon.log(), daemon.log())
for name, value in [("Sec-Fetch-Site", "same-origin"), ("User-Agent", "Mozilla/5.0"), ("Accept-Language", "de")]:
    got = client("localhost", header={name: value})
    check(f"a page of the port in a browser, which sends {name}, gets 403", got == 403, got)


def state(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def health():
    own = Client(path)
    checks = own.ask("HEALTH", cmd="GET_HEALTH")["checks"]
    own.close()
    return next(found for found in checks if found["name"] == "browserPort")


found = health()
check("the health of the port is good while badged-activation answers", found["ok"], found)
children = [int(name) for name in os.listdir("/proc") if name.isdigit() and is_activation(name)]
check("badged has one badged-activation", len(children) == 1, children)
os.kill(children[0], signal.SIGSTOP)
# On a busy machine some of its threads run for a moment more.
check("it is stopped", until(lambda: state(children[0]) == "T"))
found = health()
check("a badged-activation that is stopped is noticed", not found["ok"] and "did not answer" in found["cause"], found)
check("and ended, so that browsers are served again", until(lambda: not is_activation(str(children[0]))))
got = client("localhost")
check("by the next one", got == "badged", got)
check("whose health is good", health()["ok"])
stopped = [name for name in os.listdir("/proc") if name.isdigit() and is_activation(name)][0]
os.kill(int(stopped), signal.SIGSTOP)
check("that one is stopped, too", until(lambda: state(stopped) == "T"))
got = client("localhost")
check("a browser that connects to it is served by the next one, although nobody asks for the health", got == "badged", got)
check("and the log says why", "badged-activation did not answer" in daemon.log(), daemon.log())
with socket.create_connection(("127.0.0.1", port), LIMIT) as raw:
    raw.sendall(f"GET /eID-Client?Status HTTP/1.1\r\nHost: localhost:{port}\r\nX-One: a\r\n folded: b\r\n\r\n".encode())
    line = raw.makefile("rb").readline()
check("a folded header gets 400", b" 400 " in line, line)
got = client("localhost", host="evil.example")
check("another Host gets 403", got == 403, got)
check("the log has the Host", "request refused: Host 'evil.example' is not a name of this computer" in daemon.log(), daemon.log())
daemon.end()

daemon = start("origins = https://app.example")
got = client("localhost", origin="https://app.example")
check("a listed Origin connects", got == "badged", got)
daemon.end()


# Two users
def show(uid, host="127.0.0.1"):
    """The status of ?ShowUI for a browser of this user. A fork, because the user may be unable to start Python."""
    read, write = os.pipe()
    if os.fork() == 0:
        os.setresuid(uid, uid, uid)
        connection = socket.create_connection((host, port), LIMIT)
        connection.sendall(f"GET /eID-Client?ShowUI HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
        os.write(write, connection.makefile("rb").readline())
        os._exit(0)
    os.close(write)
    with open(read, encoding="ascii") as pipe:
        line = pipe.read()
    os.wait()
    return line.split()[1]


def user_interface(uid):
    """A client of this user that is a user interface."""
    os.seteuid(uid)
    try:
        client = Client(path)
    finally:
        os.seteuid(0)
    answer = client.ask("USER_INTERFACE", cmd="SET_USER_INTERFACE", active=True)
    check(f"a client of user {uid} is a user interface", answer is not None and answer["active"], answer)
    return client


def websocket_of(uid):
    """A WebSocket of this user."""
    os.seteuid(uid)
    try:
        return websocket.create_connection(f"ws://127.0.0.1:{port}/eID-Kernel", timeout=LIMIT, suppress_origin=True)
    finally:
        os.seteuid(0)


def granted(connection):
    """The permissions that ACCESS_DENIED tells, without that of the port itself."""
    connection.send('{"cmd":"START_SCAN"}')
    while (message := json.loads(connection.recv()))["msg"] != "ACCESS_DENIED":
        pass
    return [name for name in message["granted"] if name != "activate"]


if os.geteuid() == 0:
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chmod(work, 0o755)
    daemon = start()
    os.chmod(path, 0o666)
    own = user_interface(nobody)
    for host in ["127.0.0.1"] + (["::1"] if has_ipv6 else []):
        check(f"a browser at {host} reaches the user interface of its own user", show(nobody, host) == "200")
        check("which is asked", own.wait_for("SHOW_UI") is not None)
        check(f"a browser of root at {host} does not", show(0, host) == "503")
    root = user_interface(0)
    check("a browser of root reaches root's", show(0) == "200" and root.wait_for("SHOW_UI") is not None)
    second = user_interface(nobody)
    told = own.wait_for("USER_INTERFACE")
    check("a user interface that is replaced is told", told is not None and told["active"] is False, told)
    second.close()
    told = own.wait_for("USER_INTERFACE")
    check("and again when it takes over", told is not None and told["active"] is True, told)
    check("the browser reaches it then", show(nobody) == "200" and own.wait_for("SHOW_UI") is not None)
    own.close()
    # badged notices the end of the connection by itself.
    check("root's user interface serves no other user", until(lambda: show(nobody) == "503"))
    check("the log says why", f"uid {nobody}): this user has no user interface" in daemon.log(), daemon.log())
    daemon.end()
    daemon = start("root_serves_all = yes")
    os.chmod(path, 0o666)
    root = user_interface(0)
    check("root's serves all if the configuration says so", show(nobody) == "200" and root.wait_for("SHOW_UI") is not None)
    daemon.end()

    # Another user keeps more connections than there are places for it
    daemon = start()
    held, fill = os.pipe()
    wait, hold = os.pipe()
    keeper = os.fork()
    if keeper == 0:
        os.close(hold)
        os.setresuid(nobody, nobody, nobody)
        connections = [socket.create_connection(("127.0.0.1", port), LIMIT) for _ in range(300)]
        for connection in connections:
            connection.sendall(b"GET /eID")
        os.write(fill, b".")
        os.read(wait, 1)
        os._exit(0)
    os.close(wait)
    os.read(held, 1)
    for uid in (0, nobody):
        begun = time.monotonic()
        got = show(uid)
        # A request that nobody makes room for ends after ten seconds.
        check(f"a browser of user {uid} is answered in 8 s while another program of user {nobody} keeps 300 connections",
              got == "503" and time.monotonic() - begun < 8, (got, time.monotonic() - begun))
    os.close(hold)
    os.waitpid(keeper, 0)
    daemon.end()

    # What the port allows and what [access] allows
    daemon = start("permissions = readers, mpin", "[access]", "default = none", "user:nobody = readers, keys")
    connection = websocket_of(nobody)
    check("a client of the port has what both sections give to its user", granted(connection) == ["readers"])
    of_root = websocket_of(0)
    check("root has what the port gives", set(granted(of_root)) == {"readers", "mpin"})
    configure("permissions = readers, mpin", "[access]", "default = none")
    daemon.reload()
    check("a user that loses its permissions loses them on an open connection", granted(connection) == [])
    check("root keeps them", set(granted(of_root)) == {"readers", "mpin"})
    daemon.end()
else:
    print("  (browsers of two users: needs root)")
finish()
