package registrytest

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast/holdfast/registry"
)

func profileTests() []test {
	return []test{
		{"each_change_is_a_version", profileVersions},
		{"versions_are_paged", profilePages},
		{"events_keep_no_address", profileMasked},
		{"the_same_profile_is_no_version", sameProfile},
		{"saved_over_the_version_that_was_meant", savedOver},
		{"of_two_admins_one_is_told", savedAtOnce},
		{"a_batch_keeps_the_version_it_began_with", versionIsFrozen},
		{"a_graph_keeps_the_version_it_was_prepared_with", versionOfGraph},
		{"a_key_is_answered_whatever_the_version", keyOverVersions},
	}
}

// profileMasked: everybody is told of a profile's change, for ever, but not whose mail addresses it has, nor where in a host its
// callback is; the version has them.
func profileMasked(f *fixture) {
	p := demoAs("Demo")
	p.Mail = &registry.MailRules{To: []string{"Ann Smith <ann.smith@example.org>"}, Safe: true}
	p.Callback = &registry.Callback{URL: "https://receiver.test/secret/{job}", GoesOn: true}
	f.collection("masked", p)
	f.collection("masked", p) // a repeat changes nothing, what it is compared with is whole
	if diff := cmp.Diff([]registry.ProfileVersion{{Collection: "masked", Version: 1, Profile: p}}, f.versions("masked"),
		cmpopts.IgnoreFields(registry.ProfileVersion{}, "Actor", "CreatedAt")); diff != "" {
		f.Errorf("versions (-want +got):\n%s", diff)
	}
	events, err := f.Events(f.Context(), "masked", 0, 500)
	f.must(err)
	if len(events) != 1 {
		f.Fatalf("%d events, want one", len(events))
	}
	var told registry.Profile
	f.must(json.Unmarshal(events[0].Data, &told))
	want := demoAs("Demo")
	want.Mail = &registry.MailRules{To: []string{"a***@example.org"}, Safe: true}
	want.Callback = &registry.Callback{URL: "https://receiver.test", GoesOn: true}
	if diff := cmp.Diff(want, told); diff != "" {
		f.Errorf("the event (-want +got):\n%s", diff)
	}
}

// demoAs is the demo collection's profile under another name.
func demoAs(name string) registry.Profile { return registry.Profile{Name: name, Owner: owner} }

func (f *fixture) versions(name string) []registry.ProfileVersion {
	f.Helper()
	all, err := f.ProfileVersions(f.Context(), name, 0, 100)
	f.must(err)
	return all
}

// noChange checks that what do does leaves a collection, its versions and the feed as they are.
func (f *fixture) noChange(name string, do func()) {
	f.Helper()
	type all struct {
		Collection []registry.Collection
		Versions   []registry.ProfileVersion
		Events     []registry.Event
	}
	look := func() (a all) {
		var err error
		a.Collection, err = f.Collections(f.Context())
		f.must(err)
		a.Versions = f.versions(name)
		a.Events, err = f.Events(f.Context(), "", 0, 500)
		f.must(err)
		return a
	}
	before := look()
	f.clock.pass(time.Minute)
	do()
	if diff := cmp.Diff(before, look()); diff != "" {
		f.Errorf("changed (-before +after):\n%s", diff)
	}
}

func profileVersions(f *fixture) {
	first := f.clock.now()
	two := demoAs("Second")
	two.BagProfile, two.Mail = json.RawMessage(`{"a":1}`), &registry.MailRules{To: []string{"a@example.org"}, Safe: true}
	f.clock.pass(time.Hour)
	f.must(f.PutCollection(f.Context(), registry.Collection{Mnemonic: mnemonic, Profile: two}, "another admin"))
	f.clock.pass(time.Hour)
	f.collection(mnemonic, demoAs("Demo")) // back to the first is the third
	want := []registry.ProfileVersion{
		{Collection: mnemonic, Version: 3, Profile: demoAs("Demo"), Actor: "admin", CreatedAt: first.Add(2 * time.Hour)},
		{Collection: mnemonic, Version: 2, Profile: two, Actor: "another admin", CreatedAt: first.Add(time.Hour)},
		{Collection: mnemonic, Version: 1, Profile: demoAs("Demo"), Actor: "admin", CreatedAt: first},
	}
	if diff := cmp.Diff(want, f.versions(mnemonic)); diff != "" {
		f.Errorf("versions (-want +got):\n%s", diff)
	}
	c, err := f.Collection(f.Context(), mnemonic)
	f.must(err)
	if c.Version != 3 || c.Profile.Name != "Demo" || !c.CreatedAt.Equal(first) {
		f.Errorf("collection %+v", c)
	}
	events, err := f.Events(f.Context(), mnemonic, 0, 10)
	f.must(err)
	var told []string
	for _, e := range events {
		var data struct {
			Name    string `json:"name"`
			Version int    `json:"version"`
		}
		f.must(json.Unmarshal(e.Data, &data))
		told = append(told, fmt.Sprintf("%s %d %s by %s", e.Type, data.Version, data.Name, e.Actor))
	}
	if diff := cmp.Diff([]string{"collection 1 Demo by admin", "collection 2 Second by another admin", "collection 3 Demo by admin"}, told); diff != "" {
		f.Errorf("events (-want +got):\n%s", diff)
	}
	_, err = f.ProfileVersions(f.Context(), "unknown", 0, 1)
	f.is(err, registry.ErrNotFound)
}

