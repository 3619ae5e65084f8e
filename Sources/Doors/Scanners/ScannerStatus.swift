// SPDX-License-Identifier: GPL-3.0-or-later
package import DoorReaders
package import Host
package import Text

/// The state of a scanner.
package struct ScannerStatus: Sendable, Equatable {
    /// The radio listens, as the system reports.
    package var isListening = false
    package var adapters: [RadioAdapter] = []
    /// Adapters of the host that badged.conf leaves out of the scan.
    package var unused: [RadioAdapter] = []
    /// The names of the adapters that shall receive on the coded PHY, and do not.
    package var withoutCodedPHY: [String] = []
    /// The scan pauses as planned, to be continued soon. Meanwhile the radio receives nothing.
    package var isPausing = false
    /// Milliseconds after which the radio reports a sender again, because it drops repeated advertisements or may do
    /// so; nil: every advertisement is reported.
    package var repeatInterval: Milliseconds?
    /// Why the scan does not run, or what it lacks.
    package var fault: ScannerFault?
    /// Messages of the system that could not be decoded in this scan.
    package var malformed = 0

    package init(isListening: Bool = false, adapters: [RadioAdapter] = [], fault: ScannerFault? = nil) {
        self.isListening = isListening
        self.adapters = adapters
        self.fault = fault
    }

    /// Leaves adapters out that may not scan.
    package mutating func choose(_ rules: AdapterRules) {
        unused = adapters.filter { !rules.mayScan($0) }
        adapters.removeAll { !rules.mayScan($0) }
        guard !unused.isEmpty else { return }
        if adapters.isEmpty {
            fault = .notNamed(rules, unused)
        } else if fault == nil, !adapters.contains(where: \.isPowered) {
            fault = .adapterOff
        }
    }
}

extension AdapterRules {
    package func mayScan(_ adapter: RadioAdapter) -> Bool { mayScan(name: adapter.name, address: adapter.address) }
    package func mayOpen(_ adapter: RadioAdapter) -> Bool { mayOpen(name: adapter.name, address: adapter.address) }
}

extension AdapterName {
    package func names(_ adapter: RadioAdapter) -> Bool { names(adapter.name, adapter.address) }
}

/// A Bluetooth adapter of the host.
package struct RadioAdapter: Sendable, Equatable {
    /// Such as `hci0`. The name may change when the adapter is plugged in again; the address stays.
    package var name: String
    package var address: String
    package var isPowered: Bool
    /// The adapter scans, as the system reports.
    package var isListening: Bool

    package init(name: String, address: String, isPowered: Bool, isListening: Bool = false) {
        self.name = name
        self.address = address
        self.isPowered = isPowered
        self.isListening = isListening
    }

    package var number: Int { Int(name.drop { !$0.isNumber }) ?? 0 }
}

/// Why a scan does not run, in words for a person.
package struct ScannerFault: Error, Sendable, Equatable {
    /// The raw values are the names of the health checks.
    package enum Kind: String, Sendable {
        /// The service, or the Bluetooth support of the kernel, is missing.
        case service = "bluetooth"
        case access = "bluetoothAccess"
        /// No adapter, or it is switched off.
        case adapter = "bluetoothAdapter"
        /// The service or the kernel refuses to scan, or does not answer.
        case scan = "bluetoothScan"
    }

    package var kind: Kind
    package var text: Phrase
    package var advice: Phrase
    /// The scanner cannot work on this host; another one may.
    package var isPermanent: Bool
    /// A line of badged.conf names what is missing.
    package var isConfigured = false

    package init(_ kind: Kind, _ text: Phrase, advice: Phrase, isPermanent: Bool = false) {
        self.kind = kind
        self.text = text
        self.advice = advice
        self.isPermanent = isPermanent
    }

    package static let noAdapter = ScannerFault(.adapter, "there is no Bluetooth adapter", advice: "plug one in")
    /// None of the adapters of this computer is one that badged.conf lets scan.
    package static func notNamed(_ rules: AdapterRules, _ present: [RadioAdapter]) -> ScannerFault {
        let wanted = rules.rules.filter(\.scans).map(\.adapter.text).joined(separator: ", ")
        let found = present.map { "\($0.name) (\($0.address))" }.joined(separator: ", ")
        var fault = ScannerFault(
            .adapter,
            "[ble] adapters names \(wanted) for scans, but this computer has \(found)",
            advice: "correct [ble] adapters in badged.conf, or plug the adapter in"
        )
        fault.isConfigured = true
        return fault
    }

    package static let noService =
        ScannerFault(.service, "bluetoothd does not run", advice: "systemctl start bluetooth")
    /// The options of badged leave the radio alone.
    package static let disabled = ScannerFault(
        .adapter,
        "badged runs without the Bluetooth radio",
        advice: "set enabled = yes in [ble] of badged.conf, leave out the option --no-ble, and restart badged"
    )
    package static let noAdvertising =
        ScannerFault(.adapter, "the Bluetooth adapter cannot advertise", advice: "use another one")
    package static let adapterOff =
        ScannerFault(.adapter, "the Bluetooth adapter is switched off", advice: "bluetoothctl power on")
}
