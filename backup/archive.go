// Package backup makes, verifies and restores backups of the Registry: its SQLite database, the keys
// and the settings in one file, in a folder or in a bucket.
//
// A backup is a tar compressed by Zstandard, which any tar reads (tar --zstd). Its first member,
// manifest.json, names the others in their order with their sizes and digests. A skippable frame of
// Zstandard ends the file, with the SHA-256 of everything before it, so that no bit of the file can
// change unseen. Reading and writing take bounded memory.
//
// A backup has keys: whoever reads it can read stored credentials and sign receipts.
package backup

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/holdfast/holdfast/registry/sqldb"
)

// ErrDamaged says that a file is not a whole backup as it was written.
var ErrDamaged = errors.New("the backup is damaged")

// Format is the number of the format that Make writes and the newest that Verify reads.
const Format = 1

// Manifest is the first member of a backup.
type Manifest struct {
	Format  int       `json:"holdfast_backup"`
	At      time.Time `json:"at"`      // the record is as it was then
	Version string    `json:"version"` // of the Holdfast that made it
	// Database is the content of the database; nil if the backup has none, because it is PostgreSQL's.
	Database *sqldb.Content `json:"database,omitempty"`
	Members  []Member       `json:"members"` // in their order
}

// Member is a file in a backup.
type Member struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`   // bytes
	SHA256 string `json:"sha256"` // in hex
}

// Names of members.
const (
	manifestName = "manifest.json"
	DatabaseName = "registry.db"
)

const (
	// magic begins a skippable frame of Zstandard, and trailerText its content.
	magic       = 0x184D2A50
	trailerText = "holdfast backup sha256 "
	trailerSize = 8 + len(trailerText) + 2*sha256.Size + 1
	// window bounds the memory of compression and decompression.
	window = 4 << 20
	// mostManifest bounds the manifest.
	mostManifest = 1 << 20
)

// trailer returns the frame that ends a file whose other bytes have this digest.
func trailer(digest []byte) []byte {
	out := binary.LittleEndian.AppendUint32(nil, magic)
	out = binary.LittleEndian.AppendUint32(out, uint32(trailerSize-8)) //nolint:gosec // a small constant
	return fmt.Appendf(out, "%s%x\n", trailerText, digest)
}

// content is a member and where its bytes are.
type content struct {
	Member
	open func() (io.ReadCloser, error)
}

// held returns a member with bytes in memory.
func held(name string, data []byte) content {
	sum := sha256.Sum256(data)
	return content{
		Member: Member{Name: name, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])},
		open:   func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

// write writes a backup. It sets the manifest's members.
func write(to io.Writer, m Manifest, members []content) error {
	sum := sha256.New()
	packed, err := zstd.NewWriter(io.MultiWriter(to, sum), zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(window), zstd.WithEncoderCRC(true))
	if err != nil {
		return fmt.Errorf("begin to compress: %w", err)
	}
	archive := tar.NewWriter(packed)
	m.Members = make([]Member, len(members))
	for i, c := range members {
		m.Members[i] = c.Member
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("encode the manifest: %w", err)
	}
	for _, c := range append([]content{held(manifestName, append(text, '\n'))}, members...) {
		if err := add(archive, c, m.At); err != nil {
			return fmt.Errorf("write %s: %w", c.Name, err)
		}
	}
	if err := errors.Join(archive.Close(), packed.Close()); err != nil {
		return err
	}
	_, err = to.Write(trailer(sum.Sum(nil)))
	return err
}

func add(archive *tar.Writer, c content, at time.Time) error {
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: c.Name, Size: c.Size, Mode: 0o600, ModTime: at.UTC().Truncate(time.Second), Format: tar.FormatPAX}); err != nil {
		return err
	}
	r, err := c.open()
	if err != nil {
		return err
	}
	_, err = io.Copy(archive, r)
	return errors.Join(err, r.Close())
}

// read reads a whole backup of a size, and gives each member to one. It returns nil only if every
// byte is as it was written; until then what one got may be wrong.
func read(r io.Reader, size int64, one func(Member, io.Reader) error) (m Manifest, err error) {
	if size < int64(trailerSize) {
		return m, fmt.Errorf("%w: it is too short", ErrDamaged)
	}
	sum := sha256.New()
	body := io.TeeReader(io.LimitReader(r, size-int64(trailerSize)), sum)
	unpacked, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(window), zstd.WithDecoderLowmem(true))
	if err != nil {
		return m, fmt.Errorf("begin to decompress: %w", err)
	}
	defer unpacked.Close()
	if m, err = readMembers(unpacked, one); err != nil {
		return m, err
	}
	if _, err := io.Copy(io.Discard, unpacked); err != nil {
		return m, damaged(err)
	}
	if _, err := io.Copy(io.Discard, body); err != nil {
		return m, damaged(err)
	}
	end := make([]byte, trailerSize)
	if _, err := io.ReadFull(r, end); err != nil {
		return m, damaged(err)
	}
	if !bytes.Equal(end, trailer(sum.Sum(nil))) {
		return m, fmt.Errorf("%w: it does not have the digest that it had when it was written", ErrDamaged)
	}
	return m, nil
}

func readMembers(unpacked io.Reader, one func(Member, io.Reader) error) (m Manifest, err error) {
	archive := tar.NewReader(unpacked)
	if m, err = readManifest(archive); err != nil {
		return m, err
	}
	for _, want := range m.Members {
		head, err := archive.Next()
		if err != nil {
			return m, damaged(err)
		}
		if head.Name != want.Name || head.Size != want.Size || head.Typeflag != tar.TypeReg {
			return m, fmt.Errorf("%w: it has %s where its manifest has %s", ErrDamaged, head.Name, want.Name)
		}
		sum := sha256.New()
		if err := one(want, io.TeeReader(archive, sum)); err != nil {
			return m, err
		}
		if got := hex.EncodeToString(sum.Sum(nil)); got != want.SHA256 {
			return m, fmt.Errorf("%w: %s has another digest than the manifest says", ErrDamaged, want.Name)
		}
	}
	if _, err := archive.Next(); err == nil {
		return m, fmt.Errorf("%w: it has more than its manifest says", ErrDamaged)
	} else if !errors.Is(err, io.EOF) {
		return m, damaged(err)
	}
	return m, nil
}

func readManifest(archive *tar.Reader) (m Manifest, err error) {
	head, err := archive.Next()
	if err != nil {
		return m, damaged(err)
	}
	if head.Name != manifestName || head.Size > mostManifest {
		return m, fmt.Errorf("%w: it does not begin with a manifest", ErrDamaged)
	}
	text, err := io.ReadAll(archive)
	if err != nil {
		return m, damaged(err)
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, damaged(err)
	}
	if m.Format < 1 || m.Format > Format {
		return m, fmt.Errorf("the backup has format %d, and this program knows those up to %d; use a newer holdfast", m.Format, Format)
	}
	return m, nil
}

// readFault is an error of the place that a backup is read from. It says nothing about the backup.
type readFault struct{ error }

// Unwrap returns the cause.
func (f readFault) Unwrap() error { return f.error }

// damaged marks an error of decoding.
func damaged(err error) error {
	if f := (readFault{}); errors.As(err, &f) {
		return f.error
	}
	return fmt.Errorf("%w: %w", ErrDamaged, err)
}

// faultReader marks the errors of a place.
type faultReader struct{ io.Reader }

// Read implements io.Reader.
func (r faultReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = readFault{err}
	}
	return n, err
}
