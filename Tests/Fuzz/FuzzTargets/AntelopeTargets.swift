// SPDX-License-Identifier: GPL-3.0-or-later
import Antelope
import Text
import WalletFeature

/// An ABI, JSON or packed, then a zero byte, the name of a type, a zero byte, and packed bytes or JSON.
@Sendable func antelopeABI(_ input: UnsafeRawBufferPointer) {
    let parts = input.split(separator: 0, maxSplits: 2, omittingEmptySubsequences: false).map { Array($0) }
    let description = parts[0]
    let isJSON = description.first == UInt8(ascii: "{")
    let found = isJSON ? (try? JSON(description)).flatMap { try? ABI($0) } : try? ABI(packed: Array(input))
    guard let abi = found, parts.count == 3 else { return }
    let type = String(decoding: parts[1], as: UTF8.self)
    if let json = try? JSON(parts[2]), let packed = try? abi.pack(json, as: type) {
        // A value may have another text, such as an old form of a key. Its bytes are the same.
        guard let value = try? abi.unpack(packed, as: type) else { return require(false, "not unpacked") }
        require((try? abi.pack(value, as: type)) == packed, "bytes change when they are unpacked and packed")
    }
    _ = try? abi.unpack(parts[2], as: type)
}

/// A packed transaction. An accepted one is the same after it is packed and read again.
@Sendable func antelopeTransaction(_ input: UnsafeRawBufferPointer) {
    guard let transaction = try? Transaction(packed: Array(input)) else { return }
    require((try? Transaction(packed: transaction.packed)) == transaction, "a transaction changes")
    require(transaction.packed.count <= input.count, "a longer transaction")
}

/// What a node answers, and the texts in it.
@Sendable func antelopeAnswer(_ input: UnsafeRawBufferPointer) {
    let bytes = Array(input)
    if let info = try? NodeInfo(bytes) { require(info.chain.bytes.count == 32, "a chain id of a wrong length") }
    _ = try? NodeAccount(bytes)
    if let packed = try? NodeAnswer.rawABI(bytes) { _ = try? ABI(packed: packed) }
    if let json = try? NodeAnswer.abi(bytes) { _ = try? ABI(json) }
    if let refusal = try? NodeRefusal(status: 500, bytes) { require(refusal.text.count <= 512, "a long text") }
    _ = try? PushAnswer(bytes, id: [UInt8](repeating: 0, count: 32))
    if let code = try? SymbolCode("EOS") {
        _ = try? CurrencyStats(bytes, of: code)
        _ = try? CurrencyBalance(bytes, of: code)
    }
    let text = String(decoding: input.prefix(512), as: UTF8.self)
    if let name = try? AccountName(text) { require(name.description == text, "a name has two texts") }
    if let asset = try? Asset(text) { require((try? Asset(asset.description)) == asset, "an amount changes") }
    if let symbol = try? TokenSymbol(text) {
        require((try? TokenSymbol(symbol.description)) == symbol, "a symbol changes")
    }
    for kind in [KeyText.Kind.publicKey, .signature] {
        if let key = try? KeyText(text, kind) { require((try? KeyText(key.description, kind)) == key, "a key changes") }
    }
    if let time = try? AntelopeTime(text) {
        require((try? AntelopeTime(time.text(decimals: 6))) == time, "a time changes")
    }
}

/// The text of a QR code or a link.
@Sendable func simpleWallet(_ input: UnsafeRawBufferPointer) {
    guard let text = String(validating: input, as: UTF8.self), let request = SimpleWalletText(text, now: 1_000_000_000)
    else { return }
    let operations = ["authorize", "transfer", "contract", "sign"]
    require(operations.contains(request.operation), "an unknown operation is accepted")
}
