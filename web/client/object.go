package client

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/fixity"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// Object returns an object by its ARK, in any spelling; registry.ErrNotFound if there is none.
func (c *Client) Object(ctx context.Context, id string) (registry.Object, error) {
	return get[registry.Object](ctx, c, in("objects", id), nil)
}

// Objects lists objects, newest first.
func (c *Client) Objects(ctx context.Context, q registry.ObjectQuery) (registry.Page[registry.Object], error) {
	return get[registry.Page[registry.Object]](ctx, c, "/objects", values(
		"collection", q.Collection, "local_id", q.LocalID, "text", q.Text, "after", q.After, "before", q.Before, "limit", number(q.Limit)))
}

// Files lists the files of an object's version by path, after a path; version 0 is the newest.
func (c *Client) Files(ctx context.Context, objectID string, version int, after string, limit int) ([]registry.File, error) {
	p, err := get[registry.Page[registry.File]](ctx, c, in("objects", objectID, "files"),
		values("version", number(version), "after", after, "limit", number(limit)))
	return p.Rows, err
}

// File returns a file of an object's version by its path; version 0 is the newest.
func (c *Client) File(ctx context.Context, objectID string, version int, path string) (registry.File, error) {
	p, err := get[registry.Page[registry.File]](ctx, c, in("objects", objectID, "files"), values("version", number(version), "path", path))
	if err == nil && len(p.Rows) != 1 {
		err = fmt.Errorf("file %s: %w", path, registry.ErrNotFound)
	}
	if err != nil {
		return registry.File{}, err
	}
	return p.Rows[0], nil
}

// Folder lists the files and folders in a folder of an object's version by path, after a path;
// version 0 is the newest. The folder's path ends in a slash.
func (c *Client) Folder(ctx context.Context, objectID string, version int, folder, after string, limit int) (registry.Page[wire.FolderEntry], error) {
	return get[registry.Page[wire.FolderEntry]](ctx, c, in("objects", objectID, "folder"),
		values("path", folder, "version", number(version), "after", after, "limit", number(limit)))
}

// FileChanges lists by path what differs between the files of two versions of an object. With a negative
// Since the version is compared with the one before.
func (c *Client) FileChanges(ctx context.Context, q registry.FileChangesQuery) (registry.Page[registry.FileChange], error) {
	return get[registry.Page[registry.FileChange]](ctx, c, in("objects", q.ObjectID, "changes"),
		values("version", number(q.Version), "since", strconv.Itoa(q.Since), "folder", q.Folder, "after", q.After, "limit", number(q.Limit)))
}

// PremisEvents lists an object's preservation events, oldest first.
func (c *Client) PremisEvents(ctx context.Context, objectID, after string, limit int) (registry.Page[registry.Premis], error) {
	return get[registry.Page[registry.Premis]](ctx, c, in("objects", objectID, "events"), values("after", after, "limit", number(limit)))
}

// PREMIS opens an object's PREMIS 3 document. The caller must close it. It has no time limit but
// ctx's.
func (c *Client) PREMIS(ctx context.Context, objectID string) (io.ReadCloser, error) {
	return c.stream(ctx, in("objects", objectID, "premis"))
}

// DepositReceipt opens the signed receipt of an object's version. The caller must close it.
// registry.ErrNotFound means that there is no such version, or that it has no receipt. It has no
// time limit but ctx's.
func (c *Client) DepositReceipt(ctx context.Context, objectID string, version int) (io.ReadCloser, error) {
	return c.stream(ctx, in("objects", objectID, "versions", strconv.Itoa(version), "receipt"))
}

// ReceiptKeys lists the public keys of all receipts, in the order of first use.
func (c *Client) ReceiptKeys(ctx context.Context) ([]wire.ReceiptKey, error) {
	p, err := get[registry.Page[wire.ReceiptKey]](ctx, c, "/receipt-keys", nil)
	return p.Rows, err
}

