// SPDX-License-Identifier: GPL-3.0-or-later
package import ChipAccess
import Crypto
package import ISO7816
import Text

/// The terminal's side of one document on one connection: access, files, and the protocols that prove the chip.
///
/// Calls must not overlap. A wrong password is never tried again, because chips wait longer each time.
package actor DocumentChip {
    /// When BAC is used.
    package enum BACPolicy: String, Sendable, CaseIterable {
        case never
        /// Only if the chip offers no PACE that is supported.
        case whenNoPACE
        case always
    }

    let base: CompletingChannel
    private let policy: BACPolicy
    /// Whether the chip has offered PACE before. Then it is not opened without PACE.
    private let hasOfferedPACE: Bool
    private let key: AccessKey
    private var channel: SecureChannel?
    private var isSelected = false
    /// The content of EF.CardAccess; nil if the chip has none.
    package private(set) var cardAccess: [UInt8]?
    package private(set) var infos: SecurityInfos?
    /// The content of EF.CardSecurity after PACE with chip authentication mapping.
    package private(set) var cardSecurity: [UInt8]?
    private var hasTriedCardSecurity = false
    /// What was read of files that end too early.
    package var partial: [DocumentFile: [UInt8]] = [:]
    package private(set) var access: DocumentAccess?
    package private(set) var mappingProof: PACE.MappingProof?
    /// The cipher of the channel, which decides how much an answer can carry.
    private(set) var blockCipher = BlockCipher.tripleDES
    /// What the next reads use.
    package internal(set) var abilities: ReadAbilities
    /// The commands that were sent.
    package private(set) var commands = 0

    /// - Parameters:
    ///   - channel: the connection.
    ///   - key: the MRZ or CAN.
    ///   - policy: when BAC is used.
    ///   - hasOfferedPACE: whether the chip has offered PACE when it was recognised.
    ///   - abilities: what is known of the chip.
    package init(
        channel: any CardChannel,
        key: AccessKey,
        policy: BACPolicy = .whenNoPACE,
        hasOfferedPACE: Bool = false,
        abilities: ReadAbilities = ReadAbilities()
    ) {
        base = CompletingChannel(channel)
        self.key = key
        self.policy = policy
        self.hasOfferedPACE = hasOfferedPACE
        self.abilities = abilities
    }

    // MARK: Access

    /// Reads EF.CardAccess, which needs no password, and asks for the lengths that the chip takes. Without the file
    /// `infos` stays nil. ICAO 9303-11 4.2.
    package func probe() async throws(DocumentError) {
        let repeating = RepeatingChannel(base)
        let file = try await DocumentOffer.readCardAccess { command throws(DocumentError) in
            try await plain(command, on: repeating)
        }
        if let file {
            cardAccess = file.content
            infos = try? SecurityInfos(file.content)
            if file.isSelected { abilities.selectsFiles = true }
        }
        if abilities.isUntried { try await learnLengths() }
    }

    /// Reads EF.ATR/INFO in a plain command with extended lengths: a chip that refuses them has no channel to lose.
    private func learnLengths() async throws(DocumentError) {
        // A chip that does not answer is not asked again.
        abilities.learn(nil)
        do throws(DocumentError) {
            let command = CommandAPDU.readBinary(shortFileID: Self.shortInfoID, le: CommandAPDU.maximumLe)
            abilities.learn(try await plain(command, on: base))
        } catch {
            guard error == .card(.tooLong) else { throw error }
        }
    }

    /// EF.ATR/INFO. ICAO 9303-10 3.11.1.
    private static let shortInfoID: UInt8 = 0x01

    /// The variants of PACE that the chip offers and that are supported, the best first: a proof of the chip, then the
    /// strongest cipher.
    package nonisolated static func variants(of infos: SecurityInfos?) -> [PACEParameters] {
        let all = infos?.pace.compactMap(\.parameters) ?? []
        func rank(_ parameters: PACEParameters) -> Int {
            (parameters.mapping == .chipAuthentication ? 16 : 0) + Int(parameters.cipher.rawValue)
        }
        // A stable order: the chip's own order among equals.
        return all.enumerated().sorted { (-rank($0.element), $0.offset) < (-rank($1.element), $1.offset) }.map(
            \.element
        )
    }

    /// Opens the channel and selects the application of documents.
    /// - Throws: `.wrongPassword`, `.accessUnsupported`, `.accessRefused`, `.basicAccessRefused`, `.notADocument`,
    ///   `.protocolViolation`, `.card`; `.card(.reset)` also for a chip that had a channel and needs a reset before the
    ///   next one.
    package func open() async throws(DocumentError) {
        if infos == nil, access == nil { try await probe() }
        channel = nil
        isSelected = false
        let variants = Self.variants(of: infos)
        if policy != .always, let best = variants.first {
            try await establishPACE(best)
            if best.mapping == .chipAuthentication, !hasTriedCardSecurity, !abilities.lacksCardSecurity {
                try await readCardSecurity()
                if !hasChannel { try await establishPACE(best) }
            }
            try await selectApplication()
        } else {
            guard !hasOfferedPACE || policy == .always else { throw .accessRefused("the chip offers PACE no more") }
            try await openWithoutPACE()
        }
    }

    private func openWithoutPACE() async throws(DocumentError) {
        let mayUseBAC = policy != .never && key.kind == .mrz
        do throws(DocumentError) {
            try await selectApplication()
        } catch {
            guard error == .notADocument else { throw error }
            // A chip with PACE alone refuses it, too.
            throw fault(mayUseBAC ? .notADocument : .accessUnsupported)
        }
        guard !isOpen else { return }
        let refusal = mayUseBAC ? try await establishBAC() : nil
        guard !mayUseBAC || refusal != nil else { return }
        guard try await sendsFilesToEverybody() else {
            throw refusal.map { .basicAccessRefused($0) } ?? .accessUnsupported
        }
        access = DocumentAccess(method: .open, password: nil, parameters: nil)
    }

    /// The fault of a refused access. A chip that had a channel until now has given access, and may keep that channel
    /// until it is reset.
    private func fault(_ error: DocumentError) -> DocumentError { access == nil ? error : .card(.reset) }

    /// Whether the chip has no access control.
    private var isOpen: Bool { access?.method == .open }

    /// Reads the start of EF.COM or DG1 without a channel.
    private func sendsFilesToEverybody() async throws(DocumentError) -> Bool {
        let isCommonDataMute = abilities.commonDataFailures > 1
        for file in [DocumentFile.com, .group(1)] where file != .com || !isCommonDataMute {
            let answer: ResponseAPDU
            do throws(DocumentError) {
                answer = try await plain(.readBinary(shortFileID: file.shortID, le: 8), on: RepeatingChannel(base))
            } catch {
                if file == .com, error.isOfAnswer { abilities.commonDataFailures += 1 }
                throw error
            }
            if answer.status == .ok, answer.data.first.map(UInt32.init) == file.tag { return true }
            guard Self.deniesShortID(answer.status) else { continue }
            guard try await plain(Self.selection(of: file), on: base).status == .ok else { continue }
            let selected = try await plain(.readBinary(offset: 0, le: 8), on: base)
            guard selected.status == .ok, selected.data.first.map(UInt32.init) == file.tag else { continue }
            abilities.selectsFiles = true
            return true
        }
        return false
    }

    /// Whether a chip that answers so to the commands of BAC has none.
    package static func meansNoBAC(_ status: StatusWord) -> Bool {
        [0x6982, 0x6985, 0x6986, 0x6A81, 0x6A82, 0x6A86, 0x6D00, 0x6E00].contains(status.value)
    }

    /// Reads EF.CardSecurity in the master file, where the channel is before the application is selected. A file that
    /// cannot be read leaves the proof of the chip undone.
    private func readCardSecurity() async throws(DocumentError) {
        hasTriedCardSecurity = true
        do throws(DocumentError) {
            cardSecurity = try await read(.cardSecurity, known: 200)
        } catch {
            guard error.isOfFile || error.isOfAnswer else { throw error }
            abilities.cardSecurityFailures += 1
            abilities.isCardSecurityDisturbed = error.isOfAnswer
            guard error.isOfFile else { throw error }
        }
    }

    private func selectApplication() async throws(DocumentError) {
        guard !isSelected else { return }
        let answer = try await transmit(.select(application: Self.applicationID))
        guard answer.status == .ok else { throw .notADocument }
        isSelected = true
    }

    /// The application of electronic documents. ICAO 9303-10 3.
    package static let applicationID: [UInt8] = [0xA0, 0x00, 0x00, 0x02, 0x47, 0x10, 0x01]

    private func establishPACE(_ parameters: PACEParameters) async throws(DocumentError) {
        let id: PasswordID = key.kind == .mrz ? .mrz : .can
        let secret = key.copy()
        var terminal = try Self.step(
            PACE.Terminal(
                parameters,
                passwordKey: try PACE.passwordKey(secret, id: id, cipher: parameters.cipher)
            )
        )
        let chosen = try await plain(.setPACE(parameters, id), on: base)
        // 63Cx tells the tries that are left; the chip goes on.
        guard chosen.status == .ok || chosen.status.value & 0xFFF0 == 0x63C0 else {
            throw fault(.accessRefused("PACE: MSE:Set AT was answered with \(chosen.status)"))
        }
        let token = try await paceStep { () async throws(ChipError) in
            let nonce = try await general(PACE.Terminal.request)
            let mapping = try await general(try terminal.receiveNonce(nonce))
            let ephemeral = try await general(try terminal.receiveMapping(mapping))
            return try terminal.receiveEphemeral(ephemeral)
        }
        let answer = try await plain(CommandAPDU(0x00, 0x86, 0x00, 0x00, data: token, le: 256), on: base)
        guard answer.status.sw1 != 0x63, answer.status.value != 0x6982 else { throw .wrongPassword(answer.status) }
        guard answer.status == .ok else {
            throw fault(.accessRefused("PACE: the token was answered with \(answer.status)"))
        }
        try await paceStep { () throws(ChipError) in
            let outcome = try terminal.receiveToken(answer.data)
            mappingProof = outcome.mappingProof
            channel = SecureChannel(outcome.secureMessaging(), over: base)
            blockCipher = parameters.cipher.block
        }
        access = DocumentAccess(method: .pace, password: key.kind, parameters: parameters)
    }

    private func paceStep<T>(_ body: () async throws(ChipError) -> T) async throws(DocumentError) -> T {
        do throws(ChipError) {
            return try await body()
        } catch {
            switch error {
            case .card(let error): throw .card(error)
            case .status(let status): throw fault(.accessRefused("PACE: a step was answered with \(status)"))
            case .protocolViolation(let words), .unsupported(let words): throw .accessRefused(words)
            }
        }
    }

    /// Sends GENERAL AUTHENTICATE with command chaining.
    private func general(_ data: [UInt8]) async throws(ChipError) -> [UInt8] {
        guard !Task.isCancelled else { throw .card(.cancelled) }
        commands += 1
        let answer = try await base.exchange(CommandAPDU(0x10, 0x86, 0x00, 0x00, data: data, le: 256))
        guard answer.status == .ok else { throw .status(answer.status) }
        return answer.data
    }

    /// Opens the channel with BAC.
    /// - Returns: the status word with which the chip has refused to begin; nil: the channel is open.
    private func establishBAC() async throws(DocumentError) -> StatusWord? {
        var le = BasicAccessControl.messageLength
        var refusals: [StatusWord] = []
        while true {
            let command = CommandAPDU(0x00, 0x84, 0x00, 0x00, le: BasicAccessControl.randomLength)
            let challenge = try await plain(command, on: base)
            guard challenge.status == .ok, challenge.data.count == BasicAccessControl.randomLength else {
                guard access == nil else { throw fault(.basicAccessRefused(challenge.status)) }
                return challenge.status
            }
            guard let refusal = try await answerChallenge(challenge.data, le: le) else { return nil }
            if Self.isAboutKey(refusal, isRepeated: refusals.contains(refusal)) { throw .wrongPassword(refusal) }
            guard refusals.count < 2 else { throw fault(.basicAccessRefused(refusal)) }
            refusals.append(refusal)
            // Some chips accept only Le 28, others only Le 00. After 6700 the challenge is no longer valid.
            if le < 256 || refusal.value == 0x6700 { le = BasicAccessControl.messageLength + 256 - le }
        }
    }

    /// Whether a chip that answers so to EXTERNAL AUTHENTICATE refuses the value. Some chips have another status word for
    /// that than the usual ones: it comes each time, and is not about the command itself.
    private static func isAboutKey(_ status: StatusWord, isRepeated: Bool) -> Bool {
        let isUsual = status.sw1 == 0x63 || [0x6982, 0x6985, 0x6A80, 0x6A88].contains(status.value)
        let isOfCommand = [0x67, 0x6B, 0x6C, 0x6D, 0x6E].contains(status.sw1) || status.value == 0x6A86
        return isUsual || isRepeated && !isOfCommand
    }

    /// Proves to the chip that the terminal knows the zone.
    /// - Returns: the status word with which the chip has refused; nil: the channel is open.
    private func answerChallenge(_ challenge: [UInt8], le: Int) async throws(DocumentError) -> StatusWord? {
        let information = key.copy()
        let terminal = try Self.step(
            BasicAccessControl.Terminal(
                keys: try BasicAccessControl.keys(information: information),
                chipRandom: challenge
            )
        )
        let data = try Self.step(terminal.command())
        let answer = try await plain(CommandAPDU(0x00, 0x82, 0x00, 0x00, data: data, le: le), on: base)
        guard answer.status == .ok else { return answer.status }
        do throws(ChipError) {
            channel = SecureChannel(try terminal.finish(answer.data), over: base)
            blockCipher = .tripleDES
        } catch {
            throw DocumentError(error)
        }
        access = DocumentAccess(method: .bac, password: .mrz, parameters: nil)
        return nil
    }

    // MARK: Commands

    /// Whether commands can be sent: the channel accepts them, or the chip needs none.
    package var hasChannel: Bool { channel.map { !$0.isClosed } ?? (isOpen && isSelected) }

    /// Opens the channel again where a file is: EF.CardSecurity is in the master file, the others in the application.
    func reopen(for file: DocumentFile) async throws(DocumentError) {
        guard file == .cardSecurity, let parameters = access?.parameters else { return try await open() }
        channel = nil
        try await establishPACE(parameters)
    }

    /// Opens the channel again if the chip has ended it.
    func reopen() async throws(DocumentError) {
        if !hasChannel { try await open() }
    }

    /// Sends a command, through the channel if there is one.
    func transmit(_ command: CommandAPDU) async throws(DocumentError) -> ResponseAPDU {
        guard let channel else { return try await plain(command, on: base) }
        return try await Self.inChannel { () async throws(ChipError) in try await exchange(command, in: channel) }
    }

    private static func inChannel<T>(_ body: () async throws(ChipError) -> T) async throws(DocumentError) -> T {
        try await awaiting(orThrow: DocumentError.init, await body())
    }

    /// Sends a command through the channel, if the chip has access control.
    /// - Throws: `.status` for an unprotected answer, after which the channel is closed.
    func protected(_ command: CommandAPDU) async throws(ChipError) -> ResponseAPDU {
        if let channel { return try await exchange(command, in: channel) }
        guard isOpen else { throw .dead }
        return try await exchange(command, on: base)
    }

    private func exchange(
        _ command: CommandAPDU,
        in channel: SecureChannel
    ) async throws(ChipError) -> ResponseAPDU {
        guard !Task.isCancelled else { throw .card(.cancelled) }
        commands += 1
        return try await channel.exchange(command)
    }

    private func exchange(
        _ command: CommandAPDU,
        on channel: any CardChannel
    ) async throws(ChipError) -> ResponseAPDU {
        guard !Task.isCancelled else { throw .card(.cancelled) }
        commands += 1
        return try await channel.exchange(command)
    }

    private func plain(
        _ command: CommandAPDU,
        on channel: any CardChannel
    ) async throws(DocumentError) -> ResponseAPDU {
        try await Self.inChannel { () async throws(ChipError) in try await exchange(command, on: channel) }
    }

    /// Replaces the channel after chip authentication.
    func replaceChannel(_ keys: consuming SessionKeys, cipher: SessionCipher) {
        channel = SecureChannel(SecureMessaging(keys), over: base)
        blockCipher = cipher.block
    }

    /// Closes the channel after a failed chip authentication: the chip has other keys.
    func dropChannel() {
        channel = nil
        isSelected = false
    }

    static func step<T: ~Copyable>(_ value: @autoclosure () throws(CryptoError) -> T) throws(DocumentError) -> T {
        try translating({ DocumentError(ChipError($0)) }, value())
    }
}
