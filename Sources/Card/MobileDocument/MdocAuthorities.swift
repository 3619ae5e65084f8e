// SPDX-License-Identifier: GPL-3.0-or-later
package import Document

/// Whom a site trusts for mobile documents, and what those have published.
package struct MdocAuthorities: Sendable {
    /// The authorities (IACA) with their document types and revocation lists.
    package var anchors: DocumentAnchors
    /// The lists for each address.
    private var lists: [String: [MdocStatusList]] = [:]

    package init(anchors: DocumentAnchors = DocumentAnchors()) { self.anchors = anchors }

    /// The number of status lists and identifier lists.
    package var listCount: Int { lists.values.reduce(0) { $0 + $1.count } }

    /// Takes a status list or identifier list; its signature is judged when a document asks for it.
    package mutating func add(_ list: MdocStatusList) { lists[list.uri, default: []].append(list) }

    /// The newest lists come first.
    func lists(at uri: String) -> [MdocStatusList] { (lists[uri] ?? []).sorted { $0.issued > $1.issued } }
}
