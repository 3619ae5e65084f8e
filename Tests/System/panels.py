# SPDX-License-Identifier: GPL-3.0-or-later
"""badged-osdp between a real badged and libosdp. Started by panels.sh."""
import os
import resource
import secrets
import signal
import socket
import struct
import subprocess
import sys
import time

from harness import Client, Daemon, check, finish, free_port, sleeps, until
from panel_peers import LibFlag, Noise, Panel, Pty, WallReader, osdp

binaries, work, taps = sys.argv[1], sys.argv[2], int(sys.argv[3])
SOCKET = os.path.join(work, "badged.sock")
KEY = secrets.token_bytes(16)
KEY_FILE = os.path.join(work, "panel.key")
FOLDER = os.path.join(work, "state")
with open(KEY_FILE, "w", encoding="ascii", opener=lambda p, f: os.open(p, f, 0o600)) as file:
    file.write(KEY.hex() + "\n")
os.mkdir(FOLDER, 0o700)

SETTINGS = os.path.join(work, "badged.conf")
with open(SETTINGS, "w", encoding="utf-8") as file:
    file.write("[credentials]\npanel_readers = Simulator\n")
badged = Daemon(f"{binaries}/badged", ["--virtual", "--no-pcsc", "--socket", SOCKET, "--config", SETTINGS], work)
watcher, reporter = Client(SOCKET), Client(SOCKET)
watcher.ask("CREDENTIALS", cmd="START_CREDENTIALS")
watcher.ask("DOOR_PANELS", cmd="START_DOOR_PANELS")


def write(text):
    """Writes osdp.conf with these sections, as editors do: the file is another one. Without [rules] all is told."""
    path = os.path.join(work, "osdp.conf")
    rules = "" if "[rules]" in text else "[rules]\nrule = raw -> raw\n"
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(f"[server]\nsocket = {SOCKET}\nfolder = {FOLDER}\nlog = debug\n{rules}{text}")
    os.rename(path + ".new", path)
    return path


def start(text):
    """Starts badged-osdp with these sections."""
    path = write(text)
    checked = subprocess.run([f"{binaries}/badged-osdp", "--config", path, "--check-config"], check=False,
                             capture_output=True, text=True)
    check("--check-config accepts the file", checked.returncode == 0, checked.stderr)
    daemon = Daemon(f"{binaries}/badged-osdp", ["--config", path], work)
    until(lambda: "connected to badged" in daemon.log())
    return daemon


def tap(bits, data):
    """A reader in the wall that another program reports has read a card."""
    return reporter.ask("REPORTED", cmd="REPORT_TAP", reader="osdp test", bits=bits, data=data.hex(),
                        format="unspecified")["number"]


def verifies(point, signature, message):
    """Whether openssl(1) takes r and s for a signature of the message with SHA-256 and this key on P-256."""
    def number(digits):
        digits = digits.lstrip(b"\0") or b"\0"
        digits = b"\0" + digits if digits[0] & 0x80 else digits
        return bytes([2, len(digits)]) + digits

    body = number(signature[:32]) + number(signature[32:])
    head = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")
    contents = {"key": head + bytes.fromhex(point), "sig": bytes([0x30, len(body)]) + body, "msg": message}
    files = {name: os.path.join(work, name + ".der") for name in contents}
    for name, content in contents.items():
        with open(files[name], "wb") as output:
            output.write(content)
    return subprocess.run(["openssl", "dgst", "-sha256", "-verify", files["key"], "-keyform", "DER", "-signature",
                           files["sig"], files["msg"]], check=False, capture_output=True).returncode == 0


def panel_shows(condition, client=watcher):
    """Waits for a DOOR_PANEL of this form."""
    while True:
        message = client.wait_for("DOOR_PANEL")
        if condition(message):
            return message


CARDS = [(26, "bb032180"), (37, "82690ddd50"), (64, "84848b79fd463e32"), (75, "025f84848b79fd463e32"),
         (256, "0ec5d87dc39d14a2c5480686da860c82b16be0b6903b525f84848b79fd463e32")]

