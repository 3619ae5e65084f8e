// SPDX-License-Identifier: GPL-3.0-or-later
import Testing
import Text

@testable import Antelope

@Suite("Packing by an ABI", .timeLimit(.minutes(5)))
struct PackingTests {
    /// The ABIs of abieos by their names.
    private static func abis(_ file: JSON) throws -> [String: ABI] {
        var abis: [String: ABI] = [:]
        for member in try #require(file["abis"]?.members) { abis[member.key] = try ABI(member.value) }
        for member in try #require(file["packedABIs"]?.members) {
            abis[member.key] = try ABI(packed: try hex(member.value))
        }
        return abis
    }

    /// Compares without the differences of form: digits of hexadecimal numbers, decimals of times, and of floats.
    private static func same(_ left: JSON, _ right: JSON) -> Bool {
        switch (left, right) {
        case (.number(let left), .number(let right)): return Double(left) == Double(right)
        case (.string(let left), .string(let right)):
            if let (left, right) = try? (AntelopeTime(left), AntelopeTime(right)) {
                return left.microseconds / 1000 == right.microseconds / 1000
            }
            return left == right || (Hex.decode(left) != nil && left.lowercased() == right.lowercased())
        case (.array(let left), .array(let right)):
            return left.count == right.count && zip(left, right).allSatisfy { same($0, $1) }
        case (.object(let left), .object(let right)):
            return left.map(\.key) == right.map(\.key) && zip(left, right).allSatisfy { same($0.value, $1.value) }
        default: return left == right
        }
    }

    @Test("values are packed and unpacked as abieos does")
    func accepted() throws {
        let file = try vectors("antelope-abieos.json")
        let abis = try Self.abis(file)
        let values = try file.list("accepted")
        #expect(values.count == 202)
        for value in values {
            let name = try value.text("abi")
            let abi = try #require(abis[name])
            let type = try value.text("type")
            let packed = try hex(value["hex"])
            let (json, result) = (try #require(value["json"]), try #require(value["result"]))
            // abieos drops the dots at the end of a name. A wallet takes no second spelling of an account.
            if json.string == "..ab.cd.ef.." {
                #expect(throws: AntelopeError.self) { try abi.pack(json, as: type) }
            } else {
                #expect(try abi.pack(json, as: type) == packed, "\(type) \(json.bytes)")
            }
            let unpacked = try abi.unpack(packed, as: type)
            #expect(Self.same(unpacked, result), "\(type): \(String(decoding: unpacked.bytes, as: UTF8.self))")
        }
    }

    @Test("values that abieos refuses are refused")
    func refused() throws {
        let file = try vectors("antelope-abieos.json")
        let abis = try Self.abis(file)
        let values = try file.list("refused")
        #expect(values.count == 71)
        for value in values {
            let name = try value.text("abi")
            let abi = try #require(abis[name])
            let type = try value.text("type")
            let json = try #require(value["json"])
            #expect(throws: AntelopeError.self, "\(type) \(String(decoding: value.bytes, as: UTF8.self))") {
                try abi.pack(json, as: type)
            }
        }
    }

    /// An ABI with one action `a` of the type `t`.
    private static func abi(_ members: String) throws -> ABI {
        try ABI(try JSON(#"{"version":"eosio::abi/1.1",\#(members)}"#.utf8))
    }

    private static func code() throws -> ABI {
        try abi(
            #""structs":[{"name":"pay","base":"head","fields":[{"name":"to","type":"name"},{"name":"note","type":"string?"},{"name":"more","type":"uint8$"}]},{"name":"head","base":"","fields":[{"name":"id","type":"number"}]}],"#
                + #""types":[{"new_type_name":"number","type":"uint16"}],"actions":[{"name":"pay","type":"pay"}]"#
        )
    }

    @Test("a struct has the fields of its base first, and needs all but extensions at its end")
    func structure() throws {
        let abi = try Self.code()
        #expect(try abi.type(of: AccountName("pay")) == "pay")
        #expect(try abi.type(of: AccountName("other")) == nil)
        let short = try JSON(#"{"note":null,"to":"bob","id":258}"#.utf8)
        let packed = try abi.pack(short, as: "pay")
        #expect(packed == [2, 1] + [0, 0, 0, 0, 0, 0, 0x0E, 0x3D] + [0])
        #expect(try abi.unpack(packed, as: "pay") == short)
        #expect(
            try abi.pack(try JSON(#"{"note":"x","to":"bob","id":258,"more":9}"#.utf8), as: "pay").suffix(4) == [
                1, 1, 0x78, 9,
            ]
        )
    }

    @Test(
        "an object that does not fit its type is refused with the place",
        arguments: [
            (#"{"to":"bob","id":1}"#, "the field 'note' is missing"),
            (#"{"note":null,"to":"bob","id":1,"memo":"x"}"#, "there is no field 'memo'"),
            (#"{"note":null,"to":"bob","id":1,"id":2}"#, "the field 'id' occurs twice"),
            (#"{"note":null,"to":"bob","id":65536}"#, "id: '65536' is not a whole number from 0 to 65535"),
            (#"{"note":7,"to":"bob","id":1}"#, "note: expected a string"),
            (#"[1,"bob",null]"#, "expected an object"),
        ]
    )
    func misfit(json: String, words: String) throws {
        let abi = try Self.code()
        #expect(throws: AntelopeError(words)) { try abi.pack(try JSON(json.utf8), as: "pay") }
    }

    @Test(
        "bytes that do not fit the type are refused",
        arguments: [
            "", "02", "0201000000000000000E3D", "02010000000000000E3D02", "02010000000000000E3D000909",
            "0201000000000000000E3D01FFFFFFFF0F",
        ]
    )
    func badBytes(digits: String) throws {
        let abi = try Self.code()
        let bytes = try #require(Hex.decode(digits))
        #expect(throws: AntelopeError.self) { try abi.unpack(bytes, as: "pay") }
    }

    @Test(
        "an ABI that is recursive, contradictory or malformed is refused",
        arguments: [
            #""types":[{"new_type_name":"a","type":"a[]"},{"new_type_name":"a","type":"int8"}]"#,
            #""types":[{"new_type_name":"name","type":"int8"}]"#,
            #""types":[{"new_type_name":"","type":"int8"}]"#,
            #""types":7"#, #""types":[7]"#, #""types":[{"new_type_name":7,"type":"int8"}]"#,
            #""structs":[{"name":"a","base":"b","fields":[]},{"name":"b","base":"a","fields":[]}]"#,
            #""structs":[{"name":"a","base":"int8","fields":[]}]"#,
            #""structs":[{"name":"a","base":"","fields":[]},{"name":"a","base":"","fields":[]}]"#,
            #""variants":[{"name":"v","types":[]}]"#,
            #""actions":[{"name":"Bad","type":"int8"}]"#,
            #""actions":[{"name":"a","type":"int8"},{"name":"a","type":"int8"}]"#,
        ]
    )
    func badABI(members: String) { #expect(throws: AntelopeError.self) { try Self.abi(members) } }

    @Test(
        "a type that is unknown, recursive or nested too deeply is an error where it is used",
        arguments: [
            #""types":[{"new_type_name":"t","type":"b"},{"new_type_name":"b","type":"t"}]"#,
            #""types":[{"new_type_name":"t","type":"t[]"}]"#, #""types":[{"new_type_name":"t","type":"missing"}]"#,
            #""types":[{"new_type_name":"t","type":"t?"}]"#, #""types":[{"new_type_name":"t","type":"t$"}]"#,
            #""structs":[{"name":"t","base":"","fields":[{"name":"x","type":"y"}]}]"#,
            #""variants":[{"name":"t","types":["t"]}]"#,
            #""types":[{"new_type_name":"t","type":"int8"# + String(repeating: "[]", count: 64) + #""}]"#,
        ]
    )
    func badType(members: String) throws {
        let abi = try Self.abi(members)
        let bytes = [UInt8](repeating: 1, count: 100)
        #expect(throws: AntelopeError.self) { try abi.unpack(bytes, as: "t") }
        let deep = (0..<64).reduce(JSON.number("1")) { inner, _ in .array([inner]) }
        #expect(throws: AntelopeError.self) { try abi.pack(deep, as: "t") }
        #expect(throws: AntelopeError.self) { try abi.pack(.number("1"), as: "t") }
        #expect(try abi.pack(.number("1"), as: "uint8") == [1])
    }

    @Test("an ABI of another version, and one with too many entries, is refused")
    func measures() throws {
        #expect(throws: AntelopeError.self) { try ABI(try JSON(#"{"version":"eosio::abi/2.0"}"#.utf8)) }
        let many = (0...10_000).map { #"{"new_type_name":"t\#($0)","type":"int8"}"# }.joined(separator: ",")
        #expect(throws: AntelopeError.self) { try Self.abi(#""types":[\#(many)]"#) }
        #expect(throws: AntelopeError.self) { try ABI(packed: [UInt8](repeating: 0, count: ABI.maximumCount + 1)) }
    }

    @Test("a struct inside of itself, and one that doubles 31 times, end with an error")
    func bombs() throws {
        let loop = try Self.abi(#""structs":[{"name":"a","base":"","fields":[{"name":"x","type":"a"}]}]"#)
        #expect(throws: AntelopeError.self) { try loop.unpack([], as: "a") }
        let levels = (0..<31).map {
            #"{"name":"s\#($0)","base":"","fields":[{"name":"x","type":"s\#($0 + 1)"},{"name":"y","type":"s\#($0 + 1)"}]}"#
        }
        let last = #"{"name":"s31","base":"","fields":[]}"#
        let bomb = try Self.abi(#""structs":[\#((levels + [last]).joined(separator: ","))]"#)
        #expect(throws: AntelopeError("the value is too large")) {
            do throws(AntelopeError) {
                _ = try bomb.unpack([], as: "s0")
            } catch {
                throw AntelopeError(String(error.text.suffix(22)))
            }
        }
    }

    @Test("an array with a count of four thousand million empty structs ends with an error")
    func emptyArray() throws {
        let abi = try Self.abi(#""structs":[{"name":"e","base":"","fields":[]}]"#)
        #expect(throws: AntelopeError.self) { try abi.unpack([0xFF, 0xFF, 0xFF, 0xFF, 0x0F], as: "e[]") }
        #expect(throws: AntelopeError.self) { try abi.unpack([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], as: "e[]") }
    }

    @Test("a value of more than 64 KiB is refused")
    func large() throws {
        let abi = try Self.abi(#""types":[]"#)
        let text = JSON.array([String](repeating: String(repeating: "x", count: 40_000), count: 3).map { .string($0) })
        #expect(throws: AntelopeError("the value is too large").self) {
            do throws(AntelopeError) { _ = try abi.pack(text, as: "string[]") } catch {
                throw AntelopeError(String(error.text.suffix(22)))
            }
        }
    }
}
