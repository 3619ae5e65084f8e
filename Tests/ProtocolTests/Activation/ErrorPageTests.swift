// SPDX-License-Identifier: GPL-3.0-or-later
import Activation
import Testing

@Suite("Pages of errors", .timeLimit(.minutes(5))) struct ErrorPageTests {
    private static let identity = ActivationIdentity(name: "badged", version: "1", fields: [])

    @Test(
        "Each page says what the person does next",
        arguments: [
            (.noToken, "start the authentication again"), (.noAddress, "start the authentication again"),
            (.busy, "then reload this page"), (.noUserInterface, "<code>badgectl agent</code>"),
            (.failed, "journalctl -u badged"), (.redirect("not a URL"), "journalctl -u badged"),
        ] as [(ActivationOutcome, String)]
    )
    func next(outcome: ActivationOutcome, words: String) throws {
        let body = HTTPAnswer.end(outcome, Self.identity).body()
        let paragraphs = body.split(separator: "<p>").dropFirst()
        #expect(paragraphs.count == 2)
        #expect(try #require(paragraphs.last).contains(words))
    }
}
