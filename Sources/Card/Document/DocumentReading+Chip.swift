// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import ISO7816

/// The proofs of the chip with keys that EF.SOD has signed.
///
/// What binds each proof to this document: chip authentication and active authentication use keys of DG14 and DG15, whose
/// hashes are in EF.SOD. The chip authentication mapping uses a key of EF.CardSecurity, which is bound to the country
/// alone; so its key must be in DG14 too, or chip authentication must pass as well.
extension DocumentReading {
    mutating func proveByChipAuthentication(
        _ source: Source
    ) async throws(DocumentError) -> ChipCheck.Run? {
        guard let object, object.hashes[14] != nil, isDue(.chipAuthentication) else { return nil }
        // PACE has proven the chip already, with a key of this document.
        if checks.chip.runs.contains(where: { $0.method == .mapping && $0.result == .passed }) { return nil }
        if let run = disturbedRun(.chipAuthentication, keyIn: 14) { return run }
        guard let file = files[.group(14)] else { return .init(.chipAuthentication, .failed, .refused) }
        // A key that is not signed proves nothing; the check of the hashes fails.
        guard object.matches(file, group: 14) == true else { return .init(.chipAuthentication, .notDone) }
        // A group that has no infos is no forgery: it has the hash that was signed.
        guard let infos = infos(of: file) else { return .init(.chipAuthentication, .notDone, .malformed) }
        let choice: ChipAuthenticationV1
        do throws(ChipAuthenticationV1.Fault) {
            guard let chosen = try ChipAuthenticationV1.choose(infos) else { return nil }
            choice = chosen
        } catch {
            return .init(.chipAuthentication, error)
        }
        do throws(DocumentError) {
            switch try await source.chip.authenticateChip(choice, file: file) {
            case .proven: return .init(.chipAuthentication, .passed)
            case .wrongKey: return .init(.chipAuthentication, .failed, .wrongKey)
            case .refused: return .init(.chipAuthentication, .failed, .refused)
            }
        } catch {
            throw interrupted(in: .method(.chipAuthentication), by: error)
        }
    }

    /// Whether a method is to be tried now: it was not tried in this run, has not failed twice, and does not come later.
    private func isDue(_ method: ChipCheck.Method) -> Bool {
        !checks.chip.has(method) && !retries.contains(.method(method))
    }

    func infos(of file: [UInt8]?) -> SecurityInfos? {
        guard let file, let group = try? BERTLV(startOf: file), group.tag == 0x6E else { return nil }
        return try? SecurityInfos(group.value)
    }

    mutating func proveByActiveAuthentication(_ source: Source) async throws(DocumentError) -> ChipCheck.Run? {
        guard let object, object.hashes[15] != nil, isDue(.activeAuthentication) else { return nil }
        try await readGroup(15, source)
        if retries.contains(.file(.group(15))) { return nil }
        if let run = disturbedRun(.activeAuthentication, keyIn: 15) { return run }
        guard let file = files[.group(15)] else { return .init(.activeAuthentication, .failed, .refused) }
        guard object.matches(file, group: 15) == true else { return .init(.activeAuthentication, .notDone) }
        do throws(DocumentError) {
            return try await challenge(source.chip, file)
        } catch {
            throw interrupted(in: .method(.activeAuthentication), by: error)
        }
    }

    private func challenge(_ chip: DocumentChip, _ file: [UInt8]) async throws(DocumentError) -> ChipCheck.Run {
        let key: PublicKeyInfo
        do throws(PublicKeyInfo.Fault) {
            guard let group = try? BERTLV(startOf: file), group.tag == 0x6F else { throw .malformed }
            key = try PublicKeyInfo(group.value)
        } catch {
            return .init(.activeAuthentication, error)
        }
        let length: Int
        switch key {
        case .rsa(let key), .rsaPSS(let key, _): length = key.modulus.count
        case .elliptic(let key): length = key.curve.scalarLength * 2
        case .integers: return .init(.activeAuthentication, .notDone, .unsupported)
        }
        let (challenge, answer): ([UInt8], [UInt8])
        do throws(DocumentError) {
            (challenge, answer) = try await chip.signChallenge(length: length)
        } catch {
            guard case .refused = error else { throw error }
            return .init(.activeAuthentication, .failed, .refused)
        }
        let infos = infos(of: files[.group(14)])
        switch try? ActiveAuthentication.check(answer, challenge: challenge, key: key, infos: infos) {
        case .right: return .init(.activeAuthentication, .passed)
        case .wrong: return .init(.activeAuthentication, .failed, .wrongSignature)
        case .unsupported, nil: return .init(.activeAuthentication, .notDone, .unsupported)
        }
    }

    /// Whether a key is one that EF.SOD has signed for this document: in DG14, with the right hash.
    func isOfThisDocument(_ key: ECPublicKey) -> Bool {
        guard let file = files[.group(14)], object?.matches(file, group: 14) == true, let infos = infos(of: file) else {
            return false
        }
        return infos.chipAuthenticationKeys.contains { (try? PublicKeyInfo($0.publicKey)) == .elliptic(key) }
    }
}

extension ChipCheck.Run {
    /// A proof whose key cannot be used. A key that badged does not support says nothing against the chip.
    init(_ method: ChipCheck.Method, _ fault: PublicKeyInfo.Fault) {
        switch fault {
        case .unsupported: self.init(method, .notDone, .unsupported)
        case .malformed, .invalidKey: self.init(method, .failed, .malformed)
        }
    }
}
