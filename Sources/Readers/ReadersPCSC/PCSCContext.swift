// SPDX-License-Identifier: GPL-3.0-or-later
import CPCSCLite
import Glibc

/// A connection to pcscd: SCARDCONTEXT. Only for one thread, except `cancel`.
final class PCSCContext: Sendable {
    private let handle: SCARDCONTEXT

    /// Connects to pcscd. Blocks. The C function is SCardEstablishContext.
    init() throws(PCSCCode) {
        var handle: SCARDCONTEXT = 0
        try check(SCardEstablishContext(DWORD(SCARD_SCOPE_SYSTEM), nil, nil, &handle))
        self.handle = handle
    }

    deinit { SCardReleaseContext(handle) }

    /// Ends the current `wait` of another thread, and has no effect on a later one. Blocks for one exchange with pcscd.
    /// The C function is SCardCancel.
    func cancel() { SCardCancel(handle) }

    /// Returns the names of all readers. Blocks for one exchange. The C function is SCardListReaders.
    func readers() throws(PCSCCode) -> [ReaderName] {
        var names = [CChar](repeating: 0, count: Self.longestNames)
        var length = DWORD(names.count)
        let code = PCSCCode(SCardListReaders(handle, nil, &names, &length))
        if code == .noReadersAvailable { return [] }
        guard code == .success else { throw code }
        return names.prefix(Int(length)).split(separator: 0).map { ReaderName(bytes: $0) }
    }

    /// The bytes of 16 names, as many as pcscd has, each with at most 128 bytes and a NUL, and of the NUL at the end.
    private static let longestNames = 16 * 129 + 1

    static let forever: UInt32 = 0xFFFF_FFFF

    /// Blocks until one of `states` differs from the state in pcscd, and updates them. Empty flags always differ. The
    /// time limit is in milliseconds, or `forever`. The C function is SCardGetStatusChange.
    func wait(_ states: inout [PCSCReaderState], milliseconds: UInt32) -> PCSCCode {
        let names = states.map { $0.name.withCString { strdup($0) } }
        defer { names.forEach { free($0) } }
        var raw = zip(states, names).map { state, name in
            var raw = SCARD_READERSTATE()
            raw.szReader = UnsafePointer(name)
            raw.dwCurrentState = DWORD(state.flags.rawValue) | DWORD(state.counter) << 16
            return raw
        }
        let code = PCSCCode(SCardGetStatusChange(handle, DWORD(milliseconds), &raw, DWORD(raw.count)))
        for index in states.indices {
            let event = raw[index].dwEventState
            states[index].flags = StateFlags(rawValue: UInt16(truncatingIfNeeded: event))
            states[index].counter = UInt16(truncatingIfNeeded: event >> 16)
            let length = Int(raw[index].cbAtr)
            states[index].answerToReset = withUnsafeBytes(of: raw[index].rgbAtr) { Array($0.prefix(length)) }
        }
        return code
    }

    enum Sharing { case shared, direct }

    /// Connects to a card or reader. Blocks while another program holds a transaction on it. The C function is
    /// SCardConnect.
    func connect(_ reader: ReaderName, _ sharing: Sharing) throws(PCSCCode) -> PCSCCard {
        var card: SCARDHANDLE = 0
        var active: DWORD = 0
        let mode = sharing == .shared ? SCARD_SHARE_SHARED : SCARD_SHARE_DIRECT
        let protocols = sharing == .shared ? DWORD(SCARD_PROTOCOL_T0) | DWORD(SCARD_PROTOCOL_T1) : 0
        try check(reader.withCString { SCardConnect(handle, $0, DWORD(mode), protocols, &card, &active) })
        return PCSCCard(context: self, handle: card, activeProtocol: active)
    }
}

extension PCSCCode {
    init(_ code: LONG) { self.init(UInt32(truncatingIfNeeded: code)) }
}

private func check(_ code: LONG) throws(PCSCCode) {
    let code = PCSCCode(UInt32(truncatingIfNeeded: code))
    guard code == .success else { throw code }
}

/// The name of a reader in pcscd, with the bytes that libpcsclite expects.
struct ReaderName: Hashable, Sendable {
    /// The name without the closing NUL.
    let bytes: [CChar]

    init(bytes: some Collection<CChar>) { self.bytes = Array(bytes) }
    init(_ text: String) { bytes = text.utf8.map(CChar.init(bitPattern:)) }

    var text: String { String(decoding: bytes.map(UInt8.init(bitPattern:)), as: UTF8.self) }

    func withCString<R>(_ body: (UnsafePointer<CChar>) -> R) -> R {
        (bytes + [0]).withUnsafeBufferPointer { buffer in
            guard let base = buffer.baseAddress else { return body([0]) }
            return body(base)
        }
    }

    /// The pseudo reader whose state changes when a reader is added or removed.
    static let plugAndPlay = ReaderName("\\\\?PnP?\\Notification")
}

/// The state of one reader: SCARD_READERSTATE.
struct PCSCReaderState: Sendable, Equatable {
    let name: ReaderName
    /// SCARD_STATE_*, without CHANGED and without the counter.
    var flags: StateFlags
    /// The number of insertions and removals; the upper half of dwEventState. For the pseudo reader it counts added and
    /// removed readers (pcscd 2.1 and later, else always 0).
    var counter: UInt16
    var answerToReset: [UInt8] = []
}

/// SCARD_STATE_*.
struct StateFlags: OptionSet, Sendable, Hashable {
    let rawValue: UInt16
    init(rawValue: UInt16) { self.rawValue = rawValue }

    static let changed = StateFlags(rawValue: 0x0002)
    static let unknown = StateFlags(rawValue: 0x0004)
    static let unavailable = StateFlags(rawValue: 0x0008)
    static let empty = StateFlags(rawValue: 0x0010)
    static let present = StateFlags(rawValue: 0x0020)
    static let exclusive = StateFlags(rawValue: 0x0080)
    static let inUse = StateFlags(rawValue: 0x0100)
    static let mute = StateFlags(rawValue: 0x0200)
}
