package queue

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *Service) storageRoutes() {
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "list-storages", Method: http.MethodGet, Path: "/storages",
		Summary: "List the storages with their states and progress, and the collections with objects that have too few copies",
	}, s.storages)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "list-storage-objects", Method: http.MethodGet, Path: "/storage-objects",
		Summary: "List objects that lack copies: of a storage that is retired those that keep it from that, of another one those that it does not have yet, without a storage those with fewer copies than the profile asks for",
	}, s.storageObjects)
	endpoint.Register(s.Server, endpoint.Operation{
		ID: "change-storage", Method: http.MethodPost, Path: "/storages/{name}",
		Summary: "Add a storage and have it filled, or retire one",
	}, s.changeStorage)
}

func (s *Service) storages(ctx context.Context, _ *struct{}) (*endpoint.Output[wire.StorageReport], error) {
	report, err := s.Registry.Storages(ctx, s.Objects.Names())
	if err != nil {
		return nil, err
	}
	out := wire.StorageReport{StorageReport: report, Addresses: map[string]string{}}
	for _, root := range s.Objects {
		out.Addresses[root.Name] = root.Address
	}
	return &endpoint.Output[wire.StorageReport]{Body: out}, nil
}

type storageObjectsInput struct {
	endpoint.Paging
	Storage    string `query:"storage" maxLength:"63"`
	Collection string `query:"collection" maxLength:"200"`
}

func (s *Service) storageObjects(ctx context.Context, in *storageObjectsInput) (*endpoint.Output[registry.Page[registry.StorageObject]], error) {
	if in.Storage != "" {
		names, err := s.Registry.StorageNames(ctx, s.Objects.Names())
		if err != nil {
			return nil, err
		}
		if !slices.Contains(names, in.Storage) {
			return nil, fmt.Errorf("storage %s: %w", in.Storage, registry.ErrNotFound)
		}
	}
	rows, err := s.Registry.StorageObjects(ctx, registry.StorageObjectsQuery{Storage: in.Storage, Collection: in.Collection, After: in.After, Limit: in.Size()})
	if err != nil {
		return nil, err
	}
	return endpoint.Page(rows), nil
}

type changeStorageInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"Accepted but not needed: a repeat changes nothing"`
	Name string `path:"name" maxLength:"63"`
	Body wire.StorageRequest
}

func (s *Service) changeStorage(ctx context.Context, in *changeStorageInput) (*endpoint.Output[registry.StorageChanged], error) {
	c := registry.StorageChange{
		Name: in.Name, Act: registry.StorageAct(in.Body.Act), Collections: in.Body.Collections, To: in.Body.To, Offsite: in.Body.Offsite,
		DryRun: in.Body.DryRun, Reason: strings.TrimSpace(in.Body.Reason), Actor: access.Actor(ctx),
	}
	faults := valid.Text("body.reason", c.Reason, valid.MaxText)
	switch c.Act {
	case registry.ActFill:
		faults = append(faults, s.knownStorage("path.name", c.Name)...)
	default:
		unknown, err := s.nowhere(ctx, c.Name)
		if err != nil {
			return nil, err
		}
		faults = append(faults, unknown...)
		if c.To != "" {
			faults = append(faults, s.knownStorage("body.to", c.To)...)
		}
	}
	if err := endpoint.Invalid("the storage was not changed", faults...); err != nil {
		return nil, err
	}
	done, err := s.Registry.ChangeStorage(ctx, c)
	if err != nil {
		return nil, err
	}
	if !c.DryRun {
		s.Log.InfoContext(ctx, "storage changed", "storage", c.Name, "act", string(c.Act), "to", c.To, "reason", c.Reason, "actor", c.Actor)
	}
	return &endpoint.Output[registry.StorageChanged]{Body: done}, nil
}

// nowhere refuses a name that no setting, profile or object has: it is misspelt, and a storage that was
// retired under it could never be used.
func (s *Service) nowhere(ctx context.Context, name string) ([]wire.Fault, error) {
	names, err := s.Registry.StorageNames(ctx, s.Objects.Names())
	if err != nil {
		return nil, err
	}
	if slices.Contains(names, name) {
		return nil, nil
	}
	return []wire.Fault{{Location: "path.name", Found: name, Message: fmt.Sprintf("unknown storage; the storages are %s", strings.Join(names, ", "))}}, nil
}

// knownStorage refuses a storage that this process has no address of. Otherwise nothing could be copied
// there, and every deposit to it would wait.
func (s *Service) knownStorage(location, name string) []wire.Fault {
	names := s.Objects.Names()
	if slices.Contains(names, name) {
		return nil
	}
	return []wire.Fault{{
		Location: location, Found: name, Message: fmt.Sprintf("unknown storage; the storages are %s. Add it to HOLDFAST_STORAGE_URL of the Registry and of all workers, and restart them",
			strings.Join(names, ", ")),
	}}
}
