// SPDX-License-Identifier: GPL-3.0-or-later
package import EID

/// The certificates from which chains are built, in any order: those of the service, the trust anchors, and stored link
/// certificates.
package struct CVCertificatePool: Sendable, Equatable {
    /// The maximum number of certificates. Each step of a search looks at all of them; services send fewer than 10.
    package static let maximumCount = 64

    /// Each certificate once, in the order in which they were added.
    package private(set) var certificates: [CVCertificate] = []
    /// The last certificate of every chain.
    package let terminal: CVCertificate

    package init(terminal: CVCertificate, _ others: some Sequence<CVCertificate> = []) {
        self.terminal = terminal
        add(others)
    }

    /// Adds certificates that are missing. Terminal certificates, and those beyond `maximumCount`, are ignored.
    package mutating func add(_ others: some Sequence<CVCertificate>) {
        for certificate in others where certificate.chat.role != .terminal && certificates.count < Self.maximumCount {
            if !certificates.contains(certificate) { certificates.append(certificate) }
        }
    }

    /// Finds the chain from the trust point `reference` of a card to the terminal certificate. The first certificate is
    /// signed by `reference`, the last one is the terminal's. Only names are compared: the card checks the signatures.
    /// - Returns: the shortest chain; nil when there is none.
    package func chain(startingAt reference: [UInt8]) -> [CVCertificate]? {
        chains { $0.authorityReference == reference }.first
    }

    /// Finds the chain for the first reference that has one. TR-03110-2, 3.3: the current trust point of the card comes
    /// before the previous one.
    package func chain(startingAtFirstOf references: [[UInt8]]) -> [CVCertificate]? {
        for reference in references {
            if let chain = chain(startingAt: reference) { return chain }
        }
        return nil
    }

    /// Finds the chains from a certificate that `isFirst` accepts to the terminal's, shortest first. A chain consists of
    /// link certificates, one document verifier and the terminal, all for one type of terminal.
    func chains(from isFirst: (CVCertificate) -> Bool) -> [[CVCertificate]] {
        var found: [[CVCertificate]] = []
        // Breadth first: one level holds all paths of the same length.
        var level = [[terminal]]
        var seen = Set<[UInt8]>()
        while !level.isEmpty {
            var next: [[CVCertificate]] = []
            for path in level {
                guard let first = path.first else { continue }
                if path.count > 1, isFirst(first) { found.append(path) }
                for issuer in certificates where isIssuer(issuer, of: first) {
                    // The shortest path to each certificate is enough.
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
