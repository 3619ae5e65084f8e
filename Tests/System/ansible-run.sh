#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The Ansible role of docs/examples/fleet makes a Debian 12 with systemd, in a container of systemd-nspawn, a host of the fleet:
# packages, settings, secrets, units. Its badged-mqtt then talks to a real mosquitto by TLS.
# Only `make test-all` runs it, since it needs a mirror of Debian and some minutes.
# shares: packages
. "$(dirname "$0")/lib.sh"
[ "${BADGED_TEST_ALL:-}" = 1 ] || cannot "only make test-all runs it"
PATH=$PATH:/usr/sbin
needs ansible-playbook mmdebstrap systemd-nspawn nsenter dpkg-buildpackage mosquitto mosquitto_sub openssl python3
needs_programs badged badged-mqtt
[ "$(id -u)" = 0 ] || cannot "needs root"
cd "$root"
BIN=$bin packaging/deb >"$work/debs" || { cat "$work/debs"; exit 1; }
system=$work/system
mmdebstrap --variant=apt --include=systemd,systemd-sysv,dbus,python3,python3-apt --dpkgopt='path-exclude=/usr/share/locale/*' \
    bookworm "$system" >"$work/built" 2>&1 || {
    grep -qE 'Temporary failure|Could not (resolve|connect)|Unable to connect' "$work/built" && cannot "needs a mirror of Debian"
    tail -n 40 "$work/built"
    exit 1
}
deb() { grep "/$1_" "$work/debs"; }
python3 "$here/ansible_run.py" "$work" "$system" "$root/docs/examples/fleet/ansible" "$(deb badged)" "$(deb badged-mqtt)" || failures=1
finish
