#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# badgectl metrics against the programs of Prometheus: promtool accepts both formats, and node_exporter reads the file.
. "$(dirname "$0")/lib.sh"
needs promtool prometheus-node-exporter python3
needs_programs badged badgectl
start_badged "$bin/badged" --virtual --no-pcsc --no-nfc --no-ble --socket "$socket"
badgectl metrics >"$work/text"
check "promtool accepts the text format" promtool check metrics <"$work/text"
check "badged is up, with its virtual reader" holds "$work/text" '^badged_readers\{driver="virtual"\} 1$'
check "at most 200 series" test "$(grep -vc '^#' "$work/text")" -le 200
badgectl metrics --openmetrics >"$work/open"
check "OpenMetrics ends with EOF" test "$(tail -n 1 "$work/open")" = "# EOF"
check "OpenMetrics names counters without their suffix" holds "$work/open" '^# TYPE badged_messages_dropped counter$'

mkdir "$work/textfile"
badgectl metrics --output "$work/textfile/badged.prom"
port=$(PYTHONPATH=$here python3 -c 'from harness import free_port; print(free_port())')
prometheus-node-exporter --collector.disable-defaults --collector.textfile \
    --collector.textfile.directory="$work/textfile" --web.listen-address="127.0.0.1:$port" 2>"$work/exporter.log" &
exporter=$!
fetch() { python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' "$1" 2>/dev/null; }
scraped() { fetch "http://127.0.0.1:$port/metrics" >"$work/scrape" && holds "$work/scrape" "$1" >/dev/null; }
eventually scraped '^badged_up 1$'
check "node_exporter shows the file" scraped '^badged_up 1$'
check "node_exporter finds no fault" scraped '^node_textfile_scrape_error 0$'

printf 'GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text\r\n\r\n' | badgectl metrics --http >"$work/http"
printf 'GET /metrics HTTP/1.1\r\nHost: evil.example:9837\r\n\r\n' | badgectl metrics --http >"$work/refused"
check "a request under the name of a web page is refused" holds "$work/refused" '^HTTP/1.1 403 '
check "the answer over HTTP is OpenMetrics" holds "$work/http" 'Content-Type: application/openmetrics-text'
sed '1,/^\r$/d' "$work/http" | tail -n 1 >"$work/end"
check "the answer is whole" holds "$work/end" '^# EOF$'
sed -n '/^   ```yaml/,/^   ```$/{/```/d;s/^   //;p}' "$root/docs/fleet.md" >"$work/rules"
check "promtool accepts the rule of docs/fleet.md" promtool check rules "$work/rules"
stop_badged
badgectl metrics --output "$work/textfile/badged.prom"
check "without badged only badged_up is left" test "$(grep -v '^#' "$work/textfile/badged.prom")" = "badged_up 0"
check "node_exporter then shows that badged is down" scraped '^badged_up 0$'
kill "$exporter" && wait "$exporter" 2>/dev/null || true
finish
