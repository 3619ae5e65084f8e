// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@testable import BadgedClient

@Suite("Messages of M-Pin", .timeLimit(.minutes(5))) struct MPinMessageTests {
    private static let result = #"{"msg":"MPIN_RESULT","operation":"MPIN_SIGN","status":6}"#

    private static let cases: [MessageCase] = [
        MessageCase(#"{"msg":"MPIN_STARTED","operation":"MPIN_SIGN"}"#, MPinMessage(operation: "MPIN_SIGN")),
        MessageCase(#"{"msg":"MPIN_STARTED"}"#, UnreadableMessage(name: "MPIN_STARTED", member: "operation")),
        MessageCase(
            #"{"msg":"ENTER_PIN","userId":"a","backend":"b","factor":0,"pinLength":4,"question":2,"error":"E"}"#,
            MPinQuestion(isNew: false, userID: "a", backend: "b", factor: 0, pinLength: 4, error: "E", number: 2)
        ),
        MessageCase(
            #"{"msg":"ENTER_NEW_PIN","userId":"a","backend":"b","factor":1,"pinLength":null,"question":3}"#,
            MPinQuestion(isNew: true, userID: "a", backend: "b", factor: 1, number: 3)
        ),
        // Neither a question about a card nor one of M-Pin.
        MessageCase(#"{"msg":"ENTER_PIN","question":2}"#, UnreadableMessage(name: "ENTER_PIN", member: "reader")),
    ]

    @Test("Messages are read", arguments: cases) func messages(_ message: MessageCase) throws { try message.check() }

    @Test("A result is the message itself") func result() throws {
        let json = try JSON(Self.result.utf8)
        #expect(try event(Self.result).message as? MPinMessage == MPinMessage(operation: "MPIN_SIGN", outcome: json))
    }
}
