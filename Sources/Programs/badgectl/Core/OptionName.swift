// SPDX-License-Identifier: GPL-3.0-or-later

/// The name of an option, which commands read it by.
enum OptionName: String, CustomStringConvertible, Sendable {
    // Of all commands.
    case socket, json, help, version
    // Of several commands.
    case reader, timeout, pinentry, pinStdin, yes, watch, names, type, key, format, qr, label, number, portrait, folder
    // General.
    case identify, http, openmetrics, output, mqtt, hosts, testCard, board
    // ID cards and their authorities.
    case ownCard = "self"
    case developerMode, follow, open, automatic, rights, pinFile, known, fingerprint
    // Documents.
    case files, record, groups, bac, signer, root, docType, over, doc, item, identity
    // Wallets and M-Pin.
    case words, ownPuk, duressPin, passphrase, keyUid, account, permission, contract, decimals, others
    case backend, clientId, accessNumber, accessCode, code, secondFactor, card, token, time, authorization
    // Keys, doors, remote readers and scripts.
    case otp, digits, pair, ndef, beacons, plot, replay, raw, wait
    case `for`

    /// The name as it is typed, such as `--pin-stdin`.
    var description: String {
        rawValue.unicodeScalars.reduce(into: "--") { name, scalar in
            if scalar.properties.isUppercase { name += "-" }
            name += scalar.properties.lowercaseMapping
        }
    }
}
