#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# Checks that the documents are complete. Manual pages are well formed and have every option.
# badged.conf(5) has every key. The pages of the protocol have every message, failure reason and
# fault; ProtocolPageTests checks their tables of commands. Links in them work.
. "$(dirname "$0")/lib.sh"
needs man python3
needs_programs badged badgectl badged-virtual-card badged-mqtt badged-osdp
cd "$root"

version=$("$bin/badged" --version | cut -d' ' -f2)
for program in badgectl badged-virtual-card badged-mqtt badged-osdp; do
    check "$program has the version of badged, $version" test "$("$bin/$program" --version)" = "$program $version"
done

# literals PATTERN PATH...: the string literals of the Swift sources that match the whole pattern, without quotes.
literals() {
    pattern=$1
    shift
    grep -rhoE --include='*.swift' "\"$pattern\"" "$@" | tr -d '"' | sort -u
}
# contains FILES WORD...: each word stands in one of the files. No word at all is a failure.
contains() {
    files=$1
    shift
    [ $# -gt 0 ] || { echo "no word was found in the sources"; return 1; }
    # shellcheck disable=SC2086  # a list of files
    for word; do grep -qF -- "$word" $files || { echo "missing: $word"; return 1; }; done
}

# MARK: Manual pages

for page in badged.8 badgectl.1 badged-virtual-card.1 badged-desktop.1 badged-mqtt.8 badged-osdp.8 badged.conf.5 osdp.conf.5; do
    sed "s|@VERSION@|$version|g" "docs/man/$page" >"$work/$page"
    MANWIDTH=100 man --warnings=all --local-file "$work/$page" >/dev/null 2>"$work/warnings" </dev/null || true
    # A hyphen in an option would make two of it.
    MANWIDTH=100 man --no-hyphenation --local-file "$work/$page" >"$work/$page.txt" 2>/dev/null </dev/null || true
    check "$page: the formatter prints no warning" test ! -s "$work/warnings"
    for heading in NAME DESCRIPTION 'SEE ALSO'; do
        check "$page has the heading $heading" holds "$work/$page.txt" "^$heading"
    done
done
manual() { # manual PAGE WORD...: the formatted page contains each word.
    page=$1
    shift
    contains "$work/$page.txt" "$@"
}
check "the options in the pages are those that --help has (make man)" env BIN="$bin" packaging/manual --check
options() { "$@" --help | grep -oE -- '--[a-z][a-z-]*' | sort -u; }
# only PAGE OPTION...: the formatted page has these options and no others; --now and --user are of systemctl.
only() {
    page=$1
    shift
    printf '%s\n' --now --user "$@" | sort -u >"$work/known"
    grep -oE -- '--[a-z][a-z-]*' "$work/$page.txt" | sort -u | comm -13 "$work/known" - | diff /dev/null -
}
check "badged.8 has no other option" only badged.8 $(options "$bin/badged")
check "badged-virtual-card.1 has no other option" only badged-virtual-card.1 $(options "$bin/badged-virtual-card")
check "badged-desktop.1 has no other option" only badged-desktop.1 --pinentry \
    $(sed -n '/^def usage/,/^"""$/p' clients/desktop/badged_desktop/application.py | grep -oE -- '--[a-z]+')
check "badged-mqtt.8 has no other option" only badged-mqtt.8 $(options "$bin/badged-mqtt")
check "badged-osdp.8 has no other option" only badged-osdp.8 $(options "$bin/badged-osdp")
commands=$("$bin/badgectl" --help | sed -n 's/^  \([a-z][a-z-]*\) .*/\1/p')
check "badgectl.1 has every command" manual badgectl.1 $commands
check "badgectl.1 has no other option" only badgectl.1 $(for command in $commands; do options "$bin/badgectl" "$command"; done)
check "badged.conf.5 has every section and key of the installed configuration" manual badged.conf.5 \
    $(sed -n 's/^#\([a-z_]*\) = .*/\1/p; s/^\(\[.*\]\)$/\1/p' systemd/badged.conf)
keys=$(sed -n '/switch key {/,/default:/s/^ *case \(".*"\):.*/\1/p' Sources/Base/Host/Configuration/*.swift | tr -d '",')
check "the installed configuration shows every key that badged reads" contains systemd/badged.conf $(printf '#%s\n' $keys)
permissions=$(grep -rhoE --include=Permissions.swift '\("[a-z]+", \.[a-z]+\)' Sources | sed 's/("\([a-z]*\)".*/\1/' | sort -u)
check "badged.conf.5 has every permission" manual badged.conf.5 $permissions

# MARK: The protocol

protocol() { # protocol WORD...: the pages of the protocol contain each `WORD`.
    contains 'docs/protocol.md docs/protocol/*.md' $(printf '`%s\n' "$@")
}
# Names of commands and messages are the only such words in these folders, but for the OK of HTTP.
names=$(literals '[A-Z]{2,}(_[A-Z]+)*' Sources/Protocol Sources/Features | grep -vx OK)
for name in INFO ENTER_PIN DOOR_READER; do
    check "the search for names in the sources finds $name" sh -c "echo '$names' | grep -qx $name"
done
check "docs/protocol has every message" protocol $names
check "docs/protocol has every failure reason" protocol \
    $(literals '[A-Z][A-Za-z]*[a-z](_[A-Z0-9][A-Za-z0-9]*)+' Sources/Services Sources/Features)
check "docs/protocol has every member of a virtual card" protocol \
    $(sed -n 's/^ *case "\([a-zA-Z]*\)":.*/\1/p' Sources/Virtual/VirtualEID/VirtualEIDKind.swift)
check "docs/protocol has every fault of a virtual card" protocol \
    $(sed -n 's/^ *"\(remove, [^"]*\)"$/\1/p' Sources/Virtual/ReadersVirtual/VirtualCardOptions.swift | tr -d ',')

# MARK: Links

for page in $(find . -name '*.md' -not -path './.build*'); do
    check "the links of $page lead to files" has_files "$page"
done
finish
