package deposittest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func profileTests() tests {
	return tests{
		"each_change_is_a_version":                       profileVersions,
		"versions_are_paged":                             profilePages,
		"events_keep_no_address":                         profileMasked,
		"the_same_profile_is_no_version":                 sameProfile,
		"saved_over_the_version_that_was_meant":          savedOver,
		"of_two_admins_one_is_told":                      savedAtOnce,
		"a_batch_keeps_the_version_it_began_with":        versionIsFrozen,
		"a_graph_keeps_the_version_it_was_prepared_with": versionOfGraph,
		"a_key_is_answered_whatever_the_version":         keyOverVersions,
	}
}

// profileMasked: events about a profile's change hide its mail addresses and the path of its
// callback. The version has them.
func profileMasked(f *fixture) {
	p := demoAs("Demo")
	p.Mail = &registry.MailRules{To: []string{"Ann Smith <ann.smith@example.org>"}, Safe: true}
	p.Callback = &registry.Callback{URL: "https://receiver.test/secret/{job}", GoesOn: true}
	f.Collection("masked", p)
	f.Collection("masked", p) // a repeat changes nothing, what it is compared with is whole
	if diff := cmp.Diff([]registry.ProfileVersion{{Collection: "masked", Version: 1, Profile: p}}, f.versions("masked"),
		cmpopts.IgnoreFields(registry.ProfileVersion{}, "Actor", "CreatedAt")); diff != "" {
		f.Errorf("versions (-want +got):\n%s", diff)
	}
	events, err := f.Store.Events(f.Context(), "masked", 0, 500)
	f.Must(err)
	if len(events) != 1 {
		f.Fatalf("%d events, want one", len(events))
	}
	var told registry.Profile
	f.Must(json.Unmarshal(events[0].Data, &told))
	want := demoAs("Demo")
	want.Mail = &registry.MailRules{To: []string{"a***@example.org"}, Safe: true}
	want.Callback = &registry.Callback{URL: "https://receiver.test", GoesOn: true}
	if diff := cmp.Diff(want, told); diff != "" {
		f.Errorf("the event (-want +got):\n%s", diff)
	}
}

// demoAs returns the demo collection's profile under another name.
func demoAs(name string) registry.Profile {
	return registry.Profile{Name: name, Owner: registrytest.Owner, DigestAlgorithm: registry.DefaultDigest}
}

func (f *fixture) versions(name string) []registry.ProfileVersion {
	f.Helper()
	all, err := f.Store.ProfileVersions(f.Context(), name, 0, 100)
	f.Must(err)
	return all
}

// noChange checks that do leaves a collection, its versions and the feed unchanged.
func (f *fixture) noChange(name string, do func()) {
	f.Helper()
	type all struct {
		Collection []registry.Collection
		Versions   []registry.ProfileVersion
		Events     []registry.Event
	}
	look := func() (a all) {
		var err error
		a.Collection, err = f.Store.Collections(f.Context())
		f.Must(err)
		a.Versions = f.versions(name)
		a.Events, err = f.Store.Events(f.Context(), "", 0, 500)
		f.Must(err)
		return a
	}
	before := look()
	f.Clock.Pass(time.Minute)
	do()
	if diff := cmp.Diff(before, look()); diff != "" {
		f.Errorf("changed (-before +after):\n%s", diff)
	}
}

func profileVersions(f *fixture) {
	first := f.Clock.Now()
	two := demoAs("Second")
	two.BagProfile, two.Mail = json.RawMessage(`{"a":1}`), &registry.MailRules{To: []string{"a@example.org"}, Safe: true}
	f.Clock.Pass(time.Hour)
	f.Must(f.Store.PutCollection(f.Context(), registry.Collection{Mnemonic: registrytest.Mnemonic, Profile: two}, "another admin"))
	f.Clock.Pass(time.Hour)
	f.Collection(registrytest.Mnemonic, demoAs("Demo")) // back to the first is the third
	want := []registry.ProfileVersion{
		{Collection: registrytest.Mnemonic, Version: 3, Profile: demoAs("Demo"), Actor: "admin", CreatedAt: first.Add(2 * time.Hour)},
		{Collection: registrytest.Mnemonic, Version: 2, Profile: two, Actor: "another admin", CreatedAt: first.Add(time.Hour)},
		{Collection: registrytest.Mnemonic, Version: 1, Profile: demoAs("Demo"), Actor: "admin", CreatedAt: first},
	}
	if diff := cmp.Diff(want, f.versions(registrytest.Mnemonic)); diff != "" {
		f.Errorf("versions (-want +got):\n%s", diff)
	}
	c, err := f.Store.Collection(f.Context(), registrytest.Mnemonic)
	f.Must(err)
	if c.Version != 3 || c.Profile.Name != "Demo" || !c.CreatedAt.Equal(first) {
		f.Errorf("collection %+v", c)
	}
	events, err := f.Store.Events(f.Context(), registrytest.Mnemonic, 0, 10)
	f.Must(err)
	var told []string
	for _, e := range events {
		var data struct {
			Name    string `json:"name"`
			Version int    `json:"version"`
		}
		f.Must(json.Unmarshal(e.Data, &data))
		told = append(told, fmt.Sprintf("%s %d %s by %s", e.Type, data.Version, data.Name, e.Actor))
	}
	if diff := cmp.Diff([]string{"collection 1 Demo by admin", "collection 2 Second by another admin", "collection 3 Demo by admin"}, told); diff != "" {
		f.Errorf("events (-want +got):\n%s", diff)
	}
	_, err = f.Store.ProfileVersions(f.Context(), "unknown", 0, 1)
	f.Is(err, registry.ErrNotFound)
}

