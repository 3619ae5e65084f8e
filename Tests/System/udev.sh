#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# The udev rules, evaluated by udev for devices that umockdev simulates, on a system that has our groups.
. "$(dirname "$0")/lib.sh"
needs umockdev-run udevadm systemd-sysusers
rules="$root/udev/94-badged.rules $root/udev/94-badged-osdp.rules"
if udevadm verify --help >/dev/null 2>&1; then
    # shellcheck disable=SC2086  # two files
    check "udevadm verify" udevadm verify --no-style $rules
else
    echo "  (udevadm $(udevadm --version) has no verify)"
fi
isolated true 2>/dev/null || cannot "needs root, or user namespaces"

make_user >/dev/null 2>&1
group=$(sed -n 's/^badged-devices:x:\([0-9]*\):.*/\1/p' "$work/root/etc/group")
grep -q '^plugdev:' "$work/root/etc/group" || printf 'plugdev:x:46:\n' >>"$work/root/etc/group"
mkdir "$work/rules"
# shellcheck disable=SC2086  # two files
cp $rules "$work/rules"
# The package of libnfc has such a rule for the same devices, which applies first.
echo 'ACTION=="add", SUBSYSTEM=="usb", ENV{DEVTYPE}=="usb_device", MODE="0664", GROUP="plugdev"' >"$work/rules/93-libnfc.rules"

# evaluate VENDOR PRODUCT INTERFACES [ACTION]: has udev evaluate a USB device; the result is in $work/udev.
evaluate() {
    device=/devices/pci0000:00/0000:00:14.0/usb1/1-3
    cat >"$work/device" <<END
P: $device
N: bus/usb/001/005
E: DEVNAME=/dev/bus/usb/001/005
E: DEVTYPE=usb_device
E: MAJOR=189
E: MINOR=4
E: SUBSYSTEM=usb
E: ID_USB_INTERFACES=$3
A: idVendor=$1\\n
A: idProduct=$2\\n
A: bDeviceClass=00\\n
END
    run_udev "${4:-add}"
}
# run_udev ACTION: has udev evaluate $device, which $work/device describes; the result is in $work/udev.
run_udev() {
    # shellcheck disable=SC2016
    isolated sh -c '
        mount --bind "$1/root/etc/passwd" /etc/passwd
        mount --bind "$1/root/etc/group" /etc/group
        mkdir -p /etc/udev/rules.d
        mount --bind "$1/rules" /etc/udev/rules.d
        mount -t tmpfs tmpfs /run/udev 2>/dev/null || true
        umockdev-run --device "$1/device" -- udevadm test --action="$2" "$3"
    ' sh "$work" "$1" "$device" >"$work/udev" 2>&1 || true
}
starts() { holds "$work/udev" '^SYSTEMD_WANTS=badged\.service' && holds "$work/udev" '(TAGS|CURRENT_TAGS)=.*:systemd:'; }
# A missing line says something only when udev did evaluate the device.
evaluated() { holds "$work/udev" "^DEVTYPE=usb_device"; }
starts_not() { evaluated && lacks "$work/udev" "SYSTEMD_WANTS=.*badged"; }
ours() { holds "$work/udev" "94-badged.rules:[0-9]+ GROUP $group" && holds "$work/udev" '94-badged.rules:[0-9]+ MODE 0660'; }
serial_starts_not() { holds "$work/udev" "^SUBSYSTEM=tty" && lacks "$work/udev" "SYSTEMD_WANTS=.*badged"; }
serial_not_ours() { holds "$work/udev" "^SUBSYSTEM=tty" && lacks "$work/udev" '94-badged.rules:[0-9]+ (GROUP|MODE)'; }
not_ours() { evaluated && lacks "$work/udev" '94-badged.rules:[0-9]+ (GROUP|MODE)'; }

while read -r vendor product interfaces name; do
    evaluate "$vendor" "$product" "$interfaces"
    check "$name ($vendor:$product) starts badged" starts
    check "$name is left to pcscd: the rule does not touch owner and mode" not_ours
done <<'END'
076b 5022 :0b0000: CCID reader
1234 5678 :030000:0b0000: CCID interface beside another
1234 5679 :0b0002: ICCD token
072f 2200 :0b0000: ACR122U with its CCID firmware
04e6 5591 :0b0000: SCL3711 that shows CCID
END
while read -r vendor product name; do
    evaluate "$vendor" "$product" :ff0000:
    check "$name ($vendor:$product) starts badged" starts
    check "$name belongs to group badged-devices" ours
done <<'END'
04cc 0531 PN531
054c 0193 Sony PN531
04cc 2533 PN533
04e6 5591 SCL3711
04e6 5594 SCL3712
1fd3 0608 ASK LoGO
054c 02e1 Sony RC-S360
072f 2200 ACR122U
072f 90cc touchatag
END
# serial [MARK]: has udev evaluate a USB serial adapter, with or without a mark of the administrator.
serial() {
    device=/devices/pci0000:00/0000:00:14.0/usb1/1-4/1-4:1.0/ttyUSB0/tty/ttyUSB0
    printf '%s\n' "P: $device" "N: ttyUSB0" "E: DEVNAME=/dev/ttyUSB0" "E: MAJOR=188" "E: MINOR=0" "E: SUBSYSTEM=tty" \
        ${1:+"E: $1=1"} "" >"$work/device"
    run_udev add
}
serial BADGED_NFC
check "a marked serial line starts badged" starts
check "a marked serial line belongs to group badged-devices" ours
serial BADGED_OSDP
check "the line of a door panel starts badged-osdp" holds "$work/udev" '^SYSTEMD_WANTS=badged-osdp\.service'
check "and belongs to group dialout" holds "$work/udev" '94-badged-osdp.rules:[0-9]+ GROUP '
serial
check "another serial line does not start badged" serial_starts_not
check "another serial line keeps owner and mode" serial_not_ours

while read -r vendor product interfaces name; do
    evaluate "$vendor" "$product" "$interfaces"
    check "$name does not start badged" starts_not
    check "$name keeps owner and mode" not_ours
done <<'END'
046d c31c :030101: a keyboard
04cc 9999 :ff0000: another device of NXP
054c 5591 :ff0000: another device of Sony
0781 5567 :080650: a memory stick
END
evaluate 076b 5022 :0b0000: remove
check "a reader that is removed does not start badged" starts_not
finish
