// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc

/// The lines `key = value` of a file with `[section]` headings. Comments are whole lines that begin with `#` or `;`.
struct INIFile: Sendable, Equatable {
    struct Entry: Sendable, Equatable {
        var line: Int
        var section: String
        var key: String
        var value: String
    }

    /// Largest file in bytes.
    static let largest = 256 << 10

    var entries: [Entry] = []

    /// Parses a file; `file` is its name for messages.
    /// - Throws: `StartError` that names the line.
    init(bytes: [UInt8], file: String) throws(StartError) {
        var section = ""
        for (index, raw) in bytes.split(separator: 0x0A, omittingEmptySubsequences: false).enumerated() {
            let place = "\(file), line \(index + 1)"
            guard let text = String(validating: raw, as: UTF8.self), !raw.contains(0) else {
                throw .inConfiguration("\(place): the line is not UTF-8 text", hint: "save the file in UTF-8")
            }
            let line = Self.trim(text[...])
            if line.isEmpty || line.hasPrefix("#") || line.hasPrefix(";") { continue }
            if line.hasPrefix("[") {
                guard line.hasSuffix("]"), line.count > 2 else {
                    throw .inConfiguration("\(place): a section header has the form [name]", hint: "see badged.conf(5)")
                }
                section = String(Self.trim(line.dropFirst().dropLast()))
                continue
            }
            let parts = line.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !Self.trim(parts[0]).isEmpty else {
                throw .inConfiguration(
                    "\(place): expected key = value",
                    hint: "a comment begins with #; see badged.conf(5)"
                )
            }
            guard !section.isEmpty else {
                throw .inConfiguration(
                    "\(place): '\(Self.trim(parts[0]))' stands before the first section",
                    hint: "move it below its [section]; see badged.conf(5)"
                )
            }
            entries.append(
                Entry(
                    line: index + 1,
                    section: section,
                    key: String(Self.trim(parts[0])),
                    value: String(Self.trim(parts[1]))
                )
            )
        }
    }

    static func trim(_ text: Substring) -> Substring {
        let blank: (Character) -> Bool = { $0 == " " || $0 == "\t" || $0 == "\r" }
        var text = text.drop(while: blank)
        while let last = text.last, blank(last) { text.removeLast() }
        return text
    }

    /// Reads a file of at most `largest` bytes; nil if there is no file.
    static func contents(of path: String) throws(StartError) -> [UInt8]? {
        let descriptor = clinux_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw .inConfiguration(
                "cannot read \(path): \(errorText())",
                hint: "make it readable for the user of the daemon, or use --config with another file"
            )
        }
        defer { close(descriptor) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while true {
            let count = buffer.withUnsafeMutableBytes { read(descriptor, $0.baseAddress, $0.count) }
            if count == 0 { return bytes }
            if count < 0 {
                if errno == EINTR { continue }
                throw .inConfiguration("cannot read \(path): \(errorText())", hint: "it must be a regular file")
            }
            bytes += buffer.prefix(count)
            guard bytes.count <= largest else {
                throw .inConfiguration(
                    "\(path) is larger than \(largest >> 10) KiB",
                    hint: "name a configuration file of badged"
                )
            }
        }
    }
}

extension StartError {
    /// Makes an error for a fault in the configuration: exit code 78, EX_CONFIG of sysexits.h.
    package static func inConfiguration(_ message: String, hint: String) -> StartError {
        StartError(message, hint: hint, exitCode: 78)
    }
}
