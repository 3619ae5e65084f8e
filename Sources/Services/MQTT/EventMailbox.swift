// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
package import Host
import Synchronization
package import Text

/// An input of the thread that talks to the broker.
package enum MailboxInput: Sendable {
    /// An event of badged: its number there, the start of badged, and its members.
    case event(EventStream, number: Int, run: Int, time: Int64, [JSON.Member])
    /// Events may be missing before the next one.
    case gap(EventStream?, Gap.Reason, since: Int64?, until: Int64)
    /// The newest content of a document. `isUrgent`: a change that people wait for.
    case document(Document, [JSON.Member], isUrgent: Bool)
    case daemon(DaemonState)
    /// The attempt with this number to reach the broker has ended.
    case dialled(attempt: Int, Dialling.Outcome)
    /// New settings that were checked. They are used as soon as they have connected.
    case reload(MQTTConfiguration)
    /// The thread that watches badged goes on.
    case alive
    /// The same because somebody asks for the status.
    case asked
    case stop
}

/// The connection to badged, and what runs there.
package struct DaemonState: Sendable, Equatable {
    package var isConnected = false
    /// Whether badged reports taps.
    package var isWatching = false
    /// The last version that is known.
    package var version: String?
    /// The start of badged in milliseconds since 1970; 0 without a connection.
    package var run = 0
    /// The hash of the settings of badged.
    package var settings: String?
    /// Versions of the packages of the system that badged works with.
    package var packages: [String: String] = [:]

    package init() {}
}

/// The documents of which only the newest content counts.
package enum Document: String, Sendable, CaseIterable {
    case state, health, readers, sightings
}

/// Inputs that wait for the thread of the broker. It is woken by a descriptor.
package final class EventMailbox: Sendable {
    private struct State {
        var inputs: [MailboxInput] = []
        var events = 0
    }

    /// The largest number of events that wait, about 20 MB. What is beyond is missed: the next event says so, since it
    /// has a number of badged.
    private static let limit = 5000

    private let state = Mutex(State())
    /// Readable when inputs wait.
    let descriptor: Int32

    package init() throws(StartError) {
        descriptor = clinux_eventfd()
        guard descriptor >= 0 else {
            throw StartError("no descriptor is left: \(errorText())", hint: "raise LimitNOFILE=")
        }
    }

    deinit { close(descriptor) }

    package func post(_ input: MailboxInput) {
        state.withLock { state in
            if case .document(let document, _, let isUrgent) = input {
                var isUrgent = isUrgent
                state.inputs.removeAll {
                    guard case .document(document, _, let wasUrgent) = $0 else { return false }
                    isUrgent = isUrgent || wasUrgent
                    return true
                }
                if case .document(_, let members, _) = input {
                    state.inputs.append(.document(document, members, isUrgent: isUrgent))
                }
            } else if case .event = input {
                guard state.events < Self.limit else { return }
                state.events += 1
                state.inputs.append(input)
            } else {
                state.inputs.append(input)
            }
        }
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    package func take() -> [MailboxInput] {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
        return state.withLock { state in
            defer { state = State() }
            return state.inputs
        }
    }
}
