#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The image of packaging/container/build, unpacked and run in namespaces: the virtual card at once, a card behind the
# mounted folder of a real pcscd, its size, and that a second build makes the same bits.
# long
# shares: packages
. "$(dirname "$0")/lib.sh"
needs mmdebstrap umoci dpkg-deb unshare pcscd python3 readelf
needs_programs badged badgectl badged-virtual-card
[ "$(id -u)" = 0 ] || cannot "needs root"
[ -e /usr/lib/pcsc/drivers/serial/libifdvpcd.so ] || cannot "needs vsmartcard-vpcd (make setup)"
cd "$root"
BIN=$bin packaging/deb >"$work/debs" || { cat "$work/debs"; exit 1; }
packaging/container/build "$work/one" >"$work/built" 2>&1 || {
    cat "$work/built"
    grep -qE 'Temporary failure|Could not (resolve|connect)|Unable to connect' "$work/built" && cannot "needs a mirror of Debian"
    exit 1
}
sed 's/^/  /' "$work/built"
blob() { echo "$work/$1/badged/blobs/sha256/$2"; }
size=$(du -sb "$work/one/badged/blobs" | cut -f1)
check "the image has at most 60 MB ($size bytes)" test "$size" -le 60000000
packaging/container/build "$work/two" >/dev/null 2>&1 || true
check "a second build makes the same image" diff -r "$work/one/badged/blobs" "$work/two/badged/blobs"
umoci unpack --image "$work/one/badged:latest" "$work/bundle" >/dev/null 2>&1 || { echo "  FAILED: umoci unpack"; exit 1; }
system=$work/bundle/rootfs
check "the image starts badged with the virtual card, as its own user" python3 - "$work/bundle/config.json" <<'END'
import json, sys
process = json.load(open(sys.argv[1]))["process"]
assert process["args"] == ["/usr/bin/badged", "--virtual", "--no-nfc", "--no-ble"], process["args"]
assert (process["user"]["uid"], process["user"]["gid"]) == (990, 990), process["user"]
assert {"STATE_DIRECTORY=/var/lib/badged", "PATH=/usr/bin"} <= set(process["env"]), process["env"]
END
check "it has no shell" test ! -e "$system/bin/sh"
check "it has licences of what it links" test -s "$system/usr/share/doc/libssl3/copyright" -a -s "$system/usr/share/doc/badged/copyright"

# By default a user may not make keys, which are in the store.
printf '[access]\nuser:badged = readers, cards, keys\n' >"$system/etc/badged/badged.conf"

cat >"$work/run" <<'END'
set -eu
work=$1 system=$2 bin=$3
mount -t proc proc "$system/proc"
mount -t tmpfs tmpfs /run
ip link set lo up
mkdir -p /run/pcscd "$system/run/pcscd"
mount --bind /run/pcscd "$system/run/pcscd"
in_image() { chroot --userspec=990:990 "$system" "$@"; }
pcscd --foreground >"$work/pcscd.log" 2>&1 &
until [ -S /run/pcscd/pcscd.comm ]; do sleep 0.05; done
"$bin/badged-virtual-card" --vpcd localhost:35963 >"$work/card.log" 2>&1 &
# Not in_image, whose shell would take the signal.
STATE_DIRECTORY=/var/lib/badged chroot --userspec=990:990 "$system" /usr/bin/badged --virtual --no-nfc --no-ble >"$work/badged.log" 2>&1 &
daemon=$!
tries=600
until in_image /usr/bin/badgectl readers 2>/dev/null | grep -q 'Virtual PCD.*eID card' || [ $tries = 0 ]; do
    tries=$((tries - 1))
    sleep 0.1
done
in_image /usr/bin/badgectl readers
in_image /usr/bin/badgectl keys new --label office
printf '123456\n654321\n' | in_image /usr/bin/badgectl change-pin --pin-stdin --reader Simulator
real=$(in_image /usr/bin/badgectl readers --names | grep -m1 'Virtual PCD')
printf '123456\n654321\n' | in_image /usr/bin/badgectl change-pin --pin-stdin --reader "$real"
kill $daemon
wait $daemon
echo "ended with $?"
END
isolated unshare --pid --fork --kill-child --net timeout 300 sh "$work/run" "$work" "$system" "$bin" >"$work/out" 2>&1 || true
check "the virtual card is there at once" holds "$work/out" '^Simulator '
check "so is the card behind the pcscd of the host" holds "$work/out" '^Virtual PCD.*eID card'
check "the PINs of both are changed" test "$(grep -c 'The PIN has been changed' "$work/out")" = 2
check "badged ends with 0" holds "$work/out" '^ended with 0$'
check "there is a state folder" test -s "$system/var/lib/badged/store.db"
[ "$failures" = 0 ] || sed 's/^/    /' "$work/out" "$work/badged.log"
finish
