// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import Text

/// How the engagement came, which is a part of what both sides hash. ISO/IEC 18013-5, 9.1.5.1.
package enum MdocHandover: Sendable, Equatable {
    case qr
    /// The NDEF messages as they came and went, without their length. There is no request in a static handover.
    case nfc(select: [UInt8], request: [UInt8]?)

    fileprivate var value: CBORValue {
        switch self {
        case .qr: .null
        case .nfc(let select, let request): [.bytes(select), request.map { .bytes($0) } ?? .null]
        }
    }
}

/// What binds the proofs of both sides to one session: its transcript, and the own key. The last owner wipes the key.
package final class MdocBinding: Sendable {
    /// SessionTranscript, which signatures of both sides cover. ISO/IEC 18013-5, 9.1.5.1.
    package let transcript: CBORValue
    /// The curve of the keys of the session.
    package var curve: Curve { peer.curve }
    private let key: ECPrivateKey
    private let peer: ECPublicKey
    /// SHA-256 of SessionTranscriptBytes.
    private let salt: [UInt8]

    fileprivate init(
        _ engagement: [UInt8],
        readerKey: [UInt8],
        _ handover: MdocHandover,
        key: consuming ECPrivateKey,
        peer: ECPublicKey
    ) throws(MdocProblem) {
        let transcript: CBORValue = [.tag(24, .bytes(engagement)), .tag(24, .bytes(readerKey)), handover.value]
        salt = try library(DigestAlgorithm.sha256.hash(CBORValue.embedded(transcript).encoding))
        self.transcript = transcript
        self.key = key
        self.peer = peer
    }

    /// The bytes by which a phone proves its key: DeviceAuthenticationBytes. 9.1.3.4.
    /// `namespaces`: DeviceNameSpacesBytes as they came, with tag 24.
    package func deviceAuthentication(docType: String, namespaces: [UInt8]) -> [UInt8] {
        CBORValue.embedded(["DeviceAuthentication", transcript, .text(docType), .encoded(namespaces)]).encoding
    }

    /// On the side of the reader: the key of the MAC by which a phone proves its own key, EMacKey. 9.1.3.5.
    /// - Throws: `.unsupported` if the key of the document is on another curve than those of the session.
    package func macKey(with deviceKey: ECPublicKey) throws(MdocProblem) -> Secret {
        guard deviceKey.curve == curve else {
            throw .unsupported("the key of the document has another curve than the session")
        }
        return try derive(try library(key.sharedSecret(with: deviceKey)), "EMacKey")
    }

    /// On the side of the phone: the same key.
    package func macKey(of deviceKey: borrowing ECPrivateKey) throws(MdocProblem) -> Secret {
        guard deviceKey.group.curve == curve else {
            throw .unsupported("the key of the document has another curve than the session")
        }
        let shared: Secret
        do {
            shared = try deviceKey.sharedSecret(with: peer)
        } catch {
            throw .library(error)
        }
        return try derive(shared, "EMacKey")
    }

    /// The secret that both sides share, from which the key for each direction is derived.
    fileprivate func sharedSecret() throws(MdocProblem) -> Secret {
        try library(key.sharedSecret(with: peer))
    }

    fileprivate func derive(_ shared: borrowing Secret, _ info: String) throws(MdocProblem) -> Secret {
        try Self.derive(shared, salt: salt, info, count: 32)
    }

    fileprivate static func derive(
        _ shared: borrowing Secret,
        salt: [UInt8],
        _ info: String,
        count: Int
    ) throws(MdocProblem) -> Secret {
        do {
            return try DigestAlgorithm.sha256.hkdf(shared, salt: salt, info: Array(info.utf8), count: count)
        } catch {
            throw .library(error)
        }
    }
}

