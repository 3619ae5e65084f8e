// SPDX-License-Identifier: GPL-3.0-or-later
import Host

/// The versions of the Debian packages that badged works with.
enum InstalledPackages {
    private static let names: Set<String> = [
        "badged", "badged-activation", "badged-mqtt", "bluez", "libccid", "libnfc6", "pcscd",
    ]

    /// The confined program may not start dpkg-query.
    static let file = "/var/lib/dpkg/status"

    /// Reads the versions by name; none on a system without dpkg.
    static func read(_ path: String = file) -> [String: String] {
        guard case .bytes(let bytes) = PlainFile.read(path, limit: 64 << 20) else { return [:] }
        return parse(bytes)
    }

    /// Reads the versions in a file of dpkg: paragraphs with lines `Package: NAME`, `Status: WORDS` and `Version: TEXT`.
    static func parse(_ bytes: [UInt8]) -> [String: String] {
        var versions: [String: String] = [:]
        var name: String?
        var isInstalled = false
        for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
            if line.isEmpty {
                name = nil
                isInstalled = false
            } else if let value = value(of: "Package: ", in: line) {
                name = names.contains(value) ? value : nil
            } else if name != nil, let value = value(of: "Status: ", in: line) {
                isInstalled = value.hasSuffix(" installed")
            } else if let name, isInstalled, let value = value(of: "Version: ", in: line) {
                versions[name] = EventContent.short(value)
            }
        }
        return versions
    }

    private static func value(of key: String, in line: ArraySlice<UInt8>) -> String? {
        guard line.starts(with: key.utf8) else { return nil }
        return String(decoding: line.dropFirst(key.utf8.count), as: UTF8.self)
    }
}
