// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Text

/// A return code of libpcsclite; names and values are those of winscard.h without their prefix.
struct PCSCCode: Error, Hashable, Sendable {
    let value: UInt32

    init(_ value: UInt32) { self.value = value }

    static let success = PCSCCode(0)
    static let cancelled = PCSCCode(0x8010_0002)
    static let invalidHandle = PCSCCode(0x8010_0003)
    static let invalidParameter = PCSCCode(0x8010_0004)
    static let noMemory = PCSCCode(0x8010_0006)
    static let waitedTooLong = PCSCCode(0x8010_0007)
    static let insufficientBuffer = PCSCCode(0x8010_0008)
    static let unknownReader = PCSCCode(0x8010_0009)
    static let timeout = PCSCCode(0x8010_000A)
    static let sharingViolation = PCSCCode(0x8010_000B)
    static let noSmartCard = PCSCCode(0x8010_000C)
    static let protocolMismatch = PCSCCode(0x8010_000F)
    static let notReady = PCSCCode(0x8010_0010)
    static let invalidValue = PCSCCode(0x8010_0011)
    static let systemCancelled = PCSCCode(0x8010_0012)
    static let commError = PCSCCode(0x8010_0013)
    static let notTransacted = PCSCCode(0x8010_0016)
    static let readerUnavailable = PCSCCode(0x8010_0017)
    static let shutdown = PCSCCode(0x8010_0018)
    static let noService = PCSCCode(0x8010_001D)
    static let serviceStopped = PCSCCode(0x8010_001E)
    static let unsupportedFeature = PCSCCode(0x8010_001F)
    static let noAccess = PCSCCode(0x8010_0027)
    static let noReadersAvailable = PCSCCode(0x8010_002E)
    static let commDataLost = PCSCCode(0x8010_002F)
    static let serverTooBusy = PCSCCode(0x8010_0031)
    static let unsupportedCard = PCSCCode(0x8010_0065)
    static let unresponsiveCard = PCSCCode(0x8010_0066)
    static let unpoweredCard = PCSCCode(0x8010_0067)
    static let resetCard = PCSCCode(0x8010_0068)
    static let removedCard = PCSCCode(0x8010_0069)
    static let securityViolation = PCSCCode(0x8010_006A)

    /// Eight hexadecimal digits, as everybody searches for them.
    var hex: String { "0x" + Hex.encode(value).uppercased() }
}

/// What was asked of pcscd when a code came; the same code has several causes.
enum PCSCCall: Sendable, Equatable, CaseIterable {
    /// SCardConnect and SCardBeginTransaction.
    case connect
    /// SCardTransmit and SCardControl.
    case exchange
}

/// What a code means, or who knows.
enum PCSCVerdict: Sendable, Equatable {
    case error(CardError)
    /// The exchange broke off: `.removed` when the card turns out to be gone, else `.mute`.
    case askReader
    /// pcscd hung up: `.accessDenied` when it still talks to us otherwise, else `.serviceUnavailable`.
    case askService
}

extension PCSCCode {
    /// The one table from codes to errors. `success` is not a failure and must not come here.
    func verdict(during call: PCSCCall) -> PCSCVerdict {
        switch (self, call) {
        case (.resetCard, _):
            .error(.reset)
        // The card was powered down behind our back: the negotiated protocol, and with it every channel, is gone.
        case (.protocolMismatch, .exchange):
            .error(.reset)
        case (.removedCard, _), (.noSmartCard, _), (.noReadersAvailable, _), (.unknownReader, _),
            (.readerUnavailable, _),
            // pcscd answers "invalid value" for a handle whose reader was unplugged.
            (.invalidValue, _):
            .error(.removed)
        case (.sharingViolation, _):
            .error(.exclusive)
        case (.noService, _), (.serviceStopped, _), (.invalidHandle, _), (.systemCancelled, _), (.shutdown, _):
            .error(.serviceUnavailable)
        // The socket to pcscd broke ("comm error": end of file; "security violation": reset by peer). Amid an exchange
        // pcscd died. At connect it is also how pcscd refuses by polkit: it says nothing and hangs up.
        case (.commError, .exchange), (.securityViolation, .exchange):
            .error(.serviceUnavailable)
        case (.commError, .connect), (.securityViolation, .connect):
            .askService
        case (.noAccess, _):
            .error(.accessDenied)
        case (.notTransacted, _), (.commDataLost, _), (.timeout, _), (.waitedTooLong, _), (.notReady, _):
            .askReader
        case (.unresponsiveCard, _), (.unpoweredCard, _), (.unsupportedCard, _):
            .error(.mute)
        case (.insufficientBuffer, _):
            .error(.tooLong)
        default:
            .error(.other("pcscd answered \(hex)"))
        }
    }
}
