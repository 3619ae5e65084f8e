// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import DoorOpening
package import Text
import Vault

/// A PKOC reader in software, with faults. It shares only the messages with the credential side.
package struct ModelReader {
    package enum Fault: Sendable, CaseIterable {
        /// The proof is signed with another key than that of the site.
        case wrongSiteKey
        /// One bit of the proof is wrong.
        case garbledProof
        /// The greeting is sent again in place of the proof.
        case replayedGreeting
        /// A message ends early.
        case cutGreeting
        /// The reader sends nothing after the greeting.
        case silentAfterGreeting
        /// The reader sends nothing after the credential.
        case silentAtEnd
        /// The reader sends "granted" before it has received the credential.
        case earlyGrant
        /// The reader sends its `code` before it has received the credential.
        case earlyAnswer
        /// The reader ends the dialogue with the error "unknown site issuer".
        case refusal
    }

    package enum Reply: Sendable, Equatable { case message([UInt8]), nothing }

    package var site = [UInt8](repeating: 0x51, count: 16)
    package var location = [UInt8](repeating: 0x10, count: 16)
    package var isEncrypted = true
    package var fault: Fault?
    /// 2.0.1: certificate in the greeting, BER lengths.
    package var certificate: [UInt8]?
    package var information: [UInt8] = [3, 1, 0, 0, 0, 1]
    /// The code of the answer to a genuine credential.
    package var code: UInt8 = 3
    /// The public keys of genuine credentials that were presented.
    package private(set) var visitors: [[UInt8]] = []
    /// Every message that the reader has received.
    package private(set) var received: [[UInt8]] = []

    private let signer: [UInt8]
    private let ephemeral: [UInt8]
    private var deviceKey: ECPublicKey?

    /// - Parameters:
    ///   - signer: the private key of the site or of the reader.
    ///   - ephemeral: the private key of this session.
    package init(signer: [UInt8], ephemeral: [UInt8] = Array(repeating: 7, count: 32)) {
        (self.signer, self.ephemeral) = (signer, ephemeral)
    }

    package static func key(_ scalar: [UInt8]) throws(CryptoError) -> ECPrivateKey {
        try ECPrivateKey(Secret(scalar), on: Curve.secp256r1.group)
    }

    private var lengths: PKOCMessage.Lengths { information.count == 6 ? .ber : .plain }

    package func greeting() throws -> [UInt8] {
        var values: [(PKOCMessage.Element, [UInt8])] = [
            (.protocolInformation, information),
            (.readerEphemeralKey, try Self.key(ephemeral).publicKey.compressedPoint), (.location, location),
        ]
        if let certificate { values.append((.certificate, certificate)) }
        values.append((.site, site))
        let message = PKOCMessage.encode(values, lengths)
        return fault == .cutGreeting ? message.dropLast() : message
    }

    package mutating func receive(_ bytes: [UInt8]) throws -> Reply {
        received.append(bytes)
        let message = try PKOCMessage(bytes)
        if let point = message[.deviceEphemeralKey] { return try prove(point) }
        return try judge(message)
    }

    private func transcript(_ device: ECPublicKey) throws -> [UInt8] {
        try site + location + device.compressed + Self.key(ephemeral).publicKey.compressed
    }

    private mutating func prove(_ point: [UInt8]) throws -> Reply {
        let device = try ECPublicKey(point, on: .secp256r1)
        deviceKey = device
        let key = try Self.key(fault == .wrongSiteKey ? Array(repeating: 9, count: 32) : signer)
        var signature = try ECDSA.sign(try transcript(device), with: key, digest: .sha256)
        switch fault {
        case .garbledProof: signature[40] ^= 1
        case .replayedGreeting: return .message(try greeting())
        case .silentAfterGreeting: return .nothing
        case .earlyGrant: return .message([4, 1, 3])
        case .earlyAnswer: return .message([4, 1, code])
        case .refusal: return .message([6, 1, 4])
        default: break
        }
        return .message(PKOCMessage.encode([(.signature, signature)], lengths))
    }

    private mutating func judge(_ outer: PKOCMessage) throws -> Reply {
        var message = outer
        let signed: [UInt8]
        if isEncrypted {
            guard let device = deviceKey, let sealed = outer[.encrypted] else { return .message([4, 1, 5]) }
            let key = try DigestAlgorithm.sha256.hash(try Self.key(ephemeral).sharedSecret(with: device))
            let nonce: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1]
            guard let plain = try AuthenticatedAES.ccm(tagCount: 16).open(sealed, key: key, nonce: nonce) else {
                return .message([4, 1, 7])
            }
            message = try PKOCMessage(plain.withBytes { Array($0) })
            signed = try transcript(device)
        } else {
            signed = try Self.key(ephemeral).publicKey.compressedPoint
        }
        guard let point = message[.publicKey], let signature = message[.signature],
            message[.lastUpdate] != nil,
            try ECDSA.verify(signature, of: signed, with: ECPublicKey(point, on: .secp256r1), digest: .sha256)
        else { return .message([4, 1, 6]) }
        visitors.append(point)
        return fault == .silentAtEnd ? .nothing : .message([4, 1, code])
    }
}

/// A credential key in memory.
package struct ModelKey: CredentialKey {
    package let publicKey: [UInt8]
    private let scalar: [UInt8]

    package init(_ scalar: [UInt8] = Array(repeating: 3, count: 32)) throws {
        self.scalar = scalar
        publicKey = try ModelReader.key(scalar).publicKey.uncompressed
    }

    package func sign(digest: [UInt8]) async throws(Failure) -> [UInt8] {
        try cryptography(ECDSA.sign(digest: digest, with: ModelReader.key(scalar)))
    }
}

/// A credential key that signs only when it is too late.
package struct SlowKey: CredentialKey {
    package let publicKey: [UInt8]

    package init() throws { publicKey = try ModelKey().publicKey }

    package func sign(digest: [UInt8]) async throws(Failure) -> [UInt8] {
        // Ends with the task.
        try? await Task.sleep(for: .seconds(3600))
        return []
    }
}

extension Failure.Code {
    fileprivate static let unusableKey = Self("KeyNotUsable")
}

/// A credential key that cannot sign.
package struct BrokenKey: CredentialKey {
    package let publicKey = [UInt8](repeating: 4, count: 65)
    package init() {}
    package func sign(digest: [UInt8]) async throws(Failure) -> [UInt8] {
        throw Failure(.unusableKey, "the key is gone")
    }
}
