#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The rules of Prometheus and the dashboard of Grafana in docs/examples/fleet, with promtool and what badgectl metrics prints.
. "$(dirname "$0")/lib.sh"
needs promtool prometheus-node-exporter python3
needs_programs badged badgectl
fleet=$root/docs/examples/fleet
check "promtool accepts the rules" promtool check rules "$fleet/badged.rules.yml"
check "each alert is raised for a host that is ill, and for no other" promtool test rules "$fleet/badged.rules.test.yml"
python3 "$here/monitoring.py" "$bin" "$work" "$fleet" || failures=1
finish
