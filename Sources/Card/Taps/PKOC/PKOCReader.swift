// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import EID
package import ISO7816

/// The edition of PKOC that a card was read with.
package enum PKOCEdition: String, Sendable {
    /// Every card and phone: a key and a signature.
    case one = "pkoc-se1"
    /// A certificate, and a signature with its key.
    case two = "pkoc-se2"
}

/// A public key whose private key the card has proven to have.
package struct PKOCCredential: Sendable, Equatable {
    package let edition: PKOCEdition
    /// On P-256.
    package let key: ECPublicKey
    /// What the card has signed: 16 random bytes (SE V1) or 32 (SE V2).
    package let transaction: [UInt8]
    /// nil in SE V1.
    package let certificate: PKOCCertificate?
    /// Why the certificate is not accepted; nil: it is valid, or there is none. Always nil in validated mode.
    package let certificateProblem: PKOCProblem?
}

/// The result of reading a card.
package enum PKOCReading: Sendable, Equatable {
    case credential(PKOCCredential)
    /// The card has presented no credential.
    case failed(PKOCProblem, PKOCEdition)
}

/// The reader's side of one PKOC card on one connection. PKOC NFC 1.1 and 2.0.1.
///
/// Each reading signs new random bytes. No command is sent again: a phone allows one signature per activation.
package struct PKOCReader: Sendable {
    /// The source of the transaction identifiers and challenges: returns this number of bytes, or nil when it fails.
    package typealias RandomBytes = @Sendable (Int) -> [UInt8]?

    private let channel: CompletingChannel
    /// The card's answer to SELECT.
    package let versions: PKOCVersions

    private init(_ channel: CompletingChannel, _ versions: PKOCVersions) {
        self.channel = channel
        self.versions = versions
    }

    /// Selects the application of a card; nil if the card has none.
    /// - Throws: `CardError` if the card does not answer.
    package static func select(on channel: any CardChannel) async throws(CardError) -> PKOCReader? {
        let answer = try await RepeatingChannel(channel).transmit(PKOCCommand.select)
        guard answer.status == .ok, let versions = PKOCVersions(selectAnswer: answer.data) else { return nil }
        return PKOCReader(CompletingChannel(channel), versions)
    }

    /// Reads the credential: SE V2 if the card has it, otherwise SE V1.
    ///
    /// In validated mode, a card must complete SE V2 with a valid certificate; otherwise it has no credential. Without
    /// validated mode, SE V1 follows if the card does not complete SE V2, but never after a wrong signature.
    /// - Throws: `CardError` if the card does not answer.
    @concurrent
    package func read(
        for site: PKOCSite,
        on day: CVDate,
        random: RandomBytes = { try? Random.bytes($0) }
    ) async throws(CardError) -> PKOCReading {
        let information = try await channel.transmit(PKOCCommand.getInformation)
        let hasCertificate =
            information.status == .ok
            && PKOCVersions(information: information.data)?.values.contains(PKOCVersions.two) == true
        if hasCertificate {
            do throws(Stop) {
                return .credential(try await readCertified(for: site, on: day, random))
            } catch {
                let problem = try error.problem
                if site.isValidated || problem == .wrongSignature { return .failed(problem, .two) }
            }
        } else if site.isValidated {
            return .failed(.noCertificate, .two)
        }
        do throws(Stop) {
            return .credential(try await readPlain(for: site, random))
        } catch {
            return .failed(try error.problem, .one)
        }
    }

    private typealias Stop = DialogueStop<PKOCProblem>

    /// Has the card with this key sign a transaction that somebody else has chosen (SE V1).
    /// - Returns: r and s, or why there are none.
    /// - Throws: `CardError` if the card does not answer.
    @concurrent
    package func sign(
        _ transaction: [UInt8],
        with key: ECPublicKey,
        for site: PKOCSite
    ) async throws(CardError) -> Result<[UInt8], PKOCProblem> {
        do throws(Stop) {
            let proof = try await authenticate(transaction, site)
            try Self.verify(proof, of: transaction, with: key)
            return .success(proof.signature)
        } catch {
            return .failure(try error.problem)
        }
    }

    /// SE V1: the card sends its key and signs a transaction identifier.
    private func readPlain(for site: PKOCSite, _ random: RandomBytes) async throws(Stop) -> PKOCCredential {
        let transaction = try Self.draw(PKOCCommand.transactionLength, random)
        let proof = try await authenticate(transaction, site)
        guard let key = try? ECPublicKey(proof.point ?? [], on: .secp256r1) else { throw .problem(.malformed) }
        try Self.verify(proof, of: transaction, with: key)
        return PKOCCredential(
            edition: .one,
            key: key,
            transaction: transaction,
            certificate: nil,
            certificateProblem: nil
        )
    }

    private func authenticate(_ transaction: [UInt8], _ site: PKOCSite) async throws(Stop) -> PKOCProof {
        guard let version = versions.forAuthenticate else { throw .problem(.unsupported) }
        let command = PKOCCommand.authenticate(
            version: version,
            transaction: transaction,
            readerIdentifier: site.readerIdentifier
        )
        let answer = try await channel.answer(to: command, orElse: PKOCProblem.refused)
        return try Stop.check(PKOCProof(answer, hasKey: true))
    }

    /// SE V2: the card shows a certificate and signs a challenge with its key.
    private func readCertified(
        for site: PKOCSite,
        on day: CVDate,
        _ random: RandomBytes
    ) async throws(Stop) -> PKOCCredential {
        let bytes = try await channel.answer(to: PKOCCommand.getCertificate, orElse: PKOCProblem.refused)
        let certificate = try Stop.check(PKOCCertificate(bytes))
        let challenge = try Self.draw(PKOCCommand.challengeLength, random)
        let answer = try await channel.answer(
            to: PKOCCommand.internalAuthenticate(challenge),
            orElse: PKOCProblem.refused
        )
        let proof = try Stop.check(PKOCProof(answer, hasKey: false))
        try Self.verify(proof, of: challenge, with: certificate.key)
        let problem = certificate.problem(at: site, on: day)
        if site.isValidated, let problem { throw .problem(problem) }
        return PKOCCredential(
            edition: .two,
            key: certificate.key,
            transaction: challenge,
            certificate: certificate,
            certificateProblem: problem
        )
    }

    private static func draw(_ count: Int, _ random: RandomBytes) throws(Stop) -> [UInt8] {
        guard let bytes = random(count), bytes.count == count else { throw .problem(.internalError) }
        return bytes
    }

    private static func verify(_ proof: PKOCProof, of message: [UInt8], with key: ECPublicKey) throws(Stop) {
        guard let isRight = try? ECDSA.verify(proof.signature, of: message, with: key, digest: .sha256) else {
            throw .problem(.internalError)
        }
        guard isRight else { throw .problem(.wrongSignature) }
    }
}

/// Why a card has presented no credential, or why its certificate is not accepted. The raw values are the words of
/// `reason` and of `certificate.state` in CREDENTIAL.
package enum PKOCProblem: String, Error, Sendable, CaseIterable {
    /// The signature does not match the key and the transaction: a forged or repeated answer, or a disturbed one.
    case wrongSignature
    /// The card has refused a command.
    case refused
    /// An answer or the certificate is malformed.
    case malformed
    /// The certificate has a key of another type than P-256.
    case unsupported
    /// Validated mode: the card has no certificate.
    case noCertificate
    /// The site does not know the issuer of the certificate.
    case unknownIssuer
    /// The issuer has not signed this certificate.
    case wrongCertificateSignature
    case notYetValid
    case expired
    /// libcrypto failed, for example for lack of memory.
    case internalError
}