print("A panel at a serial line")
line = Pty()
bad = os.path.join(work, "bad.conf")
with open(bad, "w", encoding="utf-8") as file:
    file.write(f"[server]\nfolder = {FOLDER}\n[panel front]\ndevice = {line.device}\nbaud = 1200\n")
wrong = subprocess.run([f"{binaries}/badged-osdp", "--config", bad, "--check-config"], check=False, capture_output=True,
                       text=True)
check("--check-config names the wrong line and ends with 78",
      wrong.returncode == 78 and "line 5: [panel] baud cannot be '1200'" in wrong.stderr, wrong.stderr)
with open(bad, "w", encoding="utf-8") as file:
    file.write(f"[server]\nfolder = {FOLDER}\n[panel front]\ndevice = {line.device}\n")
wrong = subprocess.run([f"{binaries}/badged-osdp", "--config", bad, "--check-config"], check=False, capture_output=True,
                       text=True)
check("and a panel without a key", wrong.returncode == 78 and "front has no key" in wrong.stderr, wrong.stderr)
daemon = start(f"[panel front]\ndevice = {line.device}\nbaud = 115200\nkey = {KEY_FILE}\noutputs = 2\ntext = 2\n")
panel = Panel(line.descriptor, KEY)
check("libosdp opens the secure channel", until(panel.becomes_secure))
panel_shows(lambda message: message["link"] == "secure")


def arrive(where):
    for bits, number in CARDS:
        tap(bits, bytes.fromhex(number))
        until(lambda: panel.cards)
        check(f"{bits} bits arrive unchanged {where}", panel.cards == [(bits, bytes.fromhex(number))], panel.cards)
        panel.cards.clear()


arrive("at a serial line")

panel.send(command=osdp.Command.LED, reader=0, led_number=0, control_code=1, on_count=5, off_count=5,
           on_color=osdp.CommandLEDColor.Green, off_color=osdp.CommandLEDColor.Black, timer_count=10, temporary=False)
leds = panel_shows(lambda message: message["leds"][0]["color"] == "green")["leds"]
check("an LED of the panel is DOOR_PANEL",
      leds == [{"color": "green", "otherColor": "black", "on": 500, "off": 500}], leds)
panel.send(command=osdp.Command.Buzzer, reader=0, control_code=2, on_count=2, off_count=1, rep_count=3)
beep = panel_shows(lambda message: "beep" in message)["beep"]
check("a sound is told", beep == {"on": 200, "off": 100, "count": 3}, beep)
panel.send(command=osdp.Command.Text, reader=0, control_code=1, temp_time=0, offset_row=2, offset_col=1, data="Open")
text = panel_shows(lambda message: any(message["text"]))["text"]
check("a text is told", text == ["", "Open"], text)
panel.send(command=osdp.Command.Output, output_no=1, control_code=2, timer_count=0)
outputs = panel_shows(lambda message: any(message["outputs"]))["outputs"]
check("an output is told", outputs == [False, True], outputs)
health = reporter.ask("HEALTH", cmd="GET_HEALTH")
check("the panel is in GET_HEALTH", [c["ok"] for c in health["checks"] if c["name"] == "panel front"] == [True], health)

NEW = secrets.token_bytes(16)
panel.send(command=osdp.Command.Keyset, type=1, data=NEW)
stored = os.path.join(FOLDER, "front.key")
until(lambda: os.path.exists(stored))
check("the key that the panel sets is stored, for its user alone",
      open(stored, "rb").read() == NEW and os.stat(stored).st_mode & 0o777 == 0o600)
panel.end()
panel = Panel(line.descriptor, NEW)
check("the panel comes back with the new key", until(panel.becomes_secure))
daemon.end(9)
daemon = start(f"[panel front]\ndevice = {line.device}\nbaud = 115200\nkey = {KEY_FILE}\n")
panel.end()
panel = Panel(line.descriptor, NEW)
check("and after a kill of badged-osdp as well", until(panel.becomes_secure))
panel.end()
wrong = Panel(line.descriptor, KEY)
# libosdp has compared the cryptogram of the reader with its own.
until(lambda: wrong.has_fallen)
check("the old key opens nothing", not wrong.is_secure())
wrong.end()
daemon.end()
os.unlink(stored)

