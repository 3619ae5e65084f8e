// SPDX-License-Identifier: GPL-3.0-or-later
import Glibc
import ISO7816
import NFCTestSupport
import Readers
import TestSupport
import Testing

@testable import ReadersNFC

/// Emulated boards that come, go and fail, through real libnfc.
@Suite("NFC devices", .timeLimit(.minutes(5)))
struct NFCDeviceTests {
    @Test("a board that is pulled is gone with its card, and found again on demand")
    func pulled() async throws {
        var world = try await World()
        let connection = try await world.connect(PICC(application: PICC.echo))
        world.board.unplug()
        await #expect(throws: (any Error).self) { try await connection.transmit(World.echo(1).command) }
        try await world.events.wait(for: "removed \(world.reader)")
        world.field.remove()
        try world.board.plug()
        world.backend.rescan()
        try await world.events.wait(for: "added \(world.reader)")
        let again = try await world.connect(PICC(application: PICC.echo))
        #expect(try await again.transmit(World.echo(5).command) == World.echo(5).answer)
    }

    @Test("a board that is pulled while it looks for a card is noticed, and its health says what to do")
    func pulledIdle() async throws {
        var world = try await World()
        world.board.unplug()
        try await world.events.wait(for: "removed \(world.reader)")
        // A board that has failed soon after its start is looked for when somebody asks, once the failure is known: that
        // may be after "removed", and is an event of its own.
        _ = await world.backend.currentHealth()
        while world.events.checks.first?.advice?.contains("plug the board in") != true {
            _ = try await world.events.next()
            _ = await world.backend.currentHealth()
        }
        #expect(world.events.checks.first?.name == "nfc \(world.board.connection)")
        try world.board.plug()
        // Whoever asks has perhaps just mended it.
        _ = await world.backend.currentHealth()
        try await world.events.wait(for: "added \(world.reader)")
    }

    @Test("boards that are named no more are given back, and new names are taken, at the next look")
    func renamed() async throws {
        let boards = try (0..<3).map { _ in try EmulatedPN532() }
        let readers = boards.map { "pn532_uart:\($0.path)" }
        let backend = NFCBackend(devices: [boards[0].connection, boards[1].connection])
        var events = Events(backend)
        for reader in readers[..<2] { try await events.wait(for: "added \(reader)") }
        boards[0].field.insert(PICC(application: PICC.echo))
        let insertion = try await events.insertion(in: readers[0])
        let connection = try await backend.connect(insertion)
        #expect(try await connection.transmit(World.echo(5).command) == World.echo(5).answer)

        // The second one by another text, which means the same line at the same speed.
        backend.change(devices: [boards[2].connection, "pn532_uart:\(boards[1].path)"])
        backend.rescan()
        var news: Set<String> = []
        while news.count < 5 {
            let event = try await events.next()
            if !event.hasPrefix("health") { news.insert(event) }
        }
        #expect(
            news == [
                "withdrawn \(readers[0])", "removed \(readers[0])", "added \(readers[2])", "removed \(readers[1])",
                "added \(readers[1])",
            ]
        )
        await #expect(throws: (any Error).self) { try await connection.transmit(World.echo(5).command) }
        try await until { !boards[0].field.isOn }
        #expect(boards[1].field.isOn && boards[2].field.isOn)

