#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# `make install` and `make uninstall` in a temporary folder.
. "$(dirname "$0")/lib.sh"
needs_programs badged badgectl badged-virtual-card badged-activation badged-bluetooth badged-nfc badged-network badged-remote badged-mqtt badged-osdp
cd "$root"

list() { (cd "$1" && find . -type f | sed 's/^\.//' | sort); }
for prefix in /usr/local /usr; do
    to=$work$prefix.d
    mkdir -p "$to"
    check "make install PREFIX=$prefix" make -s install DESTDIR="$to" PREFIX=$prefix
    cat >"$work/expected" <<END
/etc/badged/badged.conf
/etc/badged/mqtt.conf
/etc/badged/osdp.conf
/usr/lib/badged/badged.conf.d/50-mqtt.conf
/usr/lib/badged/badged.conf.d/50-osdp.conf
$prefix/bin/badgectl
$prefix/bin/badged
$prefix/bin/badged-desktop
$prefix/bin/badged-mqtt
$prefix/bin/badged-osdp
$prefix/bin/badged-virtual-card
$prefix/libexec/badged-activation
$prefix/libexec/badged-bluetooth
$prefix/libexec/badged-network
$prefix/libexec/badged-nfc
$prefix/libexec/badged-remote
$prefix/lib/systemd/system/badged-metrics.service
$prefix/lib/systemd/system/badged-metrics.socket
$prefix/lib/systemd/system/badged-metrics.timer
$prefix/lib/systemd/system/badged-metrics@.service
$prefix/lib/systemd/system/badged-mqtt.service
$prefix/lib/systemd/system/badged-network.socket
$prefix/lib/systemd/system/badged-network@.service
$prefix/lib/systemd/system/badged-osdp.service
$prefix/lib/systemd/system/badged-remote.socket
$prefix/lib/systemd/system/badged-remote@.service
$prefix/lib/systemd/system/badged.service
$prefix/lib/systemd/system/badged.socket
$prefix/lib/sysusers.d/badged-mqtt.conf
$prefix/lib/sysusers.d/badged-osdp.conf
$prefix/lib/sysusers.d/badged.conf
$prefix/lib/udev/rules.d/94-badged-osdp.rules
$prefix/lib/udev/rules.d/94-badged.rules
$prefix/lib/systemd/user/badged-agent.service
$prefix/lib/systemd/user/badged-desktop.service
$prefix/share/applications/badged-desktop.Window.desktop
$prefix/share/applications/badged-eid.desktop
$prefix/share/badged-desktop/badged_desktop/__init__.py
$prefix/share/badged-desktop/badged_desktop/application.py
$prefix/share/badged-desktop/badged_desktop/foreign.py
$prefix/share/badged-desktop/badged_desktop/language.py
$prefix/share/badged-desktop/badged_desktop/session.py
$prefix/share/badged-desktop/badged_desktop/texts.py
$prefix/share/badged-desktop/badged_desktop/window.py
$prefix/share/bash-completion/completions/badgectl
$prefix/share/fish/vendor_completions.d/badgectl.fish
$prefix/share/icons/hicolor/scalable/apps/badged.svg
$prefix/share/locale/de/LC_MESSAGES/badged.mo
$prefix/share/man/man1/badgectl.1
$prefix/share/man/man1/badged-desktop.1
$prefix/share/man/man1/badged-virtual-card.1
$prefix/share/man/man5/badged.conf.5
$prefix/share/man/man5/osdp.conf.5
$prefix/share/man/man8/badged-mqtt.8
$prefix/share/man/man8/badged-osdp.8
$prefix/share/man/man8/badged.8
$prefix/share/zsh/site-functions/_badgectl
/usr/share/polkit-1/rules.d/50-badged.rules
END
    sort -o "$work/expected" "$work/expected"
    list "$to" | grep -v '/share/doc/badged/' >"$work/found"
    check "$prefix: these files and no others" diff "$work/expected" "$work/found"
    for file in README.md CHANGELOG.md SECURITY.md LICENSE LICENSES/Apache-2.0.txt protocol.md protocol/eid.md readers.md \
        examples/README.md examples/change_pin.py examples/door-readers.btsnoop; do
        check "$prefix: $file is among the documents" test -s "$to$prefix/share/doc/badged/$file"
    done
    for file in CONTRIBUTING.md architecture.md testing.md benchmarks.md; do
        check "$prefix: $file, for developers of badged, is not" test ! -e "$to$prefix/share/doc/badged/$file"
    done
    for page in $(cd "$to$prefix/share/doc/badged" && find . -name '*.md'); do
        check "$prefix: the links of the installed $page lead to files" has_files "$to$prefix/share/doc/badged/$page"
    done
    for example in $(cd docs/examples && find . -type f ! -path '*/.*'); do
        check "$prefix: the example $example is installed" cmp "docs/examples/$example" "$to$prefix/share/doc/badged/examples/$example"
    done
    check "$prefix: the capture is replayed" sh -c \
        "'$to$prefix/bin/badgectl' scan --replay '$to$prefix/share/doc/badged/examples/door-readers.btsnoop' | grep 'Main entrance.*motion'"
    unit=$to$prefix/lib/systemd/system/badged.service
    check "$prefix: the unit starts the installed program" holds "$unit" "^ExecStart=$prefix/bin/badged\$"
    check "$prefix: the unit starts the installed helper" holds "$unit" "^ExecStartPre=-\\+$prefix/libexec/badged-bluetooth\$"
    # shellcheck disable=SC2046
    check "$prefix: no placeholder is left" sh -c \
        "! grep -rnE '@[A-Z]+@' '$to/etc' '$to$prefix/lib' '$to$prefix/share/man'"
    check "$prefix: every user may read every file" sh -c "! find '$to' -type f ! -perm -444 | grep ."
    check "$prefix: only the programs are executable" sh -c \
        "! find '$to' -type f -perm /111 | grep -vE '^$to$prefix/((bin|libexec)/|share/doc/badged/examples/)'"
    version=$("$to$prefix/bin/badged" --version)
    check "$prefix: the installed program runs ($version)" test -n "$version"
    check "$prefix: the manual has the same version" grep -qF "$version" "$to$prefix/share/man/man8/badged.8"
    if command -v bash >/dev/null; then
        check "$prefix: the completion of bash is valid" bash -n "$to$prefix/share/bash-completion/completions/badgectl"
    fi
    echo '# mine' >>"$to/etc/badged/badged.conf"
    check "$prefix: a second make install works" make -s install DESTDIR="$to" PREFIX=$prefix
    check "$prefix: it keeps the configuration of the administrator" holds "$to/etc/badged/badged.conf" '^# mine$'
    check "$prefix: make uninstall" make -s uninstall DESTDIR="$to" PREFIX=$prefix
    list "$to" >"$work/found"
    check "$prefix: only the configuration is left" test "$(tr '\n' ' ' <"$work/found")" = "/etc/badged/badged.conf /etc/badged/mqtt.conf /etc/badged/osdp.conf "
done

check "without programs make install prints a hint" sh -c \
    "! make -s install DESTDIR='$work/none' BIN='$work' 2>'$work/err' && grep -q 'hint: make build' '$work/err'"
check "without programs make install changes nothing" test ! -e "$work/none"
finish
