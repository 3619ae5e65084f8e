// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import HDWallet
package import ISO7816
package import Text

/// The terminal's side of one Keycard on one connection.
///
/// Calls must not overlap. No command is sent again after a lost or wrong answer, because the card may have run it. After
/// an error the channel is closed; `select` and `open` begin again.
package actor KeycardApplet {
    /// The card's answer to the last SELECT.
    package internal(set) var info: KeycardInfo
    let base: CompletingChannel
    let random: KeycardRandom
    private let trust: KeycardTrust
    private var channel: (any KeycardChannel)?

    private init(_ base: CompletingChannel, _ info: KeycardInfo, _ trust: KeycardTrust, _ random: KeycardRandom) {
        self.base = base
        self.info = info
        self.trust = trust
        self.random = random
    }

    /// Selects the applet of a card.
    /// - Throws: `.noApplet` if the card has no such applet.
    package static func select(
        on channel: any CardChannel,
        trust: KeycardTrust = KeycardTrust(),
        random: KeycardRandom = .system
    ) async throws(KeycardError) -> KeycardApplet {
        let base = CompletingChannel(channel)
        return KeycardApplet(base, try await selectApplet(base), trust, random)
    }

    /// Selects the applet again. The card forgets the channel and the verified PIN.
    package func select() async throws(KeycardError) {
        channel = nil
        info = try await Self.selectApplet(base)
    }

    /// Selects the applet after a command whose answer is not protected, to see what it did.
    /// - Throws: no `.status`, which would be taken for an answer to that command.
    private func selectAgain(after name: StaticString) async throws(KeycardError) {
        do throws(KeycardError) {
            try await select()
        } catch {
            guard case .status(let status) = error else { throw error }
            throw .malformed("SELECT after \(name): the status \(status)")
        }
    }

    private static func selectApplet(_ base: CompletingChannel) async throws(KeycardError) -> KeycardInfo {
        let answer = try await transmit(
            CommandAPDU(0x00, KeycardInstruction.select, 0x04, 0x00, data: KeycardParameters.applicationID),
            base
        )
        switch answer.status {
        case .ok: return try KeycardInfo(answer.data)
        // A 4.0 applet without its factory certificate answers 6985 to each command.
        case StatusWord(0x6985): throw .status(answer.status)
        default: throw .noApplet
        }
    }

    private static func transmit(
        _ command: CommandAPDU,
        _ base: CompletingChannel
    ) async throws(KeycardError) -> ResponseAPDU {
        try await awaiting(orThrow: KeycardError.card, await base.transmit(command))
    }

    // MARK: INIT

    /// Gives a new card its PIN and PUK, and checks that the card is initialised afterwards.
    ///
    /// From 3.1 on, the card has a duress PIN, which opens another wallet than the one that the words restore. It is
    /// random if the user chooses none. Otherwise it would be the start of the PUK (3.1) or the PIN itself (4.0).
    ///
    /// - Parameters:
    ///   - pin: 6 digits.
    ///   - puk: 12 digits.
    ///   - duressPIN: 6 digits, not those of the PIN; only from 3.1 on.
    ///   - pairingSecret: 32 bytes; only for 3.x.
    /// - Throws: `.card` if the answer is lost. Then `select` shows whether the card is initialised. `.status` if the
    ///   card is as new as before. `.unsupported` for a version that badged does not support, or that has no duress PIN; then
    ///   nothing was sent.
    package func initialize(
        pin: consuming Secret,
        puk: consuming Secret,
        duressPIN: SecretBox? = nil,
        pairingSecret: consuming Secret
    ) async throws(KeycardError) {
        guard !info.isInitialized else { throw .wrongState }
        guard Self.areDigits(pin, KeycardParameters.pinCount), Self.areDigits(puk, KeycardParameters.pukCount),
            pairingSecret.count == KeycardParameters.secretCount
        else { throw .wrongForm }
        let version = try await findVersion()
        var end = Secret([])
        if version != .v3_0 {
            let limits = [UInt8(KeycardParameters.pinTries), UInt8(KeycardParameters.pukTries)]
            end = Secret(limits).appending(try digits(of: duressPIN, pin, puk))
        } else if duressPIN != nil {
            throw .unsupported
        }
        let secrets = pin.appending(puk)
        let status: StatusWord
        switch version.generation {
        case .pairing:
            let plain = secrets.appending(pairingSecret).appending(end)
            status = try await transmit(try initCommand(plain)).status
        case .certificate:
            if channel == nil { try await openWithCertificate() }
            status = try await exchangeForStatus(KeycardInstruction.initialize, secrets.appending(end))
        }
        // Without a channel the answer is not protected, so the state of the card decides.
        try await selectAgain(after: "INIT")
        guard info.isInitialized else { throw .status(status) }
        guard info.version == version.rawValue || !info.isSupported else {
            throw .malformed("the card reports another version than before INIT")
        }
    }

    /// Finds out the version of a new card. SELECT of a new 3.x card does not report it, but only 3.1 has IDENTIFY CARD.
    /// - Throws: `.unsupported` for a version that badged does not support.
    @discardableResult
    package func findVersion() async throws(KeycardError) -> KeycardVersion {
        if info.version == nil {
            _ = try await answerToIdentify([UInt8](repeating: 0, count: KeycardParameters.secretCount))
        }
        guard let version = info.supportedVersion else { throw .unsupported }
        return version
    }

    /// The digits of the duress PIN: those that the user has chosen, or random ones.
    private func digits(
        of duressPIN: SecretBox?,
        _ pin: borrowing Secret,
        _ puk: borrowing Secret
    ) throws(KeycardError) -> Secret {
        if let duressPIN {
            guard let digits = duressPIN.take() else { throw .wrongForm }
            let isPIN = ConstantTime.equal(digits, pin)
            guard Self.areDigits(digits, KeycardParameters.pinCount), !isPIN else { throw .wrongForm }
            return digits
        }
        guard let start = puk.part(0..<KeycardParameters.pinCount) else { throw .wrongForm }
        while true {
            let drawn = try crypto(random.digits(KeycardParameters.pinCount))
            if !ConstantTime.equal(drawn, pin), !ConstantTime.equal(drawn, start) { return drawn }
        }
    }

    /// Encrypts the secrets of INIT for the channel key of a 3.x card.
    private func initCommand(_ plain: borrowing Secret) throws(KeycardError) -> CommandAPDU {
        guard let cardKey = info.channelKey else { throw .wrongState }
        return try crypto { () throws(CryptoError) in
            let ephemeral = try random.key()
            let vector = try random.bytes(AES.blockSize)
            let encrypted = try AES.encrypt(
                Padding.add(to: plain),
                key: try ephemeral.sharedX(with: cardKey),
                initialVector: vector
            )
            let point = ephemeral.publicKey.uncompressed
            return CommandAPDU(
                KeycardParameters.commandClass,
                KeycardInstruction.initialize,
                0,
                0,
                data: [UInt8(truncatingIfNeeded: point.count)] + point + vector + encrypted
            )
        }
    }

    // MARK: Pairing (3.x)

    /// Pairs with a 3.x card, which uses one of its slots.
    ///
    /// The card proves first that it has the secret, so a card without the secret gets no information about it.
    /// - Throws: `.wrongPairingPassword`, `.noFreeSlot`.
    package func pair(secret: borrowing Secret) async throws(KeycardError) -> KeycardPairing {
        guard info.generation == .pairing else { throw .unsupported }
        guard info.isInitialized, channel == nil else { throw .wrongState }
        let count = KeycardParameters.secretCount
        guard secret.count == count else { throw .wrongForm }
        let secret = secret.clone()
        let challenge = try crypto(random.bytes(count))
        let first = try await transmit(command(KeycardInstruction.pair, p1: 0, data: challenge))
        if first.status == StatusWord(0x6A84) { throw .noFreeSlot }
        guard first.status == .ok else { throw .status(first.status) }
        guard first.data.count == 2 * count else { throw .malformed("PAIR: the first answer has a wrong length") }
        let proof = try crypto(DigestAlgorithm.sha256.hash(secret, suffix: challenge))
        guard ConstantTime.equal(proof, Secret(first.data.prefix(count))) else { throw .wrongPairingPassword }

        let cardChallenge = Array(first.data.dropFirst(count))
        let answer = try crypto(DigestAlgorithm.sha256.hash(secret, suffix: cardChallenge).withBytes { Array($0) })
        let second = try await transmit(command(KeycardInstruction.pair, p1: 1, data: answer))
        if second.status == StatusWord(0x6982) { throw .wrongPairingPassword }
        guard second.status == .ok else { throw .status(second.status) }
        guard second.data.count == 1 + count else { throw .malformed("PAIR: the second answer has a wrong length") }
        let salt = Array(second.data.dropFirst())
        let key = try crypto(DigestAlgorithm.sha256.hash(secret, suffix: salt))
        return KeycardPairing(slot: second.data[0], key: key)
    }

    /// Pairs with a 3.x card as `pair(secret:)` does. The password is ASCII, or text in the form NFKD.
    package func pair(password: borrowing Secret) async throws(KeycardError) -> KeycardPairing {
        try await pair(secret: try KeycardPairingSecret.derive(password))
    }

    /// Pairs with a 3.x card that has the usual password of new cards.
    package func pairWithStandardPassword() async throws(KeycardError) -> KeycardPairing {
        try await pair(secret: Secret(try KeycardPairingSecret.standard.get()))
    }

    /// Gives a new card its PIN and PUK, as `initialize(pin:puk:duressPIN:pairingSecret:)` does, and the usual pairing
    /// password.
    package func initialize(
        pin: consuming Secret,
        puk: consuming Secret,
        duressPIN: SecretBox?
    ) async throws(KeycardError) {
        let secret = Secret(try KeycardPairingSecret.standard.get())
        try await initialize(pin: pin, puk: puk, duressPIN: duressPIN, pairingSecret: secret)
    }

    /// Frees a pairing slot. Needs the PIN.
    package func unpair(slot: UInt8) async throws(KeycardError) {
        guard info.generation == .pairing else { throw .unsupported }
        try await perform(KeycardInstruction.unpair, p1: slot)
    }

    /// Frees all pairing slots but one. Needs the PIN. The answers of UNPAIR do not say whether a slot was used.
    package func unpairOthers(than own: UInt8) async throws(KeycardError) {
        guard info.generation == .pairing else { throw .unsupported }
        for slot in 0..<Self.maximumSlots where slot != own {
            let status = try await exchangeForStatus(KeycardInstruction.unpair, p1: slot)
            // The card has no slot of this number, and none of a higher one.
            if status == StatusWord(0x6A86), slot > own { return }
            guard status == .ok else { throw .status(status) }
        }
    }

    /// More slots than any version has.
    private static let maximumSlots: UInt8 = 16

    // MARK: The channel

    /// Whether there is a channel that accepts commands.
    package var hasChannel: Bool { channel != nil }

    /// Opens the channel of a 3.x card.
    /// - Throws: `.pairingLost` if the card does not know the pairing any more.
    package func open(_ pairing: borrowing KeycardPairing) async throws(KeycardError) {
        guard info.generation == .pairing else { throw .unsupported }
        guard let cardKey = info.channelKey, info.isInitialized else { throw .wrongState }
        channel = nil
        let slot = pairing.slot
        let pairingKey = pairing.key.clone()
        let ephemeral = try crypto(random.key())
        let point = ephemeral.publicKey.uncompressed
        let answer = try await transmit(command(KeycardInstruction.openSecureChannel, p1: slot, data: point))
        if answer.status == StatusWord(0x6A86) { throw .pairingLost }
        guard answer.status == .ok else { throw .status(answer.status) }
        guard answer.data.count == 48 else { throw .malformed("OPEN SECURE CHANNEL: a wrong length") }
        channel = try crypto(
            CBCChannel(
                shared: try ephemeral.sharedX(with: cardKey),
                pairingKey: pairingKey,
                salt: Array(answer.data.prefix(32)),
                vector: Array(answer.data.dropFirst(32))
            )
        )
        try await authenticateMutually()
    }

    private func authenticateMutually() async throws(KeycardError) {
        let challenge = try crypto(random.secret(KeycardParameters.secretCount))
        let answer: KeycardAnswer
        do throws(KeycardError) {
            answer = try await exchange(KeycardInstruction.mutuallyAuthenticate, challenge)
        } catch {
            throw error == .channelLost(StatusWord(0x6982)) ? .pairingLost : error
        }
        guard answer.status == .ok, answer.data.count == KeycardParameters.secretCount else {
            channel = nil
            throw .malformed("MUTUALLY AUTHENTICATE: a wrong answer")
        }
    }

    /// Opens the channel of a 4.0 card, after a check of its certificate and its signature.
    /// - Throws: `.foreignCard` if the authority of the card is not trusted.
    package func openWithCertificate() async throws(KeycardError) {
        guard info.generation == .certificate, let certificate = info.certificate else { throw .unsupported }
        guard trust.accepts(certificate) else { throw .foreignCard(certificate) }
        channel = nil
        let salt = try crypto(random.bytes(32))
        let ephemeral = try crypto(random.key())
        let point = ephemeral.publicKey.uncompressed
        let answer = try await transmit(command(KeycardInstruction.openSecureChannel, data: salt + point))
        guard answer.status == .ok else { throw .status(answer.status) }
        let cardPoint = Array(answer.data.prefix(PublicKey.uncompressedCount))
        guard let cardKey = try? PublicKey(cardPoint), cardPoint.count == PublicKey.uncompressedCount,
            let signature = try? Signature(der: Array(answer.data.dropFirst(cardPoint.count)))
        else { throw .malformed("OPEN SECURE CHANNEL: no key or signature") }
        channel = try crypto { () throws(CryptoError) -> CCMChannel? in
            let transcript = CCMChannel.transcript(salt: salt, terminal: point, card: cardPoint)
            let hash = try DigestAlgorithm.sha256.hash(transcript)
            guard try signature.isValid(for: hash, by: certificate.identity) else { return nil }
            return try CCMChannel(shared: try ephemeral.sharedX(with: cardKey), salt: salt)
        }
        guard channel != nil else { throw .malformed("OPEN SECURE CHANNEL: the signature of the card is wrong") }
    }

    /// Proves that a 3.x card has the key of its certificate, and that its authority is trusted.
    /// - Returns: nil if the card has no certificate, as all cards of version 3.0.
    package func identify() async throws(KeycardError) -> KeycardCertificate? {
        guard info.generation == .pairing else { throw .unsupported }
        guard info.version != KeycardVersion.v3_0.rawValue else { return nil }
        let challenge = try crypto(random.bytes(KeycardParameters.secretCount))
        guard let bytes = try await answerToIdentify(challenge) else { return nil }
        guard let template = try? BERTLV(bytes), template.tag == 0xA0, let fields = try? template.children,
            let field = fields.first(where: { $0.tag == 0x8A }), let proof = fields.first(where: { $0.tag == 0x30 }),
            let signature = try? Signature(der: proof.encoded)
        else { throw .malformed("IDENTIFY CARD: no certificate or signature") }
        let certificate = try KeycardCertificate(field.value)
        let isValid = try crypto(signature.isValid(for: challenge, by: certificate.identity))
        guard isValid else { throw .malformed("IDENTIFY CARD: the signature of the card is wrong") }
        guard trust.accepts(certificate) else { throw .foreignCard(certificate) }
        return certificate
    }

    /// Sends IDENTIFY CARD, which shows the version of a new card. Returns nil if the card has no certificate.
    private func answerToIdentify(_ challenge: [UInt8]) async throws(KeycardError) -> [UInt8]? {
        let (status, bytes): (StatusWord, [UInt8])
        if channel != nil {
            let answer = try await exchange(KeycardInstruction.identifyCard, Secret(challenge))
            status = answer.status
            bytes = answer.bytes
        } else {
            let answer = try await transmit(command(KeycardInstruction.identifyCard, data: challenge))
            status = answer.status
            bytes = answer.data
        }
        let found: (version: KeycardVersion, bytes: [UInt8]?) =
            switch status {
            case .ok: (.v3_1, bytes)
            case StatusWord(0x6985): (.v3_1, nil)
            case StatusWord(0x6D00) where info.version == nil: (.v3_0, nil)
            default: throw .status(status)
            }
        if info.version == nil { info.version = found.version.rawValue }
        return found.bytes
    }

    // MARK: FACTORY RESET

    /// Removes all keys, PINs and pairings of the card. Needs neither PIN nor channel.
    ///
    /// `info` must be that of the card in the reader, so `select` comes first. The answer is not protected, so another
    /// SELECT shows what the card did.
    /// - Parameter keyUID: what the user typed as the key UID of this card; nil for a card without a key.
    /// - Throws: `.wrongState` if the card has another key or is not initialised, `.unsupported` if it has no such
    ///   command; then nothing was sent. `.status` if the card has its old state. After other errors it may be reset.
    package func factoryReset(keyUID: [UInt8]?) async throws(KeycardError) {
        guard info.isInitialized, info.keyUID == keyUID else { throw .wrongState }
        guard info.hasFactoryReset else { throw .unsupported }
        let answer = try await transmit(
            CommandAPDU(KeycardParameters.commandClass, KeycardInstruction.factoryReset, 0xAA, 0x55, le: 256)
        )
        try await selectAgain(after: "FACTORY RESET")
        guard !info.isInitialized else { throw .status(answer.status) }
    }

    // MARK: Commands

    func command(_ ins: UInt8, p1: UInt8 = 0, p2: UInt8 = 0, data: [UInt8] = []) -> CommandAPDU {
        CommandAPDU(KeycardParameters.commandClass, ins, p1, p2, data: data)
    }

    func transmit(_ command: CommandAPDU) async throws(KeycardError) -> ResponseAPDU {
        do throws(KeycardError) {
            return try await Self.transmit(command, base)
        } catch {
            channel = nil
            throw error
        }
    }

    /// Sends a command through the channel and returns its answer, whatever its status. An error closes the channel.
    func exchange(
        _ ins: UInt8,
        p1: UInt8 = 0,
        p2: UInt8 = 0,
        _ data: consuming Secret = Secret([])
    ) async throws(KeycardError) -> KeycardAnswer {
        guard let channel else { throw .noChannel }
        let wrapped = try channel.wrap(command(ins, p1: p1, p2: p2), data: data)
        let answer = try await transmit(wrapped)
        do throws(KeycardError) {
            return try channel.unwrap(answer)
        } catch {
            self.channel = nil
            throw error
        }
    }

    /// Sends a command whose answer has no data, and returns the status.
    ///
    /// The answers of 3.x have no counter, so a replayed answer has a valid MAC; only its first block decrypts to other
    /// bytes. So unexpected data close the channel.
    func exchangeForStatus(
        _ ins: UInt8,
        p1: UInt8 = 0,
        _ data: consuming Secret = Secret([])
    ) async throws(KeycardError) -> StatusWord {
        let answer = try await exchange(ins, p1: p1, data)
        guard answer.data.count == 0 else {
            channel = nil
            throw .malformed("an answer has data that were not requested")
        }
        return answer.status
    }

    /// Sends a command whose answer has no data.
    /// - Throws: `.status` for each status other than 9000.
    func perform(
        _ ins: UInt8,
        p1: UInt8 = 0,
        _ data: consuming Secret = Secret([])
    ) async throws(KeycardError) {
        let status = try await exchangeForStatus(ins, p1: p1, data)
        guard status == .ok else { throw .status(status) }
    }

    /// Sends a command through the channel and returns the data of its answer.
    /// - Throws: `.status` for each status other than 9000.
    func run(
        _ ins: UInt8,
        p1: UInt8 = 0,
        p2: UInt8 = 0,
        _ data: consuming Secret = Secret([])
    ) async throws(KeycardError) -> Secret {
        let answer = try await exchange(ins, p1: p1, p2: p2, data)
        guard answer.status == .ok else { throw .status(answer.status) }
        return answer.data.clone()
    }

    static func areDigits(_ secret: borrowing Secret, _ count: Int) -> Bool {
        secret.count == count && secret.withBytes { $0.allSatisfy { (0x30...0x39).contains($0) } }
    }
}