print("Reload")
LINE = f"[panel front]\ndevice = {line.device}\nbaud = 115200\nkey = {KEY_FILE}\ntext = 1\n"
SILENCE = "silence = blink\nsilence_text = Out of order\n"
other = Pty()
OTHER = f"[panel back]\ndevice = {other.device}\nbaud = 115200\nkey = {KEY_FILE}\n"
daemon = start(LINE + SILENCE + OTHER)
panel, back = Panel(line.descriptor, KEY), Panel(other.descriptor, KEY)
screen = Client(SOCKET)
screen.ask("DOOR_PANELS", cmd="START_DOOR_PANELS")
check("two panels open their secure channels", until(panel.becomes_secure) and until(back.becomes_secure))
panel_shows(lambda message: message["panel"] == "front" and message["link"] == "secure", screen)


def reload(text):
    """Has badged-osdp read these sections again, and waits until it has."""
    write(text)
    daemon.reload()


def openings():
    """How often both lines were opened."""
    return [daemon.log().count(f"{one.device} is open") for one in (line, other)]


def checks():
    health = reporter.ask("HEALTH", cmd="GET_HEALTH")["checks"]
    return {check["name"]: check["ok"] for check in health if check["name"].startswith("panel ")}


reload(LINE + SILENCE + OTHER + "[rules]\nrule = raw -> none\n")
check("rules alone leave both lines as they are", openings() == [1, 1], daemon.log())
number = tap(26, bytes.fromhex("bb032180"))
until(lambda: f"tap {number} at 'osdp test' is not told: a rule refuses it" in daemon.log())
reload("nonsense\n" + LINE)
check("a file with an error changes nothing",
      "the settings are refused, and the old ones stay" in daemon.log() and openings() == [1, 1], daemon.log())
number = tap(26, bytes.fromhex("bb032180"))
until(lambda: f"tap {number} at 'osdp test' is not told: a rule refuses it" in daemon.log())
reload(LINE + SILENCE + OTHER.replace("115200", "9600"))
check("a line whose baud rate has changed is opened again, and the other one goes on", openings() == [1, 2],
      daemon.log())
# libosdp would leave the reader alone for minutes.
back.end()
back = Panel(other.descriptor, KEY)
until(lambda: panel.becomes_secure() and back.becomes_secure())
tap(26, bytes.fromhex("bb032180"))
until(lambda: panel.cards and back.cards)
check("both get cards", panel.cards == back.cards == [(26, bytes.fromhex("bb032180"))])
check("both are in GET_HEALTH", checks() == {"panel front": True, "panel back": True}, checks())
reload(LINE + SILENCE)
until(lambda: checks() == {"panel front": True})
check("a panel that is no longer in the file leaves GET_HEALTH", "panel back" not in checks())
back.end()
other.close()
panel.end()
shown = panel_shows(lambda message: message["panel"] == "front" and message["link"] == "silent", screen)
check("clients show that the panel is silent, as osdp.conf says",
      shown["leds"] == [{"color": "amber", "otherColor": "black", "on": 200, "off": 1800}]
      and shown["text"] == ["Out of order"], shown)
check("and GET_HEALTH and the log as well",
      checks() == {"panel front": False} and "front: the panel is silent" in daemon.log(), checks())
number = tap(26, bytes.fromhex("bb032180"))
until(lambda: f"tap {number} waits" in daemon.log())
daemon.end()
check("a card that waits when badged-osdp ends is in the log",
      f"tap {number} was dropped: badged-osdp ends" in daemon.log(), daemon.log())

