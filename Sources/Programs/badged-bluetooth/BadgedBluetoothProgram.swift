// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import ScannerMgmt

/// Opens the management socket of the kernel's Bluetooth for badged, which has no right to do so. badged.service runs
/// this program as root before badged, and systemd passes the socket on. The program takes no options and no input.
@main struct Program {
    static func main() {
        guard NetworkCapability.isHeld else {
            return Log.notice(
                "no CAP_NET_ADMIN for the management socket of Bluetooth; badged scans through bluetoothd"
            )
        }
        guard let socket = ManagementSocket() else {
            return Log.notice("the kernel has no Bluetooth for this system; badged scans through bluetoothd")
        }
        if !ServiceNotification().store(socket.descriptor, name: SocketActivation.bluetoothName) {
            Log.warning("cannot store the management socket of Bluetooth: systemd does not accept it")
        }
    }
}
