// SPDX-License-Identifier: GPL-3.0-or-later
package import Text

/// The machine readable zone of a document, with its fields. ICAO 9303-3 4; 9303-4, 9303-5 and 9303-6 4.2.
package struct MachineReadableZone: Sendable, Equatable {
    /// The three sizes of documents.
    package enum Kind: String, Sendable, CaseIterable {
        /// A card: three lines of 30 characters.
        case td1 = "TD1"
        /// Two lines of 36 characters.
        case td2 = "TD2"
        /// A passport: two lines of 44 characters.
        case td3 = "TD3"

        var lineLength: Int {
            switch self {
            case .td1: 30
            case .td2: 36
            case .td3: 44
            }
        }

        var lineCount: Int { self == .td1 ? 3 : 2 }
    }

    /// A field with a check digit.
    package enum Field: String, Sendable, CaseIterable {
        case number
        case birth
        case expiry
        case optional
        case composite
    }

    package let kind: Kind
    /// The lines, ASCII.
    package let lines: [String]
    package let code: String
    package let issuer: String
    /// The whole document number for people, also of one with more than nine characters: without fillers at its end, and
    /// with spaces for those inside.
    package let number: String
    /// The characters of the number as they are printed.
    private let numberCharacters: [UInt8]
    package let nationality: String
    /// YYMMDD; `<` stands for unknown digits.
    package let birth: String
    /// M, F, X or `<`.
    package let sex: String
    package let expiry: String
    package let surname: String
    package let given: String
    /// Optional data without fillers at their end; both fields of a card, with a space between them.
    package let optional: String
    /// The fields whose check digit is wrong.
    package let wrongCheckDigits: [Field]

    /// Reads a zone with or without line ends. Wrong check digits are not an error.
    package init(_ text: some Sequence<UInt8>) throws(Malformed) {
        let characters = Self.withoutSpaces(text)
        guard let kind = Kind.allCases.first(where: { $0.lineLength * $0.lineCount == characters.count }) else {
            throw Malformed(
                Phrase(
                    """
                    The machine readable zone has \(characters.count) characters instead of 2 lines of 44 or 36, or 3 of 30
                    """
                )
            )
        }
        if let wrong = characters.firstIndex(where: { Self.value($0) == nil }) {
            throw Malformed(Phrase("Character \(wrong + 1) of the machine readable zone is not A to Z, 0 to 9 or <"))
        }
        self.init(kind, characters)
    }

    private init(_ kind: Kind, _ characters: [UInt8]) {
        let rows = stride(from: 0, to: characters.count, by: kind.lineLength).map {
            Array(characters[$0..<$0 + kind.lineLength])
        }
        let layout = ZoneLayout(kind)
        func at(_ place: Place) -> [UInt8] { Array(rows[place.line][place.columns]) }
        let trimmed = { (bytes: [UInt8]) in Self.text(bytes) }

        self.kind = kind
        lines = rows.map { String(decoding: $0, as: UTF8.self) }
        code = trimmed(at(layout.code))
        issuer = trimmed(at(layout.issuer))
        nationality = trimmed(at(layout.nationality))
        birth = String(decoding: at(layout.birth), as: UTF8.self)
        sex = String(decoding: at(layout.sex), as: UTF8.self)
        expiry = String(decoding: at(layout.expiry), as: UTF8.self)
        (surname, given) = Self.names(at(layout.names))

        let long = Self.longNumber(at(layout.number), at(layout.numberDigit), at(layout.optional), kind)
        number = Self.text(long.number)
        numberCharacters = long.number
        let second = layout.secondOptional.map(at) ?? []
        optional = [long.optional, second].map(Self.text).filter { !$0.isEmpty }.joined(separator: " ")

        var wrong: [Field] = []
        if !Self.fits(long.number, long.digit) { wrong.append(.number) }
        if !Self.fits(at(layout.birth), at(layout.birth.digit)) { wrong.append(.birth) }
        if !Self.fits(at(layout.expiry), at(layout.expiry.digit)) { wrong.append(.expiry) }
        if kind == .td3 {
            let (optional, digit) = (at(layout.optional), at(layout.optional.digit))
            // The digit of empty optional data may be a filler. ICAO 9303-4 4.2.2.
            let isEmpty = optional.allSatisfy { $0 == Self.filler } && digit == [Self.filler]
            if !isEmpty, !Self.fits(optional, digit) { wrong.append(.optional) }
        }
        let covered = layout.composite.flatMap(at)
        if !Self.fits(covered, at(layout.compositeDigit)) { wrong.append(.composite) }
        wrongCheckDigits = wrong
    }

    /// The characters of the whole zone, as DG1 has them.
    package var text: String { lines.joined() }

    /// The number, dates and their check digits: the password of the document. ICAO 9303-11 4.3.2, 4.4.4.1.
    package var information: [UInt8] {
        Self.information(number: numberCharacters, birth: Array(birth.utf8), expiry: Array(expiry.utf8))
    }

    /// Makes the password from three fields with the characters of a zone. A number shorter than nine characters is filled.
    package static func information(number: [UInt8], birth: [UInt8], expiry: [UInt8]) -> [UInt8] {
        let filled = number + [UInt8](repeating: filler, count: max(0, 9 - number.count))
        return [filled, birth, expiry].flatMap { $0 + [checkDigit($0)] }
    }

    // MARK: Dates

    /// The day of birth as YYYY-MM-DD: the latest such day that is not after `time`, in seconds since 1970. Unknown digits
    /// are X.
    package func birthDate(at time: Int) -> String {
        let text = Self.day(birth, century: 20)
        guard text > DocumentTime.text(time) else { return text }
        return Self.day(birth, century: 19)
    }

    /// The day of expiry as YYYY-MM-DD, in the 21st century.
    package var expiryDate: String { Self.day(expiry, century: 20) }

    private static func day(_ digits: String, century: Int) -> String {
        let known = digits.map { $0 == "<" ? "X" : $0 }
        return "\(century)\(String(known.prefix(2)))-\(String(known.dropFirst(2).prefix(2)))-\(String(known.suffix(2)))"
    }

    /// The fields of dates that no calendar has.
    package var impossibleDates: [Field] {
        [(Field.birth, birth), (.expiry, expiry)].filter { !Self.isDay(Array($0.1.utf8)[...], century: nil) }.map(\.0)
    }

    // MARK: Characters

    static let filler = UInt8(ascii: "<")

    /// The value of a character for check digits; nil for one that a zone does not have. ICAO 9303-3 4.9.
    static func value(_ character: UInt8) -> Int? {
        switch character {
        case filler: 0
        case UInt8(ascii: "0")...UInt8(ascii: "9"): Int(character - UInt8(ascii: "0"))
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): Int(character - UInt8(ascii: "A")) + 10
        default: nil
        }
    }

    /// The check digit: weights 7, 3, 1, modulo 10. ICAO 9303-3 4.9.
    package static func checkDigit(_ characters: [UInt8]) -> UInt8 {
        let sum = characters.enumerated().reduce(0) { $0 + (value($1.element) ?? 0) * [7, 3, 1][$1.offset % 3] }
        return UInt8(ascii: "0") + UInt8(truncatingIfNeeded: sum % 10)
    }

    private static func fits(_ characters: [UInt8], _ digit: [UInt8]) -> Bool { digit == [checkDigit(characters)] }

    /// The text without fillers at its end; fillers inside are spaces. It is for people alone: a key needs the fillers.
    private static func text(_ bytes: [UInt8]) -> String {
        let end = bytes.lastIndex { $0 != filler }.map { $0 + 1 } ?? 0
        return String(decoding: bytes[..<end].map { $0 == filler ? 0x20 : $0 }, as: UTF8.self)
    }

    private static func names(_ field: [UInt8]) -> (String, String) {
        for index in field.indices.dropLast() where field[index] == filler && field[index + 1] == filler {
            return (words(field[..<index]), words(field[(index + 2)...]))
        }
        return (words(field[...]), "")
    }

    /// A name: its words, without the fillers around them.
    private static func words(_ bytes: ArraySlice<UInt8>) -> String {
        bytes.split(separator: filler).map { String(decoding: $0, as: UTF8.self) }.joined(separator: " ")
    }

    /// Finds the rest of a long number, which begins the optional data: the rest, its check digit, a filler. The number
    /// may have fillers inside, so its end is the first filler whose check digit fits. ICAO 9303-5 4.2.2.1, 9303-6 4.2.2.1.
    private static func longNumber(
        _ number: [UInt8],
        _ digit: [UInt8],
        _ optional: [UInt8],
        _ kind: Kind
    ) -> (number: [UInt8], digit: [UInt8], optional: [UInt8]) {
        guard kind != .td3, digit == [filler], number.contains(where: { $0 != filler }) else {
            return (number, digit, optional)
        }
        let ends = optional.indices.filter { $0 >= 2 && optional[$0] == filler } + [optional.count]
        func rest(_ end: Int) -> (number: [UInt8], digit: [UInt8], optional: [UInt8]) {
            let whole = number + optional[..<(end - 1)]
            return (whole, [optional[end - 1]], Array(optional[min(end + 1, optional.count)...]))
        }
        if let fitting = ends.map(rest).first(where: { fits($0.number, $0.digit) }) { return fitting }
        let first = optional.firstIndex(of: filler) ?? optional.count
        guard number.last != filler, first >= 2 else { return (number, digit, optional) }
        return rest(first)
    }
}

