#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The sample of docs/fleet.md that writes a fleet into SQLite, with badged-mqtt, a real mosquitto and paho-mqtt. The sample, the
# broker and the host are killed while people tap; what the broker has lost comes from badged-mqtt --events.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin
needs mosquitto mosquitto_sub
needs_programs badged-mqtt
# paho is a package of Debian, which need not be that of the first Python.
for python in python3 /usr/bin/python3; do
    if "$python" -c 'import paho.mqtt, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then break; fi
done
"$python" -c 'import paho.mqtt' 2>/dev/null || cannot "needs python3-paho-mqtt (make setup)"
without_paho() { PYTHONPATH=$root/clients/python/src "$python" -S -c 'import badged.fleet, sys; assert "paho" not in sys.modules'; }
check "the module needs no paho" without_paho
PYTHONPATH=$root/clients/python/src "$python" "$here/fleet.py" "$bin" "$work" "$root/docs/examples/fleet/log_events.py" || failures=1
finish
