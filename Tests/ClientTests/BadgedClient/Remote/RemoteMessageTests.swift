// SPDX-License-Identifier: GPL-3.0-or-later
import Testing

@testable import BadgedClient

@Suite("Messages of readers over the network", .timeLimit(.minutes(5))) struct RemoteMessageTests {
    private static let cases = [
        MessageCase(
            #"{"msg":"REMOTE","enabled":true,"share":true,"fingerprint":"ab","#
                + #""lenders":[{"fingerprint":"cd","name":"P","paired":true,"connected":false,"pairing":false}],"#
                + #""borrowers":[{"fingerprint":"ef","name":"L","paired":true,"connected":true},{"name":"none"}],"#
                + #""used":["Desk"],"pairing":true}"#,
            RemoteReaders(
                isEnabled: true,
                isShared: true,
                fingerprint: "ab",
                lenders: [RemoteDevice(fingerprint: "cd", name: "P", isPaired: true, isPairing: false)],
                borrowers: [RemoteDevice(fingerprint: "ef", name: "L", isPaired: true, isConnected: true)],
                used: ["Desk"],
                isPairing: true
            )
        ),
        MessageCase(#"{"msg":"REMOTE","enabled":false}"#, UnreadableMessage(name: "REMOTE", member: "share")),
        MessageCase(
            #"{"msg":"REMOTE","error":"E","enabled":true,"share":false}"#,
            Refusal(name: "REMOTE", error: "E")
        ),
        MessageCase(#"{"msg":"PAIR_READER","fingerprint":"ab"}"#, PairingMessage(outcome: nil)),
        MessageCase(
            #"{"msg":"PAIR_READER","success":false,"error":"Three wrong codes were entered"}"#,
            PairingMessage(outcome: PairingResult(success: false, error: "Three wrong codes were entered"))
        ),
        MessageCase(
            #"{"msg":"OPEN_PAIRING","success":true,"fingerprint":"ab","name":"L"}"#,
            PairingMessage(outcome: PairingResult(success: true, fingerprint: "ab", name: "L"))
        ),
        MessageCase(
            #"{"msg":"PAIRING_CODE","code":"0777","fingerprint":"ab","seconds":120}"#,
            PairingCode(code: "0777", fingerprint: "ab", seconds: 120)
        ),
        MessageCase(
            #"{"msg":"ENTER_PAIRING_CODE","question":2,"name":"P","fingerprint":"ab","ownFingerprint":"cd","error":"E"}"#,
            PairingCodeQuestion(name: "P", fingerprint: "ab", ownFingerprint: "cd", error: "E", number: 2)
        ),
        MessageCase(
            #"{"msg":"READER","name":"R","attached":true,"remote":true}"#,
            Reader(name: "R", isRemote: true)
        ),
    ]

    @Test("Each message is read as its type, whatever the order of its members", arguments: cases)
    func read(_ message: MessageCase) throws { try message.check() }

    @Test("A message with the code of a pairing belongs in no log")
    func secret() throws {
        #expect(try event(#"{"msg":"PAIRING_CODE","code":"0777","fingerprint":"ab","seconds":1}"#).tellsSecret)
        #expect(try !event(#"{"msg":"REMOTE","enabled":true,"share":true}"#).tellsSecret)
    }
}
