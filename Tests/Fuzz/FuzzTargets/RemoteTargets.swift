// SPDX-License-Identifier: GPL-3.0-or-later
import Drivers
import HTTP
import Readers
import ReadersPCSC
import ReadersRemote
import RemoteDevices
import Text

/// An accepted message is the same after it is written and read again.
@Sendable func remoteMessage(_ input: UnsafeRawBufferPointer) {
    guard let envelope = try? IFDEnvelope(Array(input)) else { return }
    require((try? IFDEnvelope(envelope.encode(.two))) == envelope, "the message is another one")
}

/// An announcement has names and identities within their bounds.
@Sendable func remoteOffer(_ input: UnsafeRawBufferPointer) {
    let quick = Offer.identity(in: Array(input))
    guard let offer = Offer(input) else { return }
    require(quick == nil || quick?.utf8.count == 64, "the quick fingerprint has another length")
    require(offer.addresses.count <= Offer.maximumAddresses, "the addresses are too many")
    require(offer.port > 0 && !offer.versions.isEmpty, "the announcement cannot be used")
    require(offer.fingerprint.utf8.count == 64, "the fingerprint has another length")
    require(offer.name.unicodeScalars.count <= DeviceName.maximumCount, "the name is too long")
}

/// An accepted input of EstablishPACEChannel is the same after it is written and read again.
@Sendable func remotePACE(_ input: UnsafeRawBufferPointer) {
    guard let request = PACEChannel.request(input), let written = PACEChannel.input(request) else { return }
    require(PACEChannel.request(written) == request, "the request is another one")
}

/// What a reader of pcscd answers for itself. An accepted answer to EstablishPACEChannel has the same outcome when it is
/// written and read again.
@Sendable func readerAnswer(_ input: UnsafeRawBufferPointer) {
    var features = ReaderFeatures(features: input)
    features.add(properties: input)
    _ = PACEChannel.destroyed(input)
    guard let result = PACEChannel.established(input) else { return }
    let output = PACEChannel.output(result)
    let head = withUnsafeBytes(of: PACEChannel.code(result.outcome).littleEndian, Array.init)
    let count = withUnsafeBytes(of: UInt16(clamping: output.count).littleEndian, Array.init)
    guard output.count <= UInt16.max else { return }
    require(PACEChannel.established(head + count + output)?.outcome == result.outcome, "another outcome")
}

/// No text is longer than the bytes of its frames.
@Sendable func webSocketFrames(_ input: UnsafeRawBufferPointer) {
    guard let first = input.first else { return }
    var reader = WebSocketReader(isMasked: first & 1 == 1, limit: 1000)
    reader.append(input.dropFirst())
    while let event = reader.next() {
        guard case .text(let text) = event else { continue }
        require(text.count < input.count, "the text is too long")
    }
}

/// A request or an answer of any form does not trap.
@Sendable func webSocketHandshake(_ input: UnsafeRawBufferPointer) {
    let answer = WebSocketHandshake.answer(to: Array(input))
    _ = WebSocketHandshake.isAccepted(answer ?? Array(input), key: "dGhlIHNhbXBsZSBub25jZQ==")
}

/// A message of badged to badged-remote.
@Sendable func remoteRequest(_ input: UnsafeRawBufferPointer) {
    guard let request = RemoteRequest(bytes: Array(input)) else { return }
    switch request {
    // A key or a code is taken by the first writing.
    case .identity, .pair, .openPairing: return
    case .borrow, .rest, .stopPairing, .lend, .closePairing, .kept: break
    }
    let bytes = request.bytes
    require(RemoteRequest(bytes: bytes)?.bytes == bytes, "a request changes when it is read again")
}

/// A message of badged-remote.
@Sendable func remoteReport(_ input: UnsafeRawBufferPointer) {
    guard let report = RemoteReport(bytes: Array(input)) else { return }
    let bytes = report.bytes
    require(bytes.count <= DriverMessage.maximumSize, "the report is too long")
    require(RemoteReport(bytes: bytes) == report, "a report changes when it is read again")
}
