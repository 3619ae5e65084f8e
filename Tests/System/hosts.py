# SPDX-License-Identifier: GPL-3.0-or-later
"""Two hosts with a cable (veth) between them: that of the script, and one in a network namespace of its own."""

import os
import subprocess

from harness import LIMIT, Client, Daemon

OWN, OTHER = ([], "own0", 1), (["-n", "other"], "other0", 2)
# Runs a command on the other host.
ON_OTHER = ["ip", "netns", "exec", "other"]


def ip(*words):
    subprocess.run(["ip", *words], check=True)


def connect_hosts():
    ip("netns", "add", "other")
    ip("link", "add", "own0", "type", "veth", "peer", "name", "other0", "netns", "other")
    for place, name, number in (OWN, OTHER):
        ip(*place, "address", "add", f"10.9.0.{number}/24", "broadcast", "+", "dev", name)
        ip(*place, "link", "set", "lo", "up")
        ip(*place, "link", "set", name, "up")


def cut():
    ip("link", "set", "own0", "down")


def mend():
    ip("link", "set", "own0", "up")


class Host:
    """badged on one of the hosts, and badgectl for it. `prefix` is [] or ON_OTHER."""

    def __init__(self, binaries, work, name, settings, prefix):
        self.binaries, self.path = binaries, os.path.join(work, name + ".sock")
        configuration = os.path.join(work, name + ".conf")
        with open(configuration, "w", encoding="ascii") as file:
            file.write(f"[nfc]\nenabled=no\n[ble]\nenabled=no\n{settings}")
        command = [*prefix, f"{binaries}/badged", "--socket", self.path, "--config", configuration]
        self.daemon = Daemon(command[0], command[1:], work, environment={"STATE_DIRECTORY": os.path.join(work, name)})

    def start(self, *words):
        return subprocess.Popen([f"{self.binaries}/badgectl", "--socket", self.path, *words], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *words, typed=""):
        """Runs badgectl to its end. Returns the exit code and what it has written."""
        process = self.start(*words)
        written, _ = process.communicate(typed, LIMIT)
        return process.returncode, written

    def open_pairing(self):
        """Opens the pairing mode. Returns badgectl, which ends with the pairing, and the code."""
        process = self.start("remote", "share", "--pair")
        for line in process.stdout:
            if len(line) == 5 and line.strip().isdigit():
                return process, line.strip()
        raise RuntimeError(f"badgectl has ended with {process.wait(LIMIT)}")

    def state(self):
        """REMOTE."""
        client = Client(self.path)
        answer = client.ask("REMOTE", cmd="GET_REMOTE")
        client.close()
        return answer
