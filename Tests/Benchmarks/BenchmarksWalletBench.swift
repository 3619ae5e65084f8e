// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import Text

/// A Keycard behind pcscd and vpcd: what it costs badged to have one, to set one up, and to sign with it.
enum WalletBench {
    private static let (pin, puk) = ("123456", "987654321098")
    private static let words = String(repeating: "abandon ", count: 11) + "about"

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        guard let program = settings.virtualCard, let reader = settings.readers.first else { return }
        // The pairings with cards are kept in this folder.
        let folder = settings.folder + "/state"
        mkdir(folder, 0o700)
        setenv("STATE_DIRECTORY", folder, 1)
        defer { unsetenv("STATE_DIRECTORY") }
        let loaded = try settings.write("keycard.json", #"{"card":{"kind":"keycard","words":"\#(words)"}}"#)
        try idle(settings, program, loaded, reader, &report)
        try signatures(settings, program, loaded, reader, &report)
        try setups(settings, program, &report)
    }

    // MARK: A card in the reader

    /// Compares the daemon with a paired Keycard to the daemon after a change of an eID card's PIN: both have opened a
    /// secure channel once. An unused eID card does not load libcrypto.
    private static func idle(
        _ settings: Settings,
        _ program: String,
        _ loaded: String,
        _ reader: String,
        _ report: inout Report
    ) throws(BenchError) {
        guard let eidServer = settings.eidServer else { return }
        let server = try EIDServerProcess(eidServer, settings)
        let configuration = try settings.write("wallet.conf", "[eid]\ntrust_anchors=\(server.anchors)\n")
        let log = settings.folder + "/card.log"
        let eidCard = try VirtualCard(program, port: settings.port, log: log)
        let eid = try memory(settings, configuration, "\"kind\":\"eid\"") { (_, client) throws(BenchError) in
            try Dialogue.startChange(client, reader)
            while try !Dialogue.changeStep(client, reader, from: "123456", to: "654321") {}
        }
        try eidCard.end()
        let card = try VirtualCard(program, port: settings.port, log: log, file: loaded)
        try pair(settings)
        var idle: (wakeUps: Double, share: Double, note: String)?
        let keycard = try memory(settings, configuration, "\"paired\":true") { (daemon, _) throws(BenchError) in
            idle = try daemon.figures.watch(seconds: settings.count(20))
        }
        try card.end()
        _ = try server.end()
        report.add(
            .walletMemory,
            (keycard.resident - eid.resident) / 1024,
            "\(text(keycard.resident / 1024, 1)) MB to \(text(eid.resident / 1024, 1)) MB"
        )
        if let idle { report.add(.walletWakeUps, idle.wakeUps, idle.note) }
    }

    /// Signs once with the Keycard in the reader, which pairs.
    private static func pair(_ settings: Settings) throws(BenchError) {
        let daemon = try Daemon(settings)
        let client = try daemon.client()
        try wait(client, for: "\"kind\":\"keycard\"")
        try sign(client)
        try daemon.child.terminate()
    }

    /// Starts a daemon, waits until it reports the card in the reader, and calls `body`.
    /// - Returns: the memory afterwards, at rest.
    private static func memory(
        _ settings: Settings,
        _ configuration: String,
        _ card: StaticString,
        _ body: (Daemon, Client) throws(BenchError) -> Void
    ) throws(BenchError) -> ProcessFigures.Memory {
        let daemon = try Daemon(settings, ["--config", configuration])
        let client = try daemon.client()
        try wait(client, for: card)
        pause(milliseconds: IdleBench.settling)
        try body(daemon, client)
        pause(milliseconds: IdleBench.settling)
        let memory = try daemon.figures.memory()
        try daemon.child.terminate()
        return memory
    }

    /// Waits for a READER with this text.
    private static func wait(_ client: Client, for text: StaticString) throws(BenchError) {
        while try !client.wait(for: "READER").contains(text) {}
    }

    // MARK: Workflows

