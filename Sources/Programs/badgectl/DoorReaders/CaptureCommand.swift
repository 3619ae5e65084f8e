// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import DoorReaders
import Glibc
import Host
import Text

/// `badgectl capture`: writes each advertisement to a btsnoop file.
enum CaptureCommand {
    static let spec = ShellCommand(
        name: "capture",
        summary: "write the received advertisements to a file, until Ctrl-C",
        operand: ValueSpec("FILE", .files),
        options: [OptionSpec(.raw, "write the real addresses")],
        details: [
            """
            Overwrites FILE. Its format is btsnoop, which Wireshark and btmon read. Without --raw each address is
            replaced by a made-up one of the same kind. Needs the permission admin.
            """,
            """
            Advertisements that arrive faster than this program writes them are counted: a line says how many the file
            lacks, and its records contain the number.
            """,
        ],
        examples: [
            Example(
                "record until Ctrl-C, then look at the readers",
                "badgectl capture doors.btsnoop; badgectl scan --replay doors.btsnoop"
            )
        ],
        run: run
    )

    @Sendable private static func run(_ invocation: Invocation) async throws {
        let path = invocation.operand
        let connection = try await invocation.connect(keepsEvents: true)
        try await connection.require("scan", "admin")
        let addresses: ScanOptions.Addresses = invocation.has(.raw) ? .raw : .hashed
        let options = ScanOptions(mode: .performance, lockServiceCodes: [], advertisements: addresses)
        ScanCommand.warn(try await ScanCommand.start(connection, options))
        // The file is opened after the answer, so that a user without the permission does not lose the old file.
        let file = try FileContent.create(path)
        defer { close(file) }
        try FileContent.append(BTSnoop.header, file, path)
        var lost = 0
        for await event in connection.events {
            switch event.message {
            case let status as ScanStatus: ScanCommand.warn(status)
            case let advertisement as Advertisement:
                guard let report = report(advertisement) else { continue }
                if advertisement.lost > 0 {
                    lost += advertisement.lost
                    Output.note(
                        tr("badgectl: \(lost) advertisements are missing in \(path): this program was too slow")
                    )
                }
                let hci = HCIEvent.event(report, data: advertisement.data)
                // Whole records, so that the file is readable when the program is interrupted.
                try FileContent.append(BTSnoop.record(event: hci, microseconds: now, drops: lost), file, path)
            default: continue
            }
        }
        throw connection.ending ?? ClientError.closed
    }

    private static var now: Int64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000
    }

    private static func report(_ advertisement: Advertisement) -> AdvertisingReport? {
        let isRandom = advertisement.addressType != "public"
        guard let address = DeviceAddress(advertisement.address, isRandom: isRandom) else { return nil }
        return AdvertisingReport(
            address: address,
            rssi: advertisement.rssi.flatMap(Int8.init(exactly:)),
            isScanResponse: advertisement.isScanResponse
        )
    }
}
