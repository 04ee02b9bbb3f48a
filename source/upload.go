package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast/holdfast/storage"
)

// UploadScheme is the scheme of the addresses of uploads: upload:ID.
const UploadScheme = "upload"

// maxUploadID is the greatest length of an upload's id.
const maxUploadID = 128

// UploadKey returns the key of the upload with this id.
func UploadKey(id string) string { return UploadsPrefix + id + "/payload" }

// UploadsPrefix is the prefix of the keys of all uploads. Each upload has a folder named by its id.
const UploadsPrefix = "uploads/"

// UploadStore is the part of storage.Store that Uploads reads from.
type UploadStore interface {
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
	Stat(ctx context.Context, key string) (storage.Info, error)
}

// Uploads is a Fetcher for files that depositors uploaded. A missing upload is a system fault,
// because its receipt was acknowledged.
type Uploads struct {
	store UploadStore
}

// NewUploads returns a Fetcher for the uploads in store.
func NewUploads(store UploadStore) *Uploads { return &Uploads{store: store} }

// Head implements Fetcher.
func (u *Uploads) Head(ctx context.Context, rawURL string) (Info, error) {
	_, info, err := u.stat(ctx, "head", rawURL)
	return info, err
}

// Open implements Fetcher. An upload never changes, so reading continues at Point.Offset, unless
// the object at its key was replaced.
func (u *Uploads) Open(ctx context.Context, rawURL string, from Point) (*Body, error) {
	key, info, err := u.stat(ctx, "open", rawURL)
	if err != nil {
		return nil, err
	}
	offset := from.Offset
	if offset < 0 || offset > info.Size || from.Validator == "" || from.Validator != info.Validator {
		offset = 0
	}
	r, err := u.store.Open(ctx, key, offset, info.Size-offset)
	if err != nil {
		return nil, uploadFault(ctx, "open", info.URL, err)
	}
	body := &uploadBody{ReadCloser: r, left: info.Size - offset, fail: func(err error) error {
		return uploadFault(ctx, "read", info.URL, err)
	}}
	return &Body{ReadCloser: body, Info: info, Offset: offset}, nil
}

func (u *Uploads) stat(ctx context.Context, op, rawURL string) (string, Info, error) {
	id, err := uploadID(rawURL)
	if err != nil {
		return "", Info{}, &Error{Op: op, URL: Redact(rawURL), Kind: FaultURL, Err: err}
	}
	address := UploadScheme + ":" + id
	stored, err := u.store.Stat(ctx, UploadKey(id))
	if err != nil {
		return "", Info{}, uploadFault(ctx, op, address, err)
	}
	info := Info{URL: address, Size: stored.Size, Validator: stored.ETag, Ranges: true} // the time of the upload is not the file's time
	return UploadKey(id), info, nil
}

// uploadID checks that an id can only refer to the key of an upload.
func uploadID(rawURL string) (string, error) {
	scheme, id, _ := strings.Cut(rawURL, ":")
	if !strings.EqualFold(scheme, UploadScheme) {
		return "", errors.New("it is not the address of an upload")
	}
	if id == "" || len(id) > maxUploadID {
		return "", fmt.Errorf("an upload's id has 1 to %d characters", maxUploadID)
	}
	for _, c := range []byte(id) {
		letter := c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '_' {
			return "", errors.New("an upload's id is made of letters, digits, - and _")
		}
	}
	return id, nil
}

func uploadFault(ctx context.Context, op, address string, err error) error {
	kind := FaultUpload
	if ended := contextError(ctx); ended != nil {
		kind, err = FaultCancelled, ended
	}
	return &Error{Op: op, URL: address, Kind: kind, Err: err}
}

// uploadBody returns io.EOF only after all bytes.
type uploadBody struct {
	io.ReadCloser
	left int64
	fail func(error) error
}

// Read implements io.Reader.
func (b *uploadBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	switch {
	case err == io.EOF && b.left == 0:
		return n, io.EOF
	case err == io.EOF:
		err = io.ErrUnexpectedEOF
	case err == nil:
		return n, nil
	}
	return n, b.fail(err)
}
