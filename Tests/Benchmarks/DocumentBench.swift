// SPDX-License-Identifier: GPL-3.0-or-later
import Document
import Host
import Text
import Wire

/// A passport behind pcscd and vpcd: BAC, EF.SOD, DG1 and a picture of 13.6 KB; and its authorities.
enum DocumentBench {
    /// The zone of the document as SET_MRZ takes it.
    private static let zone =
        "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<L898902C36UTO7408122F3504152<<<<<<<<<<<<<<<4"
    private static let document = "bac-td3"

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        try authorities(settings, &report)
        guard let program = settings.virtualCard, let name = settings.readers.first, let path = settings.documents
        else { return }
        let configuration = try settings.write("documents.conf", "[documents]\nanchors=\(settings.folder)/csca\n")
        let daemon = try Daemon(settings, ["--config", configuration])
        try daemon.waitForReaders(settings.readers.count)
        let client = try daemon.client()
        let description = try description(path)
        let length = try exchanged(description)
        let file = try settings.write("document.json", description.bytes)
        let card = try VirtualCard(program, port: settings.port, log: settings.folder + "/card.log", file: file)
        while try !client.wait(for: "READER").contains("\"kind\":\"document\"") {}
        var ours = Samples(), bare = Samples(), inCard = Samples(), apdus = Samples()
        for _ in 0..<settings.count(40) {
            let before = try card.state()
            let start = monotonicNow()
            try read(client, name)
            let time = microseconds(since: start) / 1000
            let after = try card.state()
            let spent = (after.microseconds - before.microseconds) / 1000
            inCard.add(spent)
            ours.add(time - spent)
            apdus.add(Double(after.apdus - before.apdus))
            // In turns, so that other work of the machine disturbs both.
            bare.add(try exchange(card, name, length, commands: after.apdus - before.apdus))
        }
        let commands = "\(text(apdus.median, 0)) commands"
        report.add(.documentCommands, apdus.median, "extended length")
        report.add(
            .documentRead,
            ours.median,
            "\(ours.span(1)), n=\(ours.count); without \(text(inCard.median, 1)) ms in the card, \(commands)"
        )
        report.add(.documentExchange, bare.median, "\(bare.span(1)), \(length) bytes, \(commands)")
        try card.end()
        try daemon.child.terminate()
    }

    private static func read(_ client: Client, _ reader: String) throws(BenchError) {
        try client.send(
            #"{"cmd":"RUN_READ_DOCUMENT","reader":"\#(reader)","groups":[1,2],"portrait":false,"mrz":"\#(zone)"}"#
        )
        while true {
            let line = try client.wait(for: "DOCUMENT")
            guard line.contains("\"success\":") else { continue }
            guard line.contains("\"success\":true"), line.contains("\"hashes\":{\"result\":\"passed\"") else {
                throw BenchError("the document was not read: \(line.text)")
            }
            return
        }
    }

    /// The document of Tests/Vectors/documents as a virtual card.
    private static func description(_ path: String) throws(BenchError) -> JSON {
        guard case .bytes(let bytes) = PlainFile.read(path, limit: 1 << 24), let catalogue = try? JSON(bytes),
            let entry = catalogue["documents"]?.array?.first(where: { $0["name"]?.string == document }),
            let card = entry["card"]?.members, let files = entry["files"]?.members
        else { throw BenchError("\(path) has no document \(document)") }
        let contents = files.map { file in
            let content = file.value.string.flatMap { catalogue["blobs"]?[$0]?.string }.flatMap {
                Base64.standard.decode($0)
            }
            return JSON.Member(file.key, .string(Hex.encode(content ?? [])))
        }
        let own = [JSON.Member("kind", .string("document")), .init("files", .object(contents))]
        return .object([.init("card", .object(card + own))])
    }

    /// The bytes of EF.SOD, DG1 and DG2.
    private static func exchanged(_ description: JSON) throws(BenchError) -> Int {
        let files = ["SOD", "DG1", "DG2"].compactMap { description["card"]?["files"]?[$0]?.string }
        guard files.count == 3 else { throw BenchError("the document has no files") }
        return files.reduce(0) { $0 + $1.utf8.count / 2 }
    }

    /// The same number of commands with as many bytes, without protection: what pcscd, vpcd and two processes need. The
    /// bytes go to the card, which refuses them as soon as it has them.
    private static func exchange(
        _ card: VirtualCard,
        _ reader: String,
        _ length: Int,
        commands: Int
    ) throws(BenchError) -> Double {
        let select: [UInt8] = [0x00, 0xA4, 0x00, 0x0C, 0x02, 0x3F, 0x00]
        let reads = 5
        let part = length / reads
        let long: [UInt8] = [0x00, 0xD6, 0x00, 0x00, 0x00, UInt8(part >> 8), UInt8(part & 0xFF)]
        let command = long + [UInt8](repeating: 0, count: part)
        let before = try card.state().microseconds
        let all = Array(repeating: select, count: max(commands - reads, 0)) + Array(repeating: command, count: reads)
        let times = try PlainTransfer.exchange(reader, all)
        let spent = (try card.state().microseconds - before) / 1000
        return times.reduce(0) { $0 + $1.time } / 1000 - spent
    }

    // MARK: Authorities

    private static func authorities(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let maker = try MasterListMaker(authorities: 500)
        var imports = Samples(), searches = Samples()
        for _ in 0..<settings.count(8) {
            let start = monotonicNow()
            var anchors = DocumentAnchors()
            do {
                try anchors.trust(try DocumentCertificate(maker.root))
                let added = try anchors.add(try MasterList(maker.list), at: MasterListMaker.time)
                guard added.authorities == 500 else {
                    throw BenchError("the list gave \(added.authorities) authorities")
                }
            } catch {
                throw BenchError("the list cannot be imported: \(error)")
            }
            imports.add(microseconds(since: start) / 1000)
            for certificate in maker.signers {
                guard let signer = try? DocumentCertificate(certificate) else { throw BenchError("no signer") }
                let begun = monotonicNow()
                guard anchors.issuer(of: signer) != nil else { throw BenchError("no chain") }
                searches.add(microseconds(since: begun) / 1000)
            }
        }
        report.add(
            .masterList,
            imports.median,
            "\(imports.span(0)), n=\(imports.count), P-256, \(maker.list.count) bytes"
        )
        report.add(.documentChain, searches.median, "p99 \(text(searches.percentile(99), 2)), n=\(searches.count)")
    }
}
