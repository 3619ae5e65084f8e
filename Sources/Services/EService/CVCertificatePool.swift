// SPDX-License-Identifier: GPL-3.0-or-later
package import EID

/// The certificates from which chains are built: those of the service, the trust anchors, and saved link certificates,
/// in any order.
package struct CVCertificatePool: Sendable, Equatable {
    /// No service has anything like it; each step of a search looks at all.
    package static let maximumCount = 64

    /// In the order of their coming, each once.
    package private(set) var certificates: [CVCertificate] = []
    /// The end of every chain.
    package let terminal: CVCertificate

    package init(terminal: CVCertificate, _ others: some Sequence<CVCertificate> = []) {
        self.terminal = terminal
        add(others)
    }

    /// Adds what is not there yet; terminal certificates are passed over: there is only the one. What exceeds
    /// `maximumCount` is dropped.
    package mutating func add(_ others: some Sequence<CVCertificate>) {
        for certificate in others where certificate.chat.role != .terminal && certificates.count < Self.maximumCount {
            if !certificates.contains(certificate) { certificates.append(certificate) }
        }
    }

    /// The certificates that lead a card with the trust point `reference` to the terminal certificate, in the order in
    /// which the card wants them: first the one that `reference` has signed, last the terminal's. Only names are
    /// compared: the card checks the signatures, and `TrustAnchors` has checked the terminal's own chain.
    /// - Returns: the shortest such chain; nil when there is none.
    package func chain(startingAt reference: [UInt8]) -> [CVCertificate]? {
        chains { $0.authorityReference == reference }.first
    }

    /// The same for the first reference that has a chain. TR-03110-2, 3.3: the current trust point, else the previous.
    package func chain(startingAtFirstOf references: [[UInt8]]) -> [CVCertificate]? {
        for reference in references {
            if let chain = chain(startingAt: reference) { return chain }
        }
        return nil
    }

    /// Paths from a certificate that `isFirst` picks to the terminal's, without self-signed ones, shortest first, each
    /// certificate once: the terminal's, before it one document verifier's, before that authorities' only, all for the same
    /// type of terminal.
    func chains(from isFirst: (CVCertificate) -> Bool) -> [[CVCertificate]] {
        var found: [[CVCertificate]] = []
        // Breadth first: level n holds the paths of n certificates.
        var level = [[terminal]]
        var seen = Set<[UInt8]>()
        while !level.isEmpty {
            var next: [[CVCertificate]] = []
            for path in level {
                guard let first = path.first else { continue }
                if path.count > 1, isFirst(first) { found.append(path) }
                for issuer in certificates where isIssuer(issuer, of: first) {
                    // One path to each certificate is enough: the shortest.
                    if seen.insert(issuer.encoded).inserted { next.append([issuer] + path) }
                }
            }
            level = next
        }
        return found
    }

    private func isIssuer(_ issuer: CVCertificate, of certificate: CVCertificate) -> Bool {
        issuer.holderReference == certificate.authorityReference && issuer.chat.role.mayIssue(certificate.chat.role)
            && issuer.chat.terminalType == certificate.chat.terminalType
            && issuer.authorityReference != issuer.holderReference
    }
}
