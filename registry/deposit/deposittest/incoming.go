package deposittest

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func incomingTests() tests {
	return tests{
		"begins_and_finishes":          uploadLife,
		"is_found_by_its_batches":      uploadBatches,
		"begun_again":                  uploadBegunAgain,
		"R0_only_the_last_taker_saves": uploadFenced,
		"one_of_many_takes":            uploadTakenAtOnce,
		"acknowledged_bytes_stay":      uploadNeverGoesBack,
		"given_up":                     uploadDropped,
		"expires":                      uploadExpires,
		"listed":                       uploadsListed,
	}
}

func (f *fixture) takeUpload(id string, offset int64) registry.Incoming {
	f.Helper()
	in, err := f.Store.TakeUpload(f.Context(), id, offset)
	f.Must(err)
	return in
}

// part returns the next n bytes of an upload.
func part(in registry.Incoming, n int64) registry.UploadPart {
	return registry.UploadPart{ID: in.ID, N: in.N, Offset: in.Offset + n, SizeBytes: in.SizeBytes, Keep: registrytest.KeepUploads}
}

func (f *fixture) saveUpload(p registry.UploadPart) registry.Incoming {
	f.Helper()
	in, err := f.Store.SaveUpload(f.Context(), p)
	f.Must(err)
	return in
}

func uploadLife(f *fixture) {
	digest := registry.Digest{Algorithm: "sha256", Value: "aa"}
	begun := f.Clock.Now()
	want := registry.Incoming{
		ID: "u", Filename: "näme\n", SizeBytes: -1, Digest: &digest, Metadata: "filename bsOkbWU=", CreatedBy: "somebody",
		CreatedAt: begun, ExpiresAt: begun.Add(registrytest.KeepUploads),
	}
	in, err := f.Store.BeginUpload(f.Context(), registry.NewUpload{
		ID: "u", Filename: want.Filename, SizeBytes: -1, Digest: &digest, Metadata: want.Metadata, CreatedBy: want.CreatedBy, Keep: registrytest.KeepUploads,
	})
	f.Must(err)
	if diff := cmp.Diff(want, in); diff != "" {
		f.Errorf("begun (-want +got):\n%s", diff)
	}
	_, err = f.Store.UploadByID(f.Context(), "u")
	f.Is(err, registry.ErrNotFound)

	f.Clock.Pass(time.Hour)
	in = f.takeUpload("u", 0)
	in = f.saveUpload(registry.UploadPart{ID: "u", N: in.N, Offset: 4, SizeBytes: 9, State: json.RawMessage(`{"at":4}`), Keep: registrytest.KeepUploads})
	want.N, want.Offset, want.SizeBytes, want.State, want.ExpiresAt = 1, 4, 9, json.RawMessage(`{"at":4}`), begun.Add(time.Hour+registrytest.KeepUploads)
	if diff := cmp.Diff(want, in); diff != "" {
		f.Errorf("saved (-want +got):\n%s", diff)
	}
	got, err := f.Store.IncomingByID(f.Context(), "u")
	f.Must(err)
	if diff := cmp.Diff(want, got); diff != "" || got.Whole() {
		f.Errorf("read (-want +got):\n%s", diff)
	}
	if in = f.saveUpload(registry.UploadPart{ID: "u", N: in.N, Offset: 9, SizeBytes: 9, Keep: registrytest.KeepUploads}); !in.Whole() || in.State != nil {
		f.Errorf("saved %+v, want it whole", in)
	}
	done := registry.Upload{ID: "u", Filename: want.Filename, SizeBytes: 9, Digest: digest, CreatedBy: "somebody"}
	changed := done
	changed.Filename = "other"
	for _, u := range []registry.Upload{done, changed} { // a repeat changes nothing
		f.Must(f.Store.FinishUpload(f.Context(), u))
	}
	done.CreatedAt = f.Clock.Now()
	stored, err := f.Store.UploadByID(f.Context(), "u")
	f.Must(err)
	if diff := cmp.Diff(done, stored); diff != "" {
		f.Errorf("upload (-want +got):\n%s", diff)
	}
	_, err = f.Store.IncomingByID(f.Context(), "u")
	f.Is(err, registry.ErrNotFound)
	_, err = f.Store.TakeUpload(f.Context(), "u", 9)
	f.Is(err, registry.ErrNotFound)
	f.Is(f.Store.DropUpload(f.Context(), "u"), registry.ErrNotFound)
	_, err = f.Store.UploadByID(f.Context(), "unknown")
	f.Is(err, registry.ErrNotFound)
	f.Is(f.Store.FinishUpload(f.Context(), registry.Upload{ID: "unknown"}), registry.ErrNotFound)
}

