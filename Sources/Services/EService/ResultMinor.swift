// SPDX-License-Identifier: GPL-3.0-or-later

/// What kind of error it was, as a URI. TR-03112-1, 4.2; known ones in the order of docs/protocol.md.
package struct ResultMinor: Sendable, Hashable {
    /// The whole URI, as the eID-Server or a client sees it.
    package let uri: String

    package init(uri: String) { self.uri = uri }

    private init(_ suffix: String) { uri = Self.prefix + suffix }

    private static let prefix = "http://www.bsi.bund.de/ecard/api/1.1/resultminor"

    package static let unknownError = ResultMinor("/al/common#unknownError")
    package static let noPermission = ResultMinor("/al/common#noPermission")
    package static let internalError = ResultMinor("/al/common#internalError")
    package static let parameterError = ResultMinor("/al/common#parameterError")
    package static let communicationError = ResultMinor("/al/common#communicationError")
    package static let trustedChannelEstablishmentFailed = ResultMinor("/dp#trustedChannelEstablishmentFailed")
    package static let invalidCertificatePath = ResultMinor("/il/signature#invalidCertificatePath")
    package static let cancellationByUser = ResultMinor("/sal#cancellationByUser")
    package static let documentValidityVerificationFailed = ResultMinor("/sal/mEAC#DocumentValidityVerificationFailed")

    /// In words for a person, in English; nil for one that only servers use.
    package var description: String? {
        switch self {
        case .unknownError: "Something unexpected went wrong."
        case .noPermission: "The card did not permit it."
        case .internalError: "The dialogue between card, program and server broke down."
        case .parameterError: "The service is not set up correctly."
        case .communicationError: "The connection to the service failed."
        case .trustedChannelEstablishmentFailed: "A trusted channel to the service could not be opened."
        case .invalidCertificatePath: "The certificates of the service are not valid."
        case .cancellationByUser: "It was cancelled."
        case .documentValidityVerificationFailed: "The card is not valid."
        default: nil
        }
    }
}
