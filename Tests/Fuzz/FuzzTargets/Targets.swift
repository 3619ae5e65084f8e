// SPDX-License-Identifier: GPL-3.0-or-later
import Cards
import ISO7816
import Readers
import ReadersVirtual
import Server
import Synchronization
import Text
import VirtualEID

/// All fuzz targets: one for each parser of bytes from outside. A new target is a line here and a folder of seeds.
///
/// A target checks what holds for every input. An accepted value is the same after it is written and read again, and no
/// output is longer than its input.
package let fuzzTargets: [String: @Sendable (UnsafeRawBufferPointer) -> Void] = [
    "json-line": jsonLine,
    "line-buffer": lineBuffer,
    "assuan-reply": assuanReply,
    "card-file": cardFile,
    "card-recording": cardRecording,
    "board-recording": boardRecording,
    "apdu": apdu,
    "iso-dep": isoDEP,
    "nfc-target": nfcTarget,
    "driver-request": driverRequest,
    "driver-report": driverReport,
    "connection-string": connectionString,
    "card-activation": cardActivation,
    "ber-tlv": berTLV,
    "security-infos": securityInfos,
    "ef-dir": applicationDirectory,
    "secure-messaging": secureMessaging,
    "card-dialogue": cardDialogue,
    "cv-certificate": cvCertificate,
    "card-security": cardSecurity,
    "machine-readable-zone": machineReadableZone,
    "document-groups": documentGroups,
    "document-faces": documentFaces,
    "document-signature": documentSignature,
    "document-certificate": documentCertificate,
    "document-dialogue": documentDialogue,
    "virtual-document": virtualDocument,
    "master-list": masterList,
    "directory-export": directoryExport,
    "virtual-card": virtualCard,
    "keycard-select": keycardSelect,
    "keycard-template": keycardTemplate,
    "keycard-dialogue": keycardDialogue,
    "keycard-channel": keycardChannel,
    "virtual-keycard": virtualKeycard,
    "pkoc-certificate": pkocCertificate,
    "pkoc-dialogue": pkocDialogue,
    "virtual-pkoc": virtualPKOC,
    "aliro-answer": aliroAnswer,
    "aliro-dialogue": aliroDialogue,
    "virtual-aliro": virtualAliro,
    "ndef-message": ndefMessage,
    "cbor": cborItem,
    "mdoc-engagement": mdocEngagement,
    "mdoc-message": mdocMessage,
    "mdoc-response": mdocResponse,
    "mdoc-list": mdocList,
    "mdoc-handover": mdocHandover,
    "mdoc-transfer": mdocTransfer,
    "mdoc-value": mdocValue,
    "mdoc-parts": mdocParts,
    "card-list": cardList,
    "tag-dialogue": tagDialogue,
    "virtual-tag": virtualTag,
    "mnemonic": mnemonic,
    "qr-payload": qrPayload,
    "typed-data": typedData,
    "ecdsa-signature": ecdsaSignature,
    "antelope-abi": antelopeABI,
    "antelope-transaction": antelopeTransaction,
    "antelope-answer": antelopeAnswer,
    "simple-wallet": simpleWallet,
    "web-address": webAddress,
    "web-reference": webReference,
    "network-request": networkRequest,
    "network-report": networkReport,
    "tc-token": tcToken,
    "paos": paos,
    "certificate-description": certificateDescription,
    "certificate-chain": certificateChain,
    "certificate-search": certificateSearch,
    "zip-archive": zipArchive,
    "proxy-answer": proxyAnswer,
    "metrics-request": metricsRequest,
    "broker-packets": brokerPackets,
    "osdp-line": osdpLine,
    "osdp-pkoc": osdpPKOC,
    "osdp-rule": osdpRule,
    "mpin-reply": mpinReply,
    "mpin-user": mpinUser,
    "enrolment": enrolment,
    "reader-code": readerCode,
    "vault-record": vaultRecord,
    "remote-message": remoteMessage,
    "remote-offer": remoteOffer,
    "remote-pace": remotePACE,
    "reader-answer": readerAnswer,
    "remote-request": remoteRequest,
    "remote-report": remoteReport,
    "websocket-frames": webSocketFrames,
    "websocket-handshake": webSocketHandshake,
    "advertising-data": advertisingData,
    "advertising-reports": advertisingReports,
    "btsnoop": btsnoop,
    "management-event": managementEvent,
    "pkoc-opening": pkocOpening,
    "pkoc-reader-certificate": pkocReaderCertificate,
    "bluez-messages": blueZMessages,
    "activation": activation,
    "loopback-client": loopbackClient,
    "allow-list": allowList,
    "server-message": serverMessage,
]

/// Collects what targets find; without one a finding ends the process, as libFuzzer expects.
package final class Findings: Sendable {
    @TaskLocal package static var current: Findings?

    private let found = Mutex<[String]>([])
    package var texts: [String] { found.withLock { $0 } }

    package init() {}

    fileprivate func add(_ text: StaticString) { found.withLock { $0.append("\(text)") } }
}

