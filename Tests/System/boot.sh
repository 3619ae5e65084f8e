#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# boot.sh: boots a real systemd in a container over a copy-on-write view of this machine, with badged installed by
# `make install PREFIX=/usr`, and looks at the hardened service at work: started by its socket, seen by a member of group
# badged, talking to a real pcscd, reloaded, restarted by the watchdog, stopped. Nothing outside the container changes.
. "$(dirname "$0")/lib.sh"
needs_programs badged badgectl badged-virtual-card
[ "$(id -u)" = 0 ] || cannot "needs root"
needs systemd-nspawn unshare

# A cgroup tree without controllers is enough for systemd; overlayfs keeps all changes in memory.
cat >"$work/boot" <<'END'
set -eu
work=$1 root=$2
umount -R /sys/fs/cgroup 2>/dev/null || true
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir "$work/fs"
mount -t tmpfs tmpfs "$work/fs"
cd "$work/fs"
mkdir upper work all
mount -t overlay overlay -o lowerdir=/,upperdir=upper,workdir=work all
[ -d /run/systemd ] || mkdir /run/systemd
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
# Nothing of this machine's own services is wanted.
mkdir -p all/etc/systemd/system/badged.service.d
printf '[Service]\nWatchdogSec=1s\n' >all/etc/systemd/system/badged.service.d/fast-watchdog.conf
printf '[virtual]\nenabled = yes\n' >all/etc/badged/badged.conf
mkdir "$work/result"
cp "$work/examine" "$work/result"
exec systemd-nspawn -q --register=no --keep-unit --machine="badged-test-$$" --directory=all --private-network \
    --link-journal=no --bind="$work/result:/result" --console=pipe --boot systemd.unified_cgroup_hierarchy=1
END

# Runs inside, as root; each line of output is NAME VALUE.
cat >"$work/examine" <<'END'
PATH=/usr/sbin:/usr/bin:/sbin:/bin
value() { echo "$1 $(shift; "$@" 2>&1 | tr '\n' ' ')"; }
property() { systemctl show badged.service --property "$1" --value; }
systemd-sysusers
useradd --no-create-home --groups badged tester
useradd --no-create-home stranger
systemctl daemon-reload
systemctl start badged.socket
value socket stat -c '%a %U %G' /run/badged/badged.sock
value before property ActiveState
as() { user=$1; shift; timeout 20 setpriv --reuid "$user" --regid "$user" --init-groups "$@"; }
as stranger badgectl --json status 2>/dev/null; echo "stranger $?"
value still property ActiveState
value status as tester badgectl --json status
value active property ActiveState
pid=$(property MainPID)
value user stat -c '%U %G' "/proc/$pid"
value owner sed -n 's/^Uid:\t\([0-9]*\).*/\1/p' "/proc/$pid/status"
echo "expected $(id -u badged)"
value capabilities sed -n 's/^Cap\(Eff\|Prm\|Amb\):\t//p' "/proc/$pid/status"
value granted property AmbientCapabilities
value name cat "/proc/$pid/comm"
value seccomp sed -n 's/^Seccomp:\t//p' "/proc/$pid/status"
value core sed -n 's/^Max core file size *//p' "/proc/$pid/limits"
printf '123456\n654321\n' | as tester badgectl change-pin --reader Simulator --pin-stdin >/dev/null
echo "changed $?"
value health as tester badgectl --json health
value pcscd systemctl is-active pcscd.service
systemctl reload badged.service; echo "reload $?"
value same property MainPID
echo "pid $pid"
kill -STOP "$pid"
# The connection waits in the socket until the next daemon takes it.
value result as tester badgectl --json readers
value restarts property NRestarts
systemctl stop badged.service; echo "stop $?"
value ended property ActiveState
value left stat -c '%a' /run/badged/badged.sock
value third as tester badgectl --json status
journalctl -u badged.service -o short-monotonic >/result/journal 2>&1
systemctl list-units --failed --no-legend >/result/failed
END

LIMIT=120
timeout $LIMIT unshare --mount --cgroup --propagation private sh "$work/boot" "$work" "$root" "$bin" \
    >"$work/console" 2>&1 </dev/null || true
found=$work/result/out
[ -s "$found" ] || { tail -5 "$work/console" | sed 's/^/    /'; cannot "systemd does not boot in a container here"; }
pid=$(sed -n 's/^pid //p' "$found")
uid=$(sed -n 's/^expected //p' "$found")
check "the socket is there before the service, for group badged" holds "$found" '^socket 660 root badged '
check "and the service is not running yet" holds "$found" '^before inactive'
check "somebody outside the group cannot connect" holds "$found" '^stranger 4'
check "and does not start it" holds "$found" '^still inactive'
check "a member of the group does" holds "$found" '^status \{.*"msg":"INFO"'
check "the service is active (READY=1 was accepted)" holds "$found" '^active active'
check "it runs as user badged" holds "$found" "^owner $uid "
check "the unit grants CAP_NET_ADMIN" holds "$found" '^granted cap_net_admin'
check "and badged has given it up" holds "$found" '^capabilities 0000000000000000 0000000000000000 0000000000000000'
check "under its own name" holds "$found" '^name badged'
check "behind the system call filter" holds "$found" '^seccomp 2'
check "without core files" holds "$found" '^core 0 +0 '
check "a PIN is changed on the virtual card" holds "$found" '^changed 0$'
check "GET_HEALTH speaks of pcscd" holds "$found" '^health .*"name":"pcsc'
check "the real pcscd was started by its socket" holds "$found" '^pcscd active'
check "systemctl reload" holds "$found" '^reload 0$'
check "keeps the process" holds "$found" "^same $pid "
check "a hung daemon is restarted by the watchdog" holds "$found" '^restarts 1'
check "and serves again" holds "$found" '^result .*"name":"Simulator"'
check "systemctl stop" holds "$found" '^stop 0$'
check "ends cleanly" holds "$found" '^ended inactive'
check "the socket outlives the service" holds "$found" '^left 660'
check "and starts it again" holds "$found" '^third .*"msg":"INFO"'
check "the journal has its lines without the priority marks" sh -c "grep -q 'badged\[' '$work/result/journal' && ! grep -E 'badged\[[0-9]+\]: <[0-9]>' '$work/result/journal'"
check "no PIN is in the journal" lacks "$work/result/journal" '123456|654321'
finish
