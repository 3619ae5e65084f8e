// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Server
import Store
import Text

/// Reports in GET_HEALTH which records of the store cannot be read, and how a person deletes them.
@Loop final class StoreHealth: Feature {
    let commands: [CommandSpec] = []
    private let store: StateStore
    private let kinds: [RecordKind]
    /// Why the store could not be read the last time; nil if it could.
    private var fault: Failure?
    /// A pass reads the records of all users, and any number of clients can ask.
    private let passes = SharedRun<[HealthCheck]>()
    /// The maximum number of names in a report.
    private static let shown = 5

    init(_ store: StateStore, _ kinds: [RecordKind]) { (self.store, self.kinds) = (store, kinds) }

    func health() async -> [HealthCheck] { await passes.value { await self.pass() } }

    private func pass() async -> [HealthCheck] {
        do throws(Failure) {
            // A store that cannot be opened is a fault of the check `store`.
            guard let store = try? await store.existing() else { return [] }
            var (causes, remedies): ([Phrase], [Phrase]) = ([], [])
            for kind in kinds {
                let names = try await store.unreadable(kind)
                guard !names.isEmpty else { continue }
                let shown = names.prefix(Self.shown).joined(separator: ", ")
                causes.append(
                    names.count > Self.shown
                        ? "\(kind.name) that cannot be read: \(shown) and \(names.count - Self.shown) more"
                        : "\(kind.name) that cannot be read: \(shown)"
                )
                remedies.append("\(kind.name): \(kind.remedy)")
            }
            if let fault = await store.wipeFault {
                causes.append("copies of deleted values may still be in the store: \(fault.message)")
                remedies.append("make room on the disk")
            }
            fault = nil
            guard !causes.isEmpty else { return [HealthCheck("records", ok: true)] }
            let remedy = Phrase.joined(remedies, by: "; ")
            let advice: Phrase = """
                They are damaged, or a later version of badged wrote them: install that version, restore the store, or \
                delete them; \(remedy)
                """
            return [HealthCheck("records", ok: false, cause: .joined(causes, by: "; "), advice: advice)]
        } catch {
            // Clients can ask any number of times.
            if fault != error { Log.error("cannot read the store: \(error.logText)") }
            fault = error
            return [HealthCheck("records", ok: false, advice: "The store cannot be used: \(error.message)")]
        }
    }
}

/// Reports in GET_HEALTH whether browsers are served, if the configuration wants that.
@Loop final class BrowserPortHealth: Feature {
    let commands: [CommandSpec] = []
    var port: BrowserPort?
    /// Why there is no port; nil where the configuration wants none.
    var fault: (cause: Phrase, advice: Phrase, missingPackage: String?)?

    private static let name = "browserPort"

    func health() async -> [HealthCheck] {
        if let fault {
            let facts = fault.missingPackage.map { [HealthCheck.Fact("missingPackage", $0)] } ?? []
            return [HealthCheck(Self.name, ok: false, cause: fault.cause, advice: fault.advice, facts: facts)]
        }
        guard let port else { return [] }
        guard let fault = await port.currentFault() else { return [HealthCheck(Self.name, ok: true)] }
        return [
            HealthCheck(
                Self.name,
                ok: false,
                cause: fault,
                advice: "load the page again in some seconds: the next connection starts badged-activation"
            )
        ]
    }

    func sessionEnded(_ session: Session) { port?.ended(session) }
}

/// Reports in GET_HEALTH whether the programs of badged that read untrusted bytes can drop their rights.
@Loop final class ConfinementFeature: Feature {
    let commands: [CommandSpec] = []

    /// Without seccomp the programs do not start, and report that. Without Landlock some of them keep rights.
    /// badged-network is needed with each configuration.
    func health() async -> [HealthCheck] {
        guard !Landlock.isSupported else { return [HealthCheck("confinement", ok: true)] }
        let advice: Phrase =
            "badged-nfc, badged-network and badged-remote may open every file that their user may open, because "
            + "Landlock is missing: boot Linux 5.13 or later; lsm= must list landlock, and the units must allow its "
            + "system calls"
        return [HealthCheck("confinement", ok: false, advice: advice)]
    }
}
