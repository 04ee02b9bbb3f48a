package unpack

import (
	"archive/zip"
	"encoding/binary"
	"hash/crc32"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"
)

// unicodePathExtra is the id of Info-ZIP's extra field with the name in UTF-8 (APPNOTE 4.6.9).
const unicodePathExtra = 0x7075

// decodeZipName reads a name as UTF-8 where it is, flagged or not. Otherwise its encoding is guessed: zips have CP437 (APPNOTE
// D.1), but programs on Unix and macOS wrote what their system had, which was ISO 8859-1 where it was not UTF-8; a name that
// would have control characters in that encoding is CP437 all the same. An extra field with the name in UTF-8 wins
// where the checksum in it shows that it belongs to this very name.
func decodeZipName(f *zip.File) (name, encoding string, err error) {
	if name, ok := unicodePath(f.Extra, f.Name); ok {
		return name, UTF8, nil
	}
	if utf8.ValidString(f.Name) {
		return f.Name, UTF8, nil
	}
	if f.Flags&zipUTF8Flag != 0 {
		return "", "", &Error{Entry: f.Name, Fault: FaultName, Detail: "the name says that it is UTF-8 and is not; pack it again"}
	}
	if fromUnix(f) && !hasC1(f.Name) {
		return decodeLatin1(f.Name), Latin1, nil
	}
	name, err = charmap.CodePage437.NewDecoder().String(f.Name)
	if err != nil {
		return "", "", &Error{Entry: f.Name, Fault: FaultName, Detail: "the name is neither UTF-8 nor CP437", Err: err}
	}
	return name, CP437, nil
}

// fromUnix reports whether a zip's entry was made on Unix or macOS.
func fromUnix(f *zip.File) bool {
	host := f.CreatorVersion >> 8
	return host == hostUnix || host == hostDarwin
}

// hasC1 reports whether bytes stand for control characters in ISO 8859-1 (0x80 to 0x9f), which no name has.
func hasC1(name string) bool {
	for i := range len(name) {
		if name[i] >= 0x80 && name[i] <= 0x9f {
			return true
		}
	}
	return false
}

// unicodePath finds the name in the extra fields of an entry.
func unicodePath(extra []byte, raw string) (string, bool) {
	for len(extra) >= 4 {
		id := binary.LittleEndian.Uint16(extra)
		size := int(binary.LittleEndian.Uint16(extra[2:]))
		extra = extra[4:]
		if size > len(extra) {
			return "", false
		}
		field := extra[:size]
		extra = extra[size:]
		if id != unicodePathExtra || size < 5 || field[0] != 1 {
			continue
		}
		name := string(field[5:])
		if binary.LittleEndian.Uint32(field[1:]) == crc32.ChecksumIEEE([]byte(raw)) && name != "" && utf8.ValidString(name) {
			return name, true
		}
	}
	return "", false
}
