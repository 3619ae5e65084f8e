#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The Debian packages, built without a network: what they contain, what they need, and what lintian
# says of them. The scenario `apt` of Tests/Guest installs them.
# shares: packages
. "$(dirname "$0")/lib.sh"
needs dpkg-buildpackage dh pybuild lintian readelf
needs_programs badged badgectl badged-virtual-card badged-activation badged-bluetooth badged-nfc badged-network badged-remote badged-mqtt badged-osdp
cd "$root"
isolated true 2>/dev/null || cannot "needs root, or user namespaces"

# Built anew, because a build of before had perhaps a network.
rm -f .build-deb/packages
changes() { git status --porcelain 2>/dev/null || true; }
changes >"$work/before"
check "the packages are built without a network" isolated unshare --net env BIN="$bin" packaging/deb
check "the source tree stays as it was" sh -c 'git status --porcelain 2>/dev/null | diff "$1" -' sh "$work/before"
debs=$root/.build-deb
version=$("$bin/badged" --version | cut -d' ' -f2)
architecture=$(dpkg --print-architecture)
for name in badged badged-activation badged-mqtt badged-osdp badged-virtual-card; do
    for package in $name $name-dbgsym; do
        check "there is the package $package" test -s "$debs/${package}_${version}_$architecture.deb"
    done
done
deb() { echo "$debs/$1_${version}_$architecture.deb"; }

lintian --allow-root --fail-on none "$debs/badged_${version}_$architecture.changes" >"$work/lintian" 2>&1 || echo "exit code $?" >>"$work/lintian"
# A field of dpkg 1.21, which lintian of Debian 12 does not know.
sed -i '/^W: badged.*: unknown-field Static-Built-Using$/d' "$work/lintian"
check "lintian has no error and no warning" lacks "$work/lintian" '^[EW]:|^exit code'

for name in badged badged-activation badged-mqtt badged-osdp badged-virtual-card; do
    dpkg-deb -f "$(deb $name)" Depends Recommends Suggests >"$work/needs"
    check "$name does not depend on a runtime of Swift" lacks "$work/needs" '[Ss]wift'
    [ $name = badged-activation ] ||
        check "$name works without libmicrohttpd" lacks "$work/needs" 'libmicrohttpd'
done
# Debian 12 and 13 have different shared libraries of libsecp256k1.
for name in badged badged-activation badged-mqtt badged-osdp badged-virtual-card; do
    dpkg-deb -f "$(deb $name)" Depends >"$work/needs"
    check "$name does not depend on libsecp256k1" lacks "$work/needs" 'libsecp256k1'
    dpkg-deb -x "$(deb $name-dbgsym)" "$work/$name-dbgsym"
    has_code=no
    find "$work/$name-dbgsym" -name '*.debug' -exec nm {} + | grep -q ' [tT] secp256k1_context_create' && has_code=yes
    named=no
    dpkg-deb -f "$(deb $name)" Static-Built-Using | grep -q '^libsecp256k1 (= ' && named=yes
    check "$name names libsecp256k1 if it has its code ($has_code)" test $named = $has_code
done
dpkg-deb -f "$(deb badged)" >"$work/control"
check "badged only suggests the other packages" sh -c "grep '^Suggests: badged-activation, badged-desktop, badged-mqtt, badged-osdp, badged-virtual-card, ' '$work/control' &&
    ! grep -E '^(Depends|Recommends):.*badged-' '$work/control'"
# With `(= version)` apt would remove the others when badged alone is upgraded. They say themselves that they do not fit.
for name in badged-activation badged-mqtt badged-osdp; do
    check "$name stays installed when badged is upgraded" sh -c "dpkg-deb -f '$(deb $name)' Depends | grep -F 'badged (>= 0.2~)'"
done
dpkg-deb --ctrl-tarfile "$(deb badged)" | tar xO ./conffiles >"$work/conffiles"
check "the configuration is the only conffile" test "$(cat "$work/conffiles")" = /etc/badged/badged.conf

# The Python package is of no architecture, and not a part of `make install`.
python=$debs/python3-badged_${version}_all.deb
check "python3-badged needs Python 3.11 and no other package" test "$(dpkg-deb -f "$python" Depends | sed 's/, python3:any//')" = 'python3 (>= 3.11)'
dpkg-deb -x "$python" "$work/python"
check "the package badged is imported from it" env PYTHONPATH="$work/python/usr/lib/python3/dist-packages" /usr/bin/python3 -c \
    "import badged, importlib.metadata as m; assert badged.__version__ == m.version('badged') == '$(packaging/version --python "$version")'"

# The same files as `make install`. Debian puts units and rules below /lib and completions where its
# zsh looks, packs manual pages, has the texts of licences in one place, and adds what belongs to a
# package.
mkdir "$work/packages" "$work/installed"
for name in badged badged-activation badged-mqtt badged-osdp badged-virtual-card; do dpkg-deb -x "$(deb $name)" "$work/packages"; done
dpkg-deb -x "$debs/badged-desktop_${version}_all.deb" "$work/packages"
check "badged-desktop needs a pinentry with windows" sh -c "dpkg-deb -f '$debs/badged-desktop_${version}_all.deb' Depends | grep -F 'pinentry-gnome3 | '"
make -s install DESTDIR="$work/installed" PREFIX=/usr ZSHDIR=/usr/share/zsh/vendor-completions BIN="$bin"
for program in "$work"/packages/usr/bin/* "$work"/packages/usr/libexec/*; do
    readelf -d "$program" >"$work/dynamic" 2>/dev/null || continue
    check "$(basename "$program") binds all symbols at its start" holds "$work/dynamic" 'BIND_NOW'
    check "$(basename "$program") has no name of the folder where it was built" sh -c '! grep -aqF "$1/" "$2"' sh "$root" "$program"
    check "$(basename "$program") looks for libraries in the folders of the system only" lacks "$work/dynamic" 'R(UN)?PATH'
done
cp -R "$work/packages/lib" "$work/packages/usr"
rm -r "$work/packages/lib" "$work/packages/usr/share/lintian" "$work/packages/usr/share/doc/badged-activation" \
    "$work/packages/usr/share/doc/badged-desktop" "$work/packages/usr/share/python3" "$work/packages/usr/share/doc/badged-mqtt" "$work/packages/usr/share/doc/badged-osdp" "$work/packages/usr/share/doc/badged-virtual-card"
rm "$work/packages/usr/share/doc/badged/copyright" "$work/packages/usr/share/doc/badged/changelog.gz"
rm -r "$work/installed/usr/share/doc/badged/LICENSE" "$work/installed/usr/share/doc/badged/LICENSES"
find "$work/packages/usr/share/man" -name '*.gz' -exec gunzip {} +
for folder in packages installed; do
    (cd "$work/$folder" && find . -type f | sort) >"$work/$folder.list"
    (cd "$work/$folder" && find . -type f -printf '%m %p\n' | sort) >"$work/$folder.modes"
    # debhelper and install remove the debug symbols in different ways.
    rm -r "$work/$folder/usr/bin" "$work/$folder/usr/libexec"
done
check "the packages have the files of make install" diff "$work/installed.list" "$work/packages.list"
check "the files have the same modes" diff "$work/installed.modes" "$work/packages.modes"
check "the files have the same content" diff -r "$work/installed" "$work/packages"
finish
