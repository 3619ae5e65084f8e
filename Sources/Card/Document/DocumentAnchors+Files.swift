// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

extension DocumentAnchors {
    /// One thing of a file that may add something.
    package struct Entry: Sendable {
        /// The file in which it was found.
        package let place: String
        package let file: DocumentAnchorFile
        /// The bytes of the file; empty for a part of one.
        package let content: [UInt8]
        /// Whether it stands alone, or in a collection that was chosen.
        package let isChosen: Bool
        /// Why it adds nothing.
        package fileprivate(set) var fault: Malformed?

        fileprivate enum Step { case link, root, revocations, list, defects, signer }

        fileprivate var step: Step {
            switch file {
            case .certificate(let certificate) where certificate.signsCertificates:
                certificate.isSelfIssued && !certificate.namesAnotherKey ? .root : .link
            case .certificate: .signer
            case .revocationList: .revocations
            case .masterList: .list
            case .defectList, .collection: .defects
            }
        }

        /// The parts of a collection, or the file itself.
        package static func all(of place: String, _ file: DocumentAnchorFile, _ content: [UInt8]) -> [Entry] {
            guard case .collection(let collection) = file else {
                return [Entry(place: place, file: file, content: content, isChosen: true)]
            }
            return collection.files.map {
                Entry(place: place, file: $0, content: [], isChosen: collection.isChosen)
            }
        }
    }

    /// Takes what trusted authorities have signed, and leaves the rest, each with its fault.
    ///
    /// The order of the entries does not count: links and revocation lists come before the lists whose signers they may
    /// be about, and each list may bring the authority of another one.
    ///
    /// - Parameters:
    ///   - entries: what may be taken; what is left afterwards was not.
    ///   - types: the types of mobile documents for which lists bring authorities; nil for all.
    ///   - time: seconds since 1970.
    ///   - checksSigners: whether the certificates of document signers need an authority.
    ///   - onTaken: is called for each entry that was taken.
    package mutating func take(
        _ entries: inout [Entry],
        for types: Set<String>? = nil,
        at time: Int,
        checksSigners: Bool,
        onTaken: (Entry) -> Void = { _ in }
    ) {
        let rules = TakingRules(types: types, time: time, checksSigners: checksSigners)
        repeat {
            while take(.link, &entries, rules, onTaken) {}
            _ = take(.revocations, &entries, rules, onTaken)
        } while take(.root, &entries, rules, onTaken) || take(.list, &entries, rules, onTaken)
        _ = take(.defects, &entries, rules, onTaken)
        _ = take(.signer, &entries, rules, onTaken)
    }

    private struct TakingRules {
        let types: Set<String>?
        let time: Int
        let checksSigners: Bool
    }

    /// Tries the entries of one step; one list at a time. Returns whether one was taken.
    private mutating func take(
        _ step: Entry.Step,
        _ entries: inout [Entry],
        _ rules: TakingRules,
        _ onTaken: (Entry) -> Void
    ) -> Bool {
        var isTaken = false
        var left: [Entry] = []
        for var entry in entries {
            guard entry.step == step, !isTaken || step != .list, !Task.isCancelled else {
                left.append(entry)
                continue
            }
            do throws(Malformed) {
                try take(entry.file, rules)
                isTaken = true
                onTaken(entry)
            } catch {
                entry.fault = error
                left.append(entry)
            }
        }
        entries = left
        return isTaken
    }

    private mutating func take(_ file: DocumentAnchorFile, _ rules: TakingRules) throws(Malformed) {
        let time = rules.time
        switch file {
        case .certificate(let certificate) where certificate.signsCertificates:
            guard role(of: certificate) == nil else { return }
            guard isTrusted(certificate, at: nil) else { throw Self.notTrusted }
            // An authority that has certified the same key vouches for what this key has signed, while it may do so.
            if !certificate.isSelfSigned {
                try addLink(certificate)
            } else if isTrusted(certificate, at: time) {
                let types = docTypes(rules.types, vouchedFor: certificate, at: time)
                guard types?.isEmpty != true else { throw Self.notTrusted }
                try trust(certificate, for: types, isChosen: isOfChosenAuthority(certificate, at: time))
            } else {
                throw Self.notTrusted
            }
        case .certificate(let certificate):
            // What its own holder has signed can only be meant as an authority.
            guard !certificate.isAuthority, !certificate.isSelfIssued else {
                throw Self.refusal(of: certificate)
            }
            guard !rules.checksSigners || isTrusted(certificate, at: nil) else { throw Self.notTrusted }
            addSigner(certificate)
        case .masterList(let list): _ = try add(list, at: time, for: rules.types)
        case .revocationList(let list): try add(list)
        case .defectList(let list): try addDefects(list, at: time)
        case .collection: throw Self.notTrusted
        }
    }

