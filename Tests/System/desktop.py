# SPDX-License-Identifier: GPL-3.0-or-later
"""Drives badged-desktop by the keyboard, and reads its window by AT-SPI. Arguments: the checkout, the folder of the
programs, a folder for files, and the address of the test service."""

import json
import os
import re
import socket
import subprocess
import sys
import threading
import urllib.parse

import gi

gi.require_version("Atspi", "2.0")
from gi.repository import Atspi, Gio, GLib  # noqa: E402
from harness import LIMIT, check, children, finish, free_port, until  # noqa: E402

root, programs, work, url = sys.argv[1:]
pictures = os.environ.get("BADGED_PICTURES")
sys.path.insert(0, f"{root}/clients/desktop")
PORT = free_port()

# MARK: Reading the window


def everything():
    """Each text and each name of all windows, in order, with the role."""
    found = []

    def walk(node):
        name = node.get_name() or ""
        if name and not name.startswith("Gtk"):
            found.append((node.get_role_name(), name))
        for index in range(node.get_child_count()):
            child = node.get_child_at_index(index)
            if child is not None:
                walk(child)

    desktop = Atspi.get_desktop(0)
    for index in range(desktop.get_child_count()):
        application = desktop.get_child_at_index(index)
        for number in range(application.get_child_count() if application else 0):
            window = application.get_child_at_index(number)
            try:
                if window is not None:
                    walk(window)
            except GLib.Error:  # a page that has just gone
                return []
    return found


def texts():
    return [text for _, text in everything()]


def shows(text):
    """Waits until the window has this text."""
    if not until(lambda: any(text in shown for shown in texts())):
        print("    the window has:", texts())
        return False
    read(texts())
    return True


def focused():
    """The name of the widget that has the focus."""
    def walk(node):
        if node.get_state_set().contains(Atspi.StateType.FOCUSED) and node.get_role_name() != "frame":
            return node.get_name()
        for index in range(node.get_child_count()):
            child = node.get_child_at_index(index)
            if child is not None and (name := walk(child)) is not None:
                return name
        return None
    try:
        return walk(Atspi.get_desktop(0))
    except GLib.Error:
        return None


def place(name):
    """Where the text is in the window, in pixels; None if it is not there."""
    def walk(node):
        if node.get_name() == name:
            return node.get_extents(Atspi.CoordType.WINDOW)
        below = (walk(child) for index in range(node.get_child_count()) if (child := node.get_child_at_index(index)) is not None)
        return next((found for found in below if found is not None and found.y >= 0), None)
    try:
        return walk(Atspi.get_desktop(0))
    except GLib.Error:
        return None


def top(name):
    """How far the text is below the upper edge of the window, in pixels; -1 if it is not there."""
    found = place(name)
    return found.y if found else -1


# MARK: German

# Only those of the window: texts of other programs with placeholders would take the halves of its lines.
blocks = [block for block in open(f"{root}/po/de.po", encoding="utf-8").read().split("\n\n") if "clients/desktop/" in block]
entries = re.findall(r'^msgid ((?:".*"\n)+)msgstr ((?:".*"\n)+)', "\n\n".join(blocks) + "\n", re.M)
join = lambda text: "".join(json.loads(line) for line in text.splitlines())  # noqa: E731
german = [join(translation).replace("_", "") for _, translation in entries]
patterns = []
# An entry such as "{name}: {text}" would take the half of any line, and one such as "s" its letters.
words = [text for text in german if re.search(r"\w{3}", re.sub(r"\{\w+\}", "", text))]
for text in sorted(words, key=len, reverse=True):
    patterns.append(re.sub(r"\\\{\w+\\\}", lambda _: ".*?", re.escape(text)))
known = re.compile("|".join(f"(?:{pattern})" for pattern in patterns))
#: What strangers have written, marks between texts of ours, and what is the same in German.
FOREIGN = ["badged", "OK", "Testdienst", "Test", "https://localhost:\\d+", "Simulator( 2)?", "sudo apt .*", "printf .*", "[•–\\s\\d.:]+"]
english = set()


def read(shown):
    """Notes each text that is neither German nor foreign."""
    for text in shown:
        rest = known.sub("", text)
        if rest.strip() and not any(re.fullmatch(pattern, text) for pattern in FOREIGN):
            if not re.fullmatch("|".join(FOREIGN), rest.strip()):
                english.add(text)


# MARK: Driving

