// SPDX-License-Identifier: GPL-3.0-or-later
import ChipAccess
package import ISO7816

/// How a document can be opened, as it shows without a password. Nothing in it is about the holder.
package struct DocumentOffer: Sendable, Equatable {
    /// A variant of PACE that is supported.
    package var hasPACE = false
    /// The application can be selected without PACE: BAC.
    package var hasBAC = false

    /// Recognises a document: by EF.CardAccess, and by its application. Returns nil for another card.
    /// - Throws: `CardError` when the card gave no answer.
    package static func recognize(on channel: any CardChannel) async throws(CardError) -> DocumentOffer? {
        let channel = CompletingChannel(channel)
        let file = try await readCardAccess(channel.transmit)
        let infos = file.flatMap { try? SecurityInfos($0.content) }
        let selected = try await channel.transmit(.select(application: DocumentChip.applicationID))
        let offer = DocumentOffer(
            hasPACE: !DocumentChip.variants(of: infos).isEmpty,
            hasBAC: selected.status == .ok
        )
        return offer.hasPACE || offer.hasBAC ? offer : nil
    }

    private static let maximumLength = 4096

    /// Reads EF.CardAccess, which needs no password; nil if there is none. ICAO 9303-11 4.2, 9.2.
    /// - Returns: the file, and whether the chip knows it only by its identifier.
    static func readCardAccess<E: Error>(
        _ transmit: (CommandAPDU) async throws(E) -> ResponseAPDU
    ) async throws(E) -> (content: [UInt8], isSelected: Bool)? {
        // Chips without access to the MF refuse its selection with many status words; the file may be there all the same.
        let selected = try await transmit(.selectMasterFile)
        if selected.status != .ok { _ = try await transmit(CommandAPDU(0x00, 0xA4, 0x00, 0x0C)) }
        var (content, isSelected): ([UInt8], Bool) = ([], false)
        while content.count < maximumLength {
            let isFirst = content.isEmpty && !isSelected
            let answer = try await transmit(
                isFirst
                    ? .readBinary(shortFileID: DocumentFile.cardAccess.shortID) : .readBinary(offset: content.count)
            )
            if isFirst, DocumentChip.deniesShortID(answer.status) {
                guard try await transmit(DocumentChip.selection(of: .cardAccess)).status == .ok else { return nil }
                isSelected = true
                continue
            }
            guard answer.status == .ok || answer.status.value == 0x6282, !answer.data.isEmpty else { break }
            content += answer.data
            if (try? BERTLV(startOf: content)) != nil { break }
        }
        var reader = BERReader(content)
        guard (try? reader.next())?.tag == DocumentFile.cardAccess.tag else { return nil }
        return (Array(content.dropLast(reader.remainder.count)), isSelected)
    }
}
