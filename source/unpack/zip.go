package unpack

import (
	"archive/zip"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"math"
	"strings"
)

const (
	zipEncrypted   = 0x1 // flag: encrypted
	zipMethodBzip2 = 12  // APPNOTE 4.4.5
	hostUnix       = 3   // APPNOTE 4.4.2: the upper byte of "version made by"
	hostDarwin     = 19
	zipUTF8Flag    = 1 << 11
)

// zipFile is an accepted entry of a zip: a file or a folder.
type zipFile struct {
	file   *zip.File
	entry  Entry
	folder bool
}

// walkZip checks the whole directory first, then delivers the files.
func (w *walker) walkZip() error {
	local := &localTap{r: w.cursor}
	dir, err := w.openZip(local)
	if err != nil {
		return err
	}
	if err := w.judgeZip(dir); err != nil || w.faults.any() {
		return err
	}
	w.decoded = 0 // the names are decoded again
	var where spans
	err = dir.portions(func(files []*zip.File) error {
		for _, f := range files {
			entry, folder, err := w.zipEntry(f)
			if err != nil {
				return err
			}
			if err := w.deliverZipped(zipFile{file: f, entry: entry, folder: folder}, local); err != nil {
				return deliveryError{err}
			}
			where.add(local, f.CompressedSize64)
		}
		return nil
	})
	if err != nil {
		return w.directoryFault(err)
	}
	return where.judge()
}

// deliveryError marks an error of delivering a file, which is not a fault of the directory.
type deliveryError struct{ error }

// Unwrap returns the error itself.
func (e deliveryError) Unwrap() error { return e.error }

// directoryFault classifies an error of reading the directory.
func (w *walker) directoryFault(err error) error {
	var own deliveryError
	var fault *Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own.error
	case errors.As(err, &fault), errors.Is(err, errSearchedEnough):
		return err
	}
	return w.readFault("", err)
}

// deliverZipped delivers one file of a zip. Of a folder it checks only the header.
func (w *walker) deliverZipped(f zipFile, local *localTap) error {
	content, err := f.file.Open()
	if err != nil {
		return w.readFault(f.file.Name, err)
	}
	defer content.Close()
	if local.name != f.file.Name {
		err := &Error{Entry: f.file.Name, Fault: FaultDamaged, Detail: fmt.Sprintf(
			"its own header names it %q, so other programs would unpack other files; pack it again", local.name)}
		return w.readFault(f.file.Name, err)
	}
	if f.folder {
		return nil
	}
	var r io.Reader = content
	if f.file.CRC32 == 0 {
		r = &zeroSum{r: content}
	}
	return w.deliver(f.entry, r)
}

// zeroSum checks content whose stated checksum is 0. archive/zip takes 0 for a missing checksum.
type zeroSum struct {
	r   io.Reader
	sum uint32
}

// Read implements io.Reader.
func (z *zeroSum) Read(p []byte) (int, error) {
	n, err := z.r.Read(p)
	z.sum = crc32.Update(z.sum, crc32.IEEETable, p[:n])
	if isEnd(err) && z.sum != 0 {
		err = zip.ErrChecksum
	}
	return n, err
}

// openZip locates the directory, and reads it if it is small.
func (w *walker) openZip(local *localTap) (*directory, error) {
	end, err := readZipEnd(w.cursor, w.cursor.size)
	if err != nil {
		return nil, w.readFault("", err)
	}
	if end.entries > uint64(w.limits.Entries) {
		w.entries = w.limits.Entries
		return nil, w.countEntry()
	}
	dir := &directory{local: local, end: end}
	if end.size > portionSize && end.judge() == nil {
		return dir, nil
	}
	tap := &directoryTap{r: local, left: min(w.limits.Entries, portionSize/directoryLine) + tapSlack}
	zr, err := zip.NewReader(tap, w.cursor.size)
	if tap.left < 0 {
		w.entries = w.limits.Entries
		return nil, w.countEntry()
	}
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are checked by judgeZip
		return nil, w.readFault("", err)
	}
	if err := end.judge(); err != nil {
		return nil, err
	}
	tap.done = true
	registerBzip2(zr)
	dir.whole = zr
	return dir, nil
}

// judgeZip checks the whole directory. It records faults of single entries and returns errors that
// end the walk.
func (w *walker) judgeZip(dir *directory) error {
	var packed, unpacked uint64
	err := dir.portions(func(files []*zip.File) error {
		for _, f := range files {
			if err := w.countEntry(); err != nil {
				return err
			}
			entry, folder, err := w.zipEntry(f)
			switch {
			case err != nil:
			case folder:
				err = w.addFolder(f.Name, entry.Name)
			default:
				err = w.addFile(f.Name, entry.Name)
			}
			if err = w.record(err); err != nil {
				return err
			}
			packed = addSaturating(packed, f.CompressedSize64)
			unpacked = addSaturating(unpacked, f.UncompressedSize64)
			if unpacked > uint64(w.ceiling) {
				return w.tooLarge(f.Name)
			}
		}
		return nil
	})
	if err == nil && packed > uint64(w.cursor.size) {
		err = errOverlap
	}
	return w.directoryFault(err)
}

// zipEntry checks one line of the directory. For a folder it sets only the Entry's name.
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
	case !mode.IsDir() && f.Method != zip.Store && f.Method != zip.Deflate && f.Method != zipMethodBzip2:
		return refuse(FaultUnsupported, fmt.Sprintf("it is compressed by %s, which is not supported; pack with deflate", methodName(f.Method)))
	}
	decoded, encoding, err := w.decodeZipName(f)
	if err != nil {
		return Entry{}, false, err
	}
	if strings.Contains(decoded, `\`) && !fromUnix(f) {
		return refuse(FaultName, `the name has \ between folders instead of /; pack it again with another tool`)
	}
	name, err := cleanName(f.Name, decoded, w.limits.NameLength)
	if err != nil {
		return Entry{}, false, err
	}
	if mode.IsDir() {
		if f.UncompressedSize64 != 0 {
			return refuse(FaultDamaged, "it is a folder that has content of its own; pack it again")
		}
		return Entry{Name: name}, true, nil
	}
	if name == "" {
		return refuse(FaultName, "a file has the name of the folder itself; rename it")
	}
	if f.UncompressedSize64 > math.MaxInt64 {
		return Entry{}, false, w.tooLarge(f.Name)
	}
	entry := Entry{Name: name, Raw: f.Name, Encoding: encoding, Size: int64(f.UncompressedSize64)}
	entry.Modified, entry.NoZone = zipTime(f)
	return entry, false, nil
}

// methodName returns the name of a compression method (APPNOTE 4.4.5).
func methodName(method uint16) string {
	known := map[uint16]string{
		1: "Shrink", 6: "Implode", 9: "Deflate64", 14: "LZMA", 93: "Zstandard", 94: "MP3", 95: "xz", 96: "JPEG", 97: "WavPack", 98: "PPMd", 99: "AES",
	}
	if name, ok := known[method]; ok {
		return fmt.Sprintf("method %d (%s)", method, name)
	}
	return fmt.Sprintf("method %d", method)
}

func addSaturating(a, b uint64) uint64 {
	if b > math.MaxUint64-a {
		return math.MaxUint64
	}
	return a + b
}
