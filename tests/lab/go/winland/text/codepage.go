package text

import (
	"strings"
	"unicode/utf8"
)

// The upper halves of the OEM code pages (unicode.org MAPPINGS/VENDORS/MICSFT/PC).
var pages = map[int][]rune{
	437: []rune("ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜ¢£¥₧ƒáíóúñÑªº¿⌐¬½¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\u00a0"),
	850: []rune("ÇüéâäàåçêëèïîìÄÅÉæÆôöòûùÿÖÜø£Ø×ƒáíóúñÑªº¿®¬½¼¡«»░▒▓│┤ÁÂÀ©╣║╗╝¢¥┐└┴┬├─┼ãÃ╚╔╩╦╠═╬¤ðÐÊËÈıÍÎÏ┘┌█▄¦Ì▀ÓßÔÒõÕµþÞÚÛÙýÝ¯´\u00ad±‗¾¶§÷¸°¨·¹³²■\u00a0"),
}

// KnownPage tells whether a console may use the code page.
func KnownPage(page int) bool { return page == 65001 || pages[page] != nil }

// Encode writes text in a code page; what it does not hold becomes a question mark.
func Encode(page int, s string) []byte {
	high := pages[page]
	if high == nil {
		return []byte(s)
	}
	out := make([]byte, 0, len(s))
next:
	for _, r := range s {
		if r < 0x80 {
			out = append(out, byte(r))
			continue
		}
		for i, h := range high {
			if h == r {
				out = append(out, byte(0x80+i))
				continue next
			}
		}
		out = append(out, '?')
	}
	return out
}

// Decode reads bytes of a code page; bytes that are no UTF-8 under 65001 become U+FFFD.
func Decode(page int, b []byte) string {
	high := pages[page]
	if high == nil {
		if utf8.Valid(b) {
			return string(b)
		}
		return strings.ToValidUTF8(string(b), "\uFFFD")
	}
	var out strings.Builder
	for _, c := range b {
		if c < 0x80 {
			out.WriteByte(c)
		} else {
			out.WriteRune(high[c-0x80])
		}
	}
	return out.String()
}
