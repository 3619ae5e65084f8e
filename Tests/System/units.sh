#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The systemd units: systemd accepts them, rates them as hardened, and makes their user.
. "$(dirname "$0")/lib.sh"
needs systemd-analyze systemd-sysusers desktop-file-validate
cd "$root"
systemctl --version | head -1 | sed 's/^/  /'

units=$work/units
mkdir "$units"
sed -e 's|@BINDIR@/badged|/bin/true|' -e 's|@LIBEXECDIR@/badged-bluetooth|/bin/true|' systemd/badged.service >"$units/badged.service"
for unit in badged-network badged-remote; do
    sed -e "s|@LIBEXECDIR@/$unit|/bin/true|" "systemd/$unit@.service" >"$units/$unit@.service"
done
cp systemd/badged.socket systemd/badged-network.socket systemd/badged-remote.socket systemd/badged-metrics.socket systemd/badged-metrics.timer "$units"
for unit in badged-metrics badged-metrics@ badged-mqtt badged-osdp; do
    sed -e 's|@BINDIR@/[a-z-]*|/bin/true|' "systemd/$unit.service" >"$units/$unit.service"
done
# Our units name units of other packages, which need not be installed here.
printf '[Socket]\nListenStream=%s/pcscd\n' "$work" >"$units/pcscd.socket"
printf '[Service]\nExecStart=/bin/true\n' >"$units/pcscd.service"
verify() { # systemd-analyze prints some faults with exit code 0.
    systemd-analyze verify --man=no "$1" >"$work/verify" 2>&1 && [ ! -s "$work/verify" ] || { cat "$work/verify"; return 1; }
}
check "systemd-analyze verify accepts badged.service" verify "$units/badged.service"
check "systemd-analyze verify accepts badged.socket" verify "$units/badged.socket"
for unit in badged-network badged-remote; do
    check "systemd-analyze verify accepts $unit.socket" verify "$units/$unit.socket"
    check "systemd-analyze verify accepts $unit@.service" verify "$units/$unit@.service"
done
sed -e 's|@BINDIR@/badgectl|/bin/true|' systemd/badged-agent.service >"$units/badged-agent.service"
verify_user() { XDG_RUNTIME_DIR=$work systemd-analyze --user verify --man=no "$1" >"$work/verify" 2>&1 && [ ! -s "$work/verify" ] || { cat "$work/verify"; return 1; }; }
check "systemd-analyze verify accepts badged-agent.service" verify_user "$units/badged-agent.service"
sed -e 's|@BINDIR@/badged-desktop|/bin/true|' systemd/badged-desktop.service >"$units/badged-desktop.service"
check "systemd-analyze verify accepts badged-desktop.service" verify_user "$units/badged-desktop.service"
for file in badged-eid badged-desktop.Window; do
    check "$file.desktop is a valid desktop file" desktop-file-validate "packaging/desktop/$file.desktop"
done
# Desktops start the first handler by name, unless the user has chosen another one.
mkdir "$work/applications"
cp packaging/desktop/*.desktop "$work/applications"
check "update-desktop-database takes them" update-desktop-database "$work/applications"
check "where both are installed, links to eid: come to the window" holds "$work/applications/mimeinfo.cache" \
    '^x-scheme-handler/eid=badged-desktop.Window.desktop;'
sed 's/^WatchdogSec=/WachdogSec=/' "$units/badged.service" >"$work/badged.service"
check "systemd-analyze verify finds a misspelt key" sh -c "! systemd-analyze verify --man=no '$work/badged.service'"

exposure() { # UNIT TENTHS
    systemd-analyze security --offline=yes "$units/$1.service" >"$work/security.$1" 2>&1 || true
    tail -n 1 "$work/security.$1" | sed 's/^/  /'
    check "the exposure of $1 is at most 0.1 * $2" systemd-analyze security --offline=yes --threshold="$2" "$units/$1.service"
}
exposure badged 10
exposure badged-network@ 15
exposure badged-remote@ 15
for unit in badged-mqtt badged-osdp badged-metrics badged-metrics@; do
    check "systemd-analyze verify accepts $unit.service" verify "$units/$unit.service"
    systemd-analyze security --offline=yes "$units/$unit.service" 2>&1 | tail -n 1 | sed 's/^/  /'
    check "the exposure of $unit is at most 1.5" systemd-analyze security --offline=yes --threshold=15 "$units/$unit.service"
done
check "systemd-analyze verify accepts badged-metrics.timer" verify "$units/badged-metrics.timer"
check "badged cannot open sockets of the Internet" holds "$units/badged.service" '^RestrictAddressFamilies=AF_UNIX AF_NETLINK$'
check "badged reaches no other computer" holds "$units/badged.service" '^IPAddressDeny=any$'
# The document has the names of the output. A table cannot have a | in a name, so a name ends there.
open_lines() { sed -n 's/^✗ \([^ ]*\) .*/\1/p' "$work"/security.* | sed 's/|.*/…/'; }
has_reasons() { for line in $(open_lines); do grep -qF "| \`$line\` |" docs/hardening.md || { echo "$line"; return 1; }; done; }
is_open() { open_lines | grep -qxF "$1"; }
has_no_others() {
    sed -n 's/^| `\([^`]*\)` |.*/\1/p' docs/hardening.md | while read -r line; do is_open "$line" || { echo "$line"; exit 1; }; done
}
check "docs/hardening.md has the reason for each line that stays open" has_reasons
check "docs/hardening.md names no other line" has_no_others
check "the service has no capability" holds "$units/badged.service" '^CapabilityBoundingSet=$'
check "it gets no capability" lacks "$units/badged.service" '^AmbientCapabilities='
check "it cannot open sockets of Bluetooth" lacks "$units/badged.service" '^RestrictAddressFamilies=.*BLUETOOTH'
check "only the program for the management socket runs as root" test "$(grep -cE '^Exec[A-Za-z]*=[-:@]*[+!]' "$units/badged.service")" = 1
check "memory with a PIN is never swapped out" holds "$units/badged.service" '^MemorySwapMax=0$'
check "there is no PrivateUsers=, which would hide who a client is" lacks "$units/badged.service" '^PrivateUsers='
check "crash reports are off" holds "$units/badged.service" '^Environment=SWIFT_BACKTRACE=enable=no'
check "the unit waits for names of users, which [access] has" holds "$units/badged.service" \
    '^After=.*nss-user-lookup\.target'
check "core files are off" holds "$units/badged.service" '^LimitCORE=0'

check "systemd-sysusers makes user and group" make_user
check "the user cannot log in" holds "$work/root/etc/passwd" '^badged:x:[0-9]+:[0-9]+:.*:/var/lib/badged:.*/nologin$'
check "the group of the socket exists" holds "$work/root/etc/group" '^badged:x:[0-9]+:$'
check "only the service is in the group of the devices" holds "$work/root/etc/group" '^badged-devices:x:[0-9]+:badged$'
for name in User Group; do
    check "the unit runs as ${name} badged" holds "$units/badged.service" "^$name=badged\$"
done
check "the socket belongs to group badged" holds "$units/badged.socket" '^SocketGroup=badged$'
finish
