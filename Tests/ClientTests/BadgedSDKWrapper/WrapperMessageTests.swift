// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedSDKWrapper
import Dispatch
import Testing
import Text

@Suite("Messages and callbacks", .timeLimit(.minutes(5)))
struct WrapperMessageTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let message: String
        let callbacks: [String]
        init(_ message: String, _ callbacks: String...) { (self.message, self.callbacks) = (message, callbacks) }
        var testDescription: String { message }
    }

    private static let reader =
        #""reader":{"attached":true,"card":{"deactivated":false,"inoperative":false,"retryCounter":3},"#
        + #""insertable":false,"keypad":true,"name":"R"}"#
    private static let certificate =
        #"{"description":{"issuerName":"I","issuerUrl":"https://i.example","purpose":"P","subjectName":"S","#
        + #""subjectUrl":"https://s.example","termsOfUsage":"T"},"msg":"CERTIFICATE","#
        + #""validity":{"effectiveDate":"2026-01-02","expirationDate":"2026-12-31"}}"#

    private static let cases: [Case] = [
        Case(#"{"msg":"AUTH"}"#, "authentication started"),
        Case(#"{"msg":"AUTH","error":"bad url"}"#, "authentication failed bad url"),
        Case(
            #"{"msg":"AUTH","result":{"major":"http://x/resultmajor#ok"},"url":"https://a.example/?x=1"}"#,
            "authentication completed https://a.example/?x=1 http://x/resultmajor#ok nil false false"
        ),
        Case(
            #"{"msg":"AUTH","url":"https://a.example/"}"#,
            "authentication completed https://a.example/ nil nil false nil"
        ),
        Case(
            #"{"msg":"AUTH","result":{"major":"/resultmajor#error","minor":"/x#cancellationByUser","reason":"User_Cancelled"}}"#,
            "authentication completed nil /resultmajor#error User_Cancelled true true"
        ),
        Case(#"{"msg":"CHANGE_PIN"}"#, "change started"),
        Case(#"{"msg":"CHANGE_PIN","success":true}"#, "change completed true nil"),
        Case(
            #"{"msg":"CHANGE_PIN","success":false,"reason":"User_Cancelled"}"#,
            "change completed false User_Cancelled"
        ),
        Case(#"{"msg":"CHANGE_PIN","error":"no such reader"}"#, "wrapper error CHANGE_PIN no such reader"),
        Case(
            #"{"aux":{"ageVerificationDate":"1970-01-02","requiredAge":"18","communityId":"0276"},"chat":{"effective":["Address"],"#
                + #""optional":["Pseudonym","Shoesize"],"required":["Address"]},"msg":"ACCESS_RIGHTS","transactionInfo":"Tx"}"#,
            #"rights nil ["Address"] ["Pseudonym"] ["Address"] ["Shoesize"] Tx 18 86400.0 0276"#
        ),
        Case(#"{"msg":"ACCESS_RIGHTS","error":"Unknown"}"#, "rights Unknown nil nil nil nil nil nil nil nil"),
        Case(certificate, "certificate S https://s.example I 1767312000.0"),
        Case(#"{"msg":"CERTIFICATE"}"#, "wrapper error CERTIFICATE Missing or invalid certificateDescription"),
        Case(
            certificate.replacing("2026-01-02", with: "2026-02-30"),
            "wrapper error CERTIFICATE Missing or invalid certificateDescription"
        ),
        Case(#"{"msg":"INSERT_CARD"}"#, "insert card nil"),
        Case(#"{"msg":"INSERT_CARD","error":"PIN off","reader":"R"}"#, "insert card PIN off"),
        Case("{\"msg\":\"ENTER_PIN\",\(reader)}", "enter PIN nil R/false/true/true/3 false false"),
        Case("{\"msg\":\"ENTER_NEW_PIN\",\(reader)}", "enter new PIN nil R/false/true/true/3 false false"),
        Case("{\"msg\":\"ENTER_CAN\",\"error\":\"six\",\(reader)}", "enter CAN six R/false/true/true/3 false false"),
        Case("{\"msg\":\"ENTER_PUK\",\(reader)}", "enter PUK nil R/false/true/true/3 false false"),
        Case(#"{"msg":"ENTER_PIN"}"#, "wrapper error ENTER_PIN Missing reader object"),
        Case(#"{"msg":"PAUSE","cause":"BadCardPosition"}"#, "pause BadCardPosition"),
        Case(#"{"msg":"PAUSE"}"#, "wrapper error PAUSE Missing cause object"),
        Case(#"{"msg":"PAUSE","cause":"Rain"}"#, #"wrapper error PAUSE Failed to map cause "Rain" to Cause"#),
        Case(
            #"{"msg":"READER","attached":true,"card":{},"insertable":true,"keypad":false,"name":"S"}"#,
            "reader S/true/true/false/unknown"
        ),
        Case(
            #"{"msg":"READER","attached":true,"card":null,"insertable":true,"keypad":false,"name":"S"}"#,
            "reader S/true/true/false/none"
        ),
        Case(#"{"msg":"READER","attached":false,"name":"S"}"#, "reader nil", "detached S"),
        Case(#"{"msg":"READER","error":"name cannot be undefined"}"#, "wrapper error READER name cannot be undefined"),
        Case(
            #"{"msg":"READER_LIST","readers":[{"attached":true,"card":null,"insertable":true,"keypad":false,"name":"S"}]}"#,
            #"readers ["S/true/true/false/none"]"#
        ),
        Case(#"{"msg":"READER_LIST","reader":[]}"#, "readers []"),
        Case(#"{"msg":"READER_LIST"}"#, "readers nil"),
        Case(
            #"{"msg":"STATUS","workflow":"AUTH","progress":55,"state":"ENTER_PIN"}"#,
            "status AUTHENTICATION 55 ENTER_PIN"
        ),
        Case(#"{"msg":"STATUS","workflow":"PERSONALIZATION","progress":null,"state":null}"#, "status nil nil nil"),
        Case(
            #"{"msg":"INFO","VersionInfo":{"Name":"badged","Implementation-Title":"b","Implementation-Vendor":"p","#
                + #""Implementation-Version":"0.2","Specification-Title":"TR-03124-1","Specification-Vendor":"BSI","#
                + #""Specification-Version":"1.4"}}"#,
            "info badged TR-03124-1",
            "from b p 0.2",
            "by BSI 1.4"
        ),
        Case(#"{"msg":"INFO"}"#, "wrapper error INFO Missing VersionInfo in message"),
        Case(#"{"msg":"BAD_STATE","error":"SET_PIN"}"#, "bad state SET_PIN"),
        Case(#"{"msg":"BAD_STATE"}"#, "bad state Unknown bad state"),
        Case(#"{"msg":"INTERNAL_ERROR","error":"oh"}"#, "internal error oh"),
        Case(#"{"msg":"INTERNAL_ERROR"}"#, "internal error Unknown internal error"),
        Case(#"{"msg":"INVALID","error":"no JSON"}"#, "wrapper error INVALID no JSON"),
        Case(#"{"msg":"UNKNOWN_COMMAND","error":"INTERRUPT"}"#, "wrapper error UNKNOWN_COMMAND INTERRUPT"),
        Case(#"{"msg":"UNKNOWN_COMMAND"}"#, "wrapper error UNKNOWN_COMMAND Unknown SDK Wrapper error"),
        Case(
            #"{"msg":"ACCESS_DENIED","error":"RUN_AUTH"}"#,
            "wrapper error ACCESS_DENIED badged does not allow RUN_AUTH to this user"
        ),
        Case(#"{"msg":"API_LEVEL","current":3}"#, "other API_LEVEL"),
        Case(#"{"msg":"TELEPATHY"}"#, "other TELEPATHY"),
        Case("{}", "other "),
    ]

    @Test("Every message calls its callback, and none is dropped", arguments: cases)
    func message(_ message: Case) async {
        let transport = ScriptedTransport()
        let controller = WorkflowController(transport: transport, callbackQueue: DispatchQueue(label: "callbacks"))
        let recorder = Recorder()
        controller.registerCallbacks(recorder)
        controller.start()
        transport.deliver(message.message)
        controller.stop()
        _ = await recorder.next("disconnected")
        #expect(recorder.all == ["started"] + message.callbacks + ["disconnected nil"])
    }

    struct Command: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let send: @Sendable (WorkflowController) -> Void
        init(_ expected: String, _ send: @escaping @Sendable (WorkflowController) -> Void) {
            (testDescription, self.send) = (expected, send)
        }
    }

    private static let commands: [Command] = [
        Command("ACCEPT {}") { $0.accept() },
        Command("CANCEL {}") { $0.cancel() },
        Command("CONTINUE {}") { $0.continueWorkflow() },
        Command("INTERRUPT {}") { $0.interrupt() },
        Command("GET_ACCESS_RIGHTS {}") { $0.getAccessRights() },
        Command("GET_CERTIFICATE {}") { $0.getCertificate() },
        Command("GET_INFO {}") { $0.getInfo() },
        Command(#"GET_READER {"name":"R"}"#) { $0.getReader(name: "R") },
        Command("GET_READER_LIST {}") { $0.getReaderList() },
        Command("GET_STATUS {}") { $0.getStatus() },
        Command(#"SET_ACCESS_RIGHTS {"chat":[]}"#) { $0.setAccessRights([]) },
        Command(#"SET_ACCESS_RIGHTS {"chat":["Address","FamilyName"]}"#) {
            $0.setAccessRights([.Address, .FamilyName])
        },
        Command("SET_PIN {}") { $0.setPin(nil) },
        Command("SET_NEW_PIN {}") { $0.setNewPin(nil) },
        Command("SET_CAN {}") { $0.setCan(nil) },
        Command("SET_PUK {}") { $0.setPuk(nil) },
        Command(#"SET_CARD {"name":"Simulator"}"#) { $0.setCard(name: "Simulator") },
        Command(
            #"SET_CARD {"name":"S","simulator":{"files":[{"fileId":"0101","shortFileId":"01","content":"610413024944"}],"#
                + #""keys":[{"id":1,"content":"30"}]}}"#
        ) {
            let file = SimulatorFile(withFileId: "0101", withShortFileId: "01", withContent: "610413024944")
            let key = SimulatorKey(withId: 1, withContent: "30")
            $0.setCard(name: "S", simulator: Simulator(withFiles: [file], withKeys: [key]))
        },
        Command(#"RUN_CHANGE_PIN {"status":true}"#) { $0.startChangePin() },
        Command(
            #"RUN_CHANGE_PIN {"status":false,"messages":{"sessionStarted":"a","sessionFailed":"","sessionSucceeded":"","#
                + #""sessionInProgress":""}}"#
        ) {
            $0.startChangePin(
                withUserInfoMessages: AA2UserInfoMessages(sessionStarted: "a"),
                withStatusMsgEnabled: false
            )
        },
    ]

    @Test("Every method sends its command", arguments: commands)
    func command(_ command: Command) {
        let transport = ScriptedTransport()
        let controller = WorkflowController(transport: transport, callbackQueue: DispatchQueue(label: "callbacks"))
        controller.start()
        command.send(controller)
        #expect(transport.commands == [command.testDescription])
    }

    @Test("Without a connection a command is not sent, and the app is informed", arguments: commands)
    func notStarted(_ command: Command) async {
        let transport = ScriptedTransport()
        let controller = WorkflowController(transport: transport, callbackQueue: DispatchQueue(label: "callbacks"))
        let recorder = Recorder()
        controller.registerCallbacks(recorder)
        command.send(controller)
        let name = command.testDescription.prefix { $0 != " " }
        #expect(await recorder.next("wrapper error") == "wrapper error \(name) AusweisApp2 SDK Wrapper not started")
        #expect(transport.commands.isEmpty)
    }
}
