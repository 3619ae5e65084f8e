// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import Document
import ISO7816
import ReadersVirtual
import Synchronization
import TestSupport
import Testing
import Text
import VirtualDocument

/// Chips that differ from the standard, as issue trackers of readers describe them, and chips that attack.
@Suite("Odd and hostile documents", .timeLimit(.minutes(10)))
struct DocumentQuirkTests {
    struct Quirk: Sendable, CustomTestStringConvertible {
        let name: String
        let change: @Sendable (inout VirtualDocumentDescription) -> Void
        var testDescription: String { name }
    }

    static let quirks: [Quirk] = [
        .init(name: "SELECT MF is refused with 6985") { $0.quirks.selectMasterFile = 0x6985 },
        .init(name: "SELECT MF is refused with 6A86") { $0.quirks.selectMasterFile = 0x6A86 },
        .init(name: "SELECT MF is refused with 6982") { $0.quirks.selectMasterFile = 0x6982 },
        .init(name: "SELECT MF is refused with 6986") { $0.quirks.selectMasterFile = 0x6986 },
        .init(name: "EF.CardAccess is refused with 6986") { $0.quirks.noCardAccess = 0x6986 },
        .init(name: "short file identifiers are refused with 6985") { $0.quirks.noShortID = 0x6985 },
        .init(name: "a short file identifier ends the channel with 6A86") {
            ($0.quirks.noShortID, $0.quirks.endsChannel) = (0x6A86, [0x6A86])
        },
        .init(name: "a read of more than 160 bytes ends the channel") { $0.quirks.maximumRead = 160 },
        .init(name: "a read of more than 223 bytes ends the channel") { $0.quirks.maximumRead = 223 },
        .init(name: "a read beyond the end ends the channel with 6B00") {
            ($0.quirks.beyondEnd, $0.quirks.endsChannel) = (0x6B00, [0x6B00])
        },
        .init(name: "a read beyond the end ends the channel with 6CE7") {
            ($0.quirks.beyondEnd, $0.quirks.endsChannel) = (0x6CE7, [0x6CE7])
        },
        .init(name: "a read beyond the end ends the channel with 6282") {
            ($0.quirks.beyondEnd, $0.quirks.endsChannel) = (0x6282, [0x6282])
        },
        .init(name: "there is no EF.COM") { $0.files["COM"] = nil },
        .init(name: "there is no EF.DIR and no EF.ATR/INFO") { ($0.files["DIR"], $0.files["ATR"]) = (nil, nil) },
        .init(name: "there are no extended lengths") { $0.quirks.hasExtendedLength = false },
        .init(name: "EXTERNAL AUTHENTICATE needs Le 00") { $0.quirks.externalLe = 256 },
        .init(name: "EXTERNAL AUTHENTICATE needs Le 28") { $0.quirks.externalLe = 40 },
    ]

    @Test("the document is read all the same, by BAC and by PACE", arguments: quirks)
    func quirk(quirk: Quirk) async throws {
        for name in ["bac-aa-rsa-sha256", "pace-gm-bac", "pace-cam-ca"] {
            for extended in [false, true] {
                let entry = try DocumentCatalogue.shared.document(name)
                var test = try TestReading(entry, extended: extended, change: quirk.change)
                try await test.run()
                #expect(test.reading.checks.verdict == .genuine, "\(name) \(test.reading.checks)")
                #expect(test.reading.files[.group(2)] == entry.files["DG2"])
            }
        }
    }

    @Test(
        "every status word of a wrong key is a wrong key",
        arguments: [0x6300, 0x6982, 0x6985, 0x6A80, 0x6A88, 0x6F00]
    )
    func wrongKeyStatus(status: Int) async throws {
        let entry = try DocumentCatalogue.shared.document("bac-td3")
        let wrong = AccessKey(information: Secret(Array("X00000000470010143001019".utf8)))
        var test = try TestReading(entry, key: wrong, change: { $0.quirks.wrongPassword = UInt16(status) })
        let expected = DocumentError.wrongPassword(StatusWord(UInt16(status)))
        await #expect(throws: expected) { try await test.run() }
    }

    /// A document with BAC that answers to EXTERNAL AUTHENTICATE with these status words, one after another, and goes on with
    /// the last one if there is no `end`.
    private func refusing(_ statuses: [UInt16], end: Bool) throws -> TestReading {
        let count = Mutex(0)
        return try TestReading(
            try DocumentCatalogue.shared.document("bac-td3"),
            groups: [1],
            forge: { _, command, answer in
                guard command.ins == 0x82 else { return answer }
                let number = count.withLock { count in
                    count += 1
                    return count - 1
                }
                if end, number >= statuses.count { return answer }
                return ResponseAPDU(StatusWord(statuses[min(number, statuses.count - 1)]))
            }
        )
    }

