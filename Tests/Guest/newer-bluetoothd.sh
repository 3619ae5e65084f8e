#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# newer-bluetoothd.sh: fetches the bluetoothd of Debian 13 with its libraries, and prints its folder. On Debian 12 it runs beside
# the one of this machine, for scenarios with the line `# bluetoothd`. It is kept beside the kernel of the guest. Without a mirror
# of Debian 13, it prints nothing; these scenarios use the bluetoothd of this machine only, and run.sh names them.
set -eu
cd "$(dirname "$0")"
. ./cache.sh
folder=$cache/bluetoothd-trixie
[ -d "$folder" ] || {
    echo "newer-bluetoothd.sh: fetching the bluetoothd of Debian 13; this is done once" >&2
    new_folder
    mmdebstrap --variant=extract --include=bluez trixie "$new/system" >"$new/log" 2>&1 || {
        tail -n 3 "$new/log" >&2
        exit 0
    }
    mkdir -p "$new/kept"
    (cd "$new/system" && tar c lib64/ usr/lib64/ usr/lib/x86_64-linux-gnu usr/libexec/bluetooth) | tar x -C "$new/kept"
    cat >"$new/kept/bluetoothd" <<'END'
#!/bin/sh
here=$(dirname "$0")
exec "$here/lib64/ld-linux-x86-64.so.2" --library-path "$here/usr/lib/x86_64-linux-gnu" "$here/usr/libexec/bluetooth/bluetoothd" "$@"
END
    chmod +x "$new/kept/bluetoothd"
    mv "$new/kept" "$folder"
}
use "$folder"
echo "$folder"
