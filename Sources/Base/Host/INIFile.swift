// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
package import Text

/// The lines of a file with `[section]` headings and `key = value`. Comments are whole lines that begin with `#` or `;`.
///
/// A byte order mark at the beginning of the file is accepted.
package struct INIFile: Sendable {
    package enum Content: Sendable {
        case section(String)
        case value(key: String, String)
        /// A line that cannot be understood.
        case fault(String, hint: String)
    }

    /// The largest file in bytes.
    static let largest = 256 << 10
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// The lines with a content, and their numbers.
    package let lines: [(number: Int, content: Content)]

    package init(bytes: [UInt8]) {
        let text = bytes.starts(with: Self.byteOrderMark) ? bytes.dropFirst(Self.byteOrderMark.count) : bytes[...]
        lines = text.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated().compactMap { index, line in
            Self.content(line).map { (index + 1, $0) }
        }
    }

    /// Reads a line; nil for a comment and an empty line.
    private static func content(_ raw: ArraySlice<UInt8>) -> Content? {
        guard let text = String(validating: raw, as: UTF8.self) else {
            return .fault("the line is not UTF-8 text", hint: "save the file in UTF-8")
        }
        guard text.isComparable else {
            return .fault("the line has too many combining marks in a row", hint: "write names with fewer accents")
        }
        let line = trim(text[...])
        // A carriage return that ends lines would turn the rest of the file into one comment.
        guard line.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == 0x09 }) else {
            return .fault(
                "the line has a control character",
                hint: "end lines with a line feed; save the file in UTF-8"
            )
        }
        guard let first = line.utf8.first, first != UInt8(ascii: "#"), first != UInt8(ascii: ";") else { return nil }
        if first == UInt8(ascii: "[") {
            guard line.utf8.last == UInt8(ascii: "]"), line.utf8.count > 2 else {
                return .fault("a section header has the form [name]", hint: "see badged.conf(5)")
            }
            return .section(String(trim(line.dropFirst().dropLast())))
        }
        let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !trim(parts[0]).isEmpty else {
            return .fault("expected key = value", hint: "a comment begins with #; see badged.conf(5)")
        }
        return .value(key: String(trim(parts[0])), String(trim(parts[1])))
    }

    package static func trim(_ text: Substring) -> Substring {
        Substring(text.utf8.trimmed { $0 == 0x20 || $0 == 0x09 || $0 == 0x0D })
    }

    /// Reads a file of at most `largest` bytes; nil if there is no file.
    ///
    /// With `checksOwner` a file that other users can change or replace is refused.
    package static func contents(of path: String, checksOwner: Bool = false) throws(StartError) -> [UInt8]? {
        let descriptor: Int32
        switch PlainFile.open(path) {
        case .file(let opened): descriptor = opened
        case .missing: return nil
        case .failed(let reason) where PlainFile.mayPass(): throw .disturbed(path, reason)
        case .failed(let reason):
            throw .inConfiguration(
                "cannot read \(path): \(reason)",
                hint: "make it a file that the user of the daemon can read, or name another file"
            )
        }
        defer { close(descriptor) }
        if checksOwner { try PlainFile.check(descriptor, path) }
        switch PlainFile.read(descriptor, limit: largest) {
        case .bytes(let bytes): return bytes
        case .missing: return nil
        case .failed(let reason) where PlainFile.mayPass(): throw .disturbed(path, reason)
        case .failed(let reason):
            throw .inConfiguration("cannot read \(path): \(reason)", hint: "check the disk")
        case .tooLong:
            throw .inConfiguration(
                "\(path) is larger than \(largest >> 10) KiB",
                hint: "name a configuration file of badged"
            )
        }
    }
}

extension StartError {
    /// Makes an error for a fault in the configuration: exit code 78, EX_CONFIG of sysexits.h.
    package static func inConfiguration(
        _ message: String,
        of setting: String? = nil,
        hint: String
    ) -> StartError {
        var error = StartError(message, hint: hint, exitCode: 78)
        error.setting = setting
        return error
    }

    /// The same with texts that can be told in the language of a user.
    package static func inConfiguration(
        saying message: Phrase,
        of setting: String? = nil,
        hint: Phrase
    ) -> StartError {
        var error = inConfiguration(message.description, of: setting, hint: hint.description)
        error.phrases = Phrases(message: message, hint: hint)
        return error
    }

    /// Makes an error for a file that cannot be read now, though nothing is wrong with the configuration: exit code 1,
    /// with which the unit starts the program again.
    package static func disturbed(_ path: String, _ reason: String, of setting: String? = nil) -> StartError {
        var error = inConfiguration(
            saying: Phrase("cannot read \(path): \(Phrase(stringLiteral: reason))"),
            of: setting,
            hint: Phrase("check the disk, the memory and the limit of open files, then start again")
        )
        error.exitCode = 1
        error.mayPass = true
        return error
    }

    /// The exit status for the faults of a configuration: 78, unless all of them may pass.
    package static func exitCode(of errors: [StartError]) -> Int32 { errors.allSatisfy(\.mayPass) ? 1 : 78 }

    /// Refuses a line with a key above the first section.
    package static func beforeSections(_ key: String, _ place: String, _ page: String) -> StartError {
        .inConfiguration(
            "\(place): '\(key)' stands before the first section",
            hint: "move it below its [section]; see \(page)"
        )
    }
}
