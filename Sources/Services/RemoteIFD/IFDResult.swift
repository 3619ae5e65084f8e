// SPDX-License-Identifier: GPL-3.0-or-later
import Text

/// The result members of an answer: `ResultMajor` and `ResultMinor`.
package enum IFDResult: Sendable, Equatable {
    case ok
    case failed(Minor)

    /// The known reasons; every other one reads as `unknownError`.
    package enum Minor: String, Sendable, CaseIterable {
        case unknownError = "/al/common#unknownError"
        case unknownAPIFunction = "/al/common#unknownAPIFunction"
        case unknownSlot = "/ifdl/terminal#unknownSlot"
        case sharingViolation = "/ifdl/terminal#IFDSharingViolation"
        case invalidSlotHandle = "/ifdl/common#invalidSlotHandle"
        case noCard = "/ifdl/terminal#noCard"
        case timeout = "/ifdl/common#timeoutError"
        case cancelled = "/ifdl#cancellationByUser"
        case repeatedDataMismatch = "/ifdl/IO#repeatedDataMismatch"
        case unknownPINFormat = "/ifdl/IO#unknownPINFormat"
    }

    private static let major = "http://www.bsi.bund.de/ecard/api/1.1/resultmajor"
    private static let minor = "http://www.bsi.bund.de/ecard/api/1.1/resultminor"

    /// Reads the members; nil if `ResultMajor` is missing or unknown.
    init?(_ json: JSON) {
        switch json["ResultMajor"]?.string {
        case Self.major + "#ok": self = .ok
        case Self.major + "#error":
            let text = json["ResultMinor"]?.string ?? ""
            let ending = text.hasPrefix(Self.minor) ? String(text.dropFirst(Self.minor.count)) : ""
            self = .failed(Minor(rawValue: ending) ?? .unknownError)
        default: return nil
        }
    }

    func write(to object: inout JSONWriter) {
        switch self {
        case .ok:
            object.member("ResultMajor", Self.major + "#ok")
            object.member("ResultMinor", JSON.null)
        case .failed(let reason):
            object.member("ResultMajor", Self.major + "#error")
            object.member("ResultMinor", Self.minor + reason.rawValue)
        }
    }
}
