// SPDX-License-Identifier: GPL-3.0-or-later

/// A card behind pcscd and vpcd: its coming and going, and its PIN changed.
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

        try comingAndGoing(settings, client, watch, card, &report)
        try changes(settings, client, card, reader, &report)
        try waiting(settings, daemon, client, &report)

        try card.end()
        watch.stop()
        try daemon.child.terminate()
    }

    /// READER of our reader with a usable card, or without one.
    private static func waitForCard(_ client: Client, present: Bool) throws(BenchError) {
        while true {
            let line = try client.wait(for: "READER")
            guard line.contains("Virtual PCD 00 00") else { continue }
            if line.contains(present ? "\"retryCounter\":3" : "\"card\":null") { return }
        }
    }

    private static func comingAndGoing(
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
            "\(come.span(1)), n=\(come.count); \(text(inCard.median, 1)) ms in the card left out"
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
        var total = Samples(), beyond = Samples(), inCard = Samples(), apdus = Samples()
        for round in 0..<settings.count(80) {
            let before = try card.state()
            let start = monotonicNow()
            try change(client, reader, from: pins[round % 2], to: pins[(round + 1) % 2])
            let time = microseconds(since: start) / 1000
            let after = try card.state()
            let spent = (after.microseconds - before.microseconds) / 1000
            guard after.retryCounter == 3 else { throw BenchError("the card has counted down") }
            total.add(time)
            inCard.add(spent)
            beyond.add(time - spent)
            apdus.add(Double(after.apdus - before.apdus))
        }
        let plain = try PlainTransfer.run(reader, count: settings.count(1000))
        report.add(.change, beyond.median, "p99 \(text(beyond.percentile(99), 1)) ms, n=\(beyond.count)")
        report.add(
            .changeTotal,
            total.median,
            "\(text(inCard.median, 1)) ms of it in the card, \(text(apdus.median, 0)) commands"
        )
        report.add(.transfer, plain.median, "SELECT by the bench itself, p99 \(text(plain.percentile(99), 0))")
    }

    private static func change(
        _ client: Client,
        _ reader: String,
        from old: String,
        to new: String
    ) throws(BenchError) {
        try client.send(#"{"cmd":"RUN_CHANGE_PIN","reader":"\#(reader)"}"#)
        while true {
            let line = try client.receive()
            if line.isMessage("ENTER_PIN") {
                try client.send(#"{"cmd":"SET_PIN","value":"\#(old)"}"#)
            } else if line.isMessage("ENTER_NEW_PIN") {
                try client.send(#"{"cmd":"SET_NEW_PIN","value":"\#(new)"}"#)
            } else if line.contains("\"success\":") {
                guard line.contains("\"success\":true") else { throw BenchError("PIN not changed: \(line.text)") }
                return
            } else if !["READER", "STATUS", "CHANGE_PIN"].contains(where: { line.isMessage($0) }) {
                throw BenchError("unexpected while the PIN is changed: \(line.text)")
            }
        }
    }

    /// A person thinks about a PIN.
    private static func waiting(
        _ settings: Settings,
        _ daemon: Daemon,
        _ client: Client,
        _ report: inout Report
    ) throws(BenchError) {
        try client.send(#"{"cmd":"RUN_CHANGE_PIN"}"#)
        try client.wait(for: "ENTER_PIN")
        pause(milliseconds: IdleBench.settling)
        let seconds = settings.count(20)
        let before = try daemon.figures.activity()
        let start = monotonicNow()
        pause(milliseconds: seconds * 1000)
        let after = try daemon.figures.activity()
        let elapsed = Double(monotonicNow() - start) / 1e9
        report.add(.waitingWakeUps, Double(after.since(before).switches) / elapsed, "\(seconds) s")
        try client.send(#"{"cmd":"CANCEL"}"#)
        try client.wait(for: "CHANGE_PIN")
    }
}
