// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
import TestSupport
import Testing
import Text

@Suite("BER-TLV", .timeLimit(.minutes(5)))
struct BERTLVTests {
    @Test(
        "an object is decoded and encoded",
        arguments: [
            ("8700", 0x87, ""),
            ("990290 00", 0x99, "9000"),
            ("5F2E01AA", 0x5F2E, "AA"),
            ("7F4902 0600", 0x7F49, "0600"),
            ("5F818001 01", 0x5F8180, nil),
            ("DF812301FF", 0xDF8123, "FF"),
        ] as [(String, UInt32, String?)]
    )
    func object(encoding: String, tag: UInt32, value: String?) throws {
        guard let value else {  // a tag of four bytes
            #expect(throws: Malformed.invalidTag) { try BERTLV(hex(encoding)) }
            return
        }
        let object = try BERTLV(hex(encoding))
        #expect(object.tag == tag)
        #expect(object.value == hex(value))
        #expect(object.encoded == hex(encoding))
    }

    @Test(
        "a length is encoded in the shortest form and decoded",
        arguments: [0, 1, 127, 128, 255, 256, 65_535, 65_536]
    )
    func lengths(count: Int) throws {
        let object = BERTLV(0x53, [UInt8](repeating: 0x5A, count: count))
        let header =
            switch count {
            case ..<128: 2
            case ..<256: 3
            case ..<65_536: 4
            default: 5
            }
        #expect(object.encoded.count == header + count)
        #expect(try BERTLV(object.encoded) == object)
    }

    @Test(
        "bytes that are not one complete object are refused",
        arguments: [
            ("", Malformed.truncated),
            ("87", .truncated),
            ("8702AA", .truncated),
            ("5F", .truncated),
            ("5F81", .truncated),
            ("8781", .truncated),
            ("8782FF", .truncated),
            ("878200", .truncated),
            ("8783FFFFFF00", .truncated),
            ("5F8000", .invalidTag),
            ("5F818100", .invalidTag),
            ("8780AA0000", .invalidLength),
            ("878400000001AA", .invalidLength),
            ("87FF00", .invalidLength),
            ("8701AABB", .leftOver),
            ("8701AA00", .leftOver),
        ]
    )
    func malformed(encoding: String, error: Malformed) {
        #expect(throws: error) { try BERTLV(hex(encoding)) }
    }

    @Test("a length in a longer form than needed is accepted", arguments: ["878101AA", "87820001AA", "8783000001AA"])
    func longForms(encoding: String) throws {
        #expect(try BERTLV(hex(encoding)) == BERTLV(0x87, [0xAA]))
    }

    @Test("a sequence of objects is read, and incomplete bytes at its end are an error")
    func sequence() throws {
        #expect(try BERTLV.sequence(hex("8001AA 8100")) == [BERTLV(0x80, [0xAA]), BERTLV(0x81, [UInt8]())])
        #expect(try BERTLV.sequence([UInt8]()).isEmpty)
        #expect(throws: Malformed.truncated) { try BERTLV.sequence(hex("8001AA 81")) }
    }

    @Test("the children of a constructed object are read")
    func children() throws {
        let inner = [BERTLV(0x06, [4, 0]), BERTLV(0x86, [1, 2, 3])]
        let object = try BERTLV(BERTLV(0x7F49, inner).encoded)
        #expect(object.isConstructed)
        #expect(try object.children == inner)
        #expect(!BERTLV(0x5F20, [UInt8]()).isConstructed)
        #expect(throws: Malformed.truncated) { try BERTLV(0x30, [0x02, 0x05] as [UInt8]).children }
    }

    @Test("100 000 nested objects need no stack")
    func nesting() throws {
        // 30 83 LL LL LL: five bytes for each level.
        var encoding: [UInt8] = []
        let depth = 100_000
        for level in 0..<depth {
            let rest = 5 * (depth - 1 - level)
            encoding += [0x30, 0x83] + [16, 8, 0].map { UInt8(truncatingIfNeeded: rest >> $0) }
        }
        let outer = try BERTLV(encoding)
        #expect(outer.value.count == 5 * (depth - 1))
        #expect(try outer.children.count == 1)
    }

    @Test("random bytes do not trap, and decoded objects are encoded so that they decode again")
    func randomBytes() throws {
        var random = SplitMix64(seed: 0x7816)
        var read = 0
        let times = FullTables.count(20_000)
        for _ in 0..<times {
            let bytes = (0..<Int.random(in: 0...40, using: &random)).map { _ in
                // Small numbers are more frequent, since they are plausible lengths.
                UInt8.random(in: Bool.random(using: &random) ? 0...8 : 0...255, using: &random)
            }
            guard let objects = try? BERTLV.sequence(bytes), !objects.isEmpty else { continue }
            read += 1
            #expect(try BERTLV.sequence(objects.flatMap(\.encoded)) == objects)
        }
        #expect(read > times / 200)
    }
}