/// Zones that a person has typed or a program has scanned.
extension MachineReadableZone {
    /// Reads a zone with small letters, and with the guillemets that text recognition makes of fillers: a double one
    /// stands for two fillers, or for one if the zone has its length only then.
    package init(scanned text: some Sequence<UInt8>) throws(Malformed) {
        let bytes = Array(text)
        let characters = Self.characters(bytes, fillers: 2)
        let isZone = Kind.allCases.contains { $0.lineLength * $0.lineCount == Self.withoutSpaces(characters).count }
        try self.init(isZone ? characters : Self.characters(bytes, fillers: 1))
    }

    /// Makes characters of a zone; `fillers` is the number for each double guillemet.
    private static func characters(_ bytes: [UInt8], fillers: Int) -> [UInt8] {
        var characters: [UInt8] = []
        var rest = bytes[...]
        while let byte = rest.first {
            // « and », ‹ and › in UTF-8.
            if rest.starts(with: [0xC2, 0xAB]) || rest.starts(with: [0xC2, 0xBB]) {
                characters += [UInt8](repeating: filler, count: fillers)
                rest = rest.dropFirst(2)
            } else if rest.starts(with: [0xE2, 0x80, 0xB9]) || rest.starts(with: [0xE2, 0x80, 0xBA]) {
                characters.append(filler)
                rest = rest.dropFirst(3)
            } else {
                characters.append(upper(byte))
                rest = rest.dropFirst()
            }
        }
        return characters
    }

