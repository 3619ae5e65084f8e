// SPDX-License-Identifier: GPL-3.0-or-later

/// A card behind pcscd and vpcd: insertion, removal, and changes of the PIN.
enum CardBench {
    private static let pins = ["123456", "654321"]

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        guard let program = settings.virtualCard, let reader = settings.readers.first else { return }
        let daemon = try Daemon(settings)
        try daemon.waitForReaders(settings.readers.count)
        let client = try daemon.client()
        let watch = try ReaderWatch(reader)
        _ = try watch.wait(present: false)
        let card = try VirtualCard(program, port: settings.port, log: settings.folder + "/card.log")
        try waitForCard(client, present: true)
        _ = try watch.wait(present: true)

        try insertions(settings, client, watch, card, &report)
        try changes(settings, client, card, reader, &report)
        try waiting(settings, daemon, client, &report)

        try card.end()
        watch.stop()
        try daemon.child.terminate()
    }

    /// Waits for a READER of our reader, with a usable card or without one.
    private static func waitForCard(_ client: Client, present: Bool) throws(BenchError) {
        while true {
            let line = try client.wait(for: "READER")
            guard line.contains("Virtual PCD 00 00") else { continue }
            if line.contains(present ? "\"retryCounter\":3" : "\"card\":null") { return }
        }
    }

    private static func insertions(
        _ settings: Settings,
        _ client: Client,
        _ watch: ReaderWatch,
        _ card: VirtualCard,
        _ report: inout Report
    ) throws(BenchError) {
        var gone = Samples(), come = Samples(), inCard = Samples()
        for _ in 0..<settings.count(24) {
            card.toggle()
            try waitForCard(client, present: false)
            var told = monotonicNow()
            gone.add((Double(told) - Double(try watch.wait(present: false))) / 1e6)
            let before = try card.state()
            card.toggle()
            try waitForCard(client, present: true)
            told = monotonicNow()
            let known = try watch.wait(present: true)
            let spent = (try card.state().microseconds - before.microseconds) / 1000
            inCard.add(spent)
            come.add((Double(told) - Double(known)) / 1e6 - spent)
        }
        report.add(
            .cardIn,
            come.median,
            "\(come.span(1)), n=\(come.count); without \(text(inCard.median, 1)) ms in the card"
        )
        report.add(.cardOut, gone.median, "\(gone.span(1)), n=\(gone.count)")
    }

    private static func changes(
        _ settings: Settings,
        _ client: Client,
        _ card: VirtualCard,
        _ reader: String,
        _ report: inout Report
    ) throws(BenchError) {
        var total = Samples(), beyond = Samples(), inCard = Samples(), apdus = Samples(), plain = Samples()
        for round in 0..<settings.count(80) {
            let before = try card.state()
            let start = monotonicNow()
            try Dialogue.startChange(client, reader)
            let (old, new) = (pins[round % 2], pins[(round + 1) % 2])
            while try !Dialogue.changeStep(client, reader, from: old, to: new) {}
            let time = microseconds(since: start) / 1000
            let after = try card.state()
            let spent = (after.microseconds - before.microseconds) / 1000
            guard after.retryCounter == 3 else { throw BenchError("the card has lost a try") }
            total.add(time)
            inCard.add(spent)
            beyond.add(time - spent)
            apdus.add(Double(after.apdus - before.apdus))
            // In turns, so that other work of the machine disturbs both.
            for time in try PlainTransfer.run(reader, count: 20).values { plain.add(time) }
        }
        report.add(.change, beyond.median, "p99 \(text(beyond.percentile(99), 1)) ms, n=\(beyond.count)")
        report.add(
            .changeTotal,
            total.median,
            "\(text(inCard.median, 1)) ms of it in the card, \(text(apdus.median, 0)) commands"
        )
        report.add(.transfer, plain.median, "SELECT by the bench itself, p99 \(text(plain.percentile(99), 0))")
    }

    /// A user thinks about the PIN.
    private static func waiting(
        _ settings: Settings,
        _ daemon: Daemon,
        _ client: Client,
        _ report: inout Report
    ) throws(BenchError) {
        try client.send(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        try client.wait(for: "ENTER_PIN")
        pause(milliseconds: IdleBench.settling)
        let idle = try daemon.figures.watch(seconds: settings.count(20))
        report.add(.waitingWakeUps, idle.wakeUps, idle.note)
        try client.send(#"{"cmd":"CANCEL"}"#)
        try client.wait(for: "CHANGE_PIN")
    }
}
