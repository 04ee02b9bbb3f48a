package workers_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/holdfast/holdfast/ezid/ezidtest"
	"github.com/holdfast/holdfast/registry"
)

// The name of a deleted object is unavailable at EZID. While EZID does not answer, the deletion
// waits, uncounted, and nobody can read the object.
func TestDelete_NameAtEZID(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	job := n.file(registry.Spec{LocalIDs: []string{"x"}})
	o := n.complete(job)
	n.wantNames(map[string]string{o.ID: "public " + job})
	id := n.deletion(o)
	n.ezid.Fail(func(w http.ResponseWriter, _ *http.Request, _ func(http.ResponseWriter)) bool {
		http.Error(w, "<h1>maintenance</h1>", http.StatusServiceUnavailable)
		return true
	})
	for range 5 {
		_, _ = n.run(id) // what became of it is asked of the Registry
		waits(t, n.item(id))
		if now, err := n.registry.Object(t.Context(), o.ID); err != nil || now.Gone != registry.DeletionDeleting {
			t.Fatalf("while EZID is away the object is %q (%v)", now.Gone, err)
		}
		if left := keys(t, n.storage, mustKey(t, n.rig, o)); len(left) > 0 {
			t.Errorf("left in storage: %v", left)
		}
		n.wait(time.Hour)
	}
	n.ezid.Fail(nil)
	if v, err := n.run(id); err != nil || v.Status != registry.Completed {
		t.Fatalf("%+v %v", v, err)
	}
	n.deleted(o)
	n.wantNames(map[string]string{o.ID: "unavailable | withdrawn " + job})
}

// Whichever of EZID's answers is lost, the name is unavailable in the end.
func TestDelete_EZIDAnswersLost(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	lost := 1
	for survived := false; !survived; lost++ {
		job := n.file(registry.Spec{})
		o := n.complete(job)
		id := n.deletion(o)
		asked := 0
		n.ezid.Fail(func(w http.ResponseWriter, _ *http.Request, serve func(http.ResponseWriter)) bool {
			if asked++; asked < lost {
				return false
			}
			serve(httptest.NewRecorder())
			panic(http.ErrAbortHandler)
		})
		_, err := n.run(id)
		n.ezid.Fail(nil)
		if survived = err == nil; !survived {
			waits(t, n.item(id))
			n.wait(time.Hour)
			if v, err := n.run(id); err != nil || v.Status != registry.Completed {
				t.Fatalf("answer %d was lost: %+v %v", lost, v, err)
			}
		}
		n.deleted(o)
		if got := n.ezid.Name(o.ID)["_status"]; got != "unavailable | withdrawn" {
			t.Errorf("answer %d was lost: the name is %s", lost, got)
		}
	}
	if lost < 3 {
		t.Errorf("a deletion asked EZID %d times", lost-1)
	}
}

// A person's decision about a name at EZID stays, and so does a name that is not managed here.
func TestDelete_NamesThatStay(t *testing.T) {
	t.Parallel()
	n := newNamed(t)
	for name, tt := range map[string]struct {
		change func(ark string)
		want   string
	}{
		"unavailable": {func(ark string) {
			has := n.ezid.Name(ark)
			has["_status"] = "unavailable | by order of the court"
			n.ezid.Put(ark, has)
		}, "unavailable | by order of the court"},
		"lost": {n.ezid.Remove, ""},
	} {
		o := n.complete(n.file(registry.Spec{Title: name}))
		id := n.deletion(o)
		tt.change(o.ID)
		if v, err := n.run(id); err != nil || v.Status != registry.Completed {
			t.Fatalf("%s: %+v %v", name, v, err)
		}
		n.deleted(o)
		if got := n.ezid.Name(o.ID)["_status"]; got != tt.want {
			t.Errorf("%s: it is %q, want %q", name, got, tt.want)
		}
	}
	// A name that somebody else has now needs a person; the deletion is only carried on.
	o := n.complete(n.file(registry.Spec{Title: "taken"}))
	id := n.deletion(o)
	has := n.ezid.Name(o.ID)
	n.ezid.Put(o.ID, map[string]string{"_owner": ezidtest.User, "_status": "public", "holdfast.item": "another"})
	wantClass(t, n.fails(id), registry.SystemFault, "belongs to somebody else")
	if now, err := n.registry.Object(t.Context(), o.ID); err != nil || now.Gone != registry.DeletionDeleting {
		t.Errorf("the object is %q (%v)", now.Gone, err)
	}
	n.ezid.Put(o.ID, has)
	_, err := n.registry.Command(t.Context(), registry.Command{ItemID: id, Act: registry.ActRequeue, Actor: "tester"})
	must(t, err)
	if v, err := n.run(id); err != nil || v.Status != registry.Completed {
		t.Fatalf("%+v %v", v, err)
	}
	n.deleted(o)
}

func mustKey(t *testing.T, r *rig, o registry.Object) string {
	t.Helper()
	key, err := r.objects.ObjectKey(o.ID)
	must(t, err)
	return key
}
