// SPDX-License-Identifier: GPL-3.0-or-later
package import HDWallet
package import Text

/// What a QR code of the OST Wallet asks for. docs/protocol/wallet.md, Payloads of QR codes.
package enum QRPayload: Sendable, Equatable {
    case authorizeDevice(EthereumAddress)
    case revokeDevice(EthereumAddress)
    case transaction(RuleTransaction)
    case authorizeSession(DappSession)

    package struct RuleTransaction: Sendable, Equatable {
        package var ruleName: String
        /// The receivers, with an amount for each.
        package var addresses: [EthereumAddress]
        /// Decimal digits.
        package var amounts: [String]
        package var tokenID: String
        /// `o`
        package var options: JSON?
        /// `m`: name, type and details for people.
        package var name: String?
        package var kind: String?
        package var details: String?
    }

    package struct DappSession: Sendable, Equatable {
        package var device: EthereumAddress
        package var session: EthereumAddress
        /// Decimal digits.
        package var spendingLimit: String
        /// Decimal digits.
        package var expirationTime: String
        /// 65 bytes.
        package var signature: [UInt8]
    }

    /// The maximum number of bytes of a payload, and of receivers of a transaction.
    package static let maximumCount = 8192
    package static let maximumAddresses = 64

    /// Reads a payload; nil for anything else.
    package init?(_ text: String) {
        guard (1...Self.maximumCount).contains(text.utf8.count) else { return nil }
        let payload = text.utf8.first == UInt8(ascii: "{") ? Self.object(text) : Self.line(text)
        guard let payload else { return nil }
        self = payload
    }

    /// The name of the workflow that the payload starts.
    package var workflow: String {
        switch self {
        case .authorizeDevice: "AUTHORIZE_DEVICE_WITH_QR"
        case .revokeDevice: "REVOKE_DEVICE"
        case .transaction: "EXECUTE_TRANSACTION"
        case .authorizeSession: "AUTHORIZE_SESSION_WITH_QR"
        }
    }

    /// The addresses that must occur in structured data for this payload.
    package var addresses: [EthereumAddress] {
        switch self {
        case .authorizeDevice(let address), .revokeDevice(let address): [address]
        case .transaction(let transaction): transaction.addresses
        case .authorizeSession(let session): [session.session]
        }
    }

    /// The name of the member of the entity that has these addresses.
    var addressesMember: String {
        switch self {
        case .authorizeDevice, .revokeDevice, .authorizeSession: "address"
        case .transaction: "token_holder_addresses"
        }
    }

    /// The members of the entity, with their kinds and the names that they may have in typed data: those of the payload,
    /// and those of the entity.
    var claims: [(member: String, claim: TypedData.Claim)] {
        entity([]).members.compactMap { member in
            guard let (kind, names) = claimForms[member.key] else { return nil }
            return (member.key, TypedData.Claim(kind, member.value, names: names))
        }
    }

    private var claimForms: [String: (TypedData.Claim.Kind, Set<String>)] {
        let device: Set = ["da", "device", "deviceaddress"]
        return switch self {
        case .authorizeDevice, .revokeDevice: ["address": (.address, device.union(["address"]))]
        case .transaction:
            [
                "rule_name": (.other, ["rn", "rule", "rulename"]),
                "token_holder_addresses": (.address, ["ads", "addresses", "tokenholderaddresses"]),
                "amounts": (.number, ["ams", "amounts", "amount"]), "token_id": (.other, ["tid", "tokenid"]),
                "options": (.other, ["o", "options"]), "meta": (.other, ["m", "meta"]),
            ]
        case .authorizeSession:
            [
                "address": (.address, ["sa", "address", "session", "sessionaddress"]),
                "device_address": (.address, device), "spending_limit": (.number, ["sl", "limit", "spendinglimit"]),
                "expiration_time": (.number, ["et", "expiration", "expirationtime"]),
                "session_signature": (.other, ["sig", "signature", "sessionsignature"]),
            ]
        }
    }

    // MARK: Reading

    private static func object(_ text: String) -> QRPayload? {
        // Another reader could take the other one of two members.
        guard let json = try? JSON(text.utf8), !json.repeatsName, let kind = json["dd"]?.string, let data = json["d"],
            data.members != nil, isVersion(json["ddv"])
        else { return nil }
        switch kind {
        case "AD": return address(data["da"]).map { .authorizeDevice($0) }
        case "RD": return address(data["da"]).map { .revokeDevice($0) }
        case "TX": return transaction(data, json["m"]).map { .transaction($0) }
        case "AS":
            guard let session = data["sd"], let device = address(session["da"]), let address = address(session["sa"]),
                let limit = number(session["sl"], 1...78), let time = number(session["et"], 1...20),
                let signature = signature(data["sig"]?.string)
            else { return nil }
            return .authorizeSession(
                DappSession(
                    device: device,
                    session: address,
                    spendingLimit: limit,
                    expirationTime: time,
                    signature: signature
                )
            )
        default: return nil
        }
    }

    private static func transaction(_ data: JSON, _ meta: JSON?) -> RuleTransaction? {
        guard let rule = text(data["rn"], 1...64), let list = data["ads"]?.array, let amounts = data["ams"]?.array,
            (1...maximumAddresses).contains(list.count), amounts.count == list.count,
            let token = text(data["tid"], 1...256) ?? number(data["tid"], 1...20)
        else { return nil }
        let addresses = list.compactMap { address($0) }
        let numbers = amounts.compactMap { number($0, 1...78) }
        guard addresses.count == list.count, numbers.count == list.count else { return nil }
        var transaction = RuleTransaction(ruleName: rule, addresses: addresses, amounts: numbers, tokenID: token)
        if let options = data["o"], options != .null {
            guard options.members != nil else { return nil }
            transaction.options = options
        }
        if let meta, meta != .null {
            guard let members = meta.members else { return nil }
            for (key, path) in [
                ("tn", \RuleTransaction.name), ("tt", \RuleTransaction.kind), ("td", \RuleTransaction.details),
            ] {
                guard let value = members.last(where: { $0.key == key })?.value, value != .null else { continue }
                guard let text = text(value, 0...256) else { return nil }
                transaction[keyPath: path] = text
            }
        }
        return transaction
    }

    /// Version 2 of AS: `AS|ddv|da|sa|sl|et|sig`, with addresses without `0x`. Parts after the signature are ignored.
    private static func line(_ text: String) -> QRPayload? {
        let parts = text.split(separator: "|", maxSplits: 16, omittingEmptySubsequences: false).map(String.init)
        guard parts.count >= 7, parts.count <= 16, parts[0] == "AS", isVersion(.string(parts[1])),
            let device = EthereumAddress(digits: parts[2]), let session = EthereumAddress(digits: parts[3]),
            let limit = number(.string(parts[4]), 1...78), let time = number(.string(parts[5]), 1...20),
            let signature = signature(parts[6].hasPrefix("0x") ? parts[6] : "0x" + parts[6])
        else { return nil }
        return .authorizeSession(
            DappSession(
                device: device,
                session: session,
                spendingLimit: limit,
                expirationTime: time,
                signature: signature
            )
        )
    }

    private static func address(_ json: JSON?) -> EthereumAddress? {
        guard let text = json?.string, text.hasPrefix("0x") else { return nil }
        return EthereumAddress(digits: String(text.dropFirst(2)))
    }

    /// The version of the definition, such as `1.1.0` or 2. Payloads of each version are read alike.
    private static func isVersion(_ json: JSON?) -> Bool {
        switch json {
        case .number(let text), .string(let text):
            (1...16).contains(text.utf8.count) && text.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2E }
        case nil, .null, .bool, .array, .object: false
        }
    }

    /// Decimal digits, as a text or as a number.
    private static func number(_ json: JSON?, _ counts: ClosedRange<Int>) -> String? {
        let digits: String
        switch json {
        case .number(let text), .string(let text): digits = text
        case nil, .null, .bool, .array, .object: return nil
        }
        guard counts.contains(digits.utf8.count), digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return digits
    }

    private static func text(_ json: JSON?, _ counts: ClosedRange<Int>) -> String? {
        guard let text = json?.string, counts.contains(text.utf8.count) else { return nil }
        return text
    }

    private static func signature(_ text: String?) -> [UInt8]? {
        guard let text, text.hasPrefix("0x"), let bytes = Hex.decode(text.dropFirst(2), limit: 65), bytes.count == 65
        else { return nil }
        return bytes
    }
}

