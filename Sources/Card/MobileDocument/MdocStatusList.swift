// SPDX-License-Identifier: GPL-3.0-or-later
import CZlib
package import Document
package import Text

/// A list that says which documents of an authority are revoked: a status list or an identifier list as CWT.
/// IETF Token Status List 5.2; ISO/IEC 18013-5, second edition, 12.3.6.
package struct MdocStatusList: Sendable {
    private enum Content: Sendable {
        /// Bits of each value, and the values in the format of zlib.
        case values(bits: Int, packed: [UInt8])
        /// The identifiers of revoked documents.
        case identifiers(Set<[UInt8]>)
    }

    /// What a list says about a document.
    enum Value: Equatable {
        case valid, revoked, suspended
    }

    /// The longest list in bytes.
    package static let maximumBytes = 8 << 20
    /// A list that has more unpacked bytes does not count: 2^28 documents with one bit each.
    private static let maximumUnpacked = 32 << 20
    /// How long a list without an end and without a limit counts, in seconds: a day.
    private static let usualLife = 86_400

    /// The address of the list: what it is about.
    package let uri: String
    /// When it was made, in seconds since 1970.
    package let issued: Int
    /// The first second in which it counts: when it was made, or what it says itself.
    private let from: Int
    /// The last second in which it counts.
    package let until: Int
    /// How long it may be used before it is fetched again, in seconds.
    package let timeToLive: Int?
    package let object: SignedObject
    private let message: COSEMessage
    private let content: Content

    /// Whether bytes begin as a list does: with the tag of a CWT or of COSE_Sign1, or with an array of four.
    package static func looksLike(_ bytes: [UInt8]) -> Bool {
        bytes.starts(with: [0xD8, 0x3D]) || bytes.first == 0xD2 || bytes.first == 0x84
    }

    /// Reads a list. Whether its signer may sign it is not looked at.
    /// `fetched`: when its server handed it out, in seconds since 1970, which is the beginning of the life of a list without
    /// an end; nil: it is not known, and the life begins when the list was made.
    package init(_ bytes: [UInt8], fetched: Int? = nil) throws(MdocProblem) {
        var limits = CBOR.Limits()
        limits.bytes = Self.maximumBytes
        limits.entries = 1 << 17
        limits.items = 1 << 19
        let item = try reading(CBOR(bytes, limits: limits))
        message = try COSEMessage(item.untagged(61) ?? item, .signature)
        guard let payload = message.payload else { throw .malformed("the list has no content") }
        let claims = try reading(payload.decoded())
        guard let uri = claims[2]?.text, let issued = claims[6]?.integer.flatMap(Int.init(exactly:)) else {
            throw .malformed("the list does not say what it is about, or when it was made")
        }
        self.uri = uri
        self.issued = issued
        timeToLive = claims[65534]?.integer.flatMap { (0...Int64(Int32.max)).contains($0) ? Int($0) : nil }
        let end = claims[4].map { $0.integer.flatMap(Int.init(exactly:)) ?? 0 }
        // What cannot be read is never reached.
        from = max(issued, claims[5].map { $0.integer.flatMap(Int.init(exactly:)) ?? .max } ?? issued)
        let start = max(issued, fetched ?? issued)
        until = end ?? (start <= .max / 2 ? start + (timeToLive ?? Self.usualLife) : 0)
        switch message.type {
        case "application/statuslist+cwt":
            guard let list = claims[65533], let bits = list["bits"]?.integer, [1, 2, 4, 8].contains(bits),
                let packed = list["lst"]?.bytes
            else { throw .malformed("the status list has no values") }
            object = .statusList
            content = .values(bits: Int(bits), packed: packed)
        case "application/identifierlist+cwt":
            guard let identifiers = claims[65530]?["identifiers"]?.map else {
                throw .malformed("the identifier list has no identifiers")
            }
            guard end != nil else { throw .malformed("the identifier list does not say when it ends") }
            let names = identifiers.compactMap(\.key.bytes)
            guard names.count == identifiers.count else { throw .malformed("an identifier is no byte string") }
            object = .identifierList
            content = .identifiers(Set(names))
        default: throw .malformed("it is no status list and no identifier list")
        }
    }

    /// Whether the list counts, or has counted.
    func isOut(at time: Int) -> Bool { from <= time }

    /// Whether the list counts.
    package func isCurrent(at time: Int) -> Bool { isOut(at: time) && time <= until }

    /// Whether the list is of the kind that has such places.
    func has(_ place: MobileSecurityObject.Status.Place) -> Bool {
        switch (content, place) {
        case (.identifiers, .identifier), (.values, .index): true
        case (.identifiers, .index), (.values, .identifier): false
        }
    }

    /// The certificate of the signer, if the signature is right.
    func signer() -> DocumentCertificate? {
        guard let leaf = message.certificates.first, let certificate = try? DocumentCertificate(leaf),
            case .elliptic(let key)? = try? certificate.publicKey, (try? message.verify(with: key)) == true
        else { return nil }
        return certificate
    }

    /// Whether an authority that is trusted for any document has certified the signer of the list. What a list says about
    /// a document counts only if this authority is that of the document, too.
    /// - Parameters:
    ///   - anchors: the authorities.
    ///   - time: seconds since 1970.
    /// - Returns: what is known of the signer; nil: the signature is wrong.
    package func check(by anchors: DocumentAnchors, at time: Int) -> AuthorityCheck? {
        guard let signer = signer() else { return nil }
        let claim = SignedData.Claim(certificate: signer)
        return anchors.judge(claim, as: object, countries: [signer.subject.country ?? ""], at: time)
    }

    /// Returns the authority of the signer, which `check` finds.
    /// - Throws: `Malformed` with the reason if none has certified it.
    @discardableResult
    package func judge(by anchors: DocumentAnchors, at time: Int) throws(Malformed) -> DocumentCertificate? {
        guard let check = check(by: anchors, at: time) else { throw DocumentAnchors.wrongSignature }
        if let fault = check.fault { throw fault }
        return check.issuer
    }

    /// What the list says about a place; nil if the list does not have it, or is of the other kind.
    func value(at place: MobileSecurityObject.Status.Place) -> Value? {
        switch (content, place) {
        case (.identifiers(let identifiers), .identifier(let id)): identifiers.contains(id) ? .revoked : .valid
        case (.values(let bits, let packed), .index(let index)): Self.value(index, bits: bits, packed)
        case (.identifiers, .index), (.values, .identifier): nil
        }
    }

    /// Values begin with the least significant bits of a byte. Token Status List 4.1 and 7.1.
    private static func value(_ index: UInt64, bits: Int, _ packed: [UInt8]) -> Value? {
        let perByte = UInt64(8 / bits)
        guard index / perByte < maximumUnpacked, let byte = byte(Int(index / perByte), of: packed) else { return nil }
        switch Int(byte) >> (Int(index % perByte) * bits) & ((1 << bits) - 1) {
        case 0: return .valid
        case 1: return .revoked
        default: return .suspended
        }
    }

    /// One byte of what is packed; nil also if the rest cannot be unpacked, or its check sum is wrong.
    private static func byte(_ position: Int, of packed: [UInt8]) -> UInt8? {
        var found: UInt8?
        let isWhole = unpack(packed) { start, part in
            if (start..<start + part.count).contains(position) { found = part[part.startIndex + position - start] }
        }
        return isWhole ? found : nil
    }

    /// Whether the values can be read.
    package var isReadable: Bool {
        if case .values(_, let packed) = content { Self.unpack(packed) { _, _ in } } else { true }
    }

    /// Whether everything that another list says is revoked is so here.
    package func revokesAll(of other: MdocStatusList) -> Bool {
        switch (content, other.content) {
        case (.identifiers(let own), .identifiers(let others)): return own.isSuperset(of: others)
        case (.values(let bits, let packed), .values(let otherBits, let otherPacked)):
            var own: [UInt8] = []
            var others: [UInt8] = []
            guard bits == otherBits, Self.unpack(packed, { own += $1 }),
                Self.unpack(otherPacked, { others += $1 }), own.count >= others.count
            else { return false }
            let places = stride(from: 0, to: 8, by: bits)
            let mask = UInt8((1 << bits) - 1)
            return zip(own, others).allSatisfy { own, other in
                own == other
                    || places.allSatisfy { place in
                        let (new, old) = (own >> place & mask, other >> place & mask)
                        return old == 0 || new == old || new == 1
                    }
            }
        case (.identifiers, .values), (.values, .identifiers): return false
        }
    }

    /// Gives away what is packed part by part, with the place of each. The C function is inflate.
    /// - Returns: false if a part cannot be unpacked, the check sum is wrong, or there is too much.
    private static func unpack(_ packed: [UInt8], _ take: (Int, ArraySlice<UInt8>) -> Void) -> Bool {
        var stream = z_stream()
        guard inflateInit_(&stream, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size)) == Z_OK else { return false }
        defer { inflateEnd(&stream) }
        var input = packed
        var window = [UInt8](repeating: 0, count: 1 << 15)
        return input.withUnsafeMutableBufferPointer { input in
            stream.next_in = input.baseAddress
            stream.avail_in = uInt(input.count)
            var start = 0
            while start < maximumUnpacked {
                let (result, count) = window.withUnsafeMutableBufferPointer { window in
                    stream.next_out = window.baseAddress
                    stream.avail_out = uInt(window.count)
                    let result = inflate(&stream, Z_NO_FLUSH)
                    return (result, window.count - Int(stream.avail_out))
                }
                guard result == Z_OK || result == Z_STREAM_END else { return false }
                take(start, window[..<count])
                if result == Z_STREAM_END { return true }
                guard count > 0 else { return false }
                start += count
            }
            return false
        }
    }
}
