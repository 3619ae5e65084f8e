#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# What `make demo` shows: badged with a virtual card on a socket of its own; a PIN changed by badgectl; the whole way
# from a wrong PIN over the CAN to success, message by message, as any program would do it; and an online authentication.
. "$(dirname "$0")/lib.sh"
needs_programs badged badgectl badged-eidserver
socket=$work/badged.sock
say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
# Without a terminal there is nothing to make bold.
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }

# A service with its eID-Server on this machine, and the authority behind its certificates.
mkdir -p "$work/anchors/test"
"$bin/badged-eidserver" --out "$work/anchors/test" --reports >"$work/service" 2>"$work/service.log" &
service=$!
printf '[eid]\ntrust_anchors = %s\n' "$work/anchors" >"$work/badged.conf"

say "1. badged starts: a virtual reader, no real ones, a socket of its own"
echo "\$ badged --virtual --no-pcsc --socket $socket --config $work/badged.conf"
trap 'kill $service 2>/dev/null || true; rm -rf "$work"' EXIT
# It reads the authorities when it starts.
until grep -q https "$work/service"; do kill -0 $service 2>/dev/null || { cat "$work/service.log"; exit 1; }; done
"$bin/badged" --virtual --no-pcsc --socket "$socket" --config "$work/badged.conf" --log-level info 2>"$work/log" &
daemon=$!
trap 'kill $daemon $service 2>/dev/null || true; wait $daemon $service 2>/dev/null || true; rm -rf "$work"' EXIT
until "$bin/badgectl" --socket "$socket" status >"$work/status" 2>&1 && grep -q Simulator "$work/status"; do
    kill -0 $daemon 2>/dev/null || { cat "$work/log"; exit 1; }
done
cat "$work/status"

say "2. badgectl changes the PIN of the card from 123456 to 654321"
echo "\$ badgectl change-pin --pin-stdin"
printf '%s\n' 123456 654321 | "$bin/badgectl" --socket "$socket" change-pin --pin-stdin

say "3. The same in the words of the protocol, by somebody who has forgotten that: 123456, wrong twice, then the CAN"
mkfifo "$work/in" "$work/out"
"$bin/badgectl" --socket "$socket" send <"$work/in" >"$work/out" &
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
    case $message in
        *'"msg":"ENTER_PIN"'*'"retryCounter":1'* | *'"retryCounter":1'*'"msg":"ENTER_PIN"'*) tell '{"cmd":"SET_PIN","value":"654321"}' ;;
        *'"msg":"ENTER_PIN"'*) tell '{"cmd":"SET_PIN","value":"123456"}' ;;
        *'"msg":"ENTER_CAN"'*) tell '{"cmd":"SET_CAN","value":"500540"}' ;;
        *'"msg":"ENTER_NEW_PIN"'*) tell '{"cmd":"SET_NEW_PIN","value":"123456"}' ;;
        *'"msg":"CHANGE_PIN"'*'"success":true'*)
            result=0
            break
            ;;
        *'"msg":"CHANGE_PIN"'*'"success":false'*) break ;;
    esac
done <&4
exec 3>&-
wait $sender
exec 4<&-

say "4. A service asks who somebody is: badgectl shows what it wants, agrees, and gives the PIN"
echo "\$ badgectl auth '$(cat "$work/service")' --yes --pin-stdin"
echo 123456 | "$bin/badgectl" --socket "$socket" auth "$(cat "$work/service")" --yes --pin-stdin || result=1
kill $service
wait $service || result=1
echo
echo "What the service has read:"
data=$(sed -n 's/.*"outcome":"ok".*"data":{\(.*\)},"client".*/\1/p' "$work/service")
echo "$data" | sed 's/,\("[A-Za-z]*":\)/\n\1/g' | sed 's/^/  /'
case $data in *FamilyName*) ;; *) result=1 ;; esac

say "5. badged stops"
kill $daemon
code=0
wait $daemon || code=$?
cat "$work/log"
[ $code = 0 ] && [ $result = 0 ] && [ ! -e "$socket" ] || { echo "demo: FAILED (daemon $code, dialogue $result)"; exit 1; }
printf '\n%s\n' "That was badged. With a reader and your own card: make run; see README.md"
