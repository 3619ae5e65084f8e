#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The documents say what the programs do: manual pages are well formed and know every option, the configuration's manual
# every key, the pages of the protocol every command, message, failure reason and fault.
. "$(dirname "$0")/lib.sh"
needs man python3
needs_programs badged badgectl badged-virtual-card
cd "$root"

version=$("$bin/badged" --version | cut -d' ' -f2)
for program in badgectl badged-virtual-card; do
    check "$program has the version of badged, $version" test "$("$bin/$program" --version)" = "$program $version"
done

pages='badged.8 badgectl.1 badged-virtual-card.1 badged.conf.5'
for page in $pages; do
    sed "s|@VERSION@|$version|g" "docs/man/$page" >"$work/$page"
    MANWIDTH=100 man --warnings=all --local-file "$work/$page" >"$work/$page.txt" 2>"$work/warnings" </dev/null || true
    check "$page: no warning of the formatter" test ! -s "$work/warnings"
    check "$page: it has the usual headings" sh -c \
        "grep -q '^NAME' '$work/$page.txt' && grep -q '^DESCRIPTION' '$work/$page.txt' && grep -q '^SEE ALSO' '$work/$page.txt'"
done

# knows PAGE WORDS: each word stands in the formatted page.
knows() {
    page=$1
    shift
    for word; do grep -qF -- "$word" "$work/$page.txt" || { echo "$page lacks $word"; return 1; }; done
}
options() { "$@" --help | grep -oE -- '--[a-z][a-z-]*' | sort -u; }
check "badged.8 has every option of badged --help" knows badged.8 $(options "$bin/badged")
check "badged-virtual-card.1 has every option" knows badged-virtual-card.1 $(options "$bin/badged-virtual-card")
commands=$("$bin/badgectl" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z-]*\) .*/\1/p')
check "badgectl.1 has every command" knows badgectl.1 $commands
for command in $commands; do
    check "badgectl.1 has every option of badgectl $command" knows badgectl.1 $(options "$bin/badgectl" "$command")
done
keys=$(sed -n 's/^#\([a-z_]*\) = .*/\1/p' systemd/badged.conf)
sections=$(sed -n 's/^\(\[.*\]\)$/\1/p' systemd/badged.conf)
check "badged.conf.5 has every section and key" knows badged.conf.5 $keys $sections
used=$(grep -oE 'case \("[a-z]+", "[a-z_]+"\)' Sources/Base/Host/Configuration.swift | grep -oE '"[a-z_]+"\)' | tr -d '")')
for key in $used; do check "the installed configuration shows the key $key" holds systemd/badged.conf "^#$key ="; done
for permission in $(sed -n 's/^ *("\([a-z]*\)", \.[a-z]*), ("\([a-z]*\)".*/\1 \2/p' Sources/Base/Host/Permissions.swift); do
    check "badged.conf.5 has the permission $permission" knows badged.conf.5 "$permission"
done

# speaks WORDS: each stands in a page of the protocol as `WORD`.
protocol='docs/protocol.md docs/protocol/*.md'
# shellcheck disable=SC2086  # a list of files
speaks() {
    [ $# -gt 0 ] || { echo "no word was found in the sources"; return 1; }
    for word; do grep -qF "\`$word" $protocol || { echo "docs/protocol lacks $word"; return 1; }; done
}
check "docs/protocol has every command" speaks $(sed -n 's/^ *case [a-zA-Z]* = "\([A-Z_]*\)"/\1/p' Sources/Protocol/Wire/Command.swift)
check "docs/protocol has every message" speaks $(grep -oE '"[A-Z]+(_[A-Z]+)*"' Sources/Protocol/Wire/Message.swift Sources/Protocol/Wire/DoorMessage.swift | sed 's/.*://' | tr -d '"' | sort -u | grep -vx UNKNOWN)
check "docs/protocol has every failure reason" speaks $(sed -n 's/^ *case [a-zA-Z]* = "\([A-Za-z_]*\)"/\1/p' Sources/Services/EService/FailureCode.swift)
check "docs/protocol has every member of a virtual card" speaks \
    $(sed -n '/MARK: card/,$s/^ *case "\([a-zA-Z]*\)": result.*/\1/p' Sources/Readers/ReadersVirtual/CardFile.swift)
check "docs/protocol has every fault" speaks $(sed -n 's/.*is not one of \([^"]*\)".*/\1/p' Sources/Readers/ReadersVirtual/CardFile.swift | tr -d ',')
# The example of README.md, with a card put into the virtual reader, which a person would do by hand.
awk '/^```python/ {inside = 1; next} /^```/ {inside = 0} inside' README.md |
    sed -e "s|/run/badged/badged.sock|$work/s.sock|" \
        -e 's|^send(cmd="RUN_CHANGE_PIN")$|&\nsend(cmd="SET_CARD", name="Simulator")|' >"$work/example.py"
cat >"$work/run-example.py" <<END
import subprocess, sys
sys.path.insert(0, "$here")
from harness import Daemon
daemon = Daemon("$bin/badged", ["--virtual", "--no-pcsc", "--socket", "$work/s.sock"], "$work")
sys.exit(subprocess.run([sys.executable, "$work/example.py"], input=b"111111\\n123456\\n654321\\n", timeout=20).returncode)
END
check "the example of README.md has at most 20 lines" test "$(wc -l <"$work/example.py")" -le 20
check "and changes a PIN" python3 "$work/run-example.py"

for page in README.md CONTRIBUTING.md docs/*.md docs/protocol/*.md Sources/*/README.md; do
    [ -e "$page" ] || continue
    for link in $(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -v '^http' | sort -u); do
        check "$page: the link to $link leads somewhere" test -e "$(dirname "$page")/$link"
    done
done
finish
