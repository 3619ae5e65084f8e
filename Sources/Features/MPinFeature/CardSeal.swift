// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import Concurrency
import Crypto
import MPin
import Server
import Store
import Text

/// Seals tokens under the key of a Keycard, which is wiped when the seal is released.
/// docs/protocol/mpin.md, A token under a card.
final class CardSeal: Sendable {
    let keyUID: [UInt8]
    private let key: Secret

    private static let saltCount = 32
    /// Each salt makes another key, which seals one token. So the nonce can be the same.
    private static let nonce = [UInt8](repeating: 0, count: 12)
    private static let label = Array("badged M-Pin token".utf8)

    init(keyUID: [UInt8], _ key: consuming Secret) {
        self.keyUID = keyUID
        self.key = key
    }

    /// Returns the salt, and the token as AES-256-GCM has sealed it. `owner` names the user and the purpose of the
    /// token.
    func seal(_ token: borrowing Secret, of owner: String) throws(CryptoError) -> Secret {
        let salt = try Random.bytes(Self.saltCount)
        let sealed = try AuthenticatedAES.gcm.seal(
            token,
            key: try tokenKey(salt),
            nonce: Self.nonce,
            authenticating: Array(owner.utf8)
        )
        return Secret(salt + sealed)
    }

    /// Opens a token; nil if another key has sealed it, or for another owner.
    func open(_ sealed: borrowing Secret, of owner: String) throws(CryptoError) -> SecretBox? {
        let bytes = sealed.withBytes { Array($0) }
        guard bytes.count > Self.saltCount else { return nil }
        let token = try AuthenticatedAES.gcm.open(
            Array(bytes[Self.saltCount...]),
            key: try tokenKey(Array(bytes[..<Self.saltCount])),
            nonce: Self.nonce,
            authenticating: Array(owner.utf8)
        )
        guard let token else { return nil }
        return SecretBox(token)
    }

    private func tokenKey(_ salt: [UInt8]) throws(CryptoError) -> Secret {
        try DigestAlgorithm.sha256.hkdf(key, salt: salt, info: Self.label, count: 32)
    }
}

/// Tokens of users, which the store alone keeps, or which a card seals, too.
extension MPinFeature {
    /// Borrows the card that seals the tokens of a user, and asks for its PIN; nil for a user without a card.
    func seal(_ run: UserRun) async throws(Failure) -> CardSeal? {
        guard let keyUID = run.user.cardUID else { return nil }
        return try await borrowSeal(run.workflow, keyUID: keyUID)
    }

    /// Refuses a user whose token is lost, before a card or a PIN is asked for.
    func requireToken(_ dialogue: Dialogue, for purpose: TokenPurpose = .login) async throws(Failure) {
        guard try await users.token(dialogue.name, for: purpose) != nil else {
            throw Failure(.storageError, Self.lost(purpose))
        }
    }

    /// Borrows a card. Without `keyUID` any card will do, and without `reader` it may be in any reader.
    func borrowSeal(
        _ workflow: Workflow,
        keyUID: [UInt8]?,
        reader: String? = nil
    ) async throws(Failure) -> CardSeal {
        guard let cards else {
            throw Failure(.storageError, "badged uses no card readers, so no card can seal the token")
        }
        let found = try await cards.sealingKey(for: workflow, keyUID: keyUID, readerName: reader)
        guard let key = found.key.take() else { throw .cancelled }
        return CardSeal(keyUID: found.keyUID, key)
    }

    /// Returns the token of a user.
    /// - Throws: `.storageError` if it is lost, or if another card or wallet has sealed it.
    func token(
        _ dialogue: Dialogue,
        for purpose: TokenPurpose = .login,
        _ seal: CardSeal?
    ) async throws(Failure) -> SecretBox {
        let stored = try await users.token(dialogue.name, for: purpose)
        guard let stored else { throw Failure(.storageError, Self.lost(purpose)) }
        guard let seal else { return stored }
        guard let sealed = stored.take() else { throw Failure(.storageError, Self.lost(purpose)) }
        let opened = try serverValues(seal.open(sealed, of: Self.owner(dialogue, purpose)))
        guard let opened else {
            let reason: Phrase = "its duress PIN was used, or the token is damaged"
            throw Failure(.storageError, "the card does not open the token: \(reason)")
        }
        return opened
    }

    /// Keeps a user with a new token.
    func keep(
        _ user: StoredUser,
        _ dialogue: Dialogue,
        token: SecretBox,
        for purpose: TokenPurpose = .login,
        _ seal: CardSeal?
    ) async throws(Failure) {
        var kept = token
        if let seal {
            guard let plain = token.take() else { throw Failure.ofServer(.invalidKey) }
            kept = try serverValues(SecretBox(try seal.seal(plain, of: Self.owner(dialogue, purpose))))
        }
        let box = kept
        try await users.keep(user, dialogue.name, token: box, for: purpose)
    }

    private static func owner(_ dialogue: Dialogue, _ purpose: TokenPurpose) -> String {
        "\(dialogue.name)/\(purpose == .login ? "login" : "signing")"
    }

    private static func lost(_ purpose: TokenPurpose) -> Phrase {
        switch purpose {
        case .login: "the token of the user is lost: delete the user and register again"
        case .signing: "the token of the user is lost: send MPIN_START_DVS with a new token"
        }
    }
}
