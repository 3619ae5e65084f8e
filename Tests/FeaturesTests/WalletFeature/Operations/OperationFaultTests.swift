// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Concurrency
import HTTP
import ReadersVirtual
import ServerDoubles
import TestSupport
import Testing
import Text
import WalletFeature

/// Nodes, callbacks and cards that fail at each step of the operations. Without `FullTables.areWanted`, each fault of a
/// card is tried at each command with one of the two generations of cards.
@Suite("Faults of the MYKEY operations", .timeLimit(.minutes(15)))
@Loop struct OperationFaultTests {
    private let bench: OperationBench

    init() async throws { bench = try await OperationBench() }

    private static let questions = [
        "get_info", "get_currency_stats", "get_currency_balance", "get_raw_abi", "get_account",
    ]

    @Test("a fault of the node before the signature ends the operation with its code, and nothing is signed")
    func nodeFaults() async throws {
        let user = try await bench.user()
        let before = try await bench.card().apdus
        for question in Self.questions {
            for fault in AntelopeNodeDouble.Fault.allCases where fault != .silent {
                bench.node.change { $0.faults = [question: fault] }
                let end = try await user.run(OperationBench.transfer())
                let isBadABI = question == "get_raw_abi" && (fault == .wrongTypes || fault == .notJSON)
                #expect(end.resultCode == (isBadABI ? 10012 : 2), "\(question) \(fault): \(end)")
                #expect(!user.names.contains("ENTER_PIN"), "\(question) \(fault)")
            }
        }
        #expect(try await bench.card().apdus == before)
        #expect(bench.node.state.pushed.isEmpty)
    }

