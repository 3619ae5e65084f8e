// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Foundation
import Host
import Taps
import TestSupport
import Testing
import Text
import Vault

@testable import CredentialFeature

/// A file with a list, in a folder of its own.
private final class ListFile {
    let path: String
    private let folder: URL

    init(_ text: String) throws {
        folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        path = folder.appending(path: "list").path
        try replace(by: text)
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    /// Exchanges the file by a rename.
    func replace(by text: String) throws {
        let new = path + ".new"
        try Data(text.utf8).write(to: URL(filePath: new))
        chmod(new, 0o644)
        #expect(rename(new, path) == 0)
    }
}

@Suite("The numbers of taps, and the allow list", .timeLimit(.minutes(5)))
@Loop struct AllowListTests {
    private static func key() throws -> [UInt8] { Hex.decode(try Vectors.text("own", "card", "public")) ?? [] }

    private static func siteKey() -> SiteKey? { SiteKey(Secret([UInt8](repeating: 7, count: 32))) }

    @Test("taps are numbered from 1, and a card that is read again for a later client keeps its number")
    func numbers() async throws {
        let stage = try await CredentialStage()
        let client = try await stage.watcher()
        try await stage.tap(try Vectors.plainCard())
        let first = try #require(await client.next("CREDENTIAL"))
        #expect(first["number"]?.int == 1 && (first["time"]?.int ?? 0) > 1_700_000_000_000 && first["listed"] == nil)
        let later = try await stage.watcher()
        #expect(await later.next("CREDENTIAL")?["number"]?.int == 1)
        await stage.remove()
        try await stage.tap(try Vectors.plainCard())
        #expect(await client.next("CREDENTIAL")?["number"]?.int == 2)
        #expect(await later.next("CREDENTIAL")?["number"]?.int == 2)
    }

    @Test("a credential is listed by its key, its x or its pseudonym, and a wrong line keeps the old list")
    func listed() async throws {
        let x = Array(try Self.key().dropFirst().prefix(32))
        let siteKey = try #require(Self.siteKey())
        let pseudonym = "id:" + Base64.url.encode(try siteKey.credential(x: x))
        let file = try ListFile("# nobody\n\n")
        let listed = ListedCredentials(file.path, siteKey)
        await listed.load(file.path)
        let stage = try await CredentialStage(listed: listed)
        let client = try await stage.watcher()
        func next(_ text: String) async throws -> Bool? {
            try file.replace(by: text)
            await listed.load(file.path)
            try await stage.tap(try Vectors.plainCard())
            let message = try #require(await client.next("CREDENTIAL"))
            await stage.remove()
            return message["listed"]?.bool
        }
        #expect(try await next("# nobody\n\n") == false)
        let other = String(repeating: "00", count: 32)
        for line in [Hex.encode(x), "02" + Hex.encode(x).uppercased(), pseudonym] {
            #expect(try await next("\(other)\n  \(line) \r\n") == true, "\(line)")
            #expect(listed.health() == [HealthCheck("allowList", ok: true)])
            #expect(try await next(other) == false)
        }
        #expect(try await next(Hex.encode(x)) == true)
        #expect(try await next(other + "\nrubbish\n") == true)
        let check = try #require(listed.health().first)
        #expect(!check.ok && check.cause?.contains("\(file.path), line 2: it is no key") == true)
        #expect(listed.state?.entries == 1)
        await listed.load(nil)
        #expect(listed.health().isEmpty && listed.state == nil)
    }

