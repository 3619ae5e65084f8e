// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc

/// Replaces what names a host, its user or one device in the lines of a report. The same value always becomes the same
/// other one.
struct ReportScrubber {
    /// As bytes: a hash of a `String` sorts its marks.
    private var names: [[UInt8]: [UInt8]] = [:]

    /// A shorter name, such as `pi`, is a word of many lines.
    private static let shortestName = 3
    /// Words that are in the lines of every report.
    private static let common: Set<String> = ["root", "badged", "localhost", "debian", "linux"]

    init() {
        var host = [CChar](repeating: 0, count: 256)
        if gethostname(&host, host.count - 1) == 0 {
            let name = host.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            hide(String(decoding: name, as: UTF8.self), as: "HOST")
        }
        if let user = getpwuid(getuid()), let name = user.pointee.pw_name { hide(String(cString: name), as: "USER") }
    }

    /// For tests.
    init(host: String, user: String) {
        hide(host, as: "HOST")
        hide(user, as: "USER")
    }

    private mutating func hide(_ name: String, as replacement: String) {
        guard name.utf8.count >= Self.shortestName, !Self.common.contains(name) else { return }
        names[Array(name.utf8)] = Array(replacement.utf8)
    }

    /// The line with other names, addresses of radios, and serial numbers in the names of readers.
    func hidden(_ line: String) -> String {
        var out: [UInt8] = []
        var rest = Array(line.utf8)[...]
        while !rest.isEmpty {
            let run = rest.prefix(while: Self.isPart)
            // Colons at the end belong to the sentence.
            guard let last = run.lastIndex(where: { $0 != UInt8(ascii: ":") }) else {
                let other = rest.prefix(max(run.count, 1))
                out += other
                rest = rest.dropFirst(other.count)
                continue
            }
            let word = run[...last]
            rest = rest.dropFirst(word.count)
            let isInBrackets = out.last == UInt8(ascii: "(") && rest.first == UInt8(ascii: ")")
            out += hidden(word, isInBrackets: isInBrackets)
        }
        return String(decoding: out, as: UTF8.self)
    }

    private static func isPart(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: ":"), 0x80...:
            true
        default: false
        }
    }

    private func hidden(_ word: ArraySlice<UInt8>, isInBrackets: Bool) -> [UInt8] {
        if Self.isRadioAddress(word) {
            // The first half names the maker.
            return Array(word.prefix(9)) + Array("XX:XX:XX".utf8)
        }
        let digits = word.count { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard isInBrackets, digits >= 4, word.count >= 6 else {
            let parts = word.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
            return Array(parts.map { names[Array($0)] ?? Array($0) }.joined(separator: [UInt8(ascii: ":")]))
        }
        // pcscd writes the serial number of a reader so.
        return [UInt8](repeating: UInt8(ascii: "X"), count: word.count)
    }

    private static func isRadioAddress(_ word: ArraySlice<UInt8>) -> Bool {
        word.count == 17
            && zip(word, 0...).allSatisfy { byte, place in
                place % 3 == 2 ? byte == UInt8(ascii: ":") : byte != UInt8(ascii: ":") && isHexadecimal(byte)
            }
    }

    private static func isHexadecimal(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "F"),
            UInt8(ascii: "a")...UInt8(ascii: "f"):
            true
        default: false
        }
    }
}
