// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import Testing

@testable import ReadersPCSC

@Suite("libpcsclite return codes", .timeLimit(.minutes(5)))
struct PCSCCodeTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let code: UInt32
        let connect: PCSCMeaning
        let exchange: PCSCMeaning
        let testDescription: String

        init(_ code: UInt32, _ name: String, _ both: PCSCMeaning) { self.init(code, name, both, both) }
        init(_ code: UInt32, _ name: String, _ connect: PCSCMeaning, _ exchange: PCSCMeaning) {
            (self.code, self.connect, self.exchange, testDescription) = (code, connect, exchange, name)
        }
    }

    static let table: [Row] = [
        Row(0x8010_0003, "INVALID_HANDLE", .error(.serviceUnavailable)),
        Row(0x8010_0008, "INSUFFICIENT_BUFFER", .error(.tooLong)),
        Row(0x8010_0009, "UNKNOWN_READER", .error(.removed)),
        Row(0x8010_000A, "TIMEOUT", .askReader),
        Row(0x8010_000B, "SHARING_VIOLATION", .error(.exclusive)),
        Row(0x8010_000C, "NO_SMARTCARD", .error(.removed)),
        Row(0x8010_000F, "PROTO_MISMATCH", .error(.other("pcscd answered 0x8010000F")), .error(.reset)),
        Row(0x8010_0011, "INVALID_VALUE", .error(.removed)),
        Row(0x8010_0013, "COMM_ERROR", .askService, .error(.serviceUnavailable)),
        Row(0x8010_0016, "NOT_TRANSACTED", .askReader),
        Row(0x8010_0017, "READER_UNAVAILABLE", .error(.removed)),
        Row(0x8010_001D, "NO_SERVICE", .error(.serviceUnavailable)),
        Row(0x8010_001E, "SERVICE_STOPPED", .error(.serviceUnavailable)),
        Row(0x8010_0027, "NO_ACCESS", .error(.accessDenied)),
        Row(0x8010_002E, "NO_READERS_AVAILABLE", .error(.removed)),
        Row(0x8010_002F, "COMM_DATA_LOST", .askReader),
        Row(0x8010_0066, "UNRESPONSIVE_CARD", .error(.mute)),
        Row(0x8010_0067, "UNPOWERED_CARD", .error(.mute)),
        Row(0x8010_0068, "RESET_CARD", .error(.reset)),
        Row(0x8010_0069, "REMOVED_CARD", .error(.removed)),
        Row(0x8010_006A, "SECURITY_VIOLATION", .askService, .error(.serviceUnavailable)),
        Row(0x0000_0001, "a code that does not exist", .error(.other("pcscd answered 0x00000001"))),
    ]

    @Test("each code is mapped to one meaning per call", arguments: table)
    func verdict(row: Row) {
        #expect(PCSCCode(row.code).meaning(in: .connect) == row.connect)
        #expect(PCSCCode(row.code).meaning(in: .exchange) == row.exchange)
    }

    @Test(
        "the reason why pcscd is unreachable is derived from the code and errno",
        arguments: [
            (PCSCCode.noService, Int32(2) /* ENOENT */, PCSCFault.noSocket),
            (.noService, 20 /* ENOTDIR */, .noSocket),
            (.noService, 13 /* EACCES */, .denied),
            (.noService, 111 /* ECONNREFUSED */, .refused),
            (.noService, 0, .hungUp),
            (.securityViolation, 0, .denied),
            (.serviceStopped, 0, .versionMismatch),
            (.commError, 0, .hungUp),
            (.noMemory, 0, .other(.noMemory)),
        ]
    )
    func fault(code: PCSCCode, errno: Int32, expected: PCSCFault) {
        #expect(PCSCFault(code, errno: errno) == expected)
    }
}
