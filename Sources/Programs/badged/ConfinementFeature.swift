// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Host
import Server

/// Reports in GET_HEALTH whether the programs of badged that read untrusted bytes can give up their rights.
@Loop final class ConfinementFeature: Feature {
    let commands: [CommandSpec] = []
    private let hasPrograms: Bool

    init(_ settings: Settings, _ configuration: Configuration) {
        hasPrograms = settings.isNFCEnabled || configuration.isActivationEnabled
    }

    /// Without seccomp the programs do not start, and report that. Without Landlock one of them keeps rights.
    func health() async -> [HealthCheck] {
        guard hasPrograms else { return [] }
        guard !Landlock.isSupported else { return [HealthCheck("confinement", ok: true)] }
        let advice =
            "badged-nfc may open every file that badged may open, because Landlock is missing: boot Linux 5.13 or "
            + "later; lsm= must list landlock, and the unit must allow its system calls"
        return [HealthCheck("confinement", ok: false, advice: advice)]
    }
}
