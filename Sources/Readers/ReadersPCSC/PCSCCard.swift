// SPDX-License-Identifier: GPL-3.0-or-later
import CPCSCLite

/// A reader, and mostly a card, that pcscd has given us; SCARDHANDLE. For one thread alone, except `abandon`.
final class PCSCCard: @unchecked Sendable {
    private let context: PCSCContext
    private let handle: SCARDHANDLE
    private let activeProtocol: DWORD
    private var isOpen = true

    init(context: PCSCContext, handle: SCARDHANDLE, activeProtocol: DWORD) {
        (self.context, self.handle, self.activeProtocol) = (context, handle, activeProtocol)
    }

    deinit { disconnect(reset: false) }

    /// Blocks until no other program holds a transaction. The C function is SCardBeginTransaction.
    func beginTransaction() -> PCSCCode { PCSCCode(SCardBeginTransaction(handle)) }

    /// Ends a `beginTransaction` that blocks in another thread: pcscd forgets the handle.
    /// Blocks for as long as pcscd takes for one look at the lock (0.1 s). The C function is SCardDisconnect.
    func abandon() { SCardDisconnect(handle, DWORD(SCARD_LEAVE_CARD)) }

    /// Sends `command` and writes the answer to `answer`; gives its length. The C function is SCardTransmit.
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

    /// Asks the reader itself. The C function is SCardControl.
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

    /// Gives the card back, once; with `reset` it forgets every secure channel.
    ///
    /// The reset is left to SCardDisconnect while the transaction is still held: had it ended before, a second program
    /// could begin one in between, and pcscd would make us wait for its end.
    func disconnect(reset: Bool) {
        guard isOpen else { return }
        isOpen = false
        if !reset { SCardEndTransaction(handle, DWORD(SCARD_LEAVE_CARD)) }
        SCardDisconnect(handle, DWORD(reset ? SCARD_RESET_CARD : SCARD_LEAVE_CARD))
    }
}
