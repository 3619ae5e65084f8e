// SPDX-License-Identifier: GPL-3.0-or-later

/// Fifty clients change the PINs of fifty virtual cards at once.
enum ManyReadersBench {
    private static let readers = 50

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let configuration = try settings.write("readers.conf", "[virtual]\nenabled=yes\nreaders=\(readers)\n")
        let daemon = try Daemon(settings, ["--no-pcsc", "--config", configuration])
        try daemon.waitForReaders(readers)
        var times = Samples()
        for round in 0..<settings.count(10) {
            let (old, new) = round.isMultiple(of: 2) ? ("123456", "654321") : ("654321", "123456")
            times.add(
                try Dialogue.runAll(try Dialogue.clients(readers, of: daemon)) { (client, index) throws(BenchError) in
                    try Dialogue.startChange(client, Dialogue.simulator(index))
                } step: { (client, index) throws(BenchError) in
                    try Dialogue.changeStep(client, Dialogue.simulator(index), from: old, to: new)
                }
            )
        }
        let note = "\(times.span(0)) ms, n=\(times.count); with the cryptography of the cards"
        report.add(.manyReaders, times.median, note)
        report.add(.manyReadersMemory, try daemon.figures.memory().resident / 1024, "")
        try daemon.child.terminate()
    }
}
