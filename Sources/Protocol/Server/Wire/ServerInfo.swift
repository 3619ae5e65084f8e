// SPDX-License-Identifier: Apache-2.0

/// The members of INFO that differ between daemons.
package struct ServerInfo: Sendable, Equatable {
    package var version: String
    package var drivers: [String]
    package var scanners: [String]

    /// Version of docs/protocol.md.
    package static let protocolVersion = 1

    package init(version: String, drivers: [String], scanners: [String] = []) {
        self.version = version
        self.drivers = drivers
        self.scanners = scanners
    }

    /// `VersionInfo`.
    package var versionFields: [(key: StaticString, value: String)] {
        [
            ("Name", "badged"), ("Implementation-Title", "badged"), ("Implementation-Vendor", "badged developers"),
            ("Implementation-Version", version), ("Specification-Title", "TR-03124-1"),
            ("Specification-Vendor", "Federal Office for Information Security"), ("Specification-Version", "1.4"),
        ]
    }
}
