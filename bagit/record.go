package bagit

import "encoding/binary"

// recordWeight is an estimate of the memory that the judgement needs for a record beside its
// octets.
const recordWeight = 200

// fileRecord is the stored record of a file.
type fileRecord struct {
	size    int64
	name    string
	algs    algSet // the digests that were taken
	digests []byte // concatenated in the order of algs
}

func (f fileRecord) append(b []byte) []byte {
	b = binary.AppendVarint(b, f.size)
	b = binary.AppendUvarint(b, uint64(f.algs))
	b = appendText(b, f.name)
	return append(b, f.digests...)
}

// readFile decodes a record. digests is valid as long as b is.
func readFile(b []byte) (f fileRecord) {
	f.size, b = takeVarint(b)
	algs, b := takeUvarint(b)
	f.algs = algSet(algs)
	f.name, f.digests = takeText(b)
	return f
}

// entryRecord is the stored record of a manifest line.
type entryRecord struct {
	line   int
	digest []byte // empty if it cannot be compared
	name   string // as in the manifest
}

func (e entryRecord) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(e.line))
	b = append(b, byte(len(e.digest)))
	b = append(b, e.digest...)
	return append(b, e.name...)
}

// readEntry decodes a record. digest is valid as long as b is.
func readEntry(b []byte) (e entryRecord) {
	line, b := takeUvarint(b)
	n := int(b[0])
	return entryRecord{line: int(line), digest: b[1 : 1+n], name: string(b[1+n:])}
}

func (e FetchEntry) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(e.line))
	b = binary.AppendVarint(b, e.Length)
	b = appendText(b, e.URL)
	return append(b, e.File...)
}

func readFetchEntry(b []byte) (e FetchEntry) {
	line, b := takeUvarint(b)
	e.line = int(line)
	e.Length, b = takeVarint(b)
	e.URL, b = takeText(b)
	e.File = string(b)
	return e
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func takeText(b []byte) (string, []byte) {
	n, b := takeUvarint(b)
	return string(b[:n]), b[n:]
}

func takeUvarint(b []byte) (uint64, []byte) {
	v, n := binary.Uvarint(b)
	return v, b[n:]
}

func takeVarint(b []byte) (int64, []byte) {
	v, n := binary.Varint(b)
	return v, b[n:]
}