    private static func upper(_ byte: UInt8) -> UInt8 { (0x61...0x7A).contains(byte) ? byte - 0x20 : byte }

    private static func withoutSpaces(_ text: some Sequence<UInt8>) -> [UInt8] {
        text.filter { $0 != 0x0A && $0 != 0x0D && $0 != 0x20 }
    }

    /// Reads a number as people write it: spaces and hyphens inside are fillers. nil for other characters, for none, and
    /// for more than 22.
    package static func number(typed text: some Sequence<UInt8>) -> [UInt8]? {
        var characters = text.map { [0x20, UInt8(ascii: "-")].contains($0) ? filler : upper($0) }
        while characters.last == filler { characters.removeLast() }
        characters = Array(characters.drop { $0 == filler })
        let isNumber = (1...22).contains(characters.count) && characters.allSatisfy { value($0) != nil }
        return isNumber ? characters : nil
    }

    /// Whether a number of ten characters ends with the check digit of the nine before it: it was typed along.
    package static func endsWithCheckDigit(_ number: [UInt8]) -> Bool {
        number.count == 10 && number.last == checkDigit(Array(number.prefix(9)))
    }

    /// Reads a date as YYMMDD or YYYY-MM-DD, with `<` or X for unknown digits; nil for a day that no calendar has. Some
    /// documents have 00 for an unknown month or day.
    package static func date(typed text: some Sequence<UInt8>) -> [UInt8]? {
        var characters = text.map { upper($0) == UInt8(ascii: "X") ? filler : $0 }
        if characters.count == 10 {
            guard characters[4] == UInt8(ascii: "-"), characters[7] == UInt8(ascii: "-") else { return nil }
            characters.remove(at: 7)
            characters.remove(at: 4)
        }
        if characters.count == 8 {
            guard [Array("19".utf8), Array("20".utf8)].contains(Array(characters.prefix(2))) else { return nil }
            guard isDay(characters.dropFirst(2), century: characters.first == UInt8(ascii: "1") ? 1900 : 2000) else {
                return nil
            }
            characters.removeFirst(2)
        }
        return characters.count == 6 && isDay(characters[...], century: nil) ? characters : nil
    }

