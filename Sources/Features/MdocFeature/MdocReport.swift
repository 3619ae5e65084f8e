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

    /// At least the bytes of the message, because memory that grows is not wiped. The phone decides about the length of
    /// names and values.
    var secretCapacity: Int {
        outcome.results.reduce(16_384) { length, result in
            let authority = result.checks.authority
            let texts = [result.docType, authority.signer, authority.authority, result.checks.signature.algorithm]
            // The authority is `issuer`, too.
            let names = texts.compactMap(\.self) + [authority.authority ?? ""] + result.withheld + result.unasked
            return result.items.reduce(length + 4096 + names.reduce(0) { $0 + MdocValue.length(of: $1) }) {
                length,
                item in
                let raw = request.wantsRaw ? item.value.withEncoded { $0.count * 4 / 3 + 8 } : 0
                let words = 2 * (MdocValue.length(of: item.name) + MdocValue.length(of: item.namespace)) + 8
                return length + words + MdocValue.length(of: item.value) + raw
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
                        MdocValue.write(item.value, isPortrait: item.name == "portrait", to: &object)
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
            if !authority.unusableLists.isEmpty { $0.member("unusableLists", authority.unusableLists) }
            if authority.reason == .unknownAuthority {
                let advice = Phrase("import the authority of the issuer: sudo badgectl mdoc anchors import FILE")
                $0.member("advice", advice)
            } else if authority.reason == .unusableList {
                $0.member("advice", authority.advice)
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
