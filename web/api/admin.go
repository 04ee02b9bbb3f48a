package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/mint"
	"github.com/holdfast/holdfast/names"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

func (s *server) adminRoutes(api huma.API) {
	get := http.MethodGet
	register(s, api, operation{id: "list-holds", method: get, path: "/holds", summary: "List what is held"}, s.holds)
	register(s, api, operation{id: "add-hold", method: http.MethodPost, path: "/holds", summary: "Keep items of a scope from starting"}, s.addHold)
	register(s, api, operation{id: "remove-hold", method: http.MethodDelete, path: "/holds", summary: "Let go what a hold keeps"}, s.removeHold)
	register(s, api, operation{id: "list-collections", method: get, path: "/collections", summary: "List collections"}, s.collections)
	register(s, api, operation{id: "read-collection", method: get, path: "/collections/{name}", summary: "Show a collection"}, s.collection)
	register(s, api, operation{id: "put-collection", method: http.MethodPut, path: "/collections/{name}", refuses: []int{http.StatusPreconditionFailed}, summary: "Create a collection, or change its profile for submissions to come"}, s.putCollection)
	register(s, api, operation{id: "list-profile-versions", method: get, path: "/collections/{name}/versions", summary: "List the versions of a collection's profile, the newest first"}, s.profileVersions)
	register(s, api, operation{id: "read-profile-version", method: get, path: "/collections/{name}/versions/{version}", summary: "Show a version of a collection's profile"}, s.profileVersion)
	register(s, api, operation{id: "list-workers", method: get, path: "/workers", summary: "List the workers that are alive"}, s.workers)
}

func (s *server) holds(ctx context.Context, _ *struct{}) (*output[registry.Page[registry.Hold]], error) {
	holds, err := s.registry.Holds(ctx)
	if err != nil {
		return nil, err
	}
	return listed(holds), nil
}

// checkScope says whether a hold can have this scope and key. That the thing exists is another question.
func checkScope(in string, scope registry.HoldScope, key string) []wire.Fault {
	switch {
	case !slices.Contains(registry.HoldScopes(), scope):
		return []wire.Fault{{Location: in + ".scope", Message: fmt.Sprintf("%q is not one of %v", scope, registry.HoldScopes())}}
	case scope.Keyless() && key != "":
		return []wire.Fault{{Location: in + ".key", Message: fmt.Sprintf("a hold on %s has no key", scope)}}
	case !scope.Keyless() && key == "":
		return []wire.Fault{{Location: in + ".key", Message: fmt.Sprintf("missing: which %s?", scope)}}
	case scope == registry.HoldStage:
		return oneOf(in+".key", registry.Stage(key), registry.Stages())
	}
	return textFault(in+".key", key, maxText)
}

type addHoldInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"200" doc:"Accepted and not needed: a repeat changes nothing"`
	Body wire.HoldRequest
}

func (s *server) addHold(ctx context.Context, in *addHoldInput) (*output[registry.Hold], error) {
	h := registry.Hold{
		Scope: registry.HoldScope(in.Body.Scope), Key: in.Body.Key, Reason: strings.TrimSpace(in.Body.Reason), Actor: actor(ctx),
	}
	faults := append(checkScope("body", h.Scope, h.Key), textFault("body.reason", h.Reason, maxText)...)
	if h.Reason == "" {
		faults = append(faults, wire.Fault{Location: "body.reason", Message: "missing: whoever finds an item held is shown why"})
	}
	if err := invalid("nothing was held", faults...); err != nil {
		return nil, err
	}
	var err error
	switch h.Scope {
	case registry.HoldCollection:
		_, err = s.collectionOf(ctx, h.Key)
	case registry.HoldBatch:
		_, err = s.batchOf(ctx, h.Key)
	case registry.HoldItem:
		_, err = s.registry.Item(ctx, h.Key)
	case registry.HoldVolume:
		err = s.volumeExists(ctx, h.Key)
	case registry.HoldAll, registry.HoldIngest, registry.HoldStage, registry.HoldWorker: // a worker may be held before it starts
	}
	if err != nil {
		return nil, err
	}
	if err := s.registry.AddHold(ctx, h); err != nil {
		return nil, err
	}
	if h, err = s.holdOf(ctx, h); err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "hold added", "scope", string(h.Scope), "key", h.Key, "reason", h.Reason, "actor", h.Actor)
	return &output[registry.Hold]{Body: h}, nil
}

// holdOf is the hold as it is recorded: a repeat has the first one's time.
func (s *server) holdOf(ctx context.Context, h registry.Hold) (registry.Hold, error) {
	all, err := s.registry.Holds(ctx)
	if err != nil {
		return h, err
	}
	i := slices.IndexFunc(all, func(other registry.Hold) bool { return other.Scope == h.Scope && other.Key == h.Key })
	if i < 0 {
		return h, nil // released again
	}
	return all[i], nil
}

// volumeExists refuses the name of a volume that nothing goes to: a hold on it would keep nothing.
func (s *server) volumeExists(ctx context.Context, name string) error {
	known := append([]string{registry.DefaultStaging}, s.objects.Names()...)
	all, err := s.registry.Collections(ctx)
	if err != nil {
		return err
	}
	for _, c := range all {
		for _, storage := range c.Profile.StorageNames() {
			if !slices.Contains(known, storage) {
				known = append(known, storage)
			}
		}
	}
	if !slices.Contains(known, name) {
		return notFound("there is no volume %q; use one of those there are (%s)", name, strings.Join(known, ", "))
	}
	return nil
}

type removeHoldInput struct {
	Scope registry.HoldScope `query:"scope" required:"true"`
	Key   string             `query:"key" id:"scope" maxLength:"200"`
}

func (s *server) removeHold(ctx context.Context, in *removeHoldInput) (*struct{}, error) {
	if err := invalid("nothing was released", checkScope("query", in.Scope, in.Key)...); err != nil {
		return nil, err
	}
	err := s.registry.RemoveHold(ctx, in.Scope, in.Key, actor(ctx))
	if errors.Is(err, registry.ErrNotFound) {
		return nil, notFound("there is no hold on %s; list the holds to see those there are",
			strings.TrimSpace(string(in.Scope)+" "+in.Key))
	}
	if err == nil {
		s.log.InfoContext(ctx, "hold released", "scope", string(in.Scope), "key", in.Key, "actor", actor(ctx))
	}
	return nil, err
}

func (s *server) collections(ctx context.Context, _ *struct{}) (*output[registry.Page[registry.Collection]], error) {
	all, err := s.registry.Collections(ctx)
	if err != nil {
		return nil, err
	}
	return listed(all), nil
}

// CollectionName names a collection in a path.
type CollectionName struct {
	Name string `path:"name" maxLength:"200"`
}

// collectionOf returns a collection, or a problem that names those there are.
func (s *server) collectionOf(ctx context.Context, name string) (registry.Collection, error) {
	c, err := s.registry.Collection(ctx, name)
	if !errors.Is(err, registry.ErrNotFound) {
		return c, err
	}
	all, err := s.registry.Collections(ctx)
	if err != nil {
		return c, err
	}
	const shown = 20
	names := make([]string, 0, shown)
	for _, known := range all {
		if len(names) == shown {
			names = append(names, "...")
			break
		}
		names = append(names, known.Mnemonic)
	}
	return c, notFound("there is no collection %q; use one of those there are (%s), or have an admin create it",
		name, strings.Join(names, ", "))
}

// lookFor returns a collection, the zero one when there is none.
func (s *server) lookFor(ctx context.Context, name string) (registry.Collection, error) {
	c, err := s.registry.Collection(ctx, name)
	if errors.Is(err, registry.ErrNotFound) {
		return registry.Collection{}, nil
	}
	return c, err
}

func (s *server) collection(ctx context.Context, in *CollectionName) (*collectionOutput, error) {
	c, err := s.collectionOf(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return taggedCollection(c), nil
}

type putCollectionInput struct {
	CollectionName
	Preconditions
	DryRun bool `query:"dry_run" doc:"Judge the profile and answer what would be there, and change nothing"`
	Body   registry.Profile
}

func (s *server) putCollection(ctx context.Context, in *putCollectionInput) (*collectionOutput, error) {
	over, faults := in.over()
	faults = append(checkCollection(in.Name, in.Body, s.objects.Names()), faults...)
	if err := invalid("the collection was not changed", faults...); err != nil {
		return nil, err
	}
	profile := in.Body
	profile.BagProfile = compacted(profile.BagProfile)
	if profile.Name == "" {
		profile.Name = in.Name
	}
	asked := registry.Collection{Mnemonic: in.Name, Profile: profile, Version: over}
	if in.DryRun {
		would, err := s.wouldPut(ctx, asked)
		if err != nil {
			return nil, err
		}
		return taggedCollection(would), nil
	}
	if err := s.registry.PutCollection(ctx, asked, actor(ctx)); err != nil {
		return nil, err
	}
	c, err := s.registry.Collection(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	s.log.InfoContext(ctx, "collection saved", "collection", c.Mnemonic, "version", c.Version, "actor", actor(ctx))
	return taggedCollection(c), nil
}

func checkCollection(name string, c registry.Profile, storages []string) []wire.Fault {
	var faults []wire.Fault
	if firstBad := strings.IndexFunc(name, func(r rune) bool { return !mnemonicRune(r) }); firstBad >= 0 || len(name) > 100 {
		faults = append(faults, wire.Fault{
			Location: "path.name", Message: "a collection's name has 1 to 100 letters, digits, - and _", Found: name,
		})
	}
	faults = append(faults, textFault("body.name", c.Name, maxText)...)
	faults = append(faults, arkFault("body.owner", c.Owner)...)
	if len(c.Collections) == 0 {
		faults = append(faults, wire.Fault{
			Location: "body.collections", Message: "missing: every object is a member of at least one collection; give its ARK",
		})
	}
	for i, ark := range c.Collections {
		faults = append(faults, arkFault(fmt.Sprintf("body.collections[%d]", i), ark)...)
	}
	faults = append(faults, templateFault("body.noid_template", c.NOIDTemplate)...)
	faults = append(faults, oneOf("body.minting", c.Minting, []string{registry.MintLocally, registry.MintEZID})...)
	faults = append(faults, storagesFaults("body.storages", c.Storages, storages)...)
	faults = append(faults, oneOf("body.digest_algorithm", c.DigestAlgorithm, []string{"sha512", "sha256"})...)
	if _, err := names.ParseEncoding(c.NameEncoding); err != nil {
		faults = append(faults, wire.Fault{Location: "body.name_encoding", Message: err.Error(), Found: c.NameEncoding})
	}
	faults = append(faults, bagProfileFaults("body.bag_profile", c.BagProfile)...)
	if c.Callback != nil {
		if err := c.Callback.Check(); err != nil {
			faults = append(faults, wire.Fault{Location: "body.callback.url", Message: err.Error()})
		}
	}
	if d := c.DuplicateDays; d != nil && (*d < 0 || *d > registry.MostDuplicateDays) {
		faults = append(faults, wire.Fault{
			Location: "body.duplicate_days", Message: fmt.Sprintf("it is 0, for never, to %d days", registry.MostDuplicateDays), Found: strconv.Itoa(*d),
		})
	}
	if c.Mail != nil {
		faults = append(faults, mailFaults("body.mail.to", c.Mail.To)...)
		faults = append(faults, mailRuleFaults("body.mail.allow", c.Mail.Allow)...)
	}
	if b := c.UploadBytes; b != nil && *b < 1 {
		faults = append(faults, wire.Fault{Location: "body.upload_bytes", Message: "it is 1 or more, or left out", Found: strconv.FormatInt(*b, 10)})
	}
	if n := c.UploadsOpen; n != nil && *n < 1 {
		faults = append(faults, wire.Fault{Location: "body.uploads_open", Message: "it is 1 or more, or left out", Found: strconv.Itoa(*n)})
	}
	if d := c.RetentionDays; d != nil && (*d < 1 || *d > registry.MostRetentionDays) {
		faults = append(faults, wire.Fault{
			Location: "body.retention_days", Message: fmt.Sprintf("it is 1 to %d days, or left out to keep batches", registry.MostRetentionDays), Found: strconv.Itoa(*d),
		})
	}
	faults = append(faults, textFault("body.description", c.Description, maxText)...)
	faults = append(faults, textFault("body.embargo", c.Embargo, maxText)...)
	return append(faults, priorityFault("body.priority", c.Priority)...)
}

// storagesFaults says why a collection cannot have these storages.
func storagesFaults(location string, names, known []string) (faults []wire.Fault) {
	if err := registry.CheckStorages(names); err != nil {
		return []wire.Fault{{Location: location, Message: err.Error()}}
	}
	for i, name := range names {
		if !slices.Contains(known, name) {
			faults = append(faults, wire.Fault{
				Location: fmt.Sprintf("%s[%d]", location, i), Message: "there is no storage of this name; use one of those there are (" +
					strings.Join(known, ", ") + "), or name it in HOLDFAST_STORAGE_URL of the Registry and the workers", Found: name,
			})
		}
	}
	return faults
}

func mnemonicRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

func arkFault(location, ark string) []wire.Fault {
	if _, err := mint.ParseARK(ark); err != nil {
		return []wire.Fault{{Location: location, Message: err.Error()}}
	}
	return nil
}

// templateFault says why objects cannot be named by this template; an empty one stands for the service's.
func templateFault(location, template string) []wire.Fault {
	if template == "" {
		return nil
	}
	t, err := mint.ParseTemplate(template)
	switch {
	case err != nil:
		return []wire.Fault{{Location: location, Message: err.Error()}}
	case t.Generator != mint.Random:
		return []wire.Fault{{
			Location: location, Message: "names are drawn at random here, since nobody counts them; write r in front of the mask", Found: template,
		}}
	}
	return nil
}

func (s *server) workers(ctx context.Context, _ *struct{}) (*output[registry.Page[registry.WorkerInfo]], error) {
	all, err := s.registry.Workers(ctx)
	if err != nil {
		return nil, err
	}
	return listed(all), nil
}
