package accounttest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func viewTests() tests {
	return tests{
		"what_is_kept":                         viewKept,
		"a_name_is_used_once_by_a_person":      viewNames,
		"is_replaced_only_as_it_was_read":      viewVersions,
		"two_save_at_once":                     viewsRace,
		"has_bounds":                           viewBounds,
		"only_changes_of_shared_ones_are_told": viewEvents,
	}
}

func view(owner, name, query string) registry.View {
	return registry.View{Owner: owner, Name: name, Query: query}
}

func (f *fixture) addView(v registry.View) registry.View {
	f.Helper()
	out, err := f.Store.AddView(f.Context(), v)
	f.Must(err)
	return out
}

// viewsOf returns the names of the views that a person sees, with those of their owners.
func (f *fixture) viewsOf(owner string) (names []string) {
	f.Helper()
	all, err := f.Store.Views(f.Context(), owner)
	f.Must(err)
	for _, v := range all {
		names = append(names, v.Owner+"/"+v.Name)
	}
	return names
}

func viewKept(f *fixture) {
	want := registry.View{Owner: "ann", Name: "Überfällig – \"x\"", Query: `state:failed "two words"`, Columns: []string{"size", "by"}, Oldest: true, Shared: true}
	got := f.addView(want)
	want.ID, want.Version, want.CreatedAt, want.ChangedAt = got.ID, 1, f.Clock.Now(), f.Clock.Now()
	read, err := f.Store.View(f.Context(), got.ID)
	f.Must(err)
	if diff := cmp.Diff(want, read); diff != "" || got.ID == "" {
		f.Errorf("view (-want +got):\n%s", diff)
	}
	f.addView(view("ann", "b", ""))
	f.addView(view("ann", "a", "state:held"))
	f.addView(view("bob", "a", "state:failed"))
	shared := view("bob", "z", "state:failed")
	shared.Shared = true
	f.addView(shared)
	if got, want := f.viewsOf("ann"), []string{"ann/a", "ann/b", "ann/" + want.Name, "bob/z"}; !sameNames(got, want) || got[3] != "bob/z" {
		f.Errorf("ann sees %q, want %q", got, want)
	}
	if got, want := f.viewsOf("carl"), []string{"ann/" + want.Name, "bob/z"}; !sameNames(got, want) {
		f.Errorf("carl sees %q, want %q", got, want)
	}
	f.Clock.Pass(time.Second)
	edited := read
	edited.Name, edited.Query, edited.Columns, edited.Oldest, edited.Shared = "other", "", nil, false, false
	read, err = f.Store.EditView(f.Context(), edited)
	f.Must(err)
	edited.Version, edited.ChangedAt = 2, f.Clock.Now()
	if diff := cmp.Diff(edited, read); diff != "" {
		f.Errorf("edited (-want +got):\n%s", diff)
	}
	f.Must(f.Store.RemoveView(f.Context(), read.ID, "ann"))
	_, err = f.Store.View(f.Context(), read.ID)
	f.Is(err, registry.ErrNotFound)
	f.Is(f.Store.RemoveView(f.Context(), read.ID, "ann"), registry.ErrNotFound)
	_, err = f.Store.EditView(f.Context(), read)
	f.Is(err, registry.ErrNotFound)
}

