// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import ISO7816
import Text

/// How a card has proven its credential.
package enum AliroPhase: String, Sendable {
    /// By a signature with its key.
    case standard
    /// By the key that the card has shared with the readers since an earlier tap.
    case fast
}

/// A public key whose private key the card has proven to have.
package struct AliroCredential: Sendable {
    package let phase: AliroPhase
    /// On P-256.
    package let key: ECPublicKey
    /// The 16 random bytes of this tap.
    package let transaction: [UInt8]
    /// For the fast phase of later taps; nil after the fast phase.
    package let bond: AliroBond?
}

/// The result of reading a card.
package enum AliroReading: Sendable {
    case credential(AliroCredential)
    /// The card has presented no credential.
    case failed(AliroProblem)
}

/// The reader's side of the expedited phase of Aliro 1.0 with one card on one connection.
///
/// A card that was read before may prove its credential in AUTH0 (fast phase). Otherwise AUTH1 follows, in which first
/// the reader and then the card signs (standard phase).
package struct AliroReader: Sendable {
    private let connection: any CardChannel
    private let channel: CompletingChannel
    /// The card's answer to SELECT.
    package let application: AliroApplication

    private init(_ connection: any CardChannel, _ application: AliroApplication) {
        self.connection = connection
        channel = CompletingChannel(connection)
        self.application = application
    }

    /// Selects the application of a card; nil if the card has none.
    /// - Throws: `CardError` if the card does not answer.
    package static func select(on connection: any CardChannel) async throws(CardError) -> AliroReader? {
        let answer = try await RepeatingChannel(connection).transmit(AliroCommand.select)
        guard answer.status == .ok, let application = AliroApplication(selectAnswer: answer.data) else { return nil }
        return AliroReader(connection, application)
    }

    /// Reads the credential. No command is sent again.
    /// - Parameters:
    ///   - site: the keys and identifiers of the readers.
    ///   - bonds: the cards that were read before and may use the fast phase.
    ///   - tap: makes the ephemeral key and the transaction identifier of a tap.
    ///   - isListed: whether a list of the site has a key, which then counts in validated mode.
    /// - Returns: the credential, or why the card has presented none.
    /// - Throws: `CardError` if the card does not answer.
    @concurrent
    package func read(
        for site: AliroSite,
        bonds: [AliroBond] = [],
        tap: @Sendable () throws(CryptoError) -> AliroTap = AliroTap.init,
        isListed: @Sendable (ECPublicKey) async -> Bool = { _ in false }
    ) async throws(CardError) -> AliroReading {
        do throws(Stop) {
            return .credential(try await readCredential(for: site, site.allowsFast ? bonds : [], isListed, tap))
        } catch {
            return .failed(try error.problem)
        }
    }

    private typealias Stop = DialogueStop<AliroProblem>

    /// Runs a step of cryptography.
    private static func compute<Value: ~Copyable>(_ value: @autoclosure () throws(CryptoError) -> Value) throws(Stop)
        -> Value
    {
        try translating({ (_: CryptoError) in Stop.problem(.internalError) }, value())
    }

    private func readCredential(
        for site: AliroSite,
        _ bonds: [AliroBond],
        _ isListed: @Sendable (ECPublicKey) async -> Bool,
        _ makeTap: @Sendable () throws(CryptoError) -> AliroTap
    ) async throws(Stop) -> AliroCredential {
        guard let version = application.version else { throw .problem(.unsupported) }
        let tap = try Self.compute(makeTap())
        let opening = AliroOpening(
            version: version,
            ephemeral: tap.key.publicKey,
            transaction: tap.transaction,
            readerIdentifier: site.identifier,
            wantsFast: !bonds.isEmpty
        )
        let opened = try await channel.answer(to: AliroCommand.auth0(opening), orElse: AliroProblem.refused)
        let transcript: AliroTranscript
        let cryptogram: [UInt8]?
        do throws(Stop) {
            let answer = try Stop.check(AliroOpeningAnswer(opened))
            guard let card = try? ECPublicKey(answer.point, on: .secp256r1) else { throw .problem(.malformed) }
            transcript = AliroTranscript(
                opening,
                readerKey: site.publicKey,
                proprietary: application.proprietary,
                cardEphemeral: card,
                vendor: answer.vendor
            )
            cryptogram = answer.cryptogram
        } catch {
            await endWithoutChannel()
            throw error
        }
        if let cryptogram, let bond = try Self.bond(of: bonds, proving: cryptogram, transcript) {
            let session = try Self.compute(transcript.fastChannel(bond.persistent, credential: bond.key))
            guard await Self.isAccepted(bond.key, site, isListed) else {
                await end(session, .failed)
                throw .problem(.unknownKey)
            }
            await end(session, .stateUnknown)
            return AliroCredential(phase: .fast, key: bond.key, transaction: tap.transaction, bond: nil)
        }
        return try await authenticate(transcript, site, isListed, tap)
    }

    private static func isAccepted(
        _ key: ECPublicKey,
        _ site: AliroSite,
        _ isListed: @Sendable (ECPublicKey) async -> Bool
    ) async -> Bool {
        if site.accepts(key) { return true }
        return await isListed(key)
    }

    /// The standard phase: AUTH1.
    private func authenticate(
        _ transcript: AliroTranscript,
        _ site: AliroSite,
        _ isListed: @Sendable (ECPublicKey) async -> Bool,
        _ tap: borrowing AliroTap
    ) async throws(Stop) -> AliroCredential {
        let signature = try Self.compute(ECDSA.sign(transcript.signed(by: .reader), with: site.key, digest: .sha256))
        let agreed = try Self.compute(transcript.agree(tap.key, with: transcript.cardEphemeral))
        let session = try Self.compute(transcript.standardChannel(agreed))
        let sealed = try await channel.answer(
            to: AliroCommand.auth1(signature: signature),
            orElse: AliroProblem.refused
        )
        let opened = try Self.compute(session.open(sealed, from: .card))
        guard let plain = opened else {
            await endWithoutChannel()
            throw .problem(.wrongEncryption)
        }
        do throws(Stop) {
            let key = try Self.provenKey(plain, transcript)
            guard await Self.isAccepted(key, site, isListed) else { throw .problem(.unknownKey) }
            let persistent = try Self.compute(transcript.persistentKey(agreed, credential: key))
            await end(session, .stateUnknown)
            return AliroCredential(
                phase: .standard,
                key: key,
                transaction: transcript.opening.transaction,
                bond: AliroBond(key, persistent)
            )
        } catch {
            await end(session, .failed)
            throw error
        }
    }

    /// The key in the answer to AUTH1, with which the card has signed.
    private static func provenKey(
        _ plain: borrowing Secret,
        _ transcript: AliroTranscript
    ) throws(Stop) -> ECPublicKey {
        let proof = try Stop.check(AliroProof(plain))
        guard let point = proof.point else { throw .problem(.unsupported) }
        guard let key = try? ECPublicKey(point, on: .secp256r1) else { throw .problem(.malformed) }
        let isRight = try Self.compute(
            ECDSA.verify(proof.signature, of: transcript.signed(by: .card), with: key, digest: .sha256)
        )
        guard isRight else { throw .problem(.wrongSignature) }
        return key
    }

    /// Finds the card that has made a cryptogram. A card without a shared key sends random bytes in its place.
    private static func bond(
        of bonds: [AliroBond],
        proving cryptogram: [UInt8],
        _ transcript: AliroTranscript
    ) throws(Stop) -> AliroBond? {
        for bond in bonds {
            let key = try Self.compute(transcript.cryptogramKey(bond.persistent, credential: bond.key))
            if try Self.compute(AliroCryptogram.proves(cryptogram, key: key)) { return bond }
        }
        return nil
    }

    // MARK: The end

    /// Tells the card how the tap has ended. The answer is ignored and may be missing, because the credential is
    /// already proven. The rest of an answer in parts is not fetched, because some phones do not send it.
    private func end(_ session: AliroChannel, _ status: AliroStatus) async {
        guard let sealed = try? session.seal(Secret(status.message), from: .reader) else { return }
        _ = try? await connection.transmit(AliroCommand.exchange(sealed))
    }

    /// Tells the card that the tap has failed before keys were agreed.
    private func endWithoutChannel() async {
        _ = try? await connection.transmit(AliroCommand.controlFlow)
    }
}

/// Why a card with Aliro has presented no credential. The raw values are the words of `reason` in CREDENTIAL.
package enum AliroProblem: String, Error, Sendable, CaseIterable {
    /// The signature of the card does not match its key and the tap.
    case wrongSignature
    /// The answer is not encrypted with the keys of this tap: it is forged, repeated or disturbed.
    case wrongEncryption
    /// The card has refused a command, for example because it does not know the reader.
    case refused
    /// An answer is malformed.
    case malformed
    /// The card supports no version that badged supports, or does not send its key.
    case unsupported
    /// Validated mode: the key is not one of the known credentials.
    case unknownKey
    /// libcrypto failed, for example for lack of memory.
    case internalError
}
