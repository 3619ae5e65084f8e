// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Concurrency
import Crypto
import Document
import ISO7816
import Server
import Synchronization
import Text

/// Reports the progress of a reading: each ten percent, each new group, and otherwise five times a second at most.
final class DocumentProgress: Sendable {
    private struct State {
        var percent = -1
        var file: DocumentFile?
        var time = ContinuousClock.now
    }

    private static let interval = Duration.milliseconds(200)

    private let last = Mutex(State())
    private let show: @Loop @Sendable (Int, [JSON.Member]) -> Void

    @Loop init(_ workflow: Workflow) {
        show = { [weak workflow] percent, details in
            if let workflow, !workflow.isOver { workflow.progress(percent, details: details) }
        }
    }

    /// May be called from any thread.
    func report(_ progress: DocumentReading.Progress) {
        let (percent, file, details) = Self.describe(progress)
        let isNew = last.withLock { last in
            // A file that is small does not bring the bar back.
            let percent = max(percent, last.percent)
            let now = ContinuousClock.now
            guard
                percent / 10 > last.percent / 10 || last.percent < 0 || file != last.file
                    || now - last.time >= Self.interval
            else { return false }
            last = State(percent: percent, file: file, time: now)
            return true
        }
        guard isNew else { return }
        let shown = last.withLock { $0.percent }
        Task { @Loop [show] in show(shown, details) }
    }

    private static func describe(
        _ progress: DocumentReading.Progress
    ) -> (percent: Int, file: DocumentFile?, details: [JSON.Member]) {
        switch progress {
        case .opening: return (0, nil, [.init("step", .string("opening"))])
        case .provingChip: return (10, nil, [.init("step", .string("provingChip"))])
        case .reading(let file, let bytes, let total):
            var details: [JSON.Member] = [.init("step", .string("reading"))]
            if case .group(let number) = file { details.append(.init("group", .number(String(number)))) }
            details.append(.init("bytes", .number(String(bytes))))
            details.append(.init("total", .number(String(total))))
            // The picture is nearly all of a document, and comes last.
            let share = total > 0 ? bytes * 100 / total : 0
            return (file == .group(2) ? 20 + share * 7 / 10 : 20, file, details)
        }
    }
}

extension Failure {
    static let notADocument = Failure(
        .init("NotADocument"),
        "The card has no application for documents",
        advice: "use another card"
    )

    private static func accessUnsupported(_ kind: AccessKey.Kind, _ policy: DocumentChip.BACPolicy) -> Failure {
        let advice: Phrase =
            switch (kind, policy) {
            case (.can, _): "give the MRZ instead of the CAN"
            case (.mrz, .never): "allow BAC with allowBAC"
            case (.mrz, .whenNoPACE), (.mrz, .always): "use what is printed on the document"
            }
        return Failure(
            .init("AccessUnsupported"),
            "The document offers no access that is supported and allowed with the \(kind.rawValue)",
            advice: advice
        )
    }

    /// Why a document cannot be read with a value of this kind, in the words of DOCUMENT.
    init(_ error: DocumentError, _ kind: AccessKey.Kind, _ policy: DocumentChip.BACPolicy) {
        func status(_ status: StatusWord) -> [JSON.Member] { [.init("sw", .string("\(status)"))] }
        switch error {
        case .card(.removed): self = .cardLost
        case .card(.cancelled): self = .cancelled
        case .card(.reset):
            self.init(
                .init("CardError"),
                "The document was reset again and again, and could not be read to its end",
                advice: "end other programs that use the reader, and try again",
                cause: "\(error)"
            )
        case .card(let error): self.init(.init("CardError"), "The card does not answer", cause: "\(error)")
        case .notADocument: self = .notADocument
        case .wrongPassword(let sw):
            self.init(
                .init("WrongPassword"),
                "The document refuses the MRZ or CAN",
                advice: "compare it with the document; chips wait longer after each wrong value",
                details: status(sw)
            )
        case .accessUnsupported: self = .accessUnsupported(kind, policy)
        case .basicAccessRefused(let sw) where DocumentChip.meansNoBAC(sw):
            self = .accessUnsupported(kind, policy)
            self.details = status(sw)
        case .accessRefused(let words):
            self.init(.init("AccessRefused"), "PACE has failed, and BAC is not tried after it", cause: words)
        case .basicAccessRefused(let sw):
            self.init(.init("CardError"), "The document refuses BAC with \(sw)", details: status(sw))
        case .refused(let file, let sw):
            self.init(.init("CardError"), "The document refuses \(file) with \(sw)", details: status(sw))
        case .malformed(let file):
            self.init(
                .init("Malformed"),
                "\(file) is malformed",
                details: [.init("file", .string(file.description))]
            )
        case .protocolViolation(let words):
            self.init(.init("CardError"), "The document breaks the protocol", cause: words)
        }
    }
}

extension KeyAgreementDomain {
    /// The name of the domain parameters, such as `brainpoolP256r1`.
    var text: String {
        switch self {
        case .curve(let curve): "\(curve)"
        case .integers(let group): "\(group)"
        }
    }
}
