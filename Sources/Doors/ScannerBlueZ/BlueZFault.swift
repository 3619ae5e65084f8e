// SPDX-License-Identifier: GPL-3.0-or-later
import Scanners

/// What can be in the way of a scan through bluetoothd.
enum BlueZFault {
    static let noLibrary =
        ScannerFault(.service, "libsystemd is not there", advice: "install libsystemd0", isPermanent: true)
    static let noBus = ScannerFault(.service, "no connection to the system's D-Bus", advice: "systemctl start dbus")
    static let noService = ScannerFault(.service, "bluetoothd does not run", advice: "systemctl start bluetooth")
    static let serviceEnded = ScannerFault(.service, "bluetoothd has ended", advice: "systemctl start bluetooth")
    static let unknownForm =
        ScannerFault(.scan, "bluetoothd answers in an unknown form", advice: "report this with its version")
    static let refusesScan = ScannerFault(
        .scan,
        "bluetoothd refuses to scan",
        advice: "another program may hold the radio; systemctl restart bluetooth ends that"
    )

    /// What an error in the place of an answer says; nil: there was none in time.
    static func refused(_ answer: BusMessage?) -> ScannerFault {
        guard answer?.errorName == "org.freedesktop.DBus.Error.AccessDenied" else { return noService }
        let advice = "allow user badged to talk to org.bluez in /etc/dbus-1/system.d"
        return ScannerFault(.access, "bluetoothd may not be asked", advice: advice)
    }
}
