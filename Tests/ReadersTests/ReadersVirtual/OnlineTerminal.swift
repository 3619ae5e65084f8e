// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import ReadersVirtual
import TestSupport
import Text

/// The card part of an eID-Server: terminal authentication, chip authentication and reading.
final class OnlineTerminal {
    let eid: EIDCard
    let direct: VirtualCardChannel
    let ephemeral: ECPrivateKey
    private(set) var pace: PACEResult?
    private var channel: SecureChannel?

    /// `scalar` is the ephemeral key for chip authentication; nil means a random key.
    init(_ card: VirtualCard, ephemeral scalar: consuming Secret? = nil) async throws {
        direct = VirtualCardChannel(card)
        let group = try Curve.brainpoolP256r1.group
        if let scalar {
            ephemeral = try ECPrivateKey(scalar, on: group)
        } else {
            ephemeral = try ECPrivateKey(on: group)
        }
        eid = try await card.terminal()
    }

    static let allRights = CHAT(.terminal, AccessRights(rawValue: 0x3F_FFFF_FFFF))

    func open(
        _ id: PasswordID = .pin,
        _ digits: String = "123456",
        chat: CHAT? = allRights
    ) async throws {
        let outcome = try await eid.establishPACE(id, password: Secret(digits.utf8), chat: chat?.object.encoded)
        guard case .established(let result) = outcome else { throw Unexpected("PACE: \(outcome)") }
        pace = result
    }

    /// Sends a command through the newest channel.
    func send(_ command: CommandAPDU) async throws -> ResponseAPDU {
        if let channel { return try await channel.exchange(command) }
        return try await eid.transmit(command)
    }

    func status(_ digits: String) async throws -> String {
        guard let command = CommandAPDU(bytes: hex(digits)) else { throw Unexpected("\(digits) is no command") }
        return try await send(command).status.description
    }

    /// Presents a certificate chain; returns the first status word other than 9000, or 9000.
    func present(_ chain: [CVCertificate]) async throws -> String {
        for certificate in chain {
            let reference = BERTLV(0x83, certificate.authorityReference).encoded
            let chosen = try await send(CommandAPDU(0x00, 0x22, 0x81, 0xB6, data: reference)).status
            guard chosen == .ok else { return "DST \(chosen)" }
            let status = try await send(CommandAPDU(0x00, 0x2A, 0x00, 0xBE, data: certificate.commandData)).status
            guard status == .ok else { return status.description }
        }
        return "9000"
    }

    /// Sends MSE:Set AT, GET CHALLENGE and EXTERNAL AUTHENTICATE.
    func authenticate(
        as holder: String = "DEATBADGED00001",
        auxiliaryData: AuxiliaryData = AuxiliaryData([:]),
        digest: DigestAlgorithm = .sha256,
        key: String = "terminal",
        forge: (inout [UInt8]) -> Void = { _ in }
    ) async throws -> String {
        let compressed = ephemeral.publicKey.compressed
        let data =
            BERTLV(0x80, TerminalAuthentication.protocolID(digest)).encoded
            + BERTLV(0x83, Array(holder.utf8)).encoded + auxiliaryData.encoded + BERTLV(0x91, compressed).encoded
        let chosen = try await send(CommandAPDU(0x00, 0x22, 0x81, 0xA4, data: data)).status
        guard chosen == .ok else { return "MSE \(chosen)" }
        let challenge = try await send(CommandAPDU(0x00, 0x84, 0x00, 0x00, le: 8)).data
        let message = TerminalAuthentication.message(
            idPICC: pace?.idPICC ?? [],
            challenge: challenge,
            ephemeralKey: compressed,
            auxiliaryData: auxiliaryData.encoded
        )
        let privateKey = try ECPrivateKey(pkcs8: Secret(try TestPKI.file("\(key).p8")))
        var signature = try ECDSA.sign(message, with: privateKey, digest: digest)
        forge(&signature)
        return try await send(CommandAPDU(0x00, 0x82, 0x00, 0x00, data: signature)).status.description
    }

    /// Runs chip authentication with the key from EF.CardSecurity and switches to the new channel.
    func authenticateChip(keyID: UInt8 = 41, point: [UInt8]? = nil) async throws -> String {
        let protocolID = ChipAuthentication.protocolID(.aes128)
        let data = BERTLV(0x80, protocolID).encoded + BERTLV(0x84, [keyID]).encoded
        let chosen = try await send(CommandAPDU(0x00, 0x22, 0x41, 0xA4, data: data)).status
        guard chosen == .ok else { return "MSE \(chosen)" }
        let request = BERTLV(0x7C, [BERTLV(0x80, point ?? ephemeral.publicKey.uncompressed)]).encoded
        let answer = try await send(CommandAPDU(0x00, 0x86, 0x00, 0x00, data: request, le: 256))
        guard answer.status == .ok else { return answer.status.description }
        let objects = try BERTLV(answer.data).children
        guard objects.map(\.tag) == [0x81, 0x82] else { throw Unexpected("answer without nonce and token") }
        let outcome = try ChipAuthentication.agree(
            ephemeral,
            with: try chipKey(keyID),
            ephemeral: ephemeral.publicKey,
            nonce: objects[0].value,
            cipher: .aes128
        )
        guard outcome.token == objects[1].value else { return "wrong token" }
        channel = SecureChannel(SecureMessaging(outcome.keys.clone()), over: direct)
        return "9000"
    }

