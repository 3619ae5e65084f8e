// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import BadgedClient

@Suite("Messages of browsers", .timeLimit(.minutes(5))) struct BrowserMessageTests {
    private static let cases = [
        MessageCase(#"{"msg":"USER_INTERFACE","active":true}"#, UserInterface(isActive: true)),
        MessageCase(
            #"{"msg":"USER_INTERFACE","active":false,"error":"E"}"#,
            Refusal(name: "USER_INTERFACE", error: "E")
        ),
        MessageCase(#"{"msg":"SHOW_UI","module":"M"}"#, ShowUI(module: "M")),
        MessageCase(#"{"msg":"SHOW_UI"}"#, UnreadableMessage(name: "SHOW_UI", member: "module")),
    ]

    @Test("Each message is read as its type, whatever the order of its members", arguments: cases)
    func read(_ message: MessageCase) throws { try message.check() }
}
