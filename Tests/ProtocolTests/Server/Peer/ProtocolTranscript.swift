// SPDX-License-Identifier: GPL-3.0-or-later
import FoundationEssentials
import Server
import TestSupport
import Testing
import Text

/// A recording of AusweisApp2; Tests/Vectors/peer-transcripts/README.md describes the format.
struct Transcript {
    /// The lines of one write, and the messages received before the next write.
    struct Exchange {
        /// The lines sent; empty at the connection and for a write that only a remark mentions.
        var sent: [String] = []
        var received: [JSON] = []
        /// The last remark before the exchange.
        var remark = ""
        /// The number of its first line in the file, for failure messages.
        var line: Int
    }

    let name: String
    var exchanges: [Exchange] = []
    /// The command APDUs of the recording.
    private(set) var commands: [[UInt8]] = []

    init(_ name: String) throws {
        self.name = name
        let path = testsFolder.appending(path: "Vectors/peer-transcripts/\(name).txt").path
        let text = try #require(FileManager.default.contents(atPath: path), "there is no \(path)")
        var remark = ""
        var current = Exchange(line: 1)
        func finish() {
            if !current.sent.isEmpty || !current.received.isEmpty { exchanges.append(current) }
        }
        for (index, line) in text.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            let line = String(decoding: line, as: UTF8.self)
            let fields = line.drop { $0 == " " }.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            guard fields.count == 2, Double(fields[0]) != nil else { continue }
            let content = String(fields[1].dropFirst(2))
            switch fields[1].first {
            case ">":
                if !current.received.isEmpty || current.sent.isEmpty {
                    finish()
                    current = Exchange(remark: remark, line: index + 1)
                }
                current.sent.append(content)
            case "<":
                current.received.append(try #require(try? JSON(content.utf8), "line \(index + 1)"))
            case "#":
                finish()
                remark = content
                current = Exchange(remark: remark, line: index + 1)
            default:
                let words = content.split(separator: " ")
                if words.first == "card" { commands.append(hex(String(words[1]))) }
            }
        }
        finish()
    }
}
