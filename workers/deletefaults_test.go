package workers_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast/holdfast/internal/looptest"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/s3"
	"github.com/holdfast/holdfast/storage/s3/s3test"
	"github.com/holdfast/holdfast/storage/storagetest"
)

// TestDelete_EveryFault deletes an object in two storages once for each call to either, and makes
// that call fail, lose its answer, or find the disk full. In the end nothing is left, and meanwhile
// nothing counts as complete.
func TestDelete_EveryFault(t *testing.T) {
	t.Parallel()
	for _, kind := range faultKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			r, first, others, behind := newReplicatedRig(t)
			for name, store := range map[string]*storagetest.Faulty{registry.DefaultStorage: first, "b": others["b"]} {
				calls := 1
				for k := range looptest.Steps(t) {
					if k > calls {
						break
					}
					what := fmt.Sprintf("%s: %s at call %d of %d", name, kind.name, k, calls)
					o := r.complete(r.fileTo(replicated, "one", fmt.Sprint(name, k)))
					id := r.deletion(o)
					before := store.Count(kind.op)
					kind.do(store, k)
					_, err := r.run(id)
					calls = max(calls, store.Count(kind.op)-before)
					if err != nil {
						it := r.item(id)
						if it.Status != registry.Pending {
							t.Fatalf("%s: %s: %s", what, it.Status, it.Note)
						}
						r.between(k, o)
					}
					store.Heal()
					r.wait(2 * time.Hour)
					if r.item(id).Status != registry.Completed {
						if v, err := r.run(id); err != nil || v.Status != registry.Completed {
							t.Fatalf("%s: then %+v, %v", what, v, err)
						}
					}
					r.deleted(o)
					for other, root := range behind {
						key, err := root.ObjectKey(o.ID)
						must(t, err)
						if left := keys(t, root.Store(), key+"/"); len(left) > 0 {
							t.Fatalf("%s: left in %s: %v", what, other, left)
						}
						if _, err := root.Tombstone(t.Context(), o.ID); err != nil {
							t.Fatalf("%s: the tombstone in %s: %v", what, other, err)
						}
					}
				}
			}
		})
	}
}

// TestDelete_ManyKeys deletes an object of 10,000 keys from S3, with listings and deletions of
// 1,000 each, and faults in between. A neighbour with a similar address stays.
func TestDelete_ManyKeys(t *testing.T) {
	s3test.Setenv(t)
	server := s3test.Start(t)
	bucket, err := s3.Open(t.Context(), server.Address("many"))
	must(t, err)
	t.Cleanup(func() { must(t, bucket.Close()) })
	r := newRig(t, nil)
	faulty := storagetest.NewFaulty(bucket)
	r.storage = bucket
	r.objects = rootOf(t, bucket)
	r.deps.Objects = roots(rootOf(t, faulty))
	o := r.complete(r.fileTo(collection, "one", "x"))
	base, err := r.objects.ObjectKey(o.ID)
	must(t, err)
	content := filepath.Join(server.Folder, "many", base, "v1", "content", "producer", "more")
	must(t, os.MkdirAll(content, 0o755))
	for n := range 10_000 {
		must(t, os.WriteFile(filepath.Join(content, fmt.Sprint(n)), nil, 0o600))
	}
	_, err = storage.Put(t.Context(), bucket, base+"-neighbour/a", []byte("stays"))
	must(t, err)
	if n := len(keys(t, bucket, base+"/")); n < 10_000 {
		t.Fatalf("%d keys", n)
	}
	id := r.deletion(o)
	for _, op := range []storagetest.Op{storagetest.DeletePrefix, storagetest.List} {
		faulty.FailAfter(op, 1, nil)
		if _, err := r.run(id); err == nil {
			t.Fatalf("a lost answer to %s is none", op)
		}
		faulty.Heal()
		r.wait(2 * time.Hour)
	}
	if v, err := r.run(id); err != nil || v.Status != registry.Completed {
		t.Fatalf("%+v %v", v, err)
	}
	r.deleted(o)
	if got, err := storage.ReadAll(t.Context(), bucket, base+"-neighbour/a", 10); err != nil || !bytes.Equal(got, []byte("stays")) {
		t.Errorf("the neighbour: %q %v", got, err)
	}
}
