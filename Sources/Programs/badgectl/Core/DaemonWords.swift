// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import Host
import Synchronization
import Text

/// What badged says in English, in the language of the user. docs/protocol.md, Texts.
enum DaemonWords {
    /// The phrases of the messages so far, by their English texts.
    private static let phrases = Mutex<[String: Phrase]>([:])
    /// More phrases are forgotten, and longer texts are not looked up.
    private static let maximumPhrases = 500
    private static let maximumCount = 4000

    /// Notes the phrases of a message.
    static func note(_ message: JSON) {
        var left = maximumPhrases
        note(message, &left)
    }

    private static func note(_ message: JSON, _ left: inout Int) {
        for item in message.array ?? [] { note(item, &left) }
        for member in message.members ?? [] {
            note(member.value, &left)
            guard left > 0, member.key.hasSuffix(Phrase.memberSuffix) else { continue }
            left -= 1
            let name = String(member.key.dropLast(Phrase.memberSuffix.count))
            guard let phrase = Phrase(name, of: message), isKnowable("\(phrase)") else { continue }
            phrases.withLock { known in
                if known.count >= maximumPhrases { known = [:] }
                known["\(phrase)"] = phrase
            }
        }
    }

    /// The text in the language of the user. A text without a phrase is one that has no values, or foreign.
    static func text(_ english: String) -> String {
        guard isKnowable(english) else { return english }
        return tr(phrases.withLock { $0[english] } ?? Phrase(stringLiteral: english))
    }

    /// A complaint about a file: the file, a colon and the reason.
    static func placed(_ english: String) -> String {
        guard let colon = english.firstRange(of: ": ") else { return text(english) }
        return english[..<colon.upperBound] + text(String(english[colon.upperBound...]))
    }

    private static func isKnowable(_ text: String) -> Bool { text.utf8.count <= maximumCount && text.isComparable }

    /// What parts say that know no phrases: libc, drivers, and the readers of files.
    private static let others: [Phrase] = [
        Phrase("No such file or directory"), Phrase("File exists"), Phrase("Permission denied"),
        Phrase("Is a directory"),
        Phrase("Not a directory"), Phrase("No space left on device"), Phrase("Read-only file system"),
        Phrase("it is neither a file nor a pipe"), Phrase("it is not a plain file"),
        Phrase("it is no certificate and no list"), Phrase("the file is too long"),
        Phrase("it is no NFC board of badged-nfc"), Phrase("the board does not answer"),
        Phrase("the board cannot be opened"), Phrase("the board said too much"), Phrase("this libnfc logs no frames"),
        Phrase("badged-nfc has sent no recording"), Phrase("the number of the card cannot be replaced"),
        Phrase("until there is one, nobody is listed"), Phrase("make it a file that user badged can read"),
        Phrase("list fewer credentials"), Phrase("check the disk"),
    ]
}
