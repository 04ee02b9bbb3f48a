package catalog

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

const selectObject = `SELECT o.id, o.tenant, o.collection, o.owner, o.title, o.creator, o.date, o.head, o.files,
	o.size_bytes, o.created_at, o.updated_at, o.gone, o.terms, o.ocfl_id, o.adopted, o.padding FROM object o`

func scanObject(row sqldb.Scanner) (registry.Object, error) {
	var o registry.Object
	var created, updated int64
	var terms string
	err := row.Scan(&o.ID, &o.Tenant, &o.Collection, &o.Owner, &o.Title, &o.Creator, &o.Date, &o.Head, &o.Files,
		&o.SizeBytes, &created, &updated, &o.Gone, &terms, &o.OCFLID, &o.Adopted, &o.Padding)
	if err != nil {
		return o, err
	}
	o.ARK, o.CreatedAt, o.UpdatedAt = o.ID, sqldb.FromMicros(created), sqldb.FromMicros(updated)
	o.Terms, err = decodeTerms(terms)
	return o, err
}

// Object implements registry.Inventory.
func (s *Catalog) Object(ctx context.Context, id string) (registry.Object, error) {
	o, err := scanObject(s.db.Read.QueryRowContext(ctx, selectObject+` WHERE o.id = $1 AND o.head > 0`, id))
	if errors.Is(err, sql.ErrNoRows) {
		return o, fmt.Errorf("object %s: %w", id, registry.ErrNotFound)
	} else if err != nil {
		return o, fmt.Errorf("read object %s: %w", id, err)
	}
	all := []registry.Object{o}
	if err := s.addLocalIDs(ctx, all); err != nil {
		return o, err
	}
	if all[0].Versions, err = s.versions(ctx, id); err != nil {
		return o, err
	}
	if all[0].Deletion, err = s.deletionOf(ctx, id); err != nil {
		return o, err
	}
	if err := s.addInventories(ctx, &all[0]); err != nil {
		return o, err
	}
	return all[0], s.addChecks(ctx, &all[0])
}

