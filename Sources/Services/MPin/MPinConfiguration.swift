// SPDX-License-Identifier: GPL-3.0-or-later
package import HTTP
import Text

/// What all calls to M-Pin servers share.
package struct MPinConfiguration: Sendable {
    package var limits = HTTPLimits()
    package var network = Network()
    /// The header User-Agent, unless the client has set another one.
    package var userAgent: String

    /// The domains to which the administrator allows requests. They limit every client; if there are none, clients
    /// choose.
    package var domains = TrustedDomains()
    /// Whether requests may go to this computer and to private networks.
    package var allowsPrivateServers = false

    package init(userAgent: String) { self.userAgent = userAgent }
}

/// A header line that the client adds to every request.
package struct CustomHeader: Sendable, Equatable {
    package let name: String
    package let value: String

    /// The maximum number of headers of a client.
    package static let maximumNumber = 32

    /// Takes a header; nil if it is malformed or one that belongs to the connection. RFC 9110, 5.1 and 5.5.
    package init?(_ name: String, _ value: String) {
        guard (1...128).contains(name.utf8.count), name.utf8.allSatisfy(Self.isTokenCharacter),
            value.utf8.count <= 4096, value.utf8.allSatisfy({ (0x20...0x7E).contains($0) }),
            !Self.reserved.contains(name.lowercased())
        else { return nil }
        self.name = name
        self.value = value
    }

    /// Headers that badged sets or that decide about the connection.
    private static let reserved: Set<String> = [
        "accept", "connection", "content-length", "content-type", "expect", "host", "keep-alive", "proxy-authorization",
        "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
    ]

    private static func isTokenCharacter(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }
}

/// The domains to which a client allows requests.
package struct TrustedDomains: Sendable, Equatable {
    /// In lower case.
    package private(set) var names: [String] = []

    /// The maximum number of domains of a client.
    package static let maximumNumber = 64

    package init() {}

    /// Adds a domain, with all names below it.
    /// - Returns: false if the text is no name of a host, or if there are too many.
    package mutating func add(_ domain: String) -> Bool {
        let name = domain.lowercased()
        if names.contains(name) { return true }
        guard names.count < Self.maximumNumber, name.utf8.count <= 253,
            let origin = WebAddress("https://\(name)")?.origin, origin.host == name, origin.port == 443
        else { return false }
        names.append(name)
        return true
    }

    /// Refuses an address outside of the domains. Without domains every host is trusted, but only https, or http to this
    /// computer.
    func check(_ address: WebAddress) throws(Failure) {
        let host = address.origin.host
        guard names.isEmpty else {
            guard address.isSecure else { throw Failure(.untrustedDomain, "\(host) is not reached by https") }
            guard names.contains(where: { host == $0 || host.hasSuffix("." + $0) }) else {
                throw Failure(.untrustedDomain, "\(host) is not in a trusted domain")
            }
            return
        }
        guard address.isConfidential else {
            throw Failure(.untrustedDomain, "\(host) is not reached by https: use an https address")
        }
    }
}
