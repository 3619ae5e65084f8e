// SPDX-License-Identifier: GPL-3.0-or-later
import Crypto
import Document
import Text

/// Checks the documents of a response. ISO/IEC 18013-5, 9.3.1; docs/mobile-documents.md.
package struct MdocCheck: Sendable {
    private let request: DeviceRequest
    private let binding: MdocBinding
    private let authorities: MdocAuthorities
    private let time: Int

    /// `request`: what was asked for.
    /// `binding`: the session in which the response came.
    /// `time`: seconds since 1970.
    package init(_ request: DeviceRequest, _ binding: MdocBinding, _ authorities: MdocAuthorities, at time: Int) {
        self.request = request
        self.binding = binding
        self.authorities = authorities
        self.time = time
    }

    /// Checks each document. A cancelled task ends early.
    package func results(of response: DeviceResponse) -> [MdocResult] {
        var results: [MdocResult] = []
        for document in response.documents where !Task.isCancelled { results.append(result(of: document)) }
        return results
    }

    /// Whether the holder is over an age: an answer only from documents that are genuine. ISO/IEC 18013-5, 7.2.5.
    /// - Returns: nil if nothing proves it, or two documents contradict each other.
    package static func answer(over age: Int, in results: [MdocResult]) -> Bool? {
        var answers: Set<Bool> = []
        for element in results.filter({ $0.verdict == .genuine }).flatMap(\.items) {
            guard let number = ageNumber(element.name), let value = element.value.bool, !element.isOfDevice else {
                continue
            }
            if value, number >= age { answers.insert(true) }
            if !value, number <= age { answers.insert(false) }
        }
        return answers.count == 1 ? answers.first : nil
    }

    /// NN of `age_over_NN`.
    private static func ageNumber(_ name: String) -> Int? {
        let digits = name.utf8.dropFirst(9)
        guard name.utf8.starts(with: "age_over_".utf8), digits.count == 2,
            digits.allSatisfy({ (0x30...0x39).contains($0) })
        else { return nil }
        return digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
    }

    // MARK: One document

    private func result(of document: DeviceResponse.Document) -> MdocResult {
        var result = MdocResult(docType: document.docType)
        let asked = request.documents.first { $0.docType == document.docType }
        guard let issued = issued(document, &result.checks.signature) else {
            result.withheld = withheld(asked, result.items)
            return result
        }
        let object = issued.object
        var elements = checkHashes(document, object, &result.checks.hashes)
        var findings: [MdocContentCheck.Finding] = []
        result.validUntil = object.validUntil
        if object.docType != document.docType { findings.append(.wrongDocType) }
        if time < object.validFrom { findings.append(.notYetValid) }
        if time > object.validUntil { findings.append(.expired) }
        if !issued.signer.validity.contains(object.signed) { findings.append(.signedOutsideCertificate) }
        checkAuthority(issued, document, elements, &result.checks.authority)
        let ofDevice = checkDevice(document, object, result.checks.signature, &result.checks.device)
        let known = Set(elements.map { [$0.namespace, $0.name] })
        elements += ofDevice.filter { !known.contains([$0.namespace, $0.name]) }
        checkStatus(object, document, result.checks.authority, &result.checks.status)
        if asked == nil { findings.append(.notAsked) }
        if hasUnreadableDate(elements) { findings.append(.malformed) }
        if isOver(elements) { findings.append(.documentExpired) }
        result.checks.document.isDone = true
        result.checks.document.findings = findings
        for element in elements {
            if isAsked(element, asked) { result.items.append(element) } else { result.unasked.append(element.name) }
        }
        result.withheld = withheld(asked, result.items)
        return result
    }

    /// Whether an element was asked for. For an age the phone answers with the nearest that it has.
    private func isAsked(_ element: MdocResult.Element, _ asked: DeviceRequest.Document?) -> Bool {
        let names = asked?.elements(of: element.namespace).map(\.name) ?? []
        return names.contains(element.name)
            || Self.ageNumber(element.name) != nil && names.contains { Self.ageNumber($0) != nil }
    }

    private func withheld(_ asked: DeviceRequest.Document?, _ items: [MdocResult.Element]) -> [String] {
        var given: Set<[String]> = []
        for item in items { given.insert([item.namespace, item.name]) }
        return asked?.namespaces.flatMap { namespace in
            namespace.elements.map(\.name).filter {
                Self.ageNumber($0) == nil && !given.contains([namespace.name, $0])
            }
        } ?? []
    }

    /// The elements that say until when the document is valid. ISO/IEC 18013-5, 7.2.1; EUDI PID rulebook.
    private static let expiries: Set<String> = ["expiry_date", "date_of_expiry"]
    /// The elements that are days or times in every type of document.
    private static let dates: Set<String> = expiries.union([
        "issue_date", "issuance_date", "date_of_issuance", "portrait_capture_date",
    ])

    /// Whether the document itself is over: the day after its last one has begun.
    private func isOver(_ elements: [MdocResult.Element]) -> Bool {
        elements.contains { element in
            guard Self.expiries.contains(element.name), let day = MdocDate.day(element.value) else { return false }
            return day.start + 86_400 <= time
        }
    }

    /// Whether a date has another form, or is a day that no calendar has.
    private func hasUnreadableDate(_ elements: [MdocResult.Element]) -> Bool {
        elements.contains { Self.dates.contains($0.name) && MdocDate.day($0.value) == nil }
    }

    // MARK: Issuer

    /// What was signed, and by whom.
    private struct Issued {
        let object: MobileSecurityObject
        let signer: DocumentCertificate
    }

    /// Reads issuerAuth, and verifies its signature. 9.1.2.4.
    private func issued(_ document: DeviceResponse.Document, _ check: inout SignatureCheck) -> Issued? {
        func end(_ result: CheckResult, _ reason: SignatureCheck.Reason) {
            (check.result, check.reason) = (result, reason)
        }
        do {
            guard let item = document.issuerSigned["issuerAuth"] else { throw MdocProblem.malformed("no issuerAuth") }
            let message = try COSEMessage(item, .signature)
            guard let leaf = message.certificates.first, let payload = message.payload else {
                throw MdocProblem.malformed("issuerAuth has no certificate or no payload")
            }
            let signer = try DocumentCertificate(leaf)
            let object = try MobileSecurityObject(try payload.decoded().embedded())
            check.algorithm = message.algorithmName
            guard object.isKnownVersion else {
                end(.notDone, .unsupported)
                return Issued(object: object, signer: signer)
            }
            do {
                guard case .elliptic(let key) = try signer.publicKey else {
                    throw MdocProblem.unsupported("a key that is not elliptic")
                }
                if try message.verify(with: key) {
                    check.result = .passed
                } else {
                    end(.failed, .wrongSignature)
                }
            } catch PublicKeyInfo.Fault.unsupported, MdocProblem.unsupported, MdocProblem.library {
                end(.notDone, .unsupported)
            }
            return Issued(object: object, signer: signer)
        } catch MdocProblem.unsupported {
            end(.notDone, .unsupported)
        } catch {
            end(.failed, .malformed)
        }
        return nil
    }

    /// Compares the hash of each item, and returns the elements whose hash is right. 9.3.1.
    private func checkHashes(
        _ document: DeviceResponse.Document,
        _ object: MobileSecurityObject,
        _ check: inout HashCheck
    ) -> [MdocResult.Element] {
        guard let digest = object.digest else {
            check.result = .notDone
            check.reason = .unsupported
            return []
        }
        var elements: [MdocResult.Element] = []
        var seen: Set<[String]> = []
        var fault: HashCheck.Reason?
        guard let spaces = document.issuerSigned["nameSpaces"].map(\.map) ?? [] else {
            check.result = .failed
            check.reason = .malformed
            return []
        }
        for (name, list) in spaces {
            guard let namespace = name.name, let items = list.array else {
                fault = fault ?? .malformed
                continue
            }
            for item in items {
                switch element(item, namespace, object, digest) {
                case .failure(let reason): fault = fault ?? reason.reason
                case .success(let element):
                    if seen.insert([namespace, element.name]).inserted {
                        elements.append(element)
                    } else {
                        fault = fault ?? .malformed
                    }
                }
            }
        }
        check.result = fault == nil ? .passed : .failed
        check.reason = fault
        return elements
    }

    private struct ItemFault: Error { let reason: HashCheck.Reason }

    /// The shortest random number of an item. 9.1.2.5.
    private static let minimumRandom = 16

    /// Reads an item whose hash is right: the hash covers tag 24 and its bytes as they came. 9.1.2.5.
    private func element(
        _ item: CBOR,
        _ namespace: String,
        _ object: MobileSecurityObject,
        _ digest: DigestAlgorithm
    ) -> Result<MdocResult.Element, ItemFault> {
        guard let content = try? item.embedded(), let id = content["digestID"]?.unsigned,
            let name = content["elementIdentifier"]?.name, let value = content["elementValue"],
            let random = content["random"], random.kind == .bytes,
            random.secret?.count ?? 0 >= Self.minimumRandom
        else { return .failure(ItemFault(reason: .malformed)) }
        guard let expected = object.hashes[namespace]?[id] else { return .failure(ItemFault(reason: .notSigned)) }
        let isRight = item.withEncoded { bytes -> Bool in
            guard let hash = try? digest.hash(Secret(bytes), suffix: []) else { return false }
            return ConstantTime.equal(hash, Secret(expected))
        }
        guard isRight else { return .failure(ItemFault(reason: .wrongHash)) }
        return .success(MdocResult.Element(namespace: namespace, name: name, value: value, isOfDevice: false))
    }

    /// Judges the signer of the document. Its country is that of the document, if the document says it.
    private func checkAuthority(
        _ issued: Issued,
        _ document: DeviceResponse.Document,
        _ elements: [MdocResult.Element],
        _ check: inout AuthorityCheck
    ) {
        var countries: Set<String> = [issued.signer.subject.country ?? ""]
        for element in elements where element.name == "issuing_country" {
            // A document of two countries, or of one in another form, is of none.
            countries.formIntersection(Self.country(element.value).map { [$0] } ?? [])
        }
        var anchors = authorities.anchors
        anchors.docType = document.docType
        let claim = SignedData.Claim(certificate: issued.signer)
        check = anchors.judge(claim, as: .mobileSecurityObject, countries: countries, at: time)
        guard check.result == .passed, issued.object.signed > time else { return }
        // Either the signer or the clock of this host is wrong.
        check.result = .notDone
        check.reason = .signedInFuture
    }

    /// A country: two upper-case letters of ISO 3166-1. ISO/IEC 18013-5, 7.2.1.
    private static func country(_ value: CBOR) -> String? {
        guard let text = value.text, text.utf8.count == 2, text.utf8.allSatisfy({ (0x41...0x5A).contains($0) }) else {
            return nil
        }
        return text
    }

    // MARK: Device

    /// Verifies that the phone has the key of the document, and returns the elements that it may sign. 9.1.3.
    private func checkDevice(
        _ document: DeviceResponse.Document,
        _ object: MobileSecurityObject,
        _ signature: SignatureCheck,
        _ check: inout DeviceCheck
    ) -> [MdocResult.Element] {
        do {
            guard let namespaces = document.deviceSigned["nameSpaces"] else {
                throw MdocProblem.malformed("DeviceSigned has no namespaces")
            }
            let spaces = try Self.signedSpaces(try namespaces.embedded())
            let proofs = document.deviceSigned["deviceAuth"]
            let payload = binding.deviceAuthentication(docType: document.docType, namespaces: namespaces.encoded)
            let isRight: Bool
            switch (proofs?["deviceSignature"], proofs?["deviceMac"]) {
            case (.some(let item), nil):
                check.method = .signature
                let message = try COSEMessage(item, .signature)
                isRight = try message.verify(with: try ECPublicKey(cose: object.deviceKey), detached: payload)
            case (nil, .some(let item)):
                check.method = .mac
                let message = try COSEMessage(item, .mac)
                let key = try binding.macKey(with: try ECPublicKey(cose: object.deviceKey))
                isRight = try message.verify(mac: key, detached: payload)
            case (.some, .some), (nil, nil): throw MdocProblem.malformed("a phone has one proof of its key")
            }
            guard isRight else {
                check.result = .failed
                check.reason = .wrongSignature
                return []
            }
            check.result = .passed
            return signature.result == .passed ? elements(of: spaces, object) : []
        } catch MdocProblem.unsupported, MdocProblem.library {
            check.result = .notDone
            check.reason = .unsupported
        } catch {
            check.result = .failed
            check.reason = .malformed
        }
        return []
    }

    /// What the phone has signed with the leave of the issuer; all else is dropped.
    private func elements(of spaces: [MdocResult.Element], _ object: MobileSecurityObject) -> [MdocResult.Element] {
        spaces.filter { object.authorizes($0.name, in: $0.namespace) }
    }

    /// DeviceNameSpaces: a map of namespaces, each of which is a map of elements. 8.3.2.1.2.2.
    private static func signedSpaces(_ spaces: CBOR) throws(MdocProblem) -> [MdocResult.Element] {
        guard let spaces = spaces.map else { throw .malformed("the namespaces of the phone are no map") }
        var elements: [MdocResult.Element] = []
        for (name, list) in spaces {
            guard let namespace = name.name, let list = list.map else {
                throw .malformed("a namespace of the phone is no map")
            }
            for (key, value) in list {
                guard let element = key.name else { throw .malformed("the name of an element is no text, or too long") }
                elements.append(.init(namespace: namespace, name: element, value: value, isOfDevice: true))
            }
        }
        return elements
    }

    // MARK: Status

    /// Asks the lists of the document's authority. A way that is not known leaves the check undone. Second edition,
    /// 12.3.6.
    private func checkStatus(
        _ object: MobileSecurityObject,
        _ document: DeviceResponse.Document,
        _ authority: AuthorityCheck,
        _ check: inout StatusCheck
    ) {
        guard !object.statuses.isEmpty || object.hasUnknownStatus else {
            check.result = .absent
            return
        }
        check.result = object.hasUnknownStatus ? .notDone : .passed
        if object.hasUnknownStatus { check.reason = .unsupported }
        for status in object.statuses {
            switch value(of: status, document, authority) {
            case .valid: continue
            case .revoked:
                check.result = .failed
                check.reason = .revoked
                return
            case .suspended:
                check.result = .failed
                check.reason = .suspended
                return
            case nil:
                check.result = .notDone
                check.reason = .unavailable
            }
        }
    }

    /// What the newest lists of the authority say: of several that were made in one second, the worst. nil: not known.
    private func value(
        of status: MobileSecurityObject.Status,
        _ document: DeviceResponse.Document,
        _ authority: AuthorityCheck
    ) -> MdocStatusList.Value? {
        var newest: Int?
        var values: [MdocStatusList.Value?] = []
        for list in authorities.lists(at: status.uri) where list.isOut(at: time) && list.has(status.place) {
            // Older ones are superseded, also by one that is over or that cannot be read.
            guard newest == nil || newest == list.issued else { break }
            guard let signer = list.signer(), isOfAuthority(signer, list.object, status, document, authority) else {
                continue
            }
            newest = list.issued
            if list.isCurrent(at: time) { values.append(list.value(at: status.place)) }
        }
        if let bad = [.revoked, .suspended].first(where: { values.contains($0) }) { return bad }
        return values.isEmpty || values.contains(nil) ? nil : .valid
    }

    /// Whether the authority of the document, or the one that the document names, has certified the signer of a list.
    private func isOfAuthority(
        _ signer: DocumentCertificate,
        _ object: SignedObject,
        _ status: MobileSecurityObject.Status,
        _ document: DeviceResponse.Document,
        _ authority: AuthorityCheck
    ) -> Bool {
        var anchors = authorities.anchors
        var own = authority.issuer
        let named = status.certificate.map { try? DocumentCertificate($0) } ?? own
        if named == own {
            anchors.docType = document.docType
        } else {
            anchors = DocumentAnchors()
            guard let named, (try? anchors.trust(named)) != nil else { return false }
            own = named
        }
        let claim = SignedData.Claim(certificate: signer)
        func judge(_ anchors: DocumentAnchors) -> AuthorityCheck {
            anchors.judge(claim, as: object, countries: [signer.subject.country ?? ""], at: time)
        }
        // What the site knows against the signer counts whichever authority the document names.
        guard ![.revoked, .defect].contains(judge(authorities.anchors).reason) else { return false }
        let check = judge(anchors)
        // Both may be certified by different keys of one authority.
        return check.result == .passed && check.issuer != nil && check.issuer?.subject == own?.subject
    }
}
