// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Foundation
import HDWallet
import HTTP
import Host
import ServerDoubles
import TestSupport
import Testing
import Text

@testable import Antelope

/// The node client against a fake node over real HTTP.
@Suite("A node over HTTP", .timeLimit(.minutes(5)))
struct NodeTests {
    private let fixture: Fixture

    init() throws { fixture = try Fixture() }

    private static let bob = "bobbobbobbob"
    private static let longLimits = HTTPLimits(connect: .seconds(240), transfer: .seconds(240))

    /// A fake node with an account, its key, and a client of it.
    private struct Fixture {
        let double: AntelopeNodeDouble
        let key: PrivateKeyBox
        let node: AntelopeNode
        let session: HTTPSession

        init(
            isSecure: Bool = false,
            isExpired: Bool = false,
            limits: HTTPLimits = NodeTests.longLimits,
            authorities: (AntelopeNodeDouble) throws -> Authorities = { _ in .system }
        ) throws {
            double = try AntelopeNodeDouble(isSecure: isSecure, isExpired: isExpired)
            key = PrivateKeyBox(try PrivateKey.generate())
            let text = KeyText(key.publicKey).legacy ?? ""
            double.change { state in
                state.accounts[NodeTests.bob] = ["active": .init(keys: [text: 1])]
                state.tokens["eosio.token"]?["EOS"]?.balances[NodeTests.bob] = 50_000
            }
            session = HTTPSession(.patient(), try authorities(double), limits)
            let address = try #require(WebAddress(double.address))
            let chain = try #require(ChainID(double.state.chain))
            node = AntelopeNode(address, chain, session, userAgent: "badged/test")
        }

        /// A transfer of bob's, signed by a key; `isCanonical` chooses among its signatures.
        func transfer(
            _ quantity: String = "1.0000 EOS",
            expiration: UInt32? = nil,
            isCanonical: Bool = true,
            by other: PrivateKeyBox? = nil,
            chain: ChainID? = nil
        ) async throws -> (packed: [UInt8], signature: KeyText) {
            let info = try await node.info()
            let abi = try await node.abi(of: AccountName("eosio.token"))
            let data = try abi.pack(
                JSON(#"{"from":"\#(NodeTests.bob)","to":"alice","quantity":"\#(quantity)","memo":"hello"}"#.utf8),
                as: "transfer"
            )
            let level = PermissionLevel(actor: try AccountName(NodeTests.bob), permission: try AccountName("active"))
            let transfer = try AccountName("transfer")
            let action = AntelopeAction(
                account: try AccountName("eosio.token"),
                name: transfer,
                authorization: [level],
                data: data
            )
            let packed = Transaction(
                expiration: try expiration ?? info.time.seconds + 60,
                reference: info.reference,
                actions: [action]
            ).packed
            let digest = try Transaction.digest(of: packed, on: chain ?? info.chain)
            return (packed, try (other ?? key).sign(digest, isCanonical: isCanonical))
        }
    }

    final class PrivateKeyBox: Sendable {
        let key: PrivateKey
        let publicKey: PublicKey
        init(_ key: consuming PrivateKey) {
            publicKey = key.publicKey
            self.key = key
        }

        func sign(_ digest: [UInt8], isCanonical: Bool) throws -> KeyText {
            while true {
                let made = try key.sign(digest, entropy: try Random.bytes(32))
                let id = try #require(try made.recoveryID(for: digest, by: publicKey))
                let signature = CompactSignature(made, recoveryID: id)
                if signature.isCanonical == isCanonical { return signature.text }
            }
        }
    }

    @Test("a transfer is asked for, packed, signed and executed; a second push of it is refused")
    func transfer() async throws {
        let account = try await fixture.node.account(AccountName(Self.bob))
        #expect(account.authority(of: KeyText(fixture.key.publicKey), for: try AccountName("active")) == .full)
        let eos = try SymbolCode("EOS")
        #expect(try await fixture.node.stats(of: eos, at: AccountName("eosio.token")).symbol == TokenSymbol("4,EOS"))
        let signed = try await fixture.transfer()
        #expect(await fixture.node.push(signed.packed, signed.signature) == .executed)
        let balance = try await fixture.node.balance(of: AccountName("alice"), in: eos, at: AccountName("eosio.token"))
        #expect(balance.balance?.description == "1.0000 EOS")
        guard case .refused(let refusal) = await fixture.node.push(signed.packed, signed.signature) else {
            throw Unexpected("a transaction was executed twice")
        }
        #expect(refusal.code == 3_040_008)
    }

