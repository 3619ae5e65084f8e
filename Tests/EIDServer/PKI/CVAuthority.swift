// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import Glibc
import ISO7816
import Synchronization
import Text

/// Issues the CV certificates of the service with the keys of Tests/PKI, whose root the virtual card trusts.
/// TR-03110-3 C.
package final class CVAuthority: Sendable {
    /// A key that signs or is certified.
    enum KeyName: String, CaseIterable, Sendable {
        case root = "cvca"
        case nextRoot = "cvca-next"
        case documentVerifier = "dv"
        case terminal
        case sector1 = "sector-1"
        case sector2 = "sector-2"
        /// Untrusted keys; they are in no file.
        case rogueRoot
        case rogueDocumentVerifier

        var isInFile: Bool { self != .rogueRoot && self != .rogueDocumentVerifier }
    }

    package struct Unreadable: Error {
        package let path: String
    }

    static let rootName = "DETESTeIDBG00001"
    static let nextRootName = "DETESTeIDBG00002"
    static let documentVerifierName = "DEDVBADGED00001"
    static let terminalName = "DEATBADGED00001"
    static let digest = DigestAlgorithm.sha256

    /// The self-signed root, which the card and the client have to trust.
    package let root: [UInt8]
    /// The second root. A client has to trust it for `chain=late`, in which the link certificate comes after its checks.
    package let nextRoot: [UInt8]
    /// The link certificate, with which the first root certifies the second.
    let link: [UInt8]
    /// The X.509 certificate of the authority that signs documents.
    let documentAuthority: [UInt8]
    private let keys: [KeyName: Key]
    /// The signatures of issued certificates, since a service keeps its certificate for days.
    private let signatures = Mutex<[Issue: [UInt8]]>([:])

    private struct Issue: Hashable {
        let signer: KeyName
        let body: [UInt8]

        /// The maximum number of stored signatures.
        static let capacity = 256
    }

    private final class Key: Sendable {
        let key: ECPrivateKey
        init(_ key: consuming ECPrivateKey) { self.key = key }
    }

    /// Reads a folder like Tests/PKI.
    package init(folder: String) throws {
        root = try Self.read("\(folder)/cvca.cvcert")
        nextRoot = try Self.read("\(folder)/cvca-next.cvcert")
        link = try Self.read("\(folder)/link.cvcert")
        documentAuthority = try Self.read("\(folder)/csca.der")
        var keys: [KeyName: Key] = [:]
        for name in KeyName.allCases {
            keys[name] =
                name.isInFile
                ? Key(try ECPrivateKey(pkcs8: Secret(try Self.read("\(folder)/\(name.rawValue).p8"))))
                : Key(try ECPrivateKey(on: Curve.brainpoolP256r1.group))
        }
        self.keys = keys
    }

    /// The folder Tests/PKI of this checkout.
    package static var folder: String {
        #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(3).joined(separator: "/") + "/PKI"
    }

    private static func read(_ path: String) throws(Unreadable) -> [UInt8] {
        guard let file = fopen(path, "rb") else { throw Unreadable(path: path) }
        defer { fclose(file) }
        var content = [UInt8](repeating: 0, count: 65_536)
        content.removeLast(content.count - fread(&content, 1, content.count, file))
        guard !content.isEmpty else { throw Unreadable(path: path) }
        return content
    }

    private func key(_ name: KeyName) throws(CryptoError) -> Key {
        guard let key = keys[name] else { throw .invalidKey }
        return key
    }

    /// Signs in plain format.
    func sign(_ message: [UInt8], as name: KeyName) throws(CryptoError) -> [UInt8] {
        try ECDSA.sign(message, with: try key(name).key, digest: Self.digest)
    }

    func publicKey(_ name: KeyName) throws(CryptoError) -> ECPublicKey { try key(name).key.publicKey }

    /// The public key of a sector with its domain parameters, for restricted identification.
    func sectorKey(_ name: KeyName = .sector1) throws(CryptoError) -> BERTLV {
        let identifier = RestrictedIdentification.protocolID(Self.digest)
        return try CVPublicKey(identifier: identifier, try publicKey(name), writesParameters: true).object
    }

    /// The content of a certificate.
    struct Order {
        var authority: String
        var signer: KeyName
        var holder: String
        var subject: KeyName
        var chat: CHAT
        var validity: (first: CVDate, last: CVDate)
        var extensions: [BERTLV] = []
        var breaksSignature = false
    }

    /// Issues a certificate and returns the object 7F21.
    func issue(_ order: Order) throws(CryptoError) -> [UInt8] {
        let key = CVPublicKey(
            identifier: TerminalAuthentication.protocolID(Self.digest),
            try publicKey(order.subject),
            writesParameters: order.chat.role == .cvca
        )
        var fields = [
            BERTLV(0x5F29, [0]), BERTLV(0x42, Array(order.authority.utf8)), try key.object,
            BERTLV(0x5F20, Array(order.holder.utf8)), order.chat.object, BERTLV(0x5F25, order.validity.first.bytes),
            BERTLV(0x5F24, order.validity.last.bytes),
        ]
        if !order.extensions.isEmpty { fields.append(BERTLV(0x65, order.extensions)) }
        let body = BERTLV(0x7F4E, fields)
        var signature = try signature(of: Issue(signer: order.signer, body: body.encoded))
        if order.breaksSignature, let last = signature.indices.last { signature[last] ^= 1 }
        return BERTLV(0x7F21, [body, BERTLV(0x5F37, signature)]).encoded
    }

    private func signature(of issue: Issue) throws(CryptoError) -> [UInt8] {
        if let signature = signatures.withLock({ $0[issue] }) { return signature }
        let signature = try sign(issue.body, as: issue.signer)
        signatures.withLock { signatures in
            if signatures.count < Issue.capacity { signatures[issue] = signature }
        }
        return signature
    }

    /// The extensions of a terminal certificate: the hash of the description and the hashes of the sectors.
    /// TR-03110-3 C.3.
    func terminalExtensions(description: [UInt8]) throws(CryptoError) -> [BERTLV] {
        func identifier(_ number: UInt8) -> BERTLV { BERTLV(0x06, OID.certificateExtension + [number]) }
        let sectors = [
            BERTLV(0x80, try Self.digest.hash(try sectorKey(.sector1).encoded)),
            BERTLV(0x81, try Self.digest.hash(try sectorKey(.sector2).encoded)),
        ]
        return [
            BERTLV(0x73, [identifier(1), BERTLV(0x80, try Self.digest.hash(description))]),
            BERTLV(0x73, [identifier(2)] + sectors),
        ]
    }
}
