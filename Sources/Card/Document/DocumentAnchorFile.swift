// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
package import Text

/// What a file with authorities of documents contains, recognised by its content and not by its name.
package enum DocumentAnchorFile: Sendable, Equatable {
    case certificate(DocumentCertificate)
    case revocationList(RevocationList)
    case masterList(MasterList)
    /// A signed list of defects.
    case defectList(SignedData)
    case collection(Collection)

    /// A file with many things.
    package struct Collection: Sendable, Equatable {
        package var files: [DocumentAnchorFile] = []
        /// How many entries cannot be read, and why the first one cannot.
        package var malformed = 0
        package var firstFault: Malformed?
        /// Why the first entry that is named as a revocation list cannot be read.
        package var listFault: Malformed?
        /// Whether whoever has put the file there has chosen what is in it. The export of a directory brings no authority
        /// of its own: anybody may have sent it.
        package let isChosen: Bool

        /// Reads each entry; one that cannot be read hides no others.
        init(_ entries: [[UInt8]?], isChosen: Bool) {
            self.isChosen = isChosen
            for entry in entries { add(entry, isNamedList: false) }
        }

        /// Reads each object of a file in PEM. An object that has lost a line may have been a list.
        init(_ contents: PEM.Contents) {
            isChosen = true
            for object in contents.objects { add(object.der, isNamedList: object.label == PEM.revocationListLabel) }
            guard !contents.damaged.isEmpty else { return }
            let fault = Malformed(Phrase("a line with -----BEGIN or -----END is damaged or missing"))
            malformed += contents.damaged.count
            firstFault = firstFault ?? fault
            if contents.mayHideList { listFault = listFault ?? fault }
        }

        /// Reads each object of a file in DER. Bytes that begin no object, such as a line feed, are no list.
        init(objects: [[UInt8]]) {
            isChosen = true
            for object in objects {
                add(object, isNamedList: object.first == 0x30 && DocumentAnchorFile.mayRevoke(object))
            }
        }

        private mutating func add(_ entry: [UInt8]?, isNamedList: Bool) {
            do throws(Malformed) {
                guard let entry else { throw Malformed(Phrase("it is not base64")) }
                files.append(try .single(entry))
            } catch {
                malformed += 1
                if firstFault == nil { firstFault = error }
                if isNamedList, listFault == nil { listFault = error }
            }
        }
    }

    private static let unknown = Malformed(Phrase("it is no certificate and no list"))

    /// Whether the file has more than one thing.
    var isList: Bool {
        switch self {
        case .certificate, .revocationList: false
        case .masterList, .defectList, .collection: true
        }
    }

    /// The maximum length of a file in bytes: a directory with all certificates.
    package static let maximumLength = 128 << 20

    /// Reads a file in base64, in DER or PEM with any number of objects, a collection of certificates (p7b), or an export
    /// of a directory (LDIF).
    package init(_ bytes: [UInt8]) throws(Malformed) {
        if bytes.starts(with: Self.zipArchive) {
            throw Malformed(Phrase("it is a zip archive: unpack it, and name the files in it"))
        }
        if bytes.first == 0x30 {
            let objects = Self.objects(bytes)
            self = objects.count > 1 ? .collection(Collection(objects: objects)) : try Self.binary(bytes)
            return
        }
        let contents = PEM.contents(of: bytes)
        if contents.objects.count == 1, contents.damaged.isEmpty, let der = contents.objects[0].der {
            self = try Self.binary(der)
        } else if !contents.objects.isEmpty {
            self = .collection(Collection(contents))
        } else if let values = DirectoryExport.values(of: bytes) {
            guard !values.isEmpty else {
                throw Malformed(Phrase("the directory has no certificate and no list"))
            }
            self = .collection(Collection(values.map(\.content), isChosen: false))
        } else {
            let digits = bytes.filter { $0 > 0x20 }
            guard let der = Base64.standard.decode(String(decoding: digits, as: UTF8.self)) else { throw Self.unknown }
            self = try Self.binary(der)
        }
    }

    private static let zipArchive: [UInt8] = [0x50, 0x4B, 0x03, 0x04]

    /// The maximum length of one object. Each attempt to read a longer one would only copy it.
    private static let maximumObject = 1 << 24
    private static let tooLong = Malformed(Phrase("one certificate or list may have at most 16 MiB"))

    /// How many objects a file in DER may have. What follows counts as one that cannot be read.
    private static let maximumObjects = 4096

    /// The objects of a file in DER, one after the other, and what follows them.
    private static func objects(_ bytes: [UInt8]) -> [[UInt8]] {
        var reader = BERReader(bytes)
        var objects: [[UInt8]] = []
        while objects.count < maximumObjects, !reader.isAtEnd {
            let rest = reader.remainder
            guard (try? reader.next()) != nil else { return objects + [Array(rest.prefix(maximumObject))] }
            objects.append(Array(rest.dropLast(reader.remainder.count)))
        }
        return reader.isAtEnd ? objects : objects + [Array(reader.remainder.prefix(maximumObject))]
    }

    private static func binary(_ bytes: [UInt8]) throws(Malformed) -> DocumentAnchorFile {
        guard bytes.count <= maximumObject else { throw tooLong }
        if isMessage(bytes), let bag = SignedData.bag(bytes) { return .collection(Collection(bag, isChosen: true)) }
        return try single(bytes)
    }

    /// Whether the first member is an object identifier, as in signed messages.
    private static func isMessage(_ bytes: [UInt8]) -> Bool {
        var reader = BERReader(bytes.prefix(8))
        // An indefinite length has one byte.
        return bytes.dropFirst(reader.header()?.count ?? 2).first == 0x06
    }

    private static func single(_ bytes: [UInt8]) throws(Malformed) -> DocumentAnchorFile {
        if isMessage(bytes) {
            guard let signed = try? SignedData(bytes) else { throw unknown }
            switch signed.contentType {
            case DefectList.contentType: return .defectList(signed)
            case MasterList.contentType: return .masterList(try MasterList(bytes))
            default: throw unknown
            }
        }
        if let certificate = try? DocumentCertificate(bytes) { return .certificate(certificate) }
        guard let list = try? RevocationList(bytes) else { throw unknown }
        return .revocationList(list)
    }

    // MARK: Files that cannot be read

    /// The ends of names that say what a file is.
    private static let listSuffixes = [".crl", ".defects"]
    private static let trustSuffixes = [".cer", ".crt", ".ml"]

    /// Whether a file that cannot be read may have a revocation list or a defect list: by the end of its name, or else by
    /// its beginning. A certificate or a master list that is missing brings no trust, and text is no list.
    /// `content`: nil if it is not known.
    static func mayRevoke(_ name: String, _ content: [UInt8]?) -> Bool {
        let name = name.lowercased()
        if listSuffixes.contains(where: name.hasSuffix) { return true }
        if trustSuffixes.contains(where: name.hasSuffix) { return false }
        guard let content, let first = content.first else { return true }
        guard !content.starts(with: zipArchive) else { return false }
        if first == 0x30 || !PEM.isText(content) { return mayRevoke(content) }
        let contents = PEM.contents(of: content)
        if contents.mayHideList { return true }
        return contents.objects.contains { object in
            object.label == PEM.revocationListLabel
                || object.label != PEM.certificateLabel && object.der.map { mayRevoke($0) } ?? false
        }
    }

    /// Whether the beginning of DER is neither that of a certificate nor that of a master list.
    private static func mayRevoke(_ bytes: [UInt8]) -> Bool {
        if isMessage(bytes) {
            let type = MasterList.contentType
            let head = bytes.prefix(128)
            return !head.indices.contains { head[$0...].starts(with: type) }
        }
        var outer = BERReader(bytes.prefix(8))
        guard let start = outer.header()?.count else { return true }
        var inner = BERReader(bytes.dropFirst(start).prefix(8))
        guard let length = inner.header()?.count else { return true }
        // The version of a certificate; lists have a number or an algorithm here.
        return bytes.dropFirst(start + length).first != 0xA0
    }

    /// The country in the name of a file that an import has written; nil if it has none.
    static func country(ofName name: String) -> String? {
        let letters = Array(name.utf8.prefix(3))
        guard letters.count == 3, letters[2] == UInt8(ascii: "-"),
            letters[..<2].allSatisfy({ (0x41...0x5A).contains($0) })
        else { return nil }
        let country = String(decoding: letters[..<2], as: UTF8.self)
        return country == "XX" ? nil : country
    }
}