        backend.change(devices: [])
        backend.rescan()
        try await events.wait(for: "removed \(readers[2])")
    }

    /// In a process of its own, for it leaves nothing to others.
    @Test("a board comes and goes while this process has no descriptor left that select(2) knows")
    func lowDescriptors() async {
        await #expect(processExitsWith: .success) {
            var world = try await World()
            while case let descriptor = dup(0), descriptor < 1024 { try #require(descriptor >= 0) }
            world.board.unplug()
            try await world.events.wait(for: "removed \(world.reader)")
            // What it had may be taken by others.
            while case let descriptor = dup(0), descriptor < 1024 { try #require(descriptor >= 0) }
            try world.board.plug()
            world.backend.rescan()
            try await world.events.wait(for: "added \(world.reader)")
            let connection = try await world.connect(PICC(application: PICC.echo))
            #expect(try await connection.transmit(World.echo(300).command) == World.echo(300).answer)
        }
    }

    @Test("several boards at once, each with its card")
    func several() async throws {
        let boards = try (0..<3).map { _ in try EmulatedPN532() }
        let backend = NFCBackend(devices: boards.map(\.connection))
        var events = Events(backend)
        for board in boards { try await events.wait(for: "added pn532_uart:\(board.path)") }
        for (index, board) in boards.enumerated() {
            board.field.insert(PICC(index == 1 ? .b : .a, application: PICC.echo))
        }
        while events.insertions.count < 3 { _ = try await events.next() }
        #expect(Set(events.insertions.values.map(\.number)).count == 3)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for insertion in events.insertions.values {
                group.addTask {
                    let connection = try await backend.connect(insertion)
                    for count in [1, 300, 5000] {
                        #expect(try await connection.transmit(World.echo(count).command) == World.echo(count).answer)
                    }
                    await connection.disconnect(reset: true)
                }
            }
            try await group.waitForAll()
        }
    }

    @Test("closing ends the search of the chip and turns the fields off, with and without a card")
    func closing() async throws {
        for hasCard in [false, true] {
            var world = try await World()
            if hasCard { _ = try await world.connect(PICC(application: PICC.echo)) }
            #expect(world.field.isOn)
            await world.backend.close()
            // On a busy machine it may take longer than a daemon that ends can wait.
            try await until { !world.field.isOn }
            while (try? await world.events.next()) != nil {}
        }
    }

    @Test("a chip that takes no raw frames serves short commands, and says so")
    func noFrames() async throws {
        var nature = EmulatedPN532.Nature()
        nature.sendsFrames = false
        let board = try EmulatedPN532(nature)
        let backend = NFCBackend(devices: [board.connection])
        var stream = backend.events.makeAsyncIterator()
        board.field.insert(PICC(application: PICC.echo))
        var extended: Bool?
        var found: Insertion?
        while found == nil, let event = await stream.next() {
            switch event {
            case .changed(let reader): extended = reader.hasExtendedLength
            case .inserted(let insertion, _): found = insertion
            default: break
            }
        }
        #expect(extended == false)
        let connection = try await backend.connect(try #require(found))
        for count in [1, 100, 255] {
            #expect(try await connection.transmit(World.echo(count).command) == World.echo(count).answer)
        }
        await #expect(throws: CardError.tooLong) { try await connection.transmit(World.echo(256).command) }
        await #expect(throws: CardError.tooLong) {
            try await connection.transmit(CommandAPDU(0, 0xB0, 0, 0, le: 300))
        }
        #expect(try await connection.transmit(CommandAPDU(0, 0xB0, 0, 0, le: 256)).data.count == 256)
        await connection.disconnect(reset: true)
        board.field.remove()
        while let event = await stream.next() {
            if case .withdrawn = event { break }
        }
    }

    @Test("a chip without type B finds cards of type A")
    func noTypeB() async throws {
        var nature = EmulatedPN532.Nature()
        nature.hasTypeB = false
        var world = try await World(nature)
        let connection = try await world.connect(PICC(application: PICC.echo))
        #expect(try await connection.transmit(World.echo(5).command) == World.echo(5).answer)
    }

    /// That nothing happens can only be seen in some time, so this test sleeps; nothing is waited for by it.
    @Test("a board without a card wakes nobody")
    func idle() async throws {
        let world = try await World()
        try await until { world.board.isSearching }
        let commands = world.board.commands
        try await Task.sleep(for: .seconds(2))
        // The chip has been asked once, and looks for itself.
        #expect(world.board.commands == commands)
        _ = world
    }

    // MARK: Health

    /// The advice for a device that cannot be opened.
    private func advice(_ device: String) async throws -> String {
        var events = Events(NFCBackend(devices: [device]))
        while events.checks.isEmpty { _ = try await events.next() }
        let check = try #require(events.checks.first)
        #expect(!check.ok && check.name == "nfc \(device)")
        return check.advice ?? ""
    }

    @Test("a board that is silent, or at another speed, is told from one that is not there")
    func lines() async throws {
        var nature = EmulatedPN532.Nature()
        nature.isDumb = true
        let silent = try EmulatedPN532(nature)
        #expect(try await advice(silent.connection).contains("no answer"))
        nature.isDumb = false
        nature.speed = speed_t(B9600)
        let slow = try EmulatedPN532(nature)
        #expect(try await advice(slow.connection).contains("wrong speed: the board answers at 9600 baud"))
        #expect(try await advice("pn532_uart:/nowhere/ttyUSB0").contains("there is no /nowhere/ttyUSB0"))
        #expect(try await advice("pn532_uart:/dev/null").contains("/dev/null is no serial line"))
        #expect(try await advice("not a device").contains("no connection string"))
    }

    /// As somebody who is not root, in a process of its own.
    private static func asNobody(_ prepare: (String) throws -> Void) async throws -> (advice: String, path: String) {
        let board = try EmulatedPN532()
        let path = String(cString: try #require(realpath(board.path, nil)))
        try prepare(path)
        if geteuid() == 0 {
            try #require(setgroups(0, nil) == 0 && setgid(65_534) == 0 && setuid(65_534) == 0)
        }
        var events = Events(NFCBackend(devices: ["pn532_uart:\(path)"]))
        while events.checks.isEmpty { _ = try await events.next() }
        // The line is there for as long as the board.
        return withExtendedLifetime(board) { (events.checks.first?.advice ?? "", path) }
    }

    @Test("a line without permission is told, with the group that has it")
    func denied() async {
        await #expect(processExitsWith: .success) {
            var status = stat()
            let (advice, path) = try await NFCDeviceTests.asNobody { path in
                #expect(chmod(path, 0o060) == 0 && stat(path, &status) == 0)
            }
            let group = status.st_gid == 0 ? nil : getgrgid(status.st_gid).map { String(cString: $0.pointee.gr_name) }
            #expect(advice.contains("\(path) is not readable and writable for us"))
            #expect(advice.contains("to group \(group ?? "dialout"), or"))
        }
    }

    @Test("a line that another program has for itself is told")
    func busy() async {
        await #expect(processExitsWith: .success) {
            let (advice, path) = try await NFCDeviceTests.asNobody { path in
                let holder = open(path, O_RDWR | O_NOCTTY)
                #expect(holder >= 0 && chmod(path, 0o666) == 0 && ioctl(holder, UInt(TIOCEXCL), 0) == 0)
            }
            #expect(advice.contains("another program has \(path) for itself"))
        }
    }

    @Test("the lock of a program that lives says why a line is silent, one of a dead program does not")
    func locked() throws {
        var nature = EmulatedPN532.Nature()
        nature.isDumb = true
        let board = try EmulatedPN532(nature)
        let path = String(cString: try #require(realpath(board.path, nil)))
        let locks = String(board.path.dropLast("/pn532".count))
        let lock = "\(locks)/LCK..\(path.split(separator: "/").last ?? "")"
        defer { unlink(lock) }
        let line = SerialLine(path: board.path, speed: 115_200, locks: locks)
        #expect(line.diagnose() == .silent)
        for (process, fault) in [(getpid(), SerialLineFault.busy), (pid_t.max, .silent)] {
            let file = try #require(fopen(lock, "w"))
            let digits = String(process)
            fputs(String(repeating: " ", count: 10 - digits.count) + digits + "\n", file)
            fclose(file)
            #expect(line.diagnose() == fault)
        }
    }
}
