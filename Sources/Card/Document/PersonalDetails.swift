// SPDX-License-Identifier: GPL-3.0-or-later
import ISO7816
package import Text

/// Additional details of the holder: DG11. ICAO 9303-10 4.7.11.
package struct PersonalDetails: Sendable, Equatable {
    package private(set) var fullName: String?
    package private(set) var otherNames: [String] = []
    package private(set) var personalNumber: String?
    /// YYYY-MM-DD.
    package private(set) var birthDate: String?
    package private(set) var birthPlace: [String] = []
    package private(set) var address: [String] = []
    package private(set) var telephone: String?
    package private(set) var profession: String?
    package private(set) var title: String?
    package private(set) var summary: String?
    package private(set) var otherDocuments: [String] = []
    package private(set) var custody: String?

    /// Reads the file. Unknown objects are ignored; the list of tags is not needed.
    /// - Throws: `Malformed`.
    package init(_ file: [UInt8]) throws(Malformed) {
        for object in try TextGroup.objects(of: file, 0x6B) {
            let value = object.value
            switch object.tag {
            case 0x5F0E: fullName = DocumentField.name(value)
            case 0x5F0F: otherNames.append(DocumentField.name(value))
            case 0x5F10: personalNumber = DocumentField.decode(value)
            case 0x5F2B: birthDate = DocumentField.date(value)
            case 0x5F11: birthPlace = DocumentField.parts(value)
            case 0x5F42: address = DocumentField.parts(value)
            case 0x5F12: telephone = DocumentField.decode(value)
            case 0x5F13: profession = DocumentField.decode(value)
            case 0x5F14: title = DocumentField.decode(value)
            case 0x5F15: summary = DocumentField.decode(value)
            case 0x5F17: otherDocuments = DocumentField.parts(value)
            case 0x5F18: custody = DocumentField.decode(value)
            default: continue
            }
        }
    }
}

/// Additional details of the document: DG12. ICAO 9303-10 4.7.12.
package struct IssuanceDetails: Sendable, Equatable {
    package private(set) var authority: String?
    /// YYYY-MM-DD.
    package private(set) var date: String?
    package private(set) var endorsements: String?
    package private(set) var tax: String?

    /// Reads the file.
    /// - Throws: `Malformed`.
    package init(_ file: [UInt8]) throws(Malformed) {
        for object in try TextGroup.objects(of: file, 0x6C) {
            let value = object.value
            switch object.tag {
            case 0x5F19: authority = DocumentField.decode(value)
            case 0x5F26: date = DocumentField.date(value)
            case 0x5F1B: endorsements = DocumentField.decode(value)
            case 0x5F1C: tax = DocumentField.decode(value)
            default: continue
            }
        }
    }
}

/// Persons to notify: DG16. ICAO 9303-10 4.7.16.
package struct PersonsToNotify: Sendable, Equatable {
    package struct Person: Sendable, Equatable {
        /// YYYY-MM-DD: when the entry was made.
        package fileprivate(set) var date: String?
        package fileprivate(set) var name: String?
        package fileprivate(set) var telephone: String?
        package fileprivate(set) var address: [String] = []
    }

    package let persons: [Person]

    /// Reads the file.
    /// - Throws: `Malformed`.
    package init(_ file: [UInt8]) throws(Malformed) {
        let object = try BERTLV(startOf: file)
        guard object.tag == 0x70 else { throw .invalidTag }
        var persons: [Person] = []
        for entry in BERTLV.readable(object.value).prefix(17) where (0xA1...0xAF).contains(entry.tag) {
            var person = Person()
            for field in BERTLV.readable(entry.value) {
                switch field.tag {
                case 0x5F50: person.date = DocumentField.date(field.value)
                case 0x5F51: person.name = DocumentField.name(field.value)
                case 0x5F52: person.telephone = DocumentField.decode(field.value)
                case 0x5F53: person.address = DocumentField.parts(field.value)
                default: continue
                }
            }
            persons.append(person)
        }
        self.persons = persons
    }
}

/// The form of DG11 and DG12: a list of tags, then objects, some in a counted template A0. An object that cannot be read
/// does not hide those before it, nor one in a template those after the template.
private enum TextGroup {
    /// The maximum number of objects. The standard names 13.
    private static let maximumCount = 128

    static func objects(of file: [UInt8], _ tag: UInt32) throws(Malformed) -> [BERTLV] {
        let group = try BERTLV(startOf: file)
        guard group.tag == tag else { throw .invalidTag }
        var objects: [BERTLV] = []
        for object in BERTLV.readable(group.value).prefix(maximumCount) {
            if object.tag == 0xA0 {
                objects += BERTLV.readable(object.value).prefix(maximumCount)
            } else {
                objects.append(object)
            }
        }
        return Array(objects.prefix(maximumCount))
    }
}

/// The machine readable zone of DG1. ICAO 9303-10 4.7.1.
extension MachineReadableZone {
    /// Reads the file; nil for a wrong structure, for a zone that cannot be read, and for two of them.
    package init?(group file: [UInt8]) {
        guard let object = try? BERTLV(startOf: file), object.tag == 0x61, let objects = try? object.children,
            let zone = objects.first(where: { $0.tag == 0x5F1F }), objects.count(where: { $0.tag == 0x5F1F }) == 1,
            let read = try? MachineReadableZone(zone.value)
        else { return nil }
        self = read
    }
}