// sameNames compares without order: databases sort letters differently.
func sameNames(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

func viewNames(f *fixture) {
	first := f.addView(view("ann", "mine", "state:failed"))
	if again := f.addView(view("ann", "mine", "state:failed")); again.ID != first.ID || again.Version != 1 {
		f.Errorf("saved twice: %+v, then %+v", first, again)
	}
	_, err := f.Store.AddView(f.Context(), view("ann", "mine", "state:held"))
	f.Is(err, registry.ErrViewExists)
	second := f.addView(view("ann", "other", ""))
	second.Name = "mine"
	_, err = f.Store.EditView(f.Context(), second)
	f.Is(err, registry.ErrViewExists)
	f.addView(view("bob", "mine", ""))
	first.Owner = "bob"
	_, err = f.Store.EditView(f.Context(), first)
	f.Is(err, registry.ErrNotFound)
}

func viewVersions(f *fixture) {
	v := f.addView(view("ann", "mine", "state:failed"))
	v.Query = "state:held"
	_, err := f.Store.EditView(f.Context(), v)
	f.Must(err)
	again, err := f.Store.EditView(f.Context(), v) // its answer was lost
	f.Must(err)
	if again.Version != 2 {
		f.Errorf("a repeat: %+v", again)
	}
	v.Query = "state:completed"
	_, err = f.Store.EditView(f.Context(), v)
	f.Is(err, registry.ErrViewChanged)
	v.Version = 0
	last, err := f.Store.EditView(f.Context(), v)
	f.Must(err)
	if last.Version != 3 || last.Query != "state:completed" {
		f.Errorf("whichever is there: %+v", last)
	}
}

// viewsRace saves under one name from many places at once: one of them wins, each edit of what was read
// too.
func viewsRace(f *fixture) {
	const n = 8
	at := func(each func(i int) error) (won int) {
		errs := make([]error, n)
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { errs[i] = each(i) })
		}
		all.Wait()
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, registry.ErrViewExists) && !errors.Is(err, registry.ErrViewChanged):
				f.Error(err)
			}
		}
		return won
	}
	if won := at(func(i int) error {
		_, err := f.Store.AddView(f.Context(), view("ann", "mine", fmt.Sprintf("priority:%d", i)))
		return err
	}); won != 1 {
		f.Errorf("%d of %d saved under one name", won, n)
	}
	all, err := f.Store.Views(f.Context(), "ann")
	f.Must(err)
	if len(all) != 1 {
		f.Fatalf("views %+v", all)
	}
	if won := at(func(i int) error {
		v := all[0]
		v.Query = fmt.Sprintf("priority:>%d", i)
		_, err := f.Store.EditView(f.Context(), v)
		return err
	}); won != 1 {
		f.Errorf("%d of %d changed the same version", won, n)
	}
}

func viewBounds(f *fixture) {
	long := strings.Repeat("x", 65)
	for name, v := range map[string]registry.View{
		"no name": view("ann", "", ""), "a long name": view("ann", long, ""), "spaces": view("ann", " x", ""), "a control character": view("ann", "a\nb", ""),
		"no owner": view("", "x", ""), "a long query": view("ann", "x", strings.Repeat("x ", registry.MaxQueryBytes)),
		"a column that is no word": {Owner: "ann", Name: "x", Columns: []string{"a,b"}}, "many columns": {Owner: "ann", Name: "x", Columns: strings.Fields(strings.Repeat("a ", 21))},
	} {
		if _, err := f.Store.AddView(f.Context(), v); !errors.Is(err, registry.ErrInvalid) {
			f.Errorf("%s: %v", name, err)
		}
		v.ID = "x"
		if _, err := f.Store.EditView(f.Context(), v); !errors.Is(err, registry.ErrInvalid) {
			f.Errorf("%s, edited: %v", name, err)
		}
	}
	for i := range registry.MostViews {
		f.addView(view("ann", fmt.Sprint("v", i), ""))
	}
	_, err := f.Store.AddView(f.Context(), view("ann", "one more", ""))
	f.Is(err, registry.ErrTooManyViews)
	f.addView(view("bob", "one more", ""))
}

func viewEvents(f *fixture) {
	v := f.addView(view("ann", "mine", "state:failed"))
	v.Query = "state:held"
	v, err := f.Store.EditView(f.Context(), v)
	f.Must(err)
	v.Shared = true
	v, err = f.Store.EditView(f.Context(), v)
	f.Must(err)
	f.Must(f.Store.RemoveView(f.Context(), v.ID, "root"))
	own := f.addView(view("ann", "mine", "state:failed"))
	f.Must(f.Store.RemoveView(f.Context(), own.ID, "ann"))
	list, err := f.Store.Audit(f.Context(), registry.AuditQuery{Types: []string{registry.EventViewSet, registry.EventViewRemoved}})
	f.Must(err)
	var got []string
	for _, e := range list.Rows {
		got = append(got, fmt.Sprint(e.Type, " by ", e.Actor, " ", e.ItemID == registry.ViewOwner(v.ID), " ", string(e.Data)))
	}
	want := []string{
		`view-removed by root true {"name":"mine","owner":"ann","query":"state:held","shared":false}`,
		`view-set by ann true {"name":"mine","owner":"ann","query":"state:held","shared":true}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("audit (-want +got):\n%s", diff)
	}
}
