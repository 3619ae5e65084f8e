// SPDX-License-Identifier: GPL-3.0-or-later
import CountryAuthorities
import EID
import EService
import HTTP
import ISO7816
import Text
import Transfers

/// Reads a document as badged-network does.
private func read(_ bytes: UnsafeRawBufferPointer) -> Result<XMLElement, Malformed> {
    Result { () throws(Malformed) in try XMLReader.read(Array(bytes), maximumLength: PAOSMessage.maximumLength) }
}

@Sendable func tcToken(_ input: UnsafeRawBufferPointer) {
    do throws(InvalidTcToken) {
        let token = try TcToken(read(input))
        require(token.serverAddress.isSecure && token.refreshAddress.isSecure, "a token without https")
        require(!token.sessionIdentifier.isEmpty, "a token without a session")
        require(token.preSharedKey?.withKey { $0.isEmpty } != true, "an empty key")
    } catch {
        require(error.refreshAddress?.isSecure != false, "an address for the browser without https")
        require(error.communicationErrorAddress?.isSecure != false, "an address for the browser without https")
    }
}

@Sendable func webAddress(_ input: UnsafeRawBufferPointer) {
    guard let text = String(validating: input, as: UTF8.self), let address = WebAddress(text) else { return }
    require(address.origin.port != 0 && !address.origin.host.isEmpty, "an origin without host or port")
    require(WebAddress(address.text) == address, "an address changes when it is read again")
    require(!address.text.contains("@") || address.text.contains("/"), "an address with a user")
}

/// The first line is the address, and the second one the reference.
@Sendable func webReference(_ input: UnsafeRawBufferPointer) {
    let parts = input.split(separator: UInt8(ascii: "\n"), maxSplits: 1, omittingEmptySubsequences: false)
    let lines = parts.compactMap { String(validating: $0, as: UTF8.self) }
    guard lines.count == 2, let base = WebAddress(lines[0]), let target = base.resolving(lines[1]) else { return }
    require(target.origin.port != 0 && !target.origin.host.isEmpty, "an origin without host or port")
    require(target == WebAddress(target.text), "a resolved address changes when it is read again")
    if !lines[1].contains(":"), !lines[1].contains("//") {
        require(target.origin == base.origin, "a path leads to another origin")
    }
    if lines[1].hasPrefix("//") { require(target.isSecure == base.isSecure, "the scheme has changed") }
}

@Sendable func paos(_ input: UnsafeRawBufferPointer) {
    guard let message = try? PAOSMessage(read(input)) else { return }
    var result = ECardResult(.cardRemoved)
    switch message.content {
    case .eac1(let request):
        if let terminal = request.certificates.first(where: { $0.chat.role == .terminal }) {
            search(CVCertificatePool(terminal: terminal, request.certificates))
        }
        require(!request.acceptedEIDTypes.isEmpty, "an empty list of eID types")
    case .eac2(let answer):
        let key = answer.ephemeralPublicKey
        require(key.first == 4 && !key.count.isMultiple(of: 2), "a key that is not an uncompressed point")
    case .transmit(let commands):
        require(!commands.isEmpty && commands.allSatisfy { $0.command.count >= 4 }, "a command without a header")
    case .startPAOSResponse(let answer):
        require(message.pending == nil, "the last message has an answer")
        result = answer
    case .initializeFramework, .eacAdditional, .invalid:
        break
    }
    // Our answer to any message of a server is well-formed, and is a message that only a client sends.
    for pending in [.initializeFrameworkResponse, .didAuthenticateResponse(.eac1), .transmitResponse]
        as [PAOSMessage.Pending]
    {
        let document = PAOSEnvelope.document(
            .error(result, to: pending),
            messageID: message.messageID ?? "",
            relatesTo: message.messageID
        )
        do throws(Malformed) {
            _ = try PAOSMessage(document.withUnsafeBytes(read))
            require(false, "our message is read as one of a server")
        } catch {
            require(error.text.hasPrefix("unknown message"), "our message cannot be read")
        }
    }
}

@Sendable func certificateDescription(_ input: UnsafeRawBufferPointer) {
    guard let description = try? CertificateDescription(Array(input)) else { return }
    require(description.encoded.elementsEqual(input), "a description changes when it is read")
    require(
        description.purpose.utf8.count <= description.termsOfUsage.utf8.count,
        "a purpose that the terms of usage do not have"
    )
}

/// Certificates in sequence. The first one of a terminal is that of the service, self-signed ones are anchors.
@Sendable func certificateChain(_ input: UnsafeRawBufferPointer) {
    let certificates = ((try? BERTLV.sequence(Array(input))) ?? []).compactMap { try? CVCertificate($0.encoded) }
    guard let terminal = certificates.first(where: { $0.chat.role == .terminal }) else { return }
    let pool = CVCertificatePool(terminal: terminal, certificates)
    require(pool.certificates.count <= CVCertificatePool.maximumCount, "a pool above its limit")
    search(pool)
}

/// Looks for a chain from each reference in the pool.
private func search(_ pool: CVCertificatePool) {
    for reference in pool.certificates.map(\.authorityReference) + [pool.terminal.authorityReference] {
        guard let chain = pool.chain(startingAt: reference) else { continue }
        require(chain.last == pool.terminal, "a chain to another terminal")
        require(chain.first?.authorityReference == reference, "a chain from another root")
        require(
            zip(chain, chain.dropFirst()).allSatisfy {
                $0.holderReference == $1.authorityReference && $0.chat.role.mayIssue($1.chat.role)
            },
            "a chain with a gap"
        )
    }
}