    /// Reads the key from EF.CardSecurity, which was read before chip authentication.
    private func chipKey(_ id: UInt8) throws -> ECPublicKey {
        guard let security else { throw Unexpected("EF.CardSecurity was not read") }
        let objects = try BERTLV(security.content).children
        let nested = try objects.flatMap { try $0.children }.filter { $0.tag == 0x31 }.flatMap { try $0.children }
        for info in objects + nested {
            let fields = try info.children
            guard fields.count == 3, fields[0].value == OID.bsi + [2, 2, 1, 2], fields[2].value == [id] else {
                continue
            }
            let bits = try fields[1].children[1]
            return try ECPublicKey(Array(bits.value.dropFirst()), on: .brainpoolP256r1)
        }
        throw Unexpected("no key \(id)")
    }

    private(set) var security: CardSecurity?

    func readCardSecurity() async throws -> String {
        let answer = try await send(.readBinary(shortFileID: CardFile.security, le: 65_536))
        if answer.status == .ok { security = try CardSecurity(answer.data) }
        return answer.status.description
    }

    enum CardFile { static let security: UInt8 = 0x1D }

    /// Opens a channel with the PIN.
    static func opened(_ card: VirtualCard) async throws -> OnlineTerminal {
        let terminal = try await OnlineTerminal(card)
        try await terminal.open()
        return terminal
    }

    /// Runs all steps up to chip authentication with the chain of the test PKI.
    static func through(
        _ card: VirtualCard,
        chain: [String] = ["dv", "terminal"],
        chat: CHAT = allRights,
        auxiliaryData: AuxiliaryData = AuxiliaryData([:]),
        ephemeral: consuming Secret? = nil
    ) async throws -> OnlineTerminal {
        let certificates = try chain.map { try CVCertificate(try TestPKI.file("\($0).cvcert")) }
        let terminal = try await OnlineTerminal(card, ephemeral: ephemeral)
        try await terminal.go(through: certificates, chat: chat, auxiliaryData: auxiliaryData)
        return terminal
    }

    static func through(
        _ card: VirtualCard,
        certificates: [CVCertificate],
        chat: CHAT = allRights,
        auxiliaryData: AuxiliaryData = AuxiliaryData([:])
    ) async throws -> OnlineTerminal {
        let terminal = try await OnlineTerminal(card)
        try await terminal.go(through: certificates, chat: chat, auxiliaryData: auxiliaryData)
        return terminal
    }

    private func go(through certificates: [CVCertificate], chat: CHAT, auxiliaryData: AuxiliaryData) async throws {
        try await open(chat: chat)
        for (step, status) in [
            ("chain", try await present(certificates)),
            ("terminal", try await authenticate(auxiliaryData: auxiliaryData)), ("file", try await readCardSecurity()),
            ("chip", try await authenticateChip()),
        ] where status != "9000" {
            throw Unexpected("\(step) \(status)")
        }
    }

    func read(_ group: UInt8) async throws -> ResponseAPDU {
        try await send(.readBinary(shortFileID: group, le: 65_536))
    }

    /// Runs restricted identification for a sector of the test PKI; returns status word and identifier.
    func identify(
        keyID: UInt8,
        sector: String,
        tag: UInt32 = 0xA0,
        writesParameters: Bool = true
    ) async throws -> (status: String, identifier: [UInt8]) {
        let protocolID = RestrictedIdentification.protocolID(.sha256)
        let data = BERTLV(0x80, protocolID).encoded + BERTLV(0x84, [keyID]).encoded
        let chosen = try await send(CommandAPDU(0x00, 0x22, 0x41, 0xA4, data: data)).status
        guard chosen == .ok else { return ("MSE \(chosen)", []) }
        let key = try ECPrivateKey(pkcs8: Secret(try TestPKI.file("\(sector).p8")))
        let object = try CVPublicKey(identifier: protocolID, key.publicKey, writesParameters: writesParameters).object
        let request = BERTLV(0x7C, [BERTLV(tag, object.value)]).encoded
        let answer = try await send(CommandAPDU(0x00, 0x86, 0x00, 0x00, data: request, le: 256))
        guard answer.status == .ok else { return (answer.status.description, []) }
        let objects = try BERTLV(answer.data).children
        guard objects.count == 1, objects[0].tag == (tag == 0xA0 ? 0x81 : 0x83) else {
            throw Unexpected("another object")
        }
        return ("9000", objects[0].value)
    }
}
