// Command ocflgo makes and validates OCFL storage roots by ocfl-go, for tests:
//
//	ocflgo make DIR EXTENSION OCFL ALGORITHM ID...   a new root by the layout of an extension, with objects of these
//	                                                 identifiers: the first with three versions, the others with one
//	ocflgo validate DIR...                           each object of these roots, wherever it lies, byte for byte
//
// validate prints the identifier, newest version and OCFL version of each object, and ends with 1 if one is not valid.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/srerickson/ocfl-go"
	"github.com/srerickson/ocfl-go/digest"
	"github.com/srerickson/ocfl-go/extension"
	"github.com/srerickson/ocfl-go/fs/local"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "ocflgo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) > 5 && args[0] == "make":
		return makeRoot(ctx, args[1], args[2], ocfl.Spec(args[3]), args[4], args[5:])
	case len(args) >= 2 && args[0] == "validate":
		for _, dir := range args[1:] {
			if err := validate(ctx, dir); err != nil {
				return fmt.Errorf("%s: %w", dir, err)
			}
		}
		return nil
	}
	return errors.New("usage: ocflgo make DIR EXTENSION OCFL ALGORITHM ID... | validate DIR...")
}

// makeRoot makes a root with its objects.
func makeRoot(ctx context.Context, dir, layout string, spec ocfl.Spec, algorithm string, ids []string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := local.NewFS(dir)
	if err != nil {
		return err
	}
	by, err := extension.Get(layout)
	if err != nil {
		return err
	}
	if flat, ok := by.(*extension.LayoutFlatOmitPrefix); ok {
		flat.Delimiter = ":" // it has no default
	}
	root, err := ocfl.NewRoot(ctx, files, ".", ocfl.InitRoot(spec, "made for a test", by))
	if err != nil {
		return err
	}
	digests, err := digest.DefaultRegistry().Get(algorithm)
	if err != nil {
		return err
	}
	states := []map[string][]byte{
		{"plate.txt": []byte("glass"), "box/list.txt": []byte("one"), "empty.txt": {}},
		{"plate.txt": []byte("glass"), "box/list.txt": []byte("one, two"), "empty.txt": {}, "copy of plate.txt": []byte("glass")},
		{"renamed.txt": []byte("glass"), "box/list.txt": []byte("one, two")},
	}
	for i, id := range ids {
		for n, state := range states {
			if i > 0 && n > 0 {
				break
			}
			// Another object each time: ocfl-go refuses to update one that it read before it was there.
			object, err := root.NewObject(ctx, id)
			if err != nil {
				return fmt.Errorf("%s: %w", id, err)
			}
			stage, err := ocfl.StageBytes(state, digests, digest.MD5)
			if err != nil {
				return err
			}
			_, err = object.Update(ctx, stage, fmt.Sprintf("version %d", n+1), ocfl.User{Name: "Ada Lindqvist", Address: "mailto:ada@example.org"},
				ocfl.UpdateWithVersionCreated(time.Date(2019, 5, n+1, 9, 30, 0, 0, time.UTC)), ocfl.UpdateWithOCFLSpec(spec))
			if err != nil {
				return fmt.Errorf("%s version %d: %w", id, n+1, err)
			}
		}
	}
	return nil
}

// validate judges all objects of a root.
func validate(ctx context.Context, dir string) error {
	files, err := local.NewFS(dir)
	if err != nil {
		return err
	}
	root, err := ocfl.NewRoot(ctx, files, ".")
	if err != nil {
		return err
	}
	var bad []error
	for declared, err := range root.ObjectDeclarations(ctx) {
		if err != nil {
			return err
		}
		at := declared.FullPathDir()
		if err := root.ValidateObjectDir(ctx, at).Err(); err != nil {
			bad = append(bad, fmt.Errorf("%s: %w", at, err))
			continue
		}
		object, err := root.NewObjectDir(ctx, at)
		if err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
		if place, err := root.ResolveID(object.ID()); err == nil && place != at && at != "./"+place {
			bad = append(bad, fmt.Errorf("%s: %s belongs at %s", at, object.ID(), place))
		}
		fmt.Println(object.ID(), object.Head(), object.Spec())
	}
	return errors.Join(bad...)
}