def keys(*names):
    windows = until(lambda: subprocess.run(
        ["xdotool", "search", "--onlyvisible", "--class", "badged"], capture_output=True, text=True).stdout.split())
    subprocess.run(["xdotool", "windowfocus", "--sync", windows[-1]], check=True)
    subprocess.run(["xdotool", "key", *names], check=True)


def picture(name):
    if pictures:
        subprocess.run(["import", "-window", "root", f"{pictures}/{name}.png"], check=True)


def program(name, script):
    path = f"{work}/programs/{name}"
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write("#!/bin/sh\n" + script)
    os.chmod(path + ".new", 0o755)
    os.rename(path + ".new", path)


def pinentry(*values):
    """The next windows for a secret get these values."""
    with open(f"{work}/values", "w", encoding="utf-8") as file:
        file.writelines(value + "\n" for value in values)


def windows():
    with open(f"{work}/windows", encoding="utf-8") as file:
        return file.read().splitlines()


def start(*arguments, **more):
    environment = {**os.environ, "PATH": f"{work}/programs:{os.environ['PATH']}", "BADGED_SOCKET": f"{work}/badged.sock"}
    child = subprocess.Popen(
        ["/usr/bin/python3", f"{root}/clients/desktop/badged-desktop", *arguments], env={**environment, **more})
    children.append(child)
    return child


def end(child):
    child.terminate()
    return child.wait(LIMIT)


def link(query=""):
    return "eid://127.0.0.1:24727/eID-Client?tcTokenURL=" + urllib.parse.quote(url + query, "")


os.makedirs(f"{work}/programs", exist_ok=True)
os.symlink(f"{programs}/badgectl", f"{work}/programs/badgectl")
open(f"{work}/windows", "w").close()
program("pinentry", f"""echo OK
while read -r command text; do
    echo "$command $text" >>"{work}/windows"
    if [ "$command" = GETPIN ]; then
        value=$(sed -n 1p "{work}/values")
        sed -i 1d "{work}/values"
        case $value in
            '') echo ERR 83886179 cancelled; continue ;;
            *) echo "D $value" ;;
        esac
    fi
    echo OK
    [ "$command" != BYE ] || exit 0
done
""")
# The browser of the desktop.
os.makedirs(f"{work}/home/.local/share/applications")
with open(f"{work}/home/.local/share/applications/browser.desktop", "w", encoding="utf-8") as file:
    file.write(f"[Desktop Entry]\nType=Application\nName=browser\nExec={work}/programs/browser %u\n")
with open(f"{work}/home/.local/share/applications/mimeapps.list", "w", encoding="utf-8") as file:
    file.write("[Default Applications]\nx-scheme-handler/https=browser.desktop\n")
program("browser", f'echo "$1" >>"{work}/opened"\n')
opened = lambda: os.path.exists(f"{work}/opened") and open(f"{work}/opened").read().splitlines()  # noqa: E731

with open(f"{work}/badged.conf", "w", encoding="utf-8") as file:
    file.write(f"""[pcsc]\nenabled=no\n[nfc]\nenabled=no\n[ble]\nenabled=no\n[virtual]\nenabled=yes\n
[eid]\ntrust_anchors={work}/anchors\n[activation]\nenabled=yes\nport={PORT}\n""")


def start_badged():
    child = subprocess.Popen(
        [f"{programs}/badged", "--config", f"{work}/badged.conf", "--socket", f"{work}/badged.sock"],
        env={**os.environ, "STATE_DIRECTORY": f"{work}/state"}, stderr=open(f"{work}/log", "a"))
    children.append(child)
    return child


# MARK: The command line

called = lambda *arguments: subprocess.run(  # noqa: E731
    ["/usr/bin/python3", f"{root}/clients/desktop/badged-desktop", *arguments], capture_output=True, text=True)
shown = called("--help").stdout
check("the help is German", shown.startswith("Aufruf: badged-desktop") and "bis ein Browser anfragt" in shown, shown)
shown = called("--nonsense").stderr
check("a wrong option is told in German", shown == "badged-desktop: Fehler: unbekannte Option --nonsense\nRat: badged-desktop --help\n", shown)

# MARK: The daemon is missing, and comes

window = start("--background")
bus = Gio.bus_get_sync(Gio.BusType.SESSION)
until(lambda: bus.call_sync(
    "org.freedesktop.DBus", "/", "org.freedesktop.DBus", "NameHasOwner", GLib.Variant("(s)", ("badged-desktop.Window",)),
    None, Gio.DBusCallFlags.NONE, -1).unpack()[0])