extension EthereumAddress {
    /// Reads 40 hexadecimal digits in either case; nil for other text.
    init?(digits: String) {
        guard let bytes = Hex.decode(digits, limit: 20) else { return nil }
        self.init(bytes: bytes)
    }
}

extension QRPayload {
    /// The entity of the payload. `userMembers` name its user and token.
    func entity(_ userMembers: [JSON.Member]) -> ContextEntity {
        switch self {
        case .authorizeDevice(let address), .revokeDevice(let address):
            return ContextEntity(
                type: "device",
                members: [JSON.Member("address", .string(address.description))] + userMembers
            )
        case .transaction(let transaction):
            var members = [
                JSON.Member("rule_name", .string(transaction.ruleName)),
                JSON.Member(
                    "token_holder_addresses",
                    .array(transaction.addresses.map { .string($0.description) })
                ),
                JSON.Member("amounts", .array(transaction.amounts.map { .string($0) })),
                JSON.Member("token_id", .string(transaction.tokenID)),
            ]
            if let options = transaction.options { members.append(JSON.Member("options", options)) }
            let meta = [("name", transaction.name), ("type", transaction.kind), ("details", transaction.details)]
                .compactMap { key, value in value.map { JSON.Member(key, .string($0)) } }
            if !meta.isEmpty { members.append(JSON.Member("meta", .object(meta))) }
            return ContextEntity(
                type: "transaction",
                members: members + userMembers.filter { $0.key != "token_id" }
            )
        case .authorizeSession(let session):
            return ContextEntity(
                type: "session",
                members: [
                    JSON.Member("address", .string(session.session.description)),
                    JSON.Member("device_address", .string(session.device.description)),
                    JSON.Member("spending_limit", .string(session.spendingLimit)),
                    JSON.Member("expiration_time", .string(session.expirationTime)),
                    JSON.Member("session_signature", .string("0x" + Hex.encode(session.signature))),
                ] + userMembers
            )
        }
    }
}
