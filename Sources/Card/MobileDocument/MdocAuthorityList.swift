// SPDX-License-Identifier: GPL-3.0-or-later
package import Document
package import Text

/// A list of the authorities of mobile documents that a provider has signed (VICAL). ISO/IEC 18013-5, C.1.7.
package struct MdocAuthorityList: Sendable {
    /// An authority, which is trusted for these document types only.
    package struct Entry: Sendable, Equatable {
        package let certificate: DocumentCertificate
        package let docTypes: Set<String>
    }

    /// The longest list in bytes.
    package static let maximumBytes = 8 << 20

    package let provider: String
    /// When the list was made and when the next one is due, in seconds since 1970.
    package let date: Int
    package let nextUpdate: Int?
    package let entries: [Entry]
    /// How many entries cannot be read.
    package let malformed: Int
    private let message: COSEMessage

    /// Reads a list. Nothing in it counts before `judge` has passed.
    package init(_ bytes: [UInt8]) throws(MdocProblem) {
        var limits = CBOR.Limits()
        limits.bytes = Self.maximumBytes
        let item = try reading(CBOR(bytes, limits: limits))
        message = try COSEMessage(item, .signature)
        guard let payload = message.payload else { throw .malformed("the list has no content") }
        let content = try reading(payload.decoded())
        _ = try MdocVersion.minor(content["version"]?.text)
        guard let provider = content["vicalProvider"]?.text, let date = content["date"].flatMap(MdocDate.seconds),
            let infos = content["certificateInfos"]?.array
        else { throw .malformed("it is no list of authorities") }
        self.provider = provider
        self.date = date
        nextUpdate = try content["nextUpdate"].map { item throws(MdocProblem) in
            guard let seconds = MdocDate.seconds(item) else {
                throw .malformed("the list says unreadably when it ends")
            }
            return seconds
        }
        var entries: [Entry] = []
        var malformed = 0
        for info in infos {
            // Without types an authority would be trusted for none.
            guard let bytes = info["certificate"]?.bytes, let certificate = try? DocumentCertificate(bytes),
                let types = info["docType"]?.array?.compactMap(\.text), !types.isEmpty
            else {
                malformed += 1
                continue
            }
            entries.append(Entry(certificate: certificate, docTypes: Set(types)))
        }
        self.entries = entries
        self.malformed = malformed
    }

    /// The certificates of the message, the signer first.
    package var certificates: [DocumentCertificate] {
        message.certificates.compactMap { try? DocumentCertificate($0) }
    }

    /// Whether the provider has signed the list.
    /// - Parameters:
    ///   - root: the certificate of the provider's authority, which the administrator has named.
    ///   - time: seconds since 1970.
    /// - Throws: `Malformed` with the reason if it has not.
    package func judge(by root: DocumentCertificate, at time: Int) throws(Malformed) {
        guard let signer = certificates.first else { throw Malformed(Phrase("it names no signer")) }
        guard case .elliptic(let key)? = try? signer.publicKey, (try? message.verify(with: key)) == true else {
            throw DocumentAnchors.wrongSignature
        }
        var anchors = DocumentAnchors()
        try anchors.trust(root)
        let claim = SignedData.Claim(certificate: signer, signingTime: date)
        let check = anchors.judge(claim, as: .authorityList, countries: [signer.subject.country ?? ""], at: time)
        if let fault = check.fault { throw fault }
        if let nextUpdate, nextUpdate < time {
            throw Malformed(Phrase("the list is over: its provider has a newer one"))
        }
    }
}
