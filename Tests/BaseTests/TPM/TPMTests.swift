// SPDX-License-Identifier: GPL-3.0-or-later
import Concurrency
import Crypto
import Dispatch
import Foundation
import Store
import Synchronization
import TestSupport
import Testing
import Text

private let digest = [UInt8](repeating: 0xA5, count: 32)

/// A limit that a busy machine does not reach.
private let longTimeLimit = Duration.seconds(240)

private func secret() -> Secret { Secret(UInt8(0)..<32) }

private func isSecret(_ other: borrowing Secret) -> Bool { other.withBytes { Array($0) == Array(0..<32) } }

/// Returns the error of a call, and nil after success.
private func fault(_ body: () async throws(Failure) -> Void) async -> String? {
    do throws(Failure) {
        try await body()
        return nil
    } catch {
        return error.message.description
    }
}

extension TPMFault {
    /// What a client is told of it.
    fileprivate var text: String { Failure.tpm(self).message.description }
}

@Suite("TPM", .timeLimit(.minutes(5)))
struct TPMTests {
    private let device: SoftwareTPM
    private let tpm: TPM

    init() async throws {
        device = try await SoftwareTPM()
        tpm = TPM(device.path, timeLimit: longTimeLimit)
    }

    private func isValid(_ signature: [UInt8], of message: [UInt8], _ key: TPM.Key) throws -> Bool {
        let publicKey = try ECPublicKey(key.publicKey, on: .secp256r1)
        return try ECDSA.verify(signature, of: message, with: publicKey, digest: .sha256)
    }

    @Test("a key signs, also after a restart of the TPM, and the TPM keeps nothing")
    func keys() async throws {
        let message = Array("a message".utf8)
        var keys: [TPM.Key] = []
        // A TPM has room for three objects.
        for _ in 0..<5 { keys.append(try await tpm.makeKey()) }
        #expect(Set(keys.map(\.publicKey)).count == 5)
        #expect(try device.handles().isEmpty)
        device.stop()
        try await device.start()
        for key in keys {
            let signature = try await tpm.sign(digest: try DigestAlgorithm.sha256.hash(message), with: key)
            #expect(try isValid(signature, of: message, key))
            #expect(try !isValid(signature, of: message, keys[0]) || key == keys[0])
        }
        #expect(try device.handles().isEmpty)
    }

    @Test("sealed bytes come back, also after a restart of the TPM, and the TPM keeps nothing")
    func sealed() async throws {
        let sealed = try tpm.seal(secret())
        #expect(Data(sealed).range(of: Data(0..<16)) == nil)
        device.stop()
        try await device.start()
        #expect(isSecret(try tpm.unseal(sealed)))
        #expect(try device.handles().isEmpty)
        #expect(await fault { () throws(Failure) in _ = try tpm.seal(Secret([1])) } == TPMFault.malformed.text)
    }

