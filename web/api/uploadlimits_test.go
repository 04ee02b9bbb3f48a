package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/web/wire"
)

// sized is staging on a volume of a size.
type sized struct {
	storage.Store
	space storage.Space
}

func (s sized) Space(context.Context) (storage.Space, error) { return s.space, nil }

func within(l upload.Limits) func(*bench, *api.Options) {
	return func(_ *bench, o *api.Options) { o.Uploads = l }
}

// wantRefusal checks what an upload was refused with, and that it tells what is used and what to
// do.
func wantRefusal(t *testing.T, err error, status int, code wire.Code, words ...string) {
	t.Helper()
	var p *wire.Problem
	if !errors.As(err, &p) || p.Status != status || p.Code != code {
		t.Fatalf("error %v, want %d %s", err, status, code)
	}
	for _, w := range words {
		if !strings.Contains(p.Detail, w) {
			t.Errorf("detail %q does not say %q", p.Detail, w)
		}
	}
}

func TestUploadQuota_BeforeTheFirstByte(t *testing.T) {
	b := newBench(t, within(upload.Limits{TokenBytes: 100}))
	send := func(role registry.Role, size int64) error {
		_, err := b.as(t, role).SendUpload(t.Context(), oneRequest{Filename: "f", Body: strings.NewReader(strings.Repeat("x", int(size))), Size: size})
		return err
	}
	must(t, send(registry.RoleDepositor, 60))
	wantRefusal(t, send(registry.RoleDepositor, 41), http.StatusInsufficientStorage, wire.CodeQuota, "41 bytes", "60 bytes", "100 bytes", "upload list")
	wantRefusal(t, send(registry.RoleDepositor, 101), http.StatusRequestEntityTooLarge, wire.CodeQuota, "101 bytes", "100 bytes")
	must(t, send(registry.RoleDepositor, 40))
	must(t, send(registry.RoleAdmin, 500)) // who may change the quota is not bound by a token's
	all, err := b.as(t, registry.RoleAdmin).AllUploads(t.Context())
	must(t, err)
	if len(all) != 3 || !all[0].Complete {
		t.Fatalf("an admin sees %+v, want all three uploads", all)
	}
	if mine, err := b.as(t, registry.RoleDepositor).AllUploads(t.Context()); err != nil || len(mine) != 2 {
		t.Errorf("a depositor sees %d uploads (%v), want its own 2", len(mine), err)
	}
	for _, u := range all {
		must(t, b.as(t, registry.RoleAdmin).RemoveUpload(t.Context(), u.ID))
	}
	if left, err := b.as(t, registry.RoleAdmin).AllUploads(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("%d uploads are left (%v)", len(left), err)
	}
	must(t, send(registry.RoleDepositor, 100)) // their room is given back
}

// TestUploadQuota_UnknownLength checks that an upload of unknown length stops at its quota, and
// that acknowledged bytes stay.
func TestUploadQuota_UnknownLength(t *testing.T) {
	const quota = 20 << 20
	b := newBench(t, within(upload.Limits{TokenBytes: quota}))
	body := &io.LimitedReader{R: zeros{}, N: 16 * quota}
	_, err := b.as(t, registry.RoleDepositor).SendUpload(t.Context(), oneRequest{Filename: "f", Body: body, Size: -1})
	var p *wire.Problem
	if err == nil || errors.As(err, &p) && p.Code != wire.CodeQuota { // a sender that is cut off may not hear why
		t.Errorf("error %v, want that the quota is used up", err)
	}
	if body.N == 0 {
		t.Error("all of it was sent, want that it is cut off")
	}
	if left, err := b.as(t, registry.RoleAdmin).AllUploads(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("%d uploads are left (%v)", len(left), err)
	}
}

func TestUploadQuota_OfACollection(t *testing.T) {
	b := newBench(t, within(upload.Limits{CollectionBytes: 1000, TenantOpen: 2}))
	bytes := int64(50)
	c, err := b.store.Collection(t.Context(), "default")
	must(t, err)
	c.Profile.UploadBytes = &bytes
	c.Version = registry.AnyVersion
	must(t, b.store.PutCollection(t.Context(), c, "admin"))
	mine := named("f", wire.MetadataCollection, "default")
	b.begin(t, 30, mine)
	answer, text := b.send(t, http.MethodPost, "/api/v1/uploads", "", tusHeader(wire.UploadLengthHeader, "30", wire.UploadMetadataHeader, mine)...)
	if answer.StatusCode != http.StatusInsufficientStorage || !strings.Contains(text, "collection default") {
		t.Errorf("answered %d %s, want the collection's quota", answer.StatusCode, text)
	}
	b.begin(t, 20, named("f")) // which is of the token's only collection
	answer, text = b.send(t, http.MethodPost, "/api/v1/uploads", "", tusHeader(wire.UploadDeferHeader, "1", wire.UploadMetadataHeader, mine)...)
	if answer.StatusCode != http.StatusInsufficientStorage || !strings.Contains(text, "2 unfinished uploads") {
		t.Errorf("answered %d %s, want the service's quota", answer.StatusCode, text)
	}
}

// TestUploadQuota_OfTheCollectionSubmittedTo checks that an upload without a collection is refused
// when it is submitted to one whose quota is used up.
func TestUploadQuota_OfTheCollectionSubmittedTo(t *testing.T) {
	b := newBench(t, within(upload.Limits{CollectionBytes: 50}))
	admin := b.as(t, registry.RoleAdmin) // whose uploads are for no collection
	send := func(size int) string {
		u, err := admin.SendUpload(t.Context(), oneRequest{Filename: "f", Body: strings.NewReader(strings.Repeat(strconv.Itoa(size%10), size)), Size: int64(size)})
		must(t, err)
		return u.ID
	}
	submit := func(id string) error {
		_, err := admin.Submit(t.Context(), wire.SubmitRequest{Collection: "default", Type: "file", UploadID: id}, "")
		return err
	}
	must(t, submit(send(30)))
	second := send(21)
	wantRefusal(t, submit(second), http.StatusInsufficientStorage, wire.CodeQuota, "collection default", "30 bytes", "50 bytes")
	wantRefusal(t, submit(send(51)), http.StatusRequestEntityTooLarge, wire.CodeQuota, "51 bytes", "50 bytes")
	c, err := b.store.Collection(t.Context(), "default")
	must(t, err)
	raised := int64(51)
	c.Profile.UploadBytes, c.Version = &raised, registry.AnyVersion
	must(t, b.store.PutCollection(t.Context(), c, "admin"))
	must(t, submit(second)) // it was kept
}

func TestUploads_ObeyTheThreshold(t *testing.T) {
	b := newBench(t, within(upload.Limits{Full: 0.7, TokenBytes: -1}), func(_ *bench, o *api.Options) {
		o.Staging = sized{o.Staging, storage.Space{Total: 1000, Used: 100}}
	})
	send := func(size int64) error {
		_, err := b.as(t, registry.RoleDepositor).SendUpload(t.Context(), oneRequest{Filename: "f", Body: strings.NewReader(strings.Repeat("x", int(size))), Size: size})
		return err
	}
	wantRefusal(t, send(601), http.StatusInsufficientStorage, wire.CodeNoSpace, "600 bytes left")
	wantRefusal(t, send(351), http.StatusRequestEntityTooLarge, wire.CodeQuota, "350 bytes") // half of what uploads may fill
	must(t, send(350))
}
