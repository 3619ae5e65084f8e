# SPDX-License-Identifier: GPL-3.0-or-later
import os
import pty
import signal
import subprocess
import sys
import threading

from harness import Daemon, check, finish

programs, work = sys.argv[1:]
signal.alarm(1000)  # ends a run that hangs: three shells with a dozen completions each
path = os.path.join(work, "s.sock")
config = os.path.join(work, "badged.conf")
with open(config, "w", encoding="ascii") as file:
    file.write("[virtual]\nreaders = 2\n")
daemon = Daemon(f"{programs}/badged",
                ["--virtual", "--no-pcsc", "--no-nfc", "--no-ble", "--config", config, "--socket", path], work)
# Each shell loads the completions as `make install` installs them.
folder = os.path.join(work, "completions")
os.mkdir(folder)
names = {"bash": "badgectl", "zsh": "_badgectl", "fish": "badgectl.fish"}
for shell, name in names.items():
    with open(f"{folder}/{name}", "wb") as file:
        subprocess.run([f"{programs}/badgectl", "completion", shell], stdout=file, check=True)
home = os.path.join(work, "home")
os.mkdir(home)
capture = os.path.join(home, "door.btsnoop")
with open(capture, "wb"):
    pass
environment = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": home, "TERM": "dumb", "LC_ALL": "C.UTF-8"}


def bash(words, variables):
    script = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _badgectl; '
              '[ ${#COMPREPLY[@]} = 0 ] || printf "%s\\n" "${COMPREPLY[@]}"')
    command = ["bash", "--norc", "-c", script, "bash", f"{folder}/{names['bash']}", *words]
    out = subprocess.run(command, env={**environment, **variables}, stdout=subprocess.PIPE, check=True, text=True).stdout
    # bash takes the words as they are to be typed.
    return {line.replace("\\ ", " ") for line in out.splitlines()}


def fish(words, variables):
    command = ["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]",
               f"{folder}/{names['fish']}", " ".join(words)]
    out = subprocess.run(command, env={**environment, **variables}, stdout=subprocess.PIPE, check=True, text=True).stdout
    # A tab is followed by the description.
    return {line.split("\t")[0].replace("\\ ", " ") for line in out.splitlines()}


# zsh completes only in its line editor, so it gets a terminal. The widget behind the tab writes the matches to a pipe.
ZSH = """
PS1= ; PS2=
fpath=({folder} $fpath)
autoload -Uz compinit && compinit -u -d {dump}
compadd() {{ local -a found; builtin compadd -O found "$@"; print -rl -- $found >&9; builtin compadd "$@" }}
write_matches() {{ {{ _main_complete }} always {{ print END >&9 }} }}
zle -C write-matches complete-word write_matches
bindkey '^I' write-matches
zle-line-init() {{ print READY >&9 }}
zle -N zle-line-init
exec 9>{pipe}
"""


def zsh(words, variables):
    start, pipe = os.path.join(home, "start"), os.path.join(home, "pipe")
    with open(start, "w", encoding="utf-8") as file:
        file.write(ZSH.format(folder=folder, pipe=pipe, dump=os.path.join(work, "dump")))
    os.mkfifo(pipe)
    process, terminal = pty.fork()
    if process == 0:
        os.execve("/usr/bin/zsh", ["zsh", "-f", "-i"], {**environment, **variables})

    def drain():
        try:
            while os.read(terminal, 4096):
                pass
        except OSError:  # the shell has ended
            pass

    reader = threading.Thread(target=drain)
    reader.start()
    os.write(terminal, f". {start}\n".encode())
    found = set()
    with open(pipe, encoding="utf-8") as matches:
        for line in matches:
            if line == "READY\n":
                # What is typed before the line editor runs would be lost.
                os.write(terminal, (" ".join(words) + "\t").encode())
            elif line == "END\n":
                break
            else:
                found.add(line.rstrip("\n"))
    found.discard("")
    # Closing the terminal would not end the shell, because the thread still reads from it.
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    reader.join()
    os.close(terminal)
    os.unlink(pipe)
    return found


TYPES = {"proximity", "motion", "seamless", "applicationSpecific", "enhancedTap"}
READERS = {"Simulator", "Simulator 2"}
beside = {"BADGED_SOCKET": path}
# bash gives its functions the words so.
option = {bash: ["--socket", "=", path], zsh: [f"--socket={path}"], fish: [f"--socket={path}"]}
for shell in (bash, zsh, fish):
    def completes(sentence, words, expected, variables=beside, others=False):
        found = shell(words, variables)
        fits = expected <= found if others else expected == found
        check(f"{shell.__name__} completes {sentence}", fits, (words, found))

    completes("a command", ["badgectl", "clo"], {"closest"})
    completes("every command", ["badgectl", ""], {"status", "auth", "change-pin", "scan", "completion"}, others=True)
    completes("an option of the command", ["badgectl", "scan", "--wat"], {"--watch"})
    completes("an operand", ["badgectl", "completion", ""], {"bash", "zsh", "fish"}, others=True)
    completes("an action", ["badgectl", "mpin", "register-"], {"register-dvs"})
    completes("an action of help", ["badgectl", "help", "wallet", "set"], {"setup"})
    completes("no file where an argument is none", ["badgectl", "wallet", "sign", home + "/door"], set())
    completes("no file for a device", ["badgectl", "remote", "forget", home + "/door"], set())
    completes("a file of an action", ["badgectl", "wallet", "contract", home + "/door"],
              {"door.btsnoop" if shell is zsh else capture}, others=True)
    completes("an option of an action", ["badgectl", "mpin", "--client"], {"--client-id"})
    completes("ways of opening", ["badgectl", "closest", ""], TYPES, others=True)
    completes("the value of an option", ["badgectl", "scan", "--type", "s"], {"seamless"})
    completes("the readers of badged", ["badgectl", "change-pin", "--reader", ""], READERS)
    completes("the readers of the badged at --socket",
              ["badgectl", "--socket", path, "change-pin", "--reader", ""], READERS, {})
    completes("the readers of the badged at --socket=PATH",
              ["badgectl", *option[shell], "change-pin", "--reader", ""], READERS, {})
    # zsh adds the parts of a path one by one.
    file = "door.btsnoop" if shell is zsh else capture
    completes("files", ["badgectl", "scan", "--replay", home + "/door"], {file}, others=True)
daemon.end()
finish()
