// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Glibc
package import Host
import Text
import Vault

/// The credentials that a site has listed: 32 bytes an entry, sorted. docs/protocol/credentials.md, Allow list.
///
/// An entry is the x of a key, or its pseudonym.
package struct AllowList: Sendable {
    /// 32 bytes as four numbers, so that a comparison does not follow a reference.
    private struct Entry: Comparable {
        let words: (UInt64, UInt64, UInt64, UInt64)

        init(_ bytes: some Collection<UInt8>) {
            var (all, word): ([UInt64], UInt64) = ([], 0)
            for (index, byte) in bytes.enumerated() {
                word = word << 8 | UInt64(byte)
                if index % 8 == 7 { all.append(word) }
            }
            words = all.count == 4 ? (all[0], all[1], all[2], all[3]) : (0, 0, 0, 0)
        }

        init(_ words: (UInt64, UInt64, UInt64, UInt64)) { self.words = words }

        static func < (left: Entry, right: Entry) -> Bool { left.words < right.words }
        static func == (left: Entry, right: Entry) -> Bool { left.words == right.words }
    }

    static let maximumLines = 1_000_000
    static let maximumBytes = 100 << 20
    private static let maximumLine = 1024

    private var keys: [Entry] = []
    private var pseudonyms: [Entry] = []

    package var count: Int { keys.count + pseudonyms.count }

    /// Whether the list has the key with this x, itself or by the pseudonym that `siteKey` makes of it.
    func contains(x: [UInt8], _ siteKey: SiteKey?) -> Bool {
        if Self.has(keys, Entry(x)) { return true }
        guard !pseudonyms.isEmpty, let siteKey, let pseudonym = try? siteKey.credential(x: x) else { return false }
        return Self.has(pseudonyms, Entry(pseudonym))
    }

    private static func has(_ entries: [Entry], _ wanted: Entry) -> Bool {
        var (low, high) = (0, entries.count)
        while low < high {
            let middle = (low + high) / 2
            if entries[middle] < wanted { low = middle + 1 } else { high = middle }
        }
        return low < entries.count && entries[low] == wanted
    }

    // MARK: File

    /// Reads a list. One wrong line refuses the file.
    /// - Throws: `StartError` with the file and the line.
    package init(file path: String, hasSiteKey: Bool) throws(StartError) {
        let descriptor: Int32
        switch PlainFile.open(path) {
        case .file(let opened): descriptor = opened
        case .missing: throw Self.fault(path, "there is no such file", hint: "until there is one, nobody is listed")
        case .failed(let reason): throw Self.fault(path, reason, hint: "make it a file that user badged can read")
        }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.fault(path, errorText(), hint: "check the disk") }
        guard !PlainFile.isExposed(status) else {
            throw Self.fault(path, "other users can change it", hint: "chmod go-w \(path); its owner is root or badged")
        }
        try PlainFile.checkPlace(path)
        guard status.st_size <= Self.maximumBytes else {
            throw Self.fault(path, "it is larger than \(Self.maximumBytes >> 20) MiB", hint: "list fewer credentials")
        }
        keys.reserveCapacity(min(Int(status.st_size) / 65 + 1, Self.maximumLines))
        // A line that the last part has left incomplete is at the start of the buffer.
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        var (kept, number) = (0, 0)
        while true {
            let count = buffer.withUnsafeMutableBytes {
                read(descriptor, $0.baseAddress.map { $0 + kept }, $0.count - kept)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Self.fault(path, errorText(), hint: "check the disk") }
            let end = kept + count
            var start = 0
            while start < end {
                var stop = start
                while stop < end, buffer[stop] != 0x0A { stop += 1 }
                if stop == end, count > 0 { break }
                number += 1
                guard number <= Self.maximumLines else {
                    throw Self.fault(
                        path,
                        "it has more than \(Self.maximumLines) lines",
                        hint: "list fewer credentials"
                    )
                }
                if let fault = parse(buffer[start..<stop], hasSiteKey) {
                    throw Self.fault("\(path), line \(number)", fault, hint: Self.form)
                }
                start = stop + 1
            }
            if count == 0 { break }
            kept = max(end - start, 0)
            guard kept <= Self.maximumLine else {
                throw Self.fault("\(path), line \(number + 1)", "it is too long", hint: Self.form)
            }
            for index in 0..<kept { buffer[index] = buffer[start + index] }
        }
        keys.sort()
        pseudonyms.sort()
    }

    private static let form =
        "one entry a line: a compressed key (66 hexadecimal digits), x of a key (64), or id: and a pseudonym"

    private static func fault(_ place: String, _ text: String, hint: String) -> StartError {
        .inConfiguration("[credentials] allow_list: \(place): \(text)", of: "[credentials] allow_list", hint: hint)
    }

    /// Takes a line.
    /// - Returns: why it is wrong.
    private mutating func parse(_ line: ArraySlice<UInt8>, _ hasSiteKey: Bool) -> String? {
        func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 || byte == 0x0D }
        var line = line
        while let first = line.first, isBlank(first) { line.removeFirst() }
        while let last = line.last, isBlank(last) { line.removeLast() }
        if line.isEmpty || line.first == UInt8(ascii: "#") { return nil }
        if line.starts(with: "id:".utf8) {
            guard hasSiteKey else { return "a pseudonym needs [credentials] site_key" }
            guard line.count == 46, let text = String(validating: line.dropFirst(3), as: UTF8.self),
                let bytes = Base64.url.decode(text), bytes.count == SiteKey.count
            else { return "it is no pseudonym of 43 characters" }
            pseudonyms.append(Entry(bytes))
            return nil
        }
        if line.count == 66 {
            guard line.starts(with: "02".utf8) || line.starts(with: "03".utf8) else { return "it is no compressed key" }
            line.removeFirst(2)
        }
        guard line.count == 64, let entry = Self.entry(line) else { return "it is no key" }
        keys.append(entry)
        return nil
    }

    /// Reads 64 hexadecimal digits.
    private static func entry(_ digits: ArraySlice<UInt8>) -> Entry? {
        var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)
        for digit in digits {
            let value: UInt8
            switch digit {
            case 0x30...0x39: value = digit - 0x30
            case 0x41...0x46: value = digit - 0x37
            case 0x61...0x66: value = digit - 0x57
            default: return nil
            }
            words.0 = words.0 << 4 | words.1 >> 60
            words.1 = words.1 << 4 | words.2 >> 60
            words.2 = words.2 << 4 | words.3 >> 60
            words.3 = words.3 << 4 | UInt64(value)
        }
        return Entry(words)
    }
}
