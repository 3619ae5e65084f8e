// SPDX-License-Identifier: GPL-3.0-or-later
import Document
import MobileDocument
import Server
import Text

/// MDOC at the end of a reading. docs/protocol/mdoc.md.
///
/// The values are places in the answer of the phone, which are wiped with the last of them.
struct MdocReport: Message {
    static let name: StaticString = "MDOC"
    let isSecret = true
    /// The most bytes of a message that a client gets. docs/protocol.md, Transport.
    static let maximumLength = 1_000_000

    let outcome: ReadMdoc.Outcome
    let request: MdocRequest

    /// That of the worst document.
    var verdict: MdocChecks.Verdict { outcome.results.map(\.verdict).min() ?? .unverified }

    /// Texts may have escapes; bytes are in base64.
    var secretCapacity: Int {
        outcome.results.reduce(16_384) { length, result in
            result.items.reduce(length + 2048 + 64 * (result.withheld.count + result.unasked.count)) { length, item in
                let count = item.value.withEncoded { $0.count }
                let value = item.value.kind == .bytes ? count * 4 / 3 : count * 6
                let raw = request.wantsRaw ? count * 4 / 3 + 512 : 0
                return length + value + raw + 6 * (item.name.utf8.count + item.namespace.utf8.count) + 256
            }
        }
    }

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("success", true)
        object.member("verdict", verdict.rawValue)
        object.member("engagement", outcome.engagement.rawValue)
        object.member("transport", outcome.way.rawValue)
        if let reader = outcome.reader { object.member("reader", reader) }
        if let age = request.ageOver {
            let answer = MdocCheck.answer(over: age, in: outcome.results).map { $0 ? "yes" : "no" } ?? "unknown"
            object.object("age") {
                $0.member("over", age)
                $0.member("answer", answer)
            }
        }
        object.array("documents", outcome.results) { writer, result in
            writer.object { write(result, to: &$0) }
        }
    }

    private func write(_ result: MdocResult, to object: inout JSONWriter) {
        object.member("docType", result.docType)
        object.member("verdict", result.verdict.rawValue)
        if let issuer = result.checks.authority.authority { object.member("issuer", issuer) }
        if let end = result.validUntil { object.member("validUntil", MdocReport.time(end)) }
        object.object("items") { object in
            for namespace in Self.namespaces(of: result) {
                object.key(namespace)
                object.object { object in
                    for item in result.items where item.namespace == namespace {
                        object.key(item.name)
                        Self.write(item.value, isPortrait: item.name == "portrait", to: &object)
                    }
                }
            }
        }
        object.member("withheld", result.withheld)
        object.member("unasked", result.unasked)
        if request.wantsRaw {
            object.object("raw") { object in
                for namespace in Self.namespaces(of: result) {
                    object.key(namespace)
                    object.object { object in
                        for item in result.items where item.namespace == namespace {
                            object.key(item.name)
                            item.value.withEncoded { object.string(Base64.standard.encode($0)) }
                        }
                    }
                }
            }
        }
        object.object("checks") { result.checks.write(to: &$0) }
    }

    /// The namespaces in the order in which they came.
    private static func namespaces(of result: MdocResult) -> [String] {
        result.items.map(\.namespace).reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    /// `YYYY-MM-DDThh:mm:ssZ`.
    private static func time(_ seconds: Int) -> String {
        let second = ((seconds % 86_400) + 86_400) % 86_400
        func digits(_ number: Int) -> String { (number < 10 ? "0" : "") + String(number) }
        return DocumentTime.text(seconds)
            + "T\(digits(second / 3600)):\(digits(second / 60 % 60)):\(digits(second % 60))Z"
    }

    // MARK: Values

    /// Writes a value. Its depth is bounded by `CBOR.Limits`.
    private static func write(_ value: CBOR, isPortrait: Bool = false, to writer: inout JSONWriter) {
        switch value.kind {
        case .text: writer.string(value.text ?? "")
        case .unsigned, .negative: number(value, to: &writer)
        case .bool: writer.bool(value.bool ?? false)
        case .null, .simple: writer.null()
        case .float: float(value.float ?? .nan, to: &writer)
        case .bytes:
            let bytes = value.bytes ?? []
            if isPortrait {
                writer.object { write(DocumentImage(bytes), to: &$0) }
            } else {
                writer.string(Base64.standard.encode(bytes))
            }
        // A date, or another text or number with a meaning.
        case .tag: if let content = value.tagged?.content { write(content, to: &writer) } else { writer.null() }
        case .array:
            writer.beginArray()
            for item in value.array ?? [] { write(item, to: &writer) }
            writer.endArray()
        case .map:
            writer.object { object in
                for (key, value) in value.map ?? [] {
                    object.key(key.text ?? key.integer.map(String.init) ?? Hex.encode(key.encoded))
                    write(value, to: &object)
                }
            }
        }
    }

    private static func number(_ value: CBOR, to writer: inout JSONWriter) {
        if let number = value.integer { return writer.value(.number(String(number))) }
        // A negative number beyond 64 bits has no form here.
        if let number = value.unsigned { writer.value(.number(String(number))) } else { writer.null() }
    }

    private static func float(_ value: Double, to writer: inout JSONWriter) {
        if value.isFinite { writer.value(.number("\(value)")) } else { writer.null() }
    }

    private static func write(_ image: DocumentImage, to object: inout JSONWriter) {
        object.member("format", image.format.rawValue)
        object.member("width", image.width)
        object.member("height", image.height)
        object.member("data", Base64.standard.encode(image.data))
    }
}

extension MdocChecks {
    fileprivate func write(to object: inout JSONWriter) {
        object.object("hashes") {
            $0.member("result", hashes.result.rawValue)
            $0.member("reason", hashes.reason?.rawValue)
        }
        object.object("signature") {
            $0.member("result", signature.result.rawValue)
            $0.member("reason", signature.reason?.rawValue)
            $0.member("algorithm", signature.algorithm)
        }
        object.object("authority") {
            $0.member("result", authority.result.rawValue)
            $0.member("reason", authority.reason?.rawValue)
            $0.member("signer", authority.signer)
            $0.member("authority", authority.authority)
            $0.member("until", authority.until.map(DocumentTime.text))
            $0.member("crl", authority.revocation.rawValue)
            if authority.reason == .unknownAuthority {
                $0.member("advice", "import the authority of the issuer: badgectl mdoc anchors import FILE")
            }
        }
        object.object("device") {
            $0.member("result", device.result.rawValue)
            $0.member("reason", device.reason?.rawValue)
            $0.member("method", device.method?.rawValue)
        }
        object.object("status") {
            $0.member("result", status.result.rawValue)
            $0.member("reason", status.reason?.rawValue)
            $0.member("advice", status.advice)
        }
        object.object("document") {
            $0.member("result", document.result.rawValue)
            $0.member("findings", document.findings.map(\.rawValue))
        }
    }
}
