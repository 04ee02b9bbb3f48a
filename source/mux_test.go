package source_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/storage"
)

// memoryUploads is an UploadStore of one object that can be cut short.
type memoryUploads struct {
	key, data, etag string
	lost            int // bytes that Open does not find
}

func (m memoryUploads) Stat(_ context.Context, key string) (storage.Info, error) {
	if key != m.key {
		return storage.Info{}, storage.ErrNotFound
	}
	return storage.Info{Key: key, Size: int64(len(m.data)), Modified: modified, ETag: m.etag}, nil
}

func (m memoryUploads) Open(_ context.Context, key string, offset, length int64) (io.ReadCloser, error) {
	if key != m.key {
		return nil, storage.ErrNotFound
	}
	data := m.data[:len(m.data)-m.lost]
	return io.NopCloser(strings.NewReader(data[offset:min(offset+length, int64(len(data)))])), nil
}

func TestMux(t *testing.T) {
	t.Parallel()
	store := memoryUploads{key: "uploads/0190-a_B/payload", data: content, etag: "e1"}
	m := source.NewMux(map[string]source.Fetcher{"upload": source.NewUploads(store), "https": newHTTP(t, nil)})
	info, err := m.Head(t.Context(), "UPLOAD:0190-a_B")
	if err != nil || info.Size != 20 || info.Validator != "e1" || info.URL != "upload:0190-a_B" {
		t.Errorf("info=%+v err=%v", info, err)
	}
	_, err = m.Head(t.Context(), "s3://bucket/key")
	wantFault(t, err, source.FaultScheme, true)
	if !strings.Contains(err.Error(), "https, upload") {
		t.Errorf("error %q, want the schemes that are allowed", err)
	}
	for _, raw := range []string{"", "/etc/passwd", ":x", "1a:b", "a b:c"} {
		_, err = m.Open(t.Context(), raw, source.Point{})
		wantFault(t, err, source.FaultURL, true)
	}
}

func TestUploads(t *testing.T) {
	t.Parallel()
	store := memoryUploads{key: "uploads/1/payload", data: content, etag: "e1"}
	u := source.NewUploads(store)
	tests := []struct {
		name   string
		from   source.Point
		offset int64
	}{
		{"beginning", source.Point{}, 0},
		{"middle", source.Point{Offset: 12, Validator: "e1"}, 12},
		{"end", source.Point{Offset: 20, Validator: "e1"}, 20},
		{"past the end", source.Point{Offset: 21, Validator: "e1"}, 0},
		{"another object", source.Point{Offset: 12, Validator: "e0"}, 0},
		{"no validator", source.Point{Offset: 12, Digest: true}, 0},
	}
	for _, tt := range tests {
		body, err := u.Open(t.Context(), "upload:1", tt.from)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		if data, err := readAll(t, body); data != content[tt.offset:] || body.Offset != tt.offset || err != nil {
			t.Errorf("%s: offset=%d data=%q err=%v", tt.name, body.Offset, data, err)
		}
	}
	_, err := u.Head(t.Context(), "upload:2")
	wantFault(t, err, source.FaultUpload, false)
	if !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("error %v, want storage.ErrNotFound", err)
	}
	for _, raw := range []string{"upload:", "upload:../1", "upload:1/payload", "upload:%2e", "http://h", "upload:" + strings.Repeat("1", 129)} {
		_, err := u.Head(t.Context(), raw)
		wantFault(t, err, source.FaultURL, true)
	}
	store.lost = 5
	body, err := source.NewUploads(store).Open(t.Context(), "upload:1", source.Point{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = readAll(t, body)
	wantFault(t, err, source.FaultUpload, false)
}
