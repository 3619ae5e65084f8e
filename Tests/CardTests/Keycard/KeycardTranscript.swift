// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Foundation
import HDWallet
import ISO7816
import Keycard
import Synchronization
import TestSupport
import Testing
import Text

@testable import VirtualKeycard

/// A recorded dialogue with a real applet. Tests/Vectors/keycard-*.json name their source.
struct Transcript: Decodable {
    struct Step: Decodable {
        let step: String
        let command: String
        let response: String
        let iv: String?
        let client_ephemeral_private: String?
        let challenge: String?
        let salt: String?
        let plain_command: String?
        let plain_response: String?
        let pairing_key: String?

        var answer: [UInt8] { hex(response) }
    }

    let ca_public: String?
    let pairing_secret: String?
    let steps: [Step]

    static func load(_ name: String) throws -> Transcript {
        try vectors("\(name).json", as: Transcript.self)
    }
}

/// Random numbers that were recorded, in their order. A request for another length fails.
final class RecordedRandom: Sendable {
    private let values: Mutex<[[UInt8]]>

    init(_ values: [[UInt8]]) { self.values = Mutex(values) }

    var isUsedUp: Bool { values.withLock { $0.isEmpty } }

    var source: KeycardRandom {
        KeycardRandom { count throws(CryptoError) in
            let value = self.values.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            guard let value, value.count == count else { throw .library }
            return Secret(value)
        }
    }
}

/// A card that answers the recorded commands of some steps, in their order, and no others.
final class RecordedCard: CardChannel {
    private let steps: Mutex<[Transcript.Step]>

    init(_ transcript: Transcript, steps: [Int]) { self.steps = Mutex(steps.map { transcript.steps[$0] }) }

    var isUsedUp: Bool { steps.withLock { $0.isEmpty } }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        let step = steps.withLock { $0.isEmpty ? nil : $0.removeFirst() }
        #expect(hex(command.bytes) == step?.command.uppercased(), "\(step?.step ?? "behind the last step")")
        guard let step, let answer = ResponseAPDU(bytes: step.answer) else { throw .mute }
        return answer
    }
}

/// A public key of the recorded card. Its private key is not known, but those of the terminal are.
struct RecordedKey: AgreementKey {
    let publicKey: PublicKey
    let terminalKeys: [[UInt8]]

    func sharedX(with peer: PublicKey) throws(CryptoError) -> Secret {
        for bytes in terminalKeys {
            let key = try PrivateKey(Secret(bytes))
            if key.publicKey == peer { return try key.sharedX(with: publicKey) }
        }
        throw .invalidKey
    }
}

/// Recorded keys and signatures, in their order.
final class RecordedCardSources: Sendable {
    private let keys: Mutex<[RecordedKey]>
    private let signatures: Mutex<[[UInt8]]>
    private let random: RecordedRandom

    init(random: [[UInt8]], keys: [RecordedKey], signatures: [[UInt8]]) {
        self.random = RecordedRandom(random)
        self.keys = Mutex(keys)
        self.signatures = Mutex(signatures)
    }

    var isUsedUp: Bool { random.isUsedUp && keys.withLock { $0.isEmpty } && signatures.withLock { $0.isEmpty } }

    var sources: CardSources {
        CardSources(
            random: random.source,
            agreementKey: { () throws(CryptoError) in
                guard let key = self.keys.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { throw .library }
                return key
            },
            sign: { (hash, key) throws(CryptoError) in
                guard let bytes = self.signatures.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else {
                    throw .library
                }
                // The recorded signature must be one over this hash by this key.
                let isValid = try Signature(der: bytes).isValid(for: hash, by: key.publicKey)
                guard isValid else { throw .invalidKey }
                return bytes
            }
        )
    }
}