    /// What the files of a folder gave.
    package struct Summary: Sendable, Equatable {
        /// The names of master lists, defect lists, collections and exports of a directory.
        package var lists: [String] = []
        /// Files that add nothing, and why, for the log.
        package var warnings: [String] = []
    }

    /// How the name of a file in the folder ends if a master list has brought its authority, and nobody has chosen it.
    package static let listedSuffix = "listed.cer"

    /// Takes the files of a folder that only the administrator writes: its self-signed authorities are trusted; links,
    /// revocation lists, master lists and defect lists count with the signature of one of them. Authorities of files
    /// whose name ends with `listedSuffix` bring no master list.
    ///
    /// - Parameters:
    ///   - files: name and content of each file, in any order.
    ///   - types: the types of mobile documents for which the authorities are trusted; nil for all documents.
    ///   - time: seconds since 1970.
    /// - Returns: what was ignored. A cancelled task ends early.
    package mutating func addFiles(
        _ files: [(name: String, content: [UInt8])],
        for types: Set<String>? = nil,
        at time: Int
    ) -> Summary {
        var summary = Summary()
        var entries: [Entry] = []
        forgetUnusable(in: Set(files.map(\.name)))
        for (name, content) in files where !Task.isCancelled {
            do throws(Malformed) {
                let file = try DocumentAnchorFile(content)
                if file.isList { summary.lists.append(name) }
                if case .collection(let collection) = file, let fault = collection.firstFault {
                    summary.warnings.append("\(name): \(collection.malformed) malformed entries: \(fault)")
                }
                if case .collection(let collection) = file, let fault = collection.listFault {
                    addUnusable(name, fault, countries: nil)
                }
                entries += Entry.all(of: name, file, [])
            } catch {
                summary.warnings.append("\(name): \(error)")
                addUnreadable(name, content, error)
            }
        }
        entries.removeAll { entry in
            guard entry.isChosen, !Task.isCancelled, case .certificate(let certificate) = entry.file,
                certificate.signsCertificates, certificate.isSelfIssued
            else { return false }
            // Otherwise another key of the authority may have signed it.
            return (try? trust(certificate, for: types, isChosen: !entry.place.hasSuffix("." + Self.listedSuffix)))
                != nil
        }
        var taken: [Entry] = []
        take(&entries, for: types, at: time, checksSigners: false) { taken.append($0) }
        var seen: Set<String> = []
        func warn(_ warning: String) { if seen.insert(warning).inserted { summary.warnings.append(warning) } }
        for case (let place, .revocationList(let list)) in taken.map({ ($0.place, $0.file) }) where isUnusable(list) {
            warn("\(place): \(Self.unusable)")
            addUnusable(
                place,
                Self.unusable,
                countries: list.issuer.country.map { [$0] },
                isRevocationList: true
            )
        }
        // A directory may have the authorities of all countries, which count only if somebody has chosen them.
        for entry in entries where entry.isChosen || (entry.step != .link && entry.step != .root) {
            var fault = entry.fault ?? Self.notTrusted
            if case .certificate(let certificate) = entry.file, certificate.signsCertificates, certificate.isSelfIssued,
                !certificate.namesAnotherKey
            {
                fault = Self.wrongSignature
            } else if case .certificate(let certificate) = entry.file {
                // It leads to no anchor, and tells what is wrong with a signer that it has certified.
                try? addLink(certificate)
            }
            warn("\(entry.place): \(fault)")
            noteDenial(entry, fault)
        }
        return summary
    }

    /// Notes a list that an authority may have signed, and that is damaged. One that somebody else has signed denies
    /// nothing, and anybody may have sent what is in the export of a directory.
    private mutating func noteDenial(_ entry: Entry, _ fault: Malformed) {
        guard entry.isChosen, !Task.isCancelled else { return }
        switch entry.file {
        case .revocationList(let list) where fault == Self.wrongSignature:
            addUnusable(
                entry.place,
                fault,
                countries: list.issuer.country.map { [$0] },
                isRevocationList: true
            )
        case .defectList(let list) where [Self.wrongSignature, Self.unreadableDefects].contains(fault):
            let countries = Set(list.certificates.compactMap(\.subject.country))
            addUnusable(entry.place, fault, countries: countries.isEmpty ? nil : countries)
        case .certificate, .revocationList, .masterList, .defectList, .collection: return
        }
    }
}
