// SPDX-License-Identifier: Apache-2.0
public import Text

/// How a pairing with another device ended.
public struct PairingResult: Sendable, Equatable {
    public var success: Bool
    /// Why the devices are not paired, for people.
    public var error: String?
    /// The other device; nil if badged knows none.
    public var fingerprint: String?
    public var name: String?
}

extension PairingResult {
    /// nil for the message with which a pairing begins.
    fileprivate init?(_ json: JSON) throws(Malformed) {
        guard json["success"] != nil else { return nil }
        success = try json.required("success", as: \.bool)
        error = json["error"]?.string
        fingerprint = json["fingerprint"]?.string
        name = json["name"]?.string
    }
}

/// A pairing has begun or ended: PAIR_READER with a device that lends readers, OPEN_PAIRING with one that borrows them.
public struct PairingMessage: ServerMessage, WorkflowMessage {
    static let names = ["PAIR_READER", "OPEN_PAIRING"]
    static let errorIsRefusal = false

    /// How the pairing ended; nil when it has just begun.
    public var outcome: PairingResult?

    public init(outcome: PairingResult?) { self.outcome = outcome }

    init(_ json: JSON) throws(Malformed) { outcome = try PairingResult(json) }
}

/// The four digits that the user types at the other device: PAIRING_CODE.
public struct PairingCode: ServerMessage, SecretMessage {
    static let names = ["PAIRING_CODE"]

    public var code: String
    /// The fingerprint of this host. The user compares it with what the other device shows.
    public var fingerprint: String
    /// How long the pairing mode lasts.
    public var seconds: Int
}

extension PairingCode {
    init(_ json: JSON) throws(Malformed) {
        code = try json.required("code", as: \.string)
        fingerprint = try json.required("fingerprint", as: \.string)
        seconds = try json.required("seconds", as: \.int)
    }
}

/// badged asks for the four digits that the other device shows: ENTER_PAIRING_CODE.
///
/// The digits do not protect against a man in the middle during the pairing. Show the user both fingerprints, and warn
/// the user to pair only in a trusted network.
public struct PairingCodeQuestion: ServerMessage, NamedMessage {
    static let names = ["ENTER_PAIRING_CODE"]
    static let errorIsRefusal = false

    /// The name that the other device gives itself.
    public var name: String
    /// The fingerprint of the other device, as its announcement says; a device with another one is refused.
    public var fingerprint: String
    public var ownFingerprint: String
    /// What was wrong with the last code.
    public var error: String?
    public var number: Int?

    public var refusal: ClientError? { error.map(ClientError.refused) }
}

extension PairingCodeQuestion {
    init(_ json: JSON) throws(Malformed) {
        name = try json.required("name", as: \.string)
        fingerprint = try json.required("fingerprint", as: \.string)
        ownFingerprint = try json.required("ownFingerprint", as: \.string)
        error = json["error"]?.string
        number = json["question"]?.int
    }
}

extension PairingCodeQuestion: Question {
    func answer(by user: PairingUser, after _: Submission?) async -> Answer? {
        await user.code(self).map { Answer(command: "SET_PAIRING_CODE", value: $0) }
    }
}

/// The user of `pairReader`.
struct PairingUser: WorkflowUser {
    let code: @Sendable (PairingCodeQuestion) async -> SecretBox?
}

/// The user of `openPairing`.
private struct CodeReader: WorkflowUser {
    let show: @Sendable (PairingCode) async -> Void

    func other(_ event: Event) async {
        if let code = event.message as? PairingCode { await show(code) }
    }
}

extension DaemonConnection {
    /// Pairs with a device that lends readers: runs PAIR_READER from its start to its end. Cancelling the calling task
    /// ends the pairing.
    ///
    /// - Parameters:
    ///   - fingerprint: of a device that announces itself now, as `RemoteReaders.lenders` has it.
    ///   - code: returns the four digits that the other device shows; nil cancels. It is called again after a wrong code.
    /// - Returns: how the pairing ended.
    /// - Throws: `accessDenied`, `workflowRunning`, the end of the connection, or `cancelled`.
    public func pairReader(
        _ fingerprint: String,
        code: @escaping @Sendable (PairingCodeQuestion) async -> SecretBox?
    ) async throws(ClientError) -> PairingResult {
        try await runWorkflow(
            until: PairingMessage.self,
            PairingUser(code: code),
            start: await self.send("PAIR_READER", [.init("fingerprint", .string(fingerprint))])
        )
    }

    /// Lets another device pair with this host: runs OPEN_PAIRING from its start to its end. Cancelling the calling
    /// task closes the pairing mode.
    ///
    /// - Parameter show: shows the user the code and the fingerprint of this host.
    /// - Returns: how the pairing mode ended, and with which device.
    /// - Throws: `accessDenied`, `workflowRunning`, the end of the connection, or `cancelled`.
    public func openPairing(
        show: @escaping @Sendable (PairingCode) async -> Void
    ) async throws(ClientError) -> PairingResult {
        try await runWorkflow(
            until: PairingMessage.self,
            CodeReader(show: show),
            start: await self.send("OPEN_PAIRING")
        )
    }
}