    @Test(
        "one status word that is not about the value does not make a key wrong",
        arguments: [0x6F00, 0x6D00, 0x6700] as [UInt16]
    )
    func refusedOnce(status: UInt16) async throws {
        for statuses in [[status], [0x6700, status]] {
            var test = try refusing(statuses, end: true)
            try await test.run()
            #expect(test.reading.access?.method == .bac)
        }
    }

    @Test(
        "a chip that refuses the command is not said to refuse the key",
        arguments: [
            ([0x6700], .basicAccessRefused(StatusWord(0x6700))), ([0x6D00], .basicAccessRefused(StatusWord(0x6D00))),
            ([0x6700, 0x6D00], .basicAccessRefused(StatusWord(0x6D00))),
            ([0x6700, 0x6F00], .wrongPassword(StatusWord(0x6F00))),
            ([0x6700, 0x6300], .wrongPassword(StatusWord(0x6300))),
        ] as [([UInt16], DocumentError)]
    )
    func refusedCommand(statuses: [UInt16], error: DocumentError) async throws {
        var test = try refusing(statuses, end: false)
        await #expect(throws: error) { try await test.run() }
    }

    @Test("a file above 32 KiB is read with the odd instruction", arguments: [false, true])
    func large(extended: Bool) async throws {
        let entry = try DocumentCatalogue.shared.document("large")
        var test = try TestReading(entry, groups: [1, 2], extended: extended)
        try await test.run()
        #expect(test.reading.files[.group(2)] == entry.files["DG2"])
        #expect(test.reading.checks.verdict == .genuineCopyable)
        #expect(await test.channel.log.contains { $0.ins == 0xB1 })
    }

    @Test(
        "an answer to the odd instruction has as many bytes as fit into Le with their header",
        arguments: [
            (3, 1), (129, 127), (130, 127), (131, 128), (256, 253), (258, 255), (259, 255), (260, 256), (4096, 4092),
        ]
    )
    func oddAnswers(le: Int, count: Int) async throws {
        var description = VirtualDocumentDescription()
        description.files["ATR"] = [UInt8](repeating: 7, count: 40_000)
        let card = try description.makeCard()
        // EF.ATR/INFO needs no access. Le covers the object 53, whose data follow the offset 8001.
        let answer = try await card.answer(CommandAPDU(0, 0xB1, 0, 1, data: [0x54, 2, 0x80, 0x01], le: le))
        #expect(answer.status == .ok)
        #expect(answer.data == BERTLV(0x53, [UInt8](repeating: 7, count: count)).encoded)
        let last = try await card.answer(CommandAPDU(0, 0xB1, 0, 1, data: [0x54, 2, 0x9C, 0x3F], le: le))
        #expect(last.status == StatusWord(le == 3 || le == 256 ? 0x9000 : 0x6282))
        #expect(last.data == [0x53, 1, 7])
    }

    @Test("a file that does not say its length is read to its end, in blocks and in few commands")
    func unsaidLength() async throws {
        let entry = try DocumentCatalogue.chains.document("length-sod")
        var anchors = DocumentAnchors()
        let files = (entry.expect["trust"]?.members ?? []).compactMap { member in
            member.value.string.flatMap { DocumentCatalogue.chains.blobs[$0] }
        }
        for file in files { try anchors.trust(try DocumentCertificate(file)) }
        let sod = try #require(entry.files["SOD"])
        // The chip ends the channel when it is asked for more than the file has.
        for endsChannel in [[], [0x6B00]] as [Set<UInt16>] {
            var test = try TestReading(
                entry,
                groups: [1],
                change: { ($0.quirks.beyondEnd, $0.quirks.endsChannel) = (0x6B00, endsChannel) }
            )
            try await test.run(anchors)
            #expect(test.reading.checks.verdict == .genuineCopyable, "\(test.reading.checks)")
            #expect(test.reading.files[.sod] == sod)
        }
        // A file that never ends, of small objects.
        var endless = try TestReading(
            entry,
            groups: [1],
            change: { description in
                description.files["SOD"] = [0x77, 0x80] + [UInt8]((0..<80_000).map { $0 % 2 == 0 ? 0x05 : 0x00 })
            }
        )
        try await endless.run(anchors)
        #expect(endless.reading.checks.signature.reason == .malformed)
        #expect(await endless.channel.log.count < 600)
    }

