#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The packages, which were built on Debian 12, in a fresh Debian 13 without systemd: apt installs them, their programs find
# every library, and `make demo` works with them: a PIN change, and an authentication through badged-network.
# Only `make test-all` runs it, since it needs a mirror of Debian 13 and some minutes.
# shares: packages
. "$(dirname "$0")/lib.sh"
[ "${BADGED_TEST_ALL:-}" = 1 ] || cannot "only make test-all runs it"
needs mmdebstrap dpkg-buildpackage unshare ip
needs_programs badged badgectl badged-eidserver
[ "$(id -u)" = 0 ] || cannot "needs root"
cd "$root"
BIN=$bin packaging/deb >"$work/debs" || { cat "$work/debs"; exit 1; }
system=$work/system
cat >"$work/install" <<'END'
#!/bin/sh
set -eu
mkdir "$1/debs" "$1/programs"
xargs cp -t "$1/debs"
chroot "$1" sh -c 'apt-get install -y --no-install-recommends /debs/*.deb'
END
chmod +x "$work/install"
grep -v dbgsym "$work/debs" >"$work/list"
mmdebstrap --variant=apt --include=procps --customize-hook="$work/install \"\$1\" <$work/list" trixie "$system" >"$work/built" 2>&1 || {
    grep -qE 'Temporary failure|Could not (resolve|connect)|Unable to connect' "$work/built" && cannot "needs a mirror of Debian"
    tail -n 40 "$work/built"
    echo "  FAILED: the packages are not installed"
    exit 1
}
for name in badged badged-activation badged-mqtt badged-osdp badged-virtual-card badged-desktop python3-badged; do
    check "$name is installed" test -e "$system/var/lib/dpkg/info/$name.list"
done
for program in "$system"/usr/bin/badge* "$system"/usr/libexec/badged-*; do
    # The window is a script.
    head -c 4 "$program" | grep -q ELF || continue
    program=${program#"$system"}
    chroot "$system" ldd "$program" >"$work/libraries" 2>&1 || true
    check "$program finds every library" sh -c "grep -q libc.so.6 '$work/libraries' && ! grep 'not found' '$work/libraries'"
done
check "badged-desktop finds its modules" chroot "$system" badged-desktop --version
check "python3-badged is imported" chroot "$system" python3 -c "import badged"

# The demo with the programs of the packages, and the eID-Server of the tests, which reads its keys where it was built.
mkdir -p "$system$root/Tests"
cp -R "$here" "$root/Tests/PKI" "$system$root/Tests"
cp "$bin/badged-eidserver" "$system/programs"
ln -s /usr/bin/badged /usr/bin/badgectl /usr/libexec/badged-network "$system/programs"
cat >"$work/run" <<'END'
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
ip link set lo up
# The programs read their arguments from /proc.
chroot "$1" badged --version
exec chroot "$1" env BADGED_BIN=/programs HOME=/tmp TMPDIR=/tmp PATH=/usr/sbin:/usr/bin:/sbin:/bin "$2/demo.sh"
END
isolated unshare --pid --fork --kill-child --net timeout 300 sh -eu "$work/run" "$system" "$here" >"$work/out" 2>&1 || echo "exit code $?" >>"$work/out"
check "badged says the version of the package" grep -qxF "$("$bin/badged" --version)" "$work/out"
check "the demo ends well" lacks "$work/out" '^exit code|FAILED'
check "the PIN is changed" holds "$work/out" '^The PIN has been changed'
check "the service has read the card" holds "$work/out" '"FamilyName"'
[ "$failures" = 0 ] || sed 's/^/    /' "$work/out"
finish
