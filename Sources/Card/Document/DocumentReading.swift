// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
import Crypto
import Glibc
import ISO7816
import Text

/// Reads a document and checks it. A reading that was interrupted goes on with the files that it has, if the same
/// document comes back.
///
/// What fails is done once more in the next run, at its end, because a chip may need a reset after it. What has failed
/// twice counts, and is not done again. So a chip that needs a reset after each failure is read to its end.
///
/// A chip that gives no answer of its own in a step ends the run. The next one does the step at its end; if that ends as
/// well, the step is left out. This is no forgery, so what needs the step is not done.
package struct DocumentReading: Sendable {
    /// What happened to a data group.
    package enum GroupState: String, Sendable {
        case read
        /// Fingerprints and irises, which need a terminal certificate. They are never tried.
        case locked
        case notAsked
        /// The chip refused the file.
        case refused
        case malformed
        /// The chip gave no answer of its own, twice.
        case disturbed
        /// EF.COM names the group, and EF.SOD does not. It was not read.
        case notSigned
    }

    /// What one disturbed answer may have spoiled. It is done once more after a new access, and what fails twice counts.
    package enum Doubt: Hashable, Sendable {
        case file(DocumentFile)
        case method(ChipCheck.Method)
        /// EF.CardAccess is not what DG14 says.
        case access
    }

    package enum Progress: Sendable, Equatable {
        case opening
        case reading(DocumentFile, bytes: Int, total: Int)
        case provingChip
    }

    /// Where the files come from.
    struct Source {
        let chip: DocumentChip
        let progress: @Sendable (Progress) -> Void

        func read(_ file: DocumentFile, known: Int) async throws(DocumentError) -> [UInt8] {
            try await chip.read(file, known: known) { progress(.reading(file, bytes: $0, total: $1)) }
        }
    }

    /// The groups to read. DG1 is always read, DG14 and DG15 if the document has them.
    package let wanted: Set<Int>
    package private(set) var checks = DocumentChecks()
    /// The files that were read.
    package private(set) var files: [DocumentFile: [UInt8]] = [:]
    package private(set) var groups: [Int: GroupState] = [:]
    package private(set) var zone: MachineReadableZone?
    package private(set) var access: DocumentAccess?
    /// What is to be done once more. Empty if the last run was not finished.
    package private(set) var doubts: Set<Doubt> = []
    private(set) var object: SecurityObject?
    private var signers: [SignedData.Claim] = []
    /// The signers of EF.CardSecurity, if PACE has proven the chip with its key.
    private var cardSigners: [SignedData.Claim] = []
    private let readsCommonData: Bool
    /// How often each step has failed.
    private var failures: [Doubt: Int] = [:]
    /// The steps that failed the last time because the chip gave no answer of its own.
    private var disturbances: Set<Doubt> = []
    /// The step in which the last run has ended so; nil if it has ended otherwise.
    package private(set) var interruptedStep: Doubt?
    /// What has failed once in the runs before, and is not done yet.
    private(set) var retries: Set<Doubt> = []
    /// Whether EF.SOD was read to its end.
    private var isObjectRead = false
    /// Whether the document was taken out, so that another one may be there now.
    private var mayBeAnother = false
    /// Whether the last run has dropped what there was, because the document that came back is not known to be the same.
    package private(set) var hasBegunAnew = false

    /// - Parameters:
    ///   - groups: the data groups that the client asked for; 3 and 4 are ignored.
    ///   - readsCommonData: whether EF.COM is read too, which names groups that nobody has signed.
    package init(groups: Set<Int>, readsCommonData: Bool = true) {
        wanted = groups.subtracting([3, 4]).union([1])
        self.readsCommonData = readsCommonData
    }

    /// Reads and checks.
    ///
    /// - Parameters:
    ///   - chip: a connection to the document.
    ///   - key: what opens it.
    ///   - anchors: the trusted authorities; empty ones leave the check of the authority undone.
    ///   - time: of the reading, in seconds since 1970.
    ///   - progress: is called at each step, and after each command that reads a file.
    /// - Throws: when the document cannot be read. A document that can be read but not believed is no error.
    @concurrent package mutating func run(
        _ chip: DocumentChip,
        key: AccessKey,
        anchors: DocumentAnchors,
        at time: Int,
        progress: @escaping @Sendable (Progress) -> Void = { _ in }
    ) async throws(DocumentError) {
        let source = Source(chip: chip, progress: progress)
        progress(.opening)
        for case .file(let file) in doubts { files[file] = nil }
        doubts = []
        interruptedStep = nil
        hasBegunAnew = false
        retries = findRetries()
        let isCommonDataLast = retries.contains(.file(.com))
        groups = groups.filter { isFinal(.file(.group($0.key))) }
        let runs = checks.chip.runs.filter { $0.method != .mapping && isFinal(.method($0.method)) }
        checks = DocumentChecks()
        checks.chip.runs = runs
        cardSigners = []
        try await open(chip)
        access = await chip.access
        try await readSecurityObject(source, anchors)
        files[.cardAccess] = await chip.cardAccess
        files[.cardSecurity] = await chip.cardSecurity
        progress(.provingChip)
        try await proveChip(source, anchors, at: time)
        try await readGroups(source)
        if !isCommonDataLast { try await readCommonData(source) }
        retries = []
        // A chip may refuse everything after a failed proof.
        try await readGroups(source)
        try await proveChip(source, anchors, at: time)
        if isCommonDataLast { try await readCommonData(source) }
        checkCommonData()
        finishGroups()
        checkContent(key, infos: await chip.infos, at: time)
        checkHashes()
        // A wrong signature says nothing about the certificate that the file names.
        if let check = judgeSigner(anchors, at: time)?.check { checks.authority = check }
        judgeCardSigner(anchors, at: time)
        checks.addFindings()
        doubts = findDoubts()
    }

    /// Notes that the document was taken out. What was read of it counts on when the same EF.SOD is read again: the key and
    /// EF.CardAccess of two documents may be the same.
    package mutating func wasTakenOut() {
        mayBeAnother = true
        interruptedStep = nil
        failures[.file(.sod)] = nil
    }

    /// How far the reading is. The number is bounded. What was disturbed brings it no further.
    package var steps: Int {
        files.count + failures.reduce(0) { disturbances.contains($1.key) ? $0 : $0 + $1.value }
    }

    /// What has failed once and is still missing.
    private func findRetries() -> Set<Doubt> {
        Set(
            failures.keys.filter { step in
                if case .file(let file) = step, files[file] != nil { return false }
                return !isFinal(step)
            }
        )
    }

    /// Whether a step has failed twice, which counts.
    private func isFinal(_ step: Doubt) -> Bool { failures[step, default: 0] > 1 }

    private mutating func fail(_ step: Doubt) {
        failures[step, default: 0] += 1
        disturbances.remove(step)
    }

    /// Notes the step of an answer that did not come or is not the chip's own.
    /// - Returns: the error, which ends the run.
    mutating func interrupted(in step: Doubt, by error: DocumentError) -> DocumentError {
        guard error.isOfAnswer else { return error }
        fail(step)
        disturbances.insert(step)
        interruptedStep = step
        if case .file(.group(let group)) = step { groups[group] = .disturbed }
        return error
    }

    /// The result of a method that was left out, or whose key was, because the chip gave no answer of its own, twice.
    func disturbedRun(_ method: ChipCheck.Method, keyIn group: Int) -> ChipCheck.Run? {
        guard groups[group] == .disturbed || isFinal(.method(method)) else { return nil }
        return .init(method, .notDone, .disturbed)
    }

    /// Overwrites the files, which have data of the holder. Call it at the end of a reading.
    package mutating func wipe() {
        for file in Array(files.keys) {
            files[file]?.withUnsafeMutableBytes { memory in
                if let base = memory.baseAddress { explicit_bzero(base, memory.count) }
            }
        }
        files = [:]
        zone = nil
    }

    // MARK: Files

    private mutating func open(_ chip: DocumentChip) async throws(DocumentError) {
        let before = await chip.abilities
        do throws(DocumentError) {
            try await chip.open()
        } catch {
            let after = await chip.abilities
            if after.cardSecurityFailures > before.cardSecurityFailures {
                throw interrupted(in: .method(.mapping), by: error)
            }
            if after.commonDataFailures > before.commonDataFailures {
                throw interrupted(in: .file(.com), by: error)
            }
            throw error
        }
    }

    private mutating func readSecurityObject(
        _ source: Source,
        _ anchors: DocumentAnchors
    ) async throws(DocumentError) {
        let isTried = !isFinal(.file(.sod))
        let old = files[.sod]
        var file = old ?? []
        var isRead = isObjectRead
        if isTried {
            do throws(DocumentError) {
                // A signature and a certificate are never shorter.
                file = try await source.read(.sod, known: 512)
                isRead = true
            } catch {
                guard error.isOfFile else {
                    if mayBeAnother, error.isOfAnswer { forget() }
                    throw interrupted(in: .file(.sod), by: error)
                }
                file = await source.chip.partial[.sod] ?? []
                isRead = false
            }
        }
        // Nothing of another document is used. One that was taken out is the same only if its whole EF.SOD is.
        let isOther =
            mayBeAnother
            ? !isObjectRead || !isRead || old != file : old != nil && old != file && (isObjectRead || isRead)
        if isOther { forget() }
        mayBeAnother = false
        let wasRead = isObjectRead
        isObjectRead = isRead
        if isTried, !isRead {
            fail(.file(.sod))
        } else if isRead, !wasRead {
            // Only now it is known which groups the document has.
            groups = [:]
            failures = failures.filter { step in
                if case .file(.group) = step.key { false } else { true }
            }
        }
        guard isObjectRead || !disturbances.contains(.file(.sod)) else {
            object = nil
            signers = []
            checks.signature.reason = .disturbed
            return
        }
        files[.sod] = file
        let result = PassiveAuthentication.check(file, anchors: anchors)
        checks.signature = result.check
        checks.hashes.reason = result.hashReason
        object = result.object
        signers = result.signers
        checks.chip.isOfferKnown = object != nil
    }

    private mutating func forget() {
        wipe()
        groups = [:]
        failures = [:]
        disturbances = []
        retries = []
        checks.chip.runs = []
        isObjectRead = false
        hasBegunAnew = mayBeAnother
        mayBeAnother = false
    }

    private mutating func readGroups(_ source: Source) async throws(DocumentError) {
        // The large files come last.
        for group in [1, 11, 12, 7, 16, 13, 5, 6, 8, 9, 10, 2] where wanted.contains(group) {
            try await readGroup(group, source)
        }
    }

    /// Reads a file once in each run. A refused or malformed file is a state, not an error.
    mutating func readGroup(_ group: Int, _ source: Source) async throws(DocumentError) {
        let file = DocumentFile.group(group)
        if files[file] != nil {
            groups[group] = .read
            return
        }
        guard isNamed(group) || object == nil else { return }
        guard groups[group] == nil, !retries.contains(.file(file)) else { return }
        do throws(DocumentError) {
            files[file] = try await source.read(file, known: Self.knownLength(of: group))
            groups[group] = .read
        } catch {
            switch error {
            case .refused: groups[group] = .refused
            case .malformed: groups[group] = .malformed
            case .card, .notADocument, .wrongPassword, .accessUnsupported, .accessRefused, .basicAccessRefused,
                .protocolViolation:
                throw interrupted(in: .file(file), by: error)
            }
            fail(.file(file))
            // Without EF.SOD a document may lack it.
            if !isNamed(group) { fail(.file(file)) }
        }
        if group == 1 { zone = files[file].flatMap { MachineReadableZone(group: $0) } }
    }

    /// Whether the document has a group: DG1 and DG2 are mandatory; the others are there if EF.SOD names them.
    private func isNamed(_ group: Int) -> Bool { group <= 2 || object?.hashes[group] != nil }

    /// A length that a group has at least: the shortest zone, and more than one command for a picture.
    private static func knownLength(of group: Int) -> Int {
        switch group {
        case 1: 77
        case 2: 512
        default: 8
        }
    }

    private mutating func readCommonData(_ source: Source) async throws(DocumentError) {
        guard readsCommonData, files[.com] == nil, !isFinal(.file(.com)) else { return }
        do throws(DocumentError) {
            // Both versions, and at least DG1 and DG2.
            files[.com] = try await source.read(.com, known: 22)
        } catch {
            guard error.isOfFile else { throw interrupted(in: .file(.com), by: error) }
            fail(.file(.com))
        }
    }

    private mutating func checkCommonData() {
        guard let file = files[.com], let com = try? CommonData(file), let object else { return }
        if Set(com.groups) != Set(object.hashes.keys) { checks.document.findings.append(.comDiffers) }
        for group in com.groups where object.hashes[group] == nil && groups[group] == nil {
            groups[group] = .notSigned
        }
    }

    private mutating func finishGroups() {
        for group in (object?.hashes.keys).map(Array.init) ?? [] where groups[group] == nil {
            groups[group] = group == 3 || group == 4 ? .locked : .notAsked
        }
    }

    // MARK: Chip

    private mutating func proveChip(
        _ source: Source,
        _ anchors: DocumentAnchors,
        at time: Int
    ) async throws(DocumentError) {
        if object?.hashes[14] != nil { try await readGroup(14, source) }
        // Its keys bind the proofs.
        if !retries.contains(.file(.group(14))) {
            if !checks.chip.has(.mapping) { try await proveMapping(source.chip, anchors, at: time) }
            if let run = try await proveByChipAuthentication(source) { add(run, withKeyIn: 14) }
            checks.chip.bindMapping()
        }
        if let run = try await proveByActiveAuthentication(source) { add(run, withKeyIn: 15) }
    }

    /// Adds a proof. Without the file of its key it was not tried.
    private mutating func add(_ run: ChipCheck.Run, withKeyIn group: Int) {
        checks.chip.add(run)
        if run.mayBeDisturbed, files[.group(group)] != nil { fail(.method(run.method)) }
    }

    /// Checks the proof of PACE with chip authentication mapping: the key in EF.CardSecurity, whose signer a trusted
    /// authority of the signer's country has certified. Otherwise a clone brings a file of its own.
    private mutating func proveMapping(
        _ chip: DocumentChip,
        _ anchors: DocumentAnchors,
        at time: Int
    ) async throws(DocumentError) {
        guard let parameters = access?.parameters, parameters.mapping == .chipAuthentication else { return }
        let (proof, file) = (await chip.mappingProof, await chip.cardSecurity)
        let abilities = await chip.abilities
        let isDisturbed = file == nil && abilities.isCardSecurityDisturbed
        let run = isDisturbed ? .init(.mapping, .notDone, .disturbed) : check(proof, file, parameters, anchors)
        checks.chip.runs.insert(run, at: 0)
        if run.mayBeDisturbed { fail(.method(.mapping)) }
        // EF.CardSecurity itself has failed twice.
        if abilities.lacksCardSecurity { failures[.method(.mapping)] = 2 }
        judgeCardSigner(anchors, at: time)
    }

    private func judgeSigner(
        _ anchors: DocumentAnchors,
        at time: Int
    ) -> (claim: SignedData.Claim, check: AuthorityCheck)? {
        anchors.judge(
            signers,
            as: .securityObject,
            countries: PassiveAuthentication.countries(of: zone),
            type: zone?.code,
            at: time
        )
    }

    /// Judges the signer of EF.CardSecurity, who must be of the country of EF.SOD's signer, and sign such documents. What
    /// type the document has is known when DG1 was read.
    private mutating func judgeCardSigner(_ anchors: DocumentAnchors, at time: Int) {
        guard let index = checks.chip.runs.firstIndex(where: { $0.method == .mapping }) else { return }
        let country = judgeSigner(anchors, at: time)?.claim.certificate.subject.country
        let judgement = anchors.judge(
            cardSigners,
            as: .cardSecurity,
            countries: country.map { [$0] },
            type: zone?.code,
            at: time
        )
        guard let trust = judgement?.check, trust.result != .passed else { return }
        let reason: ChipCheck.Reason = trust.reason == .unsupported ? .unsupported : .unknownAuthority
        checks.chip.runs[index] = .init(.mapping, trust.result, reason)
    }

    private mutating func check(
        _ proof: PACE.MappingProof?,
        _ file: [UInt8]?,
        _ parameters: PACEParameters,
        _ anchors: DocumentAnchors
    ) -> ChipCheck.Run {
        guard let proof else { return .init(.mapping, .failed, .malformed) }
        guard let file else { return .init(.mapping, .failed, .refused) }
        let (signed, verified): (SignedData, [SignedData.Proof])
        do throws(SignedData.Fault) {
            signed = try SignedData(file)
            verified = try signed.proofs(of: .cardSecurity, others: anchors.signers)
        } catch {
            switch error {
            case .malformed: return .init(.mapping, .failed, .malformed)
            case .noSigner: return .init(.mapping, .notDone, .unknownAuthority)
            case .unsupported: return .init(.mapping, .notDone, .unsupported)
            case .wrongDigest, .wrongSignature: return .init(.mapping, .failed, .wrongSignature)
            }
        }
        guard let content = DefiniteLengths.resolve(signed.content), let infos = try? SecurityInfos(content) else {
            return .init(.mapping, .failed, .malformed)
        }
        let keys = infos.chipAuthenticationKeys.compactMap { info -> ECPublicKey? in
            guard case .elliptic(let key)? = try? PublicKeyInfo(info.publicKey), key.curve == parameters.curve else {
                return nil
            }
            return key
        }
        guard !keys.isEmpty else { return .init(.mapping, .notDone, .unsupported) }
        guard let key = keys.first(where: { (try? proof.proves($0)) == true }) else {
            return .init(.mapping, .failed, .wrongKey)
        }
        cardSigners = verified.map(\.claim)
        return isOfThisDocument(key) ? .init(.mapping, .passed) : .init(.mapping, .notDone, .notBound)
    }

    // MARK: Content

    private mutating func checkHashes() {
        guard let object else { return }
        var (wrong, unsigned, malformed, disturbed): ([Int], [Int], [Int], [Int]) = ([], [], [], [])
        for (group, state) in groups.sorted(by: { $0.key < $1.key }) {
            switch state {
            case .read:
                switch object.matches(files[.group(group)] ?? [], group: group) {
                case true: continue
                case false: wrong.append(group)
                case nil: unsigned.append(group)
                }
            case .notSigned: unsigned.append(group)
            case .malformed: malformed.append(group)
            case .disturbed: disturbed.append(group)
            case .refused: if object.hashes[group] != nil { malformed.append(group) }
            case .locked, .notAsked: continue
            }
        }
        let found: [(HashCheck.Reason, [Int])] = [(.wrongHash, wrong), (.notSigned, unsigned), (.malformed, malformed)]
        if let (reason, groups) = found.first(where: { !$0.1.isEmpty }) {
            checks.hashes = HashCheck(result: .failed, reason: reason, groups: groups)
        } else if !disturbed.isEmpty {
            checks.hashes = HashCheck(reason: .disturbed, groups: disturbed)
        } else if groups[1] == .read {
            checks.hashes.result = .passed
        }
    }

    /// What a disturbed answer may have spoiled in this run. Bytes from a channel are what the chip has sent, so their
    /// hashes and signatures are not in doubt.
    private func findDoubts() -> Set<Doubt> {
        var doubts: Set<Doubt> = []
        for (group, state) in groups where state == .refused || state == .malformed {
            if isNamed(group) { doubts.insert(.file(.group(group))) }
        }
        if !isObjectRead { doubts.insert(.file(.sod)) }
        if access?.method == .open {
            if checks.hashes.reason == .wrongHash { doubts.formUnion(checks.hashes.groups.map { .file(.group($0)) }) }
            if checks.hashes.reason == .notSigned { doubts.insert(.file(.com)) }
            // A wrong bit in an identifier makes it unknown, and the signature unsupported.
            let isSigned = checks.signature.result == .passed && checks.authority.result != .failed
            if !isSigned || object == nil { doubts.insert(.file(.sod)) }
        }
        let failed = checks.chip.runs.filter { $0.mayBeDisturbed && failures[.method($0.method)] != nil }
        doubts.formUnion(failed.map { .method($0.method) })
        if checks.document.findings.contains(.accessDiffers) { doubts.insert(.access) }
        return doubts.filter { !isFinal($0) }
    }

    private mutating func checkContent(_ key: AccessKey, infos: SecurityInfos?, at time: Int) {
        guard groups[1] == .read else { return }
        checks.document.isDone = true
        if access?.method == .open { checks.document.findings.append(.noAccessControl) }
        guard let zone else {
            checks.document.findings.append(.malformed)
            return
        }
        checks.document.findings += zone.wrongCheckDigits.map { .checkDigit($0) }
        if key.matches(zone) == false { checks.document.findings.append(.mrzDiffers) }
        let end = zone.lastSecond
        if end == nil || zone.impossibleDates.contains(.birth) { checks.document.findings.append(.malformed) }
        if let end, end < time { checks.document.findings.append(.expired) }
        if let signed = self.infos(of: files[.group(14)]), Self.differ(signed.pace, infos?.pace ?? []) {
            checks.document.findings.append(.accessDiffers)
        }
        if let file = files[.group(2)], groups[2] == .read {
            let images = (try? FaceImages(file).images) ?? []
            if images.isEmpty || images.contains(where: { $0.format == .unknown }) {
                checks.document.findings.append(.imageUnknown)
            }
        }
    }

    /// Whether the variants of PACE in DG14 and in EF.CardAccess differ. ICAO 9303-11 9.2.11.
    private static func differ(_ signed: [PACEInfo], _ open: [PACEInfo]) -> Bool {
        !signed.allSatisfy(open.contains) || !open.allSatisfy(signed.contains)
    }
}

extension MachineReadableZone {
    /// The end of the day of expiry, in seconds since 1970: of the last day that it may be, if some of its digits are
    /// unknown. nil for a date that no calendar has. Documents expire in the 21st century.
    package var lastSecond: Int? {
        let characters = Array(expiry.utf8)
        func numbers(_ start: Int, _ range: ClosedRange<Int>) -> [Int] {
            let pair = characters[start..<start + 2]
            // 00 for a month or day is unknown, too.
            let isUnknown = start > 0 && pair.allSatisfy { $0 == UInt8(ascii: "0") }
            return range.reversed().filter { isUnknown || zip(pair, $0.padded(to: 2).utf8).allSatisfy(Self.mayBe) }
        }
        guard characters.count == 6 else { return nil }
        for year in numbers(0, 0...99) {
            for month in numbers(2, 1...12) {
                for day in numbers(4, 1...31) {
                    if let day = CalendarDay(year: 2000 + year, month: month, day: day) { return day.start + 86_399 }
                }
            }
        }
        return nil
    }

    /// Whether a character of a date stands for a digit.
    private static func mayBe(_ character: UInt8, _ digit: UInt8) -> Bool {
        character == filler || character == digit
    }
}
