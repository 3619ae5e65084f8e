// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Server
import TestSupport
import Text

extension PeerDifference {
    /// All differences, in the order in which they are applied.
    static let all: [PeerDifference] =
        envelope + authentication + simulatorFiles + foreignCards + workflow + simulator + pcsc

    static let pcscNames: Set<String> = [
        "pcsc-bad-values", "pcsc-deactivated", "pcsc-happy", "pcsc-puk-used-up", "pcsc-transport-pin",
        "pcsc-wrong-pin-to-can", "pcsc-wrong-pin-to-puk",
    ]

    // MARK: Envelope

    private static let envelope: [PeerDifference] = [
        PeerDifference(
            "INFO names badged",
            because: "badged is another program; specification version and AusweisApp are as in 2.5.3",
            in: ["01-basic", "pcsc-bad-values"],
            eachMessage: { message, _, place in
                message.isMessage("INFO") ? [info(drivers: place.hasReaders ? ["virtual"] : [])] : nil
            }
        ),
        PeerDifference(
            "three API levels",
            because: "level 3 came with 2.2.0",
            in: ["01-basic", "sim-request-field"],
            eachMessage: { message, _, _ in
                message["available"].map { _ in
                    [message.with("available", .array([.number("1"), .number("2"), .number("3")]))]
                }
            }
        ),
        PeerDifference(
            "level 3 can be set",
            because: "level 3 came with 2.2.0; the replay sets level 2 again after it",
            in: ["01-basic"],
            apply: { exchange, _ in
                guard exchange.sent == [#"{"cmd":"SET_API_LEVEL","level":3}"#] else { return nil }
                return exchange.replaced(by: #"{"current":3,"msg":"API_LEVEL"}"#) + [
                    exchange.then(#"{"cmd":"SET_API_LEVEL","level":2}"#, #"{"current":2,"msg":"API_LEVEL"}"#)
                ]
            }
        ),
        PeerDifference(
            "a line is a message",
            because: "messages are lines instead of WebSocket frames, so a line feed ends a message",
            in: ["01-basic"],
            apply: { exchange, _ in
                guard exchange.sent.contains(where: { $0.contains(#"}\n{"#) }) else { return nil }
                return exchange.replaced(by: info(drivers: []), #"{"available":[1,2,3],"current":2,"msg":"API_LEVEL"}"#)
            }
        ),
        PeerDifference(
            "a line has 1 MiB at most",
            because: "the memory for one client is bounded",
            in: ["01-basic"],
            apply: { exchange, _ in
                guard exchange.sent.contains(where: { $0.utf8.count > 1 << 20 }) else { return nil }
                var copy = exchange
                copy.received[copy.received.count - 1] =
                    #"{"error":"line too long (more than 1048576 bytes)","msg":"INVALID"}"#
                return [copy]
            }
        ),
        PeerDifference(
            "a string has no raw control character",
            because: "RFC 8259 does not allow it, and an answer that repeats it would be no JSON",
            in: ["01-basic"],
            apply: { exchange, _ in
                guard exchange.sent.contains(where: { $0.utf8.contains(0) }) else { return nil }
                return exchange.replaced(by: #"{"error":"control character in a string (offset: 12)","msg":"INVALID"}"#)
            }
        ),
        PeerDifference(
            "request numbers are returned as they were written",
            because: "the peer converts the numbers to double, which rounds them",
            in: ["sim-request-field"],
            eachMessage: { message, exchange, _ in
                for number in ["12345678901234567890", "-0.0"]
                where exchange.sent.contains(where: { $0.contains(#""request":\#(number)}"#) }) {
                    return [message.with("request", .number(number))]
                }
                return nil
            }
        ),
        PeerDifference(
            "CONTINUE is known",
            because: "CONTINUE came with 2.2.0 and is known at every level",
            in: ["01-basic", "pcsc-bad-values", "sim-set-card-errors"],
            eachMessage: { message, _, _ in
                message == #"{"error":"CONTINUE","msg":"UNKNOWN_COMMAND"}"#
                    ? [#"{"error":"CONTINUE","msg":"BAD_STATE"}"#] : nil
            }
        ),
    ]

    private static func info(drivers: [String]) -> JSON {
        let versions = [
            ("Implementation-Title", "badged"), ("Implementation-Vendor", "badged developers"),
            ("Implementation-Version", "0.0.0"), ("Name", "badged"), ("Specification-Title", "TR-03124-1"),
            ("Specification-Vendor", "Federal Office for Information Security"), ("Specification-Version", "1.4"),
        ]
        return .object([
            .init("AusweisApp", .string("UNKNOWN")),
            .init("VersionInfo", .object(versions.map { .init($0, .string($1)) })),
            .init(
                "badged",
                .object([
                    .init("drivers", .array(drivers.map(JSON.string))), .init("protocol", .number("1")),
                    .init("scanners", .array([])),
                    .init("permissions", .array(Permissions.all.words.map { .string($0) })),
                ])
            ),
            .init("msg", .string("INFO")),
        ])
    }

    // MARK: Authentication

    private static let authentication: [PeerDifference] = [
        PeerDifference(
            "AUTH has a reason, its own texts, and what was sent",
            because: "the reason came with 1.26.3; badged has its own texts for users, and says what the service has",
            in: ["sim-run-auth"],
            eachMessage: { message, exchange, _ in
                guard message.isMessage("AUTH"), let result = message["result"] else { return nil }
                let url = exchange.sent.first ?? ""
                // Developer mode accepts http.
                let isAddress = url.contains(#"URL":"https://"#) || url.contains("developerMode")
                return [
                    message.with(
                        "result",
                        result.with(
                            "reason",
                            .string(isAddress ? "Get_TcToken_Network_Error" : "Get_TcToken_Invalid_Url")
                        )
                        .with("description", .string("A trusted channel to the service could not be opened."))
                        .with(
                            "message",
                            .string(
                                isAddress
                                    ? "The server could not be reached."
                                    : "The address of the TcToken does not begin with https."
                            )
                        )
                    ).with("sent", .string("none"))
                ]
            }
        ),
        PeerDifference(
            "AUTH reports a cancellation or a timeout",
            because: "the reason came with 1.26.3; badged has its own texts for users",
            in: ["sim-run-auth-slow"],
            eachMessage: { message, exchange, _ in
                guard message.isMessage("AUTH"), let result = message["result"] else { return nil }
                let isCancelled = exchange.sends("CANCEL")
                let reason = isCancelled ? "User_Cancelled" : "Get_TcToken_Network_Error"
                let text = isCancelled ? "The operation was cancelled." : "The server did not answer in time."
                let kind = isCancelled ? text : "A trusted channel to the service could not be opened."
                return [
                    message.with(
                        "result",
                        result.with("reason", .string(reason)).with("description", .string(kind))
                            .with("message", .string(text))
                    ).with("sent", .string("none"))
                ]
            }
        ),
        PeerDifference(
            "an AUTH that fails has no STATUS at its end",
            because: "a failure is no progress",
            in: ["sim-run-auth", "sim-run-auth-slow"],
            eachMessage: { message, _, _ in
                ["80", "100"].contains { message["progress"] == .number($0) } ? [] : nil
            }
        ),
        PeerDifference(
            "CANCEL in one write with RUN_AUTH cancels it",
            because: "the peer starts the workflow after it has checked the commands that follow RUN_AUTH",
            in: ["sim-run-auth"],
            apply: { exchange, _ in
                guard exchange.sent.count == 3 else { return nil }
                return exchange.replaced(
                    by: #"{"msg":"AUTH"}"#,
                    #"{"msg":"STATUS","progress":0,"state":null,"workflow":"AUTH"}"#,
                    #"""
                    {"msg":"AUTH","result":{"description":"The operation was cancelled.","language":"en","major":"http://www.bsi.bund.de/ecard/api/1.1/resultmajor#error","message":"The operation was cancelled.","minor":"http://www.bsi.bund.de/ecard/api/1.1/resultminor/sal#cancellationByUser","reason":"User_Cancelled"},"sent":"none"}
                    """#
                )
            }
        ),
    ]

    // MARK: Workflow

    private static let workflow: [PeerDifference] = [
        PeerDifference(
            "success means that the PIN was changed",
            because: "the peer sometimes reports success without a question",
            in: ["sim-files", "sim-no-simulator-arg"],
            apply: { exchange, _ in
                guard exchange.putsCardIn, exchange.received.contains(where: { $0["success"] == .bool(true) }) else {
                    return nil
                }
                let reader = JSON.simulator(card: .card(tries: 3), keypad: true)
                return exchange.replaced(by: reader, .enter("ENTER_PIN", reader)) + [
                    exchange.then(#"{"cmd":"SET_PIN"}"#, .enter("ENTER_NEW_PIN", reader)),
                    exchange.then(
                        #"{"cmd":"SET_NEW_PIN"}"#,
                        .simulator(card: .null, keypad: true),
                        #"{"msg":"CHANGE_PIN","success":true}"#
                    ),
                ]
            }
        ),
        PeerDifference(
            "CHANGE_PIN has a reason",
            because: "since 1.26.4 the final message of a failed workflow has a reason",
            in: [
                "pcsc-deactivated", "pcsc-puk-used-up", "sim-files", "sim-options", "sim-request-field",
                "sim-set-card-errors",
            ],
            eachMessage: { message, _, place in
                guard message["success"] == .bool(false) else { return nil }
                let isPUKUsedUp = place.transcript.name == "pcsc-puk-used-up"
                let reason = isPUKUsedUp ? "Establish_Pace_Channel_Puk_Inoperative" : "User_Cancelled"
                return [message.with("reason", .string(reason))]
            }
        ),
        PeerDifference(
            "STATUS when PACE begins",
            because: "as in 2.5.3, unless the client has sent status:false",
            in: pcscNames.subtracting(["pcsc-deactivated"]).union([
                "sim-files", "sim-full", "sim-no-simulator-arg", "sim-options",
            ]),
            apply: { exchange, place in
                guard ["SET_PIN", "SET_CAN", "SET_PUK"].contains(where: { exchange.sends($0) }),
                    exchange.received.first?["error"] == nil, place.wantsStatus
                else { return nil }
                var copy = exchange
                copy.received.insert(.statusAtPACE, at: 0)
                return [copy]
            }
        ),
        PeerDifference(
            "commands in one write take effect in order",
            because: "the peer starts the workflow after it has checked the commands that follow RUN_CHANGE_PIN",
            in: ["sim-options"],
            apply: { exchange, _ in
                guard exchange.sent.count == 3 else { return nil }
                let reader = JSON.simulator(card: .card(tries: 3), keypad: true)
                return exchange.replaced(
                    by: #"{"msg":"CHANGE_PIN"}"#,
                    #"{"msg":"INSERT_CARD"}"#,
                    #"{"msg":"STATUS","progress":0,"state":"INSERT_CARD","workflow":"CHANGE_PIN"}"#,
                    reader,
                    .enter("ENTER_PIN", reader)
                )
            }
        ),
        PeerDifference(
            "the card is taken out after the workflow",
            because: "SET_CARD in one write with RUN_CHANGE_PIN has inserted the card",
            in: ["sim-options"],
            apply: { exchange, place in
                guard exchange.sends("CANCEL"), place.index > 2,
                    place.transcript.exchanges[place.index - 2].sent.count == 3
                else { return nil }
                var copy = exchange
                copy.received.insert(.simulator(card: .null, keypad: true), at: 0)
                return [copy]
            }
        ),
    ]

}

extension PeerDifference.Place {
    fileprivate var hasReaders: Bool { transcript.name != "01-basic" }

    /// Whether the last `status` of RUN_CHANGE_PIN enables STATUS.
    fileprivate var wantsStatus: Bool {
        for line in earlier where line.hasPrefix(#"{"cmd":"RUN_CHANGE_PIN""#) {
            if line.contains(#""status":false"#) { return false }
            if line.contains(#""status":true"#) { return true }
        }
        return true
    }
}
