// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import Host
import Text

/// Who may issue the certificates of servers.
package enum Authorities: Sendable, Equatable {
    /// Those of the system, or those in the file that the variable SSL_CERT_FILE names, as with curl(1).
    case system
    /// Only those in a file with certificates in PEM, which is read for each session.
    case file(String)

    /// The maximum number of bytes of a file.
    private static let maximumFile = 1 << 20

    func trust() throws(HTTPFault) -> TLSTrust {
        switch self {
        case .system:
            guard let path = systemEnvironment("SSL_CERT_FILE"), !path.isEmpty else { return .system }
            return try Authorities.file(path).trust()
        case .file(let path):
            guard case .bytes(let certificates) = PlainFile.read(path, limit: Self.maximumFile) else {
                let words = "the file \(path) has no certificates in PEM, or cannot be read"
                throw .tls(.certificate(words), words)
            }
            return .authorities(certificates)
        }
    }
}

/// Who may be the server of a connection.
package enum TLSTrust: Sendable {
    /// Each server whose certificate is issued by an authority of the system.
    case system
    /// Only servers whose certificate is issued by an authority in these certificates in PEM.
    case authorities([UInt8])
    /// A service or an eID-Server. The issuer of its certificate is not checked: the description of the service, which the
    /// terminal certificate confirms, names the hash of the certificate. TR-03124-1, 2.7.3.
    case service(PreSharedKey?, isDeveloperMode: Bool)

    /// A key that the service has given to this client and to the eID-Server. TR-03124-1, 2.5.
    package final class PreSharedKey: Sendable {
        /// 1 to 255 bytes without a zero byte.
        package let identity: [UInt8]
        private let key: Secret

        /// Takes the key out of `key`, which is wiped.
        package init(identity: [UInt8], key: inout [UInt8]) {
            self.identity = identity
            self.key = Secret(key)
            key.wipe()
        }

        /// Lends the key to `body`, which must not keep it.
        package func withKey<R>(_ body: (UnsafeRawBufferPointer) -> R) -> R { key.withBytes(body) }
    }
}

/// What a handshake has shown, for the rules of `TLSConditions`.
package struct TLSHandshake: Sendable, Equatable {
    /// A key by its kind and its number of bits.
    package struct Key: Sendable, Equatable {
        package let isElliptic: Bool
        package let bits: Int

        package init(isElliptic: Bool, bits: Int) { (self.isElliptic, self.bits) = (isElliptic, bits) }

        /// TR-03116-4, 2.
        var isTooShort: Bool { bits < TLSProfile.minimumBits(isElliptic: isElliptic) }
    }

    /// The certificate of the server, in DER.
    package let certificate: [UInt8]
    package let key: Key
    /// The key agreement; nil in a resumed handshake, and with a pre-shared key.
    package let ephemeralKey: Key?
    package let isResumed: Bool
    /// The version on the wire, such as 0x0303 for TLS 1.2.
    package let version: UInt16

    package init(certificate: [UInt8], key: Key, ephemeralKey: Key?, isResumed: Bool, version: UInt16) {
        self.certificate = certificate
        self.key = key
        self.ephemeralKey = ephemeralKey
        self.isResumed = isResumed
        self.version = version
    }
}

/// What the connections to a service must fulfil. badged-network checks this before it sends anything, and badged checks
/// it again by what badged-network has reported. TR-03124-1, 2.7.3; TR-03116-4, 2.
package struct TLSConditions: Sendable, Equatable {
    /// The TLS certificates that the description names, by their hashes.
    package struct Listed: Sendable, Equatable {
        package let digest: DigestAlgorithm
        package let hashes: Set<[UInt8]>

        package init(digest: DigestAlgorithm, hashes: Set<[UInt8]>) { (self.digest, self.hashes) = (digest, hashes) }

        package func contains(_ certificate: [UInt8]) -> Bool {
            guard let hash = try? digest.hash(certificate) else { return false }
            return hashes.contains(hash)
        }
    }

    /// Whether new connections must resume a TLS session.
    package var requiresResumption = false
    /// nil until the description is known.
    package var listed: Listed?

    package init() {}

    /// The rules that a handshake breaks. `agreesKey`: whether the profile has a key agreement.
    package func faults(of handshake: TLSHandshake, agreesKey: Bool) -> [TLSFault] {
        var faults: [TLSFault] = []
        if handshake.version != 0x0303 { faults.append(.certificate("the connection has not TLS 1.2")) }
        if handshake.key.isTooShort { faults.append(.certificateKeyTooShort(bits: handshake.key.bits)) }
        if agreesKey, !handshake.isResumed, handshake.ephemeralKey?.isTooShort != false {
            faults.append(.ephemeralKeyTooShort(bits: handshake.ephemeralKey?.bits ?? 0))
        }
        if requiresResumption, !handshake.isResumed { faults.append(.notResumed) }
        if let listed, !listed.contains(handshake.certificate) { faults.append(.notListed) }
        return faults
    }
}

/// The rule that a connection broke, other than those that libssl enforces.
package enum TLSFault: Sendable, Equatable {
    /// The certificate or its chain is invalid; words for the log.
    case certificate(String)
    case certificateKeyTooShort(bits: Int)
    case ephemeralKeyTooShort(bits: Int)
    /// The description of the service does not name the hash of the certificate.
    case notListed
    /// The attached eID-Server does not resume the TLS session of the TcToken.
    case notResumed

    var text: Phrase {
        switch self {
        case .certificate(let words): Phrase(verbatim: words)
        case .certificateKeyTooShort(let bits): "the key of its certificate has only \(bits) bits"
        case .ephemeralKeyTooShort(let bits): "its key agreement has only \(bits) bits"
        case .notListed: "its certificate is not listed in the description of the service"
        case .notResumed: "it does not resume the TLS session"
        }
    }
}

/// The cipher suites, groups and signatures that a connection may use. TR-03116-4, 2. Both profiles use only TLS 1.2,
/// because their suites belong to TLS 1.2.
package struct TLSProfile: Sendable, Equatable {
    /// OpenSSL's names, the preferred suite first.
    package let suites: String
    /// nil when no suite of the profile uses a group.
    package let groups: String?
    package let signatures: String

    /// For a service, and for an eID-Server that is attached to a service.
    package static let standard = TLSProfile(
        suites: """
            ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:DHE-RSA-AES256-GCM-SHA384:\
            ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:DHE-RSA-AES128-GCM-SHA256
            """,
        groups: "brainpoolP512r1:brainpoolP384r1:brainpoolP256r1:secp384r1:prime256v1",
        signatures: """
            RSA+SHA512:RSA+SHA384:RSA+SHA256:DSA+SHA512:DSA+SHA384:DSA+SHA256:\
            ECDSA+SHA512:ECDSA+SHA384:ECDSA+SHA256
            """
    )

    /// For an eID-Server with a pre-shared key. RFC 4279, RFC 5487.
    package static let preSharedKey = TLSProfile(
        suites: "RSA-PSK-AES256-GCM-SHA384:RSA-PSK-AES128-GCM-SHA256:RSA-PSK-AES256-CBC-SHA",
        groups: nil,
        signatures: "RSA+SHA512:RSA+SHA384:RSA+SHA256"
    )

    /// The minimum number of bits of a key in a certificate or a key agreement. TR-03116-4, 2.
    package static func minimumBits(isElliptic: Bool) -> Int { isElliptic ? 250 : 3000 }
}
