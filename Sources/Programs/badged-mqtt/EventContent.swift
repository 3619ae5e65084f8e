// SPDX-License-Identifier: GPL-3.0-or-later
import BadgedClient
import MQTT
import Text
import Vault

/// What the broker receives of an event and of a reader: nothing that is not named here.
struct EventContent: Sendable {
    let credentials: MQTTConfiguration.Credentials
    let siteKey: SiteKey?

    /// The members of a tap; nil: taps are not published.
    func members(of tap: Credential) -> [JSON.Member]? {
        guard credentials != .no else { return nil }
        var members: [JSON.Member] = [
            .init("reader", .string(Self.short(tap.reader))), .init("protocol", .string(tap.technology)),
            .init("verified", .bool(tap.key != nil)),
        ]
        guard let key = tap.key else {
            members.append(.init("reason", .string(tap.reason ?? "unknown")))
            if let tag = tap.tag { members += self.members(of: tag) }
            if let raw = tap.raw { members += self.members(of: raw) }
            return members
        }
        let x = Array(key.point.dropFirst().prefix(32))
        switch credentials {
        case .no: return nil
        case .hashed:
            guard let siteKey, let id = try? siteKey.credential(x: x) else { return nil }
            members.append(.init("id", .string(Base64.url.encode(id))))
        case .plain:
            if let siteKey, let id = try? siteKey.credential(x: x) {
                members.append(.init("id", .string(Base64.url.encode(id))))
            }
            members.append(.init("publicKey", .string(Hex.encode(key.point))))
            let numbers = key.numbers.sorted { $0.key < $1.key }.map {
                JSON.Member("bits\($0.key)", .string(Hex.encode($0.value)))
            }
            members.append(.init("numbers", .object(numbers + [.init("decimal64", .string(key.decimal))])))
        }
        if let phase = tap.phase { members.append(.init("phase", .string(phase))) }
        if let isListed = tap.isListed { members.append(.init("listed", .bool(isListed))) }
        members.append(.init("certificate", certificate(tap.certificate)))
        return members
    }

    /// The number of a tag is that of a person, so it is published as those of credentials are.
    private func members(of tag: Credential.Tag) -> [JSON.Member] {
        var members: [JSON.Member] = [.init("type", .string(Self.short(tag.type)))]
        if tag.isRandom {
            // A number that does not come again has no use.
            members.append(.init("random", .bool(true)))
        } else if let siteKey, let id = try? siteKey.tag(uid: tag.uid) {
            members.append(.init("id", .string(Base64.url.encode(id))))
        }
        if credentials == .plain { members.append(.init("uid", .string(Hex.encode(tag.uid)))) }
        return members
    }

    /// The bits of a reader in the wall, which are published as the number of a tag is.
    private func members(of raw: Credential.Raw) -> [JSON.Member] {
        var members: [JSON.Member] = [.init("bits", .number(String(raw.bits)))]
        if let siteKey, let id = try? siteKey.tag(uid: raw.data) {
            members.append(.init("id", .string(Base64.url.encode(id))))
        }
        if credentials == .plain { members.append(.init("data", .string(Hex.encode(raw.data)))) }
        return members
    }

    private func certificate(_ certificate: Credential.Certificate?) -> JSON {
        guard let certificate else { return .null }
        var members: [JSON.Member] = [
            .init("state", .string(certificate.state)), .init("issuer", .string(certificate.issuer)),
        ]
        if credentials == .plain { members.append(.init("subject", .string(certificate.subject))) }
        return .object(members)
    }

    /// The members of an opening. The key is a pseudonym, and no user is named.
    func members(of opening: DoorOpeningReport) -> [JSON.Member] {
        var members: [JSON.Member] = [
            .init("reader", .string(Self.short(opening.readerID))),
            .init("openingType", .string(opening.openingType)), .init("status", .string(opening.status)),
            .init("accessDecision", .string(opening.accessDecision)),
            .init("durationMs", .number(String(Int(opening.duration / .milliseconds(1))))),
        ]
        if let key = opening.key, let siteKey, let id = try? siteKey.doorKey(key) {
            members.append(.init("key", .string(Base64.url.encode(id))))
        }
        return members
    }

    /// A reader without the counters of its card, which are about its holder.
    static func json(_ reader: Reader) -> JSON {
        var members: [JSON.Member] = [
            .init("name", .string(short(reader.name))), .init("keypad", .bool(reader.hasKeypad)),
            .init("busy", .bool(reader.isBusy)),
        ]
        if let driver = reader.driver { members.append(.init("driver", .string(short(driver)))) }
        if reader.isRemote { members.append(.init("remote", .bool(true))) }
        let card: JSON =
            reader.card.map { card in .object(card.kind.map { [.init("kind", .string($0))] } ?? []) } ?? .null
        members.append(.init("card", card))
        return .object(members)
    }

    /// A check without its age, which changes all the time.
    static func json(_ found: HealthCheck) -> JSON {
        let words = (found.isUnknown ? ["unknown"] : []) + (found.isOptional ? ["optional"] : [])
        return check(found.name, isOK: found.isOK, words, cause: found.cause, advice: found.advice)
    }

    /// A check with the members of HEALTH; `words` are members that are true.
    static func check(
        _ name: String,
        isOK: Bool,
        _ words: [String] = [],
        cause: String? = nil,
        advice: String? = nil
    ) -> JSON {
        var members: [JSON.Member] = [.init("name", .string(short(name))), .init("ok", .bool(isOK))]
        members += words.map { .init($0, .bool(true)) }
        if let cause { members.append(.init("cause", .string(short(cause)))) }
        if let advice { members.append(.init("advice", .string(short(advice)))) }
        return .object(members)
    }

    /// At most 512 bytes, so that an event has at most 4 KiB.
    static func short(_ text: String) -> String {
        guard text.utf8.count > 512 else { return text }
        return String(decoding: text.utf8.prefix(509), as: UTF8.self) + "..."
    }
}
