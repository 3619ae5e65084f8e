# SPDX-License-Identifier: GPL-3.0-or-later
# GPIO lines of a simulated chip (gpio-sim): badged-osdp, as its user, switches lamps, a sounder and outputs as libosdp,
# the panel, says. Lines that cannot be used are told. What becomes of lines when the panel is silent, and when the program
# ends. The chip sets a line that is given back to its pull.
# short
# kernel: time-travel=inf-cpu
import fcntl
import glob
import grp
import os
import pwd
import secrets
import shutil
import subprocess
import sys
import termios

from guest import BIN, ROOT, WORK, check, finish, start_udev
from harness import Daemon, until

sys.path += glob.glob(f"{ROOT}/.build-tools/lib/python3*/site-packages")
from panel_peers import Panel, Pty, osdp  # noqa: E402

LINES = 8
TAKEN = 5
SIM = "/sys/kernel/config/gpio-sim/board"


def put(path, text):
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def get(path):
    with open(path, encoding="ascii") as file:
        return file.read().strip()


# The rule of docs/panels.md.
os.makedirs("/run/udev/rules.d", exist_ok=True)
put("/run/udev/rules.d/90-gpio.rules", 'SUBSYSTEM=="gpio", KERNEL=="gpiochip0", GROUP="dialout", MODE="0660"\n')
subprocess.run(["systemd-sysusers", f"{ROOT}/systemd/badged-osdp-sysusers.conf"], check=True)
user, group = pwd.getpwnam("badged-osdp").pw_uid, grp.getgrnam("dialout").gr_gid
start_udev()
subprocess.run(["mount", "-t", "configfs", "configfs", "/sys/kernel/config"], check=True)
os.makedirs(f"{SIM}/bank/line{TAKEN}/hog")
put(f"{SIM}/bank/num_lines", str(LINES))
put(f"{SIM}/bank/line{TAKEN}/hog/name", "fan")
put(f"{SIM}/bank/line{TAKEN}/hog/direction", "output-high")
put(f"{SIM}/live", "1")
chip = get(f"{SIM}/bank/chip_name")
folder = f"/sys/devices/platform/{get(f'{SIM}/dev_name')}/{chip}"
check("the rule of udev gives the chip to group dialout", until(lambda: os.stat(f"/dev/{chip}").st_gid == group), chip)


def values():
    """Which lines are on."""
    return {number for number in range(LINES) if get(f"{folder}/sim_gpio{number}/value") == "1"} - {TAKEN}


def become(*wanted):
    """Waits until these lines are on, and no others."""
    return until(lambda: values() == set(wanted))


def pull(number, direction):
    """The level of a line that nobody drives."""
    put(f"{folder}/sim_gpio{number}/pull", f"pull-{direction}")


line = Pty()
os.chown(line.device, user, group)
key = secrets.token_bytes(16)
state = os.path.join(WORK, "state")
os.makedirs(state)
put(os.path.join(WORK, "panel.key"), key.hex() + "\n")
os.chmod(os.path.join(WORK, "panel.key"), 0o600)
for path in (state, os.path.join(WORK, "panel.key")):
    shutil.chown(path, user, user)
RED, GREEN, BUZZER, FIRST, SECOND = range(5)


def write(silence, more=""):
    path = os.path.join(WORK, "osdp.conf")
    put(path + ".new", f"[server]\nsocket = {WORK}/badged.sock\nfolder = {state}\n[panel front]\ndevice = {line.device}\n"
        f"baud = 115200\nkey = {WORK}/panel.key\noutputs = 3\nsilence = {silence}\n"
        f"gpio = red {chip}:{RED}, green {chip}:{GREEN}, buzzer {chip}:{BUZZER}, output0 {chip}:{FIRST}, "
        f"output1 {chip}:{SECOND}{more}\n")
    os.rename(path + ".new", path)
    return path


