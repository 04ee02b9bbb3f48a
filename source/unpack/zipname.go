package unpack

import (
	"archive/zip"
	"encoding/binary"
	"hash/crc32"
	"iter"
	"unicode/utf8"
)

// unicodePathExtra is the id of Info-ZIP's extra field for names in UTF-8 (APPNOTE 4.6.9).
const unicodePathExtra = 0x7075

// decodeZipName decodes a name. An extra field with the name in UTF-8 takes precedence, if its
// checksum shows that it belongs to this name. A name in UTF-8 is used as it is, flagged or not.
// Others use the configured encoding: the specification says CP437 (APPNOTE D.1), but programs
// wrote what their system used, so the zip does not tell.
func (w *walker) decodeZipName(f *zip.File) (name, encoding string, err error) {
	if name, ok := unicodePath(f.Extra, f.Name); ok {
		return name, UTF8, nil
	}
	if f.Flags&zipUTF8Flag != 0 && !utf8.ValidString(f.Name) {
		return "", "", &Error{Entry: f.Name, Fault: FaultName, Detail: "the name says that it is UTF-8 and is not; pack it again"}
	}
	return w.decode(f.Name, "cp437", "windows-1252")
}

// fromUnix reports whether a zip's entry was made on Unix or macOS.
func fromUnix(f *zip.File) bool {
	host := f.CreatorVersion >> 8
	return host == hostUnix || host == hostDarwin
}

// unicodePath returns the name in the extra fields of an entry.
func unicodePath(extra []byte, raw string) (string, bool) {
	for id, field := range extraFields(extra) {
		if id != unicodePathExtra || len(field) < 5 || field[0] != 1 {
			continue
		}
		name := string(field[5:])
		if binary.LittleEndian.Uint32(field[1:]) == crc32.ChecksumIEEE([]byte(raw)) && name != "" && utf8.ValidString(name) {
			return name, true
		}
	}
	return "", false
}

// extraFields yields the extra fields of an entry by id, up to a truncated one.
func extraFields(extra []byte) iter.Seq2[uint16, []byte] {
	return func(yield func(uint16, []byte) bool) {
		for len(extra) >= 4 {
			id, size := binary.LittleEndian.Uint16(extra), int(binary.LittleEndian.Uint16(extra[2:]))
			extra = extra[4:]
			if size > len(extra) || !yield(id, extra[:size]) {
				return
			}
			extra = extra[size:]
		}
	}
}