func profilePages(f *fixture) {
	for i := 2; i <= 7; i++ {
		f.Collection(registrytest.Mnemonic, demoAs(fmt.Sprint(i)))
	}
	f.Collection("other", demoAs("other"))
	var got []int
	for before := 0; before != 1; {
		page, err := f.Store.ProfileVersions(f.Context(), registrytest.Mnemonic, before, 3)
		f.Must(err)
		if len(page) == 0 || len(page) > 3 {
			f.Fatalf("a page of %d below %d", len(page), before)
		}
		for _, v := range page {
			got = append(got, v.Version)
			before = v.Version
		}
	}
	if diff := cmp.Diff([]int{7, 6, 5, 4, 3, 2, 1}, got); diff != "" {
		f.Errorf("versions (-want +got):\n%s", diff)
	}
	if page, err := f.Store.ProfileVersions(f.Context(), registrytest.Mnemonic, 1, 3); err != nil || len(page) != 0 {
		f.Errorf("below the first: %+v, %v", page, err)
	}
}

func sameProfile(f *fixture) {
	p := demoAs("Demo")
	p.BagProfile, p.Collections = json.RawMessage(`{"a": 1}`), nil
	f.Collection(registrytest.Mnemonic, p)
	f.noChange(registrytest.Mnemonic, func() {
		p.BagProfile, p.Collections = json.RawMessage(`{"a":1}`), []string{}
		f.Must(f.Store.PutCollection(f.Context(), registry.Collection{Mnemonic: registrytest.Mnemonic, Profile: p}, "somebody else"))
	})
}

// over saves a profile over a version.
func (f *fixture) over(name string, version int, p registry.Profile) error {
	f.Helper()
	return f.Store.PutCollection(f.Context(), registry.Collection{Mnemonic: name, Profile: p, Version: version}, "admin")
}

func savedOver(f *fixture) {
	refused := func(err error, want registry.VersionError) {
		f.Helper()
		var got *registry.VersionError
		if !errors.As(err, &got) || *got != want {
			f.Errorf("error %v, want %+v", err, want)
		}
	}
	f.Must(f.over(registrytest.Mnemonic, 1, demoAs("2")))
	f.noChange(registrytest.Mnemonic, func() {
		refused(f.over(registrytest.Mnemonic, 1, demoAs("other")), registry.VersionError{Mnemonic: registrytest.Mnemonic, Want: 1, Have: 2})
		refused(f.over(registrytest.Mnemonic, 3, demoAs("other")), registry.VersionError{Mnemonic: registrytest.Mnemonic, Want: 3, Have: 2})
		refused(f.over(registrytest.Mnemonic, registry.NoVersion, demoAs("other")), registry.VersionError{Mnemonic: registrytest.Mnemonic, Want: registry.NoVersion, Have: 2})
		refused(f.over(registrytest.Mnemonic, registry.NoVersion, demoAs("2")), registry.VersionError{Mnemonic: registrytest.Mnemonic, Want: registry.NoVersion, Have: 2})
		refused(f.over("new", 1, demoAs("new")), registry.VersionError{Mnemonic: "new", Want: 1})
		f.Must(f.over(registrytest.Mnemonic, 1, demoAs("2"))) // its answer was lost
		f.Must(f.over(registrytest.Mnemonic, 2, demoAs("2")))
	})
	f.Must(f.over("new", registry.NoVersion, demoAs("new")))
	f.Must(f.over(registrytest.Mnemonic, registry.AnyVersion, demoAs("3")))
	for name, want := range map[string]int{"new": 1, registrytest.Mnemonic: 3} {
		if got := f.versions(name); len(got) != want || got[0].Version != want {
			f.Errorf("%s has versions %+v, want %d", name, got, want)
		}
	}
}

