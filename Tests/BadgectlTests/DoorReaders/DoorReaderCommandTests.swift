// SPDX-License-Identifier: GPL-3.0-or-later
import DoorReaders
import FoundationEssentials
import Glibc
import TestSupport
import Testing
import Text

@testable import badgectl

/// A terminal that can be cleared.
private let terminal = ["TERM": "xterm", "LC_ALL": "C.UTF-8"]

private func reader(_ id: String, _ level: String, inRange: Bool, type: String = "motion") -> String {
    #"{"active":true,"id":"\#(id)","inRange":{"\#(type)":\#(inRange)},"name":null,"openingTypes":["\#(type)"],"#
        + #""profile":"seos","rssi":{"last":-60,"level":\#(level)}}"#
}

/// Makes a folder with the file `capture`, which has two readers with different codes and another device.
private func captured(_ more: [[UInt8]] = []) throws -> TemporaryFolder {
    func seos(_ code: UInt8) -> [UInt8] {
        [17, 0x07, code, 0, 0, 0x7A, 0x17, 0, 0, 0x80, 0, 0x10, 0, 0, 0, 0x98, 0, 0]
    }
    var file = BTSnoop.header
    for index in 0..<20 {
        for (number, data) in ([seos(2), seos(9), [2, 1, 6]] + more).enumerated() {
            let address = DeviceAddress(bits: 0xC000_0000_0001 + UInt64(number), isRandom: true)
            let event = HCIEvent.event(AdvertisingReport(address: address, rssi: -60), data: data)
            file += BTSnoop.record(event: event, microseconds: Int64(index) * 100_000)
        }
    }
    let folder = try TemporaryFolder()
    try folder.write("capture", file)
    return folder
}