/// The encrypted session of a reader with a phone, for either side. ISO/IEC 18013-5, 9.1.1.
///
/// A message that cannot be decrypted is the end of the session: nothing is tried twice. The keys are wiped with the
/// value, and with the last owner of `binding`.
package struct MdocSession: ~Copyable {
    package enum Side: UInt8, Sendable { case reader, phone }

    /// What proofs of this session are checked against. It may be used on another thread.
    package let binding: MdocBinding
    private let side: Side
    /// EReaderKey as it was sent, without tag 24.
    private let readerKey: [UInt8]
    private let sendKey: Secret
    private let receiveKey: Secret
    private var sent: UInt32 = 0
    private var received: UInt32 = 0
    private var isOver = false

    private init(_ binding: MdocBinding, _ side: Side, readerKey: [UInt8]) throws(MdocProblem) {
        self.binding = binding
        self.side = side
        self.readerKey = readerKey
        let shared = try binding.sharedSecret()
        let ofReader = try binding.derive(shared, "SKReader")
        let ofPhone = try binding.derive(shared, "SKDevice")
        switch side {
        case .reader:
            sendKey = ofReader
            receiveKey = ofPhone
        case .phone:
            sendKey = ofPhone
            receiveKey = ofReader
        }
    }

    /// Makes the session of a reader, with a new key on the curve of the phone's key.
    package init(_ engagement: DeviceEngagement, _ handover: MdocHandover) throws(MdocProblem) {
        let curve = engagement.key.curve
        let key = try library(ECPrivateKey(on: try curve.group))
        try self.init(engagement, handover, readerKey: key)
    }

    /// Makes the session of a reader with this key on the curve of the phone's key, for tests and recordings.
    package init(
        _ engagement: DeviceEngagement,
        _ handover: MdocHandover,
        readerKey key: consuming ECPrivateKey
    ) throws(MdocProblem) {
        guard let readerKey = key.publicKey.cose?.encoding, key.group.curve == engagement.key.curve else {
            throw .unsupported("the curve of the phone's key")
        }
        let binding = try MdocBinding(
            engagement.encoded,
            readerKey: readerKey,
            handover,
            key: key,
            peer: engagement.key
        )
        try self.init(binding, .reader, readerKey: readerKey)
    }

    /// Makes the session of a phone from the first message of a reader, which `read` then decrypts.
    /// `engagement`: the bytes that the phone has shown.
    /// `key`: the key in them.
    package init(
        phone engagement: [UInt8],
        _ handover: MdocHandover,
        key: consuming ECPrivateKey,
        establishment message: [UInt8]
    ) throws(MdocProblem) {
        let item = try reading(CBOR(message))
        guard let (tag, content) = item["eReaderKey"]?.tagged, tag == 24, let readerKey = content.bytes else {
            throw .malformed("the first message of the session has no key")
        }
        let peer = try ECPublicKey(cose: try reading(CBOR(readerKey)))
        guard peer.curve == key.group.curve else { throw .malformed("the key of the reader has another curve") }
        let binding = try MdocBinding(engagement, readerKey: readerKey, handover, key: key, peer: peer)
        try self.init(binding, .phone, readerKey: readerKey)
    }

    /// What a phone as GATT client reads before it writes, to know the reader: 16 bytes. 8.3.3.1.1.4.
    package static func ident(_ engagement: DeviceEngagement) throws(MdocProblem) -> [UInt8] {
        try MdocBinding.derive(Secret(engagement.keyBytes), salt: [], "BLEIdent", count: 16).withBytes { Array($0) }
    }

    // MARK: Messages

    /// The first message of a reader, SessionEstablishment, with a DeviceRequest. 9.1.1.4.
    package mutating func establishment(_ request: borrowing Secret) throws(MdocProblem) -> [UInt8] {
        let data = try encrypt(request)
        let message: CBORValue = ["eReaderKey": .tag(24, .bytes(readerKey)), "data": .bytes(data)]
        return message.encoding
    }

    /// A further message, SessionData, with or without a status. 9.1.1.4.
    package mutating func message(_ plain: borrowing Secret, status: Int64? = nil) throws(MdocProblem) -> [UInt8] {
        var pairs: [(CBORValue, CBORValue)] = [("data", .bytes(try encrypt(plain)))]
        if let status { pairs.append(("status", .integer(status))) }
        return CBORValue.map(pairs).encoding
    }

    /// The message that ends the session: 20 is the usual end; 10 and 11 say that a message could not be decrypted, or
    /// was no CBOR. 9.1.1.4, table 20.
    package static func status(_ number: Int64) -> [UInt8] { (["status": .integer(number)] as CBORValue).encoding }

    private mutating func encrypt(_ plain: borrowing Secret) throws(MdocProblem) -> [UInt8] {
        guard sent < .max else { throw .session("the session has too many messages", answer: 20) }
        sent += 1
        do {
            return try AuthenticatedAES.gcm.seal(plain, key: sendKey, nonce: Self.nonce(side, sent))
        } catch {
            throw .library(error)
        }
    }

    /// A message of the other side.
    package struct Received: ~Copyable, Sendable {
        /// The decrypted message; nil for a status alone.
        package let data: Secret?
        package let status: Status
    }

    /// The status of a session, ISO/IEC 18013-5, table 20.
    package enum Status: Sendable, Equatable {
        case none
        /// The other side could not decrypt (10) or read (11) a message, or reports another error.
        case error(UInt64)
        /// The session is over.
        case termination
    }

    /// Reads a SessionData, or on the side of the phone the SessionEstablishment.
    /// - Throws: `.session`; nothing can be read after that.
    package mutating func read(_ message: [UInt8]) throws(MdocProblem) -> Received {
        let item: CBOR
        do {
            item = try CBOR(message)
        } catch {
            throw end("a message of the session is no CBOR: \(error.text)", answer: 11)
        }
        guard item.kind == .map else { throw end("a message of the session is no map", answer: 11) }
        var status = Status.none
        if let number = item["status"] {
            guard let number = number.unsigned else { throw end("the status of the session is no number", answer: 11) }
            status = number == 20 ? .termination : .error(number)
        }
        guard let data = item["data"] else {
            guard status != .none else { throw end("a message of the session is empty", answer: 11) }
            return Received(data: nil, status: status)
        }
        guard let sealed = data.bytes else { throw end("the data of the session is no byte string", answer: 11) }
        return Received(data: try decrypt(sealed), status: status)
    }

    private mutating func decrypt(_ sealed: [UInt8]) throws(MdocProblem) -> Secret {
        guard !isOver, received < .max else { throw end("the session is over", answer: 20) }
        received += 1
        let other: Side = side == .reader ? .phone : .reader
        let plain: Secret?
        do {
            plain = try AuthenticatedAES.gcm.open(sealed, key: receiveKey, nonce: Self.nonce(other, received))
        } catch {
            throw .library(error)
        }
        guard let plain else { throw end("a message of the session cannot be decrypted", answer: 10) }
        return plain
    }

    private mutating func end(_ text: String, answer: Int64) -> MdocProblem {
        isOver = true
        return .session(text, answer: answer)
    }

    /// The identifier of the side that sends, and the number of its message. 9.1.1.5.
    private static func nonce(_ side: Side, _ number: UInt32) -> [UInt8] {
        [0, 0, 0, 0, 0, 0, 0, side.rawValue] + withUnsafeBytes(of: number.bigEndian) { Array($0) }
    }
}
