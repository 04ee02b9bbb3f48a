package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/mint"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *server) objectRoutes(api huma.API) {
	get := http.MethodGet
	register(s, api, operation{id: "list-objects", method: get, path: "/objects", summary: "List objects, newest first"}, s.listObjects)
	register(s, api, operation{id: "read-object", method: get, path: "/objects/{id}", summary: "Show an object and its versions"}, s.object)
	register(s, api, operation{id: "object-files", method: get, path: "/objects/{id}/files", summary: "The files of an object's version, by path"}, s.files)
	register(s, api, operation{id: "object-events", method: get, path: "/objects/{id}/events", summary: "The preservation events of an object"}, s.premis)
	register(s, api, operation{id: "receipt-keys", method: get, path: "/receipt-keys", summary: "The public keys of all receipts"}, s.receiptKeys)
	register(s, api, operation{id: "verify-object", method: http.MethodPost, path: "/objects/{id}/verify", summary: "Read every byte of an object again and compare"}, s.verify)
	register(s, api, operation{id: "audit-object", method: http.MethodPost, path: "/objects/{id}/audit", summary: "Follow an object's chain of events and compare it with its signed receipts"}, s.auditObject)
	register(s, api, operation{id: "audit-checkpoints", method: http.MethodPost, path: "/checkpoints/audit", summary: "Compare the record of events with the newest signed checkpoint in each storage"}, s.auditCheckpoints)
	register(s, api, operation{id: "accept-older", method: http.MethodPost, path: "/checkpoints/acceptance", summary: "Accept, as two people, that the record of events is older than its checkpoints, as after a backup was restored"}, s.acceptOlder)
	register(s, api, operation{id: "check-object", method: http.MethodPost, path: "/objects/{id}/fixity", summary: "Have every stored file of an object checked in every storage, by items of action fixity", status: http.StatusAccepted}, s.checkObject)
}

// ObjectID names an object in a path.
type ObjectID struct {
	ID string `path:"id" maxLength:"4096" doc:"The object's ARK, percent-encoded"`
}

// known returns the object that an ARK, in whatever spelling, names.
func (s *server) known(ctx context.Context, id string) (registry.Object, error) {
	ark, err := mint.ParseARK(id)
	if err != nil {
		return registry.Object{}, invalid("no object can have this id", wire.Fault{
			Location: "path.id", Message: err.Error() + "; give the object's ARK, such as ark:/99999/fk4m90r79g (percent-encoded in an address)", Found: id,
		})
	}
	name := ark.ObjectID()
	o, err := s.registry.Object(ctx, name)
	if errors.Is(err, registry.ErrNotFound) {
		return o, notFound("there is no object %s; check the ARK, or list the objects", name)
	}
	return o, err
}

type objectsInput struct {
	Paging
	Collection string `query:"collection" maxLength:"200"`
	LocalID    string `query:"local_id" maxLength:"2000"`
	Text       string `query:"text" maxLength:"500" doc:"Part of the ARK, the title or the creator"`
}

func (s *server) listObjects(ctx context.Context, in *objectsInput) (*output[registry.Page[registry.Object]], error) {
	rows, err := s.registry.Objects(ctx, registry.ObjectQuery{
		Collection: in.Collection, LocalID: in.LocalID, Text: in.Text, After: in.After, Limit: in.size(),
	})
	if err != nil {
		return nil, in.badCursor(err)
	}
	return page(rows), nil
}

func (s *server) object(ctx context.Context, in *ObjectID) (*output[registry.Object], error) {
	o, err := s.known(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	return &output[registry.Object]{Body: o}, nil
}

type filesInput struct {
	ObjectID
	Paging
	Version int `query:"version" minimum:"0" doc:"The newest when not given"`
}

func (s *server) files(ctx context.Context, in *filesInput) (*output[registry.Page[registry.File]], error) {
	o, err := s.versionOf(ctx, in.ID, in.Version)
	if err != nil {
		return nil, err
	}
	limit := in.size()
	files, err := s.registry.Files(ctx, o.ID, o.Head, in.After, limit)
	if err != nil {
		return nil, err
	}
	p := registry.Page[registry.File]{Rows: files}
	if len(files) == limit {
		p.Next = files[limit-1].Path
	}
	return page(p), nil
}

// readable is known for an object whose content is asked for: one that was deleted is answered with 410, and by whom and why.
func (s *server) readable(ctx context.Context, id string) (registry.Object, error) {
	o, err := s.known(ctx, id)
	if err == nil && o.Gone != "" {
		err = wire.NewProblem(http.StatusGone, wire.CodeGone, fmt.Sprintf("object %s is no more: %s", o.ID, o.Deletion.Text()))
	}
	return o, err
}

// versionOf returns an object with Head set to the version asked for, 0 being the newest.
func (s *server) versionOf(ctx context.Context, id string, version int) (registry.Object, error) {
	o, err := s.known(ctx, id)
	if err != nil || version == 0 {
		return o, err
	}
	if version < 0 || version > o.Head {
		return o, notFound("object %s has no version %d; its newest is %d", o.ID, version, o.Head)
	}
	o.Head = version
	return o, nil
}

type premisInput struct {
	ObjectID
	Paging
}

func (s *server) premis(ctx context.Context, in *premisInput) (*output[registry.Page[registry.Premis]], error) {
	o, err := s.known(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	events, err := s.registry.PremisEvents(ctx, o.ID, in.After, in.size())
	if err != nil {
		return nil, in.badCursor(err)
	}
	return page(events), nil
}

// verify reads every byte of every replica of an object, one after the other, and compares what is in storage with the digests and
// versions that the Registry recorded. Where these cannot be read any more, what the bytes come to by their own inventory is
// told, and that it is no more than that.
func (s *server) verify(ctx context.Context, in *ObjectID) (*output[wire.VerifyReport], error) {
	o, err := s.readable(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	heads, err := s.replicasOf(ctx, o)
	if err != nil {
		return nil, err
	}
	v := wire.VerifyReport{ObjectID: o.ID, Recorded: o.Head, Valid: len(heads) > 0, Against: wire.AgainstRecord, Replicas: []wire.VerifyReplica{}, Faults: []wire.VerifyFault{}}
	for i, h := range heads {
		r, faults, err := s.verifyReplica(ctx, o, h)
		if err != nil {
			return nil, err
		}
		if i == 0 || r.Version < v.Version {
			v.Version = r.Version
		}
		v.Valid = v.Valid && r.Valid
		if r.Against != wire.AgainstRecord {
			v.Against = r.Against
		}
		v.Files, v.Bytes = v.Files+r.Files, v.Bytes+r.Bytes
		v.Replicas, v.Faults = append(v.Replicas, r), append(v.Faults, faults...)
	}
	v.At = s.now().UTC()
	s.log.InfoContext(ctx, "object verified", "object", o.ID, "valid", v.Valid, "replicas", len(heads), "files", v.Files, "actor", actor(ctx))
	return &output[wire.VerifyReport]{Body: v}, nil
}

// versionNumber is the number in the name of an OCFL version.
func versionNumber(name string) (int, bool) {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "v"))
	return n, err == nil
}

type checkObjectInput struct {
	ObjectID
	Body wire.CheckObjectRequest
}

// checkObject has every file of an object looked at, and answers how things stand.
func (s *server) checkObject(ctx context.Context, in *checkObjectInput) (*output[registry.Object], error) {
	o, err := s.known(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	if err := s.registry.AskForCheck(ctx, o.ID, in.Body.Reason, actor(ctx)); err != nil {
		return nil, err
	}
	return answered(s.registry.Object(ctx, o.ID))
}