print("Install mode")
daemon = start(f"[panel front]\ndevice = {line.device}\nbaud = 115200\ninstall = 5\n")
panel = Panel(line.descriptor, NEW, flags=(LibFlag.InstallMode,))
until(lambda: os.path.exists(stored))
check("a panel sets its key with SCBK-D", open(stored, "rb").read() == NEW)
check("and goes on with it", until(panel.becomes_secure))
check("the log says that the install mode was on", "install mode for 5 minutes" in daemon.log())
panel.end()
daemon.end()
daemon = start(f"[panel front]\ndevice = {line.device}\nbaud = 115200\ninstall = 5\n")
check("with this key there is no install mode after the next start", "front: no install mode" in daemon.log())
# CHLNG with SCBK-D, which is answered with NAK 5.
os.write(line.descriptor, bytes.fromhex("ff530013000c0311007601020304050607080e48"))
until(lambda: "asks for the key of the installation: refused" in daemon.log())
check("SCBK-D opens nothing, and the key stays",
      open(stored, "rb").read() == NEW and "the panel uses the key of the installation" not in daemon.log())
daemon.end()
os.unlink(stored)

print("A panel without the secure channel")
daemon = start(f"[panel front]\ndevice = {line.device}\nbaud = 115200\nkey = {KEY_FILE}\nwait = 1\n")
panel = Panel(line.descriptor, None, flags=())
panel_shows(lambda message: message["link"] == "refused")
number = tap(26, bytes.fromhex("bb032180"))
until(lambda: f"tap {number} was dropped: the panel has opened no secure channel" in daemon.log())
check("it gets no card", not panel.cards)
panel.end()
daemon.end()

print("A panel that asks cards with PKOC itself")
VENDOR = 0x21901A
CHOSEN = secrets.token_bytes(16)
daemon = start(f"[panel front]\ndevice = {line.device}\nbaud = 115200\nkey = {KEY_FILE}\nreaders = Simulator\n"
               "wait = 60\npkoc = panel\n[rules]\nrule = any -> key64\n")
panel = Panel(line.descriptor, KEY)
until(panel.becomes_secure)


def parts(message):
    """AUTH_REQUEST in parts that libosdp takes."""
    for offset in range(0, len(message), 40):
        part = message[offset : offset + 40]
        yield b"\xe1" + struct.pack("<HHH", len(message), offset, len(part)) + part


def ask(*messages):
    for data in messages:
        panel.send(command=osdp.Command.Manufacturer, vendor_code=VENDOR, data=data)


def replies(code):
    """The data of the replies with this code so far."""
    return [data[1:] for vendor, data in panel.replies if vendor == VENDOR and data[0] == code]


def answer():
    """The parts of AUTH_RESPONSE so far."""
    return b"".join(data[6:] for data in replies(0xE2))


objects = [b"\x00\x01\x5c\x02\x01\x00\x4d\x20", secrets.token_bytes(32), b"\x4c\x10", CHOSEN, b"\xfd\x07"]
QUESTION = b"".join(objects)
# On a busy machine the time for the question may be over before it is asked.
while len(answer()) < 135:
    panel.replies.clear()
    watcher.ask("CHANGE_PIN", cmd="RUN_CHANGE_PIN")
    watcher.wait_for("INSERT_CARD")
    watcher.send(cmd="SET_CARD", name="Simulator", card={"kind": "pkoc", "phone": True})
    known = watcher.wait_for("CREDENTIAL")
    until(lambda: replies(0xE0))
    ask(*parts(QUESTION))
    until(lambda: len(answer()) == 135 or replies(0xFE))
    if replies(0xFE):
        watcher.send(cmd="CANCEL")
        watcher.wait_for("CHANGE_PIN")
answer = answer()
check("other clients are told the tap as always", known["verified"] and known["protocol"] == "pkoc-se1", known)
check("the panel is told that there is a card, and no number", replies(0xE0) == [bytes.fromhex("fc065c0201004d00")]
      and not panel.cards, panel.replies)
check("it gets the key that badged has verified", answer[:67] == b"\x5a\x41" + bytes.fromhex(known["publicKey"]))
check("and the number of its question", answer[-2:] == b"\xfd\x07")
until(lambda: f"tap {known['number']} was told" in daemon.log())
signature = answer[69:133]
check("the card has signed what the panel has chosen",
      verifies(known["publicKey"], signature, CHOSEN) and not verifies(known["publicKey"], signature, bytes(16)))
