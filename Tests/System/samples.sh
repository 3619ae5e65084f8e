#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The samples of README.md, docs/ and the tutorial: Swift is compiled against the library, that of clients.md also runs, and
# commands of a shell are checked. The commands of README.md that install badged are run by the scenario `apt` of the guest.
# shares: examples
. "$(dirname "$0")/lib.sh"
needs swift python3 unshare ip pcscd
needs_programs badged badgectl badged-virtual-card badged-eidserver
[ -e /etc/reader.conf.d/vpcd ] || cannot "needs vsmartcard-vpcd (make setup)"
isolated unshare --pid --fork --net true 2>/dev/null || cannot "needs root, or user namespaces"
cd "$root"
pages="README.md $(find docs clients Sources/Client -name '*.md' | sort | tr '\n' ' ')"
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
    "$here/samples.py" compare CONTRIBUTING.md Tests/WorkflowTests/LibraryCard/SampleCommandTests.swift

# The samples of clients.md run, too. The libraries of the examples are linked as they are.
objects=$(for module in BadgedClient Text; do find ".build-examples/debug/$module.build" -name '*.o'; done)
# shellcheck disable=SC2086  # a list of files
"$here/in-namespace.sh" python3 "$here/client_samples.py" "$bin" "$work" docs/clients.md \
    swiftc -swift-version 6 -warnings-as-errors -I .build-examples/debug/Modules $objects || failures=1

# MARK: Python

# python.sh runs the example of README.md, and reads the types of these.
check "Python is in README.md, and in the pages of the Python package" test \
    "$(ls "$work/samples/python" | sed 's/-[0-9]*$//' | sort -u | tr '\n' ' ')" = 'README clients-python-README docs-clients '

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
# A folder where samples may write.
mkdir "$work/checkout"
ln -s "$root"/* "$work/checkout"
valid() { (cd "$work/checkout" && env PATH="$work/stubs:/usr/bin:/bin" USER=nobody sh -ex "$1"); }
for sample in "$work"/samples/sh/*; do
    # Programs of the build are those of the stubs, too.
    sed -i 's#\.build/[a-z]*/##' "$sample"
    check "the commands of $(basename "$sample") are valid" valid "$sample"
done
check "a misspelt option would be found" sh -c '! env PATH="$1:/usr/bin:/bin" badgectl readers --wach' sh "$work/stubs"
finish
