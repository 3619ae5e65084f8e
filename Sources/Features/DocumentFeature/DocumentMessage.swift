// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import Document
import Server
import Text

/// DOCUMENT at the end of a reading. docs/protocol/documents.md.
///
/// The last owner wipes the files.
final class DocumentMessage: Message {
    static let name: StaticString = "DOCUMENT"
    let isSecret = true
    /// The most bytes of a message that a client gets. docs/protocol.md, Transport.
    static let maximumLength = 1_000_000
    private let reader: String
    private var reading: DocumentReading
    private let request: DocumentRequest
    private let time: Int

    init(reader: String, reading: DocumentReading, request: DocumentRequest, time: Int) {
        self.reader = reader
        self.reading = reading
        self.request = request
        self.time = time
    }

    deinit { reading.wipe() }

    var verdict: DocumentChecks.Verdict { reading.checks.verdict }
    var groupCount: Int { reading.groups.count }

    /// Texts may have escapes; pictures and files are in base64, a picture perhaps twice.
    var secretCapacity: Int {
        reading.files.reduce(16_384) { length, file in
            let isPicture = request.wantsPortrait && file.key == .group(2) || file.key == .group(7)
            let isText = [1, 11, 12, 16].contains { file.key == .group($0) }
            let base64 = file.value.count * 4 / 3 + 64
            return length + (isText ? file.value.count * 6 : 0) + (isPicture ? base64 : 0)
                + (request.wantsRaw ? base64 : 0)
        }
    }

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("success", true)
        object.member("reader", reader)
        object.member("verdict", reading.checks.verdict.rawValue)
        if let access = reading.access { object.object("access") { Self.write(access, to: &$0) } }
        if let zone = reading.zone { object.object("document") { write(zone, to: &$0) } }
        if let person = file(11).flatMap({ try? PersonalDetails($0) }) {
            object.object("person") { Self.write(person, to: &$0) }
        }
        if let issuance = file(12).flatMap({ try? IssuanceDetails($0) }) {
            object.object("issuance") { Self.write(issuance, to: &$0) }
        }
        if let notify = file(16).flatMap({ try? PersonsToNotify($0) }) {
            object.array("notify", notify.persons) { writer, person in
                writer.object { Self.write(person, to: &$0) }
            }
        }
        if request.wantsPortrait, let image = file(2).flatMap({ try? FaceImages($0) })?.images.first {
            object.object("portrait") { Self.write(image, to: &$0) }
        }
        if let image = file(7).flatMap({ try? SignatureImages($0) })?.images.first {
            object.object("signature") { Self.write(image, to: &$0) }
        }
        object.array("groups", reading.groups.sorted { $0.key < $1.key }) { writer, entry in
            writer.object { write(entry.key, entry.value, to: &$0) }
        }
        if request.wantsRaw {
            object.array("files", Self.otherFiles.filter { reading.files[$0] != nil }) { writer, file in
                writer.object { write(file, to: &$0) }
            }
        }
        object.object("checks") { reading.checks.write(to: &$0) }
    }

    /// The files that are no data groups, with which somebody else can check the document again.
    private static let otherFiles: [DocumentFile] = [.cardAccess, .cardSecurity, .com, .sod]

    private func write(_ file: DocumentFile, to object: inout JSONWriter) {
        guard let content = reading.files[file] else { return }
        object.member("file", file.description)
        object.member("bytes", content.count)
        object.member("data", Base64.standard.encode(content))
    }

    private func file(_ group: Int) -> [UInt8]? { reading.files[.group(group)] }

    private func write(_ group: Int, _ state: DocumentReading.GroupState, to object: inout JSONWriter) {
        object.member("group", group)
        object.member("state", state.rawValue)
        guard state == .read, let file = file(group) else { return }
        object.member("bytes", file.count)
        if request.wantsRaw { object.member("data", Base64.standard.encode(file)) }
    }

    private static func write(_ access: DocumentAccess, to object: inout JSONWriter) {
        object.member("protocol", access.method.rawValue)
        if let password = access.password { object.member("password", password.rawValue) }
        guard let parameters = access.parameters else { return }
        let mapping =
            switch parameters.mapping {
            case .generic: "GM"
            case .integrated: "IM"
            case .chipAuthentication: "CAM"
            }
        let cipher =
            switch parameters.cipher {
            case .tripleDES: "3DES"
            case .aes128: "AES-128"
            case .aes192: "AES-192"
            case .aes256: "AES-256"
            }
        object.member("mapping", mapping)
        object.member("parameters", parameters.domain.text)
        object.member("cipher", cipher)
    }

    private func write(_ zone: MachineReadableZone, to object: inout JSONWriter) {
        object.member("type", zone.kind.rawValue)
        object.member("code", zone.code)
        object.member("issuer", zone.issuer)
        object.member("number", zone.number)
        object.member("surname", zone.surname)
        object.member("given", zone.given)
        object.member("nationality", zone.nationality)
        object.member("birth", zone.birthDate(at: time))
        object.member("sex", zone.sex)
        object.member("expiry", zone.expiryDate)
        object.member("optional", zone.optional)
        object.member("mrz", zone.lines)
    }

    private static func write(_ person: PersonalDetails, to object: inout JSONWriter) {
        object.member("fullName", person.fullName)
        object.member("otherNames", person.otherNames)
        object.member("personalNumber", person.personalNumber)
        object.member("birthDate", person.birthDate)
        object.member("birthPlace", person.birthPlace)
        object.member("address", person.address)
        object.member("telephone", person.telephone)
        object.member("profession", person.profession)
        object.member("title", person.title)
        object.member("summary", person.summary)
        object.member("otherDocuments", person.otherDocuments)
        object.member("custody", person.custody)
    }

    private static func write(_ person: PersonsToNotify.Person, to object: inout JSONWriter) {
        object.member("name", person.name)
        object.member("telephone", person.telephone)
        object.member("address", person.address)
        object.member("date", person.date)
    }

    private static func write(_ issuance: IssuanceDetails, to object: inout JSONWriter) {
        object.member("authority", issuance.authority)
        object.member("date", issuance.date)
        object.member("endorsements", issuance.endorsements)
        object.member("tax", issuance.tax)
    }

    private static func write(_ image: DocumentImage, to object: inout JSONWriter) {
        object.member("format", image.format.rawValue)
        object.member("width", image.width)
        object.member("height", image.height)
        object.member("data", Base64.standard.encode(image.data))
    }
}