func savedAtOnce(f *fixture) {
	const admins = 8
	for _, over := range []int{registry.NoVersion, 1} {
		var mu sync.Mutex
		saved := map[string]bool{}
		var all sync.WaitGroup
		for i := range admins {
			all.Go(func() {
				p := demoAs(fmt.Sprintf("over %d by %d", over, i))
				err := f.over("shared", over, p)
				mu.Lock()
				defer mu.Unlock()
				if saved[p.Name] = err == nil; err != nil && !errors.As(err, new(*registry.VersionError)) {
					f.Error(err)
				}
			})
		}
		all.Wait()
		winners := 0
		for _, ok := range saved {
			if ok {
				winners++
			}
		}
		got := f.versions("shared")
		if winners != 1 || len(got) != max(1, over+1) || !saved[got[0].Profile.Name] {
			f.Fatalf("over %d: %d were saved, versions %+v", over, winners, got)
		}
	}
}

// versionIsFrozen changes the profile before every step of a batch and of its job.
func versionIsFrozen(f *fixture) {
	changes := 1
	change := func() {
		f.Helper()
		changes++
		f.Collection(registrytest.Mnemonic, registry.Profile{Name: fmt.Sprintf("Changed %d", changes), Owner: "ark:/99999/other", Scan: changes%2 == 0})
	}
	frozen := func(id string) {
		f.Helper()
		if s := f.Spec(id); s.ProfileVersion != 1 || s.Profile.Name != "Demo" || s.Profile.Owner != registrytest.Owner || s.Profile.Scan {
			f.Errorf("%s has version %d, %+v, want the first", f.Item(id).Action, s.ProfileVersion, s.Profile)
		}
	}
	batch := f.Submit()
	change()
	f.Retry(batch, registrytest.Attempts)
	f.Clock.Pass(2 * time.Hour)
	change()
	c := f.TakeItem(batch)
	jobs := registrytest.NewJobs(2)
	for i := range jobs {
		url := jobs[i].Spec.URL
		f.Must(json.Unmarshal(c.Item.Spec, &jobs[i].Spec)) // as expand does it
		jobs[i].Spec.URL, jobs[i].Spec.Type = url, registry.FileType
	}
	_, err := f.Store.AddJobs(f.Context(), c.Lease, jobs)
	f.Must(err)
	f.Done(c.Lease)
	ids := f.Children(batch)
	for _, id := range ids {
		for it := f.Item(id); !it.Status.Settled(); it = f.Item(id) {
			change()
			frozen(id)
			if it.Stage == registry.Download && it.RetryCount == 0 && id == ids[0] {
				f.FailItem(id, registry.SystemFault)
				f.Command(id, registry.ActRequeue, registry.Estimate)
				continue
			}
			f.Done(f.TakeItem(id).Lease)
		}
		f.State(id, registry.StateCompleted)
		frozen(id)
	}
	frozen(batch)
	later := f.Submit()
	if s := f.Spec(later); s.ProfileVersion != changes || s.Profile.Name != fmt.Sprintf("Changed %d", changes) {
		f.Errorf("a later batch has version %d, %+v, want %d", s.ProfileVersion, s.Profile, changes)
	}
	if got := f.versions(registrytest.Mnemonic); len(got) != changes || got[changes-1].Profile.Name != "Demo" {
		f.Errorf("%d versions, want %d", len(got), changes)
	}
}

func versionOfGraph(f *fixture) {
	graph, first := f.Prepare("", registrytest.Node("a"))
	f.Collection(registrytest.Mnemonic, demoAs("Changed"))
	_, second := f.Prepare(graph, registrytest.Node("b"))
	f.Must(f.Store.Seal(f.Context(), graph, "depositor"))
	for id, want := range map[string]int{first["a"]: 1, second["b"]: 2} {
		if got := f.Spec(id).ProfileVersion; got != want {
			f.Errorf("version=%d, want %d", got, want)
		}
	}
}

func keyOverVersions(f *fixture) {
	keyed := func(s *registry.Submission) { s.IdempotencyKey, s.Spec.ProfileVersion = "k", 7 }
	first := f.Submit(keyed)
	f.Collection(registrytest.Mnemonic, demoAs("Changed"))
	if again := f.Submit(keyed); again != first {
		f.Errorf("the key is answered with %s, want %s", again, first)
	}
	if got := f.Spec(first).ProfileVersion; got != 1 {
		f.Errorf("version=%d, want 1, which only the Registry says", got)
	}
}
