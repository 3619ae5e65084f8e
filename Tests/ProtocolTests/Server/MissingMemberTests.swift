// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import EIDServer
import Host
import MPin
import Server
import TestSupport
import Testing
import Text

/// A command is refused before anything happens: no first message of a workflow is sent, and no STATUS.
@Suite("Commands without a member that they need", .timeLimit(.minutes(5)))
@Loop struct MissingMemberTests {
    /// A command with the members that it needs.
    struct Sample: Sendable, CustomTestStringConvertible {
        let command: String
        /// An object with the members of which each one must be there.
        let required: JSON
        /// An object with members without which the others would not be required.
        var fixed: JSON = "{}"
        /// The commands that the connection sends before.
        var state = State.new
        /// What the refusal says; nil: the name of the member.
        var text: String?

        var testDescription: String { "\(command) \(fixed)" }

        /// The command without a member.
        func line(without name: String? = nil) -> String {
            let members = (fixed.members ?? []) + (required.members ?? []).filter { $0.key != name }
            return "\(JSON.object([.init("cmd", .string(command)), .init("request", .string("r"))] + members))"
        }
    }

    /// What a connection has done before the command.
    enum State { case new, userInterface, wallet, mpin, mfa }

    nonisolated private static let hash = String(repeating: "ab", count: 32)
    nonisolated private static let samples: [Sample] =
        [
            Sample(command: "SET_API_LEVEL", required: #"{"level":3}"#),
            Sample(command: "GET_READER", required: #"{"name":"x"}"#),
            Sample(command: "IDENTIFY_CARD", required: #"{"name":"x"}"#),
            Sample(command: "RECORD_CARD", required: #"{"name":"x"}"#),
            Sample(command: "RUN_AUTH", required: #"{"tcTokenURL":"https://service.example/"}"#),
            Sample(command: "SET_USER_INTERFACE", required: #"{"active":true}"#),
            Sample(
                command: "ACTIVATE",
                required: #"{"tcTokenURL":"https://service.example/"}"#,
                state: .userInterface,
                text: "TcToken"
            ),
            Sample(command: "GET_CLOSEST_DOOR_READER", required: #"{"openingType":"proximity"}"#),
            Sample(command: "OPEN_READER", required: #"{"reader":"x","openingType":"proximity"}"#),
            Sample(command: "TRIGGER", required: #"{"openingType":"proximity"}"#),
            Sample(command: "SET_AUTO_OPEN", required: #"{"mode":"off"}"#),
            Sample(command: "REPORT_PANEL", required: #"{"panel":"front","link":"secure"}"#),
            Sample(
                command: "CHALLENGE_CARD",
                required: #"{"number":1,"transaction":"000102030405060708090a0b0c0d0e0f"}"#
            ),
            Sample(
                command: "REPORT_TAP",
                required: #"{"reader":"osdp hall","bits":8,"data":"01","format":"wiegand"}"#
            ),
            Sample(command: "ADD_READER_KEY", required: #"{"name":"x","value":"\#(hash.prefix(32))"}"#),
            Sample(command: "REMOVE_READER_KEY", required: #"{"name":"x"}"#),
            Sample(command: "ALLOW_OPEN", required: #"{"token":1,"allow":true}"#),
            // It is not judged without remote readers.
            Sample(command: "PAIR_READER", required: #"{"fingerprint":"\#(hash)"}"#, text: "Remote readers are off"),
            Sample(command: "REMOVE_REMOTE", required: #"{"fingerprint":"\#(hash)"}"#),
        ] + keys + wallets + operations + mpin + mfa

    nonisolated private static let keys: [Sample] =
        ["ACTIVATE_KEY", "DEACTIVATE_KEY", "DELETE_KEY", "EXPORT_KEY", "GET_OTP", "GET_OTP_COUNTER"]
        .map { Sample(command: $0, required: #"{"key":"k"}"#) } + [
            Sample(command: "REMOVE_ENDPOINT", required: #"{"confirm":true}"#),
            Sample(
                command: "NEW_KEY",
                required: #"{"value":"hex:000102030405060708090a"}"#,
                fixed: #"{"protocol":"otp"}"#
            ),
            Sample(
                command: "IMPORT_SITE",
                required: .object([
                    .init(
                        "qr",
                        .string(
                            #"{"siteUuid":"00000000000000000000000000000001","#
                                + #""readerUuid":"00000000000000000000000000000002","publicKey":"\#(point)"}"#
                        )
                    )
                ])
            ),
            Sample(command: "GET_DATA", required: #"{"oid":"k","tag":"5f21"}"#),
            Sample(command: "PUT_DATA", required: #"{"oid":"k","tag":"5f21","data":"00"}"#),
            Sample(command: "PASS_SAVE", required: #"{"reference":"a.b.c"}"#),
            Sample(command: "WALLET_SAVE", required: #"{"reference":"a.b.c"}"#),
        ]

    /// The generator of P-256.
    nonisolated private static let point =
        "046b17d1f2e12c4247f8bce6e563a440f277037d812deb33a0f4a13945d898c296"
        + "4fe342e2fe1a7f9b8ee7eb4a7c0f9e162bce33576b315ececbb6406837bf51f5"

    nonisolated private static let wallets: [Sample] = [
        Sample(command: "RUN_WALLET", required: #"{"workflow":"ACTIVATE_USER","challenge":"c"}"#),
        Sample(
            command: "RUN_WALLET",
            required: #"{"spendingLimit":"1","expirationTime":1}"#,
            fixed: #"{"workflow":"ADD_SESSION"}"#
        ),
        Sample(
            command: "RUN_WALLET",
            required: #"{"payload":"{\"dd\":\"AD\",\"ddv\":\"2.0.0\",\"d\":{\"da\":\"0x\#(address)\"}}"}"#,
            fixed: #"{"workflow":"AUTHORIZE_DEVICE_WITH_QR","message":"m"}"#
        ),
        Sample(
            command: "RUN_WALLET",
            required: #"{"message":"m"}"#,
            fixed:
                #"{"workflow":"PERFORM_QR_ACTION","payload":"{\"dd\":\"AD\",\"ddv\":\"2.0.0\",\"d\":{\"da\":\"0x\#(address)\"}}"}"#
        ),
        Sample(command: "RUN_WALLET", required: #"{"keyUID":""}"#, fixed: #"{"workflow":"RESET_CARD"}"#),
    ]
    nonisolated private static let address = String(repeating: "11", count: 20)

    nonisolated private static let operations: [Sample] = [
        Sample(command: "WALLET_INIT", required: #"{"mode":"MYKEYSimple","dappName":"D"}"#),
        Sample(
            command: "WALLET_INIT",
            required: #"{"appKey":"k","UUID":"u"}"#,
            fixed: #"{"mode":"MYKEY","dappName":"D"}"#
        ),
        Sample(command: "WALLET_AUTHORIZE", required: #"{"account":"bob"}"#, state: .wallet),
        Sample(command: "WALLET_SIGN", required: #"{"message":"m"}"#, state: .wallet),
        Sample(
            command: "WALLET_TRANSFER",
            required: #"{"to":"alice","amount":"1","symbol":"EOS","contractName":"eosio.token"}"#,
            fixed: #"{"from":"bob"}"#,
            state: .wallet
        ),
        // In mode MYKEY there is a bound account.
        Sample(
            command: "WALLET_TRANSFER",
            required: #"{"from":"bob"}"#,
            fixed: #"{"to":"alice","amount":"1","symbol":"EOS","contractName":"eosio.token"}"#,
            state: .wallet,
            text: "account that signs"
        ),
        Sample(
            command: "WALLET_CONTRACT",
            required: #"{"account":"bob","actions":[{"account":"a","name":"b","data":{}}]}"#,
            state: .wallet
        ),
        Sample(command: "WALLET_SIMPLEWALLET", required: #"{"param":{"action":"sign","message":"m"}}"#),
        Sample(
            command: "WALLET_SIMPLEWALLET",
            required: #"{"account":"bob"}"#,
            fixed: #"{"param":{"action":"login","uuID":"u","loginUrl":"https://dapp.example/"}}"#
        ),
        Sample(
            command: "WALLET_SIMPLEWALLET",
            required: #"{"account":"bob"}"#,
            fixed:
                #"{"param":{"action":"transfer","to":"alice","amount":"1.0","symbol":"EOS","contract":"a","precision":4}}"#
        ),
        Sample(
            command: "WALLET_SIMPLEWALLET",
            required: #"{"account":"bob"}"#,
            fixed: #"{"param":{"action":"transaction","actions":[{"account":"a","name":"b","data":{}}]}}"#
        ),
    ]

    nonisolated private static let mpin: [Sample] =
        [
            "MPIN_MAKE_USER", "MPIN_DELETE_USER", "MPIN_START_REGISTRATION", "MPIN_RESTART_REGISTRATION",
            "MPIN_CONFIRM_REGISTRATION", "MPIN_FINISH_REGISTRATION", "MPIN_START_AUTHENTICATION",
            "MPIN_FINISH_AUTHENTICATION", "MPIN_LOGOUT",
        ].flatMap { command in
            [State.mpin, .mfa].map { Sample(command: command, required: #"{"userId":"a"}"#, state: $0) }
        } + [
            Sample(command: "MPIN_TEST_BACKEND", required: #"{"url":"https://a.example"}"#, state: .mpin),
            Sample(command: "MPIN_SET_BACKEND", required: #"{"url":"https://a.example"}"#, state: .mpin),
            Sample(command: "MPIN_CLIENT_PARAM", required: #"{"key":"k"}"#, state: .mpin),
            Sample(
                command: "MPIN_CHECK_ACCESS_NUMBER",
                required: #"{"accessNumber":"7"}"#,
                state: .mpin,
                text: "access number"
            ),
            Sample(
                command: "MPIN_FINISH_AUTHENTICATION",
                required: #"{"accessNumber":"7"}"#,
                fixed: #"{"userId":"a","mode":"AN"}"#,
                state: .mpin,
                text: "access number"
            ),
        ]

    nonisolated private static let mfa: [Sample] = [
        Sample(command: "MPIN_SET_CLIENT_ID", required: #"{"clientId":"c"}"#, state: .mfa),
        Sample(
            command: "RUN_READ_MDOC",
            required: #"{"documents":[{"docType":"a","items":{"a":[{"name":"b"}]}}]}"#
        ),
        Sample(command: "MPIN_SERVICE_DETAILS", required: #"{"url":"https://a.example"}"#),
        Sample(command: "MPIN_SESSION_DETAILS", required: #"{"accessCode":"c"}"#, state: .mfa),
        Sample(command: "MPIN_ABORT_SESSION", required: #"{"accessCode":"c"}"#, state: .mfa),
        Sample(command: "MPIN_ACCESS_CODE", required: #"{"url":"https://a.example"}"#, state: .mfa),
        Sample(command: "MPIN_START_DVS", required: #"{"userId":"a","token":"t"}"#, state: .mfa),
        Sample(command: "MPIN_FINISH_DVS", required: #"{"userId":"a"}"#, state: .mfa),
        Sample(
            command: "MPIN_VERIFY_DOCUMENT",
            required: #"{"document":"d","hash":"\#(hash)"}"#,
            state: .mfa
        ),
        Sample(
            command: "MPIN_SIGN",
            required: #"{"userId":"a","documentHash":"\#(hash)","epochTime":1}"#,
            state: .mfa
        ),
    ]

    /// The commands that need no member.
    nonisolated private static let complete: Set<String> = [
        "CANCEL", "GET_API_LEVEL", "GET_DOCUMENT_ANCHORS", "GET_DOOR_READER_LIST", "GET_ENDPOINT", "GET_HEALTH",
        "GET_INFO", "GET_KEYS", "GET_LAST_AUTH", "GET_MDOC_ANCHORS", "GET_METRICS", "GET_READER_KEYS",
        "GET_READER_LIST", "GET_REMOTE", "GET_SCAN", "GET_STATUS", "MPIN_BACKENDS", "MPIN_DESTROY", "MPIN_INIT",
        "MPIN_SET_HEADERS", "MPIN_TRUSTED_DOMAINS", "MPIN_USERS", "OPEN_PAIRING", "PASS_CHECK", "PASS_PREPARE",
        "RUN_CHANGE_PIN", "RUN_READ_DOCUMENT", "SETUP_ENDPOINT", "SET_TIMEOUTS", "START", "START_CREDENTIALS",
        "START_DOOR_PANELS", "START_OPENINGS", "START_SCAN", "STOP_CREDENTIALS", "STOP_DOOR_PANELS", "STOP_OPENINGS",
        "STOP_SCAN", "UPDATE_ENDPOINT", "WALLET_CHECK", "WALLET_PREPARE", "WALLET_UNBIND",
    ]

    /// The commands for one state of a workflow. Elsewhere they are BAD_STATE, whatever their members are.
    nonisolated private static let answers: Set<String> = [
        "ACCEPT", "CONTINUE", "DATA_VERIFIED", "DEVICE_REGISTERED", "GET_ACCESS_RIGHTS", "GET_CERTIFICATE",
        "SET_ACCESS_RIGHTS", "SET_CAN", "SET_CARD", "SET_DURESS_PIN", "SET_ENGAGEMENT", "SET_MRZ", "SET_NEW_PIN",
        "SET_NEW_PUK",
        "SET_PAIRING_CODE", "SET_PAIRING_PASSWORD", "SET_PASSPHRASE", "SET_PIN", "SET_PUK", "SET_WORDS",
    ]

    /// A server with all features, and a backend of M-Pin.
    private let server: TestServer
    private let backend: WebServer

    init() async throws {
        var configuration = MPinConfiguration(userAgent: "badged/test")
        configuration.allowsPrivateServers = true
        server = try await ProtocolPageTests.server(configuration)
        let settings = #"{"registerURL":"/user","signatureURL":"/signature","authenticateURL":"/authenticate"}"#
        backend = try WebServer { _ in .init(Array(settings.utf8)) }
    }

    private func client(_ state: State) async throws -> TestClient {
        let client = try server.connect(uid: 1000, .all.union(.activate))
        let steps: [(line: String, answer: String)] =
            switch state {
            case .new: []
            case .userInterface: [(#"{"cmd":"SET_USER_INTERFACE","active":true}"#, "USER_INTERFACE")]
            case .wallet: [(#"{"cmd":"WALLET_INIT","mode":"MYKEYSimple","dappName":"D"}"#, "WALLET_READY")]
            case .mpin, .mfa:
                [
                    (#"{"cmd":"MPIN_INIT","flavour":"\#(state == .mfa ? "MFA" : "MPIN")"}"#, "MPIN_RESULT"),
                    (#"{"cmd":"MPIN_SET_BACKEND","url":"\#(backend.address)"}"#, "MPIN_RESULT"),
                ]
            }
        for step in steps {
            let answer = await client.ask(step.line, step.answer)
            #expect(answer?["error"] == nil && answer?["errorMessage"]?.string ?? "" == "", "\(step): \(answer ?? "")")
        }
        return client
    }

    @Test("each command has a sample, or needs no member")
    func samples() {
        let sampled = Set(Self.samples.map(\.command))
        let known = sampled.union(Self.complete).union(Self.answers)
        #expect(known.symmetricDifference(server.server.specs.map(\.name)).sorted() == [])
        #expect(sampled.intersection(Self.complete).sorted() == [])
    }

    @Test("the refusal is the only message", arguments: samples)
    func refusal(of sample: Sample) async throws {
        for member in sample.required.members ?? [] {
            let client = try await client(sample.state)
            let messages = await client.exchange(sample.line(without: member.key))
            #expect(messages.count == 1, "without \(member.key): \(messages)")
            let message = try #require(messages.first)
            #expect(message["request"] == .string("r"), "without \(member.key): \(message)")
            let text = sample.text ?? member.key
            #expect("\(message)".lowercased().contains(text.lowercased()), "without \(member.key): \(message)")
        }
    }

    @Test("so is that of a wrong address", arguments: ["MPIN_SERVICE_DETAILS", "MPIN_ACCESS_CODE"])
    func wrongAddress(command: String) async throws {
        let messages = try await client(.mfa).exchange(#"{"cmd":"\#(command)","url":"nowhere"}"#)
        #expect(messages.map { $0["msg"] } == [.string("MPIN_RESULT")], "\(messages)")
    }

    @Test("with all members no member is missing", arguments: samples)
    func whole(_ sample: Sample) async throws {
        let client = try await client(sample.state)
        await client.send(sample.line())
        let message = "\(try #require(await client.next()))"
        for word in ["is missing", "must be", "undefined", "send MPIN_"] {
            #expect(!message.contains(word), "\(message)")
        }
    }
}
