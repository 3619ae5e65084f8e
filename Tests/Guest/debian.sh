#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# debian.sh: makes a minimal Debian 12 with systemd, as mmdebstrap does, and prints the path of its archive. What our packages
# need lies in the cache of its apt, so that it installs them without a network. The archive is kept beside the kernel of the
# guest, below the hash of this script and of the dependencies.
set -eu
cd "$(dirname "$0")"
here=$PWD
packages=$here/../../.build-deb
[ -s "$packages/packages" ] || { echo "debian.sh: error: no packages (make deb)" >&2; exit 1; }
. ./cache.sh
debs=$(grep -v dbgsym "$packages/packages")
key=$({ cat debian.sh; for deb in $debs; do dpkg-deb -f "$deb" Package Depends Recommends; done; } | sha256sum | cut -c 1-16)
archive=$cache/debian-$key.tar
[ -e "$archive" ] || {
    echo "debian.sh: making a Debian system; this takes a minute and is done once" >&2
    new_folder
    mkdir "$new/packages"
    # shellcheck disable=SC2086  # a list of files
    cp $debs "$new/packages"
    # shellcheck disable=SC2016  # the hooks are run by mmdebstrap
    mmdebstrap --format=tar --variant=apt --include=systemd,systemd-sysv,udev,dbus,adduser --skip=cleanup/apt,cleanup/run \
        --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/i18n/*' \
        --customize-hook="copy-in '$new/packages' /" \
        --customize-hook='chroot "$1" sh -c "apt-get clean && apt-get -y -o APT::Install-Recommends=yes --download-only install /packages/*.deb" && rm -r "$1/packages"' \
        --customize-hook='rm -rf "$1"/var/cache/apt/*.bin' \
        bookworm "$new/debian.tar" >"$new/log" 2>&1 || {
        tail -n 20 "$new/log" >&2
        exit 1
    }
    mv "$new/debian.tar" "$archive"
}
use "$archive"
echo "$archive"
