// SPDX-License-Identifier: GPL-3.0-or-later
import CLinux
import Glibc
import Host
import ISO7816
import Readers
import ReadersVirtual
import Text
import VirtualDocument
import VirtualEID
import VirtualKeycard
import VirtualTaps

/// Connects a virtual card to vpcd of vsmartcard, for other software.
@main struct Program {
    static func main() {
        signal(SIGPIPE, SIG_IGN)
        let watched = [SIGTERM, SIGINT, SIGUSR1, SIGUSR2]
        // Block signals before the first other thread, because threads inherit the signal mask.
        let signals = clinux_signalfd(watched, Int32(watched.count))
        ProcessHardening.apply()
        do throws(StartError) {
            switch try ProgramOptions(try ProgramArguments.read()) {
            case .help: Output.line(ProgramOptions.usage)
            case .version: Output.line("badged-virtual-card \(Version.current)")
            case .run(let host, let port, let source, let trustPoint, let authorityFile):
                let phones = VirtualMdocKind()
                // A new kind of virtual card is one entry here and one target.
                let kinds = VirtualCardKinds([
                    try eidCards(trustPoint), VirtualKeycardKind(), VirtualPKOCKind(), VirtualAliroKind(),
                    VirtualDocumentKind(), phones,
                    VirtualTagKind(), RecordedCardKind(),
                ])
                if let authorityFile { try write(phones, to: authorityFile) }
                let card = try card(from: source, kinds)
                try VPCDSlot(card: card, host: host, port: port, signals: signals).serve()
            }
        } catch {
            Output.warn("error: \(error.message)\nhint: \(error.hint)")
            exit(error.exitCode)
        }
    }

    /// The virtual eID card, with the trust point in a file.
    private static func eidCards(_ trustPoint: String?) throws(StartError) -> VirtualEIDKind {
        guard let trustPoint else { return VirtualEIDKind() }
        let content: [UInt8]
        do throws(Malformed) {
            content = try Self.content(of: trustPoint)
        } catch {
            throw StartError(error.text, hint: "--cvca takes a file with a CV certificate, DER")
        }
        guard let kind = try? VirtualEIDKind(trustPoint: content) else {
            throw StartError("\(trustPoint) is not a trust point", hint: "--cvca takes a self-signed CVCA certificate")
        }
        return kind
    }

    /// Writes the authority of the virtual phones, which others must trust.
    private static func write(_ phones: VirtualMdocKind, to path: String) throws(StartError) {
        guard let certificate = try? phones.issuer().certificate, let file = fopen(path, "wb") else {
            throw StartError("cannot write \(path)", hint: "--iaca takes a file that can be written")
        }
        defer { fclose(file) }
        guard fwrite(certificate, 1, certificate.count, file) == certificate.count else {
            throw StartError("cannot write \(path)", hint: "see whether the disk is full")
        }
    }

    /// The card of a file; without a file the default card.
    private static func card(
        from source: ProgramOptions.Card,
        _ kinds: VirtualCardKinds
    ) throws(StartError) -> VirtualCard {
        do throws(Malformed) {
            switch source {
            case .usual: return try kinds.describe(.object([])).makeCard()
            case .described(let path): return try kinds.describe(document(in: path)).makeCard()
            case .recorded(let path):
                return try RecordedCardDescription(CardRecording(content(of: path))).makeCard()
            }
        } catch {
            throw source.wrong(error.text)
        }
    }

    private static func document(in path: String) throws(Malformed) -> JSON {
        let content = try content(of: path)
        return try Malformed.at("\(path) is not JSON", JSON(content))
    }

    /// Reads a plain file of at most 16 MiB.
    private static func content(of path: String) throws(Malformed) -> [UInt8] {
        switch PlainFile.read(path, limit: 1 << 24) {
        case .bytes(let content): return content
        case .missing: throw Malformed("there is no file \(path)")
        case .tooLong: throw Malformed("\(path) is longer than 16 MiB")
        case .failed(let reason): throw Malformed("\(path) cannot be read: \(reason)")
        }
    }
}

/// Writes lines to stdout and stderr.
enum Output {
    /// Writes a line to stdout without buffering, because other programs wait for the line.
    static func line(_ text: String) { write(text + "\n", to: 1) }

    /// Writes a line to stderr.
    static func warn(_ text: String) { write("badged-virtual-card: \(text)\n", to: 2) }

    private static func write(_ text: String, to descriptor: Int32) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }
}
