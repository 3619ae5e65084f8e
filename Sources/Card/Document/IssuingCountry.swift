// SPDX-License-Identifier: GPL-3.0-or-later

/// Which country signs the documents of an issuing state. ICAO 9303-3 5, 9303-12 7.1.1: certificates have the two
/// letters of ISO 3166-1, zones the three letters and some codes of their own.
package enum IssuingCountry {
    /// The countries of certificates, upper case, that may sign for the code of a zone; empty for an unknown code.
    package static func certificates(of issuer: String) -> Set<String> {
        if let special = special[issuer] { return special }
        if let country = countries[issuer] { return [country] }
        return []
    }

    /// Codes that only documents have, countries whose documents another one signs, and organizations. An organization
    /// without two letters names itself with its three letters; the codes for persons without a state sign nothing.
    private static let special: [String: Set<String>] = [
        "D": ["DE"], "GBD": ["GB"], "GBN": ["GB"], "GBO": ["GB"], "GBP": ["GB"], "GBS": ["GB"],
        "AIA": ["AI", "GB"], "BMU": ["BM", "GB"], "CYM": ["KY", "GB"], "FLK": ["FK", "GB"], "GIB": ["GI", "GB"],
        "MSR": ["MS", "GB"], "SHN": ["SH", "GB"], "TCA": ["TC", "GB"], "VGB": ["VG", "GB"],
        "HKG": ["CN", "HK"], "MAC": ["CN", "MO"], "RKS": ["KS", "XK"], "XKX": ["KS", "XK"], "EUE": ["EU"],
        "UNO": ["UN"], "UNA": ["UN"], "UNK": ["UN", "KS", "XK"], "ROM": ["RO"], "XOM": ["XO", "IT"],
        "XPO": ["XP", "XPO"], "IAO": ["IAO"], "XBA": ["XBA"], "XCC": ["XCC"], "XCE": ["XCE"], "XCO": ["XCO"],
        "XDC": ["XDC"],
        "XEC": ["XEC"], "XES": ["XES"], "XIM": ["XIM"], "XMP": ["XMP"], "UTO": ["UT"],
    ]

    private static let countries: [String: String] = {
        var countries: [String: String] = [:]
        for entry in table.split(whereSeparator: \.isWhitespace) {
            countries[String(entry.prefix(3))] = String(entry.suffix(2))
        }
        return countries
    }()

    /// Three letters and two letters of ISO 3166-1.
    private static let table = """
        ABWAW AFGAF AGOAO AIAAI ALAAX ALBAL ANDAD AREAE ARGAR ARMAM ASMAS ATAAQ ATFTF ATGAG AUSAU AUTAT AZEAZ BDIBI
        BELBE BENBJ BESBQ BFABF BGDBD BGRBG BHRBH BHSBS BIHBA BLMBL BLRBY BLZBZ BMUBM BOLBO BRABR BRBBB BRNBN BTNBT
        BVTBV BWABW CAFCF CANCA CCKCC CHECH CHLCL CHNCN CIVCI CMRCM CODCD COGCG COKCK COLCO COMKM CPVCV CRICR CUBCU
        CUWCW CXRCX CYMKY CYPCY CZECZ DEUDE DJIDJ DMADM DNKDK DOMDO DZADZ ECUEC EGYEG ERIER ESHEH ESPES ESTEE ETHET
        FINFI FJIFJ FLKFK FRAFR FROFO FSMFM GABGA GBRGB GEOGE GGYGG GHAGH GIBGI GINGN GLPGP GMBGM GNBGW GNQGQ GRCGR
        GRDGD GRLGL GTMGT GUFGF GUMGU GUYGY HKGHK HMDHM HNDHN HRVHR HTIHT HUNHU IDNID IMNIM INDIN IOTIO IRLIE IRNIR
        IRQIQ ISLIS ISRIL ITAIT JAMJM JEYJE JORJO JPNJP KAZKZ KENKE KGZKG KHMKH KIRKI KNAKN KORKR KWTKW LAOLA LBNLB
        LBRLR LBYLY LCALC LIELI LKALK LSOLS LTULT LUXLU LVALV MACMO MAFMF MARMA MCOMC MDAMD MDGMG MDVMV MEXMX MHLMH
        MKDMK MLIML MLTMT MMRMM MNEME MNGMN MNPMP MOZMZ MRTMR MSRMS MTQMQ MUSMU MWIMW MYSMY MYTYT NAMNA NCLNC NERNE
        NFKNF NGANG NICNI NIUNU NLDNL NORNO NPLNP NRUNR NZLNZ OMNOM PAKPK PANPA PCNPN PERPE PHLPH PLWPW PNGPG POLPL
        PRIPR PRKKP PRTPT PRYPY PSEPS PYFPF QATQA REURE ROURO RUSRU RWARW SAUSA SDNSD SENSN SGPSG SGSGS SHNSH SJMSJ
        SLBSB SLESL SLVSV SMRSM SOMSO SPMPM SRBRS SSDSS STPST SURSR SVKSK SVNSI SWESE SWZSZ SXMSX SYCSC SYRSY TCATC
        TCDTD TGOTG THATH TJKTJ TKLTK TKMTM TLSTL TONTO TTOTT TUNTN TURTR TUVTV TWNTW TZATZ UGAUG UKRUA UMIUM URYUY
        USAUS UZBUZ VATVA VCTVC VENVE VGBVG VIRVI VNMVN VUTVU WLFWF WSMWS YEMYE ZAFZA ZMBZM ZWEZW
        """
}
