#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The polkit rule in a real polkitd on a bus of its own: user badged may use pcscd, other users may not.
. "$(dirname "$0")/lib.sh"
needs dbus-daemon dbus-send pkcheck systemd-sysusers setpriv
polkitd=/usr/lib/polkit-1/polkitd
[ -x $polkitd ] || cannot "needs polkitd (make setup)"
[ "$(id -u)" = 0 ] || cannot "needs root: polkitd changes its user"

make_user >/dev/null 2>&1
mkdir "$work/rules"
cp "$root/systemd/badged-polkit.rules" "$work/rules/50-badged.rules"
# The actions of a pcscd with polkit: only an active local session may use them. The pcscd of Debian 12 has no polkit.
mkdir "$work/actions"
{
    echo '<policyconfig>'
    for action in org.debian.pcsc-lite.access_pcsc org.debian.pcsc-lite.access_card org.example.other; do
        echo "<action id=\"$action\"><description>x</description><message>x</message><defaults><allow_any>no</allow_any>"
        echo '<allow_inactive>no</allow_inactive><allow_active>yes</allow_active></defaults></action>'
    done
    echo '</policyconfig>'
} >"$work/actions/org.debian.pcsc-lite.policy"
# polkitd and the processes that ask run as other users.
chmod 755 "$work" "$work/rules" "$work/actions"
chmod 644 "$work/actions/org.debian.pcsc-lite.policy" "$work/root/etc/passwd" "$work/root/etc/group" "$work/rules/50-badged.rules"

cat >"$work/inside" <<'END'
set -eu
work=$1
mount --bind "$work/root/etc/passwd" /etc/passwd
mount --bind "$work/root/etc/group" /etc/group
mount --bind "$work/rules" /usr/share/polkit-1/rules.d
mount --bind "$work/actions" /usr/share/polkit-1/actions
mount -t tmpfs tmpfs /etc/polkit-1/rules.d -o mode=755
mount -t tmpfs tmpfs /run -o mode=755
mkdir /run/dbus
dbus-daemon --system --fork --nopidfile
# The first message starts polkitd; on a busy machine the first attempts may be too early for the bus.
tries=10
until dbus-send --system --print-reply --reply-timeout=60000 --dest=org.freedesktop.PolicyKit1 \
    /org/freedesktop/PolicyKit1/Authority org.freedesktop.DBus.Peer.Ping; do
    tries=$((tries - 1))
    [ $tries -gt 0 ]
done
touch "$work/started"
# ask USER ACTION: asks for a process of the user; 0 when it is allowed.
ask() {
    setpriv --reuid "$1" --regid nogroup --clear-groups sleep infinity &
    pid=$!
    # setpriv becomes sleep after it has changed the user.
    until [ "$(tr '\0' ' ' <"/proc/$pid/cmdline")" = 'sleep infinity ' ]; do sleep 0.02; done
    code=0
    pkcheck --action-id "$2" --process "$pid" >/dev/null 2>&1 || code=$?
    kill "$pid"
    return $code
}
for user in badged nobody; do
    for action in org.debian.pcsc-lite.access_pcsc org.debian.pcsc-lite.access_card org.example.other; do
        code=0
        ask $user $action || code=$?
        echo "$user $action $code"
    done
done
END
isolated unshare --pid --fork --kill-child --mount-proc --net sh "$work/inside" "$work" >"$work/answers" 2>"$work/errors" ||
    {
        cat "$work/errors"
        [ ! -e "$work/started" ] || { echo "  FAILED: polkitd has started, and could not be asked"; exit 1; }
        cannot "polkitd does not start in a namespace"
    }
check "badged may connect to pcscd" holds "$work/answers" '^badged org.debian.pcsc-lite.access_pcsc 0$'
check "badged may connect to cards" holds "$work/answers" '^badged org.debian.pcsc-lite.access_card 0$'
check "badged gets no other right" holds "$work/answers" '^badged org.example.other [1-9]'
check "other users may not connect to pcscd" holds "$work/answers" '^nobody org.debian.pcsc-lite.access_pcsc [1-9]'
check "other users may not connect to cards" holds "$work/answers" '^nobody org.debian.pcsc-lite.access_card [1-9]'
finish
