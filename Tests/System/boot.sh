#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Boots a real systemd in a container over a copy-on-write view of this machine, with badged installed by
# `make install PREFIX=/usr`. The hardened service is started by its socket, serves a member of group badged, reaches a
# real pcscd, and starts its confined programs. It is reloaded, restarted by the watchdog, and stopped. Nothing outside
# the container changes.
. "$(dirname "$0")/lib.sh"
needs_programs badged badgectl badged-virtual-card badged-activation badged-bluetooth badged-nfc badged-network badged-remote badged-mqtt badged-osdp
[ "$(id -u)" = 0 ] || cannot "needs root"
needs systemd-nspawn unshare python3
PATH=$PATH:/usr/sbin
needs mosquitto mosquitto_sub

# overlayfs keeps all changes in memory.
cat >"$work/boot" <<'END'
set -eu
work=$1 root=$2
mkdir "$work/fs"
mount -t tmpfs tmpfs "$work/fs"
cd "$work/fs"
mkdir upper work all
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work all
[ -d /run/systemd ] || mkdir /run/systemd
touch "$work/mounted"
(cd "$root" && make -s install PREFIX=/usr DESTDIR="$work/fs/all" BIN="$3")
wants=all/etc/systemd/system/multi-user.target.wants
mkdir -p "$wants"
cat >all/etc/systemd/system/examine.service <<UNIT
[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh /result/examine
StandardOutput=file:/result/out
StandardError=file:/result/err
ExecStopPost=/bin/systemctl --no-block poweroff
UNIT
ln -s ../examine.service "$wants"
# Tells that systemd has booted, before any unit of badged starts.
cat >all/etc/systemd/system/booted.service <<UNIT
[Unit]
DefaultDependencies=no
Before=sysinit.target
[Service]
Type=oneshot
ExecStart=/bin/touch /result/booted
UNIT
mkdir -p all/etc/systemd/system/sysinit.target.wants
ln -s ../booted.service all/etc/systemd/system/sysinit.target.wants
mkdir -p all/etc/systemd/system/badged.service.d
printf '[Service]\nWatchdogSec=30s\n' >all/etc/systemd/system/badged.service.d/watchdog.conf
printf '[virtual]\nenabled = yes\n[activation]\nenabled = yes\n[nfc]\ndevices = pn532_uart:/dev/none\n' >all/etc/badged/badged.conf
# A container has no Bluetooth, so a second program stores another socket under the name that badged-bluetooth uses.
printf '[Service]\nExecStartPre=+/usr/bin/python3 /result/store\n' >all/etc/systemd/system/badged.service.d/store.conf
mkdir "$work/result"
cp "$work/examine" "$work/store" "$work/online" "$work/result"
exec systemd-nspawn -q --register=no --keep-unit --machine="badged-test-$$" --directory=all --private-network \
    --system-call-filter="seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self adjtimex clock_adjtime" \
    --link-journal=no --bind="$work/result:/result" --console=pipe --boot systemd.unified_cgroup_hierarchy=1
END

cat >"$work/store" <<'END'
import os, socket
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
address = os.environ["NOTIFY_SOCKET"]
manager.connect("\0" + address[1:] if address.startswith("@") else address)
stored = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
socket.send_fds(manager, [b"FDSTORE=1\nFDNAME=bluetooth"], [stored.fileno()])
END

# An authentication with a server that is not there; prints its result.
cat >"$work/online" <<'END'
import socket
client = socket.socket(socket.AF_UNIX)
client.connect("/run/badged/badged.sock")
client.sendall(b'{"cmd":"RUN_AUTH","tcTokenURL":"https://127.0.0.1:1/"}\n')
print(next(line for line in client.makefile() if '"result"' in line))
END

# Runs inside, as root; each line of output is NAME VALUE.
cat >"$work/examine" <<'END'
PATH=/usr/sbin:/usr/bin:/sbin:/bin
value() { echo "$1 $(shift; "$@" 2>&1 | tr '\n' ' ')"; }
property() { systemctl show badged.service --property "$1" --value; }
as() { user=$1; shift; setpriv --reuid "$user" --regid "$user" --init-groups "$@"; }
systemd-sysusers
useradd --no-create-home --groups badged tester
useradd --no-create-home stranger
systemctl daemon-reload
systemctl start badged.socket
value socket stat -c '%a %U %G' /run/badged/badged.sock
value before property ActiveState
as stranger badgectl --json status 2>/dev/null; echo "stranger $?"
value still property ActiveState
value status as tester badgectl --json status
value active property ActiveState
pid=$(property MainPID)
# Without the service the steps below would wait for it.
[ "$pid" != 0 ] || { journalctl --sync; journalctl -b -o short-monotonic >/result/journal 2>&1; exit 1; }
echo "pid $pid"
echo "expected $(id -u badged)"
value owner sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$pid/status"
value capabilities sed -n 's/^Cap\(Eff\|Prm\|Amb\):\t//p' "/proc/$pid/status"
value granted property AmbientCapabilities
value name cat "/proc/$pid/comm"
value stored property NFileDescriptorStore
value swap property MemorySwapMax
value devices id -Gn badged
value members getent group badged-devices
# A client with the user of the service, as a program of badged has it.
echo '{"cmd":"START_SCAN"}' | value own as badged badgectl send
echo '{"cmd":"GET_READER_LIST"}' | value seen as badged badgectl send
echo '{"cmd":"START_SCAN"}' | value root badgectl send --wait SCAN
# The first look for devices may not have ended. badged-nfc reports the missing device after it is confined.
while as tester badgectl --json health >/result/health && ! grep -q 'pn532_uart:/dev/none' /result/health; do sleep 0.1; done
value browser python3 -c 'import urllib.request as r; print(r.urlopen("http://127.0.0.1:24727/eID-Client?Status").status)'
for part in activation nfc; do
    child=$(pgrep -x "badged-$part" || pgrep -f "libexec/badged-$part")
    value $part sed -n 's/^\(Seccomp_filters\|NoNewPrivs\):\t//p' "/proc/$child/status"
    value $part-owner sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$child/status"
done
value filters sed -n 's/^Seccomp_filters:\t//p' "/proc/$pid/status"
value seccomp sed -n 's/^Seccomp:\t//p' "/proc/$pid/status"
value core sed -n 's/^Max core file size *//p' "/proc/$pid/limits"
printf '123456\n654321\n' | as tester badgectl change-pin --reader Simulator --pin-stdin >/dev/null
echo "changed $?"
value online as tester python3 /result/online
# A card that does not answer the first command is a line about its reader.
printf '%s\n' '{"cmd":"RUN_CHANGE_PIN"}' \
    '{"cmd":"SET_CARD","name":"Simulator","card":{"faults":[{"afterApdu":0,"do":"mute"}]}}' |
    as tester badgectl send --wait ENTER_PIN >/dev/null
journalctl --sync
value reader-field journalctl -q -o cat _SYSTEMD_UNIT=badged.service BADGED_READER=Simulator
value workflow-field journalctl -q -o cat BADGED_WORKFLOW=AUTH "BADGED_UID=$(id -u tester)"
value other-reader journalctl -q -o cat BADGED_READER=Other
value accepted systemctl show badged-network.socket --property NAccepted --value
value network-mode stat -c '%a %U' /run/badged-network.sock
as tester python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("/run/badged-network.sock")' 2>/dev/null; echo "network-refused $?"
value health as tester badgectl --json health
# badged connects in the background; its socket starts pcscd.
until systemctl is-active --quiet pcscd.service; do sleep 0.1; done
echo "pcscd active"
printf 'listener 1883 127.0.0.1\nallow_anonymous true\n' >/run/mosquitto.conf
mosquitto -d -c /run/mosquitto.conf
systemctl start badged-mqtt.service; echo "mqtt-unnamed $?"
value mqtt-unnamed-state systemctl show badged-mqtt.service --property ActiveState --value
printf '[broker]\nurl = mqtt://localhost\n[publish]\nhost = box\nopenings = yes\ncredentials = plain\n' >/etc/badged/mqtt.conf
systemctl reset-failed badged-mqtt.service
systemctl start badged-mqtt.service; echo "mqtt-start $?"
tries=300
until badged-mqtt --status >/result/mqtt 2>&1 && grep -q 'badged: *connected, taps are watched' /result/mqtt; do
    sleep 0.1
    tries=$((tries - 1))
    [ $tries -gt 0 ] || break
done
value mqtt badged-mqtt --status
value mqtt-clock timeout 60 mosquitto_sub -t badged/1/box/state -C 1
value mqtt-owner sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$(systemctl show badged-mqtt.service --property MainPID --value)/status"
value mqtt-expected id -u badged-mqtt
systemctl reload badged-mqtt.service; echo "mqtt-reload $?"
echo rubbish >>/etc/badged/mqtt.conf
systemctl reload badged-mqtt.service; echo "mqtt-reload-wrong $?"
sed -i '$d' /etc/badged/mqtt.conf
systemctl stop badged-mqtt.service; echo "mqtt-stop $?"
mkdir -p /var/lib/prometheus/node-exporter
systemctl start badged-metrics.service; echo "metrics $?"
value metrics-file grep '^badged_up' /var/lib/prometheus/node-exporter/badged.prom
systemctl start badged-metrics.socket
value metrics-http python3 -c 'import urllib.request as r; print("badged_up 1" in r.urlopen("http://127.0.0.1:9837/metrics").read().decode())'
journalctl -u badged-mqtt.service -u badged-metrics.service -u 'badged-metrics@*' >/result/fleet 2>&1
systemctl reload badged.service; echo "reload $?"
value same property MainPID
conf=/etc/badged/badged.conf
cp "$conf" /run/right.conf
printf '[acces]\ndefault = none\n' >"$conf"
systemctl reload badged.service; echo "broken-reload $?"
value kept property MainPID
value kept-serves as tester badgectl --json status
# More failed starts than the usual limit of systemd, each by a client.
systemctl stop badged.service
for try in 1 2 3 4 5 6 7; do as tester badgectl status >/run/refused 2>&1; done
value refused cat /run/refused
value failed-service property ActiveState
value failed-socket systemctl show badged.socket --property ActiveState --value
cp /run/right.conf "$conf"
# The service may still be ending; the client after that is served.
until as tester badgectl --json status >/run/repaired 2>&1; do sleep 0.1; done
value repaired cat /run/repaired
pid=$(property MainPID)
kill -STOP "$pid"
# A connection that the stopped process accepts ends with this process: ask until the next one answers.
until readers=$(as tester badgectl --json readers) && [ "$(property MainPID)" != "$pid" ]; do sleep 0.1; done
value readers echo "$readers"
value restarts property NRestarts
systemctl stop badged.service; echo "stop $?"
value ended property ActiveState
value left stat -c '%a' /run/badged/badged.sock
value third as tester badgectl --json status
journalctl --sync
journalctl -u badged.service -o short-monotonic >/result/journal 2>&1
echo finished
END

timeout 1100 unshare --mount --cgroup --propagation private "$here/with-cgroup2.sh" sh "$work/boot" "$work" "$root" "$bin" \
    >"$work/console" 2>&1 </dev/null || true
found=$work/result/out
[ -s "$found" ] || {
    tail -n 20 "$work/console" | sed 's/^/    /'
    [ ! -e "$work/mounted" ] || [ -e "$work/result" ] || { echo "  FAILED: badged is not installed"; exit 1; }
    [ ! -e "$work/result/booted" ] || { echo "  FAILED: systemd has booted, and the steps have not begun"; exit 1; }
    cannot "systemd does not boot in a container here"
}
pid=$(sed -n 's/^pid //p' "$found")
uid=$(sed -n 's/^expected //p' "$found")
check "every step has ended" holds "$found" '^finished'
check "before the service runs, the socket belongs to group badged" holds "$found" '^socket 660 root badged '
check "the service is not running yet" holds "$found" '^before inactive'
check "a user outside the group cannot connect" holds "$found" '^stranger 4'
check "a user outside the group does not start the service" holds "$found" '^still inactive'
check "a member of the group is served" holds "$found" '^status \{.*"msg":"INFO"'
check "the service is active (READY=1 was accepted)" holds "$found" '^active active'
check "it runs as user badged" holds "$found" "^owner $uid "
check "the unit grants no capability" holds "$found" '^granted +$'
check "badged has no capability" holds "$found" '^capabilities 0000000000000000 0000000000000000 0000000000000000'
check "the process has its own name" holds "$found" '^name badged'
check "the system call filter is active" holds "$found" '^seccomp 2'
check "core files are off" holds "$found" '^core 0 +0 '
check "memory is never swapped out" holds "$found" '^swap 0 '
check "badged may open the devices" holds "$found" '^devices badged badged-devices '
check "nobody else may" holds "$found" '^members badged-devices:x:[0-9]+:badged $'
check "the user of the service has no permission that [access] does not give" holds "$found" '^own .*"msg":"ACCESS_DENIED"'
check "it has those of other clients" holds "$found" '^seen .*"msg":"READER_LIST"'
check "root has all permissions" holds "$found" '^root .*"msg":"SCAN"'
check "systemd passes badged a descriptor of the store beside its socket" holds "$work/result/journal" 'is not a Bluetooth socket'
check "badged takes the descriptor out of the store" holds "$found" '^stored 0 '
check "badged-bluetooth says that the container has no Bluetooth" holds "$work/result/journal" 'badged scans through bluetoothd'
check "the browser port answers" holds "$found" '^browser 200 '
filters=$(sed -n 's/^filters \([0-9]*\).*/\1/p' "$found")
for part in activation nfc; do
    check "badged-$part has a filter of its own and cannot get privileges" holds "$found" "^$part 1 $((filters + 1)) "
    check "badged-$part runs as user badged" holds "$found" "^$part-owner $uid "
done
check "badged-nfc finds faults of devices" holds "$found" '^health .*pn532_uart:/dev/none'
# landlock_create_ruleset(2) with LANDLOCK_CREATE_RULESET_VERSION.
if ! python3 -c 'import ctypes; raise SystemExit(ctypes.CDLL(None).syscall(444, None, 0, 1) < 1)'; then
    not_run "the confinement in GET_HEALTH (the kernel has no Landlock)"
else
    check "GET_HEALTH says that the programs are confined" holds "$found" '^health .*\{("ok":true,"name":"confinement"|"name":"confinement","ok":true)\}'
fi
check "a PIN is changed on the virtual card" holds "$found" '^changed 0$'
check "an authentication looks for its server through badged-network@.service" holds "$found" '^online .*server could not be reached'
check "the journal finds the lines about a reader" holds "$found" "^reader-field card in 'Simulator' could not be recognised"
check "the journal finds the lines about a workflow of a user" holds "$found" '^workflow-field .*AUTH ended'
check "a reader without lines has none" holds "$found" '^other-reader +$'
check "systemd has started a process for it" holds "$found" '^accepted [1-9]'
check "only badged may ask for connections" holds "$found" '^network-mode 600 badged'
check "a member of group badged may not" holds "$found" '^network-refused 1$'
check "GET_HEALTH has a check of pcscd" holds "$found" '^health .*"name":"pcsc'
check "pcscd was started by its socket" holds "$found" '^pcscd active'
check "badged-mqtt does not start without a broker" holds "$found" '^mqtt-unnamed [1-9]'
check "it has failed then, and is not started again and again" holds "$found" '^mqtt-unnamed-state failed '
check "badged-mqtt starts with one" holds "$found" '^mqtt-start 0$'
check "it is connected to the broker, and badged lets it watch" holds "$found" '^mqtt broker: +localhost:1883 connected .*taps are watched'
check "it is told whether the clock is synchronised" holds "$found" '^mqtt-clock .*"clock":(true|false)'
check "it runs as a user of its own" test "$(sed -n 's/^mqtt-owner //p' "$found")" = "$(sed -n 's/^mqtt-expected //p' "$found")"
check "it reads right settings again" holds "$found" '^mqtt-reload 0$'
check "it refuses wrong ones" holds "$found" '^mqtt-reload-wrong [1-9]'
check "it ends" holds "$found" '^mqtt-stop 0$'
check "badged-metrics.service writes the file" holds "$found" '^metrics-file badged_up 1 '
check "badged-metrics.socket answers" holds "$found" '^metrics-http True '
check "systemctl reload succeeds" holds "$found" '^reload 0$'
check "a reload keeps the process" holds "$found" "^same $pid "
check "systemctl reload with a broken file fails" holds "$found" '^broken-reload [1-9]'
check "the journal says why" holds "$work/result/journal" 'badged.conf, line 1: unknown section \[acces\]'
check "a failed reload keeps the process" holds "$found" "^kept $pid "
check "it goes on with the old configuration" holds "$found" '^kept-serves \{.*"msg":"INFO"'
check "a start with a broken file tells the client" holds "$found" '^refused .*badged does not start'
check "a start with a broken file fails" holds "$found" '^failed-service (failed|activating)'
check "the socket goes on after many failed starts" holds "$found" '^failed-socket active'
check "the socket answers when the file is right" holds "$found" '^repaired \{.*"msg":"INFO"'
check "a hung daemon is restarted by the watchdog" holds "$found" '^restarts 1'
check "the restarted daemon serves" holds "$found" '^readers .*"name":"Simulator"'
check "systemctl stop succeeds" holds "$found" '^stop 0$'
check "the service ends cleanly" holds "$found" '^ended inactive'
check "the socket is still there" holds "$found" '^left 660'
check "the next client starts the service again" holds "$found" '^third .*"msg":"INFO"'
check "the journal has the log of badged" holds "$work/result/journal" 'badged\['
check "the journal has no priority marks in the text" lacks "$work/result/journal" 'badged\[[0-9]+\]: <[0-9]>'
check "no PIN is in the journal" lacks "$work/result/journal" '\]: .*(123456|654321)'
finish
