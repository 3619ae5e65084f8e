#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Authentications through a real HTTP proxy (tinyproxy) that requires a name and a password. Every
# connection is a tunnel, no connection is direct, and the password is in no log.
. "$(dirname "$0")/lib.sh"
needs_programs badged badgectl badged-eidserver
needs tinyproxy python3
start_eidserver
# No outgoing connection takes this port before tinyproxy has it, or after its end.
port=$(PYTHONPATH=$here python3 -c 'from harness import free_port; print(free_port())')
printf 'Port %s\nListen 127.0.0.1\nTimeout 600\nLogFile "%s"\nLogLevel Info\nBasicAuth someone Passw0rd\n' \
    "$port" "$work/proxy.log" >"$work/tinyproxy.conf"
tinyproxy -d -c "$work/tinyproxy.conf" >/dev/null 2>&1 &
proxy=$!
trap 'kill $proxy 2>/dev/null || true; stop_all; rm -rf "$work"' EXIT
eventually grep -qs 'Accepting connections' "$work/proxy.log"

configure() { # configure LINE...: the lines of [eid] beside the trust anchors.
    printf '[pcsc]\nenabled=no\n[virtual]\nenabled=yes\n[log]\nlevel=debug\n[eid]\ntrust_anchors=%s\n' "$work/anchors" \
        >"$work/badged.conf"
    printf '%s\n' "$@" >>"$work/badged.conf"
}
start() { # start [VARIABLE=VALUE...]: starts badged with these variables.
    start_badged env "$@" "$bin/badged" --config "$work/badged.conf" --socket "$socket"
}
authenticate() { printf '123456\n' | badgectl auth --pin-stdin --yes "$url$1" >"$work/out" 2>&1; }
succeeds() { authenticate "$1" && holds "$work/out" 'ResultMajor=ok$'; }
fails_with() { ! authenticate '' && holds "$work/out" "$1"; }
tunnels() { grep -c 'CONNECT localhost:' "$work/proxy.log"; }
are_tunnels() { [ "$(tunnels)" = "$1" ]; }

printf 'someone:Passw0rd\n' >"$work/credentials"
chmod 600 "$work/credentials"
configure "proxy=http://127.0.0.1:$port" "proxy_credentials=$work/credentials"
start
check "an authentication with a session of its own (PSK) goes through the proxy" succeeds ''
check "the proxy has opened tunnels to two ports" \
    test "$(grep -o 'CONNECT localhost:[0-9]*' "$work/proxy.log" | sort -u | wc -l)" = 2
check "an attached authentication goes through the proxy" succeeds '?mode=attached&keepalive=0'
check "the log of badged has no password" lacks "$work/log" 'Passw0rd|c29tZW9uZTpQYXNzdzByZA'
stop_badged

printf 'someone:wrong\n' >"$work/credentials"
start
check "a wrong password has words of its own" fails_with 'proxy did not accept the name and the password'
stop_badged
configure "proxy=http://127.0.0.1:$port"
start
check "so has a missing password" fails_with 'proxy asks for a name and a password'
stop_badged

configure "proxy=environment"
start "https_proxy=http://someone:Passw0rd@127.0.0.1:$port"
check "the environment names the proxy" succeeds ''
check "the log of badged has no password of the environment" lacks "$work/log" 'Passw0rd'
stop_badged
before=$(tunnels)
start "https_proxy=http://127.0.0.1:$port" no_proxy=example.org,localhost
check "a host in no_proxy is reached directly" succeeds ''
check "the proxy has no new tunnel" are_tunnels "$before"
stop_badged

kill "$proxy"
wait "$proxy" 2>/dev/null || true
configure "proxy=http://127.0.0.1:$port"
start
check "without the proxy nothing goes out" fails_with 'the proxy could not be reached'
stop_badged
finish
