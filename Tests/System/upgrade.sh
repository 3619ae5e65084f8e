#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The packages of this commit and those of the next one, each in a signed repository as `make release` makes it. apt
# replaces the ones by the others on a view of this machine: all packages stay together, and configuration, state and a
# client that is connected survive. A store that a later version has written is refused with words. The scenario `apt` of
# Tests/Guest does the same to the running service.
# shares: packages
. "$(dirname "$0")/lib.sh"
needs dpkg dpkg-buildpackage git make unshare python3 setpriv gpg apt-get
needs_programs badged badgectl
[ "$(id -u)" = 0 ] || cannot "needs root"
[ -d "$root/.git" ] || cannot "needs the history of git"
PATH=$PATH:/usr/sbin:/sbin
cd "$root"
packages='badged badged-activation badged-mqtt badged-osdp badged-virtual-card python3-badged'

# commit_packages FOLDER: links the programs, and builds their packages into the folder.
commit_packages() {
    mkdir "$work/$1"
    rm -f .build-deb/packages
    # Without the packages of debug symbols, which take most of the time.
    { make programs && DEB_BUILD_OPTIONS=noautodbgsym BIN=.build/release packaging/deb; } >"$work/$1.log" 2>&1 || { tail -n 20 "$work/$1.log"; return 1; }
    for package in $packages; do cp .build-deb/"${package}"_[0-9]*.deb "$work/$1"; done
    packaging/repository "$work/$1"
}
version_in() { dpkg-deb -f "$work/$1"/badged_*.deb Version; }

# The next commit is in a copy of the history, which takes the place of the true one while its packages are built. Both
# commits are linked in a view of the checkout, whose changes are kept in memory, so the programs stay as they are.
git clone -q --no-checkout . "$work/history"
git -C "$work/history" read-tree HEAD
git -C "$work/history" -c user.name=test -c user.email=test@example.org commit -q --allow-empty -m 'the next commit'
export root work packages GNUPGHOME="$work/gpg" BADGED_APT_KEY=site@example.org
mkdir -m 700 "$GNUPGHOME"
gpg --batch --quiet --passphrase '' --quick-generate-key "$BADGED_APT_KEY" 2>"$work/gpg.log" || { cat "$work/gpg.log"; exit 1; }
cat >"$work/build" <<END
$(sed -n '/^commit_packages()/,/^}/p' "$root/Tests/System/upgrade.sh")
mkdir "$work/changes"
mount -t tmpfs tmpfs "$work/changes"
mkdir "$work/changes/upper" "$work/changes/work"
mount -t overlay overlay -o "lowerdir=$root,upperdir=$work/changes/upper,workdir=$work/changes/work" "$root"
cd "$root"
commit_packages this
mount --bind "$work/history/.git" .git
commit_packages next
END
check "the packages of this commit and of the next one are built" isolated sh -eu "$work/build"
[ "$failures" = 0 ] || exit 1
this=$(version_in this) next=$(version_in next)
echo "  $this, then $next"
check "this version is that of packaging/version" test "$this" = "$(packaging/version)"
check "the next version is higher" dpkg --compare-versions "$next" gt "$this"
release=${this%%[~+]*}
case $this in
    *~*) check "and lower than the release" dpkg --compare-versions "$next" lt "$release" ;;
    *+*) check "and higher than the release" dpkg --compare-versions "$this" gt "$release" ;;
esac
check "the next commit compiles nothing" lacks "$work/next.log" '^\[.*\] Compiling'