    @Test("the fake node refuses what nodeos refuses")
    func refusals() async throws {
        func code(_ signed: (packed: [UInt8], signature: KeyText)) async -> Int? {
            guard case .refused(let refusal) = await fixture.node.push(signed.packed, signed.signature) else {
                return nil
            }
            return refusal.code
        }
        let time = fixture.double.state.time
        #expect(await code(try await fixture.transfer(expiration: time)) == 3_040_005)
        #expect(await code(try await fixture.transfer(expiration: time + 3601)) == 3_040_006)
        #expect(await code(try await fixture.transfer(isCanonical: false)) == 10)
        let other = PrivateKeyBox(try PrivateKey.generate())
        #expect(await code(try await fixture.transfer(by: other)) == 3_090_003)
        let foreign = try #require(ChainID([UInt8](repeating: 1, count: 32)))
        #expect(await code(try await fixture.transfer(chain: foreign)) == 3_090_003)
        #expect(await code(try await fixture.transfer("1.00 EOS")) == 3_050_003)
        #expect(await code(try await fixture.transfer("5.0001 EOS")) == 3_050_003)
        let old = try await fixture.transfer()
        fixture.double.change { $0.blockNumber += 1 }
        #expect(await code(old) == 3_040_007)
        #expect(fixture.double.state.executed.isEmpty)
    }

    @Test("a node of another chain is refused")
    func wrongChain() async throws {
        let other = [UInt8](repeating: 9, count: 32)
        fixture.double.change { $0.chain = other }
        let chain = try #require(ChainID(other))
        await #expect(throws: NodeFailure.wrongChain(chain)) { try await fixture.node.info() }
    }

    @Test("a node without get_raw_abi is asked for the ABI in JSON")
    func oldNode() async throws {
        fixture.double.change { $0.hasRawABI = false }
        let abi = try await fixture.node.abi(of: AccountName("eosio.token"))
        #expect(try abi.type(of: AccountName("transfer")) == "transfer")
        #expect(fixture.double.state.questions == ["get_raw_abi", "get_abi"])
    }

    @Test(
        "each fault of each question is an error, and no redirect is followed",
        arguments: AntelopeNodeDouble.Fault.allCases
    )
    func faults(fault: AntelopeNodeDouble.Fault) async throws {
        // Another test has the silent node.
        guard fault != .silent else { return }
        let fixture = try Fixture()
        let signed = try await fixture.transfer()
        let (name, eos) = (try AccountName(Self.bob), try SymbolCode("EOS"))
        let questions = [
            "get_info", "get_account", "get_raw_abi", "get_currency_stats", "get_currency_balance", "push_transaction",
        ]
        fixture.double.change { state in
            state.questions = []
            for question in questions { state.faults[question] = fault }
        }
        let node = fixture.node
        await #expect(throws: NodeFailure.self) { try await node.info() }
        await #expect(throws: NodeFailure.self) { try await node.account(name) }
        await #expect(throws: NodeFailure.self) { try await node.abi(of: name) }
        await #expect(throws: NodeFailure.self) { try await node.stats(of: eos, at: name) }
        await #expect(throws: NodeFailure.self) { try await node.balance(of: name, in: eos, at: name) }
        guard case .unknown = await node.push(signed.packed, signed.signature) else {
            throw Unexpected("the outcome of a push with the fault \(fault) is not unknown")
        }
        #expect(fixture.double.state.questions == questions)
    }

    @Test("cancelling ends a question to a silent node at once")
    func cancel() async throws {
        fixture.double.change { $0.faults["get_info"] = .silent }
        let node = fixture.node
        let question = Task { try await node.info() }
        await fixture.double.arrival(of: "get_info")
        question.cancel()
        await #expect(throws: NodeFailure.cancelled) { try await question.value }
        fixture.double.release()
    }

    @Test("a request to a silent node ends at its time limit")
    func timeout() async throws {
        let fixture = try Fixture(limits: HTTPLimits(connect: .milliseconds(300), transfer: .milliseconds(300)))
        fixture.double.change { $0.faults["get_info"] = .silent }
        await #expect(throws: NodeFailure.noAnswer("the node did not answer in time")) { try await fixture.node.info() }
        fixture.double.release()
    }

    @Test("a transaction for a node at which nothing listens is reported as not sent")
    func nothingListens() async throws {
        let signed = try await fixture.transfer()
        let reserved = try ReservedPort()
        let address = try #require(WebAddress("http://127.0.0.1:\(reserved.number)"))
        let chain = try #require(ChainID(fixture.double.state.chain))
        let node = AntelopeNode(address, chain, fixture.session, userAgent: "badged/test")
        guard case .notSent = await node.push(signed.packed, signed.signature) else {
            throw Unexpected("a transaction was sent to nobody")
        }
    }

