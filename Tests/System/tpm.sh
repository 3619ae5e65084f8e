#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# badged with a real TPM in software (swtpm): where keys are, a TPM that is gone, cleared or
# forbidden, and badged without libtss2.
. "$(dirname "$0")/lib.sh"
needs swtpm
needs_programs badged badgectl
mkdir "$work/tpm" "$work/state"
trap 'stop_tpm 2>/dev/null; stop_all; rm -rf "$work"' EXIT

start_tpm() { # start_tpm: swtpm becomes a daemon when its socket is ready.
    swtpm socket --tpm2 --daemon --server "type=unixio,path=$work/tpm.sock" --tpmstate "dir=$work/tpm" \
        --flags not-need-init,startup-clear --pid "file=$work/tpm.pid"
}
stop_tpm() { kill -9 "$(cat "$work/tpm.pid")"; }
start() { # start USE [PREFIX...]: starts badged with [keys] tpm = USE, by a command that is put before it.
    printf '[pcsc]\nenabled=no\n[nfc]\nenabled=no\n[ble]\nenabled=no\n[keys]\ntpm=%s\ntpm_device=%s\n' \
        "$1" "$work/tpm.sock" >"$work/badged.conf"
    shift
    start_badged env STATE_DIRECTORY="$work/state" "$@" "$bin/badged" --config "$work/badged.conf" --socket "$socket"
}
keys() { badgectl keys "$@" >"$work/out" 2>&1; }
fails_with() { pattern=$1 && shift && ! keys "$@" && holds "$work/out" "$pattern"; }
is_the_same() { cmp "$work/before" "$work/state/store.db"; }

start auto
check "without a TPM a key is made in software" keys new --label door
check "without a TPM libtss2 is not loaded" lacks "/proc/$daemon/maps" libtss2
check "the key of the store is a file" test -e "$work/state/store.key" -a ! -e "$work/state/store.tpm"
stop_badged
rm -r "$work/state" && mkdir "$work/state"

start_tpm
start auto
check "a key is made" keys new --label door
check "the key is in the TPM" sh -c '"$@" | grep -q "  tpm  .*door"' - "$bin/badgectl" --socket "$socket" keys list
check "the key of the store is sealed by the TPM" test -e "$work/state/store.tpm" -a ! -e "$work/state/store.key"
check "the pass is signed in the TPM" badgectl wallet prepare
stop_tpm
check "the keys are listed while the TPM is gone" keys list
check "no key is made in software behind the TPM" fails_with 'no TPM' new
check "a signature without the TPM is an error with its name" sh -c '! "$@" >"$0" && grep -q controllerNotBound "$0"' \
    "$work/out" "$bin/badgectl" --socket "$socket" wallet prepare --json
start_tpm
check "badged finds the TPM again" badgectl wallet prepare
stop_badged

cp "$work/state/store.db" "$work/before"
stop_tpm
start auto
check "without the TPM the store stays closed" fails_with 'sealed by a TPM' list
check "no other store is made" fails_with 'sealed by a TPM' new
check "the store is as it was" is_the_same
start_tpm
check "the store opens when the TPM is there again" keys list
stop_badged
# The first transaction after a start wipes what an earlier process may have left.
cp "$work/state/store.db" "$work/before"
start no
check "with tpm = no the store stays closed" fails_with 'tpm = no' list
check "libtss2 is not loaded with tpm = no" lacks "/proc/$daemon/maps" libtss2
stop_badged

stop_tpm
rm -r "$work/tpm" && mkdir "$work/tpm"
start_tpm
start auto
check "another TPM does not open the store" fails_with 'the TPM that sealed the store was cleared' list
check "the store is as it was" is_the_same
stop_badged

rm -r "$work/state" && mkdir "$work/state"
# A user's PATH may have no ldconfig.
library=$(PATH=$PATH:/usr/sbin:/sbin ldconfig -p | sed -n 's/.*libtss2-esys\.so\.0 .*=> //p' | head -n 1)
if isolated true 2>/dev/null && [ -n "$library" ]; then
    namespace='unshare --mount --propagation private'
    [ "$(id -u)" = 0 ] || namespace='unshare --map-root-user --mount'
    # shellcheck disable=SC2016,SC2086  # the inner shell's variables; a list of words
    start yes $namespace sh -c 'mount --bind /dev/null "$(readlink -f "$0")" && exec "$@"' "$library"
    check "without libtss2 a key that must be in the TPM is an error" fails_with 'no TPM' new
    stop_badged
    # shellcheck disable=SC2016,SC2086
    start auto $namespace sh -c 'mount --bind /dev/null "$(readlink -f "$0")" && exec "$@"' "$library"
    check "without libtss2 a key is made in software" keys new --label door
    check "the key of the store is a file" test -e "$work/state/store.key" -a ! -e "$work/state/store.tpm"
    stop_badged
else
    not_run "badged without libtss2 (needs root or user namespaces, and libtss2-esys0)"
fi
finish
