// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import ISO7816
import ReadersVirtual
import Synchronization
import TestSupport
import Testing
import Text
import VirtualDocument

/// Chips that refuse a step of a reading, end their channel then, and open no other one until they are reset; and chips
/// that do not answer to a step, or with a wrong checksum.
@Suite("Documents that refuse a step", .timeLimit(.minutes(5)))
@Loop struct RefusedStepTests {
    /// What a chip refuses after a channel, until it is reset.
    enum Kept: String, CaseIterable, Sendable {
        case nothing
        /// What begins BAC and PACE. SELECT succeeds. JMRTD's passport applet does so.
        case access
        /// What ends BAC and PACE.
        case proof
        /// Each command in plain.
        case everything
    }

    /// What tells commands of a reading from each other.
    struct Header: Hashable, Sendable {
        let ins: UInt8
        let p1: UInt8
        let p2: UInt8

        init(_ command: CommandAPDU) {
            ins = command.ins
            p1 = command.p1
            p2 = command.p2
        }
    }

    /// Where a reading is. Files of different phases have the same short identifier.
    enum Phase: Sendable {
        case masterFile
        case application
        /// After the keys of chip authentication.
        case proven
    }

    /// A step in which a chip gives no answer of its own.
    struct Disturbed: Hashable, Sendable {
        let header: Header
        let phase: Phase
    }

    enum Spoil: Sendable, CaseIterable {
        case mute
        case wrongChecksum
    }

    /// A virtual document that keeps its channel until it is reset.
    final class Chip: Sendable {
        private struct State {
            var hasChannel = false
            var resets = 0
            var phase = Phase.masterFile
            var steps: Set<Disturbed> = []
        }

        private let card: VirtualCard
        private let isOpen: Bool
        private let kept: Kept
        private let state = Mutex(State())

        /// The command that is refused without protection each time that it comes through a channel.
        private let refused: Header?
        /// The step that is disturbed each time.
        private let disturbed: (step: Disturbed, spoil: Spoil)?

        init(
            _ description: VirtualDocumentDescription,
            _ kept: Kept,
            refused: Header? = nil,
            disturbed: (Disturbed, Spoil)? = nil
        ) throws {
            card = try description.makeCard()
            isOpen = !description.hasBAC && description.files["CardAccess"] == nil
            self.kept = kept
            self.refused = refused
            self.disturbed = disturbed
        }

        var resets: Int { state.withLock { $0.resets } }
        /// What came through a channel, without the rest of a file and what opens the application.
        var steps: Set<Disturbed> { state.withLock { $0.steps } }

        func answer(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
            let isPlain = command.cla & 0x0C == 0
            if command.ins == 0xA4, command.p1 == 0x04 { state.withLock { $0.phase = .application } }
            // PACE and EF.CardAccess are in the master file.
            let isInMasterFile = command.ins == 0x22 && command.p2 == 0xA4 || command.ins == 0xB0 && command.p1 == 0x9C
            if isPlain, isInMasterFile { state.withLock { $0.phase = .masterFile } }
            // GET RESPONSE fetches the rest of a protected answer.
            if isPlain, command.ins != 0xC0, state.withLock({ $0.hasChannel }) {
                switch kept {
                case .nothing: break
                case .access: return ResponseAPDU(StatusWord(command.ins == 0xA4 ? 0x9000 : 0x6982))
                case .proof where [0x82, 0x86].contains(command.ins): return ResponseAPDU(StatusWord(0x6985))
                case .proof: return ResponseAPDU(data: command.ins == 0x84 ? [UInt8](1...8) : [], .ok)
                case .everything: return ResponseAPDU(StatusWord(0x6982))
                }
            }
            if !isPlain, Header(command) == refused { return ResponseAPDU(StatusWord(0x6985)) }
            let isStep = isOpen && [0xB0, 0x88].contains(command.ins) && state.withLock { $0.phase != .masterFile }
            if !isPlain || command.ins == 0xC0 || isStep { return try await answerProtected(command) }
            let answer = try await card.answer(command)
            // EXTERNAL AUTHENTICATE, the last step of PACE, and MSE:Set KAT of a chip without access control.
            let opens = command.ins == 0x82 || command.cla == 0 && command.ins == 0x86 || command.p2 == 0xA6
            if opens, answer.status == .ok { state.withLock { $0.hasChannel = true } }
            return answer
        }

