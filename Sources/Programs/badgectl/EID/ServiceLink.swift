// SPDX-License-Identifier: GPL-3.0-or-later
import HTTP
import Host
import Text

/// Finds the address of the TcToken in what people copy: that address, or a link that starts an eID client, such as
/// `http://127.0.0.1:24727/eID-Client?tcTokenURL=...` or `eid://...`. TR-03124-1, 2.2.1.1.
enum ServiceLink {
    /// The maximum number of percent-encodings on top of each other.
    private static let maximumDepth = 3

    /// Returns the address of the TcToken. badged judges it.
    static func tcTokenURL(in copied: String) throws -> String {
        var text = cleaned(copied)
        for _ in 0..<maximumDepth {
            if let value = try parameter(of: text) {
                text = value
            } else if ["https%", "http%"].contains(where: text.lowercased().hasPrefix) {
                text = try decoded(text[...])
            } else {
                break
            }
        }
        guard !text.isEmpty else { throw usage(tr("the address is empty")) }
        guard text.contains("//") || !text.contains(where: "./:".contains) else {
            throw CommandFailure(
                usage: tr("the address \(text.printable) has no scheme"),
                hint: tr("put https:// before it")
            )
        }
        let isWeb = ["https:", "http:"].contains(where: text.lowercased().hasPrefix)
        guard text.contains("//"), !isWeb || WebAddress(text) != nil else {
            throw usage(tr("\(text.printable) is not the address of a service"))
        }
        return text
    }

    /// Removes what a copy brings along: space and brackets around it, backslashes of a shell, the entity of HTML.
    private static func cleaned(_ copied: String) -> String {
        func isAround(_ scalar: Unicode.Scalar) -> Bool {
            scalar.properties.isWhitespace || "<>\"'".unicodeScalars.contains(scalar)
        }
        return String(copied.unicodeScalars.trimmed(where: isAround)).replacing("&amp;", with: "&")
            .replacing("\\?", with: "?").replacing("\\=", with: "=")
            .replacing("\\&", with: "&")
    }

    /// Returns the value of `tcTokenURL` in a link; nil if the text is no link.
    private static func parameter(of text: String) throws -> String? {
        let parts = text.prefix { $0 != "#" }.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
        guard let address = parts.first?.lowercased() else { return nil }
        // A link that was copied without its beginning.
        let isBare = address.hasPrefix("tctokenurl=")
        let isWeb =
            address.hasPrefix("https:") || address.hasPrefix("http:")
            || !address.contains("://") && !address.hasPrefix("eid:")
        let path = address.hasSuffix("/") ? address.dropLast() : address[...]
        guard isBare || !isWeb || path.hasSuffix("/eid-client") else { return nil }
        let query = isBare ? text[...] : parts.dropFirst().first ?? ""
        let items = query.split(separator: "&", omittingEmptySubsequences: false)
        guard let index = items.firstIndex(where: { $0.lowercased().hasPrefix("tctokenurl=") }) else {
            // An address of another kind may end so, too; a link to this computer or of another scheme does not.
            guard !isWeb || isLocal(address) else { return nil }
            throw usage(tr("this link starts no authentication, because it has no tcTokenURL"))
        }
        let value = items[index].dropFirst("tctokenurl=".count)
        guard !value.isEmpty else { throw usage(tr("tcTokenURL is empty in this link")) }
        guard !value.contains("://") || index == items.count - 1 else {
            throw usage(tr("tcTokenURL is not percent-encoded in this link, so its end is unclear"))
        }
        return try decoded(value)
    }

    /// Whether the address leads to this computer.
    private static func isLocal(_ address: String) -> Bool {
        let rest =
            address.contains("://")
            ? address.split(separator: "/").dropFirst().first : address.split(separator: "/").first
        return rest.flatMap { WebAddress("http://\($0)/") }?.origin.isThisComputer ?? false
    }

    private static func decoded(_ text: Substring) throws -> String {
        guard let bytes = PercentEncoding.decode(text.utf8), let decoded = String(validating: bytes, as: UTF8.self)
        else {
            throw usage(tr("the address in this link is not percent-encoded UTF-8"))
        }
        return decoded
    }

    private static func usage(_ text: String) -> CommandFailure {
        CommandFailure(
            usage: text,
            hint: tr("copy the whole link or the address of the TcToken, and put it in single quotes")
        )
    }
}