# A view of this machine, whose changes are kept in memory.
cat >"$work/view" <<'END'
set -eu
mkdir "$work/layer"
mount -t tmpfs tmpfs "$work/layer"
mkdir "$work/layer/upper" "$work/layer/work" "$work/layer/all"
mount -t overlay overlay -o "lowerdir=/,upperdir=$work/layer/upper,workdir=$work/layer/work" "$work/layer/all"
all=$work/layer/all
rm -rf "$all/run" "$all/etc/badged" "$all/var/lib/badged"
mkdir -p "$all/run" "$all/result"
mount -t proc proc "$all/proc"
mount --rbind /dev "$all/dev"
mount --bind "$work" "$all/result"
exec chroot "$all" /bin/sh -u /result/inside
END
{
    echo "this=$this next=$next packages='$packages'"
    cat <<'END'
exec >/result/out 2>&1
export LC_ALL=C.UTF-8 PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive SWIFT_BACKTRACE=enable=no
state=/var/lib/badged
fact() { echo "FACT $1"; }
# from FOLDER: what apt installs comes from this repository alone.
from() {
    echo "deb [signed-by=/result/$1/badged.gpg] file:/result/$1 ./" >/result/sources
    apt update
}
apt() {
    apt-get -y -qq -o Dir::Etc::SourceList=/result/sources -o Dir::Etc::SourceParts=- -o APT::Install-Recommends=no \
        -o APT::Sandbox::User=root -o Dpkg::Options::=--force-confold -o Dpkg::Use-Pty=0 "$@" </dev/null
}
versions() { for name in $packages; do echo "$name $(dpkg-query -W -f '${db:Status-Status} ${Version}' "$name")"; done; }
start() {
    mkdir -p /run/badged
    chown badged:badged /run/badged
    setpriv --reuid badged --regid badged --init-groups env STATE_DIRECTORY=$state badged --no-pcsc --no-nfc --no-ble 2>>/result/daemon.log &
    daemon=$!
    until badgectl status >/dev/null 2>&1; do kill -0 $daemon || exit 1; sleep 0.02; done
}
stop() { kill $daemon; wait $daemon; }

from this
apt install $packages && fact "installed $(dpkg-query -W -f '${Version}' badged)"
printf '# mine\n[virtual]\nenabled = yes\nreaders = 2\n' >/etc/badged/badged.conf
install -d -o badged -g badged -m 700 $state
start
badgectl keys new --label office && badgectl --json keys >/result/keys.before
badgectl readers --watch >/result/watch 2>&1 &
watcher=$!
until grep -q 'Simulator 2' /result/watch; do sleep 0.02; done
from next
apt upgrade
versions >/result/versions.upgraded
fact "client $(badgectl status | head -n 1)"
stop
start
fact "client $(badgectl status | head -n 1)"
# The client connects again after a pause, and then sees that the card comes.
tries=60
until grep -q 'Simulator: eID card' /result/watch || [ $tries = 0 ]; do
    printf '123456\n123456\n' | badgectl change-pin --pin-stdin
    tries=$((tries - 1))
    sleep 1
done
[ $tries = 0 ] || fact "the client goes on"
kill $watcher
badgectl --json keys >/result/keys.after
cp /etc/badged/badged.conf /result/conf.after
stop

# What a later version may have written.
later() { setpriv --reuid badged --regid badged --clear-groups python3 -c "
import sqlite3, sys
store = sqlite3.connect('$state/store.db')
store.execute('PRAGMA user_version = ' + sys.argv[1])
store.commit()" "$1"; }
version=$(python3 -c "import sqlite3; print(sqlite3.connect('$state/store.db').execute('PRAGMA user_version').fetchone()[0])")
later $((version + 1))
sha256sum $state/* >/result/sums.before
start
badgectl keys >/result/keys.later 2>&1; fact "keys exit $?"
badgectl keys new --label other >/result/create.later 2>&1; fact "create exit $?"
badgectl health >/result/health.later 2>&1
stop
sha256sum $state/* >/result/sums.after
later "$version"
start
badgectl --json keys >/result/keys.again
stop

from this
apt --allow-downgrades install $(for name in $packages; do echo "$name=$this"; done)
versions >/result/versions.downgraded
apt install /result/next/badged_*.deb
versions >/result/versions.alone
apt remove badged-mqtt
versions >/result/versions.removed
fact end
END
} >"$work/inside"
isolated unshare --pid --fork --kill-child --net sh "$work/view" 2>"$work/view.err" || cat "$work/view.err"
out=$work/out
are_all() { for package in $packages; do echo "$package installed $2"; done | diff - "$work/$1"; }
check "apt installs the packages of this commit" grep -qxF "FACT installed $this" "$out"
check "apt upgrade replaces all by those of the next commit" are_all versions.upgraded "$next"
check "apt goes back to the packages before" are_all versions.downgraded "$this"
check "a new badged alone removes no other package" lacks "$work/versions.alone" 'not-installed|config-files'
check "and is installed" grep -qxF "badged installed $next" "$work/versions.alone"
check "one package can be removed" test "$(grep -c ' installed ' "$work/versions.removed")" = $(($(echo "$packages" | wc -w) - 1))
check "the daemon that runs goes on, and is restarted as the new one" sh -c "grep '^FACT client' '$out' | head -n 1 | grep -F '$this' &&
    grep '^FACT client' '$out' | tail -n 1 | grep -F '$next'"
check "a client that watches goes on with the new one" holds "$out" '^FACT the client goes on'
check "the key for doors is kept" sh -c "grep office '$work/keys.before' && grep -o 'thumbprint[^,]*' '$work/keys.before' >'$work/a' &&
    grep -o 'thumbprint[^,]*' '$work/keys.after' | diff '$work/a' -"
check "the configuration is kept" holds "$work/conf.after" '^# mine$'
check "a store of a later version is refused" holds "$out" '^FACT keys exit 1$'
check "with the reason" holds "$work/keys.later" 'a later version of badged has written the store'
check "and with what to do" holds "$work/keys.later" 'install that version'
check "no key is made in it" holds "$out" '^FACT create exit 1$'
check "badgectl health says it" holds "$work/health.later" 'a later version of badged has written the store'
check "the files are not changed" diff "$work/sums.before" "$work/sums.after"
check "the later version finds its key" holds "$work/keys.again" office
check "everything was done" holds "$out" '^FACT end$'
finish
