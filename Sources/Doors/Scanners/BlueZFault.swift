// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import Text

/// The faults of a scan through bluetoothd.
enum BlueZFault {
    static func bus(_ failure: BusFailure) -> ScannerFault {
        switch failure {
        case .noLibrary: ScannerFault(.service, failure.text, advice: "install libsystemd0", isPermanent: true)
        case .noBus: ScannerFault(.service, failure.text, advice: "systemctl start dbus")
        }
    }

    static let noAnswer =
        ScannerFault(.service, "bluetoothd does not answer", advice: "systemctl restart bluetooth")
    static let serviceEnded = ScannerFault(.service, "bluetoothd has ended", advice: "systemctl start bluetooth")
    static let unknownFormat =
        ScannerFault(.scan, "bluetoothd answers in an unknown format", advice: "report this with its version")

    /// bluetoothd does not let these adapters scan; without names: none of them.
    static func refusesScan(_ adapters: [String] = []) -> ScannerFault {
        ScannerFault(
            .scan,
            adapters.isEmpty
                ? "bluetoothd refuses to scan" : "bluetoothd refuses to scan with \(adapters.joined(separator: ", "))",
            advice: "systemctl restart bluetooth; journalctl -u bluetooth may have the reason"
        )
    }

    /// The controllers of these adapters drop repeated advertisements.
    static func dropsRepeats(_ adapters: [String]) -> ScannerFault {
        ScannerFault(
            .scan,
            "\(adapters.joined(separator: ", ")) reports each sender only once in about ten seconds, so no reader comes "
                + "into range",
            advice:
                "use [ble] backend = mgmt, or start bluetoothd with the option -E, so that repeated "
                + "advertisements are not dropped"
        )
    }

    /// The fault that an error in place of an answer means; nil: there was no answer in time.
    static func refused(_ answer: BusMessage?) -> ScannerFault {
        guard let answer else { return noAnswer }
        guard answer.errorName == "org.freedesktop.DBus.Error.AccessDenied" else { return .noService }
        let advice: Phrase = "allow user badged to talk to org.bluez in /etc/dbus-1/system.d"
        return ScannerFault(.access, "the D-Bus denies access to bluetoothd", advice: advice)
    }
}
