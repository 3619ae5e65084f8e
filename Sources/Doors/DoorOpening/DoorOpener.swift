// SPDX-License-Identifier: GPL-3.0-or-later
package import Concurrency
import Credentials
import Crypto
package import DoorReaders
import Glibc
import Text
import Threads

/// Opens PKOC readers: connects, runs the dialogue and disconnects. Each adapter opens one reader at a time.
@Loop package final class DoorOpener {
    /// A reader as one adapter sees it.
    private struct Place: Hashable {
        let adapter: Int
        let address: DeviceAddress
    }

    private let connector: any DoorConnector
    private var busyAdapters: Set<Int> = [] { didSet { waiters.check() } }
    /// The readers whose dialogue is over and whose connection is being closed. bluetoothd takes two seconds for this.
    /// Neither the result nor other readers wait for it.
    private var leaving: Set<Place> = [] { didSet { waiters.check() } }
    private let waiters = Waiters()

    package init(_ connector: any DoorConnector) { self.connector = connector }

    /// Returns when no opening runs any more, so that no reader stays connected at the end of the process.
    package func waitUntilIdle() async { await waiters.wait { self.busyAdapters.isEmpty && self.leaving.isEmpty } }

    /// Opens one reader. A cancelled task ends the opening. The reader is disconnected on every path; the connection
    /// may end after the result, and a new opening of this reader waits for its end.
    /// - Parameters:
    ///   - address: the current address of the reader.
    ///   - adapter: the number of the adapter.
    ///   - credentials: the credentials that may be used; not empty.
    ///   - timeouts: how long each step waits.
    ///   - changed: called with each new state.
    /// - Returns: how the opening has ended.
    package func open(
        _ address: DeviceAddress,
        adapter: Int,
        _ credentials: [DoorCredential],
        _ timeouts: OpeningTimeouts = OpeningTimeouts(),
        changed: @escaping @Loop (OpeningState) -> Void = { _ in }
    ) async -> OpeningResult {
        guard busyAdapters.insert(adapter).inserted else {
            return OpeningResult(.busy, reason: "hci\(adapter) opens another reader")
        }
        defer { busyAdapters.remove(adapter) }
        changed(.connecting)
        let place = Place(adapter: adapter, address: address)
        await waiters.wait { !self.leaving.contains(place) }
        let link: any DoorLink
        do throws(DoorLinkFailure) {
            link = try await connector.connect(address, adapter: adapter, within: timeouts.connect)
        } catch {
            switch error {
            case .timedOut: return OpeningResult(.timedOut, reason: "the reader was not connected in time")
            case .inUse(let reason): return OpeningResult(.busy, reason: reason)
            case .failed(let reason): return OpeningResult(.bluetoothCommunicationFailed, reason: reason)
            }
        }
        changed(.connected)
        let result = await Self.converse(link, credentials, timeouts, changed)
        leaving.insert(place)
        Task { @Loop in
            await link.disconnect()
            leaving.remove(place)
        }
        return result
    }

    /// Why a dialogue has ended early.
    private struct Ending: Error { let result: OpeningResult }

    private static func converse(
        _ link: any DoorLink,
        _ credentials: [DoorCredential],
        _ timeouts: OpeningTimeouts,
        _ changed: @Loop (OpeningState) -> Void
    ) async -> OpeningResult {
        guard let group = try? Curve.secp256r1.group, let ephemeral = try? ECPrivateKey(on: group) else {
            return OpeningResult(PKOCFailure.cryptography)
        }
        var framing = PKOCFraming()
        var handshake = PKOCHandshake(credentials, ephemeral: ephemeral, now: UInt32(clamping: time(nil)))
        do throws(Ending) {
            while true {
                let (message, dialect) = try await receive(link, &framing, timeouts)
                let step: PKOCHandshake.Step
                do throws(PKOCFailure) {
                    step = try handshake.receive(message, dialect)
                } catch {
                    throw Ending(result: OpeningResult(error))
                }
                switch step {
                case .send(let message): try await send(message, link, framing, timeouts)
                case .sign(let digest):
                    guard let chosen = handshake.chosen else {
                        throw Ending(result: OpeningResult(PKOCFailure.unknownSite))
                    }
                    changed(.authenticating)
                    let signature = try await sign(digest, chosen, within: timeouts.apdu)
                    let message: [UInt8]
                    do throws(PKOCFailure) {
                        message = try handshake.signed(signature)
                    } catch {
                        throw Ending(result: OpeningResult(error))
                    }
                    try await send(message, link, framing, timeouts)
                case .finished(let answer):
                    var result = OpeningResult(answer)
                    result.key = handshake.chosen?.id
                    return result
                }
            }
        } catch {
            var result = error.result
            result.key = handshake.chosen?.id
            return result
        }
    }

    private static func receive(
        _ link: any DoorLink,
        _ framing: inout PKOCFraming,
        _ timeouts: OpeningTimeouts
    ) async throws(Ending) -> ([UInt8], PKOCFraming.Dialect) {
        while true {
            let bytes: [UInt8]
            do throws(DoorLinkFailure) {
                bytes = try await link.notification(within: framing.isInside ? timeouts.fragment : timeouts.apdu)
            } catch {
                throw ending(error, framing.isInside ? .readerTimedOutFragment : .readerTimedOutAPDU)
            }
            do throws(PKOCFailure) {
                if let message = try framing.receive(bytes), let dialect = framing.dialect { return (message, dialect) }
            } catch {
                throw Ending(result: OpeningResult(error))
            }
        }
    }

    private static func send(
        _ message: [UInt8],
        _ link: any DoorLink,
        _ framing: PKOCFraming,
        _ timeouts: OpeningTimeouts
    ) async throws(Ending) {
        guard let writes = framing.divide(message, capacity: link.capacity) else {
            let reason = "the reader takes whole messages only, and its MTU of \(link.capacity + 3) is too small"
            throw Ending(result: OpeningResult(.bluetoothCommunicationFailed, reason: reason))
        }
        for bytes in writes {
            do throws(DoorLinkFailure) {
                try await link.write(bytes, within: timeouts.apdu)
            } catch {
                throw ending(error, .readerTimedOutBLE)
            }
        }
    }

    private static func ending(_ failure: DoorLinkFailure, _ timeout: OpeningStatus) -> Ending {
        switch failure {
        case .timedOut: Ending(result: OpeningResult(timeout, reason: "the reader does not answer"))
        case .inUse(let reason): Ending(result: OpeningResult(.busy, reason: reason))
        case .failed(let reason): Ending(result: OpeningResult(.bluetoothCommunicationFailed, reason: reason))
        }
    }

    /// Signs a digest with the key. A key that takes longer than `limit` has failed, because the reader stops waiting.
    private static func sign(
        _ digest: [UInt8],
        _ credential: DoorCredential,
        within limit: Milliseconds
    ) async throws(Ending) -> [UInt8] {
        let key = credential.key
        let result = OneShot<Result<[UInt8], Ending>>()
        let failed = Ending(result: OpeningResult(PKOCFailure.keyFailed))
        let alarm = Loop.Alarm {
            let late = OpeningResult(.deviceTimedOutAPDU, reason: "the key has not signed in time")
            result.fill(.failure(Ending(result: late)))
        }
        alarm.set(after: limit)
        defer { alarm.cancel() }
        let signing = Task { @Loop in
            do {
                result.fill(.success(try await key.sign(digest: digest)))
            } catch let error as Failure {
                result.fill(.failure(Ending(result: OpeningResult(failed.result.status, reason: error.message))))
            } catch {
                result.fill(.failure(failed))
            }
        }
        let signature = await result.value(whenCancelled: .failure(failed))
        signing.cancel()
        return try signature.get()
    }
}
