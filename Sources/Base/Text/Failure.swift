// SPDX-License-Identifier: Apache-2.0

/// Why something has failed, as the person at the client reads it. It never has a secret.
///
/// This is the only error type above Card. Card, Text and Wire have typed errors of their own, whose callers switch over
/// every case.
package struct Failure: Error, Sendable, Equatable {
    /// The word for the reason, as clients see it: the feature that answers may have its own word for it.
    package struct Code: RawRepresentable, Hashable, Sendable {
        package let rawValue: String

        package init(rawValue: String) { self.rawValue = rawValue }
        package init(_ rawValue: String) { self.init(rawValue: rawValue) }
    }

    package var code: Code
    /// What happened.
    package var text: Phrase
    /// What to do next; nil if `text` says it, or if there is nothing to do.
    package var advice: Phrase?
    /// What has changed, or may have changed, although it failed.
    package var change: Phrase?
    /// The error below, for the log alone.
    package var cause: String?
    /// Further members of the message.
    package var details: [JSON.Member]

    package init(
        _ code: Code,
        _ text: Phrase,
        advice: Phrase? = nil,
        cause: String? = nil,
        details: [JSON.Member] = []
    ) {
        self.code = code
        self.text = text
        self.advice = advice
        self.cause = cause
        self.details = details
    }

    /// What happened, what to do next, and what has changed.
    package var message: Phrase {
        let told: Phrase = advice.map { "\(text): \($0)" } ?? text
        return change.map { "\(told). \($0)" } ?? told
    }

    /// A further member of the message.
    package subscript(_ name: String) -> JSON? { JSON.object(details)[name] }

    /// The line of the log.
    package var logText: String {
        "\(code.rawValue): \(message)" + (cause.map { " (\($0))" } ?? "")
    }
}

extension Failure.Code {
    /// A member of a command is wrong. The detail `member` has its name.
    package static let wrongArgument = Self("InvalidParameter")
    /// A member of a command is missing. The detail `member` has its name.
    package static let missingArgument = Self("MissingParameter")
    /// The command does not fit the state of the session.
    package static let badState = Self("BAD_STATE")
    /// CANCEL, a closed connection, or the end of the daemon.
    package static let cancelled = Self("User_Cancelled")
    /// The client has not answered a prompt in time.
    package static let timedOut = Self("Prompt_Timeout")
    /// The card has left, or does not answer.
    package static let cardLost = Self("Card_Lost")
    /// The client has lost a permission.
    package static let accessDenied = Self("Access_Denied")
    /// As many workflows run as may.
    package static let tooManyWorkflows = Self("Too_Many_Workflows")
    /// A fault of badged or of this host.
    package static let internalError = Self("InternalError")
}

/// Runs `body`, and throws its error as what the caller reports.
package func translating<Value: ~Copyable, Cause: Error, Reported: Error>(
    _ report: (Cause) -> Reported,
    _ body: () throws(Cause) -> Value
) throws(Reported) -> Value {
    do throws(Cause) {
        return try body()
    } catch {
        throw report(error)
    }
}

/// The same for one expression, whose closure and error need not be spelled.
package func translating<Value: ~Copyable, Cause: Error, Reported: Error>(
    _ report: (Cause) -> Reported,
    _ value: @autoclosure () throws(Cause) -> Value
) throws(Reported) -> Value {
    do throws(Cause) {
        return try value()
    } catch {
        throw report(error)
    }
}

/// Awaits `value`, and throws its error as what the caller reports.
package func awaiting<Value: ~Copyable, Cause: Error, Reported: Error>(
    orThrow report: (Cause) -> Reported,
    _ value: @autoclosure () async throws(Cause) -> Value
) async throws(Reported) -> Value {
    do throws(Cause) {
        return try await value()
    } catch {
        throw report(error)
    }
}

extension Result {
    /// The outcome of an asynchronous body, for a task whose end is awaited elsewhere.
    package init(of body: () async throws(Failure) -> Success) async {
        do throws(Failure) {
            self = .success(try await body())
        } catch {
            self = .failure(error)
        }
    }
}

extension Failure {
    /// The command does not fit the state of the session.
    package static let badState = Failure(.badState, "the command does not fit the state")
}

/// What is wrong with bytes or text from outside: a message, an answer, a file, a value that a person has written.
///
/// The parsers throw it whose callers only report the words. A parser whose callers act on the reason has a type of its
/// own.
package struct Malformed: Error, Sendable, Equatable, CustomStringConvertible {
    /// For a person or the log, with the place of the fault. It holds no secret.
    package let words: Phrase

    package init(_ words: Phrase) { self.words = words }

    /// A fault that is told in English only.
    package init(_ text: String) { words = Phrase(verbatim: text) }

    /// The words in English.
    package var text: String { words.description }

    package var description: String { text }

    /// The same fault, at a place inside of something else.
    package func at(_ place: String) -> Malformed { Malformed("\(place): \(words)" as Phrase) }

    /// Reads something inside of something else: a fault names the place.
    package static func at<Value: ~Copyable>(
        _ place: @autoclosure () -> String,
        _ read: () throws(Malformed) -> Value
    ) throws(Malformed) -> Value {
        try translating({ (error: Malformed) in error.at(place()) }, read)
    }

    package static func at<Value: ~Copyable>(
        _ place: @autoclosure () -> String,
        _ value: @autoclosure () throws(Malformed) -> Value
    ) throws(Malformed) -> Value {
        try translating({ (error: Malformed) in error.at(place()) }, value())
    }
}
