// SPDX-License-Identifier: GPL-3.0-or-later
import CPCSCLite
import TestSupport
import Text

/// Another program on the same machine that uses pcscd.
final class OtherProgram {
    private var context: SCARDCONTEXT = 0
    private var card: SCARDHANDLE = 0

    struct Failure: Error, CustomStringConvertible {
        let code: UInt32
        var description: String { "0x\(String(code, radix: 16))" }
    }

    /// Waits until pcscd accepts programs. It powers cards before.
    init() async throws {
        var (context, code): (SCARDCONTEXT, LONG) = (0, 0)
        try await until {
            code = SCardEstablishContext(DWORD(SCARD_SCOPE_SYSTEM), nil, nil, &context)
            return UInt32(truncatingIfNeeded: code) != 0x8010_001D  // SCARD_E_NO_SERVICE
        }
        try check(code)
        self.context = context
    }

    deinit { SCardReleaseContext(context) }

    func connect(_ reader: String, exclusively: Bool) throws {
        var active: DWORD = 0
        let sharing = exclusively ? SCARD_SHARE_EXCLUSIVE : SCARD_SHARE_SHARED
        try check(
            SCardConnect(context, reader, DWORD(sharing), DWORD(SCARD_PROTOCOL_T0 | SCARD_PROTOCOL_T1), &card, &active)
        )
    }

    func begin() throws { try check(SCardBeginTransaction(card)) }
    func end(reset: Bool = false) throws {
        try check(SCardEndTransaction(card, DWORD(reset ? SCARD_RESET_CARD : SCARD_LEAVE_CARD)))
    }
    func disconnect() throws { try check(SCardDisconnect(card, DWORD(SCARD_LEAVE_CARD))) }

    private func check(_ code: LONG) throws {
        guard code == 0 else { throw Failure(code: UInt32(truncatingIfNeeded: code)) }
    }
}