extension DocumentChecks {
    fileprivate func write(to object: inout JSONWriter) {
        object.object("hashes") {
            $0.member("result", hashes.result.rawValue)
            $0.member("reason", hashes.reason?.rawValue)
            if !hashes.groups.isEmpty { $0.member("groups", hashes.groups) }
        }
        object.object("signature") {
            $0.member("result", signature.result.rawValue)
            $0.member("reason", signature.reason?.rawValue)
            $0.member("algorithm", signature.algorithm)
            $0.member("advice", signature.advice)
        }
        object.object("authority") {
            $0.member("result", authority.result.rawValue)
            $0.member("reason", authority.reason?.rawValue)
            $0.member("signer", authority.signer)
            $0.member("authority", authority.authority)
            $0.member("until", authority.until.map(DocumentTime.text))
            $0.member("crl", authority.revocation.rawValue)
            if !authority.defects.isEmpty { $0.member("defects", authority.defects.map(OID.text)) }
            if !authority.unusableLists.isEmpty { $0.member("unusableLists", authority.unusableLists) }
            $0.member("advice", authority.advice)
            if authority.lacksDocumentType { $0.member("lacksDocumentType", true) }
        }
        object.object("chip") {
            $0.member("result", chip.result.rawValue)
            $0.array("methods", chip.runs) { writer, run in
                writer.object {
                    $0.member("method", run.method.rawValue)
                    $0.member("result", run.result.rawValue)
                    $0.member("reason", run.reason?.rawValue)
                }
            }
        }
        object.object("document") {
            $0.member("result", document.result.rawValue)
            $0.array("findings", document.findings) { writer, finding in
                writer.object { finding.write(to: &$0) }
            }
        }
    }
}

extension ContentCheck.Finding {
    fileprivate func write(to object: inout JSONWriter) {
        let name =
            switch self {
            case .checkDigit: "checkDigit"
            case .expired: "expired"
            case .mrzDiffers: "mrzDiffers"
            case .accessDiffers: "accessDiffers"
            case .malformed: "malformed"
            case .comDiffers: "comDiffers"
            case .imageUnknown: "imageUnknown"
            case .labelDiffers: "labelDiffers"
            case .unsupported: "unsupported"
            case .noAccessControl: "noAccessControl"
            }
        object.member("finding", name)
        if case .checkDigit(let field) = self { object.member("field", field.rawValue) }
    }
}
