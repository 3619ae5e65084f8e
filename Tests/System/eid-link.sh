#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# A click on an eid: link, from xdg-open through the installed desktop file to the page of the service in the browser, and
# `badgectl auth --self`. A program in the place of pinentry answers the windows.
. "$(dirname "$0")/lib.sh"
needs xdg-open update-desktop-database openssl
needs_programs badged badgectl badged-eidserver
# The handler gets a session of its own, with our desktop file and a browser.
export XDG_DATA_HOME="$work/data" XDG_CONFIG_HOME="$work/config" XDG_DATA_DIRS="$work/none" HOME="$work" DISPLAY=:0
unset XDG_CURRENT_DESKTOP DESKTOP_SESSION WAYLAND_DISPLAY BROWSER
mkdir -p "$XDG_DATA_HOME/applications" "$work/programs" "$work/config" "$work/state"
cp "$root/packaging/desktop/badged-eid.desktop" "$XDG_DATA_HOME/applications"
printf '[Desktop Entry]\nType=Application\nName=browser\nExec=browser %%u\nMimeType=x-scheme-handler/https;\n' \
    >"$XDG_DATA_HOME/applications/browser.desktop"
check "the desktop files are taken" update-desktop-database "$XDG_DATA_HOME/applications"
program() { { echo '#!/bin/sh'; cat; } >"$work/programs/$1" && chmod 755 "$work/programs/$1"; }
program browser <<END
echo "\$1" >"$work/opened.new" && mv "$work/opened.new" "$work/opened"
END
program badgectl <<END
"$bin/badgectl" "\$@" >"$work/said" 2>&1
END
program pinentry <<END
echo OK
while read -r command text; do
    echo "\$command \$text" >>"$work/windows"
    case \$command in GETPIN) echo D 123456 ;; BYE) echo OK; exit ;; esac
    echo OK
done
END

start_eidserver
printf '[pcsc]\nenabled=no\n[nfc]\nenabled=no\n[ble]\nenabled=no\n[virtual]\nenabled=yes\n[eid]\ntrust_anchors=%s\n' "$work/anchors" \
    >"$work/badged.conf"
start_badged env STATE_DIRECTORY="$work/state" "$bin/badged" --config "$work/badged.conf" --socket "$socket"
export BADGED_SOCKET="$socket"
link="eid://127.0.0.1:24727/eID-Client?tcTokenURL=$(python3 -c 'import sys, urllib.parse; print(urllib.parse.quote(sys.argv[1], ""))' "$url")"
click() { PATH="$work/programs:$PATH" xdg-open "$link" && eventually test -e "$work/opened"; }
check "xdg-open starts the handler of the eid: link" click
check "the browser opens the page of the service at the end" holds "$work/opened" '^https://.*ResultMajor=ok$'
check "a window asked for the consent" holds "$work/windows" '^CONFIRM'
check "no program was told the PIN" lacks "$work/said" 123456

# MARK: auth --self

# badgectl reads the address from the installed configuration.
cp -R /etc "$work/etc"
mkdir -p "$work/etc/badged"
printf '[eid]\nself_information=%s\n' "$url" >"$work/etc/badged/badged.conf"
openssl s_client -connect "$(echo "$url" | cut -d / -f 3)" </dev/null 2>/dev/null | openssl x509 >"$work/service.pem"
self() {
    printf '123456\n' | SSL_CERT_FILE="$work/service.pem" isolated sh -c 'mount --bind "$1" /etc && exec "$2" auth --self --pin-stdin --yes' \
        sh "$work/etc" "$bin/badgectl" >"$work/out" 2>&1
}
if isolated true 2>/dev/null; then
    check "auth --self needs no address" self
    check "it shows what the service has read" holds "$work/out" '"outcome":"ok"'
else
    not_run "auth --self (needs root, or user namespaces)"
fi
stop_badged
stop_eidserver
finish