        private func answerProtected(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
            let isSelection = command.ins == 0xA4 && command.p1 == 0x04
            let isRest = command.ins == 0xC0 || command.ins == 0xB0 && command.p1 & 0x80 == 0
            let step = Disturbed(header: Header(command), phase: state.withLock { $0.phase })
            if !isSelection, !isRest { state.withLock { _ = $0.steps.insert(step) } }
            var answer = try await card.answer(command)
            // MSE:Set KAT, and GENERAL AUTHENTICATE.
            if command.ins == 0x22 && command.p2 == 0xA6 || command.ins == 0x86 {
                state.withLock { $0.phase = .proven }
            }
            guard let disturbed, disturbed.step == step else { return answer }
            guard disturbed.spoil == .wrongChecksum, let last = answer.data.indices.last else { throw .mute }
            answer.data[last] ^= 1
            return answer
        }

        func disconnect(_ reset: Bool) async {
            guard reset else { return }
            state.withLock { state in
                state.hasChannel = false
                state.phase = .masterFile
                state.resets += 1
            }
            await card.reset()
        }
    }

    struct Step: Sendable, CustomTestStringConvertible {
        let name: String
        let document: String
        let verdict: String
        /// The methods that prove the chip, with their results.
        let methods: [String]
        /// The groups that are not read.
        let unread: Set<Int>
        /// How often the chip is reset if it keeps its channel and does not end it with the refusal, and if it ends it.
        let resets: [Int]
        let change: @Sendable (inout VirtualDocumentDescription) -> Void
        var testDescription: String { name }

        init(
            _ name: String,
            _ document: String,
            _ verdict: String,
            _ methods: [String],
            unread: Set<Int> = [],
            resets: [Int],
            change: @escaping @Sendable (inout VirtualDocumentDescription) -> Void
        ) {
            self.name = name
            self.document = document
            self.verdict = verdict
            self.methods = methods
            self.unread = unread
            self.resets = resets
            self.change = change
        }
    }

    nonisolated static let steps: [Step] = [
        Step("nothing is refused", "pace-gm-bac", "genuine", ["CA passed", "AA passed"], resets: [0, 0]) { _ in },
        Step("CA is refused", "bac-ca-3des", "suspect", ["CA failed refused"], resets: [1, 1]) { $0.keys["ca1"] = nil },
        Step("CA with AES is refused", "pace-gm-bac", "suspect", ["CA failed refused", "AA passed"], resets: [1, 1]) {
            $0.keys["ca1"] = nil
        },
        Step("the chip has another key", "bac-ca-3des", "suspect", ["CA failed wrongKey"], resets: [1, 1]) {
            $0.cloned = "ca"
        },
        Step(
            "CA is refused, and short file identifiers are",
            "bac-ca-3des",
            "suspect",
            ["CA failed refused"],
            resets: [1, 2]
        ) { ($0.quirks.noShortID, $0.keys["ca1"]) = (0x6985, nil) },
        Step("AA is refused", "bac-aa-rsa", "suspect", ["AA failed refused"], resets: [1, 1]) { $0.keys["aa"] = nil },
        // The signature is long, so a shorter answer is asked for once.
        Step(
            "CA and AA are refused",
            "pace-gm-bac",
            "suspect",
            ["CA failed refused", "AA failed refused"],
            resets: [2, 4]
        ) { $0.keys = [:] },
        Step("DG1 is missing", "bac-td3-sha1", "suspect", [], unread: [1], resets: [1, 2]) { $0.files["DG1"] = nil },
        Step("DG2 is missing", "bac-td3-sha1", "suspect", [], unread: [2], resets: [1, 2]) { $0.files["DG2"] = nil },
        Step("DG14 is missing", "bac-ca-3des", "suspect", ["CA failed refused"], unread: [14], resets: [1, 2]) {
            $0.files["DG14"] = nil
        },
        Step("DG15 is missing", "bac-aa-rsa", "suspect", ["AA failed refused"], unread: [15], resets: [1, 2]) {
            $0.files["DG15"] = nil
        },
        Step(
            "DG11 is locked",
            "pace-gm-bac",
            "suspect",
            ["CA passed", "AA passed"],
            unread: [11],
            resets: [1, 1]
        ) { $0.lockedGroups = [11] },
        Step(
            "many groups are locked",
            "pace-gm-bac",
            "suspect",
            ["CA passed", "AA passed"],
            unread: [7, 11, 12, 13, 16],
            resets: [1, 9]
        ) { $0.lockedGroups = [7, 11, 12, 13, 16] },
        Step("EF.SOD is missing", "pace-gm-bac", "suspect", [], resets: [1, 3]) { $0.files["SOD"] = nil },
        Step(
            "EF.SOD is missing, and groups are",
            "bac-aa-rsa",
            "suspect",
            [],
            unread: [7, 11, 12, 13, 16],
            resets: [1, 8]
        ) { $0.files["SOD"] = nil },
        Step("EF.COM is missing", "bac-aa-rsa", "genuine", ["AA passed"], resets: [0, 1]) { $0.files["COM"] = nil },
        Step(
            "EF.CardSecurity is missing",
            "pace-cam-ca",
            "suspect",
            ["PACE-CAM failed refused", "CA passed"],
            resets: [1, 3]
        ) { $0.files["CardSecurity"] = nil },
        Step("an open chip refuses CA", "bac-ca-3des", "suspect", ["CA failed refused"], resets: [1, 1]) {
            ($0.hasBAC, $0.keys["ca1"]) = (false, nil)
        },
        Step("an open chip has another key", "bac-ca-3des", "suspect", ["CA failed wrongKey"], resets: [1, 1]) {
            ($0.hasBAC, $0.cloned) = (false, "ca")
        },
    ]

