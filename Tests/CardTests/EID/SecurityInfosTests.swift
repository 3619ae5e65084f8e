// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import EID
import ISO7816
import TestSupport
import Testing
import Text

/// EF.CardAccess of a card with one PACE variant, terminal and chip authentication.
let exampleCardAccess = hex(
    """
    31553012060A04007F0007020204020202010202010D300D060804007F00070202020201023012060A04007F00070202030202020102020129
    301C060904007F000702020302300C060704007F0007010202010D020129
    """
)

/// A PACEInfo with the last two numbers of its object identifier.
private func paceInfo(_ variant: [UInt8], version: UInt8 = 2, parameterID: UInt8? = 13) -> BERTLV {
    var fields = [BERTLV(0x06, OID.pace + variant), BERTLV(0x02, [version])]
    if let parameterID { fields.append(BERTLV(0x02, [parameterID])) }
    return BERTLV(0x30, fields)
}

@Suite("SecurityInfos", .timeLimit(.minutes(5)))
struct SecurityInfosTests {
    @Test("the infos of a card are read")
    func example() throws {
        let infos = try SecurityInfos(exampleCardAccess)
        #expect(infos.pace.map(\.protocolID) == [OID.pace + [2, 2]])
        #expect(infos.pace.map(\.version) == [2])
        #expect(infos.pace.map(\.parameterID) == [13])
        #expect(infos.chipAuthentication.map(\.protocolID) == [OID.chipAuthentication + [2, 2]])
        #expect(infos.chipAuthentication.map(\.keyID) == [0x29])
        #expect(infos.chipAuthenticationDomainParameters.map(\.standardized) == [13])
        #expect(infos.chipAuthenticationDomainParameters.map(\.keyID) == [0x29])
        #expect(infos.restrictedIdentification.isEmpty)
        #expect(infos.mobileEIDType == nil)
        let access = try #require(try CardAccess(exampleCardAccess))
        #expect(access.pace == PACEParameters(curve: .brainpoolP256r1, cipher: .aes128))
        #expect(access.bytes == exampleCardAccess)
    }

    @Test("rare infos are read")
    func others() throws {
        let infos = try SecurityInfos(
            BERTLV(
                0x31,
                [
                    BERTLV(
                        0x30,
                        [
                            BERTLV(0x06, OID.restrictedIdentification + [2, 3]),
                            BERTLV(0x30, [BERTLV(0x02, [1]), BERTLV(0x02, [2]), BERTLV(0x01, [0xFF])]),
                        ]
                    ),
                    BERTLV(0x30, [BERTLV(0x06, OID.mobileEIDType + [2]), BERTLV(0x02, [1])]),
                ]
            ).encoded
        )
        let restricted = try #require(infos.restrictedIdentification.first)
        #expect(restricted.keyID == 2)
        #expect(restricted.isAuthorizedOnly)
        #expect(infos.mobileEIDType == .endorsedSecureElement)
    }

    @Test("each supported variant of PACE is selected, with each curve", arguments: Curve.allCases, AES.allCases)
    func variants(curve: Curve, cipher: AES) throws {
        let parameters = PACEParameters(curve: curve, cipher: cipher)
        let info = paceInfo(Array(parameters.protocolID.dropFirst(OID.pace.count)), parameterID: curve.rawValue)
        #expect(try CardAccess(BERTLV(0x31, [info]).encoded)?.pace == parameters)
    }

    @Test(
        "a card without a supported variant of PACE is refused",
        arguments: [
            ("Triple DES", paceInfo([2, 1])), ("Diffie-Hellman", paceInfo([1, 2])),
            ("integrated mapping", paceInfo([4, 2])),
            ("integrated mapping, Diffie-Hellman", paceInfo([3, 2])),
            ("chip authentication mapping", paceInfo([6, 2])),
            ("unknown cipher", paceInfo([2, 5])), ("version 1", paceInfo([2, 2], version: 1)),
            ("no parameter id", paceInfo([2, 2], parameterID: nil)),
            ("1024-bit MODP group", paceInfo([2, 2], parameterID: 0)),
            ("reserved parameter id", paceInfo([2, 2], parameterID: 19)), ("no cipher", paceInfo([2])),
            ("negative version", paceInfo([2, 2], version: 0x82)), ("longer identifier", paceInfo([2, 2, 2])),
        ]
    )
    func unsupported(name: String, info: BERTLV) throws {
        #expect(try CardAccess(BERTLV(0x31, [info]).encoded) == nil)
        // The unsupported variant does not hide a supported one.
        let good = paceInfo([2, 4], parameterID: 16)
        let expected = PACEParameters(curve: .brainpoolP384r1, cipher: .aes256)
        #expect(try CardAccess(BERTLV(0x31, [info, good]).encoded)?.pace == expected)
        #expect(try CardAccess(BERTLV(0x31, [good, info]).encoded)?.pace == expected)
    }

    @Test("the first of several variants is selected, and a repeated one counts once")
    func order() throws {
        let set = BERTLV(0x31, [paceInfo([2, 3]), paceInfo([2, 2]), paceInfo([2, 3]), paceInfo([2, 2])])
        let access = try #require(try CardAccess(set.encoded))
        #expect(access.pace.cipher == .aes192)
        #expect(access.securityInfos.pace.count == 2)
    }

