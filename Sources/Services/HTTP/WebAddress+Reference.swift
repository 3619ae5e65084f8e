// SPDX-License-Identifier: GPL-3.0-or-later

extension WebAddress {
    /// Resolves a URI reference, such as that of Location, against this address; nil when the result is refused.
    /// RFC 3986, 5.2; RFC 9110, 10.2.2.
    ///
    /// The result has passed the checks of every address, but may be http although this address is https.
    package func resolving(_ reference: String) -> WebAddress? {
        guard reference.utf8.count <= Self.maximumLength, reference.utf8.allSatisfy({ 0x21...0x7E ~= $0 }) else {
            return nil
        }
        let base = URIParts(text[...])
        var target = URIParts(reference[...])
        if target.scheme == nil, target.authority == nil, target.path.isEmpty {
            (target.path, target.query) = (base.path, target.query ?? base.query)
        } else {
            if target.scheme == nil, target.authority == nil, !target.path.hasPrefix("/") {
                // Merging, 5.2.3. The base has an authority, so an empty path stands for the root.
                let folder = base.path.lastIndex(of: "/").map { base.path[...$0] } ?? "/"
                target.path = folder + target.path
            }
            target.path = Self.removingDotSegments(target.path)
        }
        if target.scheme == nil {
            target.scheme = base.scheme
            if target.authority == nil { target.authority = base.authority }
        }
        return WebAddress(target.text)
    }

    /// Removes the segments `.` and `..` of a path. RFC 3986, 5.2.4.
    private static func removingDotSegments(_ path: Substring) -> Substring {
        guard path.hasPrefix("/") else { return path }
        var kept: [Substring] = []
        let segments = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        for segment in segments where segment != "." {
            if segment == ".." { _ = kept.popLast() } else { kept.append(segment) }
        }
        // A dot segment at the end leaves its slash.
        if let last = segments.last, last == "." || last == ".." { kept.append("") }
        return "/" + kept.joined(separator: "/")[...]
    }
}

/// The components of a URI reference in ASCII, without the fragment. RFC 3986, 5.3 and appendix B.
private struct URIParts {
    var scheme, authority, query: Substring?
    var path: Substring

    init(_ reference: Substring) {
        var rest = reference.prefix { $0 != "#" }
        let first = rest.prefix { !":/?".contains($0) }
        if !first.isEmpty, rest[first.endIndex...].first == ":" {
            scheme = first
            rest = rest[first.endIndex...].dropFirst()
        }
        if rest.hasPrefix("//") {
            let name = rest.dropFirst(2).prefix { !"/?".contains($0) }
            authority = name
            rest = rest[name.endIndex...]
        }
        path = rest.prefix { $0 != "?" }
        if path.endIndex < rest.endIndex { query = rest[path.endIndex...].dropFirst() }
    }

    var text: String {
        (scheme.map { "\($0):" } ?? "") + (authority.map { "//\($0)" } ?? "") + path + (query.map { "?\($0)" } ?? "")
    }
}
