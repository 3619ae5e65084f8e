#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# `badgectl agent --automatic` and `auth --automatic`: logins at badged-eidserver by a browser and by a link, without a
# person, with the PIN in a credential of systemd or in a file; a PIN that is wrong is given once.
. "$(dirname "$0")/lib.sh"
needs python3
needs_programs badged badgectl badged-eidserver badged-activation
start_eidserver
port=$(PYTHONPATH=$here python3 -c 'from harness import free_port; print(free_port())')
printf '[virtual]\nenabled=yes\n[eid]\ntrust_anchors=%s\n[activation]\nenabled=yes\nport=%s\n' "$work/anchors" "$port" >"$work/badged.conf"
mkdir "$work/credentials"
printf 123456 >"$work/credentials/pin"
printf 111111 >"$work/wrong"
chmod 600 "$work/wrong"

start_badged "$bin/badged" --no-pcsc --no-nfc --no-ble --config "$work/badged.conf" --socket "$socket" --log-level info
agent() { "$bin/badgectl" --socket "$socket" agent --automatic --rights all "$@" >"$work/agent" 2>&1 & agent=$!; }
# login: what a browser does that opens the link; prints the answer, after those that only say that it takes long.
login() { python3 - "$port" "$url" <<'END'
import socket, sys, urllib.parse
browser = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=300)
link = "/eID-Client?tcTokenURL=" + urllib.parse.quote(sys.argv[2], safe="")
browser.sendall(f"GET {link} HTTP/1.1\r\nHost: 127.0.0.1:{sys.argv[1]}\r\nConnection: close\r\n\r\n".encode())
answers = browser.makefile("rb").read().decode()
print("HTTP/1.1 " + answers.rsplit("HTTP/1.1 ", 1)[1])
END
}
succeeds() { login >"$work/login" && holds "$work/login" '^HTTP/1.1 303' && holds "$work/login" 'ResultMajor=ok.?$'; }

CREDENTIALS_DIRECTORY=$work/credentials agent
eventually grep -qs 'Waiting for browsers' "$work/agent"
eventually grep -qs 'browsers are served at port' "$work/log"
for number in 1 2 3; do check "login $number of a browser, with the PIN of a credential" succeeds; done
check "the PIN is not in the output of the agent" lacks "$work/agent" 123456
check "the log says that the card got an automatic PIN" holds "$work/log" 'Simulator gets an automatic PIN'
kill $agent
wait $agent || true
cp "$work/credentials/pin" "$work/pin"
chmod 600 "$work/pin"
by_link() { badgectl auth --automatic --rights all --pin-file "$work/pin" "$url" >"$work/out" 2>"$work/err" && holds "$work/out" 'ResultMajor=ok$'; }
check "auth --automatic with a file" by_link

agent --pin-file "$work/wrong"
eventually grep -qs 'Waiting for browsers' "$work/agent"
login >"$work/login"
code=0
tries=600
while kill -0 $agent 2>/dev/null && [ $tries -gt 0 ]; do tries=$((tries - 1)); sleep 0.1; done
kill $agent 2>/dev/null && code=none
wait $agent || code=${code#0}$?
check "with a wrong PIN the agent ends" test $code = 1
check "and says why" holds "$work/agent" "the PIN in $work/wrong is wrong"
check "the browser gets an error" holds "$work/login" 'ResultMinor=.*cancellationByUser'
refused() { ! by_link && holds "$work/err" 'less than three tries left'; }
check "no program spends another try" refused
by_hand() { printf '123456\n' | badgectl auth --pin-stdin --yes "$url" >"$work/out" 2>&1; }
check "after the right PIN by hand" by_hand
check "automatic PINs are given again" by_link
stop_badged
finish
