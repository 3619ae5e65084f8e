# SPDX-License-Identifier: GPL-3.0-or-later
import json
import fcntl
import os
import pwd
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys

from harness import LIMIT, Client, Daemon, check, finish, until

program, badgectl, work = sys.argv[1:]
path = os.path.join(work, "s", "badged.sock")
os.mkdir(os.path.dirname(path), 0o755)
usual = ["--virtual", "--no-pcsc", "--socket", path]
config = os.path.join(work, "badged.conf")
is_root = os.geteuid() == 0


def run(*arguments, **environment):
    return Daemon(program, arguments, work, wait=False, environment=environment).finished()


def configure(text):
    with open(config, "w") as file:
        file.write(text)


def serves(socket_path):
    return Client(socket_path).ask("INFO", cmd="GET_INFO") is not None


def answers():
    try:
        return serves(path)
    except OSError:
        return False


# Start, readiness, end
for abstract in (False, True):
    daemon = Daemon(program, usual, work, abstract=abstract)
    name = "abstract" if abstract else "path"
    check(f"READY=1 has a status line ({name} socket of the service manager)", path in daemon.ready.get("STATUS", ""))
    # After READY the first attempt to connect succeeds.
    client = Client(path)
    info = client.ask("INFO", cmd="GET_INFO")
    check("after READY=1 the socket answers", info["VersionInfo"]["Name"] == "badged", info)
    readers = client.ask("READER_LIST", cmd="GET_READER_LIST")["readers"]
    check("after READY=1 the virtual reader is there", [reader["name"] for reader in readers] == ["Simulator"], readers)
    client.send(cmd="RUN_CHANGE_PIN")
    client.wait_for("INSERT_CARD")
    code, _ = daemon.end()
    check("SIGTERM ends badged with 0 in the middle of a workflow", code == 0, code)
    end = client.wait_for("CHANGE_PIN")
    check("the client of the workflow gets its final message", end is not None and end["success"] is False, end)
    check("STOPPING=1 is sent", "STOPPING" in daemon.manager.wait_for("STOPPING")[0])
    check("the socket file is removed", not os.path.exists(path))

daemon = Daemon(program, usual, work)
code, _ = daemon.end(signal.SIGINT)
check("SIGINT ends badged with 0", code == 0, code)

