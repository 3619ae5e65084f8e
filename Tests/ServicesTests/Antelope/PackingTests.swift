// SPDX-License-Identifier: GPL-3.0-or-later
import TestSupport
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
        let file = try vectorFile("antelope-abieos.json")
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
                #expect(throws: Malformed.self) { try abi.pack(json, as: type) }
            } else {
                #expect(try abi.pack(json, as: type) == packed, "\(type) \(json.bytes)")
            }
            let unpacked = try abi.unpack(packed, as: type)
            #expect(Self.same(unpacked, result), "\(type): \(String(decoding: unpacked.bytes, as: UTF8.self))")
        }
    }

    @Test("values that abieos refuses are refused")
    func refused() throws {
        let file = try vectorFile("antelope-abieos.json")
        let abis = try Self.abis(file)
        let values = try file.list("refused")
        #expect(values.count == 71)
        for value in values {
            let name = try value.text("abi")
            let abi = try #require(abis[name])
            let type = try value.text("type")
            let json = try #require(value["json"])
            #expect(throws: Malformed.self, "\(type) \(String(decoding: value.bytes, as: UTF8.self))") {
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
        #expect(throws: Malformed(words)) { try abi.pack(try JSON(json.utf8), as: "pay") }
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
        #expect(throws: Malformed.self) { try abi.unpack(bytes, as: "pay") }
    }

    @Test(
        "an ABI whose lists are no lists is refused",
        arguments: [#""types":7"#, #""structs":{}"#, #""actions":"a""#]
    )
    func badABI(members: String) { #expect(throws: Malformed.self) { try Self.abi(members) } }

    @Test(
        "a fault in an ABI is an error only where the type is used",
        arguments: [
            (#""types":[{"new_type_name":"t","type":"t[]"},{"new_type_name":"t","type":"int8"}]"#, "t"),
            (#""types":[{"new_type_name":"name","type":"int8"}]"#, "name"),
            (#""types":[{"new_type_name":"","type":"int8"}]"#, ""), (#""types":[7]"#, ""),
            (#""types":[{"new_type_name":7,"type":"int8"}]"#, ""), (#""types":[{"new_type_name":"t"}]"#, "t"),
            (#""structs":[{"name":"t","base":"b","fields":[]},{"name":"b","base":"t","fields":[]}]"#, "t"),
            (#""structs":[{"name":"t","base":"int8","fields":[]}]"#, "t"),
            (#""structs":[{"name":"t","base":"b","fields":[]}],"types":[{"new_type_name":"b","type":"b"}]"#, "t"),
            (#""structs":[{"name":"t","base":"","fields":[]},{"name":"t","base":"","fields":[]}]"#, "t"),
            (#""structs":[{"name":"t","base":"","fields":[]}],"types":[{"new_type_name":"t","type":"int8"}]"#, "t"),
            (#""structs":[{"name":"t","base":"","fields":[{"type":"int8"}]}]"#, "t"),
            (#""structs":[{"name":"t","base":"","fields":[{"name":"x"}]}]"#, "t"),
            (#""structs":[{"name":"t","base":"","fields":[{"name":"x","type":"uint8$[]"}]}]"#, "t"),
            (#""types":[{"new_type_name":"t","type":"uint8$"}]"#, "t"),
            (#""variants":[{"name":"t","types":[]}]"#, "t"), (#""actions":[{"name":"Bad","type":"t"}]"#, "t"),
        ]
    )
    func fault(members: String, type: String) throws {
        let good = #""ok","base":"","fields":[{"name":"x","type":"uint8"}]}"#
        let isStruct = members.contains(#""structs":["#)
        let whole =
            isStruct
            ? members.replacing(#""structs":["#, with: #""structs":[{"name":\#(good),"#)
            : members + #","structs":[{"name":\#(good)]"#
        let abi = try Self.abi(whole)
        #expect(try abi.pack(try JSON(#"{"x":5}"#.utf8), as: "ok") == [5])
        for value in [#"{}"#, #"{"x":1}"#, #"{"":1}"#, "[]", #"["int8",1]"#] {
            #expect(throws: Malformed.self, "\(value)") { try abi.pack(JSON(value.utf8), as: type) }
        }
        #expect(throws: Malformed.self) { try abi.pack(.number("1"), as: type) }
        #expect(throws: Malformed.self) { try abi.unpack([UInt8](repeating: 0, count: 8), as: type) }
    }

    @Test("an action that an ABI has twice is refused, and the others work")
    func repeatedAction() throws {
        let abi = try Self.abi(
            #""actions":[{"name":"a","type":"int8"},{"name":"a","type":"int16"},{"name":"b","type":"int8"}]"#
        )
        #expect(throws: Malformed("the ABI has the action 'a' twice")) { try abi.type(of: AccountName("a")) }
        #expect(try abi.type(of: AccountName("b")) == "int8")
    }

    @Test("a packed ABI with a name that is not UTF-8 works for the actions that do not use the type")
    func badName() throws {
        var writer = PackWriter()
        func text(_ bytes: [UInt8]) { writer.counted(bytes) }
        text(Array("eosio::abi/1.1".utf8))
        writer.varuint(1)
        text([0xFF])
        text(Array("int8".utf8))
        writer.varuint(2)
        for (name, field) in [(Array("a".utf8), Array("x".utf8)), (Array("b".utf8), [0xC0])] {
            text(name)
            text([])
            writer.varuint(1)
            text(field)
            text(field == [0xC0] ? [0xFE] : Array("uint8".utf8))
        }
        for _ in 0..<6 { writer.varuint(0) }
        let abi = try ABI(packed: writer.bytes)
        #expect(try abi.pack(try JSON(#"{"x":5}"#.utf8), as: "a") == [5])
        #expect(throws: Malformed.self) { try abi.pack(try JSON(#"{"":5}"#.utf8), as: "b") }
    }

    @Test("a built-in type comes before a struct or a variant with its name, as at nodes")
    func redefined() throws {
        let abi = try Self.abi(
            #""structs":[{"name":"extended_asset","base":"","fields":[{"name":"quantity","type":"asset"},{"name":"contract","type":"n"}]},"#
                + #"{"name":"more","base":"extended_asset","fields":[{"name":"x","type":"uint8"}]},"#
                + #"{"name":"name","base":"","fields":[]}],"types":[{"new_type_name":"n","type":"name"}],"#
                + #""variants":[{"name":"asset","types":["int8"]}]"#
        )
        let value = #""quantity":"1.0000 EOS","contract":"eosio.token""#
        let packed = try hex(.string("102700000000000004454f530000000000a6823403ea3055"))
        #expect(try abi.pack(try JSON("{\(value)}".utf8), as: "extended_asset") == packed)
        // The base of a struct is always a struct.
        #expect(try abi.pack(try JSON("{\(value),\"x\":7}".utf8), as: "more") == packed + [7])
        #expect(try abi.pack(.string(""), as: "name") == [UInt8](repeating: 0, count: 8))
    }

    @Test("a base may be an alias of a struct")
    func aliasBase() throws {
        let abi = try Self.abi(
            #""structs":[{"name":"a","base":"","fields":[{"name":"x","type":"uint8"}]},{"name":"b","base":"c","fields":[{"name":"y","type":"uint8"}]}],"types":[{"new_type_name":"c","type":"d"},{"new_type_name":"d","type":"a"}]"#
        )
        #expect(try abi.pack(try JSON(#"{"y":2,"x":1}"#.utf8), as: "b") == [1, 2])
    }

    @Test(
        "arrays of a fixed size, bit sets and their combinations are packed",
        arguments: [
            ("int32[4]", "[1,2,3,4]", "01000000020000000300000004000000"), ("uint8[3][]", "[[1,2,3]]", "01010203"),
            ("uint8[][2]", "[[],[7]]", "000107"), ("uint8?[2]", "[null,7]", "000107"), ("uint8[2]?", "[1,2]", "010102"),
            ("uint8[2]?", "null", "00"), ("uint8[0]", "[]", ""), ("uint8[]?", "[9]", "010109"),
            ("uint8?[]", "[9,null]", "02010900"), ("pair[2]", #"[{"x":1},{"x":2}]"#, "0102"),
            ("uint8[][]", "[[1]]", "010101"),
            ("bitset", #""""#, "00"), ("bitset", #""110001011""#, "098b01"), ("bitset[]", #"["1","0"]"#, "0201010100"),
            ("bitset?", "null", "00"),
        ]
    )
    func fixed(type: String, json: String, digits: String) throws {
        let abi = try Self.abi(#""structs":[{"name":"pair","base":"","fields":[{"name":"x","type":"uint8"}]}]"#)
        let value = try JSON("[\(json)]".utf8).array?.first ?? .null
        #expect(try abi.pack(value, as: type) == Hex.decode(digits))
        #expect(try abi.unpack(Hex.decode(digits) ?? [], as: type) == value)
    }

    @Test(
        "an array of a fixed size with another number of elements, and a bit set with other characters, is refused",
        arguments: [
            ("int32[4]", "[1,2,3]"), ("int32[4]", "[1,2,3,4,5]"), ("int32[4]", "[]"), ("int32[4]", "7"),
            ("uint8[0]", "[1]"), ("uint8[4294967295]", "[1]"), ("uint8[4294967296]", "[1]"), ("uint8[-1]", "[]"),
            ("uint8[ 1]", "[1]"), ("uint8[1", "[1]"), ("uint8[x]", "[1]"), ("bitset", #""012""#), ("bitset", "101"),
            ("bitset", #""0b1""#),
        ]
    )
    func notFixed(type: String, json: String) throws {
        let abi = try Self.abi(#""types":[]"#)
        #expect(throws: Malformed.self) { try abi.pack(JSON("[\(json)]".utf8).array?.first ?? .null, as: type) }
    }

    private static func extensions() throws -> ABI {
        func structure(_ name: String, _ base: String, _ fields: [(String, String)]) -> String {
            let fields = fields.map { #"{"name":"\#($0.0)","type":"\#($0.1)"}"# }.joined(separator: ",")
            return #"{"name":"\#(name)","base":"\#(base)","fields":[\#(fields)]}"#
        }
        let structures = [
            structure("e", "", [("x", "uint8"), ("y", "uint8$")]),
            structure("list", "", [("q", "e[]")]), structure("fixed", "", [("q", "e[2]")]),
            structure("first", "", [("e", "e"), ("z", "uint8")]), structure("last", "", [("z", "uint8"), ("e", "e")]),
            structure("derived", "e", [("z", "uint8")]), structure("same", "e", []),
            structure("more", "e", [("z", "uint8$")]),
            structure("choice", "", [("v", "v"), ("z", "string")]), structure("end", "", [("v", "v")]),
            structure("maybe", "", [("o", "e?"), ("z", "uint8[]")]),
            structure("nested", "", [("e", "e$"), ("z", "uint8$")]),
            structure("none", "", [("e", "e"), ("z", "uint8[0]")]),
            structure("deep", "", [("l", "list"), ("z", "int8?")]),
            structure("twice", "same", [("x", "uint8")]),
        ]
        return try abi(
            #""structs":[\#(structures.joined(separator: ","))],"variants":[{"name":"v","types":["int8","e"]}]"#
        )
    }

    @Test(
        "a binary extension may be left out where nothing follows",
        arguments: [
            ("e", #"{"x":1}"#, [1]), ("e", #"{"x":1,"y":2}"#, [1, 2]), ("list", #"{"q":[{"x":1}]}"#, [1, 1]),
            ("list", #"{"q":[{"x":1,"y":2},{"x":3}]}"#, [2, 1, 2, 3]), ("last", #"{"z":9,"e":{"x":1}}"#, [9, 1]),
            ("first", #"{"z":9,"e":{"x":1,"y":2}}"#, [1, 2, 9]), ("same", #"{"x":1}"#, [1]), ("more", #"{"x":1}"#, [1]),
            ("more", #"{"x":1,"y":2}"#, [1, 2]), ("end", #"{"v":["e",{"x":1}]}"#, [1, 1]), ("nested", "{}", []),
            ("nested", #"{"e":{"x":1}}"#, [1]), ("none", #"{"e":{"x":1},"z":[]}"#, [1]),
            ("e[]", #"[{"x":1}]"#, [1, 1]),
            ("e?", #"{"x":1}"#, [1, 1]), ("twice", #"{"x":1,"y":2}"#, [1, 2, 1]),
        ] as [(String, String, [UInt8])]
    )
    func omitted(type: String, json: String, packed: [UInt8]) throws {
        let abi = try Self.extensions()
        let value = try JSON("[\(json)]".utf8).array?.first ?? .null
        #expect(try abi.pack(value, as: type) == packed)
        #expect(try abi.unpack(packed, as: type) == value)
    }

    @Test(
        "a binary extension that is left out although data follow is refused with its place",
        arguments: [
            ("list", #"{"q":[{"x":1},{"x":2,"y":3}]}"#, "q: [0]: y"),
            ("list", #"{"q":[{"x":1},{"x":2}]}"#, "q: [0]: y"),
            ("fixed", #"{"q":[{"x":1},{"x":2}]}"#, "q: [0]: y"), ("first", #"{"z":9,"e":{"x":1}}"#, "e: y"),
            ("derived", #"{"x":1,"z":2}"#, "y"), ("more", #"{"x":1,"z":2}"#, "y"),
            ("choice", #"{"v":["e",{"x":1}],"z":""}"#, "v: y"), ("maybe", #"{"o":{"x":1},"z":[]}"#, "o: y"),
            ("nested", #"{"z":2}"#, "e"), ("nested", #"{"e":{"x":1},"z":2}"#, "e: y"),
            ("e[]", #"[{"x":1},{"x":1}]"#, "[0]: y"),
            ("deep", #"{"l":{"q":[{"x":1}]},"z":null}"#, "l: q: [0]: y"), ("twice", #"{"x":1}"#, "y"),
        ]
    )
    func omittedTooEarly(type: String, json: String, place: String) throws {
        let abi = try Self.extensions()
        #expect(throws: Malformed("\(place): only fields at the end of the data may be left out")) {
            try abi.pack(JSON(json.utf8), as: type)
        }
    }

    @Test(
        "a value that would be rounded to another one, or cut, is refused",
        arguments: [
            ("time_point_sec", #""2018-06-15T19:17:47.500""#), ("block_timestamp_type", #""2018-06-15T19:17:47.250""#),
            ("time_point", #""2018-06-15T19:17:47.1234567""#), ("float32", "1e39"), ("float32", "1e-60"),
            ("float32", #""-1e300""#),
        ]
    )
    func cut(type: String, json: String) throws {
        let abi = try Self.abi(#""types":[]"#)
        #expect(throws: Malformed.self) { try abi.pack(JSON("[\(json)]".utf8).array?.first ?? .null, as: type) }
    }

    @Test(
        "another notation of the same value is packed",
        arguments: [
            ("uint64", "7", #""007""#), ("int8", "0", "-0"), ("bool", "true", "1"), ("bool", "false", "0"),
            ("float32", "0.1", "0.10000000149011612"), ("float64", "1.5", #""15e-1""#),
            ("bytes", #""0aff""#, #""0AfF""#),
            ("time_point_sec", #""2018-06-15T19:17:47""#, #""2018-06-15T19:17:47.000Z""#),
            ("symbol", #""4,EOS""#, #""04,EOS""#),
            ("asset", #""1.0 EOS""#, #""01.0 EOS""#), ("asset", #""0 EOS""#, #""-0 EOS""#),
            (
                "public_key", #""EOS6MRyAjQq8ud7hVNYcfnVPJqcVpscN5So8BhtHuGYqET5GDW5CV""#,
                #""PUB_K1_6MRyAjQq8ud7hVNYcfnVPJqcVpscN5So8BhtHuGYqET5BoDq63""#
            ),
        ]
    )
    func notation(type: String, json: String, other: String) throws {
        let abi = try Self.abi(#""types":[]"#)
        let values = try #require(try JSON("[\(json),\(other)]".utf8).array)
        #expect(try abi.pack(values[0], as: type) == abi.pack(values[1], as: type))
    }

    @Test(
        "packed data that are not what was asked for are an error",
        arguments: [
            ("e", #"{"x":1,"y":2}"#, #"{"x":1}"#), ("e", #"{"x":1}"#, #"{"x":1,"y":2}"#),
            ("e", #"{"x":1,"y":2}"#, #"{"x":1,"y":3}"#), ("list", #"{"q":[{"x":1}]}"#, #"{"q":[{"x":1},{"x":1}]}"#),
            ("end", #"{"v":["int8",1]}"#, #"{"v":["e",{"x":1}]}"#), ("uint8?", "null", "7"),
            ("string", #""\u00e9""#, #""e\u0301""#),
            ("name", #""a""#, #""b""#), ("uint8", "1", #""-1""#), ("bool", "true", "0"),
            ("extended_asset", #"{"quantity":"1 A","contract":"a"}"#, #"{"quantity":"1 A","contract":"b"}"#),
        ]
    )
    func compared(type: String, found: String, asked: String) throws {
        let abi = try Self.extensions()
        let values = try #require(try JSON("[\(found),\(asked)]".utf8).array)
        try abi.compare(values[0], with: values[0], as: type)
        #expect(throws: Malformed.self) { try abi.compare(values[0], with: values[1], as: type) }
    }

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
        #expect(throws: Malformed.self) { try abi.unpack(bytes, as: "t") }
        let deep = (0..<64).reduce(JSON.number("1")) { inner, _ in .array([inner]) }
        #expect(throws: Malformed.self) { try abi.pack(deep, as: "t") }
        #expect(throws: Malformed.self) { try abi.pack(.number("1"), as: "t") }
        #expect(try abi.pack(.number("1"), as: "uint8") == [1])
    }

    @Test("an ABI of another version, and one with too many entries, is refused")
    func measures() throws {
        #expect(throws: Malformed.self) { try ABI(try JSON(#"{"version":"eosio::abi/2.0"}"#.utf8)) }
        let many = (0...10_000).map { #"{"new_type_name":"t\#($0)","type":"int8"}"# }.joined(separator: ",")
        #expect(throws: Malformed.self) { try Self.abi(#""types":[\#(many)]"#) }
        #expect(throws: Malformed.self) { try ABI(packed: [UInt8](repeating: 0, count: ABI.maximumCount + 1)) }
    }

    @Test("a struct inside of itself, and one that doubles 31 times, end with an error")
    func bombs() throws {
        let loop = try Self.abi(#""structs":[{"name":"a","base":"","fields":[{"name":"x","type":"a"}]}]"#)
        #expect(throws: Malformed.self) { try loop.unpack([], as: "a") }
        let levels = (0..<31).map {
            #"{"name":"s\#($0)","base":"","fields":[{"name":"x","type":"s\#($0 + 1)"},{"name":"y","type":"s\#($0 + 1)"}]}"#
        }
        let last = #"{"name":"s31","base":"","fields":[]}"#
        let bomb = try Self.abi(#""structs":[\#((levels + [last]).joined(separator: ","))]"#)
        #expect(throws: Malformed("the value is too large")) {
            do throws(Malformed) {
                _ = try bomb.unpack([], as: "s0")
            } catch {
                throw Malformed(String(error.text.suffix(22)))
            }
        }
    }

    @Test("an array with a count of four thousand million empty structs ends with an error")
    func emptyArray() throws {
        let abi = try Self.abi(#""structs":[{"name":"e","base":"","fields":[]}]"#)
        #expect(throws: Malformed.self) { try abi.unpack([0xFF, 0xFF, 0xFF, 0xFF, 0x0F], as: "e[]") }
        #expect(throws: Malformed.self) { try abi.unpack([0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], as: "e[]") }
    }

    @Test("a value of more than 64 KiB is refused")
    func large() throws {
        let abi = try Self.abi(#""types":[]"#)
        let text = JSON.array([String](repeating: String(repeating: "x", count: 40_000), count: 3).map { .string($0) })
        #expect(throws: Malformed("the value is too large").self) {
            do throws(Malformed) { _ = try abi.pack(text, as: "string[]") } catch {
                throw Malformed(String(error.text.suffix(22)))
            }
        }
    }
}
