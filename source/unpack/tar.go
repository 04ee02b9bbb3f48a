package unpack

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	tarBlock      = 512
	checksumStart = 148
	checksumEnd   = 156
)

// isTar reports whether block, the first 512 bytes of a file, is the header of a tar: its checksum
// is right. All kinds of tar have one, even the oldest, which have no magic number.
func isTar(block []byte) bool {
	if len(block) < tarBlock {
		return false
	}
	field := strings.Trim(string(block[checksumStart:checksumEnd]), " \x00")
	want, err := strconv.ParseInt(field, 8, 64)
	if err != nil || want == 0 {
		return false
	}
	var unsigned, signed int64 // some old tars added signed bytes
	for i, b := range block[:tarBlock] {
		if i >= checksumStart && i < checksumEnd {
			b = ' '
		}
		unsigned += int64(b)
		signed += int64(int8(b))
	}
	return want == unsigned || want == signed
}

// walkTar walks an uncompressed tar.
func (w *walker) walkTar(r io.Reader, format string) error {
	raw := &tarStream{walker: w, r: r}
	tr := tar.NewReader(raw)
	last := ""
	for {
		before := raw.n
		header, err := tr.Next()
		if isEnd(err) {
			return w.endTar(raw, before, last, format)
		}
		if err != nil && !errors.Is(err, tar.ErrInsecurePath) { // names are checked below
			return w.readFault(last, err)
		}
		last = header.Name
		if err := w.tarEntry(tr, header); err != nil {
			return err
		}
	}
}

func (w *walker) tarEntry(tr *tar.Reader, header *tar.Header) error {
	if err := w.countEntry(); err != nil {
		return err
	}
	if tarTypeOf(header.Typeflag).ignored {
		return judgeGlobal(header)
	}
	if header.Size > w.ceiling-w.out {
		return w.tooLarge(header.Name)
	}
	entry, folder, err := w.judgeTarEntry(header)
	switch {
	case err != nil:
		if err := w.record(err); err != nil {
			return err
		}
	case folder:
		return nil
	}
	if w.faults.any() {
		return w.skip(header.Name, header.Size)
	}
	return w.deliver(entry, tr)
}

// judgeTarEntry checks the header of a file or folder.
func (w *walker) judgeTarEntry(header *tar.Header) (entry Entry, folder bool, err error) {
	kind := tarTypeOf(header.Typeflag)
	if kind.refused != "" {
		return entry, false, &Error{Entry: header.Name, Fault: FaultType, Detail: "it is " + kind.refused + "; pack regular files only"}
	}
	decoded, encoding, err := w.decode(header.Name, "iso-8859-1", "cp437")
	if err != nil {
		return entry, false, err
	}
	name, err := cleanName(header.Name, decoded, w.limits.NameLength)
	if err != nil {
		return entry, false, err
	}
	if kind.folder {
		return entry, true, w.addFolder(header.Name, name)
	}
	if name == "" {
		return entry, false, &Error{Entry: header.Name, Fault: FaultName, Detail: "a file has the name of the folder itself; rename it"}
	}
	entry = Entry{Name: name, Raw: header.Name, Encoding: encoding, Size: header.Size, Modified: tarTime(header.ModTime)}
	return entry, false, w.addFile(header.Name, name)
}

// judgeGlobal refuses a global extended header (POSIX pax) that sets names or sizes of all
// following files. archive/tar ignores these settings and other programs obey them.
func judgeGlobal(header *tar.Header) error {
	for key := range header.PAXRecords {
		if key == "path" || key == "linkpath" || key == "size" || strings.HasPrefix(key, "GNU.sparse.") {
			return &Error{Fault: FaultUnsupported, Detail: fmt.Sprintf(
				"a global header sets %q of all files at once; pack it again with another tool", key)}
		}
	}
	return nil
}

// tarType says how to handle entries of one type.
type tarType struct {
	folder, ignored bool
	refused         string
}

func tarTypeOf(flag byte) tarType {
	switch flag {
	case tar.TypeReg, '\x00', tar.TypeCont, tar.TypeGNUSparse:
		return tarType{}
	case tar.TypeDir:
		return tarType{folder: true}
	case tar.TypeXGlobalHeader, 'V': // settings for the following files; the label of a volume
		return tarType{ignored: true}
	case tar.TypeLink:
		return tarType{refused: "a hard link"}
	case tar.TypeSymlink:
		return tarType{refused: "a symbolic link"}
	case tar.TypeChar, tar.TypeBlock:
		return tarType{refused: "a device"}
	case tar.TypeFifo:
		return tarType{refused: "a named pipe"}
	default:
		return tarType{refused: fmt.Sprintf("an entry of type %q", flag)}
	}
}

// endTar checks the end of a tar. tar.Reader takes the end of the stream for the end of the tar. So
// a tar that was cut off between two files would pass for a whole one, and of two concatenated tars
// the second would be lost.
func (w *walker) endTar(raw *tarStream, before int64, last, format string) error {
	padding := (tarBlock - before%tarBlock) % tarBlock
	if raw.n-before-padding < tarBlock {
		return w.readFault(last, fmt.Errorf("the %s has no end mark after this entry: %w", format, io.ErrUnexpectedEOF))
	}
	zeros := make([]byte, 32<<10)
	block := make([]byte, len(zeros))
	for {
		n, err := raw.Read(block)
		if !bytes.Equal(block[:n], zeros[:n]) {
			return &Error{
				Fault:  FaultDamaged,
				Detail: "more data follow the end mark of the " + format + "; were two of them joined? Pack everything into one",
			}
		}
		if isEnd(err) {
			return nil
		}
		if err != nil {
			return w.readFault(last, err)
		}
	}
}

// tarStream counts the bytes of a tar, including headers, and stops a stream of only headers or
// padding. It hides that the input can seek, so that every byte passes the decoder's checksum.
type tarStream struct {
	walker *walker
	r      io.Reader
	n      int64
}

// Read implements io.Reader.
func (s *tarStream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	s.n += int64(n)
	if s.n > s.walker.ceiling && s.n > s.walker.cursor.size {
		return 0, s.walker.tooLarge("")
	}
	return n, err
}
