#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# demo.sh [--build]: badged with a virtual card on a socket of its own. First badgectl changes the PIN.
# Then a program does the same message by message, with a wrong PIN and the CAN. Last a service asks
# for an online authentication. With --build (`make demo`) each step builds the programs that it is the first to need.
. "$(dirname "$0")/lib.sh"
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
# Bold text needs a terminal.
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

# programs TIME NAME...: builds them without optimisation, which is fast, or looks whether they are there.
programs() {
    time=$1
    shift
    [ "$build" ] || { needs_programs "$@"; return; }
    say "Building $*: $time on two processors, a moment when they are built already"
    for program; do (cd "$root" && ${SWIFT:-swift} build --product "$program") || exit 1; done
}
build=
[ "${1:-}" != --build ] || { build=yes bin=$root/.build/debug; }

programs 'about a minute' badged badgectl

say "1. badged starts: a virtual reader, no real ones, a socket of its own"
options="--virtual --no-pcsc --socket $socket"
echo "\$ badged $options"
# shellcheck disable=SC2086  # a list of words
start_badged "$bin/badged" $options --log-level info
cat "$work/status"

say "2. badgectl changes the PIN of the card from 123456 to 654321"
echo "\$ badgectl change-pin --pin-stdin"
printf '%s\n' 123456 654321 | badgectl change-pin --pin-stdin

say "3. The same by messages of the protocol: the old PIN 123456 is wrong twice, then badged asks for the CAN"
mkfifo "$work/in" "$work/out"
badgectl send <"$work/in" >"$work/out" &
sender=$!
exec 3>"$work/in" 4<"$work/out"
tell() {
    echo "-> $1"
    echo "$1" >&3
}
tell '{"cmd":"RUN_CHANGE_PIN"}'
tell '{"cmd":"SET_CARD","name":"Simulator"}'
result=1
while read -r message; do
    echo "<- $message"
    name=$(echo "$message" | sed -n 's/.*"msg":"\([A-Z_]*\)".*/\1/p')
    case $name:$message in
        ENTER_PIN:*'"retryCounter":1'*) tell '{"cmd":"SET_PIN","value":"654321"}' ;;
        ENTER_PIN:*) tell '{"cmd":"SET_PIN","value":"123456"}' ;;
        ENTER_CAN:*) tell '{"cmd":"SET_CAN","value":"500540"}' ;;
        ENTER_NEW_PIN:*) tell '{"cmd":"SET_NEW_PIN","value":"123456"}' ;;
        CHANGE_PIN:*'"success":true'*) result=0 && break ;;
        CHANGE_PIN:*'"success":false'*) break ;;
    esac
done <&4
exec 3>&-
wait $sender
exec 4<&-

programs 'about half a minute' badged-network badged-eidserver
say "4. badged stops, and starts again with the certificates of a country authority"
stop_badged
start_eidserver --reports
printf '[eid]\ntrust_anchors = %s\n' "$work/anchors" >"$work/badged.conf"
echo "\$ badged $options --config $work/badged.conf"
# shellcheck disable=SC2086  # a list of words
start_badged "$bin/badged" $options --config "$work/badged.conf" --log-level info

say "5. A service asks for an authentication: badgectl shows what it wants to know, agrees, and sends the PIN"
echo "\$ badgectl auth '$url' --yes --pin-stdin"
echo 123456 | badgectl auth "$url" --yes --pin-stdin || result=1
stop_eidserver
echo
echo "What the service has read:"
data=$(sed -n '/"outcome":"ok"/s/.*"data":{\([^}]*\)}.*/\1/p' "$work/server.out")
echo "$data" | sed 's/,\("[A-Za-z]*":\)/\n\1/g' | sed 's/^/  /'
case $data in *FamilyName*) ;; *) result=1 ;; esac

say "6. badged stops"
stop_badged
cat "$work/log"
[ $result = 0 ] && [ ! -e "$socket" ] && [ "$failures" = 0 ] || { echo "demo: FAILED"; exit 1; }
printf '\n%s\n' "That was badged. With a reader and your own card: make run; see README.md"
