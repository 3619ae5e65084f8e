// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import MobileDocument
import Server
import Text

/// What RUN_READ_MDOC asks for. docs/protocol/mdoc.md.
struct MdocRequest {
    /// Who signs the request.
    enum Identity: Equatable {
        /// The only identity of `[mdoc]`; none without one.
        case only
        case named(String)
        case unsigned
    }

    private static let documentForm = "a list of 1 to 16 objects with docType and items"
    private static let documentCounts = 1...16
    private static let namespaceCounts = 1...16
    private static let elementCounts = 1...128
    private static let nameCounts = 1...MobileDocument.maximumName

    /// The age of `ageOver`; nil: `documents` says what is asked for.
    let ageOver: Int?
    let request: DeviceRequest
    let readerName: String?
    /// The engagement of a QR code.
    let engagement: DeviceEngagement?
    let ways: Set<MdocWay>
    let identity: Identity
    /// Seconds for the holder.
    let timeout: Int
    let wantsRaw: Bool

    @Loop init(_ call: Call) throws(Failure) {
        let arguments = call.arguments
        ageOver = try arguments.optionalNumber("ageOver", 1...99)
        switch (ageOver, arguments.has("documents")) {
        case (_?, true): throw Failure(.wrongArgument, "Parameter 'ageOver' excludes parameter 'documents'")
        case (let age?, false): request = MobileDocument.request(ageOver: age)
        case (nil, _):
            guard let documents = arguments["documents"] else {
                throw arguments.missing("documents", "\(Self.documentForm), unless there is ageOver")
            }
            do throws(MisplacedValue) {
                request = DeviceRequest(documents: try Self.documents(documents))
            } catch {
                throw arguments.wrong("documents", at: error.place, error.form)
            }
        }
        readerName = try arguments.optionalText("reader", 1...255)
        engagement = arguments.has("engagement") ? try Self.engagement(arguments, "engagement") : nil
        let ways = try arguments.words("transports", 1...MdocWay.allCases.count, MdocWay.words)
        self.ways = Set(ways ?? MdocWay.allCases)
        // null and a missing member are not the same here.
        if call.command.value("identity") == .null {
            identity = .unsigned
        } else {
            identity = try arguments.optionalText("identity", Self.nameCounts).map { .named($0) } ?? .only
        }
        timeout = try arguments.optionalNumber("timeout", 10...300) ?? 120
        wantsRaw = try arguments.isSet("raw")
    }

    /// Reads the text of a QR code.
    @Loop static func engagement(_ arguments: Arguments, _ name: StaticString) throws(Failure) -> DeviceEngagement {
        let text = try arguments.text(name, 1...3 * DeviceEngagement.maximumBytes)
        do throws(MdocProblem) {
            return try DeviceEngagement(qr: text)
        } catch .noEngagement(let words) {
            throw arguments.wrong(name, "the text of the QR code of a phone, which begins with mdoc: (\(words))")
        } catch {
            throw Failure(engagement: error)
        }
    }

    // MARK: documents

    /// A place in `documents`, and what must be there.
    private struct MisplacedValue: Error {
        let place: String
        let form: String

        init(_ place: String, _ form: String) { (self.place, self.form) = (place, form) }
    }

    private static func documents(_ json: JSON) throws(MisplacedValue) -> [DeviceRequest.Document] {
        guard let list = json.array, documentCounts.contains(list.count) else {
            throw MisplacedValue("", documentForm)
        }
        var documents: [DeviceRequest.Document] = []
        for (index, entry) in list.enumerated() {
            let document = try document(entry, "[\(index)]")
            guard !documents.contains(where: { $0.docType == document.docType }) else {
                throw MisplacedValue("[\(index)].docType", "another one than those before")
            }
            documents.append(document)
        }
        return documents
    }

    private static func document(_ json: JSON, _ place: String) throws(MisplacedValue) -> DeviceRequest.Document {
        let docType = try name(json["docType"], "\(place).docType")
        guard let members = json["items"]?.members, namespaceCounts.contains(members.count) else {
            throw MisplacedValue("\(place).items", "an object with 1 to 16 namespaces")
        }
        var namespaces: [DeviceRequest.Namespace] = []
        for member in members {
            guard let name = text(.string(member.key)), !namespaces.contains(where: { $0.name == name }) else {
                throw MisplacedValue("\(place).items", "an object with names of 1 to 255 bytes, each once")
            }
            let elements = try elements(member.value, "\(place).items.\(name)")
            namespaces.append(DeviceRequest.Namespace(name: name, elements: elements))
        }
        return DeviceRequest.Document(docType: docType, namespaces: namespaces)
    }

    private static func elements(_ json: JSON, _ place: String) throws(MisplacedValue) -> [DeviceRequest.Element] {
        guard let list = json.array, elementCounts.contains(list.count) else {
            throw MisplacedValue(place, "a list of 1 to 128 objects with name")
        }
        var names: Set<String> = []
        var elements: [DeviceRequest.Element] = []
        for (index, entry) in list.enumerated() {
            let place = "\(place)[\(index)]"
            let name = try name(entry["name"], "\(place).name")
            guard names.insert(name).inserted else {
                throw MisplacedValue("\(place).name", "another one than those before")
            }
            switch entry["retain"] {
            case nil, .null: elements.append(DeviceRequest.Element(name: name))
            case .bool(let isRetained): elements.append(DeviceRequest.Element(name: name, isRetained: isRetained))
            default: throw MisplacedValue("\(place).retain", "true or false")
            }
        }
        return elements
    }

    private static func name(_ json: JSON?, _ place: String) throws(MisplacedValue) -> String {
        guard let name = text(json) else { throw MisplacedValue(place, "a text of 1 to 255 bytes") }
        return name
    }

    private static func text(_ json: JSON?) -> String? {
        guard let text = json?.string, nameCounts.contains(text.utf8.count), !text.utf8.contains(0) else { return nil }
        return text
    }
}
