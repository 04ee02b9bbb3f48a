package searchtest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func holdingsTests() tests {
	return tests{"files_count_by_their_last_check_and_versions_by_copies": holdingsCounted}
}

func holdingsCounted(f *fixture) {
	if h, err := f.Store.Holdings(f.Context()); err != nil || h.Files != 0 {
		f.Errorf("an empty Registry has %+v, %v", h, err)
	}
	f.Object()
	if h, err := f.Store.Holdings(f.Context()); err != nil || h.Files == 0 {
		f.Errorf("the first object is not counted at once: %+v, %v", h, err)
	}
	f.Clock.Pass(40 * 24 * time.Hour)
	f.Object()
	h, err := f.Store.Holdings(f.Context())
	f.Must(err)
	want := registry.Holdings{
		FixityDays: 90,
		Files:      h.Files, At: f.Clock.Now(), Rooms: h.Rooms, Copies: []registry.CopyCount{{Copies: 1, Versions: 2}},
		Checked: []registry.CheckedWithin{{Days: 30, Files: h.Files / 2}, {Days: 90, Files: h.Files}, {Days: 365, Files: h.Files}},
	}
	if diff := cmp.Diff(want, h); diff != "" || h.Files < 2 {
		f.Errorf("%d files (-want +got):\n%s", h.Files, diff)
	}
	f.Object()
	if again, err := f.Store.Holdings(f.Context()); err != nil || again.Files != h.Files {
		f.Errorf("counted again at once: %+v, %v", again, err)
	}
	f.Clock.Pass(11 * time.Minute)
	if again, err := f.Store.Holdings(f.Context()); err != nil || again.Files <= h.Files {
		f.Errorf("not counted again: %+v, %v", again, err)
	}
	f.Clock.Pass(60 * 24 * time.Hour) // the first object's check is 100 days ago
	h, err = f.Store.Holdings(f.Context())
	f.Must(err)
	if h.Late != want.Files/2 {
		f.Errorf("%d files are late, want %d", h.Late, want.Files/2)
	}
	c := f.Provisioning(1)[0]
	f.Must(f.Store.Reserve(f.Context(), c.Lease, registry.Reservation{Volume: registry.DefaultStaging, Bytes: 500, Total: 10_000, Threshold: 0.8}))
	h, err = f.Store.Holdings(f.Context())
	f.Must(err)
	if len(h.Rooms) != 1 || h.Rooms[0] != (registry.Room{Volume: registry.DefaultStaging, Items: 1, Coming: 500}) {
		f.Errorf("rooms %+v", h.Rooms)
	}
}