    /// Whether six characters of a date may be a day, as far as they are known.
    static func isDay(_ characters: ArraySlice<UInt8>, century: Int?) -> Bool {
        let pairs = stride(from: characters.startIndex, to: characters.endIndex, by: 2).map { characters[$0..<$0 + 2] }
        let isDigits = characters.allSatisfy { $0 == filler || (0x30...0x39).contains($0) }
        guard isDigits, pairs.count == 3 else { return false }
        let numbers = pairs.map { pair in
            pair.contains(filler) ? nil : pair.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
        }
        // An unknown part is one that every other part allows; 00 counts as unknown.
        let month = numbers[1].flatMap { $0 == 0 ? nil : $0 } ?? 1
        let day = numbers[2].flatMap { $0 == 0 ? nil : $0 } ?? 1
        let centuries = century.map { [$0] } ?? [1900, 2000]
        let years = numbers[0].map { year in centuries.map { $0 + year } } ?? [2000]
        return years.contains { CalendarDay(year: $0, month: month, day: day) != nil }
    }
}

/// Columns of one line.
private struct Place {
    let line: Int
    let columns: Range<Int>

    /// `first` and `last` count from 1, as the tables of the standard do.
    init(_ line: Int, _ first: Int, _ last: Int) { (self.line, columns) = (line - 1, first - 1..<last) }

    /// The column behind the field.
    var digit: Place { Place(line + 1, columns.upperBound + 1, columns.upperBound + 1) }
}

/// Where the fields are. ICAO 9303-4, 9303-5 and 9303-6 4.2.2.
private struct ZoneLayout {
    let code: Place
    let issuer: Place
    let names: Place
    let number: Place
    let numberDigit: Place
    let nationality: Place
    let birth: Place
    let sex: Place
    let expiry: Place
    let optional: Place
    let secondOptional: Place?
    let composite: [Place]
    let compositeDigit: Place

    init(_ kind: MachineReadableZone.Kind) {
        code = Place(1, 1, 2)
        issuer = Place(1, 3, 5)
        switch kind {
        case .td1:
            number = Place(1, 6, 14)
            numberDigit = Place(1, 15, 15)
            optional = Place(1, 16, 30)
            birth = Place(2, 1, 6)
            sex = Place(2, 8, 8)
            expiry = Place(2, 9, 14)
            nationality = Place(2, 16, 18)
            secondOptional = Place(2, 19, 29)
            names = Place(3, 1, 30)
            composite = [Place(1, 6, 30), Place(2, 1, 7), Place(2, 9, 15), Place(2, 19, 29)]
            compositeDigit = Place(2, 30, 30)
        case .td2, .td3:
            let isPassport = kind == .td3
            names = Place(1, 6, isPassport ? 44 : 36)
            number = Place(2, 1, 9)
            numberDigit = Place(2, 10, 10)
            nationality = Place(2, 11, 13)
            birth = Place(2, 14, 19)
            sex = Place(2, 21, 21)
            expiry = Place(2, 22, 27)
            optional = Place(2, 29, isPassport ? 42 : 35)
            secondOptional = nil
            composite = [Place(2, 1, 10), Place(2, 14, 20), Place(2, 22, isPassport ? 43 : 35)]
            compositeDigit = isPassport ? Place(2, 44, 44) : Place(2, 36, 36)
        }
    }
}
