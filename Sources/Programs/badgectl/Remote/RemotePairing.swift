// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Text

/// `badgectl remote pair` and `badgectl remote share --pair`.
enum RemotePairing {
    private static let warning = tr(
        """
        The four digits do not protect against a man in the middle during the pairing. Pair in a network that you \
        trust, and compare the fingerprints where the other device shows them.
        """
    )

    // MARK: The reader of another device

    static func pair(_ invocation: Invocation) async throws {
        let workflow = try await WorkflowRun(invocation, notDone: tr("the devices are not paired"))
        try await workflow.run {
            try await workflow.connection.require("cards", "remote")
            let device = try await findDevice(workflow, invocation)
            let result = try await workflow.connection.pairReader(device.fingerprint) { question in
                await code(question, workflow.user)
            }
            try check(result, workflow.user)
            let name = result.name ?? device.name
            workflow.user.show(result: tr("Paired with \(name), \(device.fingerprint).").printable)
        }
    }

    /// Waits for the announcement of the device.
    private static func findDevice(
        _ workflow: WorkflowRun,
        _ invocation: Invocation
    ) async throws -> RemoteDevice {
        let connection = workflow.connection
        let request = try await connection.askForRemoteReaders()
        let seconds = invocation.seconds(of: .timeout) ?? 30
        let limit = Task.detached {
            try? await Task.sleep(for: .seconds(seconds))
            // Closing ends the loop over the events.
            if !Task.isCancelled { connection.close() }
        }
        defer { limit.cancel() }
        var announced: [RemoteDevice] = []
        for await event in connection.events {
            if event.answers(request), let refusal = event.message.refusal { throw refusal }
            guard let state = event.message as? RemoteReaders else { continue }
            guard state.isEnabled else {
                let hint = tr("set enabled = yes in badged.conf(5), [remote], then restart badged")
                throw CommandFailure(tr("badged uses no readers of other devices"), hint: hint)
            }
            announced = state.lenders.filter { $0.isPairing != nil }
            if event.answers(request) { workflow.user.say(tr("Waiting for the announcement of the device.")) }
            if let device = try choose(invocation.others.first, announced) { return device }
        }
        if let ending = workflow.user.ending { throw ending }
        if let ending = connection.ending, ending != .closed { throw ending }
        throw notFound(invocation.others.first, announced)
    }

    private static func choose(_ wanted: String?, _ announced: [RemoteDevice]) throws -> RemoteDevice? {
        if let wanted { return try RemoteCommand.find(wanted, among: announced) }
        let waiting = announced.filter { $0.isPairing == true }
        guard waiting.count < 2 else {
            let list = waiting.map { "\($0.name) (\($0.fingerprint.prefix(12)))" }.joined(separator: ", ")
            throw CommandFailure(
                usage: tr("\(waiting.count) devices wait for a pairing"),
                hint: tr("name one of them: \(list)")
            )
        }
        return waiting.first
    }

    private static func notFound(_ wanted: String?, _ announced: [RemoteDevice]) -> CommandFailure {
        let names = announced.map(\.name).joined(separator: ", ")
        let text = wanted.map { tr("no device \($0) announces itself") } ?? tr("no device waits for a pairing")
        let others = names.isEmpty ? "" : tr("; devices that announce themselves: \(names)")
        let hint = tr("open the remote reader and its pairing mode on the phone; badgectl health checks the network")
        return CommandFailure(text, hint: hint + others)
    }

    /// Asks for the digits that the other device shows.
    private static func code(_ question: PairingCodeQuestion, _ user: CommandLineUser) async -> SecretBox? {
        if let error = question.error {
            user.say("\(DaemonWords.text(error)).".printable)
        } else {
            user.say(tr("Pairing with \(question.name).").printable)
            // Each has a line of its own, so that none is broken.
            for (label, fingerprint) in [
                (tr("Its fingerprint:"), question.fingerprint), (tr("This host:"), question.ownFingerprint),
            ] {
                user.say(label)
                user.say("  \(fingerprint.printable)")
            }
            user.say(warning)
        }
        if user.endsScript(question.error) { return nil }
        return await user.secret(TypedSecretForm(name: tr("pairing code"), digits: 4...4))
    }

    // MARK: The readers of this host

    static func share(_ invocation: Invocation) async throws {
        let workflow = try await WorkflowRun(invocation, notDone: tr("no device is paired"))
        try await workflow.connection.require("cards", "remote")
        guard try await RemoteCommand.state(workflow.connection).isShared else { throw RemoteCommand.notShared }
        try await workflow.run {
            let user = workflow.user
            let result = try await workflow.connection.openPairing { code in
                user.say(tr("Fingerprint of this host: \(code.fingerprint)").printable)
                user.say(warning)
                user.say(tr("Type this code at the other device within \(code.seconds) s:"))
                user.show(result: code.code.printable)
            }
            try check(result, user)
            user.say(tr("Paired with \(result.name ?? tr("a device")), \(result.fingerprint ?? "").").printable)
        }
    }

    private static func check(_ result: PairingResult, _ user: CommandLineUser) throws {
        guard !result.success else { return }
        if let ending = user.ending { throw ending }
        let text = result.error.map { DaemonWords.text($0).asClause(of: $0) } ?? tr("the devices are not paired")
        throw CommandFailure(text, hint: tr("try again"))
    }
}
