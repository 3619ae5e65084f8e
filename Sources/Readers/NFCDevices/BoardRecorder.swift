// SPDX-License-Identifier: GPL-3.0-or-later
import CNFC
import ISO7816
import Readers
import Text

/// Records what libnfc and a board say to each other while the board is opened, looks for a card and activates it.
///
/// The recorder opens the board itself, so no command of a client can be in the recording. The card gets no APDU.
struct BoardRecorder {
    private let connection: ConnectionString
    private let library: NFCLibrary
    private var answerToReset: [UInt8]?
    private var targets: [Target] = []

    /// libnfc writes three characters for each byte, and names its steps. One recording has about 20 kB.
    private static let maximumLog = 200_000

    init(_ connection: ConnectionString, _ library: NFCLibrary) {
        self.connection = connection
        self.library = library
    }

    /// Records the board. Blocks for a second, or for some seconds when no board answers.
    /// - Throws: `.other` with the reason why there is no recording.
    mutating func record() throws(CardError) -> BoardRecording {
        let buffer = UnsafeMutableBufferPointer<CChar>.allocate(capacity: Self.maximumLog)
        defer { buffer.deallocate() }
        var log = cnfc_log(text: buffer.baseAddress, size: buffer.count, count: 0)
        var failure: NFCCode?
        let isLogged = withUnsafeMutablePointer(to: &log) { log in
            guard cnfc_log(log) == 0 else { return false }
            defer { cnfc_log(nil) }
            do throws(NFCCode) { try survey() } catch { failure = error }
            return true
        }
        guard isLogged else { throw .noResources }
        guard log.count < buffer.count else { throw .other("the board said too much") }
        let text = buffer.prefix(log.count).map { UInt8(bitPattern: $0) }
        var recording = BoardRecording(
            driver: connection.driver,
            answerToReset: answerToReset,
            transfers: Self.transfers(text)
        )
        guard !recording.transfers.isEmpty else {
            throw .other(failure == nil ? "this libnfc logs no frames" : "the board cannot be opened")
        }
        recording.replaceNumbers()
        // Answers that badged cannot read could still have the number.
        let numbers = targets.compactMap(\.identifier)
        guard targets.count == numbers.count, !recording.contains(numbers) else {
            throw .other("the number of the card cannot be replaced")
        }
        return recording
    }

    /// Opens the board, looks for a card of each type as badged does, and activates what is there.
    private mutating func survey() throws(NFCCode) {
        let device = try NFCDevice(connection, library)
        defer { device.close() }
        for isTypeB in device.hasTypeB ? [false, true] : [false] {
            guard let target = try device.select(typeB: isTypeB) else { continue }
            targets.append(target)
            let card = try FieldCard(target, on: device)
            if !card.answerToReset.isEmpty { answerToReset = card.answerToReset }
            try card.checkPresence()
            try device.setField(on: false)
            try device.setField(on: true)
        }
        if connection.search == .byChip, let target = try device.poll(isOnce: true) { targets.append(target) }
    }

    /// The bytes in what libnfc has logged: lines of level, category and text, which is `TX: 00 ff` or `RX: 00 ff`.
    private static func transfers(_ log: [UInt8]) -> [BoardRecording.Transfer] {
        var transfers: [BoardRecording.Transfer] = []
        var note: String?
        for line in log.split(separator: UInt8(ascii: "\n")) {
            guard let words = line.split(separator: UInt8(ascii: "\t"), maxSplits: 2).dropFirst(2).first else {
                continue
            }
            // libnfc names its steps: `InListPassiveTarget`.
            let isLetter = { (byte: UInt8) in (0x41...0x5A).contains(byte) || (0x61...0x7A).contains(byte) }
            if words.allSatisfy(isLetter) { note = String(decoding: words, as: UTF8.self) }
            let isFromBoard = words.starts(with: "RX: ".utf8)
            guard isFromBoard || words.starts(with: "TX: ".utf8) else { continue }
            let digits = String(decoding: words.dropFirst(4).filter { $0 != UInt8(ascii: " ") }, as: UTF8.self)
            guard let bytes = Hex.decode(digits), !bytes.isEmpty else { continue }
            if isFromBoard, let last = transfers.indices.last {
                // libnfc reads a frame in parts.
                if transfers[last].isFromBoard {
                    transfers[last].bytes += bytes
                } else {
                    transfers.append(.init(isFromBoard: true, bytes))
                }
            } else if !isFromBoard {
                transfers.append(.init(isFromBoard: false, bytes, note: note.take()))
            }
        }
        return transfers
    }
}
