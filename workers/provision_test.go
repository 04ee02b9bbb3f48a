package workers_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/storage/storagetest"
	"github.com/holdfast/holdfast/workers"
)

// volume is a staging store of a size that a test sets. 80 % of it may be used, 70 % by jobs of
// unknown size.
type volume struct {
	storage.Store
	mu    sync.Mutex
	space storage.Space
}

func (v *volume) Space(context.Context) (storage.Space, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.space, nil
}

func (v *volume) use(n int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.space.Used = n
}

func newVolume(t *testing.T, total int64) (*rig, *volume) {
	v := &volume{space: storage.Space{Total: total}}
	r := newRig(t, func(d *workers.Deps) {
		v.Store = d.Staging
		d.Staging, d.StagingFull, d.StagingFullUnestimated = v, 0.8, 0.7
	})
	return r, v
}

// reservations records what is asked of the Registry.
type reservations struct {
	registry.ForWorkers
	mu    sync.Mutex
	asked []registry.Reservation
}

func (s *reservations) Reserve(ctx context.Context, l registry.Lease, r registry.Reservation) error {
	err := s.ForWorkers.Reserve(ctx, l, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.asked = append(s.asked, r)
	}
	return err
}

func (s *reservations) bytes() (out []int64) {
	for _, r := range s.asked {
		out = append(out, r.Bytes)
	}
	return out
}

// A job without room waits, uncounted, and a small one passes it.
func TestProvision_SmallPassesBig(t *testing.T) {
	r, v := newVolume(t, 1000)
	v.use(700)
	big := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("big", string(make([]byte, 200))), Filename: "big"})
	small := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("small", string(make([]byte, 50))), Filename: "small"})
	r.advance(big, registry.Provision)
	_, err := r.run(big)
	var full *registry.NoSpaceError
	if !errors.As(err, &full) || full.Need != 200 || full.Total != 1000 {
		t.Fatalf("error %v", err)
	}
	it := r.item(big)
	waits(t, it)
	if it.Stage != registry.Provision {
		t.Errorf("stage=%s", it.Stage)
	}
	if why, err := r.registry.Why(t.Context(), big); err != nil || why.Reason != registry.ReasonNoSpace {
		t.Errorf("why %+v (%v)", why, err)
	}
	r.complete(small)
	v.use(0)
	r.wait(2 * time.Minute)
	r.complete(big)
}

// A job of unknown size needs more room to be left.
func TestProvision_Unestimated(t *testing.T) {
	for _, tt := range []struct {
		used int64
		ok   bool
	}{{699, true}, {701, false}} {
		r, v := newVolume(t, 1000)
		v.use(tt.used)
		job := r.job(registry.Spec{Type: registry.FileType, URL: r.site.url + "none", Filename: "f"})
		r.advance(job, registry.Provision)
		if _, err := r.run(job); (err == nil) != tt.ok {
			t.Errorf("used=%d: %v", tt.used, err)
		}
	}
}

// A container reserves room for its contents. Download corrects that to the actual size, and
// Process extends it before it unpacks more (R24).
func TestR24_ReservationsFollowTheBytes(t *testing.T) {
	r, _ := newVolume(t, 1<<40)
	asked := &reservations{ForWorkers: r.registry}
	r.deps.Registry = asked
	inside := map[string]string{"zeros": string(make([]byte, 1<<20))}
	data := zipOf(t, inside) // of about a kilobyte
	job := r.job(registry.Spec{Type: registry.ContainerType, URL: r.site.put("c.zip", data), Filename: "c.zip"})
	r.complete(job)
	size := int64(len(data))
	got := asked.bytes()
	if len(got) != 2 || got[0] != 3*size || got[1] <= 1<<20+size {
		t.Errorf("reserved %v, want %d, then more than %d", got, 3*size, 1<<20+size)
	}
}

// A size that was stated too large is released after the download; one too small is extended before
// it is exceeded.
func TestR24_CorrectedAfterDownload(t *testing.T) {
	r, _ := newVolume(t, 1<<40)
	asked := &reservations{ForWorkers: r.registry}
	r.deps.Registry = asked
	r.site.break_(sized(1 << 30))
	job := r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("f", "0123456789"), Filename: "f"})
	r.complete(job)
	if got := asked.bytes(); len(got) != 2 || got[0] != 1<<30 || got[1] != 10 {
		t.Errorf("reserved %v, want 1 GiB and then 10", got)
	}
	asked.asked = nil
	r.site.break_(sized(4))
	job = r.job(registry.Spec{Type: registry.FileType, URL: r.site.put("g", "0123456789"), Filename: "g"})
	r.complete(job)
	if got := asked.bytes(); len(got) != 3 || got[0] != 4 || got[1] < 10 || got[2] != 10 {
		t.Errorf("reserved %v, want 4, at least 10, then 10", got)
	}
}

// A download that finds the volume full waits, keeps its files, and continues.
func TestR24_DownloadWaitsForRoom(t *testing.T) {
	r, v := newVolume(t, 1000)
	r.site.break_(sized(1))
	url := r.site.manifest("m", checkm.Object,
		checkm.Row{URL: r.site.put("a", string(make([]byte, 300))), Name: "a"}, checkm.Row{URL: r.site.put("b", "b"), Name: "b"})
	job := r.job(registry.Spec{Type: registry.ObjectManifest, URL: url, Filename: "m"})
	r.advance(job, registry.Download)
	v.use(750)
	if _, err := r.run(job); err == nil {
		t.Fatal("downloaded past what was reserved")
	}
	waits(t, r.item(job))
	v.mu.Lock()
	v.space = storage.Space{Total: 1 << 40}
	v.mu.Unlock()
	r.wait(2 * time.Minute)
	r.complete(job)
}

// A job of unknown size without room deletes what it has staged, so that several growing jobs do
// not block each other forever. It starts over when there is room.
func TestR24_UnknownSizesGiveRoomBack(t *testing.T) {
	var full *storagetest.Faulty
	r := newRig(t, func(d *workers.Deps) {
		full = storagetest.NewFaulty(d.Staging)
		d.Staging = full
	})
	r.site.break_(func(w http.ResponseWriter, q *http.Request) bool { // which tells no size before it is asked for the file
		if q.Method == http.MethodHead {
			w.WriteHeader(http.StatusOK)
		}
		return q.Method == http.MethodHead
	})
	url := r.site.manifest("m", checkm.Object,
		checkm.Row{URL: r.site.put("a", string(make([]byte, 500))), Name: "a"}, checkm.Row{URL: r.site.put("b", string(make([]byte, 5000))), Name: "b"})
	job := r.job(registry.Spec{Type: registry.ObjectManifest, URL: url, Filename: "m"})
	r.advance(job, registry.Download)
	if it := r.item(job); it.SizeBytes >= 0 {
		t.Fatalf("size %d is known", it.SizeBytes)
	}
	full.Quota(1000) // the first file fits, the second does not
	if _, err := r.run(job); err == nil {
		t.Fatal("downloaded without room")
	}
	waits(t, r.item(job))
	for info, err := range full.List(t.Context(), staging.ItemPrefix(job)+"/") {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(info.Key, ".files") {
			t.Errorf("%s is still there", info.Key)
		}
	}
	full.Quota(-1)
	r.wait(2 * time.Minute)
	r.complete(job)
}
