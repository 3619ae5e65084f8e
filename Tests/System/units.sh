#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The systemd units as systemd itself sees them: valid, well closed, and the user they name is made.
. "$(dirname "$0")/lib.sh"
needs systemd-analyze systemd-sysusers
cd "$root"
systemctl --version | head -1 | sed 's/^/  /'

units=$work/units
mkdir "$units"
sed 's|@BINDIR@/badged|/bin/true|' systemd/badged.service >"$units/badged.service"
cp systemd/badged.socket "$units"
# The units of other packages that ours name need not be installed here.
printf '[Socket]\nListenStream=%s/pcscd\n' "$work" >"$units/pcscd.socket"
printf '[Service]\nExecStart=/bin/true\n' >"$units/pcscd.service"
verify() { systemd-analyze verify --man=no "$@" >"$work/verify" 2>&1 && [ ! -s "$work/verify" ] || { cat "$work/verify"; false; }; }
check "systemd-analyze verify badged.service: no complaint" verify "$units/badged.service"
check "systemd-analyze verify badged.socket: no complaint" verify "$units/badged.socket"
sed 's/^WatchdogSec=/WachdogSec=/' "$units/badged.service" >"$work/badged.service"
check "(verify does notice a misspelt key)" sh -c "! systemd-analyze verify --man=no '$work/badged.service'"

systemd-analyze security --offline=yes "$units/badged.service" >"$work/security" 2>&1 || true
tail -n 1 "$work/security" | sed 's/^/  /'
check "exposure is at most 2.0" systemd-analyze security --offline=yes --threshold=20 "$units/badged.service"
for key in CapabilityBoundingSet AmbientCapabilities; do
    check "$key= has CAP_NET_ADMIN alone, for the Bluetooth of the kernel" holds "$units/badged.service" "^$key=CAP_NET_ADMIN\$"
done
check "no PrivateUsers=: clients would look like nobody" lacks "$units/badged.service" '^PrivateUsers='
check "no crash report, no core file" sh -c \
    "grep -q '^Environment=SWIFT_BACKTRACE=enable=no' '$units/badged.service' && grep -q '^LimitCORE=0' '$units/badged.service'"

mkdir -p "$work/root/usr/lib/sysusers.d" "$work/root/etc"
cp systemd/badged-sysusers.conf "$work/root/usr/lib/sysusers.d/badged.conf"
# Without root the owner of the files cannot be set; a namespace where we are root helps.
check "systemd-sysusers makes user and group" isolated systemd-sysusers --root="$work/root"
check "the user cannot log in" holds "$work/root/etc/passwd" '^badged:x:[0-9]+:[0-9]+:.*:/var/lib/badged:.*/nologin$'
check "the group of the socket is there" holds "$work/root/etc/group" '^badged:x:[0-9]+:$'
for name in User Group; do
    check "the unit runs as ${name} badged" holds "$units/badged.service" "^$name=badged\$"
done
check "the socket is for group badged" holds "$units/badged.socket" '^SocketGroup=badged$'
finish
