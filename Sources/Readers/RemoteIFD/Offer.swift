// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text

/// An announcement of a device that lends readers: one JSON object in one UDP datagram.
///
/// Announcements are not authenticated. They only say where a connection may be tried.
package struct Offer: Sendable, Equatable {
    /// The UDP port of announcements.
    package static let port: UInt16 = 24727
    /// The longest datagram that is read. One with the certificate of a 3072-bit key has 1.6 KB.
    package static let maximumCount = 8192

    /// The name of the device, for display only.
    package var name: String
    /// SHA-256 of the certificate of the device: 64 lower-case digits.
    package var fingerprint: String
    /// The TCP port of the WebSocket server.
    package var port: UInt16
    /// Whether the device waits for a new partner.
    package var isPairing: Bool
    package var versions: [IFDVersion]

    package init(name: String, fingerprint: String, port: UInt16, isPairing: Bool, versions: [IFDVersion]) {
        (self.name, self.fingerprint, self.port) = (name, fingerprint, port)
        (self.isPairing, self.versions) = (isPairing, versions)
    }

    /// Parses a datagram; nil if the datagram is no announcement that badged can use.
    package init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count <= Self.maximumCount, let json = try? JSON(bytes), json["msg"]?.string == "REMOTE_IFD",
            let name = json["IFDName"]?.string, let identity = json["IFDID"]?.string,
            let number = json["port"]?.int, let port = UInt16(exactly: number), port > 0,
            let fingerprint = Self.fingerprint(identity)
        else { return nil }
        let known = (json["SupportedAPI"]?.array ?? []).compactMap { $0.string.flatMap(IFDVersion.init(rawValue:)) }
        let pairing = json["pairing"]
        // Version 2 requires the member; version 0 does not know it.
        guard !known.isEmpty, pairing?.bool != nil || (pairing == nil && !known.contains(.two)) else { return nil }
        self.init(
            name: DeviceName.clean(name),
            fingerprint: fingerprint,
            port: port,
            isPairing: pairing?.bool ?? false,
            versions: known
        )
    }

    /// Encodes an announcement. It has the whole certificate in PEM, because AusweisApp2 1.24 to 1.26 need it.
    package static func encode(
        name: String,
        certificate: [UInt8],
        port: UInt16,
        isPairing: Bool
    ) -> [UInt8] {
        var writer = JSONWriter()
        writer.object { object in
            object.member("IFDID", PEM.certificate(certificate))
            object.member("IFDName", name)
            object.member("SupportedAPI", IFDVersion.allCases.map(\.rawValue))
            object.member("msg", "REMOTE_IFD")
            object.member("pairing", isPairing)
            object.member("port", port)
        }
        return writer.bytes
    }

    private static func fingerprint(_ identity: String) -> String? {
        if let hash = Hex.decode(identity, limit: 32), hash.count == 32 { return Hex.encode(hash) }
        guard let certificate = PEM.decode(identity), let hash = try? DigestAlgorithm.sha256.hash(certificate) else {
            return nil
        }
        return Hex.encode(hash)
    }
}

/// The versions of the protocol. There is no version 1.
package enum IFDVersion: String, Sendable, CaseIterable {
    case two = "IFDInterface_WebSocket_v2"
    case zero = "IFDInterface_WebSocket_v0"
}

/// Names that other devices choose for themselves.
package enum DeviceName {
    package static let maximumCount = 33

    /// Cuts a name and replaces characters that could disturb a terminal or a log.
    package static func clean(_ name: String) -> String {
        let scalars = name.unicodeScalars.prefix(maximumCount).map { scalar -> Unicode.Scalar in
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: "?"
            default: scalar
            }
        }
        var clean = ""
        clean.unicodeScalars.append(contentsOf: scalars)
        return clean.isEmpty ? "?" : clean
    }
}
