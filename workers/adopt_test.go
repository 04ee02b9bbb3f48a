package workers_test

import (
	"crypto/sha512"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/internal/proctest"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/rebuild"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/storage"
)

// fixtures returns the folder of public OCFL objects, which is not part of the project.
func fixtures(t *testing.T) string {
	t.Helper()
	path := filepath.Join("..", "..", "shared", "cases", "ocfl", "1.1")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("the public OCFL objects are absent: %v", err)
	}
	return path
}

// lay puts a fixture into the storage, as another program has it: in the folder that the layout has for its
// identifier. It returns the folder.
func (r *rig) lay(fixture string) (folder string) {
	r.t.Helper()
	report, err := ocfl.ValidateFS(r.t.Context(), os.DirFS(fixture), ocfl.ValidateOptions{})
	must(r.t, err)
	if folder = "bad/" + filepath.Base(fixture); report.ID != "" {
		folder, err = r.objects.ObjectKey(report.ID)
		must(r.t, err)
	}
	must(r.t, filepath.WalkDir(fixture, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		must(r.t, err)
		below, err := filepath.Rel(fixture, name)
		must(r.t, err)
		_, err = storage.Put(r.t.Context(), r.storage, folder+"/"+filepath.ToSlash(below), data)
		return err
	}))
	return folder
}

// texts returns the files below a folder of the storage.
func (r *rig) texts(folder string) map[string]string {
	r.t.Helper()
	out := map[string]string{}
	for info, err := range r.storage.List(r.t.Context(), folder+"/") {
		must(r.t, err)
		text, err := storage.ReadAll(r.t.Context(), r.storage, info.Key, 1<<20)
		must(r.t, err)
		out[strings.TrimPrefix(info.Key, folder+"/")] = string(text)
	}
	return out
}

// adoption returns options to adopt the rig's storage into a Registry, and where its findings come.
func (r *rig) adoption(s *sqlstore.Store) (o rebuild.AdoptOptions, found *[]rebuild.Adopted) {
	r.t.Helper()
	c, err := s.Collection(r.t.Context(), collection)
	must(r.t, err)
	found = new([]rebuild.Adopted)
	minted := 0
	return rebuild.AdoptOptions{
		Root: r.deps.Objects[0], To: s, From: s, Collection: c, Software: "1.2.3", Now: time.Now, AtOnce: 1,
		Mint: func() (string, error) {
			minted++
			return fmt.Sprintf("ark:/99999/fk4adopted%d", minted), nil
		},
		Found: func(a rebuild.Adopted) error { *found = append(*found, a); return nil },
	}, found
}

// adopt adopts the rig's storage after a dry run, which must say the same, and returns what was said of its
// only object.
func (r *rig) adopt() rebuild.Adopted {
	r.t.Helper()
	o, found := r.adoption(r.registry)
	before := r.texts("")
	o.DryRun = true
	dry, err := rebuild.Adopt(r.t.Context(), o)
	must(r.t, err)
	o.DryRun = false
	report, err := rebuild.Adopt(r.t.Context(), o)
	must(r.t, err)
	if report != dry || report.Objects != 1 || len(*found) != 2 {
		r.t.Fatalf("the dry run says %+v, the run %+v: %+v", dry, report, *found)
	}
	if diff := cmp.Diff((*found)[0].Refused, (*found)[1].Refused); diff != "" {
		r.t.Errorf("refusals of the dry run (-) and of the run (+):\n%s", diff)
	}
	for name, text := range r.texts("") {
		if was, there := before[name]; there && was != text {
			r.t.Errorf("%s was changed", name)
		} else if !there && !strings.Contains(name, "/extensions/holdfast-evidence/") {
			r.t.Errorf("%s was made", name)
		}
	}
	return (*found)[1]
}

// update deposits a file under a local id or an ARK of an object.
func (r *rig) update(o registry.Object, name, text string) registry.Object {
	r.t.Helper()
	s := registry.Spec{Type: registry.FileType, Mode: registry.Update, URL: r.site.put(name, text), Filename: name}
	if len(o.LocalIDs) > 0 {
		s.LocalIDs = o.LocalIDs[:1]
	} else {
		s.PrimaryID = o.ID
	}
	return r.complete(r.job(s))
}

