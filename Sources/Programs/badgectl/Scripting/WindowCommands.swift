// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Synchronization
import Text

/// The commands of `badgectl send --pinentry` that do not go to badged. They are for a program with a window, such as
/// badged-desktop: a secret goes from pinentry to badged, and never through that program. badgectl(1), send.
final class WindowCommands: Sendable {
    private let connection: DaemonConnection
    /// The question that is open. The next one, and the end of its prompt, end it.
    private let question = Mutex<Task<Void, Never>?>(nil)

    init(_ connection: DaemonConnection) { self.connection = connection }

    /// Carries out a line. Returns false when it is for badged.
    func take(_ line: UnsafeRawBufferPointer) -> Bool {
        switch Self.command(line) {
        case "ASK_SECRET":
            guard let json = try? JSON(line) else { return false }
            replaceQuestion(by: Task { await self.ask(json) })
        case "FIND_SERVICE":
            guard let json = try? JSON(line) else { return false }
            find(json)
        default: return false
        }
        return true
    }

    /// The name of the command. The rest of the line is not copied, because it may hold a secret.
    private static func command(_ line: UnsafeRawBufferPointer) -> String? {
        let member = try? JSONScanner.members(of: line).last { line[$0.key].elementsEqual("cmd".utf8) }
        return member.map { String(decoding: line[$0.value].dropFirst().dropLast(), as: UTF8.self) }
    }

    /// Closes the window of a question that badged does not ask any more.
    func receive(_ event: Event) {
        let isVoid =
            event.isWorkflowRunning == false || Event.isQuestion(event.name) || event.message is InsertCard
        if isVoid { replaceQuestion(by: nil) }
    }

    /// Closes an open window, and waits for that.
    func end() async {
        let open = question.withLock { $0 }
        open?.cancel()
        await open?.value
    }

    private func replaceQuestion(by next: Task<Void, Never>?) {
        question.withLock { question in
            question?.cancel()
            question = next
        }
    }

    // MARK: ASK_SECRET

    private func ask(_ json: JSON) async {
        func text(_ name: String) -> String { json[name]?.string ?? "" }
        let digits = json["digits"]?.array?.compactMap(\.int) ?? []
        guard let kind = json["kind"]?.string.flatMap(SecretKind.init(rawValue:)), let least = digits.min(),
            let most = digits.max(), least > 0
        else { return answer(json, "invalid") }
        guard let program = ChildProcess.installed("pinentry") else { return answer(json, "failed") }
        let names = [
            ("title", "SETTITLE", ""), ("ok", "SETOK", ""), ("cancel", "SETCANCEL", ""),
            ("show", "OPTION", "default-tt-visi="), ("hide", "OPTION", "default-tt-hide="),
        ]
        let window = SecretWindow(
            description: text("description"),
            prompt: text("prompt"),
            advice: text("advice"),
            again: text("again"),
            different: text("different"),
            others: names.compactMap { name, command, option in
                json[name]?.string.map { Pinentry.Setting(command, option + $0) }
            }
        )
        let form = TypedSecretForm(name: kind.label, digits: least...most, isTypedTwice: kind == .newPIN)
        switch await window.ask(program, form) {
        case .secret(let box):
            guard let secret = box.take() else { return answer(json, "void") }
            // Without this connection there is no program that could be told.
            let number = json["question"].map { [JSON.Member("question", $0)] } ?? []
            _ = try? await connection.send(kind.command, number, value: secret)
            answer(json, "sent")
        case .cancelled: answer(json, "void")
        case .ended: answer(json, "cancelled")
        case .confirmed, .text, .malformed, .repeated, .noTerminal, .noPinentry: answer(json, "failed")
        }
    }

    private func answer(_ json: JSON, _ outcome: String) {
        Output.object { object in
            object.member("msg", "SECRET_ASKED")
            object.member("outcome", outcome)
            Self.repeatRequest(json, in: &object)
        }
    }

    // MARK: FIND_SERVICE

    private func find(_ json: JSON) {
        let address = Result {
            if let link = json["link"]?.string { return try ServiceLink.tcTokenURL(in: link) }
            return try AuthCommand.selfAddress()
        }
        Output.object { object in
            object.member("msg", "SERVICE")
            object.member("tcTokenURL", try? address.get())
            Self.repeatRequest(json, in: &object)
        }
    }

    private static func repeatRequest(_ json: JSON, in object: inout JSONWriter) {
        guard let request = json["request"] else { return }
        object.key("request")
        object.value(request)
    }
}