check("the log of badged says so", "a door panel chooses what the card in 'Simulator' signs" in badged.log())
# libosdp would leave the reader alone for minutes after a NAK, so the second question ends the part.
ask(*parts(QUESTION))
until(lambda: "asks for a card without a tap, or twice: refused" in daemon.log())
check("a second question about the same card is refused", len(replies(0xE2)) == 2, panel.replies)
watcher.send(cmd="CANCEL")
watcher.wait_for("CHANGE_PIN")
panel.end()
daemon.end()

print("TCP")
port = free_port()
server = socket.create_server(("127.0.0.1", port))
daemon = start(f"[panel front]\ntcp = 127.0.0.1:{port}\nkey = {KEY_FILE}\n")
link, _ = server.accept()
link.setblocking(False)
panel = Panel(link.fileno(), KEY)
check("a panel behind a port opens the secure channel", until(panel.becomes_secure))
arrive("over TCP")
panel.end()
link.close()
link, _ = server.accept()
link.setblocking(False)
panel = Panel(link.fileno(), KEY)
check("badged-osdp connects again after a loss", until(panel.becomes_secure))
panel.end()
daemon.end()
link.close()
server.close()
port = free_port()
daemon = start(f"[panel front]\nlisten = 127.0.0.1:{port}\nkey = {KEY_FILE}\n")
link = socket.create_connection(("127.0.0.1", port))
link.setblocking(False)
panel = Panel(link.fileno(), KEY)
check("a panel that connects to the port opens the secure channel", until(panel.becomes_secure))
panel.end()
link.close()
daemon.end()

print("A port that somebody has connected to who says nothing")
port = free_port()
daemon = start(f"[panel front]\nlisten = 127.0.0.1:{port}\nkey = {KEY_FILE}\n")
idle = socket.create_connection(("127.0.0.1", port))
until(lambda: "is open" in daemon.log())
POLL = bytes.fromhex("ff53000700006046")


def connect():
    """A connection over which a poll is answered; None: it is refused."""
    new = socket.create_connection(("127.0.0.1", port))
    try:
        new.sendall(POLL)
        if new.recv(64):
            return new
    except OSError:
        pass
    new.close()
    return None


link = until(connect)
check("the panel gets the port from one who has sent nothing for 8 seconds",
      idle.recv(1) == b"" and "a second connection" in daemon.log() and "a new connection takes its place"
      in daemon.log(), daemon.log())
check("and keeps it", connect() is None)
idle.close()
begin = time.monotonic()
while time.monotonic() - begin < 9:
    link.sendall(POLL)
    link.recv(64)
    time.sleep(0.5)
owner = socket.create_connection(("127.0.0.1", port))
owner.setblocking(False)
panel = Panel(owner.fileno(), KEY)
check("but not by frames without the key", until(panel.becomes_secure), daemon.log())
panel.end()
owner.close()
link.close()
until(lambda: "the other side has closed it" in daemon.log())

print("No descriptor is left")
limits = resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE)
# One, since poll(2) for the line of the log needs as many.
resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, (1, limits[1]))
link = socket.create_connection(("127.0.0.1", port))
until(lambda: "waits: Too many open files" in daemon.log())
check("a connection that cannot be accepted does not keep badged-osdp busy", sleeps(daemon.pid))
resource.prlimit(daemon.pid, resource.RLIMIT_NOFILE, limits)
link.setblocking(False)
panel = Panel(link.fileno(), KEY)
check("and is served as soon as there is a descriptor", until(panel.becomes_secure))
panel.end()
link.close()
daemon.end()

print("Readers in the wall")
daemon = start(f"[reader hall]\ndevice = {line.device}\nbaud = 115200\nkey = {KEY_FILE}\n")
reader = WallReader(line.descriptor, KEY)
until(lambda: "with the secure channel" in daemon.log())


def read():
    """Waits for a card of the reader in the wall."""
    while True:
        message = watcher.wait_for("CREDENTIAL")
        if message["reader"] == "osdp hall":
            return message


