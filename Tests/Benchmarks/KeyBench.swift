// SPDX-License-Identifier: GPL-3.0-or-later
import Dispatch
import Glibc
import Store
import Text
import Vault

/// The vault: its opening, signatures, and a daemon that has it open.
enum KeyBench {
    /// 1000 keys, a few of each user, as one user has 32 at most.
    private static let (users, keysOfUser) = (UInt32(40), 25)
    private static let digest = [UInt8](repeating: 0xA5, count: 32)

    static func run(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let folder = settings.folder + "/vault"
        let keys = settings.count(Int(users) * keysOfUser)
        let opened = try wait { try await opening(folder, keys, rounds: settings.count(40)) }
        report.add(.vaultOpen, opened.median, "\(opened.span(1)) ms, n=\(opened.count), \(keys) keys")
        let software = try wait { try await signing(folder, nil, rounds: settings.count(400)) }
        report.add(.keySign, software.median, "p99 \(text(software.percentile(99), 2)) ms, n=\(software.count)")
        if let path = settings.tpm {
            let chip = try wait {
                try await signing(
                    settings.folder + "/tpm-vault",
                    TPM(path, isRequired: true),
                    rounds: settings.count(100)
                )
            }
            report.add(.tpmSign, chip.median, "p99 \(text(chip.percentile(99), 1)) ms, n=\(chip.count)")
        }
        try idle(settings, &report)
    }

    private static func vault(_ folder: String, _ tpm: TPM? = nil) -> Vault {
        Vault(
            StateStore { () async throws(Failure) in try await Store.open(folder: folder, credentials: nil, tpm: tpm)
            },
            tpm: tpm
        )
    }

    /// Milliseconds from nothing to all records of all users.
    private static func opening(_ folder: String, _ count: Int, rounds: Int) async throws -> Samples {
        do {
            let vault = vault(folder)
            for uid in 0..<users { _ = try await vault.setUp(uid) }
            for number in 0..<count {
                _ = try await vault.makeKey(of: UInt32(number) % users, origin: .created) { $0.isActive = true }
            }
        }
        var times = Samples()
        for _ in 0..<rounds {
            let start = monotonicNow()
            let vault = vault(folder)
            var found = 0
            for uid in 0..<users { found += try await vault.keys(of: uid).count }
            times.add(microseconds(since: start) / 1000)
            guard found == count else { throw BenchError("the vault has \(found) keys of \(count)") }
        }
        return times
    }

    /// Milliseconds from the id of a key to its signature.
    private static func signing(_ folder: String, _ tpm: TPM?, rounds: Int) async throws -> Samples {
        let vault = vault(folder, tpm)
        _ = try await vault.setUp(0)
        let id = try await vault.makeKey(of: 0, origin: .created) { $0.isActive = true }.id
        var times = Samples()
        for _ in 0..<rounds {
            let start = monotonicNow()
            _ = try await vault.signingKey(id, of: 0).sign(digest: digest)
            times.add(microseconds(since: start) / 1000)
        }
        return times
    }

    /// A daemon that has opened the vault, with a TPM if there is one, and has nothing to do.
    private static func idle(_ settings: Settings, _ report: inout Report) throws(BenchError) {
        let folder = settings.folder + "/key-state"
        mkdir(folder, 0o700)
        setenv("STATE_DIRECTORY", folder, 1)
        defer { unsetenv("STATE_DIRECTORY") }
        let use = settings.tpm.map { "tpm = yes\ntpm_device = \($0)" } ?? "tpm = no"
        let configuration = try settings.write("keys.conf", "[keys]\n\(use)\n")
        let daemon = try Daemon(settings, ["--config", configuration])
        let client = try daemon.client()
        try client.send(#"{"cmd":"SETUP_ENDPOINT"}"#)
        try client.wait(for: "ENDPOINT_SETUP")
        try client.send(#"{"cmd":"NEW_KEY"}"#)
        let key = try client.wait(for: "KEY")
        guard key.contains("\"active\":true") else { throw BenchError("no key: \(key.text)") }
        pause(milliseconds: IdleBench.settling)
        let idle = try daemon.figures.watch(seconds: settings.count(20))
        report.add(.vaultWakeUps, idle.wakeUps, idle.note + (settings.tpm == nil ? "" : ", key in the TPM"))
        try daemon.child.terminate()
    }

    /// Runs asynchronous work and waits for its end.
    private static func wait(_ body: @escaping @Sendable () async throws -> Samples) throws(BenchError) -> Samples {
        final class Box: @unchecked Sendable { var result: Result<Samples, any Error>? }
        let box = Box()
        let end = DispatchSemaphore(value: 0)
        Task {
            do { box.result = .success(try await body()) } catch { box.result = .failure(error) }
            end.signal()
        }
        end.wait()
        switch box.result {
        case .success(let samples)?: return samples
        case .failure(let error)?: throw BenchError("\(error)")
        case nil: throw BenchError("no result")
        }
    }
}
