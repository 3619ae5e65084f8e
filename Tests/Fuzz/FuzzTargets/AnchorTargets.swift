// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID

@Sendable func certificateSearch(_ input: UnsafeRawBufferPointer) {
    let search = CertificateSearch(Array(input))
    let lengths = search.certificates.map(\.encoded.count)
    require(lengths.reduce(0, +) <= input.count, "more certificates than bytes")
    require(search.certificates.allSatisfy { (try? CVCertificate($0.encoded)) == $0 }, "a certificate changes")
    let found = search.certificates.map { AnchorSources.Found(certificate: $0, place: "") }
    let selection = AnchorSelection(found, known: [:], present: TrustAnchors())
    require(selection.taken.isEmpty, "a certificate is trusted that nobody knows")
}

@Sendable func zipArchive(_ input: UnsafeRawBufferPointer) {
    guard let archive = try? ZipArchive(Array(input)) else { return }
    require(archive.entries.count <= ZipArchive.maximumEntries, "too many entries")
    let limit = 1 << 16
    for entry in archive.entries {
        guard let content = try? archive.content(of: entry, limit: limit) else { continue }
        require(content.count == entry.count && content.count <= limit, "an entry with another length")
    }
}
