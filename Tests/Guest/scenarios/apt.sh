#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The Debian packages in a minimal Debian with systemd: installed as README.md says, used, upgraded, removed and purged.
# debian
# kernel: time-travel=inf-cpu
. "$(dirname "$0")/../../System/lib.sh"
root=/mnt/badged
# The installed program, not the one of the build.
unset -f badgectl
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 PATH=$work/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mkdir "$work/bin" "$work/new"
chmod 755 "$work"
apt() { apt-get -qq -o APT::Install-Recommends=yes -o Dpkg::Use-Pty=0 "$@" </dev/null; }
property() { systemctl show "$1" --property "$2" --value; }
is() { [ "$(property "$1" "$2")" = "$3" ] || { systemctl --no-pager status "$1"; return 1; }; }
as() { user=$1; shift; setpriv --reuid "$user" --regid "$user" --init-groups "$@"; }
exit_code() { expected=$1; shift; code=0; "$@" >/dev/null 2>&1 || code=$?; [ $code = "$expected" ]; }
# files: everything on the disk that has our name, but for logs and what belongs to this test.
files() { find / -xdev -name '*badged*' ! -path "$work*" ! -path '/var/log/*' ! -path '/var/cache/apt/*' 2>/dev/null | sort; }

# MARK: Install

useradd --no-create-home tester
useradd --no-create-home stranger
check "before, no file has our name" test -z "$(files)"
printf '#!/bin/sh\nexec "$@"\n' >"$work/bin/sudo"
chmod 755 "$work/bin/sudo"
awk '/^## Install/ {section = 1} section && /^```sh/ {inside = 1; next} inside && /^```/ {exit} inside' "$root/README.md" |
    sed 's/apt install/apt-get -y -o APT::Install-Recommends=yes install/; /^make deb/d; s/^badgectl health.*/badgectl health || [ $? = 1 ]/' >"$work/readme"
check "README.md has the commands" holds "$work/readme" 'install .*\.deb'
check "the commands of README.md install badged, and badgectl answers" sh -c "cd $root && USER=tester sh -ex '$work/readme'"
check "the socket is enabled" test "$(systemctl is-enabled badged.socket)" = enabled
check "the socket listens" is badged.socket ActiveState active
check "the service is not started with the system" test "$(systemctl is-enabled badged.service)" = disabled
check "a member of the group is served" as tester badgectl status
check "another user is not" exit_code 4 as stranger badgectl status
check "the service has been started by the socket" is badged.service ActiveState active
check "it runs as its own user" test "$(stat -c %U "/proc/$(property badged.service MainPID)")" = badged
check "the state directory is private" test "$(stat -c '%a %U' /var/lib/badged)" = '700 badged'
check "badged reaches pcscd, which apt has installed" eventually sh -c \
    "badgectl --json health | grep -o '{[^{]*\"pcscd\"[^}]*}' | grep '\"ok\":true'"
check "bash completes badgectl" bash -c '. /usr/share/bash-completion/completions/badgectl && complete -p badgectl'
check "no unit has failed" test -z "$(systemctl --failed --no-legend)"

# MARK: Parts

# ask PORT PATH: writes what is served there into $work/answer.
ask() { bash -c "exec 3<>/dev/tcp/127.0.0.1/$1 && printf 'GET $2 HTTP/1.0\r\nHost: localhost:$1\r\n\r\n' >&3 && cat <&3" >"$work/answer" 2>&1; }
# Units that run when the administrator has enabled them.
units='badged-mqtt.service badged-osdp.service badged-metrics.socket'
are() { for unit in $units; do is "$unit" ActiveState "$1" || return 1; done; }
cat >/etc/badged/badged.conf <<'END'
# mine
[virtual]
enabled = yes
[activation]
enabled = yes
END
for name in activation mqtt osdp virtual-card; do echo "$root/.build-deb/badged-$name"_*.deb; done >"$work/parts"
# shellcheck disable=SC2046  # a list of files
apt install $(cat "$work/parts") >"$work/apt" 2>&1 || cat "$work/apt"
systemctl restart badged.service
ask 24727 '/eID-Client?Status'
check "with badged-activation a browser is answered" holds "$work/answer" 'Implementation-Title'
check "badged-virtual-card runs" badged-virtual-card --version
check "what the administrator has not enabled does not run" are inactive
printf '# mine\n[broker]\nurl = mqtt://localhost\n' >/etc/badged/mqtt.conf
printf '# mine\n[panel front]\nlisten = 127.0.0.1:4001\nsecurity = off\n' >/etc/badged/osdp.conf
# shellcheck disable=SC2086  # a list of units
systemctl enable --now --quiet $units
check "what is enabled runs" are active
ask 9837 /metrics
check "the metrics are served" holds "$work/answer" '^badged_up 1'

# MARK: Upgrade

