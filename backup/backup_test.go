package backup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/sqlstore"
	"github.com/holdfast/holdfast/storage/s3/s3test"
)

// lock is the lock of the real program.
func lock(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func noError(t *testing.T, err error, about ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(append(about, err)...)
	}
}

func errorIs(t *testing.T, err, want error, about ...any) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("%v: error %v; want %v", about, err, want)
	}
}

func equal[T any](t *testing.T, want, got T, about ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%v: %s", about, diff)
	}
}

func missing(t *testing.T, path string) {
	t.Helper()
	_, err := os.Stat(path)
	errorIs(t, err, os.ErrNotExist, path)
}

// database makes a Registry's database, and returns its address and the open store.
func database(t *testing.T, dir string) (string, *sqlstore.Store) {
	t.Helper()
	address := "sqlite:" + filepath.Join(dir, "registry.db")
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: address})
	noError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	noError(t, s.PutCollection(t.Context(), registry.Collection{Mnemonic: "maps", Profile: registry.Profile{Name: "Maps", Owner: "ark:/99999/o", Collections: []string{"ark:/99999/c"}}}, "test"))
	return address, s
}

func options(address, to string) Options {
	return Options{Database: address, To: to, Version: "test", Keep: DefaultKeep(), Lock: lock, Extra: map[string][]byte{"secret.key": []byte("a key\n"), "settings.env": []byte("HOLDFAST_NAAN=12345\n")}}
}

func TestMake_Restore(t *testing.T) {
	ctx := t.Context()
	address, _ := database(t, t.TempDir())
	s3test.Setenv(t)
	s3 := s3test.Start(t)
	for name, to := range map[string]string{"folder": t.TempDir(), "bucket": s3.Address("backups")} {
		t.Run(name, func(t *testing.T) {
			made, err := Make(ctx, options(address, to))
			noError(t, err)
			all, err := List(ctx, to)
			noError(t, err)
			equal(t, []File{made.File}, all)

			from := to + "/" + made.Name
			if where, query, ok := strings.Cut(to, "?"); ok {
				from = where + "/" + made.Name + "?" + query
			}
			m, err := Verify(ctx, from, t.TempDir())
			noError(t, err)
			equal(t, made.Manifest, m)

			dir := filepath.Join(t.TempDir(), "restored")
			_, err = Restore(ctx, RestoreOptions{From: from, Dir: dir, Lock: lock})
			noError(t, err)
			isWhole(t, dir)
			_, err = Restore(ctx, RestoreOptions{From: from, Dir: dir, Lock: lock})
			errorIs(t, err, ErrNotEmpty)
		})
	}
}

// isWhole checks a restored folder: its files are there and private, and the database opens.
func isWhole(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{DatabaseName, "secret.key", "settings.env", lockName} {
		info, err := os.Stat(filepath.Join(dir, name))
		noError(t, err)
		equal(t, os.FileMode(0o600), info.Mode().Perm(), name)
	}
	s, err := sqlstore.Open(t.Context(), sqlstore.Options{URL: "sqlite:" + filepath.Join(dir, DatabaseName)})
	noError(t, err)
	defer func() { noError(t, s.Close()) }()
	_, err = s.Collection(t.Context(), "maps")
	noError(t, err)
}

func TestMake_BesideWriter(t *testing.T) {
	ctx := t.Context()
	address, s := database(t, t.TempDir())
	stop, cancel := context.WithCancel(ctx)
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := 0; stop.Err() == nil; i++ {
			name := fmt.Sprintf("c%d", i)
			err := s.PutCollection(ctx, registry.Collection{Mnemonic: name, Profile: registry.Profile{Name: name, Owner: "ark:/99999/o", Collections: []string{"ark:/99999/c"}}}, "test")
			if err != nil {
				t.Errorf("a writer was disturbed: %v", err)
				return
			}
		}
	})
	for i := range 3 {
		to := t.TempDir()
		made, err := Make(ctx, options(address, to))
		noError(t, err, i)
		_, err = Verify(ctx, filepath.Join(to, made.Name), t.TempDir())
		noError(t, err, i)
	}
	cancel()
	writers.Wait()
}

