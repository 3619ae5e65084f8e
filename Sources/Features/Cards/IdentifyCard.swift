// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import ISO7816
import Readers
import Server
import Text

/// IDENTIFY_CARD: what a card that no feature uses says about itself. docs/protocol/readers.md.
extension ReaderFeature {
    /// Applications that may be selected: none of them asks, pays or counts. Those of payment cards and NDEF are not
    /// here, because they wake a wallet of a phone.
    static let applications: [(aid: String, name: String)] = [
        ("A000000151000000", "GlobalPlatform card manager"), ("E80704007F00070302", "German eID"),
        ("A0000002471001", "electronic document (ICAO 9303)"), ("A000000308000010000100", "PIV"),
        ("D27600012401", "OpenPGP card"), ("A000000063504B43532D3135", "PKCS #15"),
        ("A000000167455349474E", "eSign"), ("D2760001448000", "German health card"),
        ("A0000006472F0001", "FIDO"), ("A0000005272101", "one-time codes (OATH)"),
        ("A0000008040001", "Keycard"), ("A0000000871002", "USIM"), ("D2760000850100", "DESFire"),
    ]

    func identify(_ call: Call) async throws(Failure) -> Reply {
        let (reader, insertion) = try cardReader(call)
        let name = reader.name
        let unasked = CardIdentityMessage(reader: name, answerToReset: reader.answerToReset)
        // A card that a feature knows is not asked for more.
        guard reader.knownKind == nil || reader.knownKind == "tag" else { return Reply(unasked) }
        let hasNumber = call.session.permissions.contains(.credentials)
        do throws(CardError) {
            let identity = try await withCard(insertion, for: call) {
                (lease) async throws(CardError) -> CardIdentityMessage in
                var identity = unasked
                let channel = CompletingChannel(lease.connection)
                if hasNumber { identity.uid = try await Self.uid(on: channel) }
                for application in Self.applications {
                    guard let aid = Hex.decode(application.aid) else { continue }
                    let answer = try await channel.transmit(CommandAPDU(0x00, 0xA4, 0x04, 0x00, data: aid, le: 256))
                    // 62XX: the application is there, and switched off.
                    if answer.status == .ok || answer.status.sw1 == 0x62 { identity.applications.append(application) }
                }
                return identity
            }
            return Reply(identity)
        } catch {
            var identity = unasked
            identity.fault = CardVerdict(error).text(name)
            return Reply(identity)
        }
    }

    /// The reader that `name` names, and the card in it.
    func cardReader(_ call: Call) throws(Failure) -> (Reader, Insertion) {
        let name = try call.arguments.text("name", 1...1024)
        guard let reader = registry[name] else { throw Failure(.wrongArgument, "there is no reader of this name") }
        guard let insertion = reader.insertion, reader.showsCard else {
            throw Failure(.wrongArgument, "there is no card in this reader")
        }
        return (reader, insertion)
    }

    /// Lends a card to a body, and resets the card at the end.
    /// - Throws: `.removed` also if another card has taken its place.
    func withCard<Value>(
        _ insertion: Insertion,
        for call: Call,
        _ body: @Loop (CardLease) async throws(CardError) -> Value
    ) async throws(CardError) -> Value {
        // As in `setCard`: in a task without a preferred executor.
        let lending = Task { @Loop in
            await Result { () async throws(CardError) in
                try await registry.lend(
                    insertion.reader,
                    to: ObjectIdentifier(call.session),
                    called: "another client"
                )
            }
        }
        let lease = try await lending.cancellableValue.get()
        do throws(CardError) {
            guard lease.insertion == insertion else { throw .removed }
            let value = try await body(lease)
            await lease.release(removingVirtualCard: false)
            return value
        } catch {
            await lease.release(removingVirtualCard: false)
            throw error
        }
    }

    private static func uid(on channel: CompletingChannel) async throws(CardError) -> [UInt8]? {
        let answer = try await channel.transmit(CommandAPDU(0xFF, 0xCA, 0x00, 0x00, le: 256))
        return answer.status == .ok && (1...16).contains(answer.data.count) ? answer.data : nil
    }
}

extension CardVerdict {
    /// Why the card could not be asked.
    func text(_ reader: String) -> Phrase {
        switch self {
        case .cardFailed(let failure): failure.obstacle.text(reader)
        case .hindered(let obstacle): obstacle.text(reader)
        case .cardLeft, .ended: "The card has left the reader."
        }
    }
}

/// CARD_IDENTITY: what a card has said about itself.
struct CardIdentityMessage: Message {
    static let name: StaticString = "CARD_IDENTITY"
    let reader: String
    let answerToReset: [UInt8]
    var uid: [UInt8]?
    var applications: [(aid: String, name: String)] = []
    /// Why the card could not be asked for its applications.
    var fault: Phrase?

    init(reader: String, answerToReset: [UInt8]) {
        self.reader = reader
        self.answerToReset = answerToReset
    }

    func write(to object: inout JSONWriter, _ level: APILevel) {
        object.member("name", reader)
        if let fault { object.member("fault", fault) }
        object.member("atr", Hex.encode(answerToReset))
        if let uid { object.member("uid", Hex.encode(uid)) }
        object.array("applications", applications) { array, application in
            array.object {
                $0.member("aid", application.aid)
                $0.member("name", application.name)
            }
        }
    }
}