/// Reports a finding when the condition does not hold.
package func require(_ condition: Bool, _ text: StaticString) {
    guard !condition else { return }
    guard let findings = Findings.current else { fatalError("\(text)") }
    findings.add(text)
}

@Sendable private func jsonLine(_ input: UnsafeRawBufferPointer) {
    guard let command = try? Command(scanning: input) else {
        let tree = try? JSON(Array(input))
        let isRight = tree.map { ($0.members?.count ?? 0) > Command.maximumMembers } ?? true
        require(isRight, "the tree accepts text that the scanner refuses")
        return
    }
    _ = command.name
    _ = command.request
    _ = command.has("value")
    _ = command.value("simulator")
    switch command.secret("value") {
    case .missing: break
    case .invalid: break
    case .value(let secret): require(secret.count <= input.count, "a secret longer than its line")
    }
    guard let tree = try? JSON(Array(input)) else {
        return require(false, "the tree refuses text that the scanner accepts")
    }
    guard let again = try? JSON(tree.bytes) else { return require(false, "a written tree cannot be read") }
    require(again == tree, "a tree changes when it is written and read")
}

@Sendable private func lineBuffer(_ input: UnsafeRawBufferPointer) {
    // The first byte is the size of the reads, the other bytes are the stream. The limit is small, so inputs reach it.
    guard let first = input.first else { return }
    let limit = 64
    let buffer = LineBuffer(limit: limit)
    var rest = input.dropFirst()
    var given = 0
    while !rest.isEmpty {
        let chunk = rest.prefix(Int(first) + 1)
        let count = buffer.fill { space in
            let part = chunk.prefix(space.count)
            space.copyBytes(from: part)
            return part.count
        }
        rest = rest.dropFirst(count)
        while let line = buffer.next() {
            switch line {
            case .text(let text):
                require(text.count <= limit, "a line over the limit")
                require(!text.contains(0x0A), "a line contains a line end")
                given += text.count
            case .tooLong: break
            }
        }
        require(buffer.capacity <= 65_536 * 2, "the buffer grows without bound")
    }
    require(given <= input.count, "the output is longer than the input")
}

@Sendable private func cardFile(_ input: UnsafeRawBufferPointer) {
    guard let tree = try? JSON(Array(input)) else { return }
    _ = try? VirtualCardKinds([VirtualEIDKind()]).describe(tree)
}

/// A recording: its lines, and the card that plays it, which is asked every command in it.
@Sendable private func cardRecording(_ input: UnsafeRawBufferPointer) {
    guard let recording = try? CardRecording(Array(input)) else { return }
    require(recording.exchanges.count <= CardRecording.maximumExchanges, "too many commands")
    require((try? CardRecording(recording.text.utf8)) == recording, "a recording changes when it is written and read")
    if let replaced = (try? Pseudonyms())?.replacing(in: recording.exchanges) {
        let isSame = zip(replaced, recording.exchanges).allSatisfy { new, old in
            new.command == old.command && new.answer.count == old.answer.count
                && new.answer.suffix(2) == old.answer.suffix(2)
        }
        require(isSame && replaced.count == recording.exchanges.count, "other numbers change the form of a recording")
    }
    let card = RecordedCard(recording)
    for exchange in recording.exchanges {
        require(card.process(exchange.command).count >= 2, "an answer without a status word")
    }
}

/// A recording of an NFC board, and the numbers of cards in it.
@Sendable private func boardRecording(_ input: UnsafeRawBufferPointer) {
    guard var recording = try? BoardRecording(Array(input)) else { return }
    require((try? BoardRecording(recording.text.utf8)) == recording, "a recording changes when it is written and read")
    let counts = recording.transfers.map(\.bytes.count)
    recording.replaceNumbers()
    require(recording.transfers.map(\.bytes.count) == counts, "another number changes the form of a recording")
}

@Sendable private func apdu(_ input: UnsafeRawBufferPointer) {
    if let response = ResponseAPDU(bytes: input) {
        require(response.bytes.elementsEqual(input), "a response changes when it is written again")
    }
    guard let command = CommandAPDU(bytes: input) else { return }
    // The input may be a longer encoding of the command, so compare commands and not bytes.
    require(CommandAPDU(bytes: command.bytes) == command, "a command changes when it is written and read")
}

@Sendable private func assuanReply(_ input: UnsafeRawBufferPointer) {
    var reply = AssuanReply()
    var read = 0
    for line in input.split(separator: 0x0A, omittingEmptySubsequences: false) {
        read += line.count
        guard let result = try? reply.receive(UnsafeRawBufferPointer(rebasing: line)) else { continue }
        switch result {
        case .error(let code): require((0...0xFFFF).contains(code), "an error code out of its range")
        case .done(let box):
            guard let secret = box?.take() else { return }
            require(secret.count <= min(read, AssuanReply.maximumData), "data longer than the lines or the limit")
        }
        return
    }
}