// addInventories fills in the recorded digests of the versions' inventories, and which version is
// announced.
func (s *Catalog) addInventories(ctx context.Context, o *registry.Object) (err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT COALESCE(MAX(version), 0) FROM object_version
		WHERE object_id = $1 AND status = 'intended'`, o.ID).Scan(&o.Announced)
	if err != nil {
		return fmt.Errorf("look up what is announced of %s: %w", o.ID, err)
	}
	if len(o.Versions) == 0 {
		return nil
	}
	paths := make([]any, len(o.Versions))
	versions := map[string]*registry.ObjectVersion{}
	for i := range o.Versions {
		path := o.InventoryPath(o.Versions[i].Version)
		versions[path], paths[i] = &o.Versions[i], []byte(path)
	}
	var w sqldb.Where
	w.Add("object_id = ?", o.ID)
	w.Add("content_path IN (?"+strings.Repeat(", ?", len(paths)-1)+")", paths...)
	ask := s.db.Read.Ask(ctx, `SELECT content_path, digests FROM stored_file`+w.String(), w.Args...)
	return sqldb.Each(ask, "look up the inventories of "+o.ID, func(row sqldb.Scanner) error {
		var path []byte
		var text string
		if err := row.Scan(&path, &text); err != nil {
			return err
		}
		digests, err := decodeDigests(text)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", path, o.ID, err)
		}
		for algorithm, digest := range digests {
			versions[string(path)].Inventory = algorithm + ":" + digest
		}
		return nil
	})
}

// addLocalIDs fills in the local ids of objects, sorted.
func (s *Catalog) addLocalIDs(ctx context.Context, objects []registry.Object) (err error) {
	if len(objects) == 0 {
		return nil
	}
	byARK := map[string]*registry.Object{}
	args := make([]any, len(objects))
	for i := range objects {
		objects[i].LocalIDs = []string{}
		byARK[objects[i].ARK], args[i] = &objects[i], objects[i].ARK
	}
	var w sqldb.Where
	w.Add("ark IN (?"+strings.Repeat(", ?", len(args)-1)+")", args...)
	ask := s.db.Read.Ask(ctx, `SELECT ark, local_id FROM identifier`+w.String()+` ORDER BY ark, local_id`, w.Args...)
	return sqldb.Each(ask, "look up local ids", func(row sqldb.Scanner) error {
		var ark, local string
		if err := row.Scan(&ark, &local); err != nil {
			return err
		}
		byARK[ark].LocalIDs = append(byARK[ark].LocalIDs, local)
		return nil
	})
}

func (s *Catalog) versions(ctx context.Context, id string) (out []registry.ObjectVersion, err error) {
	err = sqldb.Each(s.db.Read.Ask(ctx, `SELECT v.version, v.item_id, v.files, v.size_bytes, v.created_at, v.recorded_at,
			COALESCE(r.storage, ''), COALESCE(r.verified_at, 0)
		FROM object_version v LEFT JOIN replica r ON r.object_id = v.object_id AND r.version = v.version
		WHERE v.object_id = $1 AND v.status = 'recorded' ORDER BY v.version, r.storage`, id), "read versions of "+id, func(row sqldb.Scanner) error {
		var v registry.ObjectVersion
		var r registry.Replica
		var created, recorded, verified int64
		err := row.Scan(&v.Version, &v.ItemID, &v.Files, &v.SizeBytes, &created, &recorded, &r.Storage, &verified)
		if err != nil {
			return err
		}
		if len(out) == 0 || out[len(out)-1].Version != v.Version {
			v.CreatedAt, v.RecordedAt = sqldb.FromMicros(created), sqldb.FromMicros(recorded)
			out = append(out, v)
		}
		if r.Storage != "" {
			r.VerifiedAt = sqldb.FromMicros(verified)
			last := &out[len(out)-1]
			last.Replicas = append(last.Replicas, r)
		}
		return nil
	})
	return out, err
}

// Objects implements registry.Catalog.
func (s *Catalog) Objects(ctx context.Context, q registry.ObjectQuery) (page registry.Page[registry.Object], err error) {
	ids, few, err := s.fewWith(ctx, q.Text)
	if err != nil {
		return page, err
	}
	var w sqldb.Where
	if q.LocalID == "" && !few {
		w.Add("o.tenant = ?", sqldb.Tenant)
	} else {
		// SQLite would read the whole list by its index on the tenant, instead of the few objects that
		// have a local id, or a text, by their key.
		w.Add("o.tenant || '' = ?", sqldb.Tenant)
	}
	if few && len(ids) == 0 {
		return page, nil
	} else if few {
		w.AddIn("o.id", ids)
	}
	w.Add("o.head > 0")
	if q.Collection != "" {
		w.Add("o.collection = ?", q.Collection)
	}
	w.Within("o.collection", q.Within)
	if q.LocalID != "" {
		w.Add("o.id IN (SELECT ark FROM identifier WHERE local_id = ?)", q.LocalID)
	}
	if q.Text != "" {
		p := sqldb.Contains(q.Text)
		w.Add(`(LOWER(o.id) LIKE LOWER(?) ESCAPE '\' OR LOWER(o.title) LIKE LOWER(?) ESCAPE '\' OR LOWER(o.creator) LIKE LOWER(?) ESCAPE '\')`, p, p, p)
	}
	if page, err = s.objectPage(ctx, q, w); err != nil {
		return page, err
	}
	return page, s.addLocalIDs(ctx, page.Rows)
}

// fewMatches is how many objects that have a text are all read and sorted. If more have it, a list
// reads all objects, the newest first, until its page is full.
const fewMatches = 500

// fewWith asks SQLite's index of the text of objects for those that have a text, and maybe some
// others, and reports whether they are few. The index cannot find less than three characters.
func (s *Catalog) fewWith(ctx context.Context, text string) (ids []string, few bool, err error) {
	if s.db.Dialect.Name() != sqldb.SQLite || !utf8.ValidString(text) || strings.ContainsRune(text, 0) || utf8.RuneCountInString(text) < 3 {
		return nil, false, nil
	}
	ids, err = s.db.Column(ctx, fmt.Sprintf(`SELECT id FROM object_text WHERE object_text MATCH $1 LIMIT %d`, fewMatches+1),
		`"`+strings.ReplaceAll(text, `"`, `""`)+`"`)
	if err != nil {
		return nil, false, fmt.Errorf("find objects by text: %w", err)
	}
	return ids, len(ids) <= fewMatches, nil
}

