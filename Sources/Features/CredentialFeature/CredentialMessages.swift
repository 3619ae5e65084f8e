// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID
import Server
import Taps
import Text
import Vault

/// CREDENTIALS: whether this client receives CREDENTIAL.
struct CredentialsMessage: Message {
    static let name: StaticString = "CREDENTIALS"
    let isWatching: Bool
    let isValidated: Bool
    let issuers: Int
    var error: Phrase?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        if let error { object.member("error", error) }
        object.member("watching", isWatching)
        object.member("validated", isValidated)
        object.member("issuers", issuers)
    }
}

/// CREDENTIAL: what a card that was put on a reader has shown.
///
/// A key without proof is not reported, so that no client accepts it as a credential.
struct CredentialMessage: Message {
    static let name: StaticString = "CREDENTIAL"
    /// The number of the tap since badged started: 1, 2, ...
    let number: Int
    /// Milliseconds since 1970.
    let time: Int64
    /// Milliseconds of CLOCK_BOOTTIME.
    let uptime: Int64
    let reader: String
    let report: TapReport
    /// Whether the allow list has the key; nil: there is no list.
    let isListed: Bool?

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("number", number)
        object.member("time", time)
        object.member("uptime", uptime)
        object.member("reader", reader)
        object.member("protocol", report.technology)
        object.member("verified", report.reason == nil)
        if let reason = report.reason { object.member("reason", reason) }
        if case .tag(let tag, let ndef) = report.result {
            object.object("tag") { write(tag, ndef, to: &$0) }
        }
        if case .raw(let read) = report.result {
            object.object("raw") { raw in
                raw.member("bits", read.bits)
                raw.member("data", Hex.encode(read.data))
                raw.member("format", read.format)
            }
        }
        guard case .proven(let proven) = report.result else { return }
        if let phase = proven.phase { object.member("phase", phase) }
        if let isListed { object.member("listed", isListed) }
        object.object("numbers") { numbers in
            let views = CredentialNumber.views(of: proven.key.uncompressed)
            for number in views {
                numbers.key("bits\(number.bits)" as String)
                numbers.string(number.hex)
            }
            numbers.member("decimal64", views.first { $0.bits == 64 }?.decimal)
        }
        object.member("publicKey", Hex.encode(proven.key.uncompressed))
        if let (certificate, problem) = proven.certificate {
            object.object("certificate") { write(certificate, problem, to: &$0) }
        } else {
            object.member("certificate", JSON.null)
        }
        object.member("transaction", Hex.encode(proven.transaction))
    }

    private func write(_ tag: Tag, _ ndef: TapReport.NDEF, to object: inout JSONWriter) {
        object.member("uid", Hex.encode(tag.uid))
        object.member("type", tag.type.rawValue)
        object.member("random", tag.isRandom)
        switch ndef {
        case .notRead: break
        case .unreadable: object.member("ndef", JSON.null)
        case .message(let message):
            object.array("ndef", message.records) { array, record in
                array.object { entry in
                    switch record {
                    case .text(let text, let language):
                        entry.member("type", "text")
                        entry.member("text", text)
                        entry.member("language", language)
                    case .uri(let uri):
                        entry.member("type", "uri")
                        entry.member("uri", uri)
                    case .other(let name):
                        entry.member("type", "other")
                        entry.member("name", name)
                    }
                }
            }
        }
    }

    /// The extensions are written only for a valid certificate, because anybody can make an invalid one.
    private func write(_ certificate: PKOCCertificate, _ problem: PKOCProblem?, to object: inout JSONWriter) {
        object.member("state", problem?.rawValue ?? "valid")
        object.member("issuer", Self.text(certificate.issuerReference))
        object.member("subject", Self.text(certificate.subjectReference))
        object.member("from", certificate.from.text)
        object.member("to", certificate.to.text)
        guard problem == nil else { return }
        object.array("extensions", certificate.extensions) { array, entry in
            array.object {
                $0.member("identifier", Hex.encode(entry.identifier))
                $0.member("value", Hex.encode(entry.value))
            }
        }
    }

    private static func text(_ reference: [UInt8]) -> String { String(decoding: reference, as: UTF8.self) }
}
