// SPDX-License-Identifier: Apache-2.0
// An app for the AusweisApp SDK Wrapper. Only the import differs.
import BadgedSDKWrapper
import Dispatch
import Glibc

final class App: WorkflowCallbacks {
    private let controller = AA2SDKWrapper.workflowController

    func run() {
        controller.registerCallbacks(self)
        controller.start()
    }

    func onStarted() {
        print("started")
        controller.getInfo()
    }

    func onInfo(versionInfo: VersionInfo) {
        print("\(versionInfo.name), \(versionInfo.specificationTitle)")
        controller.startChangePin(withStatusMsgEnabled: false)
    }

    func onInsertCard(error: String?) {
        print("insert card")
        controller.setCard(name: "Simulator")
    }

    func onEnterPin(error: String?, reader: Reader) {
        let triesLeft = reader.card?.pinRetryCounter ?? 0
        print("PIN, \(triesLeft) tries left")
        // The virtual card keeps the PIN that an earlier run has set.
        controller.setPin(triesLeft == 3 ? "123456" : "654321")
    }

    func onEnterNewPin(error: String?, reader: Reader) { controller.setNewPin("654321") }

    func onChangePinCompleted(changePinResult: ChangePinResult) {
        print(changePinResult.success ? "changed" : "not changed")
        controller.stop()
    }

    func onWrapperError(error: WrapperError) { print("\(error.msg): \(error.error)") }

    func onDisconnected(error: WrapperError?) { exit(error == nil ? 0 : 1) }
}

let app = App()
app.run()
dispatchMain()
