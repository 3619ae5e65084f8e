#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# badged-mqtt with the broker mosquitto and its consumers: order, gaps, wills, documents, kills, refusals, certificates.
# KILLS is the number of times that badged-mqtt is killed while people tap.
# long
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin
needs mosquitto mosquitto_sub mosquitto_passwd openssl python3
needs_programs badged badged-mqtt badgectl
# paho is a package of Debian, which need not be that of the first Python.
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import paho.mqtt' 2>/dev/null; then break; fi
done
"$python" "$here/mqtt.py" "$bin" "$work" "${KILLS:-200}" || failures=1
finish
