package node_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/api/upload"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// readyz returns a node's /readyz.
func readyz(t *testing.T, n *node.Node) (int, wire.Health) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/readyz", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var h wire.Health
	if err := json.NewDecoder(answer.Body).Decode(&h); err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, h
}

// With the disk filled by uploads the reserve stays free: uploads and downloads are refused or
// wait, acts and deletions work, and /readyz says what is wrong. With room again, everything
// continues.
func TestFullDiskKeepsItsReserve(t *testing.T) {
	const total, reserved = 1 << 40, 1 << 30
	var used atomic.Int64
	node.SetMeasured(func(storage.Space) storage.Space { return storage.Space{Total: total, Used: used.Load()} })
	t.Cleanup(func() { node.SetMeasured(nil) }) // when the node has ended
	sources := newTarpits(t)
	n, d := newDeposits(t, func(o *node.UpOptions) { o.StagingReserve, o.Uploads = reserved, upload.Limits{Full: 1} })
	c := d.Client
	send := func(text string) (registry.Upload, error) {
		return c.SendFile(t.Context(), fileOf("f.txt", text))
	}
	u, err := send("what is preserved before")
	if err != nil {
		t.Fatal(err)
	}
	d.completes(d.submit(wire.SubmitRequest{UploadID: u.ID, Type: "file"}), 2*time.Minute)
	objects, err := c.Objects(t.Context(), registry.ObjectQuery{})
	if err != nil || len(objects.Rows) != 1 {
		t.Fatalf("%d objects (%v), want one", len(objects.Rows), err)
	}

	used.Store(total - reserved) // by anybody; what is left is the reserve
	if status, h := readyz(t, n); status != http.StatusOK || h.Status != "limited" || !strings.HasPrefix(h.Checks["staging"], "full") {
		t.Errorf("readyz says %d %+v, want 200 and that staging is full", status, h)
	}
	var refused *wire.Problem
	if _, err := send("more"); !errors.As(err, &refused) || refused.Status != http.StatusInsufficientStorage || refused.Code != wire.CodeNoSpace {
		t.Errorf("an upload on a full volume: %v, want 507", err)
	}
	later := d.submit(wire.SubmitRequest{URL: sources.URL + "/fast/later", Type: "file"})
	jobWaits := func() bool {
		jobs, err := c.Items(t.Context(), registry.ItemQuery{ParentID: later})
		if err != nil {
			t.Fatal(err)
		}
		return len(jobs.Rows) == 1 && jobs.Rows[0].Stage == registry.Provision && jobs.Rows[0].Status == registry.Pending && jobs.Rows[0].Attempt > 1
	}
	for begun := time.Now(); !jobWaits(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > time.Minute {
			t.Fatal("the job does not wait for room")
		}
	}
	// People can still act.
	hold := registry.Hold{Scope: registry.HoldStage, Key: string(registry.Deliver), Reason: "the disk is full"}
	if err := errors.Join(c.AddHold(t.Context(), hold), c.RemoveHold(t.Context(), hold.Scope, hold.Key)); err != nil {
		t.Errorf("holds on a full disk: %v", err)
	}
	// Who deletes an object is asked for by one admin and approved by another one, whose token the
	// first has not made.
	tokens := []*client.Client{c}
	var made []registry.Token
	for _, name := range []string{"second", "third"} {
		m, err := tokens[len(tokens)-1].CreateToken(t.Context(), wire.TokenRequest{Name: name, Role: string(registry.RoleAdmin)})
		if err != nil {
			t.Fatal(err)
		}
		other := client.New(n.URL(), m.Secret, client.Options{})
		defer other.Close()
		tokens, made = append(tokens, other), append(made, m.Token)
	}
	ark := objects.Rows[0].ID
	if _, err := c.AskDeletion(t.Context(), ark, "by mistake"); err != nil {
		t.Fatal(err)
	}
	if _, err := tokens[2].ApproveDeletion(t.Context(), ark); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		o, err := c.Object(t.Context(), ark)
		if err != nil {
			t.Fatal(err)
		}
		if o.Deletion != nil && o.Deletion.Status == registry.DeletionDeleted {
			break
		} else if time.Since(begun) > time.Minute {
			t.Fatalf("the object is not deleted on a full disk: %+v", o.Deletion)
		}
	}
	for _, token := range made {
		if err := c.RevokeToken(t.Context(), token.ID); err != nil {
			t.Errorf("revoke a token on a full disk: %v", err)
		}
	}
	stored, err := c.AllUploads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range stored { // whatever is left of them
		if err := c.RemoveUpload(t.Context(), u.ID); err != nil {
			t.Errorf("remove upload %s on a full disk: %v", u.ID, err)
		}
	}

	used.Store(0)
	if status, h := readyz(t, n); status != http.StatusOK || h.Status != "ok" {
		t.Errorf("readyz says %d %+v, want ok", status, h)
	}
	if _, err := c.SendFile(t.Context(), fileOf("g", "x")); err != nil {
		t.Errorf("an upload when there is room again: %v", err)
	}
	jobs, err := c.Items(t.Context(), registry.ItemQuery{ParentID: later})
	if err != nil {
		t.Fatal(err)
	}
	for _, job := range jobs.Rows { // it looks again within a minute by itself
		if _, err := c.Command(t.Context(), registry.Command{ItemID: job.ID, Act: registry.ActRetryNow, Reason: "there is room"}); err != nil {
			t.Log(err)
		}
	}
	d.completes(later, 3*time.Minute)
}

// fileOf is a file to send.
func fileOf(name, text string) client.File {
	return client.File{Name: name, Size: int64(len(text)), Open: func(_ context.Context, offset int64) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(text[offset:])), nil
	}}
}
