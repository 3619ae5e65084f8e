// SPDX-License-Identifier: GPL-3.0-or-later
import CPCSCLite

/// A connection to a card, or to a reader without a card: SCARDHANDLE. Only for one thread, except `abandon`.
final class PCSCCard: @unchecked Sendable {
    private let context: PCSCContext
    private let handle: SCARDHANDLE
    private let activeProtocol: DWORD
    private var isOpen = true

    init(context: PCSCContext, handle: SCARDHANDLE, activeProtocol: DWORD) {
        self.context = context
        self.handle = handle
        self.activeProtocol = activeProtocol
    }

    deinit { disconnect(reset: false) }

    /// Blocks until no other program holds a transaction. The C function is SCardBeginTransaction.
    func beginTransaction() -> PCSCCode { PCSCCode(SCardBeginTransaction(handle)) }

    /// Ends a `beginTransaction` that blocks in another thread, by releasing the handle. Blocks for about 0.1 s. The C
    /// function is SCardDisconnect.
    func abandon() { SCardDisconnect(handle, DWORD(SCARD_LEAVE_CARD)) }

    /// Sends `command`, writes the answer to `answer` and returns its length. The C function is SCardTransmit.
    func transmit(
        _ command: UnsafeRawBufferPointer,
        answer: UnsafeMutableRawBufferPointer
    ) -> (code: PCSCCode, length: Int) {
        var send = SCARD_IO_REQUEST(dwProtocol: activeProtocol, cbPciLength: UInt(MemoryLayout<SCARD_IO_REQUEST>.size))
        var length = DWORD(answer.count)
        let code = SCardTransmit(
            handle,
            &send,
            command.bindMemory(to: UInt8.self).baseAddress,
            DWORD(command.count),
            nil,
            answer.bindMemory(to: UInt8.self).baseAddress,
            &length
        )
        return (PCSCCode(code), min(Int(length), answer.count))
    }

    /// Runs a function of the reader itself. The C function is SCardControl.
    func control(
        _ function: UInt32,
        _ input: UnsafeRawBufferPointer,
        answer: UnsafeMutableRawBufferPointer
    ) -> (code: PCSCCode, length: Int) {
        var length: DWORD = 0
        let code = SCardControl(
            handle,
            DWORD(function),
            input.baseAddress,
            DWORD(input.count),
            answer.baseAddress,
            DWORD(answer.count),
            &length
        )
        return (PCSCCode(code), min(Int(length), answer.count))
    }

    /// Disconnects the card; later calls do nothing. `reset` ends every secure channel of the card.
    ///
    /// SCardDisconnect resets the card within the transaction. Otherwise another program could begin a transaction
    /// before the reset, which would then wait for its end.
    ///
    /// A card that has left is not reset. The reset would reach the card that is in the reader now, and pcscd would
    /// report a card from then on, even after its removal: the thread in pcscd that looks for removals does not know
    /// of this card. Only SCardBeginTransaction reports a removal without the table that libpcsclite shares between
    /// threads. It does not block, because this connection holds the transaction.
    func disconnect(reset: Bool) {
        guard isOpen else { return }
        isOpen = false
        let reset = reset && beginTransaction() != .removedCard
        if !reset { SCardEndTransaction(handle, DWORD(SCARD_LEAVE_CARD)) }
        SCardDisconnect(handle, DWORD(reset ? SCARD_RESET_CARD : SCARD_LEAVE_CARD))
    }
}
