// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Text

/// A return code of libpcsclite. Names and values are those of winscard.h without their prefix.
struct PCSCCode: Error, Hashable, Sendable {
    let value: UInt32

    init(_ value: UInt32) { self.value = value }

    static let success = PCSCCode(0)
    static let cancelled = PCSCCode(0x8010_0002)
    static let invalidHandle = PCSCCode(0x8010_0003)
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
    static let noAccess = PCSCCode(0x8010_0027)
    static let noReadersAvailable = PCSCCode(0x8010_002E)
    static let commDataLost = PCSCCode(0x8010_002F)
    static let unsupportedCard = PCSCCode(0x8010_0065)
    static let unresponsiveCard = PCSCCode(0x8010_0066)
    static let unpoweredCard = PCSCCode(0x8010_0067)
    static let resetCard = PCSCCode(0x8010_0068)
    static let removedCard = PCSCCode(0x8010_0069)
    static let securityViolation = PCSCCode(0x8010_006A)

    /// The code as documents have it: 0x and eight hexadecimal digits.
    var hex: String { "0x" + Hex.encode(value).uppercased() }
}

/// The call that returned a code. The meaning of a code depends on it.
enum PCSCCall: Sendable, Equatable, CaseIterable {
    /// SCardConnect and SCardBeginTransaction.
    case connect
    /// SCardTransmit and SCardControl.
    case exchange
}

/// The meaning of a code, or what must be queried to find it.
enum PCSCMeaning: Sendable, Equatable {
    case error(CardError)
    /// The exchange broke off: `.removed` when the card has left, else `.mute`.
    case askReader
    /// pcscd hung up: `.accessDenied` when the watch is still connected, else `.serviceUnavailable`.
    case askService
}

extension PCSCCode {
    /// Finds the error for a code other than `success`.
    func meaning(in call: PCSCCall) -> PCSCMeaning {
        switch (self, call) {
        case (.resetCard, _):
            .error(.reset)
        // Another program has powered the card down, which ends every channel.
        case (.protocolMismatch, .exchange):
            .error(.reset)
        case (.removedCard, _), (.noSmartCard, _), (.noReadersAvailable, _), (.unknownReader, _),
            (.readerUnavailable, _),
            // pcscd answers "invalid value" for a handle whose reader was removed.
            (.invalidValue, _):
            .error(.removed)
        case (.sharingViolation, _):
            .error(.exclusive)
        case (.noService, _), (.serviceStopped, _), (.invalidHandle, _), (.systemCancelled, _), (.shutdown, _):
            .error(.serviceUnavailable)
        // The socket to pcscd was closed ("comm error": end of file; "security violation": reset by peer). During an
        // exchange pcscd has ended. At connect, pcscd also closes it to refuse access by polkit.
        case (.commError, .exchange), (.securityViolation, .exchange):
            .error(.serviceUnavailable)
        case (.commError, .connect), (.securityViolation, .connect):
            .askService
        case (.cancelled, _):
            .error(.cancelled)
        case (.noMemory, _):
            .error(.noResources)
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