// TestAdopt_Fixtures: public objects of OCFL 1.0 and 1.1 are adopted as they lie, or refused with the reason,
// and those that were adopted get a new version in their own form.
func TestAdopt_Fixtures(t *testing.T) {
	t.Parallel()
	refused := map[string]string{
		"W002_extra_dir_in_version_dir": "v1/extra_dir/something.txt belongs to no version",
		"W010_no_version_inventory":     "version 1 has no inventory of its own (W010)",
	}
	older := filepath.Join(proctest.Module(t, "ocflgo", "github.com/srerickson/ocfl-go"), "testdata", "object-fixtures", "1.0")
	var folders []string
	for _, all := range []string{fixtures(t), older} {
		some, err := filepath.Glob(filepath.Join(all, "*-objects", "*"))
		must(t, err)
		if len(some) < 50 {
			t.Errorf("%s has only %d objects", all, len(some))
		}
		folders = append(folders, some...)
	}
	for _, folder := range folders {
		name, bad := filepath.Base(folder), filepath.Base(filepath.Dir(folder)) == "bad-objects"
		if name == "E003_E063_empty" || name == "E003_no_decl" {
			continue // no file says that there is an object
		}
		spec := filepath.Base(filepath.Dir(filepath.Dir(folder)))
		t.Run(spec+"/"+name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			at := r.lay(folder)
			made := r.texts(at)
			got := r.adopt()
			switch why := strings.Join(got.Refused, "; "); {
			case bad && why == "" || !strings.Contains(why, refused[name]):
				t.Fatalf("refused: %q, want %q", why, refused[name])
			case bad:
				if code, _, _ := strings.Cut(name, "_"); !strings.Contains(why, code+" ") {
					t.Errorf("refused for another reason than %s: %s", code, why)
				}
				return
			case refused[name] != "":
				return
			case why != "":
				t.Fatalf("refused: %s", why)
			}
			o, err := r.registry.Object(t.Context(), got.ID)
			must(t, err)
			versions := o.Head
			if o.Stored() != got.Stored || o.Adopted != versions || got.Versions != versions || got.Spec != spec {
				t.Errorf("adopted %+v as %+v", got, o)
			}
			r.valid(o, versions)
			for n := 1; n <= versions; n++ {
				r.files(o, n)
			}
			o = r.update(o, "added.txt", "added to "+name)
			r.valid(o, versions+1)
			if text := r.files(o, 0)["producer/added.txt"]; text != "added to "+name {
				t.Errorf("the new file reads %q", text)
			}
			now := r.texts(at)
			if _, there := now["0=ocfl_object_"+spec]; !there {
				t.Errorf("it is no longer an object of OCFL %s", spec)
			}
			for file, text := range made {
				if file != "inventory.json" && !strings.HasPrefix(file, "inventory.json.") && now[file] != text {
					t.Errorf("%s was changed", file)
				}
			}
			p := &pair{rig: r, object: o}
			for n := 1; n <= versions+1; n++ {
				if it := p.check(o.InventoryPath(n)); it.Status != registry.Completed {
					t.Errorf("the check of version %d: %s", n, it.Note)
				}
			}
		})
	}
}

// TestAdopt_Acts: whatever can be done to an object can be done to one that has another identifier in its
// storages than its ARK.
func TestAdopt_Acts(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.lay(filepath.Join(fixtures(t), "good-objects", "updates_all_actions"))
	got := r.adopt()
	o, err := r.registry.Object(t.Context(), got.ID)
	must(t, err)
	if o.OCFLID != "info:bb123cd4567" || !slices.Equal(o.LocalIDs, []string{"info:bb123cd4567"}) || o.ID != "ark:/99999/fk4adopted1" || o.Head != 4 {
		t.Fatalf("adopted as %+v", o)
	}
	before := r.files(o, 0)
	options, found := r.adoption(r.registry)
	if again, err := rebuild.Adopt(t.Context(), options); err != nil || again.Known != 1 || again.Adopted != 0 || len(*found) > 0 {
		t.Errorf("adopted again: %+v, %v, %v", again, *found, err)
	}
	var replaced string
	for path := range before {
		replaced = max(replaced, path)
	}
	o = r.update(o, replaced, "in its place") // also where it lay before
	if now := r.files(o, 0); now[replaced] != "" || now["producer/"+replaced] != "in its place" || len(now) < len(before) {
		t.Errorf("after %s was replaced there are %v", replaced, now)
	}
	for path, text := range before {
		if now := r.files(o, 0); path != replaced && now[path] != text {
			t.Errorf("%s reads %q after the update", path, now[path])
		}
	}
	if lost := names(r.orphans(registry.OrphanSearch{Storages: true, Older: registry.LeastOrphanAge})); slices.Contains(lost, "object "+o.OCFLID) {
		t.Errorf("orphaned: %v", lost)
	}
	want := seen(t, r.registry, o.ID)
	to := r.rebuilding(t)
	report, err := rebuild.Run(t.Context(), rebuild.Options{
		Roots: r.deps.Objects, To: to, Now: time.Now, Fault: func(o rebuild.Object) error { t.Errorf("faults: %+v", o); return nil },
	})
	must(t, err)
	if report != (rebuild.Report{Objects: 1}) {
		t.Errorf("the rebuild says %+v", report)
	}
	if diff := cmp.Diff(want, seen(t, to, o.ID)); diff != "" {
		t.Errorf("after a rebuild (-want +got):\n%s", diff)
	}
	if it := r.advance(r.restore(o), ""); it.Status != registry.Completed {
		t.Errorf("the restore is %s: %s", it.Status, it.Note)
	}
	compared, err := rebuild.Reconcile(t.Context(), rebuild.ReconcileOptions{Roots: r.deps.Objects, To: r.registry, Now: time.Now})
	must(t, err)
	if compared != (rebuild.Comparison{Objects: 1}) {
		t.Errorf("the comparison says %+v", compared)
	}
	if it := r.advance(r.deletion(o), ""); it.Status != registry.Completed {
		t.Fatalf("the deletion is %s: %s", it.Status, it.Note)
	}
	r.deleted(o)
}

