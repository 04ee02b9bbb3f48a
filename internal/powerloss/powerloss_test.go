package powerloss_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/holdfast/holdfast/internal/powerloss"
)

// TestMain lets the test binary be the program that is traced.
func TestMain(m *testing.M) {
	if folder := os.Getenv("POWERLOSS_FOLDER"); folder != "" {
		run := program
		if os.Getenv("POWERLOSS_AGAIN") != "" {
			run = sync
		}
		if err := run(folder); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// steps are what the program does, one after the other.
var steps = []func(in func(string) string) error{
	func(in func(string) string) error { return os.Mkdir(in(""), 0o755) },
	func(in func(string) string) error { return os.WriteFile(in("lost"), []byte("never synced"), 0o600) },
	func(in func(string) string) error { return write(in("kept"), "first \x00\"\\\n\377", true) },
	func(in func(string) string) error { return sync(in("")) },
	func(in func(string) string) error { return write(in("new"), "second", true) },
	func(in func(string) string) error { return os.Rename(in("new"), in("kept")) },
	func(in func(string) string) error { return sync(in("")) },
	func(in func(string) string) error { return os.Mkdir(in("sub"), 0o755) },
	func(in func(string) string) error { return write(in("sub/unsynced"), "third", false) },
	func(in func(string) string) error { return os.Link(in("sub/unsynced"), in("sub/twin")) },
	func(in func(string) string) error { return os.Remove(in("lost")) },
	func(in func(string) string) error { return all(in("")) },
	func(in func(string) string) error { return os.Truncate(in("kept"), 0) },
	func(in func(string) string) error { return os.Rename(in("sub/twin"), in("moved")) },
}

func program(folder string) error {
	for _, step := range steps {
		if err := step(func(name string) string { return filepath.Join(folder, name) }); err != nil {
			return err
		}
	}
	return nil
}

func write(name, text string, synced bool) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	if err == nil && synced {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

func sync(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func all(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

// The model ends with the very files that are on the disk, and its worst image changes at each sync
// to what had been promised by then.
func TestHistory(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is missing: make deps installs it")
	}
	dir := t.TempDir()
	folder, trace := filepath.Join(dir, "data"), filepath.Join(dir, "trace")
	cmd := powerloss.Command(trace, os.Args[0])
	cmd.Env = append(os.Environ(), "POWERLOSS_FOLDER="+folder)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h, err := powerloss.Read(trace, folder)
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	show := func(i *powerloss.Image, err error) map[string]string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		shown++
		name := filepath.Join(dir, "images", string(rune('a'+shown%26))+string(rune('a'+shown/26%26))+string(rune('a'+shown/676)))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), i.Write(name)); err != nil {
			t.Fatal(err)
		}
		return tree(t, name)
	}
	same := func(what string, got, want map[string]string) {
		t.Helper()
		if !maps.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	same("what the program saw", show(h.Seen(h.Len())), tree(t, folder))

	first, second := "first \x00\"\\\n\377", "second"
	want := []map[string]string{
		{}, // before anything
		{}, // kept has bytes, but no name
		{"kept": first, "lost": ""},
		{"kept": first, "lost": ""}, // new has bytes, but no name
		{"kept": second, "lost": ""},
		{"kept": second, "sub": "/", "sub/unsynced": "third", "sub/twin": "third"}, // and no truncation
	}
	var got []map[string]string
	for _, at := range append([]int{0}, h.Syncs()[1:]...) {
		got = append(got, show(h.Worst(at)))
	}
	if len(got) != len(want) {
		t.Fatalf("%d syncs, want %d", len(got), len(want))
	}
	for i := range want {
		same("after a sync", got[i], want[i])
	}

	// Whatever the power leaves, what had been promised is there, and nothing that never was.
	at := h.Syncs()[3] + 1 // the rename was synced
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	for range 300 {
		files := show(h.Some(at, random))
		if files["kept"] != second {
			t.Fatalf("a synced file was lost: %q", files)
		}
		text, there := files["lost"]
		seen[text] = true
		if !there || len(text) > len("never synced") {
			t.Fatalf("the unsynced file has %q", text)
		}
	}
	if len(seen) < 3 {
		t.Errorf("all images are alike: %v", seen)
	}
	places := map[string]bool{}
	for range 100 {
		files := show(h.Some(h.Len(), random))
		_, old := files["sub/twin"]
		_, moved := files["moved"]
		places[fmt.Sprint(old, moved)] = true
	}
	if !maps.Equal(places, map[string]bool{"true false": true, "false true": true}) {
		t.Errorf("a file that moved to another folder is, at its old and its new place: %v", places)
	}
	renamed := map[string]bool{}
	for range 100 {
		files := show(h.Some(h.Syncs()[3], random))
		_, new := files["new"]
		renamed[files["kept"]] = true
		if new && files["kept"] == second {
			t.Fatalf("half a rename: %q", files)
		}
	}
	if len(renamed) < 2 {
		t.Errorf("the rename was either never or always there: %v", renamed)
	}
}

// A program that is started after the first was killed finds what that saw, and its syncs make this
// durable.
func TestHistory_Continue(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is missing: make deps installs it")
	}
	dir := t.TempDir()
	run := func(name string, env ...string) (trace, folder string) {
		t.Helper()
		trace, folder = filepath.Join(dir, name+".trace"), filepath.Join(dir, name)
		cmd := powerloss.Command(trace, os.Args[0])
		cmd.Env = append(append(os.Environ(), "POWERLOSS_FOLDER="+folder), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return trace, folder
	}
	show := func(name string, i *powerloss.Image, err error) map[string]string {
		t.Helper()
		if err == nil {
			err = i.Write(filepath.Join(dir, name))
		}
		if err != nil {
			t.Fatal(err)
		}
		return tree(t, filepath.Join(dir, name))
	}
	h, err := powerloss.Read(run("first"))
	if err != nil {
		t.Fatal(err)
	}
	killed := h.Syncs()[3] // after the rename, before its sync
	seen, err := h.Seen(killed)
	show("second", seen, err)
	trace, folder := run("second", "POWERLOSS_AGAIN=1")
	next, err := h.Continue(killed, trace, folder)
	if err != nil {
		t.Fatal(err)
	}
	for point, want := range map[int]string{0: "first \x00\"\\\n\377", next.Len(): "second"} {
		worst, err := next.Worst(point)
		if got := show(fmt.Sprint("worst", point), worst, err); got["kept"] != want {
			t.Errorf("at point %d: %q, want %q", point, got, want)
		}
	}
}

// An open may have happened before a removal that returned first; one that began after it cannot.
func TestHistory_RemovedWhileOpened(t *testing.T) {
	const made = `1 mkdir("/x/sub", 0755) = 0
1 openat(AT_FDCWD</>, "/x/sub/a", O_RDWR|O_CREAT, 0644) = 3</x/sub/a>
1 close(3</x/sub/a>) = 0
`
	for name, trace := range map[string]struct {
		text string
		ok   bool
	}{
		"at once": {`1 openat(AT_FDCWD</>, "/x/sub/a", O_RDONLY <unfinished ...>
2 unlink("/x/sub/a") = 0
2 rmdir("/x/sub") = 0
1 <... openat resumed>) = 3</x/sub/a (deleted)>
1 fsync(3</x/sub/a (deleted)>) = 0
`, true},
		"before": {`2 unlink("/x/sub/a") = 0
1 openat(AT_FDCWD</>, "/x/sub/a", O_RDONLY) = 3</x/sub/a>
`, false},
		"before, by another's open": {`1 openat(AT_FDCWD</>, "/x/sub/a", O_RDONLY) = 3</x/sub/a>
2 unlink("/x/sub/a") = 0
1 openat(AT_FDCWD</>, "/x/sub/a", O_RDONLY) = 4</x/sub/a>
`, false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "trace")
			if err := os.WriteFile(file, []byte(made+trace.text), 0o600); err != nil {
				t.Fatal(err)
			}
			h, err := powerloss.Read(file, "/x")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := h.Seen(h.Len()); (err == nil) != trace.ok {
				t.Errorf("replayed: %v", err)
			}
		})
	}
}

// tree returns the files below a folder by name; folders have the content "/".
func tree(t *testing.T, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		name, err := filepath.Rel(folder, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			out[name] = "/"
			return nil
		}
		raw, err := os.ReadFile(path)
		out[name] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
