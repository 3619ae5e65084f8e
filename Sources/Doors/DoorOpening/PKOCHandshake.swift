// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
import Taps
import Text
import Vault

/// The dialogue of a PKOC credential with a reader over Bluetooth, without input and output.
///
/// The reader sends the first message. In the encrypted flow, nothing about the credential is sent before the reader
/// has proved that it belongs to the site. The flow without encryption is used only for sites that are marked as
/// legacy.
package struct PKOCHandshake: ~Copyable {
    package enum Step: Sendable, Equatable {
        /// Send this message and wait for the next one.
        case send([UInt8])
        /// Sign this digest with `chosen`, and call `signed`.
        case sign(digest: [UInt8])
        case finished(Answer)
    }

    /// What the reader has answered. It is not authenticated.
    package enum Answer: Sendable, Equatable {
        case response(UInt8)
        /// The same before the reader has seen the credential: it can only refuse.
        case refused(UInt8)
        /// The reader has ended the dialogue with this error.
        case error(UInt8)
    }

    private enum State {
        case greeting
        case proof(Greeting, ECPublicKey)
        case signature(Greeting)
        case response
        case finished
    }

    /// What the first message of the reader says.
    private struct Greeting {
        let site: [UInt8]
        let location: [UInt8]
        let ephemeral: ECPublicKey
        let information: [UInt8]
        let lengths: PKOCMessage.Lengths
    }

    private let credentials: [DoorCredential]
    private let ephemeral: ECPrivateKey
    private let now: UInt32
    private var state = State.greeting
    /// The encrypted channel; nil in the flow without encryption.
    private var session: PKOCSession?
    /// The credential for the site of the reader; nil before the first message.
    package private(set) var chosen: DoorCredential?

    /// - Parameters:
    ///   - credentials: the credentials that may be used; the first one for the site of the reader is.
    ///   - ephemeral: a new P-256 key.
    ///   - now: seconds since 1970.
    package init(_ credentials: [DoorCredential], ephemeral: consuming ECPrivateKey, now: UInt32) {
        self.credentials = credentials
        self.now = now
        self.ephemeral = ephemeral
    }

    /// Takes a message of the reader.
    /// - Parameters:
    ///   - bytes: the whole message.
    ///   - dialect: how the message was transmitted.
    /// - Returns: what to do next.
    /// - Throws: why the dialogue has failed. No message must be sent afterwards.
    package mutating func receive(_ bytes: [UInt8], _ dialect: PKOCFraming.Dialect) throws(PKOCFailure) -> Step {
        let state = state
        self.state = .finished
        let message = try PKOCMessage(bytes)
        if let error = message[.error]?.first { return .finished(.error(error)) }
        if let code = message[.response]?.first {
            if case .response = state { return .finished(.response(code)) }
            guard code != PKOCResponse.completed.rawValue, code != PKOCResponse.granted.rawValue else {
                throw .unexpectedMessage
            }
            return .finished(.refused(code))
        }
        switch state {
        case .greeting: return try greet(message, dialect)
        case .proof(let greeting, let key): return try check(message, greeting, key)
        case .signature, .response, .finished: throw .unexpectedMessage
        }
    }

    private mutating func greet(_ message: PKOCMessage, _ dialect: PKOCFraming.Dialect) throws(PKOCFailure) -> Step {
        guard let point = message[.readerEphemeralKey], let site = message[.site], let location = message[.location]
        else { throw .unexpectedMessage }
        guard let key = try? ECPublicKey(compressedPoint: point, on: .secp256r1) else { throw .malformed }
        let certificate = try message[.certificate].map { bytes throws(PKOCFailure) in
            guard let certificate = try? ReaderCertificate(bytes) else { throw .malformed }
            return certificate
        }
        let found = credentials.lazy.compactMap { credential in
            credential.sites.first { $0.covers(site: site, location: location) }.map { (credential, $0) }
        }.first
        guard let (credential, known) = found else { throw .unknownSite }
        chosen = credential
        if known.revokes(location) { throw .readerRevoked }
        var information = message[.protocolInformation] ?? []
        // Only information of a length that readers support is sent back.
        if ![2, 5, 6].contains(information.count) { information = [3, 0, 0, 0, 1] }
        let isNew = dialect == .fragments || certificate != nil || information.count == 6
        let greeting = Greeting(
            site: site,
            location: location,
            ephemeral: key,
            information: information,
            lengths: isNew ? .ber : .plain
        )
        if known.isLegacy {
            state = .signature(greeting)
            return .sign(digest: try Self.digest(point))
        }
        let readerKey = try known.readerKey(certificate, location: location, at: now)
        state = .proof(greeting, readerKey)
        let values: [(PKOCMessage.Element, [UInt8])] = [
            (.deviceEphemeralKey, ephemeral.publicKey.uncompressed), (.protocolInformation, information),
        ]
        return .send(PKOCMessage.encode(values, greeting.lengths))
    }

    private mutating func check(
        _ message: PKOCMessage,
        _ greeting: Greeting,
        _ key: ECPublicKey
    ) throws(PKOCFailure) -> Step {
        guard let signature = message[.signature] else { throw .unexpectedMessage }
        let transcript = PKOCTranscript(
            site: greeting.site,
            location: greeting.location,
            credential: ephemeral.publicKey,
            reader: greeting.ephemeral
        )
        guard let signed = transcript?.bytes else { throw .malformed }
        guard let isGenuine = try? ECDSA.verify(signature, of: signed, with: key, digest: .sha256) else {
            throw .cryptography
        }
        guard isGenuine else { throw .wrongSignature }
        guard let new = try? PKOCSession(own: ephemeral, peer: greeting.ephemeral) else { throw .cryptography }
        session = consume new
        state = .signature(greeting)
        return .sign(digest: try Self.digest(signed))
    }

    private static func digest(_ bytes: [UInt8]) throws(PKOCFailure) -> [UInt8] {
        guard let digest = try? DigestAlgorithm.sha256.hash(bytes) else { throw .cryptography }
        return digest
    }

    /// Takes the signature for the digest of `.sign`, r and s.
    /// - Returns: the message to send; the next message is the answer of the reader.
    package mutating func signed(_ signature: [UInt8]) throws(PKOCFailure) -> [UInt8] {
        guard case .signature(let greeting) = state, let chosen, chosen.key.publicKey.count == 65, signature.count == 64
        else {
            state = .finished
            throw .key(nil)
        }
        state = .finished
        let values: [(PKOCMessage.Element, [UInt8])] = [
            (.publicKey, chosen.key.publicKey), (.signature, signature),
            (.lastUpdate, chosen.lastUpdate.bigEndianBytes), (.protocolInformation, greeting.information),
        ]
        let message = PKOCMessage.encode(values, greeting.lengths)
        guard var session = session.take() else {
            state = .response
            return message
        }
        guard let sealed = try? session.seal(Secret(message)) else { throw .cryptography }
        state = .response
        return PKOCMessage.encode([(.encrypted, sealed)], greeting.lengths)
    }
}

/// The response codes of readers that mean something to the credential.
package enum PKOCResponse: UInt8, Sendable {
    case unknown = 0
    case completed = 1
    case denied = 2
    case granted = 3
    case notRecognised = 8
}
