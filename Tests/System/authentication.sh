#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Authentications with badged, badgectl and badged-eidserver: both models of the server, and memory
# and threads after many authentications. Link certificates over a restart, and badged without
# badged-network.
. "$(dirname "$0")/lib.sh"
needs_programs badged badgectl badged-eidserver
start_eidserver
printf '[pcsc]\nenabled=no\n[virtual]\nenabled=yes\n[eid]\ntrust_anchors=%s\n' "$work/anchors" >"$work/badged.conf"
mkdir "$work/state"

start() { # start [PREFIX...]: starts badged, by a command that is put before it.
    start_badged env STATE_DIRECTORY="$work/state" "$@" "$bin/badged" --config "$work/badged.conf" --socket "$socket"
}
authenticate() { printf '123456\n' | badgectl auth --pin-stdin --yes "$url$1" >"$work/out" 2>&1; }
succeeds() { authenticate "$1" && holds "$work/out" 'ResultMajor=ok$'; }
fails() { ! authenticate "$1"; }
fails_with() { fails "$1" && holds "$work/out" "$2"; }
resident() { awk '/^Rss:/ { print $2 }' "/proc/$daemon/smaps_rollup"; }
threads() { ls "/proc/$daemon/task" | wc -l; }
has_threads() { [ "$(threads)" -le "$1" ]; }
is_below() { [ "$(resident)" -lt "$1" ]; }

start
badgectl health >"$work/health" || true
check "an authentication with a session of its own (PSK)" succeeds ''
check "an authentication in the TLS session of the service (attached)" succeeds '?mode=attached'
check "an attached authentication with a connection for each message" succeeds '?mode=attached&keepalive=0'
check "a terminal that the card refuses is an error" fails '?fault=eac2-signature'
# The certificate of the service is no authority of this system.
follows() { printf '123456\n' | badgectl auth --pin-stdin --yes --follow "$url" >"$work/out" 2>&1; }
not_followed() { ! follows && holds "$work/out" 'the page of the service cannot be fetched'; }
check "--follow does not trust a certificate that the system does not know" not_followed
address=$(echo "$url" | cut -d / -f 3)
python3 -c 'import ssl, sys; host, port = sys.argv[1].rsplit(":", 1); print(ssl.get_server_certificate((host, int(port))))' \
    "$address" >"$work/service.pem"
shows() { SSL_CERT_FILE=$work/service.pem follows && holds "$work/out" '"outcome":"ok"'; }
check "--follow shows what the service answers at the end" shows
round() {
    succeeds '' && succeeds '?mode=attached' && fails '?fault=eac2-signature' && fails '?fault=tctoken-huge' &&
        fails '?fault=start-deep'
}
rounds() { for number in $(seq "$1"); do round || return 1; done; }
rounds 4
before=$(resident) threads=$(threads)
check "100 authentications, good and bad" rounds 20
check "memory is at most 1 MB above that after the first 20 ($before kB)" eventually is_below $((before + 1024))
check "an authentication after that" succeeds ''
check "no thread is left over" eventually has_threads "$threads"
stop_badged

# The second root is trusted only by a link certificate that the first root has signed.
rm "$work/anchors/test/cvca-next.cvcert"
start
no_chain=Pre_Verification_Invalid_Certificate_Chain
check "a service below an unknown root is refused" fails_with '?chain=late' $no_chain
check "with a link certificate from a known root it is accepted" succeeds '?chain=link'
stop_badged
start
check "badged keeps the link certificate over a restart" succeeds '?chain=late'
stop_badged
rm "$work"/state/link-certificates/*.cvcert
start
check "the link certificate is stored in the state directory only" fails_with '?chain=late' $no_chain
stop_badged
cp "$work/badged.conf" "$work/undated.conf"
echo 'date=2001-01-01' >>"$work/badged.conf"
start
check "certificates are checked at the date of [eid] date" fails_with '' Pre_Verification_Certificate_Expired
stop_badged
mv "$work/undated.conf" "$work/badged.conf"

start env BADGED_NETWORK_SOCKET="$work/none"
check "without badged-network an authentication is an error" fails ''
check "without badged-network the log says so" holds "$work/log" 'badged-network'
change() { printf '%s\n' 123456 654321 | badgectl change-pin --pin-stdin; }
check "without badged-network the PIN can be changed" change
badgectl health >"$work/health" || true
check "without badged-network health says so" holds "$work/health" 'badged-network'
stop_badged
finish
