// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// The command for readers over the network.
let remoteFeature = FeatureCommands(group: .administration, commands: [RemoteCommand.spec])

/// `badgectl remote`: lists, pairs and forgets the devices with which readers are shared.
enum RemoteCommand {
    private static let actions = [
        CommandAction("list", "show the devices", options: [.names], run: list),
        CommandAction(
            "pair",
            [.device.optional],
            "use the reader of a phone, which shows four digits",
            run: RemotePairing.pair
        ),
        CommandAction("forget", [.device], "remove a pairing", options: [.yes], run: forget),
        CommandAction("share", "show who may use the readers of this host", options: [.pair], run: share),
    ]

    static let spec = ShellCommand(
        name: "remote",
        summary: "use a phone as card reader, or lend readers of this host",
        actions: actions,
        others: ValueSpec("DEVICE"),
        common: [
            OptionSpec(.timeout, .seconds, "list and pair: how long to listen for devices; 2 and 30"),
            .pinStdin, .pinentry,
        ],
        options: [
            OptionSpec(.names, "list: show the names alone, one per line, without waiting for devices"),
            OptionSpec(.pair, "share: let one device pair, and show the code for it"), Confirmation.option,
        ],
        details: [
            """
            DEVICE is the name of a device, or the beginning of its fingerprint. Without it, pair takes the device that
            waits for a pairing. share --pair shows four digits for two minutes. After forget, remove the pairing at
            the other device, too.
            """,
            """
            The four digits do not protect against a man in the middle during the pairing. Pair in a network that you
            trust, and compare the fingerprints where the other device shows them.
            """,
        ],
        examples: [
            Example("use a phone that waits for a pairing", "badgectl remote pair"),
            Example("lend the readers of this host to another device", "badgectl remote share --pair"),
        ]
    )

    @Sendable private static func share(_ invocation: Invocation) async throws {
        invocation.has(.pair) ? try await RemotePairing.share(invocation) : try await showSharing(invocation)
    }

    // MARK: Lists

    /// The names of the devices that badged knows.
    static func names(_ invocation: Invocation) async throws -> [String] {
        names(in: try await state(try await invocation.connect(keepsEvents: false)))
    }

    private static func names(in state: RemoteReaders) -> [String] {
        Set((state.lenders + state.borrowers).map(\.name)).filter { !$0.isEmpty }.sorted()
    }

    @Sendable private static func list(_ invocation: Invocation) async throws {
        let connection = try await invocation.connect(keepsEvents: false)
        var state = try await state(connection)
        if invocation.has(.names) {
            for name in names(in: state) { invocation.show(name) }
            return
        }
        if state.isEnabled {
            // A device announces itself each second, and badged listens while it has a client.
            try? await Task.sleep(for: .seconds(invocation.seconds(of: .timeout) ?? 2))
            state = try await Self.state(connection)
        }
        guard !invocation.wantsJSON else { return }
        let lines =
            state.lenders.map { line($0, tr("lends")) }
            + state.borrowers.map {
                line($0, $0.isConnected && !state.used.isEmpty ? tr("uses a card") : tr("borrows"))
            }
        for line in lines { Output.line(line.printable) }
        guard lines.isEmpty else { return }
        let off = tr("readers over the network are off: badged.conf(5), [remote]")
        Output.note(state.isEnabled || state.isShared ? tr("no device announces itself or is paired") : off)
    }

    private static func line(_ device: RemoteDevice, _ role: String) -> String {
        "\(device.fingerprint)  \(role)  \(status(device))  \(device.name)"
    }

    /// Such as `paired, connected`.
    static func status(_ device: RemoteDevice) -> String {
        var words = [device.isPaired ? tr("paired") : tr("not paired")]
        if device.isConnected { words.append(tr("connected")) }
        if device.isPairing == true { words.append(tr("waits for a pairing")) }
        if device.isRefusing { words.append(tr("refuses this host: forget it, then pair again")) }
        return words.joined(separator: ", ")
    }

    private static func showSharing(_ invocation: Invocation) async throws {
        let state = try await state(try await invocation.connect(keepsEvents: false))
        guard state.isShared else { throw notShared }
        guard !invocation.wantsJSON else { return }
        if let fingerprint = state.fingerprint { Output.line(tr("fingerprint of this host  \(fingerprint)").printable) }
        for reader in state.used { Output.line(tr("in use  \(reader)").printable) }
        for device in state.borrowers { Output.line(line(device, tr("borrows")).printable) }
        if state.borrowers.isEmpty { Output.note(tr("no device is paired; to pair one: badgectl remote share --pair")) }
    }

    static let notShared = CommandFailure(
        tr("this host lends no readers"),
        hint: tr("set share = yes and readers in badged.conf(5), [remote], then restart badged")
    )

    static func state(_ connection: DaemonConnection) async throws -> RemoteReaders {
        try await connection.remoteReaders()
    }

    // MARK: Devices

    @Sendable private static func forget(_ invocation: Invocation) async throws {
        let wanted = invocation.argument
        let connection = try await invocation.connect(keepsEvents: false)
        try await connection.require("cards", "remote")
        let state = try await state(connection)
        let paired = (state.lenders + state.borrowers).filter(\.isPaired)
        // badged does not list a pairing that it cannot read, and removes it.
        let isFingerprint = wanted.utf8.count == 64 && wanted.utf8.allSatisfy { Hex.value($0) != nil }
        let device = try find(wanted, among: paired)
        guard let fingerprint = device?.fingerprint ?? (isFingerprint ? wanted.lowercased() : nil) else {
            throw CommandFailure(
                tr("no device \(wanted) is paired"),
                hint: tr("badgectl remote list shows the devices")
            )
        }
        let name = device?.name ?? String(fingerprint.prefix(12))
        try await invocation.confirm(
            tr("This removes the pairing with \(name), \(fingerprint). To use it again, pair again."),
            notDone: tr("the pairing was not removed")
        )
        _ = try await connection.removeRemote(fingerprint)
        guard !invocation.wantsJSON else { return }
        Output.line(tr("\(name) is forgotten. Remove the pairing there, too.").printable)
    }

    /// Finds a device by its name, or by the beginning of its fingerprint; nil: there is none.
    static func find(_ wanted: String, among devices: [RemoteDevice]) throws -> RemoteDevice? {
        let named = devices.filter { $0.name == wanted }
        let found = named.isEmpty ? devices.filter { !wanted.isEmpty && $0.fingerprint.hasPrefix(wanted) } : named
        guard Set(found.map(\.fingerprint)).count < 2 else {
            let list = found.map { $0.fingerprint.prefix(12) }.joined(separator: ", ")
            throw CommandFailure(
                usage: tr("\(found.count) devices are called \(wanted)"),
                hint: tr("use the fingerprint: \(list)")
            )
        }
        return found.first
    }
}
