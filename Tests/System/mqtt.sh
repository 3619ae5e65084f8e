#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# badged-mqtt with the broker mosquitto: order, gaps, wills, documents, and faults of broker, badged, disk and certificates.
# KILLS is the number of times that badged-mqtt is killed while people tap.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin
needs mosquitto mosquitto_sub mosquitto_passwd openssl python3
needs_programs badged badged-mqtt
python3 "$(dirname "$0")/mqtt.py" "$bin" "$work" "${KILLS:-20}" || failures=1
finish
