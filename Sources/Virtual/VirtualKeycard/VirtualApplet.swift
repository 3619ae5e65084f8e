// SPDX-License-Identifier: GPL-3.0-or-later
package import Crypto
package import HDWallet
import ISO7816
package import Keycard
import ReadersVirtual
package import Text

/// The applets of a Keycard in software: bytes in, bytes out.
///
/// The class answers as the applets of version 3.0, 3.1 and 4.0 do, with their faults, to the commands that badged sends.
package final class VirtualApplet: VirtualCardSoftware {
    /// The two applets of a card.
    private enum Selection {
        case wallet
        case identity
    }

    package let version: KeycardVersion
    /// The version that SELECT reports. A test can change it.
    var toldVersion: UInt16
    let sources: CardSources

    private var selection: Selection?
    /// nil before INIT.
    var secrets: CardSecrets?
    var wallet = WalletSlot()
    /// Certificate and identity key; 4.0 needs them.
    private(set) var identity: AppletIdentity?

    // Only 3.x.
    private(set) var instanceUID: [UInt8]
    /// The key of the card for its channels; nil on 4.0, which makes one for each channel.
    var agreementKey: (any AgreementKey)?
    var pairingKeys = PairingSlots()
    /// The challenge of the card, between the steps of PAIR.
    var pairingChallenge: [UInt8]?
    var cbc: CBCChannel?
    var isAuthenticated = false

    // Only version 4.0.
    var ccm: CCMChannel?

    package init(_ version: KeycardVersion, identity: AppletIdentity? = nil, sources: CardSources) throws(CryptoError) {
        self.version = version
        self.identity = identity
        self.sources = sources
        toldVersion = version.rawValue
        instanceUID = version.generation == .pairing ? try sources.random.bytes(16) : []
        agreementKey = version.generation == .pairing ? try sources.agreementKey() : nil
    }

    /// How the applet answers a command.
    enum Reply: ~Copyable {
        /// Without the channel.
        case clear([UInt8])
        /// Through the channel, or unprotected if there is none.
        case protected(Secret)
    }

    /// The card loses power or is reset.
    package func reset() {
        selection = nil
        closeChannel()
        pairingChallenge = nil
    }

    func closeChannel() {
        cbc = nil
        ccm = nil
        isAuthenticated = false
    }

    package let historicalBytes: [UInt8] = []

    package var counters: [JSON.Member] {
        [
            .init("initialised", .bool(secrets != nil)), .init("retryCounter", .number(String(secrets?.pinTries ?? 0))),
            .init("pukCounter", .number(String(secrets?.puk.tries ?? 0))), .init("key", .bool(!wallet.isEmpty)),
        ]
    }

    /// Makes an initialised card.
    func personalize(
        _ secrets: consuming CardSecrets,
        pairingSecret: consuming Secret,
        _ wallet: consuming CardWallet?
    ) throws(CryptoError) {
        self.secrets = consume secrets
        if let wallet { self.wallet.load(wallet) }
        guard version.generation == .pairing else { return }
        pairingKeys.setSecret(pairingSecret)
        agreementKey = try sources.agreementKey()
    }

    // MARK: Commands

    /// Runs one command and returns its answer.
    package func process(_ bytes: [UInt8]) -> [UInt8] {
        guard let command = CommandAPDU(bytes: bytes), !command.isExtended else { return Self.status(0x6700) }
        if command.cla == 0x00, command.ins == KeycardInstruction.select, command.p1 == 0x04 {
            return select(command)
        }
        switch selection {
        case nil: return Self.status(0x6986)
        case .identity: return answer(.clear(try storeIdentity(command)))
        case .wallet: return run(command)
        }
    }

    private func run(_ command: CommandAPDU) -> [UInt8] {
        switch version.generation {
        case .pairing:
            guard secrets != nil else {
                return answer(.clear(try runBeforeInit(command)))
            }
            return answer(try runPaired(command))
        case .certificate:
            guard identity != nil else { return Self.status(0x6985) }
            return answer(try runCertified(command))
        }
    }

    static func status(_ value: UInt16) -> [UInt8] { [UInt8(value >> 8), UInt8(value & 0xFF)] }

    /// Writes the answer. An error status goes through the channel, too, except 6982.
    private func answer(_ reply: @autoclosure () throws(RefusedCommand) -> Reply) -> [UInt8] {
        do throws(RefusedCommand) {
            switch try reply() {
            case .clear(let bytes): return bytes + Self.status(0x9000)
            case .protected(let data): return protect(KeycardAnswer(data: data, .ok))
            }
        } catch {
            guard error.status != StatusWord(0x6982) else { return Self.status(0x6982) }
            return protect(KeycardAnswer(data: Secret([]), error.status))
        }
    }

    private func protect(_ answer: consuming KeycardAnswer) -> [UInt8] {
        let body: [UInt8]?
        if isAuthenticated, let cbc {
            body = try? cbc.wrap(answer)
        } else if let ccm {
            body = try? ccm.wrap(answer)
        } else {
            return answer.bytes + Self.status(answer.status.value)
        }
        guard let body else { return Self.status(0x6F00) }
        return body + Self.status(0x9000)
    }

    // MARK: SELECT

    private static let identityID: [UInt8] = [0xA0, 0x00, 0x00, 0x08, 0x04, 0x00, 0x01, 0x04, 0x01, 0x02]

    private func select(_ command: CommandAPDU) -> [UInt8] {
        switch command.data {
        case KeycardParameters.applicationID:
            selection = .wallet
            return selectWallet()
        case Self.identityID where version == .v4_0:
            selection = .identity
            return (identity?.certificate ?? []) + Self.status(0x9000)
        default: return Self.status(0x6A82)
        }
    }

    private func selectWallet() -> [UInt8] {
        guard version != .v4_0 || identity != nil else { return Self.status(0x6985) }
        closeChannel()
        guard secrets != nil || version == .v4_0 else {
            return agreementKeyField + Self.status(0x9000)
        }
        secrets?.forgetValidation(keepsChoice: version == .v4_0)
        let content = version == .v4_0 ? certifiedContent : pairedContent
        let long: [UInt8] = wallet.isEmpty ? [] : [0x81]
        // 4.0 writes a length that is one too small.
        let length = UInt8(truncatingIfNeeded: version == .v4_0 ? content.count - 1 : content.count)
        return [0xA4] + long + [length] + content + Self.status(0x9000)
    }

    private var agreementKeyField: [UInt8] {
        [0x80, UInt8(PublicKey.uncompressedCount)] + (agreementKey?.publicKey.uncompressed ?? [])
    }

    private var keyUIDField: [UInt8] {
        guard let uid = wallet.keyUID else { return [0x8E, 0x00] }
        return [0x8E, 0x20] + uid
    }

    private var pairedContent: [UInt8] {
        [0x8F, 0x10] + instanceUID + agreementKeyField
            + [0x02, 0x02] + versionBytes + [0x02, 0x01, UInt8(pairingKeys.free)] + keyUIDField
            + [0x8D, 0x01, version == .v3_0 ? 0x0F : 0x1F]
    }

    private var versionBytes: [UInt8] { [UInt8(toldVersion >> 8), UInt8(toldVersion & 0xFF)] }

    private var certifiedContent: [UInt8] {
        let status = secrets == nil ? 0 : 0x10 | (wallet.claimsLEE ? 0x20 : 0) | UInt8(secrets?.pinTries ?? 0)
        return [0x02, 0x02] + versionBytes + [0x8C, 0x01, status] + keyUIDField + [0x8D, 0x01, 0x1F]
            + [0x8A, UInt8(KeycardCertificate.count)] + (identity?.certificate ?? [])
    }

    /// The factory stores certificate and identity key once.
    private func storeIdentity(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard command.ins == KeycardInstruction.storeData else { throw RefusedCommand(0x6D00) }
        guard identity == nil else { throw RefusedCommand(0x6985) }
        guard command.data.count == KeycardCertificate.count + PrivateKey.count,
            let key = try? PrivateKey(Secret(command.data.dropFirst(KeycardCertificate.count)))
        else { throw RefusedCommand(0x6A80) }
        identity = AppletIdentity(certificate: Array(command.data.prefix(KeycardCertificate.count)), key: key)
        return []
    }

    // MARK: INIT and FACTORY RESET

    /// Takes the secrets of INIT. `extra` is the number of bytes of the pairing secret, 32 or 0.
    func setSecrets(_ plain: borrowing Secret, extra: Int) throws(RefusedCommand) {
        let short = KeycardParameters.pinCount + KeycardParameters.pukCount + extra
        let counts = version == .v3_0 ? [short] : [short, short + 2, short + 8]
        guard counts.contains(plain.count), let pin = plain.part(0..<6),
            let puk = plain.part(6..<18), areDigits(pin), areDigits(puk)
        else { throw RefusedCommand(0x6A80) }
        var (pinLimit, pukLimit) = (KeycardParameters.pinTries, KeycardParameters.pukTries)
        if plain.count > short {
            (pinLimit, pukLimit) = plain.withBytes { (Int($0[short]), Int($0[short + 1])) }
            guard (2...10).contains(pinLimit), (3...12).contains(pukLimit) else { throw RefusedCommand(0x6A80) }
        }
        // Without a duress PIN, 3.1 takes the start of the PUK, and 4.0 the PIN. 3.0 never compares it.
        let implied = version == .v4_0 ? 0..<6 : 6..<12
        guard let duress = plain.part(plain.count == short + 8 ? short + 2..<short + 8 : implied) else {
            throw RefusedCommand(0x6A80)
        }
        secrets = CardSecrets(
            main: CardPIN(pin, limit: pinLimit),
            duress: CardPIN(duress, limit: pinLimit),
            puk: CardPIN(puk, limit: pukLimit)
        )
    }

    func factoryReset(_ command: CommandAPDU) throws(RefusedCommand) -> [UInt8] {
        guard command.p1 == 0xAA, command.p2 == 0x55 else { throw RefusedCommand(0x6A86) }
        wallet.clear()
        secrets = nil
        closeChannel()
        if version.generation == .pairing {
            pairingKeys = PairingSlots()
            pairingChallenge = nil
            instanceUID = try crypto(sources.random.bytes(16))
            agreementKey = try crypto(sources.agreementKey())
        }
        return []
    }

    // MARK: Parts

    func areDigits(_ bytes: borrowing Secret) -> Bool {
        bytes.withBytes { $0.allSatisfy { (0x30...0x39).contains($0) } }
    }
}

/// The certificate of a card and the key with which the card signs.
package final class AppletIdentity: Sendable {
    /// 98 bytes.
    package let certificate: [UInt8]
    package let key: PrivateKey

    package init(certificate: [UInt8], key: consuming PrivateKey) {
        self.certificate = certificate
        self.key = key
    }

    /// Draws an identity and lets `authority` sign it.
    package convenience init(
        signedBy authority: borrowing PrivateKey,
        random: KeycardRandom = .system
    ) throws(CryptoError) {
        let key = try random.key()
        let point = key.publicKey.compressed
        let hash = try DigestAlgorithm.sha256.hash(point)
        let signature = try authority.sign(hash)
        guard let id = try signature.recoveryID(for: hash, by: authority.publicKey) else { throw .library }
        self.init(certificate: point + signature.compact + [id], key: key)
    }
}