func profilePages(f *fixture) {
	for i := 2; i <= 7; i++ {
		f.collection(mnemonic, demoAs(fmt.Sprint(i)))
	}
	f.collection("other", demoAs("other"))
	var got []int
	for before := 0; before != 1; {
		page, err := f.ProfileVersions(f.Context(), mnemonic, before, 3)
		f.must(err)
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
	if page, err := f.ProfileVersions(f.Context(), mnemonic, 1, 3); err != nil || len(page) != 0 {
		f.Errorf("below the first: %+v, %v", page, err)
	}
}

func sameProfile(f *fixture) {
	p := demoAs("Demo")
	p.BagProfile, p.Collections = json.RawMessage(`{"a": 1}`), nil
	f.collection(mnemonic, p)
	f.noChange(mnemonic, func() {
		p.BagProfile, p.Collections = json.RawMessage(`{"a":1}`), []string{}
		f.must(f.PutCollection(f.Context(), registry.Collection{Mnemonic: mnemonic, Profile: p}, "somebody else"))
	})
}

// over saves a profile over a version.
func (f *fixture) over(name string, version int, p registry.Profile) error {
	f.Helper()
	return f.PutCollection(f.Context(), registry.Collection{Mnemonic: name, Profile: p, Version: version}, "admin")
}

func savedOver(f *fixture) {
	refused := func(err error, want registry.VersionError) {
		f.Helper()
		var got *registry.VersionError
		if !errors.As(err, &got) || *got != want {
			f.Errorf("error %v, want %+v", err, want)
		}
	}
	f.must(f.over(mnemonic, 1, demoAs("2")))
	f.noChange(mnemonic, func() {
		refused(f.over(mnemonic, 1, demoAs("other")), registry.VersionError{Mnemonic: mnemonic, Want: 1, Have: 2})
		refused(f.over(mnemonic, 3, demoAs("other")), registry.VersionError{Mnemonic: mnemonic, Want: 3, Have: 2})
		refused(f.over(mnemonic, registry.NoVersion, demoAs("other")), registry.VersionError{Mnemonic: mnemonic, Want: registry.NoVersion, Have: 2})
		refused(f.over(mnemonic, registry.NoVersion, demoAs("2")), registry.VersionError{Mnemonic: mnemonic, Want: registry.NoVersion, Have: 2})
		refused(f.over("new", 1, demoAs("new")), registry.VersionError{Mnemonic: "new", Want: 1})
		f.must(f.over(mnemonic, 1, demoAs("2"))) // its answer was lost
		f.must(f.over(mnemonic, 2, demoAs("2")))
	})
	f.must(f.over("new", registry.NoVersion, demoAs("new")))
	f.must(f.over(mnemonic, registry.AnyVersion, demoAs("3")))
	for name, want := range map[string]int{"new": 1, mnemonic: 3} {
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
		f.collection(mnemonic, registry.Profile{Name: fmt.Sprintf("Changed %d", changes), Owner: "ark:/99999/other", Scan: changes%2 == 0})
	}
	frozen := func(id string) {
		f.Helper()
		if s := f.spec(id); s.ProfileVersion != 1 || s.Profile.Name != "Demo" || s.Profile.Owner != owner || s.Profile.Scan {
			f.Errorf("%s has version %d, %+v, want the first", f.item(id).Action, s.ProfileVersion, s.Profile)
		}
	}
	batch := f.submit()
	change()
	f.retry(batch, attempts)
	f.clock.pass(2 * time.Hour)
	change()
	c := f.takeItem(batch)
	jobs := newJobs(2)
	for i := range jobs {
		url := jobs[i].Spec.URL
		f.must(json.Unmarshal(c.Item.Spec, &jobs[i].Spec)) // as expand does it
		jobs[i].Spec.URL, jobs[i].Spec.Type = url, registry.FileType
	}
	_, err := f.AddJobs(f.Context(), c.Lease, jobs)
	f.must(err)
	f.done(c.Lease)
	ids := f.children(batch)
	for _, id := range ids {
		for it := f.item(id); !it.Status.Settled(); it = f.item(id) {
			change()
			frozen(id)
			if it.Stage == registry.Download && it.RetryCount == 0 && id == ids[0] {
				f.fail(id, registry.SystemFault)
				f.command(id, registry.ActRequeue, registry.Estimate)
				continue
			}
			f.done(f.takeItem(id).Lease)
		}
		f.state(id, registry.StateCompleted)
		frozen(id)
	}
	frozen(batch)
	later := f.submit()
	if s := f.spec(later); s.ProfileVersion != changes || s.Profile.Name != fmt.Sprintf("Changed %d", changes) {
		f.Errorf("a later batch has version %d, %+v, want %d", s.ProfileVersion, s.Profile, changes)
	}
	if got := f.versions(mnemonic); len(got) != changes || got[changes-1].Profile.Name != "Demo" {
		f.Errorf("%d versions, want %d", len(got), changes)
	}
}

func versionOfGraph(f *fixture) {
	graph, first := f.prepare("", node("a"))
	f.collection(mnemonic, demoAs("Changed"))
	_, second := f.prepare(graph, node("b"))
	f.must(f.Seal(f.Context(), graph, "depositor"))
	for id, want := range map[string]int{first["a"]: 1, second["b"]: 2} {
		if got := f.spec(id).ProfileVersion; got != want {
			f.Errorf("version=%d, want %d", got, want)
		}
	}
}

func keyOverVersions(f *fixture) {
	keyed := func(s *registry.Submission) { s.IdempotencyKey, s.Spec.ProfileVersion = "k", 7 }
	first := f.submit(keyed)
	f.collection(mnemonic, demoAs("Changed"))
	if again := f.submit(keyed); again != first {
		f.Errorf("the key is answered with %s, want %s", again, first)
	}
	if got := f.spec(first).ProfileVersion; got != 1 {
		f.Errorf("version=%d, want 1, which only the Registry says", got)
	}
}