func TestVerify_BitFlip(t *testing.T) {
	ctx := t.Context()
	address, _ := database(t, t.TempDir())
	to := t.TempDir()
	made, err := Make(ctx, options(address, to))
	noError(t, err)
	whole, err := os.ReadFile(filepath.Join(to, made.Name))
	noError(t, err)
	temporary := t.TempDir()
	judge := func(data []byte, what string) {
		name := filepath.Join(to, "flipped")
		noError(t, os.WriteFile(name, data, 0o600))
		_, err := Verify(ctx, name, temporary)
		errorIs(t, err, ErrDamaged, what)
	}
	// Every byte of the beginning and the end, where the headers are, and many between.
	for i := 0; i < len(whole); i++ {
		if i > 40 && i < len(whole)-trailerSize-20 && i%997 != 0 {
			continue
		}
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1 << (i % 8)
		judge(flipped, fmt.Sprint("byte ", i))
	}
	for _, size := range []int{0, 10, trailerSize, len(whole) / 2, len(whole) - 1} {
		judge(whole[:size], fmt.Sprint("cut at ", size))
	}
	judge(append(bytes.Clone(whole), 0), "a byte more")
	left, err := os.ReadDir(temporary)
	noError(t, err)
	equal(t, 0, len(left))
}

func TestMake_BadCopyIsFound(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir()
	address, _ := database(t, dir)
	o := options(address, t.TempDir())
	o.Step = func(name string) error {
		if name != "inspect" {
			return nil
		}
		f, err := os.OpenFile(filepath.Join(dir, DatabaseName+CopyFolder, "copy", DatabaseName), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt(bytes.Repeat([]byte{0xff}, 4096), 4096)
		return errors.Join(err, f.Close())
	}
	_, err := Make(ctx, o)
	errorIs(t, err, sqldb.ErrDamaged)
	all, err := List(ctx, o.To)
	noError(t, err)
	equal(t, 0, len(all))
}

func TestMake_BadFileRemovesNothing(t *testing.T) {
	ctx := t.Context()
	address, _ := database(t, t.TempDir())
	o := options(address, t.TempDir())
	o.Keep = Keep{Days: 1}
	good, err := Make(ctx, o)
	noError(t, err)
	// As if the first were of long ago, and the second damaged on its way to the disk.
	old := nameOf(good.Of, time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
	noError(t, os.Rename(filepath.Join(o.To, good.Name), filepath.Join(o.To, old)))
	o.Step = func(name string) error {
		if name != "verify" {
			return nil
		}
		all, err := List(ctx, o.To)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(filepath.Join(o.To, all[len(all)-1].Name), os.O_RDWR, 0)
		if err != nil {
			return err
		}
		_, err = f.WriteAt([]byte("rot"), 100)
		return errors.Join(err, f.Close())
	}
	_, err = Make(ctx, o)
	errorIs(t, err, ErrDamaged)
	_, err = Verify(ctx, filepath.Join(o.To, old), t.TempDir())
	noError(t, err)
	all, err := List(ctx, o.To)
	noError(t, err)
	equal(t, 1, len(all), "the damaged one counts as a backup")
	_, err = Verify(ctx, o.To, t.TempDir())
	errorIs(t, err, ErrFolder)
}

// Two backups of one PostgreSQL Registry at once do not disturb each other.
func TestMake_TwoAtOnce(t *testing.T) {
	to := t.TempDir()
	o := options("postgres://db/maps", to)
	var second Made
	o.Step = func(name string) (err error) {
		if name != "publish" {
			return nil
		}
		for second.Name == "" {
			// The same second would give the same name, which is refused.
			if second, err = Make(t.Context(), options(o.Database, to)); err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
		}
		return nil
	}
	first, err := Make(t.Context(), o)
	noError(t, err)
	for _, name := range []string{first.Name, second.Name} {
		_, err := Verify(t.Context(), filepath.Join(to, name), t.TempDir())
		noError(t, err, name)
	}
}

// Registries on PostgreSQL may share a place: none removes the backups of another.
func TestMake_TwoPostgreSQLInOnePlace(t *testing.T) {
	to := t.TempDir()
	old := "holdfast-" + shortAddress("postgres://ann:one@db/maps") + "-20260102T030405Z.tar.zst"
	other := "holdfast-" + shortAddress("postgres://ann:one@db/books") + "-20260102T030405Z.tar.zst"
	for _, name := range []string{old, other} {
		noError(t, os.WriteFile(filepath.Join(to, name), nil, 0o600))
	}
	o := options("postgres://ann:another@db/maps?sslmode=disable", to)
	o.Keep = Keep{Days: 1}
	made, err := Make(t.Context(), o)
	noError(t, err)
	equal(t, []string{old}, made.Removed)
	newest, ok, err := Newest(t.Context(), to, "postgres://ann:one@db/maps", "")
	noError(t, err)
	equal(t, made.Name, newest.Name, ok)
	_, ok, err = Newest(t.Context(), to, "postgres://ann:one@db/letters", "")
	noError(t, err)
	equal(t, false, ok, "one that was never backed up")
	_, err = os.Stat(filepath.Join(to, other))
	noError(t, err)
	_, err = Verify(t.Context(), filepath.Join(to, made.Name), t.TempDir())
	noError(t, err)
}

func TestKeep(t *testing.T) {
	var files []File
	for day := range 40 {
		at := time.Date(2026, 3, 2, 3, 0, 0, 0, time.UTC).AddDate(0, 0, day) // a Monday
		files = append(files, File{Name: at.Format("01-02"), At: at}, File{Name: at.Format("01-02") + " later", At: at.Add(time.Hour)})
	}
	k := Keep{Days: 3, Weeks: 2}
	gone := map[string]bool{}
	for _, f := range k.old(files) {
		gone[f.Name] = true
	}
	var kept []string
	for _, f := range files {
		if !gone[f.Name] {
			kept = append(kept, f.Name)
		}
	}
	equal(t, []string{"04-05 later", "04-08 later", "04-09 later", "04-10 later"}, kept)
	equal(t, 0, len(k.old(files[:1])))

	for _, text := range []string{"7d8w", "7d", "8w"} {
		var read Keep
		noError(t, read.Decode(text))
		equal(t, text, read.String())
	}
	for _, text := range []string{"", "7", "d", "0d", "8w7d", "-1d", "7d8"} {
		equal(t, true, new(Keep).Decode(text) != nil, text)
	}
}

// TestKilled runs this test again as a process that is killed at a step.
func TestKilled(t *testing.T) {
	if at := os.Getenv("BACKUP_KILLED_AT"); at != "" {
		step := func(name string) error {
			if name == at {
				return syscall.Kill(os.Getpid(), syscall.SIGKILL)
			}
			return nil
		}
		o := options(os.Getenv("BACKUP_DATABASE"), os.Getenv("BACKUP_TO"))
		o.Step, o.Keep = step, Keep{Days: 1}
		var err error
		if from := os.Getenv("BACKUP_FROM"); from != "" {
			_, err = Restore(t.Context(), RestoreOptions{From: from, Dir: os.Getenv("BACKUP_DIR"), Lock: lock, Step: step})
		} else {
			_, err = Make(t.Context(), o)
		}
		noError(t, err)
		return
	}
	die := func(t *testing.T, at string, env ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(append(os.Environ(), "BACKUP_KILLED_AT="+at), env...)
		out, err := cmd.CombinedOutput()
		var ended *exec.ExitError
		equal(t, true, errors.As(err, &ended), string(out))
		status, ok := ended.Sys().(syscall.WaitStatus)
		equal(t, true, ok && status.Signaled(), string(out))
	}
	ctx := t.Context()
	dir, to := t.TempDir(), t.TempDir()
	address, s := database(t, dir)
	noError(t, s.Close())
	first, err := Make(ctx, options(address, to))
	noError(t, err)
	old := filepath.Join(to, nameOf(first.Of, first.At.AddDate(0, 0, -1)))
	noError(t, os.Rename(filepath.Join(to, first.Name), old))
	for _, at := range []string{"copy", "inspect", "write", "publish", "verify", "rotate"} {
		t.Run("backup at "+at, func(t *testing.T) {
			die(t, at, "BACKUP_DATABASE="+address, "BACKUP_TO="+to)
			all, err := List(ctx, to)
			noError(t, err)
			for _, f := range all { // only whole ones have a name
				_, err := Verify(ctx, filepath.Join(to, f.Name), t.TempDir())
				noError(t, err)
			}
			equal(t, all[0], File{Name: filepath.Base(old), At: first.At.AddDate(0, 0, -1), Of: first.Of, Size: first.Size})
			for _, f := range all[1:] { // so that the next one can have its name
				noError(t, os.Remove(filepath.Join(to, f.Name)))
			}
		})
	}
	o := options(address, to)
	o.Keep = Keep{Days: 1}
	made, err := Make(ctx, o)
	noError(t, err)
	equal(t, []string{filepath.Base(old)}, made.Removed)
	left, err := os.ReadDir(to)
	noError(t, err)
	equal(t, 1, len(left), "the unfinished files of the killed ones are gone")

	for _, at := range []string{"extract", "mark", "publish"} {
		t.Run("restore at "+at, func(t *testing.T) {
			parent := t.TempDir()
			restored := filepath.Join(parent, "restored")
			die(t, at, "BACKUP_FROM="+filepath.Join(to, made.Name), "BACKUP_DIR="+restored)
			missing(t, restored)
			_, err := Restore(ctx, RestoreOptions{From: filepath.Join(to, made.Name), Dir: restored, Lock: lock})
			noError(t, err)
			isWhole(t, restored)
			left, err := os.ReadDir(parent)
			noError(t, err)
			equal(t, 1, len(left))
		})
	}
}

func TestRestore_Refuses(t *testing.T) {
	ctx := t.Context()
	address, _ := database(t, t.TempDir())
	to := t.TempDir()
	made, err := Make(ctx, options(address, to))
	noError(t, err)
	from := filepath.Join(to, made.Name)
	full := t.TempDir()
	noError(t, os.WriteFile(filepath.Join(full, "something"), nil, 0o600))
	_, err = Restore(ctx, RestoreOptions{From: from, Dir: full, Lock: lock})
	errorIs(t, err, ErrNotEmpty)

	// Another one is at work on it.
	parent := t.TempDir()
	dir := filepath.Join(parent, "new")
	_, err = Restore(ctx, RestoreOptions{From: from, Dir: dir, Lock: lock, Step: func(name string) error {
		if name == "mark" {
			_, err := Restore(ctx, RestoreOptions{From: from, Dir: dir, Lock: lock})
			equal(t, true, err != nil, "two restores of one folder")
			missing(t, dir)
		}
		return nil
	}})
	noError(t, err)
	isWhole(t, dir)

	damagedFile := filepath.Join(to, "damaged")
	whole, err := os.ReadFile(from)
	noError(t, err)
	whole[len(whole)/2] ^= 4
	noError(t, os.WriteFile(damagedFile, whole, 0o600))
	parent = t.TempDir()
	_, err = Restore(ctx, RestoreOptions{From: damagedFile, Dir: filepath.Join(parent, "new"), Lock: lock})
	errorIs(t, err, ErrDamaged)
	left, err := os.ReadDir(parent)
	noError(t, err)
	equal(t, 0, len(left))
}
