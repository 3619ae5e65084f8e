// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import EID
import Readers
import Text

/// The content of a card, made from a description and checked.
struct CardContent {
    private(set) var files = CardFileSystem()
    private(set) var keys: [Int: CardKey] = [:]
    let algorithms: CardAlgorithms
    let trustPoint: CertificateHolder

    /// Checks the description and makes the content.
    /// - Throws: `Malformed`, which names the entry.
    init(_ description: VirtualEIDDescription) throws(Malformed) {
        files = try Self.files(description.files)
        if description.files == nil, description.keys == nil {
            keys = try Self.defaultKeys.get()
        } else {
            for (index, key) in (description.keys ?? []).enumerated() {
                guard let content = key.content.take() else {
                    throw Malformed("keys[\(index)].content was used before")
                }
                guard (1...255).contains(key.id) else { throw Malformed("keys[\(index)].id is not from 1 to 255") }
                keys[key.id] = try Self.key(content, "keys[\(index)].content")
            }
        }
        algorithms = CardAlgorithms(files)
        trustPoint = try Malformed.at("the trust point is not a self-signed CV certificate") { () throws(Malformed) in
            guard let given = description.trustPoint else { return try Self.defaultTrustPoint.get() }
            return try CertificateHolder(trustPoint: given)
        }
        try Self.check(description)
    }

    private static func files(_ given: [VirtualEIDDescription.File]?) throws(Malformed) -> CardFileSystem {
        guard let given else { return defaultFiles }
        var files = mandatoryFiles
        for (index, file) in given.enumerated() {
            guard (1...30).contains(file.shortFileID) else {
                throw Malformed("files[\(index)].shortFileId is not from 01 to 1E")
            }
            // READ BINARY has no larger offsets.
            guard file.content.count <= 0xFFFF else {
                throw Malformed("files[\(index)].content is longer than 65535 bytes")
            }
            files.add(file)
        }
        return files
    }

    // Content that all cards share is made once.

    private static let mandatoryFiles = CardFileSystem(DefaultCard.mandatoryFiles)

    private static let defaultFiles: CardFileSystem = {
        var files = CardFileSystem(DefaultCard.mandatoryFiles + DefaultCard.dataGroups)
        files.add(.init(fileID: 0x010E, shortFileID: 0x0E, content: DefaultCard.signatureImage))
        return files
    }()

    /// The trust point of the default card. Its signature is verified once.
    private static let defaultTrustPoint = Result<CertificateHolder, Malformed> { () throws(Malformed) in
        try CertificateHolder(trustPoint: Hex.decode(DefaultCard.cvca) ?? [])
    }

    /// The keys of the default card. Parsing a key takes as long as using it.
    private static let defaultKeys = Result<[Int: CardKey], Malformed> { () throws(Malformed) in
        var keys: [Int: CardKey] = [:]
        for entry in DefaultCard.keys { keys[entry.id] = try key(Secret(digits: entry.content), "key") }
        return keys
    }

    private static func key(_ content: borrowing Secret, _ name: String) throws(Malformed) -> CardKey {
        guard let key = try? ECPrivateKey(pkcs8: content) else {
            throw Malformed("\(name) is not a PKCS#8 key on a standardized elliptic curve")
        }
        return CardKey(key)
    }

    private static func check(_ description: VirtualEIDDescription) throws(Malformed) {
        guard (0...CardPasswords.tries).contains(description.retryCounter) else {
            throw Malformed("card.retryCounter is not from 0 to 3")
        }
        guard (0...10).contains(description.pukCounter) else { throw Malformed("card.pukCounter is not from 0 to 10") }
    }
}

extension CardPasswords {
    static let pinLength = 6
    private static let transportLength = 5
    static let canLength = 6
    private static let pukLength = 10

    /// Takes the passwords out of a description; a missing password has its default value.
    init(_ description: VirtualEIDDescription) throws(Malformed) {
        let transport = description.transportPIN
        let pin =
            transport == nil
            ? try Self.digits(description.pin, default: "123456", Self.pinLength, "card.pin")
            : try Self.digits(transport, default: "", Self.transportLength, "card.transportPin")
        self.init(
            pin: pin,
            can: try Self.digits(description.can, default: "500540", Self.canLength, "card.can"),
            puk: try Self.digits(description.puk, default: "9876543210", Self.pukLength, "card.puk"),
            mrz: Secret(DefaultCard.machineReadableZone.utf8),
            retryCounter: description.retryCounter,
            pukCounter: description.pukCounter,
            isDeactivated: description.deactivated,
            isTransport: transport != nil
        )
    }

    private static func digits(
        _ box: SecretBox?,
        default text: StaticString,
        _ count: Int,
        _ name: String
    ) throws(Malformed) -> Secret {
        guard let box else { return Secret(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)) }
        guard let secret = box.take() else { throw Malformed("\(name) was used before") }
        guard secret.count == count, secret.withBytes({ $0.allSatisfy { (0x30...0x39).contains($0) } }) else {
            throw Malformed("\(name) is not \(count) digits")
        }
        return secret
    }
}

extension CardFileSystem {
    fileprivate init(_ files: [DefaultCard.File]) {
        self.init()
        for file in files {
            add(.init(fileID: file.fileID, shortFileID: file.shortFileID, content: Hex.decode(file.content) ?? []))
        }
    }
}

extension Secret {
    fileprivate init(digits: String) { self.init(Hex.decode(digits) ?? []) }
}

/// The files of one card by their short identifiers. A file identifier stands for a short identifier.
struct CardFileSystem {
    /// EF.CardAccess.
    static let cardAccess: UInt8 = 0x1C
    /// EF.CardSecurity.
    static let cardSecurity: UInt8 = 0x1D

    private var contents: [UInt8: [UInt8]] = [:]
    private var shortIDs: [UInt16: UInt8] = [:]

    /// Adds a file, or replaces the one with the same short identifier.
    mutating func add(_ file: VirtualEIDDescription.File) {
        contents[file.shortFileID] = file.content
        shortIDs[file.fileID] = file.shortFileID
    }

    func shortID(of fileID: UInt16) -> UInt8? { shortIDs[fileID] }

    /// The content of a file; nil when there is none.
    subscript(shortID: UInt8) -> [UInt8]? { contents[shortID] }

    /// Replaces the whole content of a file that exists.
    mutating func replace(_ shortID: UInt8, with content: [UInt8]) {
        guard contents[shortID] != nil else { return }
        contents[shortID] = content
    }
}