@Suite("badgectl: scan, closest, capture", .timeLimit(.minutes(5))) struct DoorReaderCommandTests {
    @Test("scan --watch shows readers that appear, change and are lost, until Ctrl-C")
    func watch() async throws {
        let peer = try ScriptedPeer.scan { peer in
            peer.send(#"{"msg":"DOOR_READER","reader":\#(reader("seos-A", "-60.0", inRange: true))}"#)
            peer.send(#"{"msg":"DOOR_READER","reader":\#(reader("seos-B", "-90.4", inRange: false))}"#)
            peer.send(#"{"id":"seos-A","msg":"DOOR_READER_LOST"}"#)
        }
        let program = try badgectl(peer, "scan", "--watch", "--code", "0", "--type", "motion")
        #expect(await program.prints("lost seos-A\n", on: .output))
        #expect(await program.exitCode(after: SIGINT) == 130)
        #expect(
            program.text(.output) == """
                ████████····  -60 dBm  seos-A  motion
                ██··········  -90 dBm  seos-B
                lost seos-A

                """
        )
    }

    @Test("On a terminal scan --watch draws the table again for each change, with the last seconds of each reader")
    func table() async throws {
        let peer = try ScriptedPeer.scan { peer in
            peer.send(#"{"msg":"DOOR_READER","reader":\#(reader("seos-A", "-90.4", inRange: false))}"#)
            peer.send(#"{"msg":"DOOR_READER","reader":\#(reader("seos-B", "-60.0", inRange: true))}"#)
            peer.send(#"{"id":"seos-B","msg":"DOOR_READER_LOST"}"#)
        }
        // Standard output of a test's program is a pipe. The shell redirects it to the controlling terminal.
        let command = "exec \(RunningProgram.programs)/badgectl --socket \(peer.path) scan --watch >/dev/tty"
        let program = try RunningProgram("/bin/sh", ["-c", command], hasTerminal: true, environment: terminal)
        // The newest second is at the right.
        #expect(await program.prints("·▂  -90 dBm  seos-A\r\n"))
        // The strongest reader comes first.
        #expect(await program.prints("·▆  -60 dBm  seos-B  motion\r\n·"))
        // A table without it follows, at the latest with the next second.
        func lastTable() -> Substring? {
            program.text(.terminal).split(separator: "\u{1B}[H\u{1B}[2J").last { $0.hasSuffix("seos-A\r\n") }
        }
        while lastTable()?.contains("seos-B") != false {
            try #require(await program.prints("-90 dBm  seos-A\r\n"))
        }
        #expect(await program.exitCode(after: SIGINT) == 130)
    }

    @Test(
        "--code and --type reach the scan, and --json shows the messages unchanged",
        arguments: [
            (["--code", "9"], #""lockServiceCodes":[9]"#), (["--code", "0"], #""lockServiceCodes":[]"#),
            (["--type", "seamless"], #""openingTypes":["seamless"]"#),
        ]
    )
    func options(options: [String], parameter: String) async throws {
        let message = #"{"msg":"DOOR_READER","reader":\#(reader("seos-A", "-60.0", inRange: true))}"#
        let peer = try ScriptedPeer.scan { peer in
            peer.send(message)
            peer.hangUp()
        }
        let program = try RunningProgram("badgectl", ["--socket", peer.path, "--json", "scan"] + options)
        #expect(await program.exitCode == 0)
        #expect(program.text(.output).split(separator: "\n").contains(Substring(message)))
        #expect(await peer.received().contains { $0.contains("START_SCAN") && $0.contains(parameter) })
    }

    @Test("A fault of the radio is shown, and the scan goes on")
    func fault() async throws {
        let bad = Say.scanning(error: "off: switch it on")
        let peer = try ScriptedPeer.scan(bad.replacing(#""radio":true"#, with: #""radio":false"#))
        let program = try badgectl(peer, "scan", "--watch")
        #expect(await program.prints("badgectl: no scan: off: switch it on\n", on: .error))
        #expect(await program.exitCode(after: SIGINT) == 130)
    }

    @Test(
        "When the radio does not work, scan and closest show the cause, no empty list, and end with 1",
        arguments: [["scan"], ["closest", "motion"], ["scan", "--json"]]
    )
    func unusable(arguments: [String]) async throws {
        let bad = Say.scanning(error: "no adapter: plug one in")
        let peer = try ScriptedPeer.scan(bad.replacing(#""radio":true"#, with: #""radio":false"#)) { peer in
            while let command = peer.command() {
                if command["cmd"]?.string == "GET_DOOR_READER_LIST" {
                    peer.send(#"{"msg":"DOOR_READER_LIST","readers":[]}"#, answering: command)
                }
            }
        }
        let program = try RunningProgram("badgectl", arguments + ["--socket", peer.path])
        #expect(await program.exitCode == 1)
        #expect(!program.text(.output).contains("no door reader"))
        #expect(program.text(.error).hasPrefix("badgectl: error: no scan: no adapter: plug one in\nhint: "))
    }

    @Test(
        "A fault of the scan is an error when no reader was received, otherwise a note",
        arguments: [["scan"], ["closest", "motion"], ["scan", "--json"]],
        [[], [reader("seos-A", "-60.0", inRange: true)]]
    )
    func restricted(arguments: [String], readers: [String]) async throws {
        let silent = Say.scanning(error: "hci0 is silent")
        let peer = try ScriptedPeer.scan(silent) { peer in
            for reader in readers { peer.send(#"{"msg":"DOOR_READER","reader":\#(reader)}"#) }
            while let command = peer.command() {
                if command["cmd"]?.string == "GET_DOOR_READER_LIST" {
                    let list = readers.joined(separator: ",")
                    peer.send(#"{"msg":"DOOR_READER_LIST","readers":[\#(list)]}"#, answering: command)
                }
            }
        }
        let program = try RunningProgram("badgectl", arguments + ["--socket", peer.path])
        #expect(await program.exitCode == (readers.isEmpty ? 1 : 0))
        #expect(!program.text(.output).contains("no door reader"))
        if readers.isEmpty {
            let error = "badgectl: error: no door reader was received: hci0 is silent\nhint: badgectl health"
            #expect(program.text(.error).hasPrefix(error))
        } else if arguments.contains("scan") {
            #expect(program.text(.error) == "badgectl: scan: hci0 is silent\n")
        }
    }

    @Test(
        "On a terminal with nothing but ASCII, scan --watch writes neither control codes nor UTF-8",
        arguments: [["TERM": "dumb", "LC_ALL": "C.UTF-8"], ["TERM": "xterm", "LC_ALL": "C"]]
    )
    func plain(environment: [String: String]) async throws {
        let peer = try ScriptedPeer.scan { peer in
            peer.send(#"{"msg":"DOOR_READER","reader":\#(reader("seos-A", "-60.0", inRange: true))}"#)
        }
        let command = "exec \(RunningProgram.programs)/badgectl --socket \(peer.path) scan --watch >/dev/tty"
        let program = try RunningProgram("/bin/sh", ["-c", command], hasTerminal: true, environment: environment)
        #expect(await program.prints("########....  -60 dBm  seos-A  motion\r\n"))
        #expect(await program.exitCode(after: SIGINT) == 130)
        #expect(!program.text(.terminal).utf8.contains { $0 == 0x1B || $0 > 0x7F })
    }

    @Test("A restriction of a scan that runs is not called 'no scan'")
    func restriction() async throws {
        let bad = Say.scanning(error: "hci0 is slow: replace it")
        let peer = try ScriptedPeer.scan(bad)
        let program = try badgectl(peer, "scan", "--watch")
        #expect(await program.prints("badgectl: scan: hci0 is slow: replace it\n", on: .error))
        #expect(await program.exitCode(after: SIGINT) == 130)
    }

    @Test("A user without permission gets the status 4, a refused scan the status 1")
    func refusals() async throws {
        let denied = try ScriptedPeer { $0.answer("START_SCAN", #"{"error":"START_SCAN","msg":"ACCESS_DENIED"}"#) }
        #expect(await (try badgectl(denied, "scan")).exitCode == 4)
        let refusal = #"{"adapters":[],"error":"no radio","msg":"SCAN","radio":false,"wanted":false}"#
        let refused = try ScriptedPeer { $0.answer("START_SCAN", refusal) }
        let program = try badgectl(refused, "scan")
        await program.ends(1, saying: "no radio")
    }

    @Test("the advice of a refused scan is the hint", arguments: [["scan"], ["closest", "motion"], ["open"]])
    func advice(arguments: [String]) async throws {
        let refusal = #"{"adapters":[],"error":"no radio: switch it on","msg":"SCAN","radio":false,"wanted":false}"#
        let peer = try ScriptedPeer { peer in
            if arguments == ["open"] { peer.tellsPermissions() }
            peer.answer("START_SCAN", refusal)
        }
        let program = try RunningProgram("badgectl", arguments + ["--socket", peer.path])
        await program.ends(1, sayingFirst: "badgectl: error: badged refused: no radio\nhint: switch it on\n")
    }

    @Test("closest shows a reader as soon as it is in range")
    func closest() async throws {
        let near = reader("seos-A", "-60.0", inRange: true)
        let peer = try ScriptedPeer.scan { peer in
            peer.send(#"{"msg":"DOOR_READER","reader":\#(reader("seos-A", "-80.0", inRange: false))}"#)
            peer.send(#"{"msg":"DOOR_READER","reader":\#(near)}"#)
            // Another reader is closer, but cannot be opened by motion.
            let closer = reader("seos-B", "-40.0", inRange: true, type: "enhancedTap")
            peer.answer("GET_DOOR_READER_LIST", #"{"msg":"DOOR_READER_LIST","readers":[\#(closer),\#(near)]}"#)
        }
        let program = try badgectl(peer, "closest", "motion")
        await program.ends(0, printing: "████████····  -60 dBm  seos-A  motion\n")
    }

    @Test(
        "Without a reader that can be opened that way, closest says why and ends with 1",
        arguments: [
            ([], "no door reader is in reach"),
            (
                [reader("seos-B", "-40.0", inRange: true, type: "enhancedTap")],
                "no door reader in reach can be opened that way"
            ),
            ([reader("seos-A", "-80.0", inRange: false)], "no door reader is near enough"),
        ]
    )
    func noneIsOpenable(readers: [String], text: String) async throws {
        let list = #"{"msg":"DOOR_READER_LIST","readers":[\#(readers.joined(separator: ","))]}"#
        let peer = try ScriptedPeer.scan { $0.answer("GET_DOOR_READER_LIST", list) }
        let program = try badgectl(peer, "closest", "motion")
        await program.ends(1, sayingFirst: "badgectl: error: \(text)\nhint: ")
    }

    @Test(
        "capture writes a readable file, with real addresses only with --raw",
        arguments: [([], "hashed"), (["--raw"], "raw")]
    )
    func captures(options: [String], addresses: String) async throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/capture"
        let advert =
            #"{"adapter":"hci0","address":"C0:00:00:00:00:01","addressType":"static","data":"020106","msg":"ADVERT","#
            + #""rssi":-60,"scanResponse":false}"#
        let peer = try ScriptedPeer.opening { peer in
            peer.send(advert)
            peer.send(#"{"address":"nonsense","msg":"ADVERT"}"#)
            peer.send(advert.replacing("}", with: #","lost":7}"#))
            peer.hangUp()
        }
        let program = try RunningProgram("badgectl", ["--socket", peer.path, "capture", path] + options)
        // The file is complete when badged closes.
        #expect(await program.exitCode == 3)
        #expect(await peer.received().contains { $0.contains(#""adverts":"\#(addresses)""#) })
        let file = Array(try Data(contentsOf: URL(filePath: path)))
        var reports: [AdvertisingReport] = []
        _ = try BTSnoop.forEachEvent(in: file.span) { _, _, place in
            HCIEvent.forEachReport(in: Array(file[place]).span) { report, _ in reports.append(report) }
        }
        let report = AdvertisingReport(address: DeviceAddress(bits: 0xC000_0000_0001, isRandom: true), rssi: -60)
        #expect(reports == [report, report])
        #expect(program.text(.error).contains("badgectl: 7 advertisements are missing in \(path)"))
        // The last record begins 24 bytes before its packet of 18 bytes. It has the number at byte 12.
        #expect(file.suffix(42).dropFirst(12).prefix(4).elementsEqual([0, 0, 0, 7]))
    }

    @Test("scan --beacons shows the UUID, major and minor of iBeacons")
    func beacons() async throws {
        let uuid: [UInt8] = [0, 0, 0x99, 0x99, 0, 0, 0x10, 0, 0x80, 0, 0, 0x17, 0x7A, 0, 0, 2]
        let folder = try captured([[26, 0xFF, 0x4C, 0, 2, 0x15] + uuid + [1, 0, 0, 7, 0xC5]])
        let path = folder.path + "/capture"
        let peer = try ScriptedPeer.scan { peer in
            peer.send(#"{"msg":"DOOR_READER","reader":\#(reader("seos-A", "-60.0", inRange: true))}"#)
            peer.send(#"{"id":"seos-A","msg":"DOOR_READER_LOST"}"#)
        }
        let all = try badgectl(peer, "scan", "--beacons", "--replay", path)
        #expect(await all.exitCode == 0)
        let beacon = "ibeacon-C0:00:00:00:00:04  00009999-0000-1000-8000-00177a000002 256 7\n"
        #expect(all.text(.output).contains(beacon), "\(all.text(.output))")
        let doors = try badgectl(peer, "scan", "--replay", path)
        #expect(await doors.exitCode == 0 && !doors.text(.output).contains("ibeacon"))
        let messages = try badgectl(peer, "scan", "--beacons", "--json", "--replay", path)
        #expect(await messages.exitCode == 0)
        let list = try JSON(messages.text(.output).utf8)["readers"]?.array ?? []
        #expect(
            try list.compactMap { $0["beacon"] }
                == [JSON(#"{"uuid":"00009999-0000-1000-8000-00177a000002","major":256,"minor":7}"#.utf8)]
        )
        let live = try badgectl(peer, "scan", "--beacons", "--watch")
        #expect(await live.prints("lost seos-A\n", on: .output))
        #expect(await live.exitCode(after: SIGINT) == 130)
        #expect(await peer.received().contains { $0.contains(#""ibeacon""#) })
    }

    @Test("scan --replay needs no badged and filters by code")
    func replay() async throws {
        let folder = try captured()
        let path = folder.path + "/capture"
        let peer = try ScriptedPeer { _ in }
        let usual = try badgectl(peer, "scan", "--replay", path)
        await usual.ends(0, printing: "████████····  -60 dBm  seos-C0:00:00:00:00:01  motion\n")
        #expect(usual.text(.error) == "60 advertisements in 1 s, 20 of other devices\n")
        let any = try badgectl(peer, "scan", "--code", "0", "--replay", path)
        #expect(await any.exitCode == 0)
        #expect(any.text(.output).split(separator: "\n").count == 2)
        let messages = try badgectl(peer, "scan", "--json", "--replay", path)
        #expect(await messages.exitCode == 0)
        let list = try JSON(messages.text(.output).utf8)
        #expect(list["msg"] == .string("DOOR_READER_LIST"))
        #expect(list["readers"]?.array?.first?["id"] == .string("seos-C0:00:00:00:00:01"))
        #expect(list["readers"]?.array?.first?["inRange"]?["motion"] == .bool(true))
        #expect(list["readers"]?.array?.first?["firstSeen"]?.int == 0)
        let none = try badgectl(peer, "scan", "--replay", "/nonexistent")
        #expect(await none.exitCode == 1)
    }

    @Test(
        "a named file that is none is told, and nobody waits for it",
        arguments: [["scan", "--replay"], ["documents", "anchors", "import"], ["mdoc", "anchors", "import"]],
        ["fifo", "folder", "/dev/zero"]
    )
    func noFile(command: [String], name: String) async throws {
        let folder = try TemporaryFolder()
        mkfifo(folder.path + "/fifo", 0o600)
        mkdir(folder.path + "/folder", 0o700)
        let path = name.hasPrefix("/") ? name : "\(folder.path)/\(name)"
        let target = command[0] == "scan" ? [] : ["--folder", folder.path]
        let program = try RunningProgram("badgectl", command + [path] + target, input: "")
        #expect(await program.exitCode != 0)
        let error = program.text(.error)
        #expect(error.contains(path) && error.contains("error: "), "\(error)")
        if name != "fifo" { #expect(error.contains("it is neither a file nor a pipe"), "\(error)") }
    }

    @Test("scan --plot draws points, the level and the limits of the readers of a capture")
    func plot() async throws {
        let folder = try captured()
        let (path, image) = (folder.path + "/capture", folder.path + "/plot.svg")
        let peer = try ScriptedPeer { _ in }
        let program = try badgectl(peer, "scan", "--code", "0", "--plot", image, "--replay", path)
        #expect(await program.exitCode == 0, "\(program.text(.error))")
        let svg = String(decoding: try FileContent.read(image, limit: 1 << 20), as: UTF8.self)
        #expect(svg.hasPrefix("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.hasSuffix("</svg>\n"))
        #expect(svg.matches(of: #/<polyline /#).count == 2)
        #expect(svg.matches(of: #/<circle /#).count >= 30)
        #expect(svg.contains(">motion -74</text>") && svg.contains(">seos-C0:00:00:00:00:01</text>"))
        let none = try badgectl(peer, "scan", "--code", "77", "--plot", image, "--replay", path)
        #expect(await none.exitCode == 1)
        let nowhere = try badgectl(peer, "scan", "--plot", "/nonexistent/x.svg", "--replay", path)
        #expect(await nowhere.exitCode == 1 && nowhere.text(.error).contains("cannot write /nonexistent/x.svg"))
    }

    @Test(
        "Wrong options end with 2",
        arguments: [
            ["scan", "--code", "x"], ["scan", "--code", "16777216"], ["scan", "--type", "door"], ["closest"],
            ["closest", "door"], ["capture"],
        ]
    )
    func usage(arguments: [String]) async throws {
        let peer = try ScriptedPeer { _ in }
        let program = try RunningProgram("badgectl", ["--socket", peer.path] + arguments, input: "")
        #expect(await program.exitCode == 2)
    }
}
