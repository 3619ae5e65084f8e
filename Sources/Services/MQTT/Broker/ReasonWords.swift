// SPDX-License-Identifier: GPL-3.0-or-later
import Host
import Text

extension BrokerPacket.Reason {
    /// What the code means, and what to do, in words for the log. MQTT 5.0, 2.4.
    package func text(for configuration: MQTTConfiguration) -> String {
        let meaning = configuration.version == .five ? words5(configuration) : words3(configuration)
        let text = meaning ?? "reason \(code)"
        guard let words else { return text }
        return "\(text) (the broker says: \(words.quoted()))"
    }

    private func words5(_ configuration: MQTTConfiguration) -> String? {
        switch code {
        case 0x00: "no reason is given"
        case 0x80: "the broker does not say why"
        case 0x81: "the broker could not read a packet"
        case 0x82: "the broker did not expect a packet"
        case 0x83: "a rule of this broker forbids it"
        case 0x84: "the broker does not speak MQTT 5: write version = 3.1.1 below [broker]"
        case 0x85: "the broker does not allow the name \(configuration.clientID)"
        case 0x86: "user or password are wrong: check [broker] user and password_file"
        case 0x87: "not authorised: check the access list (ACL) of the broker, and the user or certificate of this host"
        case 0x88: "the broker is not available"
        case 0x89: "the broker is busy"
        case 0x8A: "the broker has banned this host"
        case 0x8B: "the broker shuts down"
        case 0x8C: "the broker wants another way to log in"
        case 0x8D: "the broker has heard nothing for longer than the keep-alive"
        case 0x8E:
            "another client has connected as \(configuration.clientID): two hosts have one name ([publish] host)"
        case 0x90: "the broker does not allow the topic: check [publish] prefix and host"
        case 0x91: "the broker says that a packet number is in use"
        case 0x93: "the broker received more messages at once than it allows"
        case 0x94: "the broker refuses a topic alias"
        case 0x95: "the message is larger than the broker allows"
        case 0x96: "too many messages for the broker"
        case 0x97: "a quota of the broker is used up"
        case 0x98: "the administrator of the broker has ended the connection"
        case 0x99: "the broker does not accept the form of the message"
        case 0x9A: "the broker retains no messages"
        case 0x9B: "the broker does not support this QoS"
        case 0x9C: "the broker wants another server to be used for now"
        case 0x9D: "the broker has moved: correct [broker] url"
        case 0x9F: "too many connections for the broker"
        case 0xA0: "the broker ends connections after some time"
        default: nil
        }
    }

    /// The return codes of CONNACK. MQTT 3.1.1, 3.2.2.3.
    private func words3(_ configuration: MQTTConfiguration) -> String? {
        switch code {
        case 1: "the broker does not speak MQTT 3.1.1"
        case 2:
            "the broker does not allow the name \(configuration.clientID), or a keep-alive of "
                + "\(configuration.keepAlive) s: try a shorter keepalive below [broker]"
        case 3: "the broker is not available"
        case 4: "user or password are wrong: check [broker] user and password_file"
        case 5: "not authorised: check the user or certificate of this host at the broker"
        default: nil
        }
    }
}