    @Test("it is not known whether a transaction was sent, when badged-network ends after it has the transaction")
    func pushThroughALostRun() async throws {
        let signed = try await fixture.transfer()
        let standIn = try StandIn { request in
            if case .transfer = request { [.end] } else { [] }
        }
        let session = HTTPSession(standIn.network, .system, Self.longLimits)
        let address = try #require(WebAddress("https://node.example"))
        let chain = try #require(ChainID(fixture.double.state.chain))
        let node = AntelopeNode(address, chain, session, userAgent: "badged/test")
        #expect(
            await node.push(signed.packed, signed.signature)
                == .unknown("badged-network has ended unexpectedly")
        )
        // Now there is no run that could send anything.
        #expect(
            await node.push(signed.packed, signed.signature)
                == .notSent("badged-network has ended unexpectedly")
        )
    }

    @Test("it is not known either, when a server that kept the connection open ends after it has the transaction")
    func pushToADyingNode() async throws {
        let signed = try await fixture.transfer()
        let dying = try DyingServer()
        let session = HTTPSession(.patient(), .system, Self.longLimits)
        let address = try #require(WebAddress("http://127.0.0.1:\(dying.port)"))
        let chain = try #require(ChainID(fixture.double.state.chain))
        let node = AntelopeNode(address, chain, session, userAgent: "badged/test")
        _ = try? await node.info()
        guard case .unknown = await node.push(signed.packed, signed.signature) else {
            throw Unexpected("the node has had the transaction")
        }
    }

    // MARK: TLS

    private static func file(_ text: String) throws -> String {
        let path = NSTemporaryDirectory() + "badged-node-ca-" + UUID().uuidString + ".pem"
        try text.write(toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    @Test("a node whose authority is in the file is trusted, with TLS")
    func pinned() async throws {
        let fixture = try Fixture(isSecure: true) { .file(try Self.file($0.authority)) }
        let signed = try await fixture.transfer()
        #expect(await fixture.node.push(signed.packed, signed.signature) == .executed)
    }

    private enum Distrust: CaseIterable {
        case unknownToSystem, otherFile, emptyFile, missingFile, expired
    }

    @Test("a node that is not trusted gets no request", arguments: Distrust.allCases)
    private func distrusted(distrust: Distrust) async throws {
        let fixture = try Fixture(isSecure: true, isExpired: distrust == .expired) { double in
            switch distrust {
            case .unknownToSystem: .system
            case .otherFile: .file(try Self.file(try AntelopeNodeDouble(isSecure: true).authority))
            case .emptyFile: .file(try Self.file(""))
            case .missingFile: .file("/nonexistent/ca.pem")
            case .expired: .file(try Self.file(double.authority))
            }
        }
        do throws(NodeFailure) {
            _ = try await fixture.node.info()
            Issue.record("the node was asked")
        } catch {
            guard case .unreachable(let words) = error else { throw Unexpected("\(error)") }
            #expect(words.hasPrefix("the node cannot be trusted: "))
        }
        #expect(fixture.double.state.questions.isEmpty)
    }
}

/// Answers one request, and leaves with its connection when it has got the next one.
private struct DyingServer {
    let port: UInt16

    init() throws {
        let listener = try #require(try LoopbackSockets.open(port: 0).first)
        port = try #require(LoopbackSockets.port(of: listener))
        _ = fcntl(listener, F_SETFL, 0)
        Thread.detachNewThread {
            let client = accept(listener, nil, nil)
            close(listener)
            defer { close(client) }
            let answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"
            if Self.takeRequest(client), send(client, answer, answer.utf8.count, 0) > 0 {
                _ = Self.takeRequest(client)
            }
        }
    }

    private static func takeRequest(_ client: Int32) -> Bool {
        var request = ""
        var bytes = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = recv(client, &bytes, bytes.count, 0)
            guard count > 0 else { return false }
            request += String(decoding: bytes[..<count], as: UTF8.self)
            let parts = request.components(separatedBy: "\r\n\r\n")
            guard parts.count > 1 else { continue }
            let length = parts[0].components(separatedBy: "\r\n").first { $0.hasPrefix("Content-Length: ") }
            if parts[1].utf8.count >= length.flatMap({ Int($0.dropFirst(16)) }) ?? 0 { return true }
        }
    }
}
