// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Synchronization
import Text

/// Answers an authentication without a person: `--automatic`. The rights are on the command line, the PIN is in a file.
/// badged decides which cards may get the PIN: docs/protocol/eid.md, Automatic answers.
final class AutomaticAnswers: Sendable {
    static let options = [
        OptionSpec(.automatic, "answer without a person, for test labs"),
        OptionSpec(.rights, ValueSpec("LIST"), "with --automatic: names of the rights to grant at most, or all"),
        OptionSpec(.pinFile, ValueSpec("FILE", .files), "with --automatic: the file with the PIN"),
    ]
    static let details: Phrase = """
        With --automatic nobody is asked. A service gets the rights of --rights at most, such as
        GivenNames,FamilyName, and nothing if it requires more. The PIN is in the file of --pin-file, which no other
        user may read, or in the systemd credential pin. badged gives it to virtual cards; to other cards only with
        automatic_pin = yes in [eid] of badged.conf(5), once per insertion, and only if the card has all its tries.
        After a wrong PIN the program ends.
        """

    /// The names of the rights that are granted at most; nil: all.
    private let rights: Set<String>?
    private let path: String
    /// Whether the PIN was wrong, so that it must not be given again.
    private let over = Mutex(false)

    var isOver: Bool { over.withLock { $0 } }

    /// Reads the options; nil without `--automatic`.
    /// - Throws: what is wrong with the options or with the file.
    init?(_ invocation: Invocation) throws {
        guard invocation.has(.automatic) else {
            guard let option = [OptionName.rights, .pinFile].first(where: invocation.has) else { return nil }
            throw Self.usage(tr("\(option) needs --automatic"), tr("leave it out, or add --automatic"))
        }
        if let other = [OptionName.pinentry, .pinStdin, .yes].first(where: invocation.has) {
            throw Self.usage(tr("--automatic and \(other) exclude each other"), tr("use one of them"))
        }
        guard let list = invocation.value(of: .rights) else {
            throw Self.usage(tr("--automatic needs --rights"), tr("for example: --rights GivenNames,FamilyName"))
        }
        let names = list.split(separator: ",").map { $0.filter { !$0.isWhitespace } }
        if let name = names.first(where: { !Self.known.contains($0) && $0 != "all" }) {
            throw Self.usage(
                tr("--rights: there is no right \(name)"),
                tr("the rights are: \(Self.known.sorted().joined(separator: ", "))")
            )
        }
        rights = names.contains("all") ? nil : Set(names)
        if let path = invocation.value(of: .pinFile) {
            self.path = path
        } else if let folder = Self.credentials {
            path = "\(folder)/pin"
        } else {
            throw Self.usage(
                tr("--automatic needs --pin-file"),
                tr("or LoadCredential=pin:FILE in the unit of systemd")
            )
        }
        // A fault of the file is told now, and not when a card is there.
        _ = try pin()
    }

    private static func usage(_ text: String, _ hint: String) -> CommandFailure {
        CommandFailure(usage: text, hint: hint)
    }

    /// The rights that a person could grant, without the CAN in place of the PIN: nobody could type it.
    private static let known: Set<String> = [
        "WriteAddress", "WriteCommunityID", "WriteResidencePermitI", "WriteResidencePermitII", "ResidencePermitII",
        "ResidencePermitI", "CommunityID", "Address", "BirthName", "Nationality", "PlaceOfBirth", "DateOfBirth",
        "DoctoralDegree", "ArtisticName", "FamilyName", "GivenNames", "ValidUntil", "IssuingCountry", "DocumentType",
        "PinManagement", "Pseudonym", "AddressVerification", "AgeVerification",
    ]

    /// The rights to grant of a request; nil if it requires more than the list has.
    func granted(_ request: AccessRights) -> [String]? {
        let allowed = { [rights] (name: String) in Self.known.contains(name) && rights?.contains(name) ?? true }
        guard request.required.allSatisfy(allowed) else { return nil }
        return (request.required + request.optional).filter(allowed)
    }

    /// The folder with the credentials of a systemd service.
    private static var credentials: String? {
        systemEnvironment("CREDENTIALS_DIRECTORY").flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Reads the PIN, which stays in no memory between two questions.
    private func pin() throws -> SecretBox {
        let content = try translating(
            { (error: StartError) in CommandFailure(error) },
            SecretFile.read(path, limit: 7, setting: "--pin-file")
        )
        // An editor ends the line.
        let hasEnd = content.withBytes { $0.last == UInt8(ascii: "\n") }
        let form = TypedSecretForm(name: "PIN", digits: 6...6)
        guard let pin = content.part(0..<content.count - (hasEnd ? 1 : 0)), form.accepts(pin) else {
            throw CommandFailure(
                tr("\(path) has no PIN of 6 digits"),
                hint: tr("write the 6 digits into the file, and nothing else")
            )
        }
        return SecretBox(pin)
    }

    /// The PIN for a question.
    /// - Throws: why no program may answer the question.
    func answer(_ question: SecretQuestion) throws -> SecretBox {
        let byHand = tr("run badgectl auth without --automatic")
        func failure(_ text: String) -> CommandFailure { CommandFailure(text, hint: byHand) }
        if let error = question.error { throw failure(DaemonWords.text(error)) }
        guard question.kind == .pin else {
            throw failure(tr("the card needs the \(question.kind.label), which only a person may give"))
        }
        guard question.last?.outcome != .wrong, !isOver else {
            over.withLock { $0 = true }
            throw failure(tr("the PIN in \(path) is wrong"))
        }
        guard question.last == nil else { throw failure(tr("the card left before it answered; the PIN is given once")) }
        return try pin()
    }
}