// uploadBatches: an upload lists its batches, whatever their state, until they are purged.
func uploadBatches(f *fixture) {
	of := func(upload string) (ids []string) {
		all, err := f.Store.BatchesOf(f.Context(), upload)
		f.Must(err)
		for _, it := range all {
			ids = append(ids, it.ID)
		}
		return ids
	}
	for _, id := range []string{"u", "v"} {
		in, err := f.Store.BeginUpload(f.Context(), registry.NewUpload{ID: id, SizeBytes: 0, Keep: registrytest.KeepUploads})
		f.Must(err)
		f.Must(f.Store.FinishUpload(f.Context(), registry.Upload{ID: in.ID}))
	}
	if got := of("u"); len(got) > 0 {
		f.Errorf("batches %v of an upload that was not submitted", got)
	}
	from := func(upload string) func(*registry.Submission) {
		return func(s *registry.Submission) { s.Spec.URL, s.Force = registry.UploadURL(upload), true }
	}
	f.Submit() // of an address
	first := f.Submit(from("u"))
	f.Clock.Pass(time.Second)
	second := f.Submit(from("u"))
	other := f.Submit(from("v"))
	if got := of("u"); !slices.Equal(got, []string{second, first}) {
		f.Errorf("batches %v, want %s and %s", got, second, first)
	}
	f.Confirm(first, registry.ActAbort)
	f.Confirm(first, registry.ActDelete)
	f.CarriedOut()
	f.Command(first, registry.ActPurge, "")
	if got := of("u"); !slices.Equal(got, []string{second}) {
		f.Errorf("batches %v, want %s: the other was purged", got, second)
	}
	if got := of("v"); !slices.Equal(got, []string{other}) {
		f.Errorf("batches %v, want %s", got, other)
	}
	retires := func(upload string, want bool) {
		f.Helper()
		for range 2 { // a repeat changes nothing
			retired, err := f.Store.RetireUpload(f.Context(), upload)
			f.Must(err)
			if retired != want {
				f.Errorf("upload %s retired %v, want %v", upload, retired, want)
			}
		}
	}
	retires("u", false)
	retires("v", false)
	f.Confirm(second, registry.ActAbort)
	retires("u", true)
	s := registrytest.Submission()
	s.Spec.URL, s.Force = registry.UploadURL("u"), true
	_, err := f.Store.Submit(f.Context(), s)
	f.Is(err, registry.ErrNotFound)
	f.Submit(from("v"))
	retires("unknown", true)
	for _, unknown := range []string{"", "x", "u\x00"} {
		if got := of(unknown); len(got) > 0 {
			f.Errorf("batches %v of upload %q", got, unknown)
		}
	}
}

func uploadBegunAgain(f *fixture) {
	f.Begin("u", 9)
	in := f.saveUpload(part(f.takeUpload("u", 0), 3))
	again, err := f.Store.BeginUpload(f.Context(), registry.NewUpload{ID: "u", Filename: "other", SizeBytes: 1, Keep: registrytest.KeepUploads})
	f.Must(err)
	if diff := cmp.Diff(in, again); diff != "" {
		f.Errorf("begun again (-want +got):\n%s", diff)
	}
	f.Must(f.Store.DropUpload(f.Context(), "u"))
	_, err = f.Store.BeginUpload(f.Context(), registry.NewUpload{ID: "u", Keep: registrytest.KeepUploads})
	f.Is(err, registry.ErrTaken)
	f.Begin("v", 1)
	f.Must(f.Store.FinishUpload(f.Context(), registry.Upload{ID: "v"}))
	_, err = f.Store.BeginUpload(f.Context(), registry.NewUpload{ID: "v", Keep: registrytest.KeepUploads})
	f.Is(err, registry.ErrTaken)
}

// uploadFenced: A takes the upload and stops. B takes it and saves. A continues and saves its own
// bytes.
func uploadFenced(f *fixture) {
	f.Begin("u", 9)
	a := f.takeUpload("u", 0)
	b := f.takeUpload("u", 0)
	_, err := f.Store.SaveUpload(f.Context(), part(a, 5))
	f.Is(err, registry.ErrClaimLost)
	f.saveUpload(part(b, 3))
	_, err = f.Store.SaveUpload(f.Context(), part(a, 5))
	f.Is(err, registry.ErrClaimLost)
	// Who comes with an old offset does not get it, and does not take it from who has it.
	if stale := f.takeUpload("u", 0); stale.Offset != 3 || stale.N != b.N {
		f.Errorf("taken at the wrong offset: %+v", stale)
	}
	f.saveUpload(part(b, 9))
}