def become(where):
    for bits, number in CARDS:
        reader.show(bits, bytes.fromhex(number))
        message = read()
        check(f"{bits} bits of the reader {where} become CREDENTIAL, not verified",
              message["protocol"] == "raw" and not message["verified"] and message["raw"]["bits"] == bits
              and message["raw"]["data"] == number, message)


become("at a serial line")
reader.end()
daemon.end()

print("A reader in the wall whose line goes away")
port = free_port()
server = socket.create_server(("127.0.0.1", port))
daemon = start(f"[reader hall]\ntcp = 127.0.0.1:{port}\nkey = {KEY_FILE}\n")
link, _ = server.accept()
link.setblocking(False)
reader = WallReader(link.fileno(), KEY)
until(lambda: "with the secure channel" in daemon.log())
become("behind a port")
reader.line.descriptor = -1
link.close()
until(lambda: "the line is gone" in daemon.log())
lost = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
reader.show(64, bytes(7) + b"\1")
link, _ = server.accept()
link.setblocking(False)
reader.line.descriptor = link.fileno()
message = read()
check("a card that the reader kept meanwhile is told, with a time before the loss",
      message["raw"]["data"] == "0000000000000001" and message["uptime"] <= lost, (message, lost))

print("badged stops while it is told cards of this reader")
# badged has answered the last card.
reporter.ask("INFO", cmd="GET_INFO")
badged.process.send_signal(signal.SIGSTOP)
count = daemon.log().count("a card with 64 bits")
for number in (2, 3):
    reader.show(64, bytes(7) + bytes([number]))
until(lambda: daemon.log().count("a card with 64 bits") == count + 2)
daemon.end()
badged.process.send_signal(signal.SIGCONT)
ends = [line for line in daemon.log().splitlines() if "badged-osdp ends" in line]
# On a busy machine badged-osdp may not have read yet that the card before was told.
check("when badged-osdp ends, it is said of each that it is unconfirmed or was dropped",
      len(ends) in (2, 3) and "unconfirmed" in ends[0] and all("was dropped" in line for line in ends[1:]), daemon.log())
reader.end()
link.close()
server.close()

print(f"{taps} taps over a line that loses and changes bytes")
daemon = start(f"[panel front]\ndevice = {line.device}\nbaud = 115200\nkey = {KEY_FILE}\nwait = 60\n")
noise = Noise(line.descriptor, 0.03, seed=1)
panel = Panel(noise.outer.fileno(), KEY)

until(panel.becomes_secure)
sent = {}
WORDS = ("was told", "unconfirmed", "was dropped")


def outcomes():
    """The numbers of the taps that have ended, by the word of the log."""
    panel.revive()
    lines = [line for line in daemon.log().splitlines() if ": tap " in line]
    return {word: [int(line.split(": tap ")[1].split(" ")[0]) for line in lines if word in line] for word in WORDS}


for number in range(taps):
    data = number.to_bytes(2, "big") + secrets.token_bytes(6)
    sent[tap(64, data)] = (64, data)
    # A few people at most wait while the panel begins anew.
    until(lambda: sum(map(len, outcomes().values())) > len(sent) - 8)
noise.rate = 0


def ended():
    found = outcomes()
    return found if sum(map(len, found.values())) >= taps else None


told = until(ended) or {}
arrived = panel.cards
print(f"  {noise.faults} faults, {len(arrived)} cards arrived, " + ", ".join(f"{len(v)} {k}" for k, v in told.items()))
check("no number is wrong", set(arrived) <= set(sent.values()))
check("no number arrives twice", len(set(arrived)) == len(arrived))
check("each tap is told, unconfirmed or dropped, and only one of them",
      sorted(sum(told.values(), [])) == sorted(sent))
check("each tap that badged-osdp calls told has arrived", {sent[n] for n in told["was told"]} <= set(arrived))
check("no tap that was dropped has arrived", not {sent[n] for n in told["was dropped"]} & set(arrived))
check("most were told all the same", len(told["was told"]) > taps * 0.9, told)
check("the line was noisy", noise.faults > taps / 100)
panel.end()
noise.close()
daemon.end()
badged.end()
finish()
