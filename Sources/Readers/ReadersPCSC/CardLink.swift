// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import ISO7816
import Readers

/// One held card, with all that blocks; used by its own thread alone.
final class CardLink: @unchecked Sendable {
    /// nil when closed.
    private var card: PCSCCard?
    private let watch: Watch
    private let insertion: Insertion
    private let answer: UnsafeMutableRawBufferPointer
    /// A command went to the card, so there may be a channel that the next one must not inherit.
    private var isUsed = false

    let features: ReaderFeatures

    /// Largest answer of a card: 65 536 bytes and the status word. A reader's own are shorter.
    private static let longestAnswer = CommandAPDU.maximumLe + 2

    /// Connects to the card of just this insertion and begins a transaction. Blocks, without limit while another
    /// program holds a transaction.
    init(_ insertion: Insertion, watch: Watch, wait: TransactionWait) throws(CardError) {
        let (entry, isConnected) = watch.entry(of: insertion)
        guard let entry else { throw isConnected ? .removed : .serviceUnavailable }
        let card: PCSCCard
        do throws(PCSCCode) {
            card = try Self.hold(entry.name, wait)
        } catch {
            throw Self.error(of: error, reader: entry.name, watch: watch)
        }
        // The wait may have been long, and pcscd connects by the name of the reader, to whatever card is in it. Only
        // its counter says which: asked now, after the connect, and so for this very card.
        guard watch.refresh(entry.name) else { throw .serviceUnavailable }
        guard let now = watch.entry(of: insertion).entry else { throw .removed }
        features = now.features
        watch.note(refusesCards: false)
        (self.card, self.watch, self.insertion) = (card, watch, insertion)
        answer = .allocate(byteCount: Self.longestAnswer, alignment: 16)
    }

    deinit {
        close()
        answer.deallocate()
    }

    /// Sends one command. A reset by another program is an error and the command is not sent again: the channel that
    /// it belonged to is gone, and what it did before nobody knows.
    ///
    /// Nothing is sent in between to keep the transaction alive. On Windows the system resets a card whose transaction
    /// idles for 5 s; pcscd has no such limit, and a card that is left alone between commands keeps its channel.
    func transmit(_ command: CommandAPDU) -> Result<ResponseAPDU, CardError> {
        guard let card else { return .failure(Self.closed) }
        guard !command.isExtended || features.hasExtendedLength else { return .failure(.tooLong) }
        isUsed = true
        var bytes = command.bytes
        // Under secure messaging these are ciphertexts; without it they may be anything.
        defer { bytes.withUnsafeMutableBytes { wipe($0) } }
        let (code, length) = bytes.withUnsafeBytes { card.transmit($0, answer: answer) }
        defer { wipe(UnsafeMutableRawBufferPointer(rebasing: answer.prefix(length))) }
        guard code == .success else { return .failure(error(of: code)) }
        // An answer without a status word is how drivers tell of a card that left in the middle.
        guard length >= 2 else { return .failure(whyNoAnswer()) }
        let status = UInt16(answer[length - 2]) << 8 | UInt16(answer[length - 1])
        return .success(ResponseAPDU(data: Array(answer.prefix(length - 2)), StatusWord(status)))
    }

    /// Has the reader itself do something; its answer as it came.
    func control(_ function: UInt32, _ input: [UInt8]) -> Result<[UInt8], CardError> {
        guard let card else { return .failure(Self.closed) }
        isUsed = true
        let (code, length) = input.withUnsafeBytes { card.control(function, $0, answer: answer) }
        defer { wipe(UnsafeMutableRawBufferPointer(rebasing: answer.prefix(length))) }
        guard code == .success else { return .failure(error(of: code)) }
        return .success(Array(answer.prefix(length)))
    }

    /// Gives the card back, once. A card that was used is reset unless the caller knows better.
    func close(reset: Bool? = nil) {
        card?.disconnect(reset: reset ?? isUsed)
        card = nil
    }

    static let closed = CardError.other("the connection to the card has been closed")

    /// After an answer that is too short to be one.
    func whyNoAnswer() -> CardError {
        switch watch.standing(of: insertion) {
        case .present: .mute
        case .cardLeft: .removed
        case .pcscdLeft: .serviceUnavailable
        }
    }

    private func error(of code: PCSCCode) -> CardError {
        switch code.verdict(during: .exchange) {
        case .error(let error): error
        case .askReader: whyNoAnswer()
        case .askService: .serviceUnavailable
        }
    }

    private static func hold(_ reader: ReaderName, _ wait: TransactionWait) throws(PCSCCode) -> PCSCCard {
        let context = try PCSCContext()
        while true {
            let card = try context.connect(reader, .shared)
            let code = wait.begin(card)
            if code == .success { return card }
            // The program before us was quicker with its reset than we with our transaction. Nothing is lost, for we
            // have not begun; only the handle is stale.
            guard code == .resetCard else { throw code }
        }
    }

    /// What a failed connect means.
    private static func error(of code: PCSCCode, reader: ReaderName, watch: Watch) -> CardError {
        switch code.verdict(during: .connect) {
        case .error(.exclusive):
            // So that it is told when the other program lets go.
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
