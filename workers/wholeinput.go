package workers

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// digestedInput takes the digest of a container while it is read for what is in it: each byte is read once, as far as it is read in its order.
type digestedInput struct {
	store storage.Store
	file  staging.File
	h     hash.Hash
	want  string // its digest
	at    int64  // how far it has come
}

// verifiedInput is a staged container as it is unpacked. Whoever is through with it asks whether all that was read is what was staged: an
// error that wraps staging.ErrDamaged says that it is not. What was not read in its order is read for that.
func verifiedInput(s storage.Store, file staging.File, algorithm string) (in unpack.Input, whole func(ctx context.Context) error, err error) {
	h, err := fixity.New(algorithm)
	if err != nil {
		return in, nil, err
	}
	d := &digestedInput{store: s, file: file, h: h, want: file.Digests[algorithm]}
	return unpack.Input{Size: file.SizeBytes, Open: d.open}, d.whole, nil
}

func (d *digestedInput) open(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
	r, err := d.store.Open(ctx, d.file.Key, offset, length)
	if err != nil {
		return nil, err
	}
	return &digestedReader{ReadCloser: r, of: d, at: offset}, nil
}

// whole reads what is left.
func (d *digestedInput) whole(ctx context.Context) error {
	r, err := d.open(ctx, d.at, -1)
	if errors.Is(err, storage.ErrRange) {
		return fmt.Errorf("%s: %w: it is shorter", d.file.Key, staging.ErrDamaged)
	} else if err != nil {
		return err
	}
	defer r.Close()
	if _, err := io.Copy(io.Discard, storage.Interruptible(ctx, r)); err != nil {
		return fmt.Errorf("read %s: %w", d.file.Key, err)
	}
	if got := hex.EncodeToString(d.h.Sum(nil)); !strings.EqualFold(got, d.want) {
		return fmt.Errorf("%s: %w: its digest is %s, not %s", d.file.Key, staging.ErrDamaged, got, d.want)
	}
	return nil
}

// digestedReader adds to the digest what comes next in the file.
type digestedReader struct {
	io.ReadCloser
	of *digestedInput
	at int64
}

// Read implements io.Reader.
func (r *digestedReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	if end := r.at + int64(n); r.at <= r.of.at && end > r.of.at {
		r.of.h.Write(p[r.of.at-r.at : n])
		r.of.at = end
	}
	r.at += int64(n)
	return n, err
}
