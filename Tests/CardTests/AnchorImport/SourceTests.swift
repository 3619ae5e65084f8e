// SPDX-License-Identifier: GPL-3.0-or-later
import EID
import Glibc
import TestSupport
import Testing
import Text

@testable import CountryAuthorities

/// Where certificates are found: bytes, files, folders, archives.
@Suite(.timeLimit(.minutes(5))) struct SourceTests {
    private static let names = ["cvca", "link", "cvca-next", "dv"]

    private static func file(_ name: String) throws -> [UInt8] { try TestPKI.file("\(name).cvcert") }

    private static func certificates(_ names: String...) throws -> [CVCertificate] {
        try names.map { try CVCertificate(file($0)) }
    }

    private static func lines(_ digits: String, _ length: Int) -> String {
        stride(from: 0, to: digits.count, by: length).map { start in
            String(digits.dropFirst(start).prefix(length))
        }.joined(separator: "\n")
    }

    @Test(
        "a certificate is found in DER and as digits, inside other data",
        arguments: [
            { $0 }, { [1, 2, 0x7F] + $0 + [0x7F, 0x21] }, { Array(hex($0).utf8) },
            { Array("{\"cvRootCertificates\": [\"\(hex($0).uppercased())\", \"00\"]}".utf8) },
            { Array(lines(hex($0), 60).utf8) }, { Array(lines(hex($0), 61).utf8) },
            { Array($0.map { hex([$0]) }.joined(separator: ":").utf8) },
            { Array($0.map { hex([$0]) }.joined(separator: " ").utf8) },
            { [0x7F, 0x21, 0x82, 1, 0x80, 0x7F] + $0 }, { Array("7F21820180777F217F21".utf8) + Array(hex($0).utf8) },
        ] as [@Sendable ([UInt8]) -> [UInt8]]
    )
    func formats(_ write: @Sendable ([UInt8]) -> [UInt8]) throws {
        let search = CertificateSearch(write(try Self.file("cvca")))
        #expect(try search.certificates == Self.certificates("cvca"))
    }

    @Test("several certificates are found in their order, and no cut or long one")
    func several() throws {
        let bytes = try Self.file("link") + [0] + Array(hex(Self.file("cvca")).utf8) + Self.file("dv")
        #expect(try CertificateSearch(bytes).certificates == Self.certificates("link", "cvca", "dv"))
        let cut = CertificateSearch(Array(try Self.file("cvca").dropLast()))
        #expect(cut.certificates.isEmpty && cut.firstFault == nil)
        var wrong = try Self.file("cvca")
        wrong[10] ^= 0xFF
        #expect(CertificateSearch(wrong).certificates.isEmpty && CertificateSearch(wrong).firstFault != nil)
        #expect(CertificateSearch([]).certificates.isEmpty)
        #expect(CertificateSearch([0x7F]).certificates.isEmpty && CertificateSearch([0x37]).certificates.isEmpty)
    }

    @Test("a megabyte of beginnings of certificates ends the search")
    func beginnings() {
        let one: [UInt8] = [0x7F, 0x21, 0x82, 0x07, 0xF0, 0x7F, 0x4E]
        let search = CertificateSearch(Array((0..<150_000).map { _ in one }.joined()))
        #expect(search.certificates.isEmpty && search.firstFault != nil)
    }

    @Test("folders in folders, archives in archives, and files of any name are read")
    func everywhere() throws {
        let folder = try TemporaryFolder()
        try folder.write("a.cvcert", Self.file("cvca"))
        mkdir(folder.path + "/deep", 0o755)
        let inner = try ZipMaker([.init(name: "in/dv.bin", content: Self.file("dv"))])
        let outer = try ZipMaker(
            [
                .init(name: "in/", content: [], isDeflated: false), .init(name: "inner.zip", content: inner.bytes),
                .init(name: "next.hex", content: Array(hex(Self.file("cvca-next")).utf8), isDeflated: false),
            ],
            comment: Array("PK\u{5}\u{6} is not the end".utf8)
        )
        try folder.write("deep/archive", outer.bytes)
        try folder.write("again", Self.file("cvca"))
        // No program writes into this pipe.
        mkfifo(folder.path + "/pipe", 0o600)
        symlink(folder.path, folder.path + "/deep/loop")
        var sources = AnchorSources()
        sources.add(folder.path)
        #expect(try sources.found.map(\.certificate) == Self.certificates("cvca", "dv", "cvca-next"))
        #expect(sources.found[1].place == "\(folder.path)/deep/archive/inner.zip/in/dv.bin")
        #expect(sources.complaints.contains { $0.hasSuffix("is nested in too many folders") })
    }

    @Test("a source without a certificate is reported, with the reason")
    func complaints() throws {
        let folder = try TemporaryFolder()
        var broken = try Self.file("cvca")
        broken[10] ^= 0xFF
        try folder.write("broken", broken)
        try folder.write("empty", [])
        // No program writes into this pipe.
        mkfifo(folder.path + "/pipe", 0o600)
        try folder.write("no.zip", [0x50, 0x4B, 3, 4, 1, 2])
        let encrypted = try ZipMaker([.init(name: "a", content: Self.file("cvca"), flags: 1)])
        try folder.write("secret.zip", encrypted.bytes)
        for (name, words) in [
            ("broken", "certificate"), ("empty", "holds no new certificate"), ("no.zip", "has no directory"),
            ("secret.zip", "secret.zip/a: is encrypted"), ("missing", "No such file"),
            ("pipe", "holds no new certificate"),
        ] {
            var sources = AnchorSources()
            sources.add("\(folder.path)/\(name)")
            #expect(sources.found.isEmpty)
            #expect(sources.complaints.count == 1 && sources.complaints[0].contains(words), "\(sources.complaints)")
        }
        var sources = AnchorSources()
        sources.add("/dev/zero")
        #expect(sources.complaints.map(\.description) == ["/dev/zero: is neither a file nor a folder"])
    }

    @Test("an archive that unpacks to more than the limit is refused, and memory stays bounded")
    func bomb() throws {
        let zeros = [UInt8](repeating: 0, count: 1 << 20)
        let entries = (0..<4).map { ZipMaker.Entry(name: "\($0)", content: zeros) }
        let folder = try TemporaryFolder()
        try folder.write("bomb.zip", ZipMaker(entries).bytes)
        var limits = AnchorSources.Limits()
        limits.totalBytes = 5 << 19
        var sources = AnchorSources(limits)
        sources.add(folder.path + "/bomb.zip")
        #expect(sources.found.isEmpty)
        #expect(sources.complaints.contains { $0.hasSuffix("is too long") || $0.hasSuffix("than can be read") })
        limits.fileBytes = 1 << 10
        var small = AnchorSources(limits)
        small.add(folder.path + "/bomb.zip")
        #expect(small.complaints.map(\.description) == ["\(folder.path)/bomb.zip: is too long"])
    }

    @Test("an entry that is longer or shorter than the archive says is damaged", arguments: [0, 1, 443, 445, 1 << 20])
    func wrongCount(count: Int) throws {
        let content = try Self.file("cvca")
        let maker = ZipMaker([.init(name: "a", content: content, claimedCount: count == content.count ? 7 : count)])
        let archive = try ZipArchive(maker.bytes)
        #expect(throws: Malformed("is damaged")) {
            try archive.content(of: archive.entries[0], limit: 4 << 20)
        }
    }

    @Test("every cut archive is refused; one with a changed byte is refused, or its files are the same")
    func damagedArchives() throws {
        let maker = try ZipMaker([
            .init(name: "a", content: Self.file("cvca")), .init(name: "b", content: [1, 2], isDeflated: false),
        ])
        let contents = [try Self.file("cvca"), [1, 2]]
        func read(_ bytes: [UInt8]) {
            guard let archive = try? ZipArchive(bytes) else { return }
            for entry in archive.entries {
                guard let content = try? archive.content(of: entry, limit: 1 << 16) else { continue }
                #expect(contents.contains(content))
            }
        }
        for count in 0..<maker.bytes.count {
            #expect(throws: (any Error).self) { try ZipArchive(Array(maker.bytes.prefix(count))) }
        }
        for index in maker.bytes.indices {
            for value in [0, 0xFF] as [UInt8] {
                var bytes = maker.bytes
                bytes[index] = value
                read(bytes)
            }
        }
    }

    @Test("the resources of an installed AusweisApp are found")
    func installed() throws {
        let folder = try TemporaryFolder()
        #expect(AnchorSources.installedPrograms(root: folder.path, home: nil).isEmpty)
        for name in ["usr", "usr/share", "usr/share/AusweisApp2"] { mkdir("\(folder.path)/\(name)", 0o755) }
        #expect(
            AnchorSources.installedPrograms(root: folder.path, home: nil) == ["\(folder.path)/usr/share/AusweisApp2"]
        )
    }
}
