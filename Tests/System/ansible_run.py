# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the playbook of docs/examples/fleet in a container with systemd. Started by ansible-run.sh.

ansible_run.py WORK SYSTEM PLAYBOOK DEB...: SYSTEM is the root of a Debian.
"""

import json
import os
import re
import shutil
import subprocess
import sys

from harness import check, children, children_of, finish, free_port, until

work, system, playbook, *debs = sys.argv[1:]
HOST = "door-1.site.example"
folder = os.path.join(work, "ansible")
shutil.copytree(playbook, folder)
files = os.path.join(folder, "files")
os.makedirs(files)

# MARK: A container
log = open(os.path.join(work, "nspawn.log"), "wb")
for name, text in (("hostname", HOST), ("hosts", f"127.0.0.1 localhost\n127.0.1.1 {HOST}")):
    with open(os.path.join(system, "etc", name), "w", encoding="ascii") as file:
        file.write(text + "\n")
# All processes of the container end with unshare.
machine = subprocess.Popen(
    ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
     os.path.join(os.path.dirname(os.path.abspath(__file__)), "with-cgroup2.sh"),
     "systemd-nspawn", "-q", "-D", system, "--boot", "--register=no", "--keep-unit", "--hostname=" + HOST,
     "--resolv-conf=copy-host", "--console=pipe", "systemd.unified_cgroup_hierarchy=1"],
    stdin=subprocess.DEVNULL, stdout=log, stderr=log)
children.append(machine)
leader = until(lambda: next((process for parent in children_of(machine.pid, "systemd-nspawn")
                             for process in children_of(parent, "systemd")), None))


def inside(*command, text=None):
    return subprocess.run(["nsenter", "--all", "-t", str(leader), "--root", "--wd=/", *command], capture_output=True, text=True, input=text)


until(lambda: inside("systemctl", "is-system-running").stdout.strip() in ("running", "degraded"))

# MARK: A broker
port = free_port()


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, cwd=files, capture_output=True)


def certificate(name, subject, authority="broker-ca"):
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key", "-out", "request.pem",
            "-subj", f"/CN={subject}", "-addext", f"subjectAltName=DNS:{subject}")
    openssl("x509", "-req", "-in", "request.pem", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key", "-CAcreateserial", "-out",
            f"{name}.pem", "-days", "10", "-copy_extensions", "copy")


openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "broker-ca.key", "-out",
        "broker-ca.pem", "-subj", "/CN=authority", "-days", "10")
certificate("server", "localhost")
certificate("door-1", HOST)
certificate("log", "log")
with open(os.path.join(files, "site.key"), "wb") as file:
    file.write(os.urandom(32))
with open(os.path.join(files, "allow.list"), "w", encoding="ascii") as file:
    file.write("02" + "11" * 32 + "\n")
acl, settings, seen = (os.path.join(work, name) for name in ("acl", "mosquitto.conf", "seen"))
with open(acl, "w", encoding="utf-8") as file:
    file.write("pattern write badged/1/%u/#\nuser log\ntopic read badged/#\n")
os.chmod(acl, 0o600)
with open(settings, "w", encoding="utf-8") as file:
    file.write(f"user root\nlistener {port}\ncafile {files}/broker-ca.pem\ncertfile {files}/server.pem\nkeyfile {files}/server.key\n"
               f"require_certificate true\nuse_identity_as_username true\nacl_file {acl}\n")
children.append(subprocess.Popen(["mosquitto", "-c", settings], stderr=log))
subscribe = ["mosquitto_sub", "-h", "localhost", "-p", str(port), "--cafile", f"{files}/broker-ca.pem", "--cert", f"{files}/log.pem",
             "--key", f"{files}/log.key", "-V", "5", "-t", "badged/#", "-v"]
until(lambda: subprocess.run([*subscribe, "-W", "1"], capture_output=True, text=True).returncode == 27)
children.append(subprocess.Popen(subscribe, stdout=open(seen, "wb"), stderr=log))


def states():
    with open(seen, encoding="utf-8") as file:
        lines = [line.split(" ", 1) for line in file if line.endswith("\n")]
    return [json.loads(text) for topic, text in lines if topic == f"badged/1/{HOST}/state" and text.startswith("{")]


# MARK: Ansible
# In place of ssh: the last argument is the command.
ssh = os.path.join(work, "ssh")
with open(ssh, "w", encoding="utf-8") as file:
    file.write(f'#!/bin/sh\nfor last; do :; done\nexec nsenter --all -t {leader} --root --wd=/ '
               'env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 sh -c "$last"\n')
os.chmod(ssh, 0o755)
with open(os.path.join(folder, "hosts.yml"), encoding="utf-8") as file:
    inventory = file.read()
inventory = inventory.replace("    door-2.site.example:\n", "").replace("broker.site.example:8883", f"localhost:{port}")
with open(os.path.join(folder, "hosts.yml"), "w", encoding="utf-8") as file:
    file.write(inventory)


def play(playbook="site.yml", **variables):
    """Runs a playbook; returns its exit code, how many tasks have changed something, and its output."""
    given = {"badged_package_files": debs, "ansible_become": False, "ansible_python_interpreter": "/usr/bin/python3", **variables}
    result = subprocess.run(
        ["ansible-playbook", "-i", "hosts.yml", playbook, "--ssh-common-args=", "-e", json.dumps(given)], cwd=folder,
        capture_output=True, text=True, env={
            **os.environ, "HOME": work, "ANSIBLE_SSH_EXECUTABLE": ssh, "ANSIBLE_SSH_TRANSFER_METHOD": "piped", "ANSIBLE_NOCOLOR": "1",
            "ANSIBLE_SSH_ARGS": "", "ANSIBLE_PIPELINING": "1"})
    changed = re.search(r"changed=(\d+)", result.stdout)
    return result.returncode, int(changed[1]) if changed else -1, result.stdout + result.stderr


code, changed, shown = play()
check("the playbook makes a host of the fleet", code == 0 and changed > 0, shown)
if code:
    finish()
check("the host is online at the broker", until(lambda: any(state["state"] == "online" for state in states())), shown)
check("and badged answers", until(lambda: states()[-1].get("badged") and states()[-1].get("watching")), states()[-1:])
check("the units are enabled and run", inside("systemctl", "is-enabled", "badged.socket", "badged-mqtt.service", "badged-metrics.timer").returncode
      == 0 and inside("systemctl", "is-active", "badged.socket", "badged-mqtt.service", "badged-metrics.timer").returncode == 0)
check("badged has the settings of the site", "info" in inside("badged", "--print-config").stdout, inside("badged", "--print-config").stdout)
code, changed, shown = play()
check("a second run changes nothing", (code, changed) == (0, 0), shown)
secret = inside("stat", "-c", "%a %U", "/etc/badged/mqtt.secrets/client.key").stdout
check("only root reads the secrets", secret == "600 root\n", secret)
check("no secret is left from the check", inside("ls", "/run/badged-ansible").returncode != 0)

# MARK: Wrong settings
before = inside("cat", "/etc/badged/mqtt.conf", "/etc/badged/badged.conf.d/50-site.conf").stdout
session = states()[-1]["session"]
wrong = {"broker": {"url": f"mqtts://localhost:{port}", "keepaliv": 3}}
code, changed, shown = play(badged_mqtt_settings=wrong)
check("wrong settings of badged-mqtt end the play with their line", code != 0 and "unknown key 'keepaliv'" in shown, shown)
code, changed, shown = play(badged_settings={"log": {"level": "loud"}})
check("wrong settings of badged end the play with their line", code != 0 and "loud" in shown, shown)
after = inside("cat", "/etc/badged/mqtt.conf", "/etc/badged/badged.conf.d/50-site.conf").stdout
check("and no file was replaced", before == after, after)
check("the host is still online, with the same session", states()[-1]["session"] == session and states()[-1]["state"] == "online")

# MARK: New settings, a new certificate
code, changed, shown = play(badged_settings={"log": {"level": "debug"}})
check("new settings are reloaded", code == 0 and changed == 2 and "debug" in inside("badged", "--print-config").stdout, shown)
certificate("door-1", HOST)
code, changed, shown = play(badged_settings={"log": {"level": "debug"}})
check("a new certificate is taken: the host comes back with a new session", code == 0 and until(
    lambda: states()[-1]["state"] == "online" and states()[-1]["session"] != session), shown)

# MARK: Encrypted secrets
session = states()[-1]["session"]
code, changed, shown = play(badged_encrypts_secrets=True)
check("encrypted secrets: the host comes back", code == 0 and until(
    lambda: states()[-1]["state"] == "online" and states()[-1]["session"] != session), shown)
with open(os.path.join(files, "door-1.key"), encoding="ascii") as file:
    key = file.read()
check("the key is no longer there in clear", "PRIVATE KEY" not in inside("cat", "/etc/badged/mqtt.secrets/client.key").stdout)
code, changed, shown = play(badged_encrypts_secrets=True)
check("a second run changes nothing then, either", (code, changed) == (0, 0), shown)
code, changed, shown = play(badged_encrypts_secrets=False)
check("and back to plain files", code == 0 and inside("cat", "/etc/badged/mqtt.secrets/client.key").stdout == key, shown)

# MARK: Removal
code, changed, shown = play("remove.yml")
check("a host is taken out of the fleet", code == 0, shown)
retained = subprocess.run([*subscribe, "-W", "2"], capture_output=True, text=True).stdout
check("the broker has nothing of it any more", not retained, retained)
check("no secret is left", inside("ls", "/etc/badged/mqtt.secrets", "/etc/badged/site.key").returncode == 2)
finish()