func uploadTakenAtOnce(f *fixture) {
	f.Begin("u", 100)
	var all sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 8 {
		all.Go(func() {
			in, err := f.Store.TakeUpload(f.Context(), "u", 0)
			if err != nil {
				f.Error(err)
				return
			}
			if in.Offset != 0 {
				return // another one had saved already
			}
			_, err = f.Store.SaveUpload(f.Context(), part(in, 10))
			if err != nil && !errors.Is(err, registry.ErrClaimLost) {
				f.Error(err)
			}
			if err == nil {
				mu.Lock()
				won++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if in, err := f.Store.IncomingByID(f.Context(), "u"); err != nil || in.Offset != 10 || won != 1 {
		f.Errorf("%d saved, and it stands at %d (%v), want one and 10", won, in.Offset, err)
	}
}

func uploadNeverGoesBack(f *fixture) {
	f.Begin("u", 9)
	in := f.saveUpload(part(f.takeUpload("u", 0), 5))
	for _, n := range []int64{-1, 5} { // back, and beyond the end
		_, err := f.Store.SaveUpload(f.Context(), part(in, n))
		f.Is(err, registry.ErrClaimLost)
	}
	other := part(in, 1)
	for _, size := range []int64{8, 10, -1} {
		other.SizeBytes = size
		_, err := f.Store.SaveUpload(f.Context(), other)
		f.Is(err, registry.ErrInvalid)
	}
	if got, err := f.Store.IncomingByID(f.Context(), "u"); err != nil || got.Offset != 5 || got.SizeBytes != 9 {
		f.Errorf("it stands at %+v (%v)", got, err)
	}
}

func uploadDropped(f *fixture) {
	f.Begin("u", 9)
	in := f.takeUpload("u", 0)
	for range 2 {
		f.Must(f.Store.DropUpload(f.Context(), "u"))
	}
	_, err := f.Store.SaveUpload(f.Context(), part(in, 1))
	f.Is(err, registry.ErrClaimLost)
	_, err = f.Store.IncomingByID(f.Context(), "u")
	f.Is(err, registry.ErrNotFound)
	f.Is(f.Store.FinishUpload(f.Context(), registry.Upload{ID: "u"}), registry.ErrNotFound)
	f.dropped(registry.DroppedUpload{ID: "u"})
	f.Clock.Pass(time.Hour)
	f.dropped(registry.DroppedUpload{ID: "u", Over: true})
	for range 2 {
		f.Must(f.Store.ForgetUpload(f.Context(), "u"))
	}
	f.dropped()
	f.Is(f.Store.DropUpload(f.Context(), "u"), registry.ErrNotFound)
	f.Is(f.Store.FinishUpload(f.Context(), registry.Upload{ID: "u"}), registry.ErrNotFound)
	f.Begin("v", 1)
	f.Must(f.Store.ForgetUpload(f.Context(), "v")) // it was not given up
	f.takeUpload("v", 0)
}

func (f *fixture) dropped(want ...registry.DroppedUpload) {
	f.Helper()
	got, err := f.Store.DroppedUploads(f.Context())
	f.Must(err)
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		f.Errorf("given up (-want +got):\n%s", diff)
	}
}

func uploadExpires(f *fixture) {
	f.Begin("u", 9)
	f.Begin("v", 9)
	f.Clock.Pass(registrytest.KeepUploads / 2)
	in := f.takeUpload("v", 0)
	f.saveUpload(part(in, 1))
	f.Clock.Pass(registrytest.KeepUploads / 2)
	_, err := f.Store.IncomingByID(f.Context(), "u")
	f.Is(err, registry.ErrNotFound)
	_, err = f.Store.TakeUpload(f.Context(), "u", 0)
	f.Is(err, registry.ErrNotFound)
	f.dropped(registry.DroppedUpload{ID: "u"})
	f.saveUpload(part(in, 2))
}

func uploadsListed(f *fixture) {
	ids := func(of string) (out []string) {
		f.Helper()
		list, err := f.Store.IncomingOf(f.Context(), of)
		f.Must(err)
		for _, in := range list {
			out = append(out, in.ID)
		}
		return out
	}
	f.Begin("a", 1)
	f.Clock.Pass(time.Second)
	f.Begin("b", 1)
	f.Clock.Pass(time.Second)
	_, err := f.Store.BeginUpload(f.Context(), registry.NewUpload{ID: "c", CreatedBy: "another", Keep: registrytest.KeepUploads})
	f.Must(err)
	f.Begin("d", 1)
	f.Must(f.Store.DropUpload(f.Context(), "d"))
	f.Begin("e", 1)
	f.Must(f.Store.FinishUpload(f.Context(), registry.Upload{ID: "e"}))
	if diff := cmp.Diff([]string{"b", "a"}, ids("somebody")); diff != "" {
		f.Errorf("somebody's (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c", "b", "a"}, ids("")); diff != "" {
		f.Errorf("all (-want +got):\n%s", diff)
	}
}