    /// Reads each group that the document may have.
    private func read(_ fixture: ReadDocumentTests.Fixture) async -> JSON? {
        await fixture.begin(groups: [1, 2, 7, 11, 12, 13, 16])
        return await fixture.client.ask(#"{"cmd":"SET_MRZ","value":"\#(zoneLines)"}"#, "DOCUMENT")
    }

    private func connect(_ fixture: ReadDocumentTests.Fixture, to chip: Chip) {
        let script = fixture.script
        fixture.backend.onConnect { _ throws(CardError) in
            ScriptedConnection { command throws(CardError) in
                try await script.run(command)
                return try script.answer(try await chip.answer(command))
            } disconnect: { reset in
                await chip.disconnect(reset)
            }
        }
    }

    @Test(
        "the document is read to its end, with its verdict and no more resets than needed",
        arguments: steps,
        Kept.allCases
    )
    func refused(step: Step, kept: Kept) async throws {
        for ends in [false, true] {
            let fixture = try await ReadDocumentTests.Fixture(step.document)
            var description = try ReadDocumentTests.description(step.document)
            step.change(&description)
            if ends { description.quirks.endsChannel = [0x6982, 0x6985, 0x6A82, 0x6A88] }
            let chip = try Chip(description, kept)
            connect(fixture, to: chip)
            let document = await read(fixture)
            #expect(document?["success"] == .bool(true), "ends \(ends): \(document ?? .null)")
            #expect(document?["verdict"]?.string == step.verdict)
            let methods = document?["checks"]?["chip"]?["methods"]?.array?.map { method in
                ["method", "result", "reason"].compactMap { method[$0]?.string }.joined(separator: " ")
            }
            #expect(methods == step.methods)
            let unread = document?["groups"]?.array?.filter { $0["state"] == .string("refused") }
            #expect(Set((unread ?? []).compactMap { $0["group"]?.int }) == step.unread)
            #expect((document?["document"] != nil) == !step.unread.contains(1))
            #expect((document?["portrait"] != nil) == !step.unread.contains(2))
            // The end of the reading resets the card as well.
            let resets = chip.resets - 1
            #expect(resets == (kept == .nothing ? min(1, step.resets[0]) : step.resets[ends ? 1 : 0]), "ends \(ends)")
        }
    }

    @Test(
        "a chip that refuses any command has the same verdict, whatever it keeps",
        arguments: ["bac-aa-rsa", "bac-ca-3des", "pace-gm-bac", "pace-cam-ca"]
    )
    func anyCommand(name: String) async throws {
        func read(_ kept: Kept, _ refused: Header?) async throws -> (document: JSON?, commands: [CommandAPDU]) {
            let fixture = try await ReadDocumentTests.Fixture(name)
            connect(fixture, to: try Chip(try ReadDocumentTests.description(name), kept, refused: refused))
            return (await self.read(fixture), fixture.script.commands)
        }
        // Each file is read from its start, and the application is needed.
        let commands = try await read(.nothing, nil).commands.filter { command in
            command.cla & 0x0C != 0 && command.ins != 0xA4 && (command.ins != 0xB0 || command.p1 & 0x80 != 0)
        }
        #expect(commands.count > 4)
        for header in Set(commands.map(Header.init)) {
            let expected = try await read(.nothing, header).document
            #expect(expected?["success"] == .bool(true), "\(header): \(expected ?? .null)")
            for kept in [Kept.access, .proof, .everything] {
                let document = try await read(kept, header).document
                #expect(document?["verdict"] == expected?["verdict"], "\(header), \(kept): \(document ?? .null)")
                #expect(document?["checks"] == expected?["checks"])
            }
        }
    }

    private func readGroups(_ document: JSON?) -> [Int] {
        (document?["groups"]?.array ?? []).filter { $0["state"] == .string("read") }.compactMap { $0["group"]?.int }
    }

    /// What a reading says without one step, and which group it has not read.
    private func expected(without step: Disturbed, _ spoil: Spoil) -> (
        verdict: String, reasons: Set<String>, group: Int?
    ) {
        switch (step.phase, step.header.ins, step.header.p1, step.header.p2) {
        case (.masterFile, _, _, _): ("unverified", ["chip PACE-CAM"], nil)
        case (_, 0xB0, 0x9D, _): ("unverified", ["signature"], nil)
        case (_, 0xB0, 0x9E, _): ("genuine", [], nil)
        // A chip without the key has no other answer under the new keys than this one.
        case (.proven, 0xB0, 0x8E, _) where spoil == .wrongChecksum: ("suspect", [], nil)
        case (.proven, 0xB0, 0x8E, _), (_, 0x22, _, _), (_, 0x86, _, _): ("unverified", ["chip CA"], nil)
        case (_, 0x88, _, _): ("unverified", ["chip AA"], nil)
        case (_, 0xB0, 0x8E, _): ("unverified", ["hashes", "chip CA"], 14)
        case (_, 0xB0, 0x8F, _): ("unverified", ["hashes", "chip AA"], 15)
        case (_, 0xB0, let p1, _): ("unverified", ["hashes"], Int(p1 & 0x1F))
        default: ("unverified", ["an unknown step"], nil)
        }
    }

    @Test(
        "a chip without an answer of its own in one step is read without this step, and proves no more than before",
        arguments: ["bac-aa-rsa", "bac-ca-3des", "pace-gm-bac", "pace-cam-ca", "bac-td3-sha1"],
        Spoil.allCases
    )
    func noAnswer(name: String, spoil: Spoil) async throws {
        func read(_ kept: Kept, _ disturbed: (Disturbed, Spoil)?) async throws -> (document: JSON?, chip: Chip) {
            let fixture = try await ReadDocumentTests.Fixture(name)
            let chip = try Chip(try ReadDocumentTests.description(name), kept, disturbed: disturbed)
            connect(fixture, to: chip)
            return (await self.read(fixture), chip)
        }
        let undisturbed = try await read(.nothing, nil)
        let steps = undisturbed.chip.steps
        #expect(steps.count >= 4)
        for step in steps {
            for kept in [Kept.nothing, .everything] {
                let (document, chip) = try await read(kept, (step, spoil))
                let words = "\(step), \(kept): \(document ?? .null)"
                #expect(document?["success"] == .bool(true), "\(words)")
                let (expectation, reasons, group) = expected(without: step, spoil)
                var verdict = expectation
                if verdict == "genuine" { verdict = undisturbed.document?["verdict"]?.string ?? "" }
                #expect(document?["verdict"]?.string == verdict, "\(words)")
                let checks = document?["checks"]
                var found: Set<String> = []
                for name in ["hashes", "signature", "authority"] where checks?[name]?["reason"] == .string("disturbed")
                {
                    found.insert(name)
                    #expect(checks?[name]?["result"] == .string("notDone"))
                }
                for method in checks?["chip"]?["methods"]?.array ?? [] where method["reason"] == .string("disturbed") {
                    found.insert("chip \(method["method"]?.string ?? "")")
                    #expect(method["result"] == .string("notDone"))
                }
                #expect(found == reasons, "\(words)")
                let groups = document?["groups"]?.array ?? []
                let missing = readGroups(undisturbed.document).filter { !readGroups(document).contains($0) }
                // Without EF.SOD nobody knows of the keys.
                let keys = step.header.p1 == 0x9D && step.phase == .application ? missing.filter { $0 > 13 } : []
                #expect(missing == [group].compactMap(\.self) + keys, "\(words)")
                let states = groups.filter { missing.contains($0["group"]?.int ?? 0) }.map { $0["state"] }
                #expect(states.allSatisfy { $0 == .string("disturbed") }, "\(words)")
                #expect((document?["document"] != nil) == (group != 1))
                #expect((document?["portrait"] != nil) == (group != 2))
                // After each of two failures, and at the end.
                #expect(chip.resets <= 3, "\(words)")
            }
        }
    }

    @Test(
        "so is a chip without access control that does not answer in one step",
        arguments: ["bac-aa-rsa", "bac-td3-sha1"]
    )
    func openChip(name: String) async throws {
        func read(_ disturbed: (Disturbed, Spoil)?) async throws -> (document: JSON?, chip: Chip) {
            let fixture = try await ReadDocumentTests.Fixture(name)
            var description = try ReadDocumentTests.description(name)
            description.hasBAC = false
            let chip = try Chip(description, .nothing, disturbed: disturbed)
            connect(fixture, to: chip)
            return (await self.read(fixture), chip)
        }
        let undisturbed = try await read(nil)
        let steps = undisturbed.chip.steps
        #expect(steps.count >= 4)
        for step in steps {
            let (document, chip) = try await read((step, .mute))
            let words = "\(step): \(document ?? .null)"
            #expect(document?["success"] == .bool(true), "\(words)")
            let isOfCommonData = step.header.p1 == 0x9E
            let verdict = document?["verdict"]
            #expect(verdict == (isOfCommonData ? undisturbed.document?["verdict"] : .string("unverified")), "\(words)")
            #expect(chip.resets <= 3, "\(words)")
        }
    }

    @Test("a chip that falls silent after its access is not asked for ever", arguments: ["bac-aa-rsa", "pace-gm-bac"])
    func silent(name: String) async throws {
        let fixture = try await ReadDocumentTests.Fixture(name)
        fixture.script.before { command throws(CardError) in
            if command.cla & 0x0C != 0, command.ins == 0xB0 { throw .mute }
        }
        let document = await read(fixture)
        #expect(document?["error"] == .string("CardError"))
        #expect(document?["message"] == .string("The card does not answer"))
        let reads = fixture.script.commands.filter { $0.cla & 0x0C != 0 && $0.ins == 0xB0 }
        #expect((3...8).contains(reads.count))
    }

    @Test("a document that is reset at each access is not said to be mute")
    func resetAtEachAccess() async throws {
        let fixture = try await ReadDocumentTests.Fixture("bac-td3-sha1")
        let resets = Mutex(0)
        fixture.script.before { command throws(CardError) in
            guard command.ins == 0x82 else { return }
            resets.withLock { $0 += 1 }
            throw .reset
        }
        let document = await read(fixture)
        #expect(document?["error"] == .string("CardError"))
        #expect(document?["message"]?.string?.contains("was reset again and again") == true, "\(document ?? .null)")
        #expect(resets.withLock { $0 } == 9)
    }

    @Test(
        "one disturbed answer never makes a genuine document suspect whose chip keeps its channel",
        arguments: ["bac-aa-rsa", "bac-ca-3des", "pace-gm-bac", "pace-cam-ca"],
        [ReadDocumentTests.Disturbance.s6988, .s6985, .s6A82, .wrongBit]
    )
    func disturbed(name: String, disturbance: ReadDocumentTests.Disturbance) async throws {
        let fixture = try await ReadDocumentTests.Fixture(name)
        connect(fixture, to: try Chip(try ReadDocumentTests.description(name), .everything))
        await fixture.disturbEachAnswer(disturbance)
    }
}
