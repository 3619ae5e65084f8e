// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The adapters that `[ble] adapters` names, and what each may do. Without rules every adapter may scan and open.
package struct AdapterRules: Sendable, Equatable {
    package struct Rule: Sendable, Equatable {
        package let adapter: AdapterName
        package let scans: Bool
        package let opens: Bool
    }

    package let rules: [Rule]

    package init(_ rules: [Rule] = []) { self.rules = rules }

    package func mayScan(name: String, address: String) -> Bool { allows(\.scans, name, address) }

    package func mayOpen(name: String, address: String) -> Bool { allows(\.opens, name, address) }

    private func allows(_ right: KeyPath<Rule, Bool>, _ name: String, _ address: String) -> Bool {
        rules.isEmpty || rules.contains { $0.adapter.names(name, address) && $0[keyPath: right] }
    }
}

/// How badged.conf names an adapter. A number can change when adapters are plugged in; an address stays.
package enum AdapterName: Sendable, Hashable {
    /// Such as `hci0`.
    case number(String)
    /// Such as `00:1A:7D:DA:71:13`.
    case address(String)

    init?(_ text: Substring) {
        if text.hasPrefix("hci"), let number = UInt16(text.dropFirst(3)), text == "hci\(number)" {
            self = .number(String(text))
        } else {
            let bytes = text.split(separator: ":", omittingEmptySubsequences: false).map { Hex.decode($0, limit: 1) }
            guard bytes.count == 6, bytes.allSatisfy({ $0?.count == 1 }) else { return nil }
            self = .address(text.uppercased())
        }
    }

    package var text: String {
        switch self {
        case .number(let text), .address(let text): text
        }
    }

    package func names(_ name: String, _ address: String) -> Bool {
        switch self {
        case .number(let own): own == name
        case .address(let own): own == address
        }
    }
}

extension ConfigurationValue {
    /// `hci0, 00:1A:7D:DA:71:13 open`: names, each with `scan` or `open` if the adapter does only one of the two.
    func adapterRules() throws(StartError) -> AdapterRules {
        let allowed =
            "hciN or an address such as 00:1A:7D:DA:71:13, each once, and each with scan or open if it does only that; "
            + "one scans"
        var rules: [AdapterRules.Rule] = []
        for entry in try list() {
            let words = entry.split(separator: " ")
            guard let name = words.first.flatMap({ AdapterName($0) }), words.count <= 2,
                !rules.contains(where: { $0.adapter == name })
            else { throw refuse(allowed) }
            let use = words.count == 2 ? words[1] : nil
            guard use == nil || use == "scan" || use == "open" else { throw refuse(allowed) }
            rules.append(AdapterRules.Rule(adapter: name, scans: use != "open", opens: use != "scan"))
        }
        guard rules.isEmpty || rules.contains(where: \.scans) else { throw refuse(allowed) }
        return AdapterRules(rules)
    }

    /// Adapters of one design differ by less.
    private static let offsetRange = -30...30

    /// `hci0 -3, 00:1A:7D:DA:71:13 4`: the decibels that are added to what each adapter receives.
    func adapterOffsets() throws(StartError) -> [AdapterName: Int] {
        let range = Self.offsetRange
        var offsets: [AdapterName: Int] = [:]
        for entry in try list() {
            let words = entry.split(separator: " ")
            guard words.count == 2, let name = AdapterName(words[0]), let offset = Int(words[1]),
                range.contains(offset), offsets.updateValue(offset, forKey: name) == nil
            else {
                throw refuse(
                    "hciN or an address, each once, each with a number from \(range.lowerBound) to \(range.upperBound)"
                )
            }
        }
        return offsets
    }
}
