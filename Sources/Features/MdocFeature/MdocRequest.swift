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

    private static let documentForm = "a list of 1 to 16 objects with docType and items, each docType once"
    private static let documentCounts = 1...16
    private static let namespaceCounts = 1...16
    private static let elementCounts = 1...128
    private static let nameCounts = 1...255

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
            let documents = try arguments.required("documents", Self.documentForm, Self.documents)
            request = DeviceRequest(documents: documents)
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

    private static func documents(_ json: JSON) -> [DeviceRequest.Document]? {
        guard let list = json.array, documentCounts.contains(list.count) else { return nil }
        let documents = list.compactMap(document)
        guard documents.count == list.count, Set(documents.map(\.docType)).count == list.count else { return nil }
        return documents
    }

    private static func document(_ json: JSON) -> DeviceRequest.Document? {
        guard let docType = name(json["docType"]), let members = json["items"]?.members,
            namespaceCounts.contains(members.count)
        else { return nil }
        let namespaces = members.compactMap { member -> DeviceRequest.Namespace? in
            guard let name = name(.string(member.key)), let list = member.value.array,
                elementCounts.contains(list.count)
            else { return nil }
            let elements = list.compactMap(element)
            guard elements.count == list.count, Set(elements.map(\.name)).count == list.count else { return nil }
            return DeviceRequest.Namespace(name: name, elements: elements)
        }
        guard namespaces.count == members.count, Set(namespaces.map(\.name)).count == members.count else { return nil }
        return DeviceRequest.Document(docType: docType, namespaces: namespaces)
    }

    private static func element(_ json: JSON) -> DeviceRequest.Element? {
        guard let name = name(json["name"]) else { return nil }
        switch json["retain"] {
        case nil, .null: return DeviceRequest.Element(name: name)
        case .bool(let isRetained): return DeviceRequest.Element(name: name, isRetained: isRetained)
        default: return nil
        }
    }

    private static func name(_ json: JSON?) -> String? {
        guard let text = json?.string, nameCounts.contains(text.utf8.count), !text.utf8.contains(0) else { return nil }
        return text
    }
}
