// SPDX-License-Identifier: GPL-3.0-or-later
import Document
import FoundationEssentials
import ISO7816
import ReadersVirtual
import TestSupport
import Testing
import Text
import VirtualDocument

/// The generated documents of an invented country. Tests/Vectors/documents/README.md.
struct DocumentCatalogue: Sendable {
    struct Entry: Sendable, CustomTestStringConvertible {
        let name: String
        let card: JSON
        let expect: JSON
        let files: [String: [UInt8]]

        var testDescription: String { name }
    }

    let documents: [Entry]
    let pki: [String: [UInt8]]
    let blobs: [String: [UInt8]]

    /// 2026-11-25, when the documents were made.
    static let time = 1_795_608_000

    static let shared = load("catalogue")
    /// More faults, with keys of their own.
    static let more = load("more")
    /// Who has signed: each document with authorities of its own.
    static let trust = load("trust")
    /// Chains, lists, revocations, keys and lengths: each document with authorities of its own.
    static let chains = load("chains")
    /// Documents that are odd and right, with keys of their own.
    static let odd = load("odd")

    private static func load(_ name: String) -> DocumentCatalogue {
        let file = testsFolder.appending(path: "Vectors/documents/\(name).json")
        guard let data = try? Data(contentsOf: file), let json = try? JSON(data) else {
            return DocumentCatalogue(documents: [], pki: [:], blobs: [:])
        }
        var blobs: [String: [UInt8]] = [:]
        for member in json["blobs"]?.members ?? [] {
            blobs[member.key] = member.value.string.flatMap { Base64.standard.decode($0) }
        }
        func files(_ json: JSON?) -> [String: [UInt8]] {
            var files: [String: [UInt8]] = [:]
            for member in json?.members ?? [] { files[member.key] = member.value.string.flatMap { blobs[$0] } }
            return files
        }
        let documents = (json["documents"]?.array ?? []).map {
            Entry(
                name: $0["name"]?.string ?? "",
                card: $0["card"] ?? .null,
                expect: $0["expect"] ?? .null,
                files: files($0["files"])
            )
        }
        return DocumentCatalogue(documents: documents, pki: files(json["pki"]), blobs: blobs)
    }

    func document(_ name: String) throws -> Entry { try #require(documents.first { $0.name == name }) }

    func certificate(_ name: String) throws -> DocumentCertificate {
        try DocumentCertificate(try #require(pki["\(name).cer"]))
    }

    /// The authorities, the revocation list and the defects of the country.
    func anchors() throws -> DocumentAnchors {
        var anchors = DocumentAnchors()
        for name in ["csca-0-sha1", "csca-1-rsa", "csca-2-brainpool", "csca-3-pss", "csca-4-same-name"] {
            try anchors.trust(try certificate(name))
        }
        try anchors.add(try RevocationList(try #require(pki["csca-2.crl"])))
        return anchors
    }
}

extension DocumentCatalogue.Entry {
    func description() throws -> VirtualDocumentDescription {
        var description = try VirtualDocumentDescription(card: card)
        description.files = files
        return description
    }

    /// The key that the holder's document has printed.
    var key: AccessKey { AccessKey(information: Secret(Array((card["mrzKey"]?.string ?? "").utf8))) }
    var can: AccessKey { AccessKey(can: Secret(Array((card["can"]?.string ?? "").utf8))) }

    /// The expected result of a check.
    func expected(_ check: String) -> CheckResult? {
        expect["checks"]?[check]?.string.flatMap(CheckResult.init(rawValue:))
    }
}

/// A connection to a virtual card, which counts the commands.
actor VirtualChannel: CardChannel {
    typealias Forgery = @Sendable (_ index: Int, _ command: CommandAPDU, _ answer: ResponseAPDU) -> ResponseAPDU

    private let card: VirtualCard
    private let forge: Forgery
    private(set) var log: [CommandAPDU] = []

    init(_ card: VirtualCard, forge: @escaping Forgery = { _, _, answer in answer }) {
        self.card = card
        self.forge = forge
    }

    func transmit(_ command: CommandAPDU) async throws(CardError) -> ResponseAPDU {
        log.append(command)
        switch await card.exchange(command.bytes) {
        case .answer(let bytes):
            guard let answer = ResponseAPDU(bytes: bytes) else { throw .mute }
            return forge(log.count - 1, command, answer)
        case .mute: throw .mute
        case .removed: throw .removed
        }
    }
}

/// A reading of a document of the catalogue.
struct TestReading {
    var reading: DocumentReading
    let channel: VirtualChannel
    let chip: DocumentChip

    init(
        _ entry: DocumentCatalogue.Entry,
        groups: Set<Int> = [1, 2, 7, 11, 12, 13, 16],
        key: AccessKey? = nil,
        extended: Bool = false,
        policy: DocumentChip.BACPolicy = .whenNoPACE,
        change: (inout VirtualDocumentDescription) -> Void = { _ in },
        forge: @escaping VirtualChannel.Forgery = { _, _, answer in answer }
    ) throws {
        var description = try entry.description()
        change(&description)
        self.key = key ?? entry.key
        channel = VirtualChannel(try description.makeCard(), forge: forge)
        chip = DocumentChip(
            channel: channel,
            key: self.key,
            policy: policy,
            abilities: ReadAbilities(usesExtendedLength: extended)
        )
        reading = DocumentReading(groups: groups)
    }

    let key: AccessKey

    mutating func run(_ anchors: DocumentAnchors? = nil, at time: Int = DocumentCatalogue.time) async throws {
        let anchors = try anchors ?? DocumentCatalogue.shared.anchors()
        try await reading.run(chip, key: key, anchors: anchors, at: time)
    }
}