// TestAdopt_Twice: an identifier is that of one object. A copy of it in another storage is known, anything else
// refused; nor does another adoption go on with what a killed one has entered.
func TestAdopt_Twice(t *testing.T) {
	t.Parallel()
	const three, four = "updates_three_versions_one_file", "updates_all_actions"
	r := newRig(t, nil)
	folder := r.lay(filepath.Join(fixtures(t), "good-objects", four))
	o, found := r.adoption(r.registry)
	first := o.Root
	second := openDir(t, filepath.Join(r.folder, "second"))
	root, err := ocfl.OpenRoot(t.Context(), second, "", nil)
	must(t, err)
	once := func(at ocfl.Named, to registry.Adopting, dry bool) (rebuild.Adoption, string, error) {
		*found = nil
		o.Root, o.To, o.DryRun = at, to, dry
		report, err := rebuild.Adopt(t.Context(), o)
		var why string
		if len(*found) == 1 {
			why = strings.Join((*found)[0].Refused, "; ")
		}
		return report, why, err
	}
	adopt := func(at ocfl.Named, to registry.Adopting) (rebuild.Adoption, string, error) {
		t.Helper()
		dry, whyDry, err := once(at, to, true)
		must(t, err)
		report, why, err := once(at, to, false)
		if err == nil && (dry != report || whyDry != why) {
			t.Errorf("the dry run says %+v (%s), the run %+v (%s)", dry, whyDry, report, why)
		}
		return report, why, err
	}
	other := ocfl.Named{Root: root, Name: "second"}
	put := func(text map[string]string) {
		for name, text := range text {
			_, err := storage.Put(t.Context(), second, folder+"/"+name, []byte(text))
			must(t, err)
		}
	}
	copied := r.texts(folder)

	mortal := &mortalAdopting{Adopting: r.registry}
	mortal.left.Store(4) // some of it is entered
	if _, _, err := adopt(first, mortal); err == nil {
		t.Fatal("it was not killed")
	}
	put(copied)
	if _, why, err := adopt(other, r.registry); err != nil || !strings.Contains(why, "an adoption of storage storage that was stopped") {
		t.Errorf("another storage after a kill: %q, %v", why, err)
	}
	r.profile("others", registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}})
	c := o.Collection
	o.Collection, err = r.registry.Collection(t.Context(), "others")
	must(t, err)
	if _, why, err := adopt(first, r.registry); err != nil || !strings.Contains(why, "for collection test") {
		t.Errorf("another collection after a kill: %q, %v", why, err)
	}
	o.Collection = c
	if report, why, err := adopt(first, r.registry); err != nil || report.Adopted != 1 {
		t.Fatalf("adopted: %+v, %q, %v", report, why, err)
	}
	if report, why, err := adopt(other, r.registry); err != nil || report.Known != 1 {
		t.Errorf("a copy: %+v, %q, %v", report, why, err)
	}
	must(t, second.DeletePrefix(t.Context(), folder))
	r2 := newRig(t, nil)
	changed := r2.texts(r2.lay(filepath.Join(fixtures(t), "good-objects", three)))
	for name, text := range changed {
		changed[name] = strings.ReplaceAll(text, "uri:something451", "info:bb123cd4567")
	}
	put(changed)
	if report, why, err := adopt(other, r.registry); err != nil || report.Refused != 1 || !strings.Contains(why, "another object has its identifier: ark:/99999/fk4adopted1, in storage storage") {
		t.Errorf("another object: %+v, %q, %v", report, why, err)
	}
	must(t, second.DeletePrefix(t.Context(), folder))
	folder, err = root.ObjectKey("ark:/99999/fk4adopted1")
	must(t, err)
	for name, text := range changed {
		changed[name] = strings.ReplaceAll(text, "info:bb123cd4567", "ark:/99999/fk4adopted1")
	}
	for name, text := range changed {
		if strings.HasSuffix(name, "inventory.json") {
			changed[name+".sha512"] = fmt.Sprintf("%x inventory.json\n", sha512.Sum512([]byte(text)))
		}
	}
	put(changed)
	if report, why, err := adopt(other, r.registry); err != nil || report.Refused != 1 || !strings.Contains(why, "another object has its ARK, ark:/99999/fk4adopted1") {
		t.Errorf("another object's ARK: %+v, %q, %v", report, why, err)
	}
	_, err = storage.Put(t.Context(), r2.storage, r2.lay(filepath.Join(fixtures(t), "good-objects", four))+"/extensions/0005-mutable-head/head/inventory.json", []byte("{}"))
	must(t, err)
	o, found = r2.adoption(r2.registry)
	if report, why, err := adopt(o.Root, r2.registry); err != nil || report.Refused != 1 || !strings.Contains(fmt.Sprint(*found), "it has a version that is not committed (extensions/0005-mutable-head/head/inventory.json)") {
		t.Errorf("a mutable head: %+v, %q, %v, %v", report, why, err, *found)
	}
}

