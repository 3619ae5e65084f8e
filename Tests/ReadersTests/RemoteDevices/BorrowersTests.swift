// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import ReadersRemote
import TestSupport
import Testing
import Text

@testable import RemoteDevices

@Suite("The devices that borrow readers", .timeLimit(.minutes(5))) @Loop struct BorrowersTests {
    /// What badged is told.
    @Loop private final class Told {
        var reports: [RemoteReport] = []
        lazy var sender = BadgedSender { [unowned self] bytes in
            if let report = RemoteReport(bytes: bytes) { reports.append(report) }
        }

        var states: [LendingState] {
            reports.compactMap { if case .lending(let state) = $0 { state } else { nil } }
        }
    }

    private static func settings(_ interface: String) -> LendingSettings {
        LendingSettings(readers: ["desk"], interfaces: [interface], name: "desk")
    }

    @Test("badged is told that the ports are open, once for the same settings")
    func opens() {
        let told = Told()
        let borrowers = Borrowers(told.sender)
        for _ in 0..<2 { borrowers.lend(Self.settings("lo"), []) }
        #expect(told.states.map(\.isOpen) == [true])
        #expect(told.states.first?.cause == nil && told.reports.count == 1)
    }

    @Test("ports that cannot be opened are told with their cause and the remedy, and opened with the next settings")
    func reopens() {
        let told = Told()
        let borrowers = Borrowers(told.sender)
        borrowers.lend(Self.settings("nothing0"), [])
        let state = told.states.first
        #expect(state?.isOpen == false)
        #expect(state?.cause?.contains("nothing0") == true)
        #expect(state?.advice == "correct [remote] in badged.conf(5); the ports are opened again in 1 s")
        borrowers.lend(Self.settings("lo"), [])
        #expect(told.states.count == 2 && told.states.last?.isOpen == true)
        #expect(told.states.last?.cause == nil && told.states.last?.advice == nil)
    }

    @Test("a code that nobody has proved opens nothing, and its pairing is over when badged ends it")
    func pairing() async {
        let told = Told()
        let borrowers = Borrowers(told.sender)
        borrowers.openPairing(Secret("123456".utf8))
        #expect(await !borrowers.complete(RemoteDevice(fingerprint: "00", name: "phone"), nil))
        borrowers.closePairing()
        let late = Borrowers.OpenPairing(Secret("123456".utf8))
        #expect(await !borrowers.complete(RemoteDevice(fingerprint: "00", name: "phone"), late))
        #expect(told.reports.isEmpty)
    }
}

@Suite("What the log says of floods") struct FloodLinesTests {
    private static let flood = ConnectionFlood.State(connections: 100, source: .four(0xC000_0211))

    @Test("a flood is told when it begins and when it is over, and not between")
    func once() {
        var lines = FloodLines()
        let first = lines.line(from: 0, to: Self.flood, advice: "block it", at: 0)
        #expect(first?.level == .warning)
        let words = "a flood of connections to the shared readers, most of them from 192.0.2.17; hint: block it"
        #expect(first?.text == words)
        #expect(lines.line(from: 100, to: Self.flood, advice: "block it", at: 1000) == nil)
        let last = lines.line(from: 250, to: nil, advice: "", at: 12_000)
        #expect(last?.level == .notice)
        #expect(last?.text == "the flood of connections is over: 250 came to nothing")
    }

    @Test("floods that come and go are told twice a minute, and then how many were left out")
    func limited() {
        var lines = FloodLines()
        let told = (0..<5).compactMap { number in
            let begin = lines.line(from: 0, to: Self.flood, advice: "", at: Int64(number) * 10_000)
            let end = lines.line(from: 100, to: nil, advice: "", at: Int64(number) * 10_000 + 5000)
            #expect((begin == nil) == (end == nil))
            return begin
        }
        #expect(told.count == 2)
        #expect(told.last?.text.hasSuffix("; more lines like this are left out for a minute") == true)
        let next = lines.line(from: 0, to: Self.flood, advice: "", at: 70_000)
        #expect(next?.text.hasSuffix(" (3 lines like this were left out)") == true)
    }
}
