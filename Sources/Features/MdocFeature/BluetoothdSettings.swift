// SPDX-License-Identifier: GPL-3.0-or-later
import Bluetooth
import Host
import Text

/// The settings of bluetoothd that decide how well phones are read, and what it keeps of them. bluetoothd(8), main.conf
package struct BluetoothdSettings {
    package static let standardFile = "/etc/bluetooth/main.conf"
    /// Up to this MTU no phone writes values of more than 510 bytes.
    static let safeMTU = 513
    /// bluetoothd before 5.70 takes a value of 511 or 512 bytes for one that is too long, and drops it.
    static let lostValues =
        "this bluetoothd loses values of 511 and 512 bytes: write ExchangeMTU = 513 under [GATT] in \(standardFile), "
        + "or install bluetoothd 5.70"

    private static let largestFile = 256 << 10

    /// The values by section and key, such as `GATT.Cache`.
    private var values: [String: String] = [:]

    /// A file that is missing or cannot be read has no values.
    init(_ path: String) {
        guard case .bytes(let bytes) = PlainFile.read(path, limit: Self.largestFile) else { return }
        var section = ""
        for line in INIFile(bytes: bytes).lines {
            switch line.content {
            case .section(let name): section = name
            case .value(let key, let value): values["\(section).\(key)"] = value
            case .fault: break
            }
        }
    }

    private func number(_ key: String) -> Int? { values[key].flatMap { Int($0) } }

    func losesValues(_ adapter: BlueZAdapter) -> Bool {
        !adapter.reportsVersion && (number("GATT.ExchangeMTU") ?? .max) > Self.safeMTU
    }

    /// Whether bluetoothd keeps what it has learnt of devices that are not paired.
    private var keepsFiles: Bool { values["GATT.Cache"] != "yes" && values["GATT.Cache"] != "no" }

    /// The lines that are missing under `[LE]` and `[GATT]`.
    private func missing(_ adapter: BlueZAdapter) -> (general: [String], attributes: [String]) {
        var (general, attributes): ([String], [String]) = ([], [])
        if !adapter.reportsVersion {
            for (key, limit) in [("MinAdvertisementInterval", 32), ("MaxAdvertisementInterval", 48)]
            where number("LE.\(key)") ?? .max > 160 {
                general.append("\(key) = \(limit)")
            }
        }
        if losesValues(adapter) { attributes.append("ExchangeMTU = \(Self.safeMTU)") }
        if keepsFiles { attributes.append("Cache = yes") }
        return (general, attributes)
    }

    /// `mdoc` of GET_HEALTH.
    func check(_ adapter: BlueZAdapter) -> HealthCheck {
        let missing = missing(adapter)
        let sections = [("[LE]", missing.general), ("[GATT]", missing.attributes)].filter { !$0.1.isEmpty }
        guard !sections.isEmpty else { return HealthCheck("mdoc", ok: true) }
        var causes: [Phrase] = []
        if losesValues(adapter) {
            causes.append("bluetoothd loses long values, so phones that connect to this host may not be read")
        }
        if !missing.general.isEmpty { causes.append("phones find this host slowly") }
        if keepsFiles { causes.append("bluetoothd keeps a file about each phone in /var/lib/bluetooth") }
        let lines = sections.map { "\($0) \($1.joined(separator: ", "))" }.joined(separator: "; ")
        return HealthCheck(
            "mdoc",
            ok: false,
            isOptional: true,
            cause: .joined(causes, by: "; "),
            advice: "to read phones over Bluetooth, write into \(Self.standardFile): \(lines); then restart bluetooth"
        )
    }
}