    @Test("unknown and invalid infos are ignored")
    func skipped() throws {
        let odd: [BERTLV] = [
            BERTLV(0x30, [BERTLV]()),
            BERTLV(0x30, [BERTLV(0x02, [1]), BERTLV(0x02, [1])]),
            BERTLV(0x30, [BERTLV(0x06, OID.pace + [2, 2])]),
            BERTLV(0x30, [BERTLV(0x06, OID.pace + [2, 2]), BERTLV(0x04, [2]), BERTLV(0x02, [13])]),
            BERTLV(0x30, [BERTLV(0x06, OID.pace + [2, 2]), BERTLV(0x02, [2]), BERTLV(0x04, [13])]),
            BERTLV(
                0x30,
                [BERTLV(0x06, OID.pace + [2, 2]), BERTLV(0x02, [UInt8](repeating: 1, count: 5)), BERTLV(0x02, [13])]
            ),
            BERTLV(0x30, [BERTLV(0x06, [UInt8]()), BERTLV(0x02, [2])]),
            BERTLV(0x30, [0x06, 0x7F] as [UInt8]),
            BERTLV(0x04, [1, 2, 3]),
            BERTLV(0x30, [BERTLV(0x06, [0x2A, 0x03]), BERTLV(0x30, [UInt8]())]),
        ]
        let infos = try SecurityInfos(BERTLV(0x31, odd + [paceInfo([2, 2])]).encoded)
        #expect(infos.pace.count == 1)
        #expect(try CardAccess(BERTLV(0x31, odd).encoded) == nil)
    }

    @Test("a file with a wrong outer structure is refused; bytes behind the structure are not")
    func outer() throws {
        #expect(throws: Malformed.truncated) { try SecurityInfos([UInt8]()) }
        #expect(throws: Malformed.invalidTag) { try SecurityInfos([0x30] + exampleCardAccess.dropFirst()) }
        #expect(throws: Malformed.truncated) { try SecurityInfos(exampleCardAccess.dropLast()) }
        for padding in paddings {
            let padded = try #require(try CardAccess(exampleCardAccess + padding))
            #expect(try padded == CardAccess(exampleCardAccess), "\(padding)")
            #expect(padded.bytes == exampleCardAccess)
        }
    }

    /// What cards and their tools put behind the content of a file.
    private let paddings: [[UInt8]] = [
        [0], [0, 0, 0], [0xFF], [0xFF, 0xFF, 0xFF], [0, 1], [0x20, 0x20], [0x80, 0, 0], [0x90, 0x00],
        [0x31, 0x03, 0x30],
        exampleCardAccess, [UInt8](repeating: 0xA5, count: 300), [UInt8](repeating: 0xFF, count: 4096),
    ]

    @Test("the number of infos is bounded")
    func many() throws {
        let infos = (0..<5_000).map { index in
            BERTLV(
                0x30,
                [
                    BERTLV(0x06, OID.pace + [2, 2]), BERTLV(0x02, [2]),
                    BERTLV(0x02, [0x01, UInt8(index >> 8), UInt8(index & 0xFF)]),
                ]
            )
        }
        #expect(try SecurityInfos(BERTLV(0x31, infos).encoded).pace.count <= SecurityInfos.maximumCount)
    }

    @Test("damaged files do not trap")
    func fuzz() throws {
        var random = SplitMix64(seed: 0x1C)
        var stillCards = 0
        let times = FullTables.count(20_000)
        for _ in 0..<times {
            var bytes = exampleCardAccess
            for _ in 0..<Int.random(in: 1...4, using: &random) {
                switch Int.random(in: 0...2, using: &random) {
                case 0:
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: Int.random(in: 0..<bytes.count, using: &random))
                default:
                    bytes.insert(
                        UInt8.random(in: 0...255, using: &random),
                        at: Int.random(in: 0...bytes.count, using: &random)
                    )
                }
            }
            if case .some(.some) = try? CardAccess(bytes) { stillCards += 1 }
        }
        #expect((1..<times).contains(stillCards))
    }

    @Test("EF.DIR names the applications")
    func directory() throws {
        let content = hex("610B4F09E80704007F0007030261094F07A0000002471001610C4F0AA000000167455349474E")
        #expect(
            try ApplicationDirectory(content).applicationIDs == [
                ApplicationID.eid, ApplicationID.travelDocument, hex("A000000167455349474E"),
            ]
        )
        for padding in paddings {
            #expect(try ApplicationDirectory(content + padding).applicationIDs.count == 3, "\(padding)")
        }
        #expect(try ApplicationDirectory(hex("4F02AABB 5000 610550034F01FF")).applicationIDs == [[0xAA, 0xBB]])
        #expect(try ApplicationDirectory([]).applicationIDs.isEmpty)
        #expect(throws: Malformed.truncated) { try ApplicationDirectory(content.dropLast()) }
        #expect(throws: Malformed.truncated) { try ApplicationDirectory(hex("61034F09E8")) }
    }

    @Test(
        "the answer to MSE:Set AT has the remaining tries",
        arguments: [
            (0x9000, PINStatus(retryCounter: 3)), (0x63C2, PINStatus(retryCounter: 2)),
            (0x63C1, PINStatus(retryCounter: 1)),
            (0x63C0, PINStatus(retryCounter: 0)), (0x6283, PINStatus(retryCounter: 0, deactivated: true)),
            (0x63C3, nil), (0x6300, nil), (0x6282, nil), (0x6983, nil), (0x6A80, nil), (0x6A88, nil), (0x6F00, nil),
            (0x0000, nil),
        ] as [(UInt16, PINStatus?)]
    )
    func pinStatus(word: UInt16, status: PINStatus?) {
        #expect(PINStatus(StatusWord(word)) == status)
    }
}