# badged must keep what it finds here.
echo state >/var/lib/badged/kept
chown badged:badged /var/lib/badged/kept
mkdir -p /etc/badged/trust-anchors
echo anchor >/etc/badged/trust-anchors/kept
version=$(dpkg-query -W -f '${Version}' badged)
check "the packages have the version of the programs" test "$(badged --version)" = "badged $version"
for deb in "$root"/.build-deb/*.deb; do
    case $deb in *dbgsym*) continue ;; esac
    rm -rf "$work/package"
    dpkg-deb -R "$deb" "$work/package"
    sed -i "/^Version\|^Depends/s/$version/$version+1/" "$work/package/DEBIAN/control"
    [ ! -e "$work/package/etc/badged/badged.conf" ] || echo '# new default' >>"$work/package/etc/badged/badged.conf"
    # A socket whose address changes is deaf until it is restarted.
    socket=$work/package/lib/systemd/system/badged-metrics.socket
    [ ! -e "$socket" ] || sed -i 's/:9837/:9838/' "$socket"
    dpkg-deb -Zgzip -z1 -b "$work/package" "$work/new" >/dev/null
done
rm -rf "$work/package"
as tester badgectl readers --watch >"$work/watch" 2>&1 &
watcher=$!
eventually grep -qs Simulator "$work/watch"
before=$(property badged.service MainPID)
opened=$(property badged.socket ActiveEnterTimestampMonotonic)
upgrade() { apt -o Dpkg::Options::=--force-confold install "$@" "$work"/new/*.deb; }
check "apt upgrades the packages" upgrade
check "the new version is installed" sh -c "dpkg-query -W -f '\${Version}' badged | grep '+1\$'"
check "the service runs again, as a new process" test "$(property badged.service MainPID)" != "$before"
check "it is active" is badged.service ActiveState active
check "the socket was open all the time" is badged.socket ActiveEnterTimestampMonotonic "$opened"
check "a member of the group is served" as tester badgectl status
check "what was enabled runs" are active
ask 9838 /metrics
check "the metrics are served at the address of the new version" holds "$work/answer" '^badged_up 1'
check "the configuration of the administrator is kept" holds /etc/badged/badged.conf '^# mine$'
check "and in effect" sh -c 'badgectl readers | grep Simulator'
check "the new default lies beside it" holds /etc/badged/badged.conf.dpkg-dist '^# new default$'
check "the state is kept" holds /var/lib/badged/kept '^state$'
check "trust anchors are kept" holds /etc/badged/trust-anchors/kept '^anchor$'
kill $watcher 2>/dev/null || true
systemctl disable --now --quiet badged.socket
systemctl stop badged.service
check "apt installs the packages again" upgrade --reinstall
check "a socket that the administrator has disabled stays disabled" exit_code 1 systemctl is-enabled badged.socket
check "and is not started" is badged.socket ActiveState inactive
systemctl enable --now --quiet badged.socket

# MARK: Remove and purge

as tester badgectl status >/dev/null
check "the service runs" is badged.service ActiveState active
pid=$(property badged.service MainPID)
check "apt removes one package" apt remove badged-mqtt
check "its service has ended" is badged-mqtt.service ActiveState inactive
check "the others run" is badged-osdp.service ActiveState active
check "apt removes the packages" apt remove badged badged-virtual-card
check "the daemon has ended" test ! -e "/proc/$pid"
check "and so has what was enabled" are inactive
check "the units are gone" is badged.socket LoadState not-found
check "the socket file is gone" test ! -e /run/badged/badged.sock
check "the configuration is kept" holds /etc/badged/badged.conf '^# mine$'
check "the state is kept" holds /var/lib/badged/kept '^state$'
check "no program is left" exit_code 1 sh -c 'ls /usr/bin/badge* /usr/libexec/badged* 2>/dev/null | grep .'
check "apt installs them again, with the old configuration" apt -o Dpkg::Options::=--force-confold install "$work"/new/*.deb
check "a member of the group is served" sh -c 'badgectl readers | grep Simulator'
# Also those that do not depend on badged, such as the library for Python.
packages=$(for deb in "$work"/new/*.deb; do dpkg-deb -f "$deb" Package; done)
# shellcheck disable=SC2086  # a list of words
check "apt purges the packages" apt purge $packages
files >"$work/left"
check "no file is left" diff /dev/null "$work/left"
check "user and group are left, without members who can log in" sh -c "getent passwd badged | grep nologin && getent group badged"
check "no unit has failed" test -z "$(systemctl --failed --no-legend)"
check "after the purge apt installs badged anew" apt install "$root"/.build-deb/badged_*.deb
check "with its own configuration" holds /etc/badged/badged.conf '^#socket = '
check "the socket listens" is badged.socket ActiveState active
check "badged-mqtt, too" apt install "$root"/.build-deb/badged-mqtt_*.deb
check "apt removes both" apt remove badged
check "and purges badged" apt purge badged
check "the configuration of badged-mqtt stays" test -e /etc/badged/mqtt.conf
finish
