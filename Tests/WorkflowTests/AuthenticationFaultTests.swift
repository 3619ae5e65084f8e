// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EID
import ISO7816
import Readers
import ReadersVirtual
import Server
import TestSupport
import Testing
import Text
import VirtualEID

/// Tests every fault at every command of an authentication; without `FullTables.areWanted`, each course with each
/// fault somewhere, and with some fault at each command.
@Suite("Fault matrix of RUN_AUTH", .timeLimit(.minutes(15)))
struct AuthenticationFaultTests {
    /// A combination of a card and a service.
    struct Course: Sendable {
        let name: String
        /// The part of the URL that selects the service.
        var path = "pin"
        var retryCounter = 3
        /// Whether the default card with PACE on brainpoolP256r1 is used; other cards use the faster NIST P-256.
        var hasDefaultCard = false

        static let all = [
            Course(name: "PIN", hasDefaultCard: true), Course(name: "CAN, PIN", retryCounter: 1),
            Course(name: "PUK, PIN", retryCounter: 0),
            Course(name: "CAN instead of the PIN", path: "can"),
            Course(name: "signature in a round of its own", path: "more"),
        ]

        func card(_ faults: [VirtualCardFault] = []) -> VirtualEIDDescription {
            let dialogue = Dialogue(name: name, retryCounter: retryCounter)
            return hasDefaultCard ? dialogue.card(faults) : dialogue.quickCard(faults)
        }
    }

    static func service(_ url: String) -> TestService {
        TestService { plan in
            plan.hasAdditionalRound = url.hasSuffix("more")
            if url.hasSuffix("can") { plan.rights = AccessRights(rawValue: 0x3F_FFFF_FFFF) }
        }
    }

    /// A run without a fault: the number of commands, how many identify the card, and the index of GET CHALLENGE.
    struct Plan: Sendable {
        let count: Int
        let identification: Int
        let challenge: Int
    }

    struct Cell: Sendable {
        let course: Course
        let fault: Fault
        let index: Int
        let plan: Plan
    }

    @Test("every fault at every command gives one correct final message, costs no try and frees the reader")
    @Loop func matrix() async throws {
        var cells: [Cell] = []
        for course in Course.all {
            let plan = try await Self.plan(course)
            for fault in Fault.allCases {
                for index in 0..<plan.count {
                    cells.append(Cell(course: course, fault: fault, index: index, plan: plan))
                }
            }
        }
        #expect(cells.count > 500)
        cells = FullTables.rows(
            of: cells,
            covering: { ["\($0.course.name) \($0.fault)", "\($0.course.name) \($0.index)"] }
        )
        try await sweep(cells) {
            try await TestServer(readers: 1, service: { url, _ in Self.service(url) })
        } run: { cell, server in
            let violations = try await Self.run(cell, server, "Simulator")
            #expect(violations == [], "\(cell.course.name), \(cell.fault.rawValue) at \(cell.index)")
        }
    }

    @Loop private static func plan(_ course: Course) async throws -> Plan {
        let recorder = try RecordingReaders()
        let server = try await TestServer(readers: 0, backends: [recorder], service: { url, _ in service(url) })
        await server.ready(["Simulator"])
        let watcher = try server.connect()
        #expect(try await recorder.insert(course.card(), into: "Simulator"))
        await watcher.waitForCard(in: "Simulator")
        let identification = recorder.recorded.count
        let user = try AuthenticationUser(server, "Simulator")
        await user.authenticate(course.path)
        #expect(user.finals.count == 1 && user.violations.isEmpty, "\(user.violations)")
        let commands = recorder.recorded.map(\.command)
        return Plan(
            count: commands.count,
            identification: identification,
            challenge: try #require(commands.firstIndex { $0.ins == 0x84 })
        )
    }

    /// Runs a cell, and returns the violations.
    @Loop private static func run(_ cell: Cell, _ server: TestServer, _ reader: String) async throws -> [String] {
        let fault = cell.fault
        let watcher = try server.connect()
        let faults = [VirtualCardFault(afterAPDU: cell.index, action: fault.action)]
        #expect(try await server.readers?.insert(cell.course.card(faults), into: reader) == true)
        // A fault that removes the card during identification leaves no card to wait for.
        if !(fault.removesCard && cell.index < cell.plan.identification) { await watcher.waitForCard(in: reader) }
        watcher.close()

        let user = try AuthenticationUser(server, reader)
        await user.authenticate(cell.course.path)
        var violations = user.violations
        if user.finals.count != 1 { violations.append("\(user.finals.count) final messages") }
        let final = user.finals.first ?? .null
        let major = final["result"]?["major"]?.string ?? ""
        let reason = final["result"]?["reason"]?.string
        let isSuccess = major.hasSuffix("#ok")
        if isSuccess != (reason == nil) { violations.append("\(final)") }
        if !isSuccess, reason == nil { violations.append("no reason") }

        // The state of the card shows the tries.
        guard let state = await server.cardState(reader) else { return violations + ["no card"] }
        if state.faultsLeft != 0 { violations.append("the fault has not happened") }
        if state.judgedPINs > user.typedPINs { violations.append("the card received a PIN that was not typed") }
        if state.retryCounter < cell.course.retryCounter { violations.append("tries were lost") }

        // A card that is lost after PACE ends the workflow; a card that is lost before PACE is requested again.
        let isLast = cell.index == cell.plan.count - 1
        if fault.removesCard, cell.index >= cell.plan.challenge, !isLast, reason != "Card_Removed" {
            violations.append("a removed card ended with \(reason ?? "success")")
        }
        if fault.losesCard, cell.index < cell.plan.challenge, !isSuccess,
            user.questions.count < PINChangeUser.maximumQuestions
        {
            violations.append("a lost card before the service's part ended with \(reason ?? "")")
        }
        if server.isLent(reader) { violations.append("the reader is not free") }

        // The next client can authenticate.
        let next = try AuthenticationUser(server, reader)
        await next.authenticate()
        if next.finals.first?["result"]?["major"]?.string?.hasSuffix("#ok") != true {
            violations.append("the next client: \(next.finals) \(next.violations)")
        }
        for client in [user.client, next.client] {
            violations += Dialogue.secrets.filter { client.hasReceived($0) }.map { "\($0) is in a message" }
            client.close()
        }
        return violations
    }
}
