package unpack

import (
	"archive/zip"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"strings"
)

const (
	zipEncrypted   = 0x1 // flag: encrypted
	zipMethodBzip2 = 12  // APPNOTE 4.4.5
	hostUnix       = 3   // APPNOTE 4.4.2: what "version made by" has in its upper byte
	hostDarwin     = 19
	zipUTF8Flag    = 1 << 11
)

// zipFile is a file in a zip that was found to be fit to be handed out.
type zipFile struct {
	file  *zip.File
	entry Entry
}

// walkZip judges the whole directory first, then hands out the files.
func (w *walker) walkZip() error {
	zr, err := w.openZip()
	if err != nil {
		return err
	}
	files, err := w.judgeZip(zr)
	if err != nil {
		return err
	}
	for _, f := range files {
		content, err := f.file.Open()
		if errors.Is(err, zip.ErrAlgorithm) {
			return &Error{Entry: f.entry.Raw, Fault: FaultUnsupported, Detail: fmt.Sprintf(
				"it is compressed by method %d, which is not undone here; pack with deflate", f.file.Method)}
		}
		if err != nil {
			return w.readFault(f.entry.Raw, err)
		}
		err = w.hand(f.entry, content)
		if closeErr := content.Close(); err == nil && closeErr != nil {
			err = w.readFault(f.entry.Raw, closeErr)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// openZip reads the directory, without letting it take more memory than the limit on entries allows.
func (w *walker) openZip() (*zip.Reader, error) {
	declared, err := declaredEntries(w.cursor, w.cursor.size)
	if err != nil {
		return nil, w.readFault("", err)
	}
	if declared > uint64(w.limits.Entries) {
		w.entries = w.limits.Entries
		return nil, w.meet()
	}
	tap := &directoryTap{r: w.cursor, left: w.limits.Entries + tapSlack}
	zr, err := zip.NewReader(tap, w.cursor.size)
	if tap.left < 0 {
		w.entries = w.limits.Entries
		return nil, w.meet()
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are judged by judgeZip
		return nil, w.readFault("", err)
	}
	tap.done = true
	zr.RegisterDecompressor(zipMethodBzip2, func(r io.Reader) io.ReadCloser { return io.NopCloser(bzip2.NewReader(r)) })
	return zr, nil
}

// judgeZip returns the files of a zip in the order of its directory, or what is wrong with it.
func (w *walker) judgeZip(zr *zip.Reader) ([]zipFile, error) {
	files := make([]zipFile, 0, len(zr.File))
	var packed, unpacked uint64
	for _, f := range zr.File {
		if err := w.meet(); err != nil {
			return nil, err
		}
		entry, folder, err := w.zipEntry(f)
		if err != nil {
			return nil, err
		}
		if folder {
			continue
		}
		packed = addSaturating(packed, f.CompressedSize64)
		unpacked = addSaturating(unpacked, f.UncompressedSize64)
		if unpacked > uint64(w.ceiling) {
			return nil, w.tooLarge(f.Name)
		}
		files = append(files, zipFile{file: f, entry: entry})
	}
	if packed > uint64(w.cursor.size) {
		return nil, &Error{Fault: FaultDamaged, Detail: "its entries overlap, as in a decompression bomb; pack it again"}
	}
	return files, nil
}

// zipEntry judges one line of the directory.
func (w *walker) zipEntry(f *zip.File) (Entry, bool, error) {
	refuse := func(fault Fault, detail string) (Entry, bool, error) {
		return Entry{}, false, &Error{Entry: f.Name, Fault: fault, Detail: detail}
	}
	mode := f.Mode()
	switch {
	case mode&fs.ModeSymlink != 0:
		return refuse(FaultType, "it is a symbolic link; pack regular files only")
	case mode&(fs.ModeDevice|fs.ModeCharDevice|fs.ModeNamedPipe|fs.ModeSocket|fs.ModeIrregular) != 0:
		return refuse(FaultType, "it is a device, a pipe or a socket; pack regular files only")
	case f.Flags&zipEncrypted != 0:
		return refuse(FaultUnsupported, "it is encrypted; pack it without a password")
	}
	decoded, encoding, err := decodeZipName(f)
	if err != nil {
		return Entry{}, false, err
	}
	if host := f.CreatorVersion >> 8; strings.Contains(decoded, `\`) && host != hostUnix && host != hostDarwin {
		return refuse(FaultName, `the name has \ between folders, which a zip must write as /; pack it again with another tool`)
	}
	name, err := cleanName(f.Name, decoded, w.limits.NameLength)
	if err != nil {
		return Entry{}, false, err
	}
	if mode.IsDir() {
		if f.UncompressedSize64 != 0 {
			return refuse(FaultDamaged, "it is a folder that has content of its own")
		}
		return Entry{}, true, w.names.addFolder(f.Name, name)
	}
	if name == "" {
		return refuse(FaultName, "a file has the name of the folder itself")
	}
	if f.UncompressedSize64 > math.MaxInt64 {
		return Entry{}, false, w.tooLarge(f.Name)
	}
	entry := Entry{Name: name, Raw: f.Name, Encoding: encoding, Size: int64(f.UncompressedSize64), Modified: f.Modified}
	return entry, false, w.names.addFile(f.Name, name)
}

func addSaturating(a, b uint64) uint64 {
	if b > math.MaxUint64-a {
		return math.MaxUint64
	}
	return a + b
}