def start(silence, more=""):
    path = write(silence, more)
    # The first end of the line stays open, and with it the exclusive use of the last badged-osdp.
    fcntl.ioctl(line.other, termios.TIOCNXCL)
    return Daemon("setpriv", [f"--reuid={user}", f"--regid={user}", f"--groups={group}", "--bounding-set=-all", "--inh-caps=-all",
                              f"{BIN}/badged-osdp", "--config", path], WORK)


def begin():
    panel = Panel(line.descriptor, key)
    until(panel.becomes_secure)
    return panel


def led(panel, color, other="Black", on=10, off=0):
    colors = osdp.CommandLEDColor
    panel.send(command=osdp.Command.LED, reader=0, led_number=0, control_code=1, on_count=on, off_count=off,
               on_color=getattr(colors, color), off_color=getattr(colors, other), timer_count=0, temporary=False)


def buzz(panel, count, on=1, off=1):
    panel.send(command=osdp.Command.Buzzer, reader=0, control_code=2, on_count=on, off_count=off, rep_count=count)


def output(panel, number, control, time=0):
    panel.send(command=osdp.Command.Output, output_no=number, control_code=control, timer_count=time)


ON, OFF, ON_FOR = 2, 1, 5

print("Lines that cannot be used")
daemon = start("keep", f", blue {chip}:{TAKEN}, output2 {chip}:{LINES}")
check("a line that another driver has is told", f"front: {chip}:{TAKEN} cannot be used: another program or driver uses it"
      in daemon.log(), daemon.log())
check("so is a line that the chip does not have", f"front: {chip}:{LINES} cannot be used: the chip has no such line"
      in daemon.log(), daemon.log())
panel = begin()
led(panel, "Green")
check("the other lines work", become(GREEN), daemon.log())
panel.end()
check("the program ends with exit code 0", daemon.end()[0] == 0, daemon.log())
daemon = start("keep", ", blue gpiochip99:0")
check("a chip that is missing is told", "front: gpiochip99:0 cannot be used: there is no such chip" in daemon.log(),
      daemon.log())
daemon.end()

print("What the panel says")
daemon = start("dark")
check("each line is off at first", become(), values())
panel = begin()
led(panel, "Red")
check("a red LED", become(RED), values())
led(panel, "Amber")
check("amber is both lamps", become(RED, GREEN), values())
led(panel, "Green", "Red", 2, 2)
check("an LED that blinks goes on", all(become(lamp) for lamp in (GREEN, RED, GREEN, RED)), values())
led(panel, "Black")
check("an LED that is off", become(), values())
buzz(panel, 2, on=2, off=2)
check("a sound of two tones has an end", all(become(*lines) for lines in ((BUZZER,), (), (BUZZER,), ())), values())
output(panel, 0, ON)
output(panel, 1, ON_FOR, 5)
check("an output, and one for half a second", become(FIRST, SECOND) and become(FIRST), values())
output(panel, 0, OFF)
check("an output that is off", become(), values())

print("A panel that falls silent")
led(panel, "Red")
buzz(panel, 0, on=1, off=0)
output(panel, 0, ON)
check("lamp, sounder and output are on", become(RED, BUZZER, FIRST), values())
panel.end()
check("lamp and sounder end, as silence = dark says, and the output stays", become(FIRST), values())
check("the log says that the panel is silent", "front: the panel is silent" in daemon.log(), daemon.log())
panel = begin()
led(panel, "Green")
check("the panel comes back, and the output has stayed", become(GREEN, FIRST), values())

print("The end of the program")
pull(SECOND, "up")
check("a line that the program drives does not follow its pull", values() == {GREEN, FIRST}, values())
panel.end()
daemon.end()
check("at its end all lines are given back: each has the level of its pull", become(SECOND), values())
daemon = start("keep")
check("the next start takes the lines, which are off then", become(), values())
panel = begin()
output(panel, 0, ON)
check("the panel switches an output", become(FIRST), values())
panel.end()
daemon.end(9)
check("after a kill the lines are given back as well", become(SECOND), values())
daemon = start("keep")
check("and the next start takes them", become() and "cannot be used" not in daemon.log(), daemon.log())
daemon.end()
line.close()
finish()
