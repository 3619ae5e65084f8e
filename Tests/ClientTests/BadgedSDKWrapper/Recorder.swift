// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedSDKWrapper
import FoundationEssentials
import Synchronization
import Text

/// Records callbacks as lines of text, in their order.
final class Recorder: WorkflowCallbacks, Sendable {
    private let lines: AsyncStream<String>
    private let feed: AsyncStream<String>.Continuation
    private let recorded: Mutex<[String]> = Mutex([])

    init() { (lines, feed) = AsyncStream.makeStream(of: String.self) }

    private func add(_ name: String, _ parts: Any?...) {
        let texts = parts.map { part in part.map { "\($0)" } ?? "nil" }
        let line = ([name] + texts).joined(separator: " ")
        recorded.withLock { $0.append(line) }
        feed.yield(line)
    }

    /// All lines so far.
    var all: [String] { recorded.withLock { $0 } }

    /// Waits for the next line with this start, and skips the lines before it.
    func next(_ start: String) async -> String {
        for await line in lines where line.hasPrefix(start) { return line }
        return "the end"
    }

    private func text(_ reader: Reader) -> String {
        let card = reader.card.map { card in
            card.isUnknown()
                ? "unknown"
                : "\(card.pinRetryCounter ?? -1) \(card.deactivated ?? false) \(card.inoperative ?? false)"
        }
        return "\(reader.name)/\(reader.insertable)/\(reader.attached)/\(reader.keypad)/\(card ?? "none")"
    }

    func onStarted() { add("started") }
    func onAuthenticationStarted() { add("authentication started") }
    func onAuthenticationStartFailed(error: String) { add("authentication failed", error) }
    func onAuthenticationCompleted(authResult: BadgedSDKWrapper.AuthResult) {
        add(
            "authentication completed",
            authResult.url,
            authResult.result?.major,
            authResult.result?.reason,
            authResult.hasError,
            authResult.result?.isCancellationByUser
        )
    }
    func onChangePinStarted() { add("change started") }
    func onChangePinCompleted(changePinResult: ChangePinResult) {
        add("change completed", changePinResult.success, changePinResult.reason)
    }
    func onAccessRights(error: String?, accessRights: AccessRights?) {
        add(
            "rights",
            error,
            accessRights?.requiredRights.map(\.rawValue),
            accessRights?.optionalRights.map(\.rawValue),
            accessRights?.effectiveRights.map(\.rawValue),
            accessRights?.unknownRights,
            accessRights?.transactionInfo,
            accessRights?.auxiliaryData?.requiredAge,
            accessRights?.auxiliaryData?.ageVerificationDate?.timeIntervalSince1970,
            accessRights?.auxiliaryData?.communityId
        )
    }
    func onCertificate(certificateDescription description: CertificateDescription) {
        add(
            "certificate",
            description.subjectName,
            description.subjectUrl,
            description.issuerName,
            description.validity.effectiveDate.timeIntervalSince1970
        )
    }
    func onInsertCard(error: String?) { add("insert card", error) }
    func onEnterPin(error: String?, reader: Reader) { add("enter PIN", error, text(reader)) }
    func onEnterNewPin(error: String?, reader: Reader) { add("enter new PIN", error, text(reader)) }
    func onEnterCan(error: String?, reader: Reader) { add("enter CAN", error, text(reader)) }
    func onEnterPuk(error: String?, reader: Reader) { add("enter PUK", error, text(reader)) }
    func onPause(cause: Cause) { add("pause", cause) }
    func onReader(reader: Reader?) { add("reader", reader.map(text)) }
    func onReaderList(readers: [Reader]?) { add("readers", readers?.map(text)) }
    func onStatus(workflowProgress progress: WorkflowProgress) {
        add("status", progress.workflow, progress.progress, progress.state)
    }
    func onInfo(versionInfo info: VersionInfo) {
        add("info", info.name, info.specificationTitle)
        add("from", info.implementationTitle, info.implementationVendor, info.implementationVersion)
        add("by", info.specificationVendor, info.specificationVersion)
    }
    func onBadState(error: String) { add("bad state", error) }
    func onInternalError(error: String) { add("internal error", error) }
    func onWrapperError(error: WrapperError) { add("wrapper error", error.msg, error.error) }
    func onReaderDetached(name: String) { add("detached", name) }
    func onOtherMessage(name: String, message: JSON) { add("other", name) }
    func onDisconnected(error: WrapperError?) { add("disconnected", error?.error) }
}
