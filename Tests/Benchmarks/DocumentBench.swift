// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Document
import Host
import MobileDocument
import Server
import Text

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
        try readings(settings, client, program, name, path, &report)
        try cancellations(settings, client, program, name, path, &report)
        try daemon.child.terminate()
    }

    /// A reading, and in turns the bare exchange of the same bytes, so that other work of the machine disturbs both.
    private static func readings(
        _ settings: Settings,
        _ client: Client,
        _ program: String,
        _ name: String,
        _ path: String,
        _ report: inout Report
    ) throws(BenchError) {
        let (description, length) = try description(path)
        let card = try insert(description, settings, client, program)
        var whole = Samples(), inCard = Samples(), wire = Samples(), apdus = Samples()
        for _ in 0..<settings.count(80) {
            let before = try card.state()
            let start = monotonicNow()
            try read(client, name)
            whole.add(microseconds(since: start) / 1000)
            let after = try card.state()
            inCard.add((after.microseconds - before.microseconds) / 1000)
            apdus.add(Double(after.apdus - before.apdus))
            wire.add(try exchange(card, name, length, commands: after.apdus - before.apdus))
        }
        let ours = whole.median - inCard.median - wire.median
        let exchange = wire.median + inCard.median
        report.add(.documentCommands, apdus.median, "extended length")
        report.add(
            .documentRead,
            ours,
            "\(whole.span(1)) with them, n=\(whole.count); × \(text(ours / wire.median, 2)) of the wire alone"
        )
        report.add(
            .documentExchange,
            exchange,
            "\(length) bytes; \(text(wire.median, 1)) ms wire, \(text(inCard.median, 1)) ms card"
        )
        try card.end()
    }

    /// CANCEL while the chip works on a command.
    private static func cancellations(
        _ settings: Settings,
        _ client: Client,
        _ program: String,
        _ name: String,
        _ path: String,
        _ report: inout Report
    ) throws(BenchError) {
        let (description, _) = try description(path, [JSON.Member("latencyMs", .number("\(slowness)"))])
        let card = try insert(description, settings, client, program)
        var times = Samples()
        for _ in 0..<settings.count(8) {
            try start(client, name)
            while try !client.wait(for: "STATUS").contains("\"reading\"") {}
            let start = monotonicNow()
            try client.send(#"{"cmd":"CANCEL"}"#)
            guard try client.wait(for: "DOCUMENT").contains("User_Cancelled") else {
                throw BenchError("the reading was not cancelled")
            }
            times.add(microseconds(since: start) / 1000)
        }
        report.add(.documentCancel, times.median, "\(times.span(1)), n=\(times.count)")
        try card.end()
    }

    /// Milliseconds of a slow chip for each command.
    private static let slowness = 300

    private static func insert(
        _ description: JSON,
        _ settings: Settings,
        _ client: Client,
        _ program: String
    ) throws(BenchError) -> VirtualCard {
        let file = try settings.write("document.json", description.bytes)
        let card = try VirtualCard(program, port: settings.port, log: settings.folder + "/card.log", file: file)
        while try !client.wait(for: "READER").contains("\"kind\":\"document\"") {}
        return card
    }

    private static func start(_ client: Client, _ reader: String) throws(BenchError) {
        try client.send(
            #"{"cmd":"RUN_READ_DOCUMENT","reader":"\#(reader)","groups":[1,2],"portrait":false,"mrz":"\#(zone)"}"#
        )
        try client.wait(for: "DOCUMENT")
    }

    private static func read(_ client: Client, _ reader: String) throws(BenchError) {
        try start(client, reader)
        let line = try client.wait(for: "DOCUMENT")
        guard line.contains("\"success\":true"), line.contains("\"hashes\":{\"result\":\"passed\"") else {
            throw BenchError("the document was not read: \(line.text)")
        }
    }

    /// The document of Tests/Vectors/documents as a virtual card, and the bytes of EF.SOD, DG1 and DG2. EF.ATR/INFO, which
    /// needs no access, has as many.
    private static func description(
        _ path: String,
        _ options: [JSON.Member] = []
    ) throws(BenchError) -> (JSON, length: Int) {
        guard case .bytes(let bytes) = PlainFile.read(path, limit: 1 << 24), let catalogue = try? JSON(bytes),
            let entry = catalogue["documents"]?.array?.first(where: { $0["name"]?.string == document }),
            let card = entry["card"]?.members, let files = entry["files"]
        else { throw BenchError("\(path) has no document \(document)") }
        func content(_ name: String) -> [UInt8]? {
            files[name]?.string.flatMap { catalogue["blobs"]?[$0]?.string }.flatMap { Base64.standard.decode($0) }
        }
        let read = ["SOD", "DG1", "DG2"].compactMap { name in content(name).map { (name, $0) } }
        guard read.count == 3 else { throw BenchError("the document \(document) has no files") }
        let length = read.reduce(0) { $0 + $1.1.count }
        let all = read + [("COM", content("COM") ?? []), ("ATR", [UInt8](repeating: 0, count: length))]
        let contents = all.map { JSON.Member($0.0, .string(Hex.encode($0.1))) }
        let own = [JSON.Member("kind", .string("document")), .init("files", .object(contents))]
        return (.object([.init("card", .object(card + own + options))]), length)
    }

    /// A bare connection with as many commands and bytes, without protection, and a reset: what pcscd, vpcd and their
    /// processes need.
    /// - Returns: milliseconds, without the time in the card.
    private static func exchange(
        _ card: VirtualCard,
        _ reader: String,
        _ length: Int,
        commands: Int
    ) throws(BenchError) -> Double {
        let select: [UInt8] = [0x00, 0xA4, 0x00, 0x0C, 0x02, 0x3F, 0x00]
        let part = 4096
        let reads = stride(from: 0, to: length, by: part).map { offset in
            // EF.ATR/INFO has the short identifier 01.
            let (p1, le) = (offset == 0 ? 0x81 : offset >> 8, min(part, length - offset))
            return [0x00, 0xB0, UInt8(p1), 0x00, 0x00, UInt8(le >> 8), UInt8(le & 0xFF)]
        }
        let all = Array(repeating: select, count: max(commands - reads.count, 0)) + reads
        let before = try card.state().microseconds
        let start = monotonicNow()
        let answers = try PlainTransfer.exchange(reader, all, reset: true)
        let time = microseconds(since: start) / 1000
        guard answers.reduce(0, { $0 + $1.length - 2 }) == length else {
            throw BenchError("the card has not sent \(length) bytes")
        }
        return time - (try card.state().microseconds - before) / 1000
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
                guard anchors.chain(of: signer, at: MasterListMaker.time) != nil else { throw BenchError("no chain") }
                searches.add(microseconds(since: begun) / 1000)
            }
        }
        report.add(
            .masterList,
            imports.median,
            "\(imports.span(0)), n=\(imports.count), P-256, \(maker.list.count) bytes"
        )
        try mobileDocument(settings, &report)
        report.add(.documentChain, searches.median, "p99 \(text(searches.percentile(99), 2)), n=\(searches.count)")
    }

    /// A recorded session of a foreign phone: key agreement, a request for an age, and the checks of its response.
    private static func mobileDocument(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let path = #filePath.split(separator: "/").dropLast(2).map { "/\($0)" }.joined() + "/Vectors/mdoc/google.json"
        guard case .bytes(let content) = PlainFile.read(path, limit: 1 << 20),
            let session = (try? JSON(content))?["sessions"]?.array?.first,
            let plain = session["deviceResponse"]?.string.flatMap({ Hex.decode($0) }),
            let engagement = session["engagement"]?.string.flatMap({ Hex.decode($0) }),
            let authority = session["iaca"]?.string.flatMap({ Hex.decode($0) }),
            let scalar = session["eReaderKeyPrivate"]?.string.flatMap({ Hex.decode($0) })
        else { throw BenchError("\(path) has no session") }
        var times = Samples()
        do {
            var anchors = DocumentAnchors()
            try anchors.trust(try DocumentCertificate(authority))
            let authorities = MdocAuthorities(anchors: anchors)
            for _ in 0..<settings.count(200) {
                let start = monotonicNow()
                let engagement = try DeviceEngagement(engagement)
                let key = try ECPrivateKey(Secret(scalar), on: try Curve.secp256r1.group)
                var session = try MdocSession(engagement, .qr, readerKey: key)
                let request = MobileDocument.request(ageOver: 18)
                _ = try session.establishment(
                    try request.encoded(for: session.binding, signedBy: nil, signsAll: false)
                )
                let check = MdocCheck(request, session.binding, authorities, at: 1_795_888_069)
                let results = check.results(of: try DeviceResponse(Secret(plain)))
                times.add(microseconds(since: start) / 1000)
                guard results.map(\.verdict) == [.genuine] else { throw BenchError("the document is not genuine") }
            }
        } catch let error as BenchError {
            throw error
        } catch {
            throw BenchError("the mobile document cannot be read: \(error)")
        }
        report.add(.mdocChecks, times.median, "p99 \(text(times.percentile(99), 2)), n=\(times.count)")
    }
}
