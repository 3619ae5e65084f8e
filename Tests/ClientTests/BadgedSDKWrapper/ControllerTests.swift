// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedSDKWrapper
import Dispatch
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite("Workflow controller", .timeLimit(.minutes(5)))
struct ControllerTests {
    private func controller(_ transport: any SDKConnection) -> (WorkflowController, Recorder) {
        let controller = WorkflowController(transport: transport, callbackQueue: DispatchQueue(label: "callbacks"))
        let recorder = Recorder()
        controller.registerCallbacks(recorder)
        return (controller, recorder)
    }

    @Test("A second start does nothing")
    func start() async {
        let (controller, recorder) = controller(ScriptedTransport())
        #expect(!controller.isStarted)
        controller.start()
        controller.start()
        #expect(controller.isStarted)
        controller.stop()
        #expect(await recorder.next("disconnected") == "disconnected nil")
        #expect(recorder.all == ["started", "disconnected nil"])
        #expect(!controller.isStarted)
    }

    @Test("An authentication runs from its start to its result")
    func authentication() async throws {
        let reader = #""reader":{"attached":true,"card":{},"insertable":false,"keypad":false,"name":"R"}"#
        let rights = #"{"chat":{"effective":[],"optional":[],"required":["Address"]},"msg":"ACCESS_RIGHTS"}"#
        let transport = ScriptedTransport([
            "RUN_AUTH": [#"{"msg":"AUTH"}"#, rights],
            "ACCEPT": [#"{"msg":"INSERT_CARD"}"#, "{\"msg\":\"ENTER_PIN\",\(reader)}"],
            "SET_PIN": [#"{"msg":"AUTH","result":{"major":"/resultmajor#ok"},"url":"https://s.example/done"}"#],
        ])
        let (controller, recorder) = controller(transport)
        controller.start()
        let url = try #require(URL(string: "https://s.example/tctoken?x=1&y=2"))
        #expect(url.isValidHttpsURL)
        controller.startAuthentication(withTcTokenUrl: url)
        _ = await recorder.next("rights")
        controller.accept()
        _ = await recorder.next("enter PIN")
        controller.setPin("123456")
        let end = await recorder.next("authentication completed")
        #expect(end == "authentication completed https://s.example/done /resultmajor#ok nil false false")
        #expect(
            transport.commands == [
                #"RUN_AUTH {"tcTokenURL":"https://s.example/tctoken?x=1&y=2","developerMode":false,"status":true}"#,
                "ACCEPT {}", "SET_PIN {}",
            ]
        )
    }

    @Test("Callbacks are held weakly, registered once, and can be unregistered")
    func registration() async {
        let transport = ScriptedTransport()
        let (controller, recorder) = controller(transport)
        controller.registerCallbacks(recorder)
        let other = Recorder()
        controller.registerCallbacks(other)
        var released: Recorder? = Recorder()
        weak let reference = released
        if let released { controller.registerCallbacks(released) }
        released = nil
        #expect(reference == nil)
        controller.start()
        _ = await other.next("started")
        controller.unregisterCallbacks(other)
        transport.deliver(#"{"msg":"INSERT_CARD"}"#)
        _ = await recorder.next("insert card")
        #expect(recorder.all == ["started", "insert card nil"])
        #expect(other.all == ["started"])
    }

    @Test("A controller that nothing refers to disconnects")
    func released() async {
        let transport = ScriptedTransport()
        do {
            let (controller, recorder) = controller(transport)
            controller.start()
            _ = await recorder.next("started")
        }
        await transport.untilStopped()
    }

    @Test("A PIN is changed with badged and its virtual card")
    func changePIN() async throws {
        let daemon = try await RunningDaemon()
        let (controller, recorder) = controller(DaemonTransport(path: daemon.path))
        controller.start()
        _ = await recorder.next("started")
        controller.getInfo()
        #expect(await recorder.next("info") == "info badged TR-03124-1")
        controller.startChangePin()
        _ = await recorder.next("change started")
        _ = await recorder.next("insert card")
        controller.setCard(name: "Simulator")
        #expect(await recorder.next("enter PIN") == "enter PIN nil Simulator/true/true/false/3 false false")
        controller.setPin("12345")
        _ = await recorder.next("enter PIN")
        controller.setPin("123456")
        _ = await recorder.next("enter new PIN")
        controller.setNewPin("654321")
        #expect(await recorder.next("change completed") == "change completed true nil")
        controller.interrupt()
        #expect(await recorder.next("wrapper error") == "wrapper error UNKNOWN_COMMAND INTERRUPT")
        controller.stop()
        #expect(await recorder.next("disconnected") == "disconnected nil")
        // The controller can start again.
        controller.start()
        _ = await recorder.next("started")
        controller.stop()
        _ = await recorder.next("disconnected")
    }

    @Test("When badged is killed, the app gets the cause and an advice")
    func killed() async throws {
        let daemon = try await RunningDaemon()
        let (controller, recorder) = controller(DaemonTransport(path: daemon.path))
        controller.start()
        _ = await recorder.next("started")
        daemon.program.signal(SIGKILL)
        let error = await recorder.next("wrapper error")
        let words = "wrapper error WorkflowController::connection badged has closed the connection; connect again; "
        #expect(error.hasPrefix(words))
        _ = await recorder.next("disconnected badged has closed the connection")
        #expect(!controller.isStarted)
    }

    @Test("Without badged the start fails with a cause and an advice")
    func nobody() async {
        let (controller, recorder) = controller(DaemonTransport(path: "/nowhere/badged.sock"))
        controller.start()
        let error = await recorder.next("wrapper error")
        #expect(error.hasPrefix("wrapper error WorkflowController::start badged is not running"))
        #expect(error.contains("systemctl start badged"))
        _ = await recorder.next("disconnected")
        #expect(!controller.isStarted)
    }

    @Test("Constants and raw values are those of the SDK Wrapper")
    func values() {
        typealias Lengths = WorkflowController
        #expect(
            [Lengths.pinLength, Lengths.transportPinLength, Lengths.canLength, Lengths.pukLength] == [6, 5, 6, 10]
        )
        #expect(AccessRight.allCases.count == 24)
        #expect(AccessRight.allCases.allSatisfy { "\($0)" == $0.rawValue })
        #expect(WorkflowProgressType.AUTHENTICATION.rawValue == "AUTH")
        #expect(WorkflowProgressType.CHANGE_PIN.rawValue == "CHANGE_PIN")
        #expect(Cause.BadCardPosition.rawValue == "BadCardPosition")
    }

    @Test(
        "A number consists of ASCII digits",
        arguments: [("123456", true), ("", false), ("12a", false), ("١٢", false)]
    )
    func numbers(text: String, isNumber: Bool) { #expect(text.isNumber == isNumber) }

    @Test(
        "A valid URL has the scheme https and a host",
        arguments: [
            ("https://a.example/x", true), ("HTTPS://a.example", true), ("http://a.example", false),
            ("https:///x", false),
            ("a.example", false), ("ftp://a.example", false),
        ]
    )
    func urls(text: String, isValid: Bool) throws {
        #expect(try #require(URL(string: text)).isValidHttpsURL == isValid)
    }
}