func (c *Client) stream(ctx context.Context, path string) (io.ReadCloser, error) {
	answer, err := c.do(ctx, request{method: http.MethodGet, path: path})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// Verify has the server read and compare every byte of an object. It has no time limit but ctx's.
func (c *Client) Verify(ctx context.Context, objectID string) (wire.VerifyReport, error) {
	var out wire.VerifyReport
	err := c.ask(ctx, request{method: http.MethodPost, path: in("objects", objectID, "verify"), unbounded: true}, nil, &out)
	return out, err
}

// AuditObject has the server verify an object's chain of events. It has no time limit but ctx's.
func (c *Client) AuditObject(ctx context.Context, objectID string) (wire.AuditReport, error) {
	var out wire.AuditReport
	err := c.ask(ctx, request{method: http.MethodPost, path: in("objects", objectID, "audit"), unbounded: true}, nil, &out)
	return out, err
}

// AuditCheckpoints has the server compare its record with the checkpoints in its storages. If
// objectID is not "", only that object is compared. It has no time limit but ctx's.
func (c *Client) AuditCheckpoints(ctx context.Context, objectID string) (wire.CheckpointReport, error) {
	var out wire.CheckpointReport
	err := c.ask(ctx, request{method: http.MethodPost, path: in("checkpoints", "audit"), query: values("object", objectID), unbounded: true}, nil, &out)
	return out, err
}

// AcceptOlder requests to accept a record that is older than its checkpoints, or approves such a
// request. It has no time limit but ctx's.
func (c *Client) AcceptOlder(ctx context.Context, r wire.AcceptanceRequest) (wire.Acceptance, error) {
	var out wire.Acceptance
	err := c.ask(ctx, request{method: http.MethodPost, path: in("checkpoints", "acceptance"), unbounded: true}, r, &out)
	return out, err
}

// Content is a file being downloaded. The last Read verifies the digest: it returns a *DigestError
// instead of io.EOF if the bytes are not the preserved ones. The caller must close it.
type Content struct {
	Size    int64             // of the rest, in bytes; -1 if the server did not say
	Digests map[string]string // hex by algorithm, as recorded
	Storage string            // that the file is read from

	body io.ReadCloser
	name string
	algo string
	sum  hash.Hash
	got  int64
}

// CheckObject enqueues a fixity check of every stored file of an object, and returns the object. With an
// idempotency key ("" for none), a repeat enqueues nothing more.
func (c *Client) CheckObject(ctx context.Context, id, reason, idempotencyKey string) (registry.Object, error) {
	var out registry.Object
	err := c.ask(ctx, request{method: http.MethodPost, path: in("objects", id, "fixity"), header: keyed(idempotencyKey)}, wire.CheckObjectRequest{Reason: reason}, &out)
	return out, err
}

// Content opens a file of an object's version (0: the newest) at an offset within it. from names
// the storage; "" means the first storage with the complete file. The digest is verified only if
// the offset is 0. It has no time limit but ctx's, which also bounds the reading.
func (c *Client) Content(ctx context.Context, objectID string, version int, path, from string, offset int64) (*Content, error) {
	return c.ExportedContent(ctx, "", objectID, version, path, from, offset)
}

// ExportedContent is Content of a file that is a part of an export with this id. The audit log has
// one entry for the export.
func (c *Client) ExportedContent(ctx context.Context, export, objectID string, version int, path, from string, offset int64) (*Content, error) {
	q := request{path: in("objects", objectID, "content"), query: values("path", path, "version", number(version), "storage", from), header: http.Header{}}
	if export != "" {
		q.header.Set(wire.ExportHeader, export)
	}
	return c.content(ctx, q, path, offset)
}

// Beginning returns the first bytes of a file of an object's version (0: the newest), at most most.
// It compares no digest.
func (c *Client) Beginning(ctx context.Context, objectID string, version int, path string, most int) ([]byte, error) {
	answer, err := c.do(ctx, request{
		method: http.MethodGet, path: in("objects", objectID, "content"), query: values("path", path, "version", number(version)),
		header: http.Header{"Range": {fmt.Sprintf("bytes=0-%d", most-1)}},
	})
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, int64(most)))
	return text, errors.Join(err, answer.Body.Close())
}

// content opens the file of request q, called name, at an offset.
func (c *Client) content(ctx context.Context, q request, name string, offset int64) (*Content, error) {
	q.method = http.MethodGet
	if offset > 0 {
		if q.header == nil {
			q.header = http.Header{}
		}
		q.header.Set("Range", fmt.Sprintf("bytes=%d-", offset))
	}
	answer, err := c.do(ctx, q)
	if err != nil {
		return nil, err
	}
	if begin := fmt.Sprintf("bytes %d-", offset); offset > 0 && !strings.HasPrefix(answer.Header.Get("Content-Range"), begin) {
		return nil, errors.Join(fmt.Errorf("read %s from byte %d: the answer starts at another byte: %s %q; check the proxy between here and the server",
			name, offset, answer.Status, answer.Header.Get("Content-Range")), answer.Body.Close())
	}
	out := &Content{
		Size: answer.ContentLength, Digests: map[string]string{}, Storage: answer.Header.Get(wire.StorageHeader), body: answer.Body, name: name,
	}
	for part := range strings.SplitSeq(answer.Header.Get(wire.DigestHeader), ",") {
		algorithm, value, ok := strings.Cut(strings.TrimSpace(part), ":")
		if !ok {
			continue
		}
		out.Digests[algorithm] = value
	}
	for _, algorithm := range []string{"sha512", "sha256", "sha1", "md5"} {
		if out.Digests[algorithm] == "" || offset > 0 {
			continue
		}
		if out.sum, err = fixity.New(algorithm); err == nil {
			out.algo = algorithm
			break
		}
	}
	return out, nil
}

// Read implements io.Reader.
func (c *Content) Read(p []byte) (int, error) {
	n, err := c.body.Read(p)
	c.got += int64(n)
	if c.sum != nil {
		c.sum.Write(p[:n])
	}
	if !errors.Is(err, io.EOF) {
		return n, err
	}
	if c.Size >= 0 && c.got != c.Size {
		return n, fmt.Errorf("read %s: %d of %d bytes: %w", c.name, c.got, c.Size, io.ErrUnexpectedEOF)
	}
	if c.sum != nil {
		if got := hex.EncodeToString(c.sum.Sum(nil)); got != strings.ToLower(c.Digests[c.algo]) {
			return n, &DigestError{What: c.name, Algorithm: c.algo, Want: c.Digests[c.algo], Got: got}
		}
	}
	return n, io.EOF
}

// Close implements io.Closer.
func (c *Content) Close() error { return c.body.Close() }
