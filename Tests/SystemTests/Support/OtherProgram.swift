// SPDX-License-Identifier: GPL-3.0-or-later
import CPCSCLite
import Testing

/// Another program on the same machine that uses pcscd.
final class OtherProgram {
    private var context: SCARDCONTEXT = 0
    private var card: SCARDHANDLE = 0

    init() throws { try check(SCardEstablishContext(DWORD(SCARD_SCOPE_SYSTEM), nil, nil, &context)) }

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
        try #require(code == 0, "0x\(String(UInt32(truncatingIfNeeded: code), radix: 16))")
    }
}
