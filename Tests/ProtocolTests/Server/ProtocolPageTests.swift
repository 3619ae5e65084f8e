// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import CountryAuthorities
import CredentialFeature
import DocumentFeature
import Foundation
import Host
import KeyFeature
import MPin
import MPinFeature
import MdocFeature
import MobileDocument
import RemoteFeature
import Server
import Store
import Taps
import TestSupport
import Testing
import Text
import Vault
import WalletFeature

/// Holds the tables of docs/protocol.md and docs/protocol/ to the commands of all features.
@Suite("the pages of the protocol")
struct ProtocolPageTests {
    /// A row of a table, by the column.
    struct Row {
        let page: String
        let cells: [String: String]

        /// The names in the first column.
        func names(_ column: String) -> [String] { cells[column].map(Self.quoted) ?? [] }

        /// The parts of a text that are in backticks.
        static func quoted(_ text: String) -> [String] {
            text.split(separator: "`", omittingEmptySubsequences: false).enumerated()
                .filter { $0.offset % 2 == 1 }.map { String($0.element) }
        }
    }

    let rows: [Row]

    init() throws {
        let docs = testsFolder.deletingLastPathComponent().appending(path: "docs")
        let pages = try FileManager.default.contentsOfDirectory(atPath: docs.path + "/protocol").map {
            "protocol/" + $0
        }
        rows = try (["protocol.md"] + pages.sorted()).flatMap { page in
            Self.rows(of: try String(contentsOf: docs.appending(path: page), encoding: .utf8), page)
        }
    }

    static func rows(of text: String, _ page: String) -> [Row] {
        var header: [String] = []
        return text.split(separator: "\n", omittingEmptySubsequences: false).compactMap { line in
            guard line.hasPrefix("|") else {
                header = []
                return nil
            }
            let cells = line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }
            guard !header.isEmpty else {
                header = cells
                return nil
            }
            return Row(page: page, cells: Dictionary(zip(header, cells)) { $1 })
        }
    }

    /// A server with every feature of the daemon, and without readers and a store.
    @Loop static func server(
        _ mpin: MPinConfiguration = MPinConfiguration(userAgent: "badged/test")
    ) async throws -> TestServer {
        let store = StateStore { () throws(Failure) -> Store? in nil }
        return try await TestServer(readers: 0) { registry in
            let wallet = WalletFeature(registry, store)
            return [
                wallet, MPinFeature(store, mpin, cards: wallet),
                KeyFeature(Vault(store), IssuerSettings()), CredentialFeature(registry, PKOCSite(), []),
                DoorPanels(),
                DocumentFeature(registry, DocumentAnchorFolder("/nonexistent", warn: { _ in })), RemoteFeature(),
                MdocFeature(registry, authorities: { _ in MdocAuthorities() }),
                MdocAnchorsFeature(MdocAnchorFolder("/nonexistent", warn: { _ in })),
            ]
        }
    }

    /// The commands of every feature of the daemon.
    @Loop static func specs() async throws -> [String: CommandSpec] {
        Dictionary(uniqueKeysWithValues: try await server().server.specs.map { ($0.name, $0) })
    }

    @Test("each command has a row, with its permissions and its lowest API level")
    @Loop func commands() async throws {
        let specs = try await Self.specs()
        var found: Set<String> = []
        for row in rows {
            for name in row.names("Command") {
                guard let spec = specs[name] else {
                    Issue.record("\(row.page): there is no command \(name)")
                    continue
                }
                found.insert(name)
                let permission = row.cells["Permission"] ?? ""
                #expect(Row.quoted(permission) == spec.permission.words, "\(row.page): permissions of \(name)")
                #expect((permission == "none") == spec.permission.isEmpty, "\(row.page): permissions of \(name)")
                let level = row.cells["When"]?.firstMatch(of: /from level ([0-9])/).flatMap { Int($0.1) } ?? 1
                #expect(level == spec.level.rawValue, "\(row.page): the level of \(name)")
            }
        }
        #expect(Set(specs.keys).subtracting(found).sorted() == [], "commands without a row")
    }

    @Test("each command is in the README of a feature, and the paths in it exist")
    @Loop func readmes() async throws {
        let root = testsFolder.deletingLastPathComponent()
        let folder = root.appending(path: "Sources/Features")
        var named: Set<String> = []
        for feature in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            let readme = folder.appending(path: feature).appending(path: "README.md")
            guard let text = try? String(contentsOf: readme, encoding: .utf8) else { continue }
            for word in Row.quoted(text) {
                named.insert(word)
                guard word.hasPrefix("Sources/") || word.hasPrefix("Tests/") else { continue }
                let path = root.appending(path: word.prefix { $0 != " " }).path
                #expect(
                    ["", ".swift"].contains { FileManager.default.fileExists(atPath: path + $0) },
                    "\(feature): \(word)"
                )
            }
        }
        let core = Set(rows.filter { $0.page == "protocol.md" }.flatMap { $0.names("Command") })
        let missing = Set(try await Self.specs().keys).subtracting(core).subtracting(named)
        // Their README names them by their prefix.
        #expect(missing.filter { !$0.hasPrefix("MPIN_") }.sorted() == [], "commands in no README")
    }

    @Test("the answer of each command has a row")
    @Loop func answers() async throws {
        let answers = Set(try await Self.specs().values.compactMap { $0.answer?.description })
        let messages = Set(rows.flatMap { $0.names("Message") })
        #expect(answers.subtracting(messages).sorted() == [], "messages without a row")
    }
}
