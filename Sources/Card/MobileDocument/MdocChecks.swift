// SPDX-License-Identifier: GPL-3.0-or-later
package import Document
package import Text

/// Whether the phone has the key that the issuer has signed.
package struct DeviceCheck: Sendable, Equatable {
    package enum Method: String, Sendable { case signature, mac }

    package enum Reason: String, Sendable {
        case wrongSignature
        case malformed
        /// The algorithm or the curve is not supported. The check is not done.
        case unsupported
    }

    package internal(set) var result = CheckResult.notDone
    package internal(set) var reason: Reason?
    package internal(set) var method: Method?
}

/// Whether the issuer has revoked the document.
package struct StatusCheck: Sendable, Equatable {
    package enum Reason: String, Sendable {
        case revoked
        case suspended
        /// There is no current list of the authority that has the document. The check is not done.
        case unavailable
        /// The document names another way to ask for its revocation than badged knows. The check is not done.
        case unsupported
    }

    package internal(set) var result = CheckResult.notDone
    package internal(set) var reason: Reason?

    /// What to do next.
    package var advice: Phrase? {
        switch reason {
        case .unavailable:
            "name the status list of the issuer in [mdoc] lists, or import it: sudo badgectl mdoc anchors import FILE"
        case .unsupported: "ask the issuer whether the document is revoked: badged does not know how it says so"
        case .revoked, .suspended, nil: nil
        }
    }
}

/// Whether the document fits the request and the time.
package struct MdocContentCheck: Sendable, Equatable {
    package enum Finding: String, Sendable {
        /// The signed object of the document is over (validUntil), or not valid yet (validFrom).
        case expired
        case notYetValid
        /// The document itself is over: its element `expiry_date`.
        case documentExpired
        /// The type of the document is not the one that the issuer has signed.
        case wrongDocType
        /// Nobody has asked for a document of this type.
        case notAsked
        /// The issuer has signed at a time at which the certificate of its signer was not valid.
        case signedOutsideCertificate
        /// A date of the document has another form, or is a day that no calendar has.
        case malformed
    }

    package internal(set) var isDone = false
    package internal(set) var findings: [Finding] = []

    package var result: CheckResult { isDone ? (findings.isEmpty ? .passed : .failed) : .notDone }
}

/// All checks of a mobile document. docs/mobile-documents.md.
package struct MdocChecks: Sendable, Equatable {
    package internal(set) var hashes = HashCheck()
    package internal(set) var signature = SignatureCheck()
    package internal(set) var authority = AuthorityCheck()
    package internal(set) var device = DeviceCheck()
    package internal(set) var status = StatusCheck()
    package internal(set) var document = MdocContentCheck()

    package enum Verdict: String, Sendable, Comparable {
        case suspect
        /// Nothing has failed, and something was not done.
        case unverified
        /// Every check has passed.
        case genuine

        private var rank: Int {
            switch self {
            case .suspect: 0
            case .unverified: 1
            case .genuine: 2
            }
        }

        package static func < (left: Verdict, right: Verdict) -> Bool { left.rank < right.rank }
    }

    /// Only a check that failed makes a document suspect. A document without a place in a list of revoked ones needs
    /// none.
    package var verdict: Verdict {
        let results = [hashes.result, signature.result, authority.result, device.result, document.result]
        if results.contains(.failed) || status.result == .failed { return .suspect }
        let isDone = results.allSatisfy { $0 == .passed } && (status.result == .passed || status.result == .absent)
        return isDone ? .genuine : .unverified
    }
}

/// A document of a response with what was proven.
package struct MdocResult: Sendable {
    /// An element whose check has passed. The value is a place in the bytes of the response, which are wiped with the
    /// last of them.
    package struct Element: Sendable {
        package let namespace: String
        package let name: String
        package let value: CBOR
        /// Whether the phone has signed the element, with the leave of the issuer, and not the issuer.
        package let isOfDevice: Bool
    }

    package let docType: String
    /// What was asked for, in the order in which it came.
    package internal(set) var items: [Element] = []
    /// The names of elements that were asked for and did not come, or whose check did not pass. Ages are never here: a
    /// phone answers with the nearest that it has.
    package internal(set) var withheld: [String] = []
    /// The names of elements that came without being asked for.
    package internal(set) var unasked: [String] = []
    package internal(set) var checks = MdocChecks()
    /// The last second in which the signed object counts, since 1970; nil if it cannot be read.
    package internal(set) var validUntil: Int?

    package init(docType: String) { self.docType = docType }

    package var verdict: MdocChecks.Verdict { checks.verdict }
}
