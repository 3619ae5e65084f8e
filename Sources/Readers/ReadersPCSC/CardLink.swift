// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import ISO7816
import Readers

/// The blocking calls of one connection to a card; only for the thread of the connection.
final class CardLink: @unchecked Sendable {
    /// nil after `close`.
    private var card: PCSCCard?
    private let watch: Watch
    private let insertion: Insertion
    private let answer: UnsafeMutableRawBufferPointer
    /// A command was sent, so the card may hold a secure channel that must not remain.
    private var isUsed = false

    let features: ReaderFeatures

    /// The longest answer of a card: 65 536 bytes and the status word. Answers of a reader are shorter.
    private static let longestAnswer = CommandAPDU.maximumLe + 2

    /// Connects to the card of this insertion and begins a transaction. Blocks while another program holds a
    /// transaction.
    init(_ insertion: Insertion, watch: Watch, wait: TransactionWait) throws(CardError) {
        let (entry, isConnected) = watch.entry(of: insertion)
        guard let entry else { throw isConnected ? .removed : .serviceUnavailable }
        let card: PCSCCard
        do throws(PCSCCode) {
            defer { wait.end() }
            card = try Self.hold(entry.name, wait)
        } catch {
            throw Self.error(of: error, reader: entry.name, watch: watch)
        }
        // pcscd connects to any card in this reader. The counter, read after the connect, shows whether the insertion
        // is still the same.
        guard watch.refresh(entry.name) else { throw .serviceUnavailable }
        guard let now = watch.entry(of: insertion).entry else { throw .removed }
        features = now.features
        watch.note(refusesCards: false)
        self.card = card
        self.watch = watch
        self.insertion = insertion
        answer = .allocate(byteCount: Self.longestAnswer, alignment: 16)
    }

    deinit {
        close()
        answer.deallocate()
    }

    /// Sends one command. After a reset by another program the command is not repeated, because its channel has ended
    /// and its effect is unknown.
    ///
    /// pcscd has no time limit for an idle transaction (Windows has 5 s), so no keep-alive is needed.
    func transmit(_ command: CommandAPDU) -> Result<ResponseAPDU, CardError> {
        guard let card else { return .failure(Self.closed) }
        guard !command.isExtended || features.hasExtendedLength else { return .failure(.tooLong) }
        isUsed = true
        var bytes = command.bytes
        // A command without secure messaging may hold a secret.
        defer { bytes.withUnsafeMutableBytes { wipe($0) } }
        let (code, length) = bytes.withUnsafeBytes { card.transmit($0, answer: answer) }
        defer { wipe(UnsafeMutableRawBufferPointer(rebasing: answer.prefix(length))) }
        guard code == .success else { return .failure(error(of: code)) }
        // Drivers answer without a status word when the card leaves during a command.
        guard length >= 2 else { return .failure(missingAnswerError()) }
        let status = UInt16(answer[length - 2]) << 8 | UInt16(answer[length - 1])
        return .success(ResponseAPDU(data: Array(answer.prefix(length - 2)), StatusWord(status)))
    }

    /// Runs a function of the reader and returns its raw answer.
    func control(_ function: UInt32, _ input: [UInt8]) -> Result<[UInt8], CardError> {
        guard let card else { return .failure(Self.closed) }
        isUsed = true
        let (code, length) = input.withUnsafeBytes { card.control(function, $0, answer: answer) }
        defer { wipe(UnsafeMutableRawBufferPointer(rebasing: answer.prefix(length))) }
        guard code == .success else { return .failure(error(of: code)) }
        return .success(Array(answer.prefix(length)))
    }

    /// Disconnects the card; later calls do nothing. By default a card that got a command is reset.
    func close(reset: Bool? = nil) {
        card?.disconnect(reset: reset ?? isUsed)
        card = nil
    }

    static let closed = CardError.cancelled

    /// The error for an answer that is too short.
    func missingAnswerError() -> CardError {
        switch watch.presence(of: insertion) {
        case .present: .mute
        case .cardLeft: .removed
        case .pcscdLeft: .serviceUnavailable
        }
    }

    private func error(of code: PCSCCode) -> CardError {
        switch code.meaning(in: .exchange) {
        case .error(let error): error
        case .askReader: missingAnswerError()
        case .askService: .serviceUnavailable
        }
    }

    private static func hold(_ reader: ReaderName, _ wait: TransactionWait) throws(PCSCCode) -> PCSCCard {
        let context = try PCSCContext()
        while true {
            let card = try context.connect(reader, .shared)
            let code = wait.begin(card)
            if code == .success { return card }
            // Another program has reset the card before this transaction began; a new handle is needed.
            guard code == .resetCard else { throw code }
        }
    }

    /// The error for a code of SCardConnect or SCardBeginTransaction.
    private static func error(of code: PCSCCode, reader: ReaderName, watch: Watch) -> CardError {
        switch code.meaning(in: .connect) {
        case .error(.exclusive):
            // The watch then reports the end of the exclusive use.
            watch.note(held: reader)
            return .exclusive
        case .error(let error):
            return error
        case .askReader:
            return .mute
        case .askService:
            guard watch.refresh() else { return .serviceUnavailable }
            watch.note(refusesCards: true)
            return .accessDenied
        }
    }
}

private func wipe(_ bytes: UnsafeMutableRawBufferPointer) {
    if let base = bytes.baseAddress { explicit_bzero(base, bytes.count) }
}