// objectPage reads the page of a list behind its cursor, or the one that ends before it.
func (s *Catalog) objectPage(ctx context.Context, q registry.ObjectQuery, w sqldb.Where) (page registry.Page[registry.Object], err error) {
	if q.After != "" && q.Before != "" {
		return page, fmt.Errorf("%w: a page is after one object or before one", registry.ErrInvalid)
	}
	beyond, order := "<", " DESC"
	if q.Before != "" {
		beyond, order = ">", ""
	}
	cursor := cmp.Or(q.After, q.Before)
	if cursor != "" {
		n, id, err := sqldb.ParseCursor(cursor)
		if err != nil {
			return page, err
		}
		w.Add("(o.created_at, o.id) "+beyond+" (?, ?)", n, id)
	}
	limit := sqldb.PageSize(q.Limit)
	query := selectObject + w.String() + " ORDER BY o.created_at" + order + ", o.id" + order + " LIMIT " + strconv.Itoa(limit+1)
	rows, err := sqldb.Collect(s.db.Read.Ask(ctx, query, w.Args...), "list objects", scanObject)
	at := func(o registry.Object) string { return sqldb.Cursor(sqldb.Micros(o.CreatedAt), o.ID) }
	page = sqldb.PageOf(rows, limit, at)
	if cursor != "" && len(page.Rows) > 0 {
		page.Prev = at(page.Rows[0])
	}
	if q.Before != "" {
		slices.Reverse(page.Rows)
		page.Next, page.Prev = page.Prev, page.Next
	}
	return page, err
}

// Files implements registry.Inventory. A path's newest row up to the version counts.
func (s *Catalog) Files(ctx context.Context, objectID string, version int, after string, limit int) ([]registry.File, error) {
	head, err := s.recordedHead(ctx, objectID)
	switch {
	case err != nil:
		return nil, err
	case version > head || version < 0:
		return nil, fmt.Errorf("version %d of object %s: %w", version, objectID, registry.ErrNotFound)
	case version == 0:
		version = head
	}
	// The head bounds the version, so rows of an announced version stay hidden.
	// Rows of later versions need no look at the others of their file.
	return s.fileRows(ctx, objectID, filesOfVersion, objectID, []byte(after), version, sqldb.PageSize(limit))
}

// filesOfVersion reads the files of a version behind a path.
const filesOfVersion = selectFile + `f.path > $2 AND f.version <= $3 AND f.deleted = 0 AND f.version = (
	SELECT MAX(g.version) FROM file g WHERE g.object_id = f.object_id AND g.path = f.path AND g.version <= $3)
	ORDER BY f.path LIMIT $4`

// FileHistory implements registry.Attesting.
func (s *Catalog) FileHistory(ctx context.Context, objectID string, after registry.FilePlace, limit int) ([]registry.File, error) {
	head, err := s.recordedHead(ctx, objectID)
	if err != nil {
		return nil, err
	}
	return s.fileRows(ctx, objectID, selectFile+`(f.path, f.version) > ($2, $3) AND f.version <= $4
		ORDER BY f.path, f.version LIMIT $5`, objectID, []byte(after.Path), after.Version, head, sqldb.PageSize(limit))
}

