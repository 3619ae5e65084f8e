// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Concurrency
import Crypto
import Document
import ISO7816
import Server
import Synchronization
import Text

/// Reports the progress of a reading in steps of ten percent.
final class DocumentProgress: Sendable {
    private let last = Mutex(-1)
    private let show: @Loop @Sendable (Int) -> Void

    @Loop init(_ workflow: Workflow) {
        show = { [weak workflow] percent in
            if let workflow, !workflow.isOver { workflow.progress(percent) }
        }
    }

    /// May be called from any thread.
    func report(_ progress: DocumentReading.Progress) {
        let percent: Int
        switch progress {
        case .opening: percent = 0
        case .provingChip: percent = 10
        case .reading(let file, let bytes, let total):
            // The picture is nearly all of a document, and comes last.
            let share = total > 0 ? bytes * 100 / total : 0
            percent = file == .group(2) ? 20 + share * 7 / 10 : 20
        }
        let step = percent / 10 * 10
        let isNew = last.withLock { last in
            guard step > last else { return false }
            last = step
            return true
        }
        guard isNew else { return }
        Task { @Loop [show] in show(step) }
    }
}

extension Failure {
    /// Why a document cannot be read, in the words of DOCUMENT.
    init(_ error: DocumentError) {
        switch error {
        case .card(.removed): self = .cardLost
        case .card(.cancelled): self = .cancelled
        case .card(let error): self.init(.init("CardError"), "The card does not answer", cause: "\(error)")
        case .notADocument: self.init(.init("NotADocument"), "The card has no application for documents")
        case .wrongPassword: self.init(.init("WrongPassword"), "The document refuses the MRZ or CAN")
        case .accessUnsupported:
            self.init(
                .init("AccessUnsupported"),
                "The document offers no access that is supported and allowed with this value",
                advice: "give the MRZ instead of the CAN, or allow BAC"
            )
        case .accessRefused(let words):
            self.init(.init("AccessRefused"), "PACE has failed, and BAC is not tried after it", cause: words)
        case .refused(let file, let status):
            self.init(.init("CardError"), "The document refuses \(file) with \(status)")
        case .malformed(let file): self.init(.init("Malformed"), "\(file) is malformed")
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