// TestAdopt_Killed: wherever an adoption dies, its repeat comes to the same ARK, and to one only.
func TestAdopt_Killed(t *testing.T) {
	t.Parallel()
	for n := 0; ; n++ {
		r := newRig(t, nil)
		r.lay(filepath.Join(fixtures(t), "good-objects", "updates_three_versions_one_file"))
		mortal := &mortalAdopting{Adopting: r.registry}
		mortal.left.Store(int64(n))
		options, _ := r.adoption(r.registry)
		options.To = mortal
		_, dead := rebuild.Adopt(t.Context(), options)
		options.To = r.registry // it mints on where it was
		_, err := rebuild.Adopt(t.Context(), options)
		must(t, err)
		page, err := r.registry.Objects(t.Context(), registry.ObjectQuery{Limit: 10})
		must(t, err)
		if len(page.Rows) != 1 || page.Rows[0].ID != "ark:/99999/fk4adopted1" {
			t.Fatalf("after death at call %d there are %+v", n, page.Rows)
		}
		r.valid(page.Rows[0], 3)
		if dead == nil {
			if n < 8 {
				t.Errorf("it makes only %d calls", n)
			}
			return
		}
	}
}

// TestAdopt_Grown: an object that got a version after its adoption was killed is adopted with it.
func TestAdopt_Grown(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	folder := r.lay(filepath.Join(fixtures(t), "good-objects", "updates_three_versions_one_file"))
	whole := r.texts(folder)
	put := func(name, text string) {
		must(t, r.storage.Delete(t.Context(), folder+"/"+name))
		_, err := storage.Put(t.Context(), r.storage, folder+"/"+name, []byte(text))
		must(t, err)
	}
	must(t, r.storage.DeletePrefix(t.Context(), folder+"/v3"))
	for _, name := range []string{"inventory.json", "inventory.json.sha512"} {
		put(name, whole["v2/"+name])
	}
	mortal := &mortalAdopting{Adopting: r.registry}
	mortal.left.Store(4) // some of it is entered
	options, found := r.adoption(r.registry)
	options.To = mortal
	if _, err := rebuild.Adopt(t.Context(), options); err == nil {
		t.Fatal("it was not killed")
	}
	for name, text := range whole {
		put(name, text)
	}
	options.To = r.registry
	report, err := rebuild.Adopt(t.Context(), options)
	must(t, err)
	if report.Adopted != 1 || report.Versions != 3 {
		t.Fatalf("adopted: %+v, %+v", report, *found)
	}
	o, err := r.registry.Object(t.Context(), (*found)[0].ID)
	must(t, err)
	if o.ID != "ark:/99999/fk4adopted1" || o.Adopted != 3 {
		t.Errorf("adopted as %+v", o)
	}
	r.valid(o, 3)
}
