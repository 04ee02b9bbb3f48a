package object

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/registry"
)

// exportNote describes the export to a place. It stays there until the export is complete, and the
// next run resumes exactly this export.
type exportNote struct {
	ID       string    `json:"id"` // by which the audit log knows the export; "": an earlier program began it
	ObjectID string    `json:"object_id"`
	Version  int       `json:"version"`
	Bag      bool      `json:"bag"`
	Tar      bool      `json:"tar"`
	System   bool      `json:"system"`
	At       time.Time `json:"at"`    // the date of all files that the export makes
	Agent    string    `json:"agent"` // the program that started it
}

// claim is a note with its file lock, which the kernel releases when the process ends.
type claim struct {
	exportNote
	begun bool // by an earlier run

	root *os.Root
	name string
	file *os.File
}

// claim locks the place of an export by its note, and writes the note if there is none. empty must
// return nil before a new note is written. An empty note, left by a kill at the beginning, counts
// as none.
func (x *exporter) claim(o registry.Object, root *os.Root, name string, empty func() error) (_ *claim, err error) {
	_, err = root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		err = empty()
	}
	if err != nil {
		return nil, err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	c := &claim{root: root, name: name, file: file}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close())
		}
	}()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, errExporting
	} // a file system without locks has none
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		if err := empty(); err != nil {
			return nil, err
		}
		c.exportNote = x.note(o)
		if text, err = json.Marshal(c.exportNote); err != nil {
			return nil, err
		}
		if _, err := file.Write(text); err != nil {
			return nil, err
		}
		if err := file.Sync(); err != nil {
			return nil, err
		}
	} else {
		c.begun = true
		if err := json.Unmarshal(text, &c.exportNote); err != nil {
			return nil, exit.Fix(fmt.Errorf("%s: %w", name, err), "the unfinished export cannot be resumed: give another place by --out")
		}
	}
	if err := x.agrees(c.exportNote); err != nil {
		return nil, err
	}
	x.version = c.Version
	return c, nil
}

// agrees returns an error unless a note is of the requested export.
func (x *exporter) agrees(n exportNote) error {
	if n.ObjectID == x.id && (x.version == 0 || x.version == n.Version) && n.Bag == x.bag && n.Tar == x.tar && n.System == x.system {
		return nil
	}
	form := ""
	for _, f := range []struct {
		name string
		is   bool
	}{{" --bag", n.Bag}, {" --tar", n.Tar}, {" --system", n.System}} {
		if f.is {
			form += f.name
		}
	}
	return exit.Fix(fmt.Errorf("%s: %w: it has an unfinished export of %s version %d%s", x.out, errOccupied, n.ObjectID, n.Version, strings.Replace(form, " ", " with ", 1)),
		"finish that one, or give another place by --out")
}

// done removes the note of a complete export.
func (c *claim) done() error { return c.root.Remove(c.name) }

// Close releases the lock.
func (c *claim) Close() error { return c.file.Close() }