second = start()
check("without badged the window says so, and what helps", shows("sudo systemctl start badged.socket"))
check("a second start ends at once, and hands over to the first", second.wait(LIMIT) == 0)
picture("missing")
os.makedirs(f"{work}/state", exist_ok=True)
daemon = start_badged()
check("when badged has come, the window goes on", shows("Simulator"))
check("it says that browsers are served", shows("Bereit. Beginnen Sie"))
picture("main")

# MARK: A browser logs in

result = {}


def browse():
    # http.client does not know the interim answer 102.
    with socket.create_connection(("127.0.0.1", PORT), LIMIT) as connection:
        address = f"/eID-Client?tcTokenURL={urllib.parse.quote(url, '')}"
        connection.sendall(f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\n\r\n".encode())
        received = b""
        while data := connection.recv(4096):
            received += data
        result["answer"] = received.decode()


pinentry("111111", "111111", "500540", "123456")
browser = threading.Thread(target=browse)
browser.start()
check("a login of a browser shows who asks", shows("Testdienst"))
check("each datum is a line", shows("Familienname") and shows("Anschrift") and shows("Doktorgrad"))
check("the page is read from its title on", until(lambda: focused() == "Dieser Anbieter fragt nach Ihren Daten"))
named = {name for role, name in everything() if role not in ("label", "heading")}
check("buttons and switches have names for a screen reader",
      {"Zustimmen", "Ablehnen", "Geburtsort", "Nutzungsbedingungen des Anbieters"} <= named, everything())
picture("consent")
keys("Tab")
check("the keyboard reaches the first switch", until(lambda: focused() == "Geburtsort"))
keys("space")
keys("alt+z")
check("after the PIN the login is done", shows("Fertig"))
picture("end")
browser.join(LIMIT)
check("the browser continues", re.search("^Location: https:.*ResultMajor=ok", result.get("answer", ""), re.M), result)
check("after a wrong PIN the window for the PIN says so",
      any("Diese PIN war falsch." in line and "zwei Versuche" in line for line in windows()), windows())
check("the window for the CAN says that the PIN was wrong, too",
      any("Diese PIN war falsch." in line and "Zugangsnummer (CAN)" in line for line in windows()), windows())
check("it names the service", any("Testdienst" in line for line in windows()))

# MARK: A link, an error, a refusal

start(link())
check("a link asks, too", shows("Dieser Anbieter fragt nach Ihren Daten"))
pinentry("123456")
keys("alt+z")
check("the browser of the desktop gets the page of the service",
      until(lambda: opened() and "ResultMajor=ok" in opened()[-1]), opened())
check("the window says that it is done", shows("Fertig"))
start(link("?fault=eac2-signature"))
check("the next link asks", shows("Dieser Anbieter fragt nach Ihren Daten"))
pinentry("123456")
keys("alt+z")
check("a failure has its remedy", shows("wenden Sie sich an den Anbieter"))
picture("failure")
start(link())
check("one more link asks", shows("Dieser Anbieter fragt nach Ihren Daten"))
keys("Escape")
check("Escape refuses, and the service gets nothing", shows("Der Anbieter hat keine Daten erhalten."))
start("eid:nonsense")
check("a link that is none is refused with words", shows("Der Link des Anbieters ist nicht gültig."))
keys("Return")

# MARK: The PIN

check("the first page has what one can do", shows("Was Sie tun können"))
pinentry("123456", "654321")
keys("alt+p")
check("the PIN is changed", shows("Die PIN ist geändert"))
picture("changed")
check("the new PIN is typed twice", "SETREPEAT Neue PIN wiederholen:" in windows(), windows())
keys("Return")
shows("Was Sie tun können")
pinentry("")
keys("alt+p")
check("Cancel in the window for the PIN cancels", shows("Der Vorgang wurde vor dem Abschluss beendet."))
program("pinentry", "echo ERR 1\n")
keys("Return")
shows("Was Sie tun können")
keys("alt+p")
check("without a pinentry that works, the window says what to install", shows("sudo apt install pinentry-gnome3"))
everywhere = "\n".join(texts() + windows())
check("no secret is in a window of ours", not re.search("123456|654321|111111|500540", everywhere))

# MARK: The end of badged

daemon.terminate()
daemon.wait(LIMIT)
keys("Return")
check("when badged has ended, the window waits", shows("badged läuft nicht") or shows("badged wird gesucht"))
daemon = start_badged()
check("it goes on by itself", shows("Was Sie tun können"))
check("the program ends with its window", end(window) in (0, -15))
window = start("--background")
waiting = threading.Thread(target=browse)


def asked():
    """Lets a browser ask until the program in the background answers browsers."""
    global waiting
    if not waiting.is_alive():
        waiting = threading.Thread(target=browse)
        waiting.start()
    return any("Testdienst" in shown for shown in texts())


check("in the background the window comes when a browser asks", until(asked))
keys("alt+a")
check("Refuse ends the login", shows("Der Anbieter hat keine Daten erhalten."))
waiting.join(LIMIT)
check("the browser is told", "cancellationByUser" in result.get("answer", ""), result)
end(window)

# MARK: Letters of twice the size, and dark


def agree():
    """The button that agrees, when it has its place."""
    shows("Dieser Anbieter fragt nach Ihren Daten")
    return until(lambda: (found := place("Zustimmen")) and found.height > 0 and found)


window = start(link())
usual = agree()
keys("Escape")
end(window)
os.makedirs(f"{work}/home/.config/gtk-4.0")
with open(f"{work}/home/.config/gtk-4.0/settings.ini", "w", encoding="utf-8") as file:
    file.write("[Settings]\ngtk-font-name=Sans 22\ngtk-application-prefer-dark-theme=1\n")
window = start(link())
large = agree()
picture("large")
check("with letters of twice the size the button is larger", large.height > 1.4 * usual.height, (large.height, usual.height))
check("and is still in the window", large.y + large.height <= 900 and large.x + large.width <= 1000, (large.y, large.x))
keys("Tab")
check("the keyboard reaches the first switch there, too", until(lambda: focused() == "Geburtsort"))
keys("Escape")
check("and Escape refuses", shows("Der Anbieter hat keine Daten erhalten."))
end(window)
os.remove(f"{work}/home/.config/gtk-4.0/settings.ini")
daemon.terminate()

# MARK: Texts of strangers

HOSTILE = '''#!/usr/bin/python3
import json, os, sys
def say(**message): os.write(1, (json.dumps(message) + "\\n").encode())
info = {"Name": "", "Implementation-Title": "", "Implementation-Vendor": "", "Implementation-Version": "",
        "Specification-Title": "", "Specification-Vendor": "", "Specification-Version": ""}
card = {"kind": "eid", "retryCounter": 0, "deactivated": False, "inoperative": False}
reader = {"name": "R\\u202e<b>x</b>", "attached": True, "keypad": False, "insertable": False, "card": card}
changes = auths = 0
for line in sys.stdin.buffer:
    command = json.loads(line)
    re = {"request": command.get("request")}
    match command["cmd"]:
        case "GET_INFO": say(msg="INFO", VersionInfo=info, AusweisApp="UNKNOWN", badged={"protocol": 1, "drivers": [], "scanners": []}, **re)
        case "SET_USER_INTERFACE": say(msg="ACCESS_DENIED", error="SET_USER_INTERFACE", missing=["agent"], granted=[], **re)
        case "GET_HEALTH": say(msg="HEALTH", checks=[{"name": "trustAnchors", "ok": False}, {"name": "new", "ok": False}], **re)
        case "GET_READER_LIST": say(msg="READER_LIST", readers=[reader], **re)
        case "FIND_SERVICE": say(msg="SERVICE", tcTokenURL="https://service.example/", **re)
        case "RUN_CHANGE_PIN":
            say(msg="CHANGE_PIN")
            if changes == 0: say(msg="ENTER_PUK", reader=reader, question=1)
            # The card of this reader could be used, if it were not in use elsewhere.
            elif changes == 2:
                template = "Reader '{0}' is busy in another client's workflow: wait for its end or use another reader"
                say(msg="INSERT_CARD", error=template.replace("{0}", reader["name"]), reader=reader["name"],
                    errorWords={"template": template, "values": [reader["name"]]})
            else: say(msg="ENTER_PIN", reader={**reader, "keypad": True, "card": {**card, "retryCounter": 1}}, question=3)
            changes += 1
        case "SET_PIN":
            # Only a value that is typed on the keypad has no digits here.
            if "value" in command: sys.exit(1)
        case "ASK_SECRET":
            say(msg="SECRET_ASKED", outcome="sent", **re)
            say(msg="ENTER_PIN", reader={**reader, "card": {**card, "retryCounter": 3}}, question=2)
        case "CANCEL" if auths: say(msg="AUTH", result={"major": "error", "reason": "User_Cancelled"}, sent="none")
        case "CANCEL": say(msg="CHANGE_PIN", success=False, reason="User_Cancelled")
        case "RUN_AUTH":
            auths += 1
            say(msg="AUTH")
            say(msg="ACCESS_RIGHTS", chat={"required": ["Un<b>known"], "optional": ["Address"], "effective": []},
                transactionInfo=f"\\u202e<span size='999999'>m</span> {auths}")
        case "GET_CERTIFICATE":
            say(msg="CERTIFICATE", validity={"effectiveDate": "2026-01-31", "expirationDate": "x"}, description={
                "subjectName": "<b>" + "n" * 4000, "subjectUrl": "https://" + "a" * 4000 + ".end.example", "issuerName": "",
                "issuerUrl": "", "termsOfUsage": "<i>" + "t" * 102400,
                "purpose": "p\\n" * 4000 if auths == 2 else "\\u0301\\u202e\\u2066<u>p" + "\\u0301" * 500}, **re)
        case "SET_ACCESS_RIGHTS": say(msg="ACCESS_RIGHTS", chat={"required": [], "optional": [], "effective": []}, **re)
        case "ACCEPT":
            say(msg="AUTH", result={"major": "error", "reason": "Card_Removed"}, url="file:///etc/passwd", sent="possible",
                rights=["Address"])
'''
os.remove(f"{work}/programs/badgectl")
program("badgectl", "")
with open(f"{work}/programs/badgectl", "w", encoding="utf-8") as file:
    file.write(HOSTILE)
window = start()
check("a blocked PIN can be unblocked", shows("PIN entsperren"))
check("what is missing is said", shows("sudo badgectl anchors import"))
check("a user without the permission is told", shows("Berechtigung „agent“"))
picture("blocked")
keys("alt+e")
check("unblocking ends after the PUK", shows("Die PIN ist entsperrt"))
keys("Return")
shows("Was Sie tun können")
keys("alt+p")
check("with a keypad the window says where to type", shows("am Tastenfeld des Lesegeräts"))
check("it says that this is the last try", shows("Dies ist der letzte Versuch."))
picture("keypad")
keys("Escape")
check("Escape cancels", shows("Der Vorgang wurde vor dem Abschluss beendet."))
keys("Return")
shows("Was Sie tun können")
keys("alt+p")
check("a card that another workflow uses is not to be taken out", shows("wird von einem anderen Programm benutzt: warten Sie"))
keys("Escape")
shows("Der Vorgang wurde vor dem Abschluss beendet.")
keys("Return")
shows("Was Sie tun können")
keys("alt+d")
check("markup of a service is text", shows("<b>nnn") and shows("<span size='999999'>m</span> 1") and shows("Un<b>known"))
names = texts()
check("a long name is shortened", max(map(len, names)) < 5000 and any(name.startswith("<b>nnn") and name.endswith("…") for name in names))
check("of a long address the end is shown", any(name.endswith(".end.example") for name in names))
check("no text of a service has direction controls", not any(re.search("[\u202a-\u202e\u2066\u2067]", name) for name in names))
check("marks without a letter stand on a circle", any(name.startswith("◌\u0301<u>p\u0301\u0301") and len(name) < 20 for name in names), names)
picture("hostile")
for _ in range(2):
    keys("Tab")
keys("space")
check("100 kB of terms are shown on demand", until(lambda: focused() == "Nutzungsbedingungen des Anbieters"))
picture("terms")
keys("alt+z")
english_before = set(english)
check("a failure says what the service may have", shows("möglicherweise Daten erhalten, höchstens: Anschrift"))
check("only web addresses are opened", "Zurück zum Anbieter" not in texts())
keys("Return")
shows("Was Sie tun können")
keys("alt+d")
shows("<span size='999999'>m</span> 2")
picture("lines")
check("thousands of lines of a service do not push the data out of the window", until(lambda: 0 < top("Der Anbieter braucht") < 680))
start("https://service.example/").wait(LIMIT)
keys("Escape")
check("a link that came meanwhile follows", shows("<span size='999999'>m</span> 3"))
check("the program ends", end(window) in (0, -15))
english -= {text for text in english if re.search("nnn|<|aaa|Un<b>", text)}
check("no text is English", not english, english)
read_windows = [re.sub("%0A", "\n", line.split(" ", 1)[1].split("=")[-1]) for line in windows() if line.startswith(("SETDESC", "SETPROMPT", "SETOK", "SETCANCEL", "SETREPEAT", "OPTION default"))]
english.clear()
read([line for text in read_windows for line in text.split("\n\n")])
check("no text of the windows for secrets is English", not english, english)
finish()
