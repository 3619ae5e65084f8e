// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Host
import Readers
import ReadersNFC
import Text

/// The health checks for NFC devices: what is wrong and what to do.
enum NFCHealth {
    /// One check for each device that cannot be used; without faults the check `nfc`.
    static func checks(_ faults: [HealthCheck]) -> [HealthCheck] {
        faults.isEmpty ? [HealthCheck(NFCDriver.checkName, ok: true)] : faults
    }

    static func noResources() -> HealthCheck {
        HealthCheck(
            NFCDriver.checkName,
            ok: false,
            advice: "libnfc cannot be started: the system has no memory or threads left"
        )
    }

    /// An entry of `[nfc] devices` has the wrong form.
    static func malformed(_ text: String) -> HealthCheck {
        HealthCheck(
            "nfc \(text)",
            ok: false,
            advice: "this is not a connection string of libnfc; examples for [nfc] devices: "
                + "pn532_uart:/dev/ttyUSB0:115200, pn53x_usb"
        )
    }

    /// An entry names a driver that has no device.
    static func noDevice(_ connection: ConnectionString) -> HealthCheck {
        HealthCheck(
            "nfc \(connection.text)",
            ok: false,
            advice:
                "libnfc's driver \(connection.driver) has no free device: plug the device in; a CCID reader is free "
                + "while pcscd does not run"
        )
    }

    /// A device failed soon after it was opened. It is opened again automatically; `reader` is its name.
    static func unsteady(_ connection: ConnectionString, reader: String) -> HealthCheck {
        HealthCheck(
            "nfc \(connection.text)",
            ok: false,
            advice:
                "the device stopped answering and is tried again every second: check power and cable, or switch "
                + "its power off and on",
            reader: reader
        )
    }

    /// libnfc could not open a serial line.
    static func check(_ connection: ConnectionString, _ fault: SerialLineFault, group: String? = nil) -> HealthCheck {
        HealthCheck("nfc \(connection.text)", ok: false, advice: advice(connection, fault, group: group))
    }

    private static func advice(_ connection: ConnectionString, _ fault: SerialLineFault, group: String?) -> Phrase {
        guard case .line(let path, let speed) = connection.place else { return "libnfc cannot open it" }
        let baud = speed ?? SerialLine.defaultSpeed
        switch fault {
        case .missing:
            return "there is no \(path): plug the board in, or correct [nfc] devices"
        case .denied:
            return "badged cannot read and write \(path): add this service's user to group "
                + "\(group ?? "dialout"), or give the line to group badged-devices by a udev rule, then restart this service"
        case .notPermitted:
            return "the service may not open \(path): allow it by a drop-in with DeviceAllow=\(path) rw, see "
                + "docs/readers.md"
        case .busy:
            return "another program uses \(path) (ModemManager, brltty, a login on the serial console): end it or "
                + "exclude the line in its configuration"
        case .noTerminal:
            return "\(path) is not a serial line: correct [nfc] devices"
        case .silent:
            return "no answer on \(path) at any speed: check power, that TX and RX are crossed, and that the switches "
                + "of the board say UART (HSU)"
        case .speed(let found) where found == baud:
            return "the board answers on \(path), but libnfc cannot use it: switch its power off and on, then reload "
                + "this service"
        case .speed(let found):
            return "wrong speed: the board answers at \(found) baud, not at \(baud); write "
                + "\(connection.driver):\(path):\(found) in [nfc] devices"
        case .noise:
            return
                "the device on \(path) answers at \(baud) baud, but not like a board that libnfc knows: wrong device, "
                + "wrong speed, or loose wires"
        }
    }

    /// A connected USB device is not in use by this driver. `isDenied`: its device file is not accessible.
    /// - Returns: nil when there is no fault because pcscd uses the device.
    static func check(_ device: USBDevice, isDenied: Bool) -> HealthCheck? {
        let advice: Phrase
        switch device.driver {
        case "pn533", "pn533_usb", "port100":
            let driver = device.driver ?? ""
            advice =
                "device busy: the kernel's driver \(driver) uses \(device.identity); write 'blacklist \(driver)' "
                + "and 'blacklist nfc' to /etc/modprobe.d/badged.conf, run 'modprobe -r \(driver)', then plug it in "
                + "again"
        case "usbfs" where device.isCCID:
            return nil
        case "usbfs":
            advice = "device busy: another program uses \(device.identity): end it, then plug the device in again"
        case nil where device.isCCID:
            return nil
        default:
            guard isDenied else {
                advice = "libnfc cannot open \(device.identity): plug it in again"
                break
            }
            advice =
                "badged cannot read and write \(device.node) (\(device.identity)): install the udev rule "
                + "94-badged.rules, then plug the device in again"
        }
        return HealthCheck("nfc \(device.identity)", ok: false, advice: advice)
    }
}
