// SPDX-License-Identifier: GPL-3.0-or-later
import Loop
import TestSupport
import Testing
import Wire

/// How long a dialogue takes when neither the user nor the card's radio is waited for. Figures, no limits.
@Suite("Timing", .timeLimit(.minutes(1)))
struct TimingTests {
    #if DEBUG
        private static let build = "debug"
    #else
        private static let build = "release"
    #endif

    @Test("the time of RUN_CHANGE_PIN on the virtual card is printed")
    @Loop func changePIN() async throws {
        let staged = try StagedReaders(plugged: ["Simulator"])
        let server = try await TestServer.stage(staged)
        let client = try server.connect()
        try await staged.insert(.card(), into: "Simulator")
        await client.waitForCard(in: "Simulator")
        var times: [Duration] = []
        for round in 0..<31 {
            let (old, new) = round % 2 == 0 ? ("123456", "654321") : ("654321", "123456")
            let start = ContinuousClock.now
            _ = await client.ask(#"{"cmd":"RUN_CHANGE_PIN"}"#, "ENTER_PIN")
            _ = await client.ask(#"{"cmd":"SET_PIN","value":"\#(old)"}"#, "ENTER_NEW_PIN")
            await client.send(#"{"cmd":"SET_NEW_PIN","value":"\#(new)"}"#)
            let end = await client.next("CHANGE_PIN")
            times.append(ContinuousClock.now - start)
            #expect(end?["success"]?.bool == true)
        }
        times.sort()
        print(
            """
            RUN_CHANGE_PIN, card known, both sides of the cryptography, \(Self.build): \
            median \(Self.milliseconds(times[times.count / 2])), fastest \(Self.milliseconds(times[0]))
            """
        )
    }

    private static func milliseconds(_ duration: Duration) -> String {
        let tenths = duration.components.seconds * 10_000 + duration.components.attoseconds / 100_000_000_000_000
        return "\(tenths / 10).\(tenths % 10) ms"
    }
}