    private static func signatures(
        _ settings: Settings,
        _ program: String,
        _ loaded: String,
        _ reader: String,
        _ report: inout Report
    ) throws(BenchError) {
        let daemon = try Daemon(settings)
        try daemon.waitForReaders(settings.readers.count)
        let client = try daemon.client()
        let card = try VirtualCard(program, port: settings.port, log: settings.folder + "/card.log", file: loaded)
        try wait(client, for: "\"kind\":\"keycard\"")
        // The first workflow pairs.
        try sign(client)
        var beyond = Samples(), inCard = Samples(), plain = Samples()
        for _ in 0..<settings.count(80) {
            let before = try card.state()
            let start = monotonicNow()
            try sign(client)
            let time = microseconds(since: start) / 1000
            let after = try card.state()
            guard after.retryCounter == 3 else { throw BenchError("the card has lost a try") }
            let spent = (after.microseconds - before.microseconds) / 1000
            beyond.add(time - spent)
            inCard.add(spent)
            // In turns, so that other work of the machine disturbs both.
            for time in try PlainTransfer.run(reader, count: 20).values { plain.add(time) }
        }
        report.add(
            .walletSign,
            beyond.median,
            "p99 \(text(beyond.percentile(99), 1)) ms, n=\(beyond.count); \(text(inCard.median, 1)) ms in the card"
        )
        report.add(.walletTransfer, plain.median, "SELECT by the bench itself, p99 \(text(plain.percentile(99), 0))")
        try card.end()
        try daemon.child.terminate()
    }

    private static func sign(_ client: Client) throws(BenchError) {
        try workflow(client, #""workflow":"ACTIVATE_USER","challenge":"sign me""#)
    }

    private static func setups(
        _ settings: Settings,
        _ program: String,
        _ report: inout Report
    ) throws(BenchError) {
        let new = try settings.write("new-keycard.json", #"{"card":{"kind":"keycard","initialised":false}}"#)
        let daemon = try Daemon(settings)
        try daemon.waitForReaders(settings.readers.count)
        let client = try daemon.client()
        var times = Samples()
        for _ in 0..<settings.count(12) {
            let card = try VirtualCard(program, port: settings.port, log: settings.folder + "/card.log", file: new)
            try wait(client, for: "\"initialised\":false")
            let start = monotonicNow()
            try workflow(client, #""workflow":"SETUP_DEVICE""#)
            times.add(microseconds(since: start) / 1000)
            try card.end()
            try wait(client, for: "\"card\":null")
        }
        report.add(.walletSetup, times.median, "\(times.span(1)) ms, n=\(times.count), the card included")
        try daemon.child.terminate()
    }

    /// Runs a workflow with a client that answers at once.
    private static func workflow(_ client: Client, _ members: String) throws(BenchError) {
        var words: [String] = []
        try client.send(#"{"cmd":"RUN_WALLET",\#(members)}"#)
        while true {
            let line = try client.receive()
            guard let message = try? JSON(Array(line.bytes)), let name = message["msg"]?.string else {
                throw BenchError("a message is not JSON")
            }
            var answer: String?
            switch name {
            case "READER", "STATUS", "FLOW_STARTED", "PIN_VALIDATED", "REQUEST_ACKNOWLEDGED": break
            case "FLOW_COMPLETE": return
            case "ENTER_PIN": answer = #""SET_PIN","value":"\#(pin)""#
            case "ENTER_NEW_PIN": answer = #""SET_NEW_PIN","value":"\#(pin)""#
            case "ENTER_NEW_PUK": answer = #""SET_NEW_PUK","value":"\#(puk)""#
            case "VERIFY_DATA": answer = #""DATA_VERIFIED""#
            case "SHOW_PAPER_WALLET":
                words = message["mnemonics"]?.array?.compactMap(\.string) ?? []
                answer = #""ACCEPT""#
            case "ENTER_WORDS":
                let positions = message["positions"]?.array?.compactMap(\.int) ?? []
                let wanted = positions.filter { words.indices.contains($0 - 1) }.map { words[$0 - 1] }
                answer = #""SET_WORDS","value":"\#(wanted.joined(separator: " "))""#
            case "REGISTER_DEVICE":
                let address = message["apiParams"]?["address"]?.string ?? ""
                answer = #""DEVICE_REGISTERED","apiResponse":{"address":"\#(address)"}"#
            default: throw BenchError("unexpected in a workflow of a wallet: \(line.text)")
            }
            if let answer { try client.send(#"{"cmd":\#(answer)}"#) }
        }
    }
}