    @Test("a chip that finds no file by its short identifier", arguments: [[], [0x6A82]] as [Set<UInt16>])
    func identifierNotFound(endsChannel: Set<UInt16>) async throws {
        let entry = try DocumentCatalogue.shared.document("bac-aa-rsa-sha256")
        var test = try TestReading(
            entry,
            change: { ($0.quirks.noShortID, $0.quirks.endsChannel) = (0x6A82, endsChannel) }
        )
        try await test.run()
        #expect(test.reading.checks.verdict == .genuine)
        #expect(test.reading.files[.group(2)] == entry.files["DG2"])
    }

    @Test("a file that is missing ends the channel, and the next files are read in a new one")
    func missingFile() async throws {
        for name in ["bac-aa-rsa", "pace-gm-bac"] {
            let entry = try DocumentCatalogue.shared.document(name)
            var test = try TestReading(
                entry,
                groups: [1, 2, 11],
                change: { ($0.files["DG1"], $0.quirks.endsChannel) = (nil, [0x6A82]) }
            )
            try await test.run()
            #expect(test.reading.groups[1] == .refused)
            #expect(test.reading.files[.group(2)] == entry.files["DG2"])
            #expect(test.reading.checks.hashes == HashCheck(result: .failed, reason: .malformed, groups: [1]))
            #expect(test.reading.checks.verdict == .suspect)
        }
    }

    @Test("active authentication accepts the other root of RSA")
    func complement() async throws {
        let entry = try DocumentCatalogue.shared.document("bac-aa-rsa")
        var test = try TestReading(entry, groups: [1], change: { $0.quirks.signsComplement = true })
        try await test.run()
        #expect(test.reading.checks.chip.result == .passed)
    }

    @Test("PACE that was removed from EF.CardAccess is found in DG14, and BAC is not said to be genuine")
    func downgrade() async throws {
        let entry = try DocumentCatalogue.shared.document("pace-gm-bac")
        var test = try TestReading(entry, groups: [1], change: { $0.files["CardAccess"] = nil })
        try await test.run()
        #expect(test.reading.access?.method == .bac)
        #expect(test.reading.checks.document.findings == [.accessDiffers])
        #expect(test.reading.checks.verdict == .suspect)
    }

    @Test("a failed PACE never leads to BAC", arguments: 2..<6)
    func noFallback(index: Int) async throws {
        let entry = try DocumentCatalogue.shared.document("pace-gm-bac")
        var test = try TestReading(
            entry,
            forge: { number, command, answer in
                let isStep = command.ins == 0x86 || command.ins == 0x22
                return isStep && number >= index ? ResponseAPDU(StatusWord(0x6F00)) : answer
            }
        )
        await #expect(throws: DocumentError.self) { try await test.run() }
        let log = await test.channel.log
        #expect(!log.contains { $0.ins == 0x84 || $0.ins == 0x82 })
    }

    @Test("PACE of a document with neither a supported variant nor BAC is refused")
    func unsupported() async throws {
        let entry = try DocumentCatalogue.shared.document("pace-only-td1")
        var test = try TestReading(entry, policy: .never, change: { $0.files["CardAccess"] = nil })
        await #expect(throws: DocumentError.accessUnsupported) { try await test.run() }
    }

    @Test("a chip that keeps a lost channel needs a reset")
    func noNewChannel() async throws {
        let entry = try DocumentCatalogue.shared.document("bac-td3")
        let challenges = Mutex(0)
        var test = try TestReading(
            entry,
            change: { ($0.quirks.noShortID, $0.quirks.endsChannel) = (0x6985, [0x6985]) },
            forge: { _, command, answer in
                guard command.ins == 0x84 else { return answer }
                let count = challenges.withLock {
                    $0 += 1
                    return $0
                }
                return count == 1 ? answer : ResponseAPDU(StatusWord(0x6982))
            }
        )
        await #expect(throws: DocumentError.card(.reset)) { try await test.run() }
    }

    /// A connection that fetches the rest of an answer as javax.smartcardio does.
    private struct JavaChannel: CardChannel {
        let base: VirtualChannel

