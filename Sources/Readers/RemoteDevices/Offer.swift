// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import ReadersRemote
import Text

/// An announcement of a device that lends readers: one JSON object in one UDP datagram.
///
/// Announcements are not authenticated. They only say where a connection may be tried.
package struct Offer: Sendable, Equatable {
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
    /// Where the device says that it can be reached, since AusweisApp 2.3.2. Names of hosts are left out.
    package var addresses: [RemoteAddress]

    /// The maximum number of addresses in one announcement that are tried or sent.
    package static let maximumAddresses = 8

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
        guard !known.isEmpty, pairing?.bool != nil || (pairing == nil && !known.contains(.two)),
            let addresses = Self.addresses(json["addresses"])
        else { return nil }
        self.name = DeviceName.clean(name)
        self.fingerprint = fingerprint
        self.port = port
        isPairing = pairing?.bool ?? false
        versions = known
        self.addresses = addresses
    }

    /// Reads `addresses`. Like AusweisApp, nil for an empty list or one with a bad entry.
    private static func addresses(_ list: JSON?) -> [RemoteAddress]? {
        guard let list else { return [] }
        guard let entries = list.array, !entries.isEmpty else { return nil }
        var found: [RemoteAddress] = []
        for entry in entries {
            guard let (host, port) = entry.string.flatMap(endpoint) else { return nil }
            guard let host = RemoteAddress.Host(host), host.isGlobal else { continue }
            found.append(RemoteAddress(host: host, port: port))
        }
        return Array(found.prefix(maximumAddresses))
    }

    /// Returns the host and the port of `wss://host:port`.
    private static func endpoint(_ text: String) -> (host: String, port: UInt16)? {
        // Bytes: a step back over characters may look at the whole text.
        let scheme = "wss://".utf8
        guard text.lowercased().utf8.starts(with: scheme) else { return nil }
        let authority = text.utf8.dropFirst(scheme.count).prefix { $0 != UInt8(ascii: "/") && $0 != UInt8(ascii: "?") }
        guard let colon = authority.lastIndex(of: UInt8(ascii: ":")),
            case let digits = authority[authority.index(after: colon)...], digits.first != UInt8(ascii: "+"),
            let port = UInt16(Substring(digits)), port > 0
        else { return nil }
        var host = authority[..<colon]
        if host.first == UInt8(ascii: "["), host.last == UInt8(ascii: "]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(UInt8(ascii: ":")) {
            return nil
        }
        return host.isEmpty ? nil : (String(Substring(host)), port)
    }

    /// Returns the fingerprint in a datagram without parsing it, for a limit before the parser; nil for a datagram that
    /// is no announcement.
    package static func identity(in bytes: [UInt8]) -> String? {
        let key = Array(#""IFDID""#.utf8)
        let start = bytes.indices.first { bytes[$0] == key[0] && bytes[$0...].starts(with: key) }
        guard let start else { return nil }
        let rest = bytes[(start + key.count)...].drop { [0x20, 0x09, 0x0A, 0x0D, 0x3A].contains($0) }
        guard rest.first == 0x22 else { return nil }
        // Neither a hash nor a certificate has a quotation mark, and of the escapes only line ends are usual.
        let value = rest.dropFirst().prefix { $0 != 0x22 }
        var text: [UInt8] = []
        var isEscaped = false
        for byte in value {
            if isEscaped {
                text.append(byte == 0x6E || byte == 0x72 ? 0x0A : byte)
                isEscaped = false
            } else if byte == 0x5C {
                isEscaped = true
            } else {
                text.append(byte)
            }
        }
        return fingerprint(String(decoding: text, as: UTF8.self))
    }

    /// Encodes an announcement. It has the whole certificate in PEM, because AusweisApp2 1.24 to 1.26 need it.
    /// `hosts` are the addresses of this host.
    package static func encode(
        name: String,
        certificate: [UInt8],
        port: UInt16,
        isPairing: Bool,
        hosts: [RemoteAddress.Host] = []
    ) -> [UInt8] {
        JSONWriter.bytes { object in
            object.member("IFDID", PEM.certificate.encode(certificate))
            object.member("IFDName", name)
            object.member("SupportedAPI", IFDVersion.allCases.map(\.rawValue))
            if !hosts.isEmpty {
                let addresses = hosts.prefix(maximumAddresses).map { RemoteAddress(host: $0, port: port) }
                object.member("addresses", addresses.map { "wss://\($0)" })
            }
            object.member("msg", "REMOTE_IFD")
            object.member("pairing", isPairing)
            object.member("port", port)
        }
    }

    private static func fingerprint(_ identity: String) -> String? {
        if let hash = Hex.decode(identity, limit: 32), hash.count == 32 { return Hex.encode(hash) }
        guard let certificate = PEM.certificate.decode(identity),
            let hash = try? DigestAlgorithm.sha256.hash(certificate)
        else {
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
