package object

import (
	"context"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/wire"
)

// folderRoute adds GET /objects/{id}/folder.
func (s *Service) folderRoute() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "object-folder", Method: http.MethodGet, Path: "/objects/{id}/folder",
		Summary: "List the files and folders in a folder of an object's version, by path",
	}, s.folder)
}

type folderInput struct {
	lookup.ObjectID
	endpoint.Paging
	Path    string `query:"path" maxLength:"4096" doc:"The folder's path with a slash at its end, such as producer/ or producer/plates/"`
	Version int    `query:"version" minimum:"0" doc:"The newest when absent"`
}

func (s *Service) folder(ctx context.Context, in *folderInput) (*endpoint.Output[registry.Page[wire.FolderEntry]], error) {
	if in.Path == "" || !strings.HasSuffix(in.Path, "/") {
		return nil, endpoint.Invalid("the folder was not listed", wire.Fault{Location: "query.path", Message: "a folder's path ends in a slash, such as producer/", Found: in.Path})
	}
	o, err := lookup.Version(ctx, s.Registry, in.ID, in.Version)
	if err != nil {
		return nil, err
	}
	l := &folderListing{service: s, object: o, folder: in.Path, most: in.Size()}
	if err := l.read(ctx, in.After); err != nil {
		return nil, err
	}
	if len(l.rows) == 0 && in.After == "" {
		return nil, endpoint.NotFound("version %d of %s has no folder %q", o.Head, o.ID, in.Path)
	}
	return endpoint.Page(registry.Page[wire.FolderEntry]{Rows: l.rows, Next: l.next}), nil
}

// folderListing lists what is directly in a folder. It passes over the files of a subfolder by
// asking for what comes after them, so that it reads few rows for each entry.
type folderListing struct {
	service *Service
	object  registry.Object // Head is the version
	folder  string
	most    int

	rows []wire.FolderEntry
	next string // cursor of the next page: the last entry's path
}

// read reads up to most entries behind a cursor.
func (l *folderListing) read(ctx context.Context, after string) error {
	const least = 20
	from, limit := l.folder, l.most
	if after > l.folder {
		from = after
	}
	if strings.HasSuffix(after, "/") {
		from = lastIn(after)
	}
	for {
		files, err := l.service.Registry.Files(ctx, l.object.ID, l.object.Head, from, limit)
		if err != nil {
			return err
		}
		for _, f := range files {
			if !strings.HasPrefix(f.Path, l.folder) {
				return nil
			}
			if f.Path <= from {
				continue // in a folder that is listed
			}
			if len(l.rows) == l.most {
				l.next = l.rows[l.most-1].Path
				return nil
			}
			from = l.add(f)
		}
		if len(files) < limit {
			return nil
		}
		// The more often it has to ask, the less is read that it passes over.
		limit = max(least, limit/2)
	}
}

// add adds the entry of a file, and returns what the next entry comes after.
func (l *folderListing) add(f registry.File) (after string) {
	if name, _, ok := strings.Cut(f.Path[len(l.folder):], "/"); ok {
		l.rows = append(l.rows, wire.FolderEntry{Name: name, Path: l.folder + name + "/"})
		return lastIn(l.folder + name + "/")
	}
	l.rows = append(l.rows, wire.FolderEntry{Name: f.Path[len(l.folder):], Path: f.Path, File: &f})
	return f.Path
}

// lastIn returns a string that sorts behind all paths in a folder, and before all others that do.
func lastIn(folder string) string { return folder + strings.Repeat("\xff", 8) }
