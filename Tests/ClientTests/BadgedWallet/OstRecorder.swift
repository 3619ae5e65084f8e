// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedOSTWallet
import Synchronization
import Text

/// Lines of text that a test waits for.
final class Lines: Sendable {
    private let lines: AsyncStream<String>
    private let feed: AsyncStream<String>.Continuation
    private let recorded = Mutex<[String]>([])

    init() { (lines, feed) = AsyncStream.makeStream(of: String.self) }

    var all: [String] { recorded.withLock { $0 } }

    func add(_ line: String) {
        recorded.withLock { $0.append(line) }
        feed.yield(line)
    }

    /// Waits for the next line with this start, and skips the lines before it.
    func next(_ start: String) async -> String {
        for await line in lines where line.hasPrefix(start) { return line }
        return "the end"
    }
}

/// An app with only the nine functions of the SDK. It gives its PINs in their order.
class OstApp: OstWorkFlowCallbackDelegate {
    let lines = Lines()
    private var pins: [String]
    private let agrees: Bool
    private let response: ([String: Any]) -> [String: Any]

    init(
        _ pins: [String] = [],
        agrees: Bool = true,
        response: @escaping ([String: Any]) -> [String: Any] = { ["device": $0] }
    ) {
        (self.pins, self.agrees, self.response) = (pins, agrees, response)
    }

    /// Waits for the end of the workflow, and returns the last line.
    func end() async -> String { await lines.next("flow") }

    func answer(_ delegate: any OstPinAcceptDelegate) {
        if pins.isEmpty {
            delegate.cancelFlow(OstError("app", .userCanceled, message: "no PIN"))
        } else {
            delegate.pinEntered(pins.removeFirst(), passphrasePrefix: "a prefix of thirty characters or more")
        }
    }

    func registerDevice(_ apiParams: [String: Any], delegate: any OstDeviceRegisteredDelegate) {
        let isNumber = apiParams["updated_timestamp"] is Int
        lines.add("registerDevice \(apiParams["address"] ?? "") \(apiParams["status"] ?? "") \(isNumber)")
        delegate.deviceRegistered(response(apiParams))
    }

    func verifyData(
        workflowContext: OstWorkflowContext,
        ostContextEntity: OstContextEntity,
        delegate: any OstValidateDataDelegate
    ) {
        let signing = (ostContextEntity.entity as? [String: Any])?["signing"] as? [String: Any]
        lines.add(
            "verifyData \(workflowContext.workflowType) \(ostContextEntity.entityType) \(signing?["message"] ?? "")"
        )
        if agrees { delegate.dataVerified() } else { delegate.cancelFlow() }
    }

    func getPin(_ userId: String, delegate: any OstPinAcceptDelegate) {
        lines.add("getPin \(userId)")
        answer(delegate)
    }

    func invalidPin(_ userId: String, delegate: any OstPinAcceptDelegate) {
        lines.add("invalidPin \(userId)")
        answer(delegate)
    }

    func pinValidated(_ userId: String) { lines.add("pinValidated \(userId)") }

    func showPaperWallet(mnemonics: [String]) { lines.add("showPaperWallet \(mnemonics.count)") }

    func requestAcknowledged(workflowContext: OstWorkflowContext, ostContextEntity: OstContextEntity) {
        lines.add("requestAcknowledged \(workflowContext.workflowType) \(ostContextEntity.entityType)")
    }

    func flowComplete(workflowContext: OstWorkflowContext, ostContextEntity: OstContextEntity) {
        let hasID = !workflowContext.getWorkflowId().isEmpty
        lines.add("flowComplete \(workflowContext.workflowType) \(ostContextEntity.entityType) \(hasID)")
    }

    func flowInterrupted(workflowContext: OstWorkflowContext, error: OstError) {
        lines.add("flowInterrupted \(workflowContext.workflowType) \(error.messageTextCode): \(error)")
    }
}

/// An app that also answers what a card asks beyond the SDK.
final class OstCardApp: OstApp, OstCardDelegate {
    /// The words of `showPaperWallet`, as the user has written them down.
    private var paper: [String] = []

    override func showPaperWallet(mnemonics: [String]) {
        paper = mnemonics
        super.showPaperWallet(mnemonics: mnemonics)
    }

    func insertCard(error: String?, reader: String?) { lines.add("insertCard \(error ?? "")") }

    func getNewPin(_ userId: String, error: String?, delegate: any OstPinAcceptDelegate) {
        lines.add("getNewPin \(userId)")
        answer(delegate)
    }

    func getPuk(_ userId: String, retryCounter: Int?, delegate: any OstPinAcceptDelegate) {
        lines.add("getPuk \(retryCounter ?? -1)")
        answer(delegate)
    }

    func showPuk(_ puk: String, delegate: any OstValidateDataDelegate) {
        lines.add("showPuk \(puk.count)")
        delegate.dataVerified()
    }

    func verifyMnemonics(positions: [Int], error: String?, delegate: any OstMnemonicsAcceptDelegate) {
        lines.add("verifyMnemonics \(positions.count)\(error.map { " \($0)" } ?? "")")
        delegate.mnemonicsEntered(positions.map { paper[$0 - 1] })
    }

    func keepSessionKey(address: String, privateKey: String, delegate: any OstValidateDataDelegate) {
        lines.add("keepSessionKey \(privateKey.count)")
        delegate.dataVerified()
    }
}