    @Test("a list that is watched is read again when a file is renamed onto it, and only then")
    func watched() async throws {
        let x = Array(try Self.key().dropFirst().prefix(32))
        let file = try ListFile("# nobody\n")
        let loads = Changes()
        let listed = ListedCredentials(file.path, nil)
        listed.onLoad = { loads.notify() }
        await listed.load(file.path, isWatched: true)
        try file.replace(by: Hex.encode(x) + "\n")
        await loads.wait { listed.state?.entries == 1 }
        // Written in place: perhaps not whole.
        let handle = try FileHandle(forWritingTo: URL(filePath: file.path))
        try handle.seekToEnd()
        try handle.write(contentsOf: Data("rubbish\n".utf8))
        try handle.close()
        try file.replace(by: "# two\n" + String(repeating: Hex.encode(x) + "\n", count: 2))
        await loads.wait { listed.state?.entries == 2 }
        #expect(listed.health() == [HealthCheck("allowList", ok: true)])
        // Another one that is watched shows when the change has been seen.
        await listed.load(file.path)
        let other = ListedCredentials(file.path, nil)
        other.onLoad = { loads.notify() }
        await other.load(file.path, isWatched: true)
        try file.replace(by: "")
        await loads.wait { other.state?.entries == 0 }
        #expect(listed.state?.entries == 2)
    }

    @Test("validated mode: a card with Aliro counts when the list has its key")
    func listedAliro() async throws {
        let key = try ECPublicKey(Hex.decode(try AliroVectors.key()) ?? [], on: .secp256r1)
        let file = try ListFile("# nobody\n")
        let listed = ListedCredentials(file.path, nil)
        await listed.load(file.path)
        let stage = try await CredentialStage(
            PKOCSite(isValidated: true),
            aliro: try AliroVectors.site(isValidated: true),
            listed: listed
        )
        let client = try await stage.watcher()
        #expect(await stage.feature?.health().first { $0.name == "credentials" }?.ok == false)
        try await stage.tap(try AliroVectors.card(), kind: "aliro")
        #expect(await client.next("CREDENTIAL")?["reason"] == .string("unknownKey"))
        await stage.remove()
        try file.replace(by: Hex.encode(key.compressedPoint) + "\n")
        await listed.load(file.path)
        #expect(await stage.feature?.health().first { $0.name == "credentials" }?.ok == true)
        try await stage.tap(try AliroVectors.card(), kind: "aliro")
        let message = try #require(await client.next("CREDENTIAL"))
        #expect(message["verified"] == .bool(true) && message["listed"] == .bool(true))
    }

    @Test("without a file nobody is listed")
    func missing() async throws {
        let listed = ListedCredentials("/nowhere/list", nil)
        await listed.load("/nowhere/list")
        let stage = try await CredentialStage(listed: listed)
        let client = try await stage.watcher()
        try await stage.tap(try Vectors.plainCard())
        #expect(await client.next("CREDENTIAL")?["listed"] == .bool(false))
        #expect(listed.health().first?.ok == false)
    }

    @Test(
        "a wrong line is named",
        arguments: [
            ("id:" + String(repeating: "A", count: 43), "a pseudonym needs [credentials] site_key"),
            ("05" + String(repeating: "0", count: 64), "it is no compressed key"),
            (String(repeating: "g", count: 64), "it is no key"),
            (String(repeating: "0", count: 100_000), "it is too long"),
        ]
    )
    func wrongLines(line: String, fault: String) throws {
        let file = try ListFile("# first\n" + line + "\n")
        let error = #expect(throws: StartError.self) { try AllowList(file: file.path, hasSiteKey: false) }
        #expect(error?.message == "[credentials] allow_list: \(file.path), line 2: \(fault)")
    }

    @Test("a list of many entries is read, also at the borders of the parts in which the file is read")
    func many() throws {
        let count = FullTables.areWanted ? 100_000 : 20_000
        var text = ""
        func x(_ number: Int) -> [UInt8] {
            (0..<32).map { UInt8(truncatingIfNeeded: number &* 2_654_435_761 >> ($0 % 4 * 8)) ^ UInt8($0) }
        }
        for number in 0..<count { text += Hex.encode(x(number)) + (number % 3 == 0 ? "\r\n" : "\n") }
        let file = try ListFile(text)
        let list = try AllowList(file: file.path, hasSiteKey: false)
        #expect(list.count == count)
        #expect([0, 1, 999, 1000, count / 2, count - 1].allSatisfy { list.contains(x: x($0), nil) })
        #expect(!list.contains(x: [UInt8](repeating: 1, count: 32), nil))
    }
}