# Without standard streams no file and no socket of badged has one of their numbers.
bare = subprocess.Popen(["/bin/sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', program, *usual])
until(answers)
streams = {os.readlink(f"/proc/{bare.pid}/fd/{number}") for number in range(3)}
check("closed standard streams become /dev/null", streams == {"/dev/null"}, streams)
bare.terminate()
bare.wait()

daemon = Daemon(program, usual, work)
client = Client(path)
client.send(cmd="RUN_CHANGE_PIN")
client.wait_for("INSERT_CARD")
# Slower than the end of badged.
client.send(cmd="SET_CARD", name="Simulator", card={"latencyMs": 1200})
client.wait_for("ENTER_PIN")
client.send(cmd="SET_PIN", value="123456")
client.wait_for("ENTER_NEW_PIN")
client.send(cmd="SET_NEW_PIN", value="654321")
client.ask("STATUS", cmd="GET_STATUS")
code, seconds = daemon.end()
end = client.wait_for("CHANGE_PIN")
check("SIGTERM while a slow card changes its PIN: the client is told how it ended", end is not None
      and (end["success"] or end["reason"] == "Change_Pin_No_SetEidPinCommand_Response") and code == 0, (end, code, seconds))

# Watchdog and reload
configure("[log]\nlevel = info\n")
daemon = Daemon(program, usual + ["--config", config], work, environment={"WATCHDOG_USEC": "2000000"})
times = [daemon.manager.wait_for("WATCHDOG")[1]]
# On a busy machine single messages are late.
while len(times) < 2 or (len(times) < 20 and times[-1] - times[-2] >= 1.5):
    times.append(daemon.manager.wait_for("WATCHDOG")[1])
check("WATCHDOG=1 is sent more often than the service manager asks for", times[-1] - times[-2] < 1.5, times)
configure("[log]\nlevel = debug\n")
state = daemon.reload()
check("SIGHUP: RELOADING=1 with a time, then READY=1", state.get("MONOTONIC_USEC", "").isdigit(), state)
Client(path).close()
configure("[log]\nlevel = loud\n")
daemon.reload()
state = daemon.manager.messages[-1]
check("the status line says that the file was not read again", "line 2: [log] level cannot be 'loud'" in state["STATUS"],
      state)
check("SIGHUP with a wrong file is an error, and badged goes on",
      "line 2: [log] level cannot be 'loud'" in daemon.log() and serves(path), daemon.log())
daemon.end()
check("SIGHUP had switched debug lines on", "<7>client" in daemon.log(), daemon.log())
check("every line of the log has a priority", all(re.match(r"<[3-7]>\S", line) for line in daemon.log().splitlines()),
      daemon.log())

# Secrets in the log
daemon = Daemon(program, usual + ["--log-level", "debug"], work)
client = Client(path)
client.send(cmd="RUN_CHANGE_PIN")
client.send(cmd="SET_CARD", name="Simulator", card={"pin": "271828", "can": "314159", "retryCounter": 1})
for question, command, value in [("ENTER_CAN", "SET_CAN", "314159x"), ("ENTER_CAN", "SET_CAN", "314159"),
                                 ("ENTER_PIN", "SET_PIN", "271828"), ("ENTER_NEW_PIN", "SET_NEW_PIN", "161803")]:
    client.wait_for(question)
    client.send(cmd=command, value=value)
    # The second one comes in the wrong state.
    client.send(cmd=command, value=value)
end = client.wait_for("CHANGE_PIN")
while end is not None and "success" not in end:
    end = client.wait_for("CHANGE_PIN")
client.send(cmd="161803")
client.send(cmd="SET_PIN", value="271828")
client.ask("INFO", cmd="GET_INFO")
check("a PIN is changed", end is not None and end["success"], end)
daemon.end()
check("no PIN and no CAN is in the log, even at level debug",
      not re.search("271828|314159|161803", daemon.log()) and "CHANGE_PIN ended" in daemon.log(), daemon.log())

# A log that no program reads
read, write = os.pipe()
fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
daemon = Daemon(program, usual + ["--log-level", "debug"], work, stderr=write)
os.close(write)
# Each connection makes two lines of at least 30 bytes. The lines about one user are limited, so the pipe is small.
for _ in range(2000):
    Client(path).close()
check("badged serves although nobody reads its log", serves(path))
os.set_blocking(read, False)
try:
    while os.read(read, 65536):
        pass
except BlockingIOError:
    pass
check("badged serves when its log is read again", serves(path))
# A line that is not about a client, which none limits.
daemon.reload()
os.set_blocking(read, True)
text = b""
while b"lost" not in text:
    text += os.read(read, 65536)
check("the log says how many lines were lost",
      re.search(rb"<4>[1-9][0-9]{2,} log lines were lost: the reader of the log was too slow\n", text), text)
daemon.end()
os.close(read)

# Access rules
if is_root:
    nobody = pwd.getpwnam("nobody").pw_uid
    os.chmod(work, 0o755)
    configure("[access]\nuser:nobody = readers\n")
    daemon = Daemon(program, usual + ["--config", config], work)
    os.chmod(path, 0o666)

    def as_nobody(command, answer, uid=nobody):
        """The name of the message that a user gets. A fork, because the user `nobody` may be unable to start Python."""
        read, write = os.pipe()
        if os.fork() == 0:
            os.setgroups([])
            os.setresgid(nobody, nobody, nobody)
            os.setresuid(uid, uid, uid)
            got = Client(path).ask(answer, cmd=command)
            os.write(write, got["msg"].encode() if got else b"closed")
            os._exit(0)
        os.close(write)
        with open(read, encoding="ascii") as pipe:
            got = pipe.read()
        os.wait()
        return got

    check("a user without the permission cards cannot run a workflow",
          as_nobody("RUN_CHANGE_PIN", "ACCESS_DENIED") == "ACCESS_DENIED")
    check("the same user sees readers", as_nobody("GET_READER_LIST", "READER_LIST") == "READER_LIST")
    check("root can run a workflow", Client(path).ask("CHANGE_PIN", cmd="RUN_CHANGE_PIN") is not None)
    configure("[access]\nuser:nobody = cards\n")
    daemon.reload()
    check("after SIGHUP the new rule applies", as_nobody("RUN_CHANGE_PIN", "CHANGE_PIN") == "CHANGE_PIN")
    configure("[access]\nuser:badged-test-ghost = none\n")
    daemon.reload()
    nameless = 3_123_456_789
    check("a denial with a name that is unknown concerns clients without a name",
          as_nobody("GET_READER_LIST", "ACCESS_DENIED", nameless) == "ACCESS_DENIED")
    check("the same denial does not concern a client with another name",
          as_nobody("GET_READER_LIST", "READER_LIST") == "READER_LIST")
    check("a warning names the unknown user", "[access] user:badged-test-ghost names no user" in daemon.log(),
          daemon.log())
    daemon.end()
else:
    print("  (access rules of other users: needs root)")

# The socket
daemon = Daemon(program, usual, work)
code, _, log = run(*usual)
check("a second daemon leaves the socket alone, and names the first",
      code == 1 and f"badged: error: badged (process {daemon.pid}) listens on {path}" in log and "\nhint: " in log,
      (code, log))
check("the first daemon still serves", serves(path))
daemon.end(signal.SIGKILL)
check("a killed daemon leaves its socket file", os.path.exists(path))
daemon = Daemon(program, usual, work)
check("the next daemon takes the socket over", serves(path))
os.unlink(path)
foreign = socket.socket(socket.AF_UNIX)
foreign.bind(path)
daemon.end()
check("a socket file of another program is kept at the end", os.path.exists(path))
foreign.close()
os.unlink(path)

if is_root:
    # The user of the daemon: a person who runs badged by hand has all permissions, and a service user those of [access].
    def scan_as_owner(uid):
        """What the daemon's own user gets for START_SCAN, and for GET_READER_LIST."""
        folder = os.path.join(work, f"owner-{uid}")
        os.mkdir(folder, 0o700)
        os.chown(folder, uid, uid)
        own = os.path.join(folder, "s.sock")
        copy = shutil.copy(program, os.path.join(work, "badged"))
        daemon = Daemon(copy, ["--virtual", "--no-pcsc", "--no-nfc", "--no-ble", "--socket", own], work, user=uid)
        read, write = os.pipe()
        if os.fork() == 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            client = Client(own)
            client.send(cmd="START_SCAN", request=1)
            client.send(cmd="GET_READER_LIST", request=2)
            answers = []
            while len(answers) < 2 and (got := client.next()):
                answers += [got["msg"]] if "request" in got else []
            os.write(write, " ".join(answers).encode())
            os._exit(0)
        os.close(write)
        with open(read, encoding="ascii") as pipe:
            got = pipe.read().split()
        os.wait()
        daemon.end()
        return got

    got = scan_as_owner(998)
    check("the user of a service has the permissions of other clients", got == ["ACCESS_DENIED", "READER_LIST"], got)
    got = scan_as_owner(1998)
    check("a person who runs badged by hand has all permissions", got == ["SCAN", "READER_LIST"], got)

    runtime = os.path.join(work, "runtime")
    os.mkdir(runtime, 0o700)
    os.chown(runtime, nobody, nobody)
    # The folder of the build may be closed to other users.
    copy = shutil.copy(program, os.path.join(work, "badged"))
    daemon = Daemon(copy, ["--virtual", "--no-pcsc"], work, user=nobody, environment={"XDG_RUNTIME_DIR": runtime})
    own = os.path.join(runtime, "badged", "badged.sock")
    modes = [os.stat(file).st_mode & 0o777 for file in (own, os.path.dirname(own))]
    check("the daemon of a user listens in XDG_RUNTIME_DIR", serves(own))
    check("its socket is closed to other users", modes == [0o600, 0o700], modes)
    check("another process of the same user cannot debug it", os.stat(f"/proc/{daemon.pid}/mem").st_uid == 0)
    with open(f"/proc/{daemon.pid}/limits", encoding="ascii") as file:
        limits = file.read()
    check("it writes no core file", re.search(r"Max core file size +0 +0 ", limits), limits)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    check("it may open as many files as the system allows", re.search(rf"Max open files +{most} +{most} ", limits), limits)
    daemon.end()
    code, _, log = Daemon(copy, ["--virtual", "--no-pcsc"], work, wait=False, user=nobody).finished()
    check("a missing XDG_RUNTIME_DIR is an error that names it",
          code == 1 and "XDG_RUNTIME_DIR is not set" in log, (code, log))

# Mutated lines: every answer is UTF-8 and JSON.
daemon = Daemon(program, usual, work)
client = Client(path)
seeds = [b'{"cmd":"GET_API_LEVEL","request":{"a":["\\u00e4\\ud83d\\ude00",1e3]}}', b'{"cmd":"GET_READER","name":"Simulator \xc3\xa4"}',
         b'{"cmd":"NO\xf0\x9f\x98\x80","request":"x","more":[null,{"y":"z"}]}', b'{"cmd":"WALLET_SIGN","message":"m","dapp":{"name":"d"}}']
parts = [bytes([byte]) for byte in range(256) if byte != 10] + [b"\\ud800", b"\\udc00", b"\\u0000", b"\xed\xa0\x80", b'"', b'"', b"\\"]
numbers = random.Random(1)
lines = []
for _ in range(5000):
    line = bytearray(numbers.choice(seeds))
    for _ in range(numbers.randint(1, 3)):
        place = numbers.randrange(len(line))
        line[place : place + numbers.randint(0, 1)] = numbers.choice(parts)
    lines.append(bytes(line))
answers, wrong = 0, []
for start in range(0, len(lines), 100):
    client.file.write(b"\n".join(lines[start : start + 100]) + b'\n{"cmd":"GET_API_LEVEL","request":"last"}\n')
    client.file.flush()
    last = False
    while not last:
        answer = client.file.readline()
        answers += 1
        try:
            last = json.loads(answer.decode("utf-8", "strict"), strict=True).get("request") == "last"
        except ValueError:
            wrong.append(answer)
            break
check(f"each answer to 5000 mutated lines is JSON ({answers} answers)", answers >= 5000 and not wrong, wrong)
daemon.end()

# Exit codes and error texts
for option in "--socket", "--config":
    wrong = subprocess.run([program, option, os.fsencode(work) + b"/\xff"], capture_output=True, text=True)
    check(f"{option} with a name that is not UTF-8 is refused", wrong.returncode == 2 and "not UTF-8" in wrong.stderr, wrong)
code, out, log = run("--version")
check("--version prints name and version", code == 0 and re.fullmatch(r"badged \d+\.\d+\.\d+([~+]\S+)?\n", out) and log == "",
      (code, out, log))
code, out, _ = run("--help")
check("--help prints the usage",
      code == 0 and out.startswith("usage: badged [--socket PATH] [--config FILE] [--virtual]"), out)
code, _, log = run("--bogus")
check("a wrong option: exit code 2, error and hint",
      code == 2 and log == "badged: error: unknown option '--bogus'\nhint: see badged --help\n", (code, log))
configure("[virtual]\nreaders = 65\n")
code, _, log = run(*usual, "--config", config)
check("a wrong configuration: exit code 78, with the line and the values that are allowed",
      code == 78 and f"badged: error: {config}, line 2: [virtual] readers cannot be '65'\nhint: allowed: a number" in log,
      (code, log))
configure("[acces]\ndefault = none\n")
code, _, log = run(*usual, "--config", config)
check("an unknown section: exit code 78, with the line and the likely name",
      code == 78 and f"{config}, line 1: unknown section [acces]\nhint: did you mean access? " in log and
      not os.path.exists(path), (code, log))
configure("[access]\ndefault = none\nuser:x = some\n[log]\nlevels = info\n[credentials]\naliro_group = 0\n")
code, out, log = run("--check-config", config)
check("--check-config prints all errors with their lines, and ends with 78",
      code == 78 and re.findall(r"error: \S+, line (\d+):", log) == ["3", "5", "7"] and out == "", (code, out, log))
configure(f"[eid]\nproxy_credentials = {work}/none\nproxy = http://p:1\n[wallet]\nnode = http://10.0.0.1\nnode_ca = /dev/zero\n"
          "[mpin]\ntrusted_domains = http://a\n[keys]\nissuer = http://10.0.0.1\nissuer_ca = /dev/none\n")
code, out, log = run(f"--check-config={config}")
check("--check-config finds the errors of files and values that the lines name",
      code == 78 and all(f"{config}, line {text}" in log for text in (
          f"2: there is no file {work}/none", "5: [wallet] node cannot be", "6: cannot read /dev/zero: it is not a plain file",
          "8: [mpin] trusted_domains has 'http://a'", "10: [keys] issuer cannot be", "11: there is no file /dev/none")),
      (code, log))
configure("\ufeff[access]\ndefault = none\n")
code, out, log = run("--config", config, "--check-config")
check("--check-config accepts a right file with one line, and a byte order mark",
      code == 0 and out == f"{config} is right\n" and log == "", (code, out, log))
configure("[access]\nuser:nobody-has-this-name = readers\n")
code, out, log = run("--check-config", config)
check("--check-config warns of a name that this computer does not know, with its line",
      code == 0 and f"{config}, line 2: [access] user:nobody-has-this-name names no user" in log, (code, out, log))
code, out, log = run("--check-config", config, "--strict")
check("--strict makes it an error", code == 78 and out == "" and f"{config}, line 2" in log, (code, out, log))
configure("[access]\ndefault = none\n")
os.mkdir(config + ".d")
with open(os.path.join(config + ".d", "50-site.conf"), "w") as file:
    file.write("[access]\nuser:daemon = scan\n[log]\nlevel = info\n")
code, out, log = run("--config", config, "--print-config")
check("--print-config prints the settings in force with the files and lines of a drop-in",
      code == 0 and f"# {config}.d/50-site.conf, line 4\nlevel = info\n" in out and "# default\nenabled = yes\n" in out and
      f"# {config}, line 2\ndefault = none\n" in out and log == "", (code, out, log))
with open("/dev/full", "w") as full:
    shown = subprocess.run([program, "--config", config, "--print-config"], stdout=full, stderr=subprocess.PIPE, text=True,
                           timeout=LIMIT, check=False)
check("--print-config tells that nobody got the settings", shown.returncode == 1 and "No space left" in shown.stderr, shown)
with open(os.path.join(config + ".d", "60-wrong.conf"), "w") as file:
    file.write("[log]\nlevel = loud\n")
code, out, log = run("--config", config, "--check-config")
check("--check-config finds a wrong line of a drop-in", code == 78 and f"{config}.d/60-wrong.conf, line 2" in log, (code, log))
os.remove(os.path.join(config + ".d", "60-wrong.conf"))
os.remove(os.path.join(config + ".d", "50-site.conf"))
os.rmdir(config + ".d")
sticky = os.path.join(work, "sticky")
os.mkdir(sticky)
os.chmod(sticky, 0o1777)
configure(f"[eid]\ntrust_anchors = {sticky}\n")
code, _, log = run("--config", config, "--check-config")
check("a folder of authorities to which other users can add files is refused",
      code == 78 and f"other users can change {sticky}" in log, (code, log))
exposed = os.path.join(work, "exposed")
os.mkdir(exposed)
os.chmod(exposed, 0o777)
code, _, log = run(*usual, STATE_DIRECTORY=exposed)
check("a state folder that other users can change is refused", code == 78 and f"can change {exposed}" in log, (code, log))
os.chmod(exposed, 0o755)
os.mkfifo(os.path.join(exposed, "fifo"))
code, _, log = run(*usual, "--config", os.path.join(exposed, "fifo"))
check("a FIFO as configuration is refused at once", code == 78 and "it is not a plain file" in log, (code, log))
code, _, log = run("--virtual", "--no-pcsc", "--socket", "/" + "x" * 120)
check("a path of the socket that is too long is an error", code == 1 and "has 121 bytes" in log, (code, log))
code, _, log = run("--virtual", "--no-pcsc", "--socket", os.path.join(work, "no", "folder", "s"))
check("a missing folder of the socket is an error", code == 1 and "does not exist" in log and "hint: correct" in log, (code, log))
check("no folder is created", not os.path.exists(os.path.join(work, "no")))

# Without the programs beside badged: that for browsers has a Debian package of its own
os.mkdir(os.path.join(work, "alone"))
configure("[activation]\nenabled = yes\n")
daemon = Daemon(shutil.copy(program, os.path.join(work, "alone")), usual + ["--config", config], work)
check("without badged-activation badged serves its other clients", serves(path))
check("the log says what to install", "hint: apt install badged-activation" in daemon.log(), daemon.log())
client = Client(path)
health = {entry["name"]: entry for entry in client.ask("HEALTH", cmd="GET_HEALTH")["checks"]}
check("HEALTH names the package that is missing", health["browserPort"].get("missingPackage") == "badged-activation", health)
agent = subprocess.run([badgectl, "--socket", path, "agent"], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       timeout=LIMIT, check=False)
check("badgectl agent does not wait for browsers that nothing can serve", agent.returncode == 4 and
      agent.stderr.endswith("hint: apt install badged-activation; systemctl restart badged\n"), agent)
client.send(cmd="RUN_AUTH", tcTokenURL="https://localhost/")
end = client.wait_for("AUTH")
while "result" not in end:
    end = client.wait_for("AUTH")
check("AUTH says that the process of the network is missing, and that nothing was sent",
      end["result"].get("network") == "unavailable" and end["sent"] == "none", end)
client.close()
daemon.end()
finish()