    @Test("a TPM refuses keys and bytes of another TPM, and those that were changed")
    func foreign() async throws {
        let other = try await SoftwareTPM()
        let (key, sealed) = (try await tpm.makeKey(), try tpm.seal(secret()))
        var changed = sealed
        changed[40] ^= 1
        var renamed = sealed
        renamed[0] ^= 1
        #expect(
            await fault { () throws(Failure) in _ = try TPM(other.path, timeLimit: longTimeLimit).unseal(sealed) }
                == TPMFault.foreign.text
        )
        #expect(await fault { () throws(Failure) in _ = try tpm.unseal(changed) } == TPMFault.foreign.text)
        #expect(await fault { () throws(Failure) in _ = try tpm.unseal(renamed) } == TPMFault.foreign.text)
        #expect(await fault { () throws(Failure) in _ = try tpm.unseal([]) } == TPMFault.foreign.text)
        #expect(
            await fault { () throws(Failure) in
                _ = try await TPM(other.path, timeLimit: longTimeLimit).sign(digest: digest, with: key)
            }
                == TPMFault.foreign.text
        )
        let second = try await tpm.makeKey()
        let mixed = TPM.Key(publicKey: key.publicKey, blob: second.blob)
        #expect(
            await fault { () throws(Failure) in _ = try await tpm.sign(digest: digest, with: mixed) }
                == TPMFault.foreign.text
        )
        // A failed command leaves nothing in the TPM.
        #expect(try device.handles().isEmpty)
        #expect(try other.handles().isEmpty)
        #expect(isSecret(try tpm.unseal(sealed)))
    }

    @Test("a TPM that was cleared refuses its old keys, and makes new ones")
    func cleared() async throws {
        let (key, sealed) = (try await tpm.makeKey(), try tpm.seal(secret()))
        try device.clear()
        #expect(
            await fault { () throws(Failure) in _ = try await tpm.sign(digest: digest, with: key) }
                == TPMFault.foreign.text
        )
        #expect(await fault { () throws(Failure) in _ = try tpm.unseal(sealed) } == TPMFault.foreign.text)
        let new = try await tpm.makeKey()
        #expect(try await tpm.sign(digest: digest, with: new).count == 64)
    }

    @Test("a TPM that other programs have locked still works for keys without a password")
    func locked() async throws {
        let (key, sealed) = (try await tpm.makeKey(), try tpm.seal(secret()))
        try device.lock()
        #expect(try await tpm.sign(digest: digest, with: key).count == 64)
        #expect(isSecret(try tpm.unseal(sealed)))
    }

    @Test("a TPM that is killed during a signature ends it at once, and the key works later")
    func killed() async throws {
        let key = try await TPM(device.path, timeLimit: longTimeLimit).makeKey()
        let between = try ScriptedTPM(before: device.path) { [device] code in
            guard code == ScriptedTPM.sign else { return .pass() }
            // A TPM that runs may have answered before it is killed.
            device.signal(SIGSTOP)
            return .pass { device.stop() }
        }
        let tpm = TPM(between.path, timeLimit: longTimeLimit)
        #expect(
            await fault { () throws(Failure) in _ = try await tpm.sign(digest: digest, with: key) }
                == TPMFault.gone.text
        )
        try await device.start()
        #expect(try await TPM(device.path, timeLimit: longTimeLimit).sign(digest: digest, with: key).count == 64)
    }

    @Test("a TPM that has stopped does not hold its callers longer than the limit, and works later")
    func stopped() async throws {
        let key = try await TPM(device.path, timeLimit: longTimeLimit).makeKey()
        let tpm = TPM(device.path, timeLimit: .milliseconds(200))
        device.signal(SIGSTOP)
        let faults = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<5 {
                group.addTask {
                    await fault { () throws(Failure) in _ = try await tpm.sign(digest: digest, with: key) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(faults == [String?](repeating: TPMFault.timedOut.text, count: 5))
        device.signal(SIGCONT)
        // Each call that has sent a command leaves a key in the TPM, which has room for three.
        try device.flush()
        // A call whose time is over before its turn is not begun.
        let late = TPM(device.path, timeLimit: .zero)
        #expect(
            await fault { () throws(Failure) in _ = try await late.sign(digest: digest, with: key) }
                == TPMFault.timedOut.text
        )
        #expect(try await TPM(device.path, timeLimit: longTimeLimit).sign(digest: digest, with: key).count == 64)
    }

    @Test(
        "answers of a wrong form are refused with a name",
        arguments: [
            (ScriptedTPM.code(0x921), TPMFault.lockedOut), (ScriptedTPM.code(0x9A2), .refused(0x9A2)),
            (ScriptedTPM.code(0x1DF), .foreign), (.close, .gone), (.silence, .timedOut),
            // Bytes that are missing, a size below that of the header, one above all answers, and one byte too many.
            (.bytes([0x80, 0x01, 0, 0, 0, 10]), .timedOut), (.bytes([0x80, 0x01, 0, 0, 0, 9, 0, 0, 0, 0]), .malformed),
            (.bytes([0x80, 0x01, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0]), .malformed),
            (.bytes([0x80, 0x01, 0, 0, 0, 10, 0, 0, 0, 0, 1]), .malformed),
        ]
    )
    func wrongAnswers(_ answer: ScriptedTPM.Answer, _ error: TPMFault) async throws {
        let fake = try ScriptedTPM { _ in answer }
        let tpm = TPM(fake.path, timeLimit: error == .timedOut ? .milliseconds(200) : longTimeLimit)
        #expect(await fault { () throws(Failure) in _ = try await tpm.makeKey() } == error.text)
    }

    @Test("random answers never trap and never make a key")
    func randomAnswers() async throws {
        let fake = try ScriptedTPM(before: device.path) { code in
            // The storage key is real in some rounds, so that the answers to later commands are reached. It is removed.
            if code == 0x131, Bool.random() { return .pass() }
            if code == 0x165 { return .pass() }
            let body = (0..<Int.random(in: 0...300)).map { _ in UInt8.random(in: 0...255) }
            let tag: [UInt8] = Bool.random() ? [0x80, 0x01] : [0x80, 0x02]
            return .bytes(
                tag + [0, 0, UInt8((10 + body.count) >> 8), UInt8((10 + body.count) & 0xFF), 0, 0, 0, 0] + body
            )
        }
        let tpm = TPM(fake.path, timeLimit: .seconds(60))
        for _ in 0..<200 {
            #expect(await fault { () throws(Failure) in _ = try await tpm.makeKey() } != nil)
        }
    }

    @Test("many programs at once wait for a TPM that serves one after the other")
    func queue() async throws {
        let faults = await withTaskGroup(of: String?.self) { group in
            for _ in 0..<8 {
                group.addTask {
                    let tpm = TPM(device.path, isRequired: true, timeLimit: longTimeLimit)
                    return await fault { () throws(Failure) in
                        _ = try tpm.takesNewKeys()
                        _ = try await tpm.makeKey()
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(faults == [String?](repeating: nil, count: 8))
    }

    @Test("without a TPM new keys are made elsewhere, unless a TPM is required")
    func missing() async throws {
        let nowhere = "/nowhere/tpm"
        let error = TPMFault.unavailable("/nowhere/tpm: No such file or directory")
        #expect(try !TPM(nowhere).takesNewKeys())
        #expect(
            await fault { () throws(Failure) in _ = try TPM(nowhere, isRequired: true).takesNewKeys() } == error.text
        )
        #expect(await fault { () throws(Failure) in _ = try await TPM(nowhere).makeKey() } == error.text)
        #expect(try TPM(device.path, timeLimit: longTimeLimit).takesNewKeys())
        device.stop()
        #expect(
            await fault { () throws(Failure) in _ = try await TPM(device.path, timeLimit: longTimeLimit).makeKey() }
                != nil
        )
    }
}

@Suite("Turns of the TPM", .timeLimit(.minutes(5))) @Loop struct TPMTurnTests {
    /// The users in the order of their jobs.
    private final class Order: Sendable {
        private let list = Mutex<[UInt32]>([])
        var users: [UInt32] { list.withLock { $0 } }

        func add(_ user: UInt32) { list.withLock { $0.append(user) } }
    }

    @Test("the jobs of many users are done in turn, so that none waits for all of another user")
    func turns() async throws {
        let (tpm, order) = (TPM("/nowhere/tpm"), Order())
        let (begun, end) = (OneShot<Void>(), DispatchSemaphore(value: 0))
        let first = Task.immediate { @Loop in
            try await tpm.onThread {
                begun.fill(())
                end.wait()
            }
        }
        await begun.value(whenCancelled: ())
        let others = ([1, 1, 1, 2, 3, 2] as [UInt32]).map { user in
            Requester.$uid.withValue(user) {
                Task.immediate { @Loop in try await tpm.onThread { order.add(user) } }
            }
        }
        end.signal()
        try await first.value
        for other in others { try await other.value }
        #expect(order.users == [1, 2, 3, 1, 2, 1])
    }
}
