#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The samples of README.md, docs/ and the tutorial: Swift is compiled against the library, Python is
# run, commands of a shell are checked. The commands of README.md that install badged are run by the
# scenario `apt` of the guest.
# shares: examples
. "$(dirname "$0")/lib.sh"
needs swift python3
needs_programs badged badgectl badged-virtual-card badged-eidserver
cd "$root"
pages="README.md $(find docs Sources/Client -name '*.md' | sort | tr '\n' ' ')"
# shellcheck disable=SC2086  # a list of files
check "every code block in the documents has a language" "$here/samples.py" extract "$work/samples" $pages

# MARK: Swift

# The flags are those of examples.sh, so that one build serves both.
swift build --package-path docs/examples --scratch-path .build-examples -Xswiftc -emit-symbol-graph \
    -Xswiftc -emit-symbol-graph-dir -Xswiftc "$root/.build-examples/symbols" >"$work/build" 2>&1 || { cat "$work/build"; exit 1; }
compiles() { swiftc -typecheck -swift-version 6 -warnings-as-errors -I .build-examples/debug/Modules "$1"; }
manifest() { swift package --package-path "$(dirname "$1")" --cache-path "$work/cache" dump-package; }
for sample in "$work"/samples/swift/*/*.swift; do
    name=${sample#"$work/samples/swift/"}
    case $name in
        */Package.swift) check "the manifest ${name%/*} is valid" manifest "$sample" ;;
        *) check "the Swift of ${name%/*} compiles" compiles "$sample" ;;
    esac
done
check "there are Swift samples in clients.md, in origo-keys.md, in the tutorial, and for apps of each SDK" sh -c \
    'for page in docs-clients docs-origo-keys ChangeAPIN OSTWallet MYKEYWallet MPin; do ls "$1" | grep "$page" || exit; done' sh "$work/samples/swift"

# The sample of CONTRIBUTING.md is a part of badged, so a Swift test compiles and runs it.
check "the sample of CONTRIBUTING.md is the command of SampleCommandTests" \
    "$here/samples.py" compare CONTRIBUTING.md Tests/LibraryCardTests/SampleCommandTests.swift

# MARK: Python

# In the example of README.md the script puts a card into the virtual reader, as a person would do by hand.
check "README.md has the only sample in Python" test "$(ls "$work/samples/python" | sed 's/-[0-9]*$//')" = README
sed -e "s|/run/badged/badged.sock|$socket|" -e 's|^send(cmd="RUN_CHANGE_PIN")$|&\nsend(cmd="SET_CARD", name="Simulator")|' \
    "$work"/samples/python/README-* >"$work/example.py"
check "the example of README.md has at most 20 lines" test "$(wc -l <"$work/example.py")" -le 20
start_badged "$bin/badged" --virtual --no-pcsc --socket "$socket"
"$here/samples.py" type "$work/example.py" 111111 123456 654321 >"$work/shown" 2>&1 && code=0 || code=$?
stop_badged
check "the example of README.md changes a PIN" test $code = 0
check "it asks for each value" test "$(grep -oE 'ENTER_(PIN|NEW_PIN): ' "$work/shown" | wc -l)" = 3
check "the terminal shows no PIN" lacks "$work/shown" '111111|123456|654321'

# MARK: Shell

# Programs that answer only whether a command line is valid.
mkdir "$work/stubs"
stub() { { echo '#!/bin/sh'; cat; } >"$work/stubs/$1" && chmod 755 "$work/stubs/$1"; }
stub sudo <<'END'
exec "$@"
END
stub make <<'END'
exec /usr/bin/make -n "$@"
END
# badgectl reads the command line first. There is no badged, so a valid one ends with another code
# than 2. An import needs no badged, so it gets a folder of the test.
stub badgectl <<END
case "\$1 \$2" in "anchors import") set -- "\$@" --folder "$work/anchors" ;; esac
"$bin/badgectl" --socket /nowhere/badged.sock "\$@" </dev/null
[ \$? != 2 ]
END
for program in badged badged-virtual-card badged-eidserver; do
    stub $program <<END
exec "$bin/$program" "\$@" --help
END
done
# The suites that are named exist.
stub swift <<END
while [ \$# != 0 ]; do case \$1 in --filter) grep -rqE "\$2" "$root/Tests" || exit 1 ;; esac; shift; done
END
for program in apt apt-get adduser systemctl systemd-sysusers udevadm; do echo 'exit 0' | stub $program; done
for sample in "$work"/samples/sh/*; do
    # Programs of the build are those of the stubs, too.
    sed -i 's#\.build/[a-z]*/##' "$sample"
    check "the commands of $(basename "$sample") are valid" env PATH="$work/stubs:/usr/bin:/bin" USER=nobody sh -ex "$sample"
done
check "a misspelt option would be found" sh -c '! env PATH="$1:/usr/bin:/bin" badgectl readers --wach' sh "$work/stubs"
finish
