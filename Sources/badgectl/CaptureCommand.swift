// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import DoorReaders
import Glibc
import Wire

/// `badgectl capture`: ADVERT by ADVERT into a btsnoop file.
enum CaptureCommand {
    @Sendable static func run(_ invocation: Invocation) async throws(Failure) -> ExitStatus {
        let path = invocation.operand ?? ""
        let adverts = invocation.options["--raw"] == nil ? "hashed" : "raw"
        let connection = try await invocation.connect(keepsEvents: true)
        let members: [JSON.Member] = [
            .init("adverts", .string(adverts)), .init("lockServiceCodes", .array([])),
            .init("mode", .string("performance")),
        ]
        try await ScanCommand.start(connection, members, invocation)
        // After the answer: who may not capture loses no file.
        let file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            throw Failure(.failed, "cannot write \(path): \(String(cString: strerror(errno)))")
        }
        defer { close(file) }
        try append(BTSnoop.header, file, path)
        for await event in connection.events {
            if case .scan(let status) = event.message, let error = status.error {
                Output.note("badgectl: no scan: \(error)")
            }
            guard event.name == "ADVERT", let (report, data) = advert(event.json) else { continue }
            if invocation.wantsJSON { Output.line(event.text) }
            let hci = HCIEvent.event(report, data: data)
            try append(BTSnoop.record(event: hci, microseconds: now), file, path)
        }
        throw Failure(connection.ending ?? .closed)
    }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    static func advert(_ json: JSON) -> (AdvertisingReport, [UInt8])? {
        guard let text = json["address"]?.string, let kind = json["addressType"]?.string,
            let address = DeviceAddress(text, isRandom: kind != "public"), let hex = json["data"]?.string
        else { return nil }
        var (data, rest): ([UInt8], Substring) = ([], hex[...])
        while !rest.isEmpty {
            guard let byte = UInt8(rest.prefix(2), radix: 16) else { return nil }
            data.append(byte)
            rest = rest.dropFirst(2)
        }
        let report = AdvertisingReport(
            address: address,
            rssi: json["rssi"]?.int.flatMap(Int8.init(exactly:)),
            isScanResponse: json["scanResponse"]?.bool ?? false
        )
        return (report, data)
    }

    /// Whole records: what is there when the program is interrupted can be read.
    private static func append(_ bytes: [UInt8], _ file: Int32, _ path: String) throws(Failure) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                throw Failure(.failed, "cannot write \(path): \(String(cString: strerror(errno)))")
            }
            rest = rest.dropFirst(count)
        }
    }
}