// recordedHead returns an object's newest version. It returns ErrNotFound for an object without
// one.
func (s *Catalog) recordedHead(ctx context.Context, objectID string) (head int, err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT head FROM object WHERE id = $1 AND head > 0`, objectID).Scan(&head)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("object %s: %w", objectID, registry.ErrNotFound)
	} else if err != nil {
		return 0, fmt.Errorf("read object %s: %w", objectID, err)
	}
	return head, nil
}

const selectFile = `SELECT f.path, f.version, f.content_path, f.size_bytes, f.digests, f.mime_type, f.format, f.deleted, f.modified_at
	FROM file f WHERE f.object_id = $1 AND `

func (s *Catalog) fileRows(ctx context.Context, objectID, query string, args ...any) (out []registry.File, err error) {
	return sqldb.Collect(s.db.Read.Ask(ctx, query, args...), "list files of "+objectID, func(row sqldb.Scanner) (registry.File, error) {
		var f registry.File
		var path, content []byte
		var digests, format string
		var modified sql.NullInt64
		if err := row.Scan(&path, &f.Version, &content, &f.SizeBytes, &digests, &f.MIMEType, &format, &f.Deleted, &modified); err != nil {
			return f, err
		}
		if modified.Valid {
			f.Modified = sqldb.FromMicros(modified.Int64)
		}
		f.Path, f.ContentPath = string(path), string(content)
		if f.Digests, err = decodeDigests(digests); err != nil {
			return f, fmt.Errorf("file %q: %w", f.Path, err)
		}
		if f.Format, err = decodeFormat(format); err != nil {
			return f, fmt.Errorf("file %q: %w", f.Path, err)
		}
		return f, nil
	})
}

// addChecks fills in the state of the checks of an object's files.
func (s *Catalog) addChecks(ctx context.Context, o *registry.Object) error {
	var asked sql.NullInt64
	err := s.db.Read.QueryRowContext(ctx, `SELECT check_asked_at, (SELECT COUNT(*) FROM stored_file
		WHERE object_id = $1 AND damaged_at IS NOT NULL) FROM object WHERE id = $1`, o.ID).Scan(&asked, &o.Damaged)
	if err != nil {
		return fmt.Errorf("look up the checks of %s: %w", o.ID, err)
	}
	o.CheckAsked = sqldb.Optional(asked)
	if o.Damaged > 0 {
		if err := s.addDamages(ctx, o); err != nil {
			return fmt.Errorf("look up the damaged files of %s: %w", o.ID, err)
		}
	}
	var file []byte
	var checked int64
	err = s.db.Read.QueryRowContext(ctx, `SELECT content_path, checked_at FROM stored_file WHERE object_id = $1 AND version <= $2
		ORDER BY checked_at LIMIT 1`, o.ID, o.Head).Scan(&file, &checked)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look up the checks of %s: %w", o.ID, err)
	}
	o.CheckedAt, o.Unchecked = sqldb.FromMicros(checked), sqldb.Clean(string(file))
	return nil
}

// addDamages fills in where files of an object are damaged, by what their last checks noted. A file whose
// check was deleted since is left out.
func (s *Catalog) addDamages(ctx context.Context, o *registry.Object) error {
	const notes = 2 * registry.MostLocated // a check that was requeued may have several
	in := map[string]int64{}
	var last registry.FileDamage // by the newest note so far
	located := func() {
		if o.Located == registry.MostLocated || len(last.Replicas) == 0 {
			return
		}
		o.Located++
		for _, c := range last.Replicas {
			in[c.Storage]++
		}
		if len(o.Damages) < registry.MostDamages {
			o.Damages = append(o.Damages, last)
		}
	}
	err := sqldb.Each(s.db.Read.Ask(ctx, `SELECT e.data FROM stored_file f JOIN event e ON e.item_id = f.item_id AND e.type = $2
		WHERE f.object_id = $1 AND f.damaged_at IS NOT NULL AND f.item_id <> '' ORDER BY f.content_path, e.at, e.id`+sqldb.Limit(notes), o.ID, registry.EventFileDamaged), "list notes", func(row sqldb.Scanner) error {
		var data string
		if err := row.Scan(&data); err != nil {
			return err
		}
		var noted checkedEvent
		if err := json.Unmarshal([]byte(data), &noted); err != nil {
			return fmt.Errorf("decode the note of a check: %w", err)
		}
		if noted.File != last.File {
			located()
		}
		last = registry.FileDamage{File: noted.File, Replicas: slices.DeleteFunc(noted.Replicas, func(c registry.ReplicaCheck) bool { return c.Outcome.Right() })}
		return nil
	})
	located()
	for _, name := range slices.Sorted(maps.Keys(in)) {
		o.DamagedIn = append(o.DamagedIn, registry.StorageDamage{Storage: name, Files: in[name]})
	}
	return err
}
