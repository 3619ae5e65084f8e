// SPDX-License-Identifier: GPL-3.0-or-later

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
