// SPDX-License-Identifier: GPL-3.0-or-later
import CWebSockets

extension ActivationRequest {
    /// The largest size of a request in bytes; a TcToken URL is long.
    static let maximumHead: UInt32 = 16_384
    private static let maximumArguments: Int32 = 64

    /// Reads the request that libwebsockets has parsed on this connection.
    init(_ socket: OpaquePointer, isWebSocket: Bool) {
        let methods: [(lws_token_indexes, Method)] = [
            (WSI_TOKEN_GET_URI, .get), (WSI_TOKEN_HEAD_URI, .head), (WSI_TOKEN_OPTIONS_URI, .options),
            (WSI_TOKEN_POST_URI, .other), (WSI_TOKEN_PUT_URI, .other), (WSI_TOKEN_PATCH_URI, .other),
            (WSI_TOKEN_DELETE_URI, .other),
        ]
        let found = methods.first { lws_hdr_total_length(socket, $0.0) > 0 }
        var arguments: [String] = []
        for index in 0..<Self.maximumArguments {
            let length = lws_hdr_fragment_length(socket, WSI_TOKEN_HTTP_URI_ARGS, index)
            let text = Self.text(length) { lws_hdr_copy_fragment(socket, $0, $1, WSI_TOKEN_HTTP_URI_ARGS, index) }
            guard let text else { break }
            arguments.append(text)
        }
        self.init(
            found?.1 ?? .other,
            found.flatMap { Self.header(socket, $0.0) } ?? "",
            arguments: arguments,
            host: Self.header(socket, WSI_TOKEN_HOST),
            origin: Self.header(socket, WSI_TOKEN_ORIGIN) ?? Self.header(socket, WSI_TOKEN_SWORIGIN),
            isOfBrowser: Self.header(socket, WSI_TOKEN_HTTP_USER_AGENT)?.hasPrefix("Mozilla/") == true
                || lws_hdr_total_length(socket, WSI_TOKEN_HTTP_ACCEPT_LANGUAGE) > 0
                || lws_hdr_custom_length(socket, "sec-fetch-site:", 15) >= 0,
            webSocketVersion: isWebSocket ? Self.header(socket, WSI_TOKEN_VERSION) ?? "" : nil
        )
    }

    /// Returns the value of a header; nil if the request does not have the header.
    private static func header(_ socket: OpaquePointer, _ token: lws_token_indexes) -> String? {
        text(lws_hdr_total_length(socket, token)) { lws_hdr_copy(socket, $0, $1, token) }
    }

    private static func text(_ length: Int32, _ copy: (UnsafeMutablePointer<CChar>?, Int32) -> Int32) -> String? {
        guard length > 0, length <= Int32(maximumHead) else { return nil }
        return withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(length) + 1) { buffer in
            let count = copy(buffer.baseAddress, length + 1)
            guard count >= 0, count <= length else { return nil }
            return String(decoding: buffer[..<Int(count)].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }
}
