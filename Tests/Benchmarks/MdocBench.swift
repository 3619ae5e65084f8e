// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// A phone behind pcscd and vpcd with a static handover, which is asked for an age over NFC.
enum MdocBench {
    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        guard let program = settings.virtualCard, let name = settings.readers.first else { return }
        let daemon = try Daemon(settings)
        try daemon.waitForReaders(settings.readers.count)
        let client = try daemon.client()
        let description = try JSON.reading(#"{"card":{"kind":"mdoc","documents":[{"docType":"eu.europa.ec.av.1"}]}}"#)
        let file = try settings.write("phone.json", description.bytes)
        let card = try VirtualCard(program, port: settings.port, log: settings.folder + "/card.log", file: file)
        try waitForCard(client, isPresent: true)
        // The commands of a recognition, which come before the reading.
        let recognition = try card.state().apdus
        var whole = Samples(), ours = Samples(), commands = Samples()
        for _ in 0..<settings.count(40) {
            card.toggle()
            try waitForCard(client, isPresent: false)
            try client.send(#"{"cmd":"RUN_READ_MDOC","ageOver":18,"reader":"\#(name)","status":false}"#)
            try client.wait(for: "INSERT_CARD")
            let before = try card.state().microseconds
            card.toggle()
            try waitForCard(client, isPresent: true)
            let start = monotonicNow()
            let line = try client.wait(for: "MDOC")
            let time = microseconds(since: start) / 1000
            guard line.contains("\"success\":true") else { throw BenchError("the phone was not read: \(line.text)") }
            let after = try card.state()
            whole.add(time)
            ours.add(time - (after.microseconds - before) / 1000)
            commands.add(Double(after.apdus - recognition))
        }
        report.add(.mdocRead, ours.median, "\(whole.span(1)) with the phone, n=\(whole.count)")
        report.add(.mdocCommands, commands.median, "static handover, NFC")
        try card.end()
        try daemon.child.terminate()
    }

    private static func waitForCard(_ client: Client, isPresent: Bool) throws(BenchError) {
        while try client.wait(for: "READER").contains("\"card\":null") == isPresent {}
    }
}

extension JSON {
    fileprivate static func reading(_ text: String) throws(BenchError) -> JSON {
        guard let json = try? JSON(Array(text.utf8)) else { throw BenchError("a description is no JSON") }
        return json
    }
}
