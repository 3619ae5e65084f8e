// SPDX-License-Identifier: GPL-3.0-or-later
import Foundation
import TestSupport
import Testing
import Text

/// A recorded dialogue of AusweisApp2; Tests/Vectors/ifd-transcripts/README.md describes the format.
struct Recording {
    struct Line {
        let isClient: Bool
        let message: JSON

        var name: String { message["msg"]?.string ?? "" }
    }

    let lines: [Line]
    /// Whether AusweisApp2 is the phone; otherwise it is the client.
    let isPhone: Bool

    init(_ name: String) throws {
        let path = testsFolder.appending(path: "Vectors/ifd-transcripts/\(name).jsonl").path
        let text = try #require(FileManager.default.contents(atPath: path), "there is no \(path)")
        lines = try text.split(separator: 0x0A).map { line in
            let json = try JSON(Array(line))
            let message = try #require(json["m"])
            return Line(isClient: json["from"] == .string("client"), message: message)
        }
        isPhone = name.hasPrefix("server-")
    }

    /// The answers of the phone to each message of the client, in order. A status comes at any time and is left out.
    var exchanges: [(request: JSON, answers: [JSON])] {
        var exchanges: [(request: JSON, answers: [JSON])] = []
        for line in lines where line.name != "IFDStatus" {
            if line.isClient {
                exchanges.append((line.message, []))
            } else if !exchanges.isEmpty {
                exchanges[exchanges.count - 1].answers.append(line.message)
            }
        }
        return exchanges
    }
}

extension JSON {
    /// The members without those that differ in each dialogue, or that badged does not write.
    func comparable(without more: Set<String> = []) -> [String: JSON] {
        let without = more.union(["ContextHandle", "SlotHandle", "IFDName", "UDName"])
        var kept = (members ?? []).reduce(into: [:]) { $0[$1.key] = $1.value }
        for name in without { kept[name] = nil }
        // The first two bytes are time limits: 60 s from AusweisApp2 1.26, 90 s from 2.5 and from badged.
        if kept["msg"] == .string("IFDModifyPIN"), let input = kept["InputData"]?.string {
            kept["InputData"] = .string(String(input.dropFirst(4)))
        }
        return kept
    }
}
