#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The programs together: badged with a virtual card, badgectl and badged-eidserver. Authentications end well in both
# models, leave no memory behind, link certificates are kept, and without libcurl badged says what is missing and does the
# rest.
. "$(dirname "$0")/lib.sh"
needs_programs badged badgectl badged-eidserver
socket=$work/badged.sock
daemon='' server=''
stop() {
    for process in $daemon $server; do kill "$process" 2>/dev/null || true; done
    for process in $daemon $server; do wait "$process" 2>/dev/null || true; done
    daemon='' server=''
}
trap 'stop; rm -rf "$work"' EXIT

mkdir -p "$work/anchors/test" "$work/state"
"$bin/badged-eidserver" --out "$work/anchors/test" >"$work/url" 2>"$work/server.log" &
server=$!
until grep -q ^https "$work/url"; do kill -0 $server || { cat "$work/server.log"; exit 1; }; done
url=$(head -n 1 "$work/url")
printf '[pcsc]\nenabled=no\n[virtual]\nenabled=yes\n[eid]\ntrust_anchors=%s\n' "$work/anchors" >"$work/badged.conf"

start() { # start [PREFIX...]: the daemon, started by these words
    STATE_DIRECTORY=$work/state "$@" "$bin/badged" --config "$work/badged.conf" --socket "$socket" 2>"$work/log" &
    daemon=$!
    until "$bin/badgectl" --socket "$socket" status >/dev/null 2>&1; do
        kill -0 $daemon 2>/dev/null || { cat "$work/log"; exit 1; }
    done
}
authenticate() { printf '123456\n' | "$bin/badgectl" --socket "$socket" auth --pin-stdin --yes "$url$1"; }
ends_well() { authenticate "$1" >"$work/out" 2>&1 && holds "$work/out" 'ResultMajor=ok$'; }
fails() { ! authenticate "$1"; }
resident() { awk '/^Rss:/ { print $2 }' "/proc/$daemon/smaps_rollup"; }
threads() { ls "/proc/$daemon/task" | wc -l; }

start env
check "libcurl is not loaded before it is needed" lacks "/proc/$daemon/maps" libcurl
idle=$(resident)
# Some seconds after the last authentication, not at once.
returns() {
    tries=150
    until [ "$(resident)" -lt $((idle + 1024)) ]; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return 1
        sleep 0.1
    done
}
check "an authentication with a key of its own (PSK)" ends_well ''
check "an authentication in the TLS session of the service" ends_well '?mode=attached'
check "the same over new connections" ends_well '?mode=attached&keepalive=0'
check "a refused terminal is an error" fails '?fault=eac2-signature'
round() { ends_well '' && ends_well '?mode=attached' && fails '?fault=eac2-signature' >/dev/null 2>&1 &&
    fails '?fault=tctoken-huge' >/dev/null 2>&1 && fails '?fault=start-deep' >/dev/null 2>&1; }
rounds() { count=$1; while [ "$count" -gt 0 ]; do round || return 1; count=$((count - 1)); done; }
rounds 4
before=$(resident) threads=$(threads)
check "100 authentications, good and bad" rounds 20
after=$(resident)
check "they leave less than 1 MB behind (from $before to $after kB)" test "$after" -lt $((before + 1024))
check "memory returns to within 1 MB of what it was before the first ($idle kB)" returns
check "an authentication after that" ends_well ''
check "they leave no thread behind" test "$(threads)" -le "$threads"
ends() {
    kill $daemon && wait $daemon || true
    daemon=''
}
ends

# The second root is believed only by the link certificate that the first has signed.
rm "$work/anchors/test/cvca-next.cvcert"
start env
fails_by() { ! authenticate "$1" >"$work/out" 2>&1 && holds "$work/out" "$2"; }
no_chain=Pre_Verification_Invalid_Certificate_Chain
check "a service below an unknown root is not believed" fails_by '?chain=late' $no_chain
check "with a link certificate from a known one it is" ends_well '?chain=link'
ends
start env
check "the link is kept for services that leave it out, also by the next daemon" ends_well '?chain=late'
ends
rm "$work"/state/link-certificates/*.cvcert
start env
check "it was kept in the state directory, and nowhere else" fails_by '?chain=late' $no_chain
ends
echo 'date=2001-01-01' >>"$work/badged.conf"
start env
check "certificates are judged on the day of [eid] date" fails_by '' Pre_Verification_Certificate_Expired
ends
sed -i '$d' "$work/badged.conf"

library=$(ldconfig -p | sed -n 's/.*libcurl\.so\.4 .*=> //p' | head -n 1)
if [ -n "$library" ] && isolated true 2>/dev/null; then
    # As isolated does, but as a command: its process becomes the daemon's.
    own='unshare --mount --propagation private'
    [ "$(id -u)" = 0 ] || own='unshare --map-root-user --mount'
    # shellcheck disable=SC2016,SC2086  # the inner shell's variables; a list of words
    start $own sh -c 'mount --bind /dev/null "$(readlink -f "$0")" && exec "$@"' "$library"
    check "without libcurl an authentication is an error" fails ''
    check "without libcurl the log says what is missing" holds "$work/log" 'libcurl4'
    change() { printf '%s\n' 123456 654321 | "$bin/badgectl" --socket "$socket" change-pin --pin-stdin; }
    check "without libcurl the PIN can be changed" change
fi
finish
