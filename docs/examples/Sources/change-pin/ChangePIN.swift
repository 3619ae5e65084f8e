// SPDX-License-Identifier: Apache-2.0
// change-pin [SOCKET]: changes the PIN of a new virtual card from 123456 to 654321.
import BadgedClient

@main struct ChangePIN {
    static func main() async throws {
        let path = CommandLine.arguments.dropFirst().first ?? SocketPath.standard
        let badged = try await DaemonConnection.connect(to: path)
        let user = EIDClosures { question in
            print("badged asks for the \(question.kind.rawValue) of the card in \(question.reader.name)")
            let digits = [.pin: "123456", .newPIN: "654321", .can: "500540"][question.kind]
            return digits.map { SecretBox(Secret($0.utf8)) }
        } insertCard: { error, _ in
            print(error ?? "a card is needed")
            // With a description of the card, each run gets a new one.
            _ = try? await badged.setCard(in: "Simulator", card: .object([.init("kind", .string("eid"))]))
        }
        let result = try await badged.changePIN(user: user)
        print(result.success ? "The PIN is changed." : "Not changed: \(result.reason ?? "")")
    }
}