    @Test(
        "a lost answer to the push ends with code 10005 and txId, without a second push",
        arguments: AntelopeNodeDouble.Fault.allCases
    )
    func push(fault: AntelopeNodeDouble.Fault) async throws {
        guard fault != .silent else { return }
        let bench = try await OperationBench()
        let user = try await bench.user()
        bench.node.change { $0.faults = ["push_transaction": fault] }
        let end = try await user.run(OperationBench.transfer(#","callbackUrl":"\#(bench.dapp.url)""#))
        #expect(end.resultCode == 10005, "\(fault): \(end)")
        #expect(end["txId"]?.string?.count == 64)
        #expect(bench.node.state.questions.filter { $0 == "push_transaction" }.count == 1)
        #expect(bench.dapp.bodies.isEmpty)
    }

    @Test("CANCEL during the push ends at once with code 10005, during a question with code 0")
    func cancel() async throws {
        for (question, code) in [("push_transaction", 10005), ("get_account", 0), ("get_info", 0)] {
            let bench = try await OperationBench()
            let user = try await bench.user()
            bench.node.change { $0.faults = [question: .silent] }
            let node = bench.node
            let client = user.client
            let watch = Task { @Loop in
                await node.arrival(of: question)
                await client.send(#"{"cmd":"CANCEL"}"#)
            }
            let end = try await user.run(OperationBench.transfer())
            #expect(end.resultCode == code, "\(question): \(end)")
            await watch.value
            bench.node.release()
        }
    }

    @Test("a request to a silent node ends after its limit of 10 s")
    func silentNode() async throws {
        let limits = AntelopeServices().limits
        #expect(limits.connect == .seconds(10) && limits.transfer == .seconds(10))
        let bench = try await OperationBench(limit: .milliseconds(300))
        let user = try await bench.user()
        bench.node.change { $0.faults = ["get_info": .silent] }
        let end = try await user.run(OperationBench.transfer())
        #expect(end.resultCode == 2)
        #expect(end["message"] == .string("No answer from the chain: the node did not answer in time"))
        #expect(!user.names.contains("WALLET_REQUEST"))
    }

    @Test("an expired transaction is reported as unknown, other refusals as failed")
    func refusals() async throws {
        let user = try await bench.user()
        user.hook = ("ENTER_PIN", { bench.node.change { $0.time += 61 } })
        let expired = try await user.run(OperationBench.transfer())
        #expect(expired.resultCode == 10005, "\(expired)")
        #expect(expired["txId"] != nil)
        try await bench.insertIfAway()
        user.hook = ("ENTER_PIN", { bench.node.change { $0.blockNumber += 1 } })
        #expect(try await user.run(OperationBench.transfer()).resultCode == 2)
        #expect(bench.node.state.executed.isEmpty)
    }

    @Test("a transaction that the node had before is reported as unknown, with its txId")
    func duplicate() async throws {
        let user = try await bench.user()
        let first = try await user.run(OperationBench.transfer())
        #expect(first.resultCode == 1, "\(first)")
        // The node has the same newest block, so the transaction is the same.
        try await bench.insertIfAway()
        let second = try await user.run(OperationBench.transfer())
        #expect(second.resultCode == 10005, "\(second)")
        #expect(second["txId"] == first["txId"] && second["txId"] != nil)
        #expect(bench.node.state.executed.count == 1)
    }

    @Test(
        "a callback that fails: a pushed transaction stays done, a signature is not delivered",
        arguments: CallbackDouble.Fault.allCases
    )
    func callbacks(fault: CallbackDouble.Fault) async throws {
        guard fault != .silent else { return }
        let bench = try await OperationBench()
        try await bench.insert()
        bench.dapp.fail(fault)
        let user = try await OperationUser(bench, OperationUser.mykey())
        let url = #","callbackUrl":"\#(bench.dapp.url)""#
        let failed = try await user.run(OperationBench.authorize(url))
        #expect(failed.resultCode == 2, "\(fault): \(failed)")
        #expect(failed["callbackError"] != nil)
        #expect(failed["sign"] == nil)
        // The dapp did not accept the user, so there is no binding.
        #expect(try await user.run(OperationBench.transfer()).resultCode == 10007)
        #expect(bench.dapp.bodies.count == 1)
        let simple = try await OperationUser(bench)
        try await bench.insertIfAway()
        let end = try await simple.run(OperationBench.transfer(url))
        #expect(end.resultCode == 1, "\(fault): \(end)")
        #expect(end["callbackError"] != nil)
        #expect(bench.node.state.executed.count == 1)
        #expect(bench.dapp.bodies.count == 2)
    }

    @Test("CANCEL during a callback ends at once; the transaction stays done")
    func cancelledCallback() async throws {
        try await bench.insert()
        bench.dapp.fail(.silent)
        let user = try await OperationUser(bench)
        let (dapp, client) = (bench.dapp, user.client)
        let watch = Task { @Loop in
            await dapp.arrival()
            await client.send(#"{"cmd":"CANCEL"}"#)
        }
        let end = try await user.run(OperationBench.transfer(#","callbackUrl":"\#(bench.dapp.url)""#))
        #expect(end.resultCode == 1, "\(end)")
        #expect(end["callbackError"] != nil)
        await watch.value
        bench.dapp.release()
    }

    @Test("http callbacks need the switch, and https ones a trusted certificate")
    func callbackRules() async throws {
        let closed = try await OperationBench(allowsHTTP: false)
        let user = try await OperationUser(closed)
        let command = #"{"cmd":"WALLET_SIGN","message":"x","callbackUrl":"\#(closed.dapp.url)"}"#
        #expect(try await user.run(command).resultCode == 10012)

        let bench = try await OperationBench(isSecure: true)
        try await bench.insert()
        let foreign = try CallbackDouble(isSecure: true)
        let other = try await OperationUser(bench)
        let end = try await other.run(#"{"cmd":"WALLET_SIGN","message":"x","callbackUrl":"\#(foreign.url)"}"#)
        #expect(end.resultCode == 2)
        #expect(end["callbackError"]?.string?.hasPrefix("the server cannot be trusted: ") == true)
        #expect(foreign.bodies.isEmpty)
    }

    private static let cardFaults = ["remove", "removeAfter", "truncate", "garbage", "sw:6F00", "sw:6982"]

    @Test(
        "each fault at each command of the card: no try, no second push, no signature without a request",
        arguments: generations
    )
    func cards(version: String) async throws {
        // The commands before the operation are those of the recognition.
        let first = try await OperationBench()
        try await first.insert(OperationBench.card(version))
        let begin = try await first.card().apdus
        let plain = try await OperationUser(first)
        #expect(try await plain.run(OperationBench.transfer()).resultCode == 1)
        let end = try await first.card().apdus
        #expect(end - begin >= 6)
        var cells: [(index: Int, fault: String)] = []
        for index in begin..<end { for fault in Self.cardFaults { cells.append((index, fault)) } }
        cells = FullTables.part(generations.firstIndex(of: version) ?? 0, of: generations.count, cells)
        var codes: Set<Int> = []
        for cell in cells {
            let bench = try await OperationBench()
            let fault = #","faults":[{"afterApdu":\#(cell.index),"do":"\#(cell.fault)"}]"#
            let user = try await bench.user(with: OperationBench.card(version, fault))
            let end = try await user.run(OperationBench.transfer())
            let place: Comment = "\(version) \(cell): \(user.names) \(end)"
            let code = end.resultCode ?? -1
            codes.insert(code)
            #expect([1, 10001, 10002, 10004].contains(code), place)
            #expect(bench.node.state.pushed.count == (code == 1 ? 1 : 0), place)
            #expect(bench.node.state.executed.count == bench.node.state.pushed.count, place)
            #expect(user.names.filter { $0 == "WALLET_REQUEST" }.count == 1, place)
            #expect(!user.names.contains("INVALID_PIN"), place)
            #expect(try await bench.counter("retryCounter") == 3, place)
            #expect(try await bench.counter("pukCounter") == 5, place)
            #expect(!bench.server.logged.contains { $0.contains(OperationBench.pin) }, place)
        }
        #expect(codes.isSuperset(of: [1, 10001]))
    }
}
