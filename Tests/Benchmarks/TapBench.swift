// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Text

/// Cards with credentials behind pcscd and vpcd: from the tap to CREDENTIAL.
enum TapBench {
    private static let group = "00112233445566778899aabbccddeeff"
    private static let scalar = [UInt8](repeating: 0x11, count: 32)
    /// The start of a PKCS#8 object with a private key of P-256.
    private static let header = "3041020100301306072a8648ce3d020106082a8648ce3d030107042730250201010420"

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        guard let program = settings.virtualCard, let name = settings.readers.first else { return }
        let key = try settings.write("aliro.key", (Hex.decode(header) ?? []) + scalar)
        // The standard phase, which takes longer than the fast one.
        let lines = "[credentials]\naliro_key=\(key)\naliro_group=\(group)\naliro_fast=no\n"
        let configuration = try settings.write("tap.conf", lines)
        let reader = Hex.encode(try publicKey())
        var plain = Samples()
        for (row, card) in [
            (Row.tapPKOC, #"{"kind":"pkoc"}"#), (.tapAliro, #"{"kind":"aliro","reader":"\#(reader)"}"#),
        ] {
            let file = try settings.write("tap.json", #"{"card":\#(card)}"#)
            try taps(settings, configuration, program, name, file, row, &plain, &report)
        }
        report.add(.tapTransfer, plain.median, "SELECT by the bench itself, p99 \(text(plain.percentile(99), 0))")
    }

    /// The compressed public key of the readers.
    private static func publicKey() throws(BenchError) -> [UInt8] {
        do throws(CryptoError) {
            return try ECPrivateKey(Secret(scalar), on: try Curve.secp256r1.group).publicKey.compressedPoint
        } catch {
            throw BenchError("libcrypto makes no key")
        }
    }

    /// Milliseconds from the time at which pcscd reports the card, without the time in the card.
    private static func taps(
        _ settings: Settings,
        _ configuration: String,
        _ program: String,
        _ reader: String,
        _ file: String,
        _ row: Row,
        _ plain: inout Samples,
        _ report: inout Report
    ) throws(BenchError) {
        let daemon = try Daemon(settings, ["--config", configuration])
        try daemon.waitForReaders(settings.readers.count)
        let client = try daemon.client()
        try client.send(#"{"cmd":"START_CREDENTIALS"}"#)
        try client.wait(for: "CREDENTIALS")
        let watch = try ReaderWatch(reader)
        _ = try watch.wait(present: false)
        let card = try VirtualCard(program, port: settings.port, log: settings.folder + "/card.log", file: file)
        var beyond = Samples(), inCard = Samples(), apdus = Samples()
        for round in 0..<settings.count(24) {
            let before = round == 0 ? 0 : try card.state().microseconds
            if round > 0 { card.toggle() }
            guard try client.wait(for: "CREDENTIAL").contains("\"verified\":true") else {
                throw BenchError("a tap gave no credential")
            }
            let told = monotonicNow()
            let known = try watch.wait(present: true)
            let state = try card.state()
            let spent = (state.microseconds - before) / 1000
            inCard.add(spent)
            beyond.add((Double(told) - Double(known)) / 1e6 - spent)
            apdus.add(Double(state.apdus))
            // In turns, so that other work of the machine disturbs both.
            for time in try PlainTransfer.run(reader, count: 20).values { plain.add(time) }
            card.toggle()
            while try !client.wait(for: "READER").contains("\"card\":null") {}
            _ = try watch.wait(present: false)
        }
        report.add(
            row,
            beyond.median,
            "\(beyond.span(1)), n=\(beyond.count); without \(text(inCard.median, 1)) ms in the card, "
                + "\(text(apdus.median, 0)) commands"
        )
        try card.end()
        watch.stop()
        try daemon.child.terminate()
    }
}