        func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
            guard command.ins == 0xC0 else { return try await base.transmit(command) }
            return try await base.transmit(CommandAPDU(0x0C, 0xC0, 0, 0, le: command.le))
        }
    }

    @Test("GET RESPONSE with the class of the command fetches the rest from the virtual document")
    func classOfCommand() async throws {
        let entry = try DocumentCatalogue.shared.document("pace-gm-bac")
        let base = VirtualChannel(try entry.description().makeCard())
        let chip = DocumentChip(
            channel: JavaChannel(base: base),
            key: entry.key,
            policy: .whenNoPACE,
            abilities: ReadAbilities()
        )
        var reading = DocumentReading(groups: [1])
        let anchors = try DocumentCatalogue.shared.anchors()
        try await reading.run(chip, key: entry.key, anchors: anchors, at: DocumentCatalogue.time)
        #expect(reading.checks.verdict == .genuine)
        #expect(await base.log.contains { $0.ins == 0xC0 && $0.cla == 0x0C })
    }

    @Test("answers in plain after secure messaging end the reading")
    func plainAnswers() async throws {
        for name in ["bac-td3", "pace-only-td1"] {
            let entry = try DocumentCatalogue.shared.document(name)
            var test = try TestReading(entry, change: { $0.quirks.answersInPlain = true })
            await #expect(throws: DocumentError.self) { try await test.run() }
            #expect(test.reading.zone == nil)
        }
    }

    @Test("one wrong bit in any protected answer is never passed over")
    func flippedBit() async throws {
        let entry = try DocumentCatalogue.shared.document("bac-ca-3des")
        var refused = 0
        for index in 5..<20 {
            var test = try TestReading(
                entry,
                groups: [1],
                forge: { number, _, answer in
                    guard number == index, let last = answer.data.indices.last else { return answer }
                    var forged = answer
                    forged.data[last] ^= 1
                    return forged
                }
            )
            do {
                try await test.run()
                // The answer under new keys may be the one that was forged.
                let checks = test.reading.checks
                if checks.chip.result == .passed { #expect(checks.verdict == .genuine) }
            } catch let error as DocumentError {
                #expect(error != .notADocument)
                refused += 1
            }
        }
        // Some of them are answers of EF.SOD.
        #expect(refused > 0)
    }

    @Test("files that never end, and lengths that lie, are bounded")
    func lyingLengths() async throws {
        let heads: [[UInt8]] = [
            [0x75, 0x84, 0xFF, 0xFF, 0xFF, 0xFF], [0x75, 0x84, 0x00, 0x10, 0x00, 0x01], [0x75, 0x85, 1, 0, 0, 0, 0],
            [0x75, 0x80], [0x75, 0x83, 0x0F, 0xFF, 0xFF], [0x76, 0x05], [0x75],
            [],
        ]
        let entry = try DocumentCatalogue.shared.document("bac-td3-sha1")
        for head in heads {
            var test = try TestReading(
                entry,
                groups: [1, 2],
                change: { $0.files["DG2"] = head + [UInt8](repeating: 0xAA, count: 3000) }
            )
            try await test.run()
            #expect(test.reading.checks.verdict == .suspect)
            #expect(await test.channel.log.count < 100)
        }
    }

    @Test("a reader without extended lengths is used with short ones")
    func shortReader() async throws {
        for name in ["bac-aa-rsa-sha256", "pace-gm-bac"] {
            let entry = try DocumentCatalogue.shared.document(name)
            let channel = ShortReader(try entry.description().makeCard())
            let chip = DocumentChip(
                channel: channel,
                key: entry.key,
                abilities: ReadAbilities(usesExtendedLength: true)
            )
            var reading = DocumentReading(groups: [1, 2])
            let anchors = try DocumentCatalogue.shared.anchors()
            try await reading.run(chip, key: entry.key, anchors: anchors, at: DocumentCatalogue.time)
            #expect(reading.checks.verdict == .genuine)
        }
    }

    /// A reader that refuses extended lengths, as some drivers do.
    private struct ShortReader: CardChannel {
        let channel: VirtualChannel

        init(_ card: VirtualCard) { channel = VirtualChannel(card) }

        func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
            guard !command.isExtended else { throw .tooLong }
            return try await channel.transmit(command)
        }
    }

    @Test("chip authentication over integers proves the chip, and finds a clone", arguments: [false, true])
    func integers(isClone: Bool) async throws {
        let group = try DHParameters.modp2048Subgroup256.group
        let own = try DHPrivateKey(on: group)
        // A clone does not have the private half of the key in DG14.
        let reader = try DHPrivateKey(on: group)
        let choice = ChipAuthenticationV1(
            key: .integers(isClone ? try DHPrivateKey(on: group).publicKey : own.publicKey),
            cipher: .aes128,
            keyID: nil
        )
        #expect(choice.protocolID == hex("04007F00070202030102"))
        let theirs = try ChipAuthenticationV1.agree(
            .integers(own),
            with: .integers(reader.publicKey),
            cipher: .aes128
        )
        let ours = try ChipAuthenticationV1.agree(.integers(reader), with: choice.key, cipher: .aes128)
        #expect((bytes(ours.encryption) == bytes(theirs.encryption)) == !isClone)
    }

    @Test("what was read before a document was taken out counts only if the next one has the same EF.SOD")
    func takenOut() async throws {
        // Both have the same key, and no EF.CardAccess.
        let (entry, other) = (try Self.document("bac-aa-rsa"), try Self.document("bac-td3"))
        func next(
            _ reading: DocumentReading,
            _ entry: DocumentCatalogue.Entry,
            forge: @escaping VirtualChannel.Forgery = { _, _, answer in answer }
        ) throws -> TestReading {
            var test = try TestReading(entry, forge: forge)
            test.reading = reading
            return test
        }
        var whole = try TestReading(entry, groups: [1, 2])
        try await whole.run()
        whole.reading.wasTakenOut()

        var same = try next(whole.reading, entry)
        try await same.run()
        #expect(!same.reading.hasBegunAnew)
        #expect(same.reading.checks.verdict == .genuine)
        #expect(await !same.channel.log.contains { $0.ins == 0xB0 && $0.p1 == 0x82 })

        var swapped = try next(whole.reading, other)
        try await swapped.run()
        #expect(swapped.reading.hasBegunAnew)
        #expect(swapped.reading.files[.group(2)] == other.files["DG2"])
        #expect(swapped.reading.checks.hashes.result == .passed)

        // The EF.SOD of the next document is disturbed, and left out.
        var reading = whole.reading
        for _ in 0..<2 {
            var disturbed = try next(reading, other) { _, command, answer in
                var answer = answer
                if command.ins == 0xB0, command.p1 == 0x9D, let last = answer.data.indices.last {
                    answer.data[last] ^= 1
                }
                return answer
            }
            await #expect(throws: DocumentError.self) { try await disturbed.run() }
            reading = disturbed.reading
            #expect(reading.files.isEmpty)
        }
        var left = try next(reading, other)
        try await left.run()
        #expect(left.reading.files[.group(1)] == other.files["DG1"])
        #expect(left.reading.checks.signature.reason == .disturbed)

        // EF.SOD was refused, so nobody can say whether the document is the same.
        var refused = try TestReading(entry, groups: [1, 2], change: { $0.files["SOD"] = nil })
        try await refused.run()
        refused.reading.wasTakenOut()
        var found = try next(refused.reading, other)
        try await found.run()
        #expect(found.reading.hasBegunAnew)
        #expect(found.reading.checks.hashes.result == .passed)
    }

    private static func document(_ name: String) throws -> DocumentCatalogue.Entry {
        try DocumentCatalogue.shared.document(name)
    }

    @Test("a card that leaves is a lost card at every command, and the reading goes on with what it has")
    func removal() async throws {
        let entry = try DocumentCatalogue.shared.document("pace-gm-bac")
        var whole = try TestReading(entry)
        try await whole.run()
        let count = await whole.channel.log.count
        for index in stride(from: 0, to: count, by: 7) {
            var description = try entry.description()
            description.options.faults = [.init(afterAPDU: index, action: .remove)]
            var reading = DocumentReading(groups: [1, 2, 7, 11, 12, 13, 16])
            let card = try description.makeCard()
            let key = entry.key
            let anchors = try DocumentCatalogue.shared.anchors()
            let first = DocumentChip(channel: VirtualChannel(card), key: key)
            await #expect(throws: DocumentError.card(.removed)) {
                try await reading.run(first, key: key, anchors: anchors, at: DocumentCatalogue.time)
            }
            let again = VirtualChannel(try entry.description().makeCard())
            let second = DocumentChip(channel: again, key: key)
            let files = reading.files.count
            try await reading.run(second, key: key, anchors: anchors, at: DocumentCatalogue.time)
            #expect(reading.files == whole.reading.files)
            #expect(reading.checks.verdict == .genuine)
            if files > 4 { #expect(await again.log.count < count) }
        }
    }
}
