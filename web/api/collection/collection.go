package collection

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/pathset"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/outside"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/api/valid"
	"github.com/holdfast/holdfast/web/wire"
)

// Routes adds the operations.
func (s *Service) Routes() {
	get := http.MethodGet
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-collections", Method: get, Path: "/collections", Summary: "List collections"}, s.collections)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-collection", Method: get, Path: "/collections/{name}", Summary: "Show a collection"}, s.collection)
	endpoint.Register(s.Server, endpoint.Operation{ID: "put-collection", Method: http.MethodPut, Path: "/collections/{name}", Refuses: []int{http.StatusPreconditionFailed}, Summary: "Create a collection, or change its profile for future submissions"}, s.putCollection)
	endpoint.Register(s.Server, endpoint.Operation{ID: "list-profile-versions", Method: get, Path: "/collections/{name}/versions", Summary: "List the versions of a collection's profile, newest first"}, s.profileVersions)
	endpoint.Register(s.Server, endpoint.Operation{ID: "read-profile-version", Method: get, Path: "/collections/{name}/versions/{version}", Summary: "Show a version of a collection's profile"}, s.profileVersion)
}

func (s *Service) collections(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[registry.Collection]], error) {
	all, err := s.Registry.Collections(ctx)
	if err != nil {
		return nil, err
	}
	return endpoint.Listed(all), nil
}

// lookFor returns a collection, or the zero Collection if there is none.
func (s *Service) lookFor(ctx context.Context, name string) (registry.Collection, error) {
	c, err := s.Registry.Collection(ctx, name)
	if errors.Is(err, registry.ErrNotFound) {
		return registry.Collection{}, nil
	}
	return c, err
}

func (s *Service) collection(ctx context.Context, in *lookup.CollectionName) (*collectionOutput, error) {
	c, err := lookup.Collection(ctx, s.Registry, in.Name)
	if err != nil {
		return nil, err
	}
	return taggedCollection(c), nil
}

type putCollectionInput struct {
	lookup.CollectionName
	Preconditions
	DryRun bool `query:"dry_run" doc:"Validate the profile and return the resulting collection, without changing anything"`
	Body   registry.Profile
}

func (s *Service) putCollection(ctx context.Context, in *putCollectionInput) (*collectionOutput, error) {
	in.Body.BagProfile = compacted(in.Body.BagProfile)
	for i := range in.Body.Steps {
		in.Body.Steps[i].Args = compacted(in.Body.Steps[i].Args)
	}
	over, faults := in.over()
	faults = append(checkCollection(in.Name, in.Body, s.Objects.Names()), faults...)
	steps, err := s.stepFaults(ctx, in.Body)
	if err != nil {
		return nil, err
	}
	faults = append(faults, steps...)
	if err := endpoint.Invalid("the collection was not changed", faults...); err != nil {
		return nil, err
	}
	profile := in.Body
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
	if err := s.Registry.PutCollection(ctx, asked, access.Actor(ctx)); err != nil {
		return nil, err
	}
	c, err := s.Registry.Collection(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	s.Log.InfoContext(ctx, "collection saved", "collection", c.Mnemonic, "version", c.Version, "actor", access.Actor(ctx))
	return taggedCollection(c), nil
}

func checkCollection(name string, c registry.Profile, storages []string) []wire.Fault {
	var faults []wire.Fault
	if firstBad := strings.IndexFunc(name, func(r rune) bool { return !mnemonicRune(r) }); firstBad >= 0 || len(name) > 100 {
		faults = append(faults, wire.Fault{
			Location: "path.name", Message: "a collection's name has 1 to 100 letters, digits, - and _", Found: name,
		})
	}
	faults = append(faults, valid.Text("body.name", c.Name, valid.MaxText)...)
	faults = append(faults, arkFault("body.owner", c.Owner)...)
	if len(c.Collections) == 0 {
		faults = append(faults, wire.Fault{
			Location: "body.collections", Message: "missing: every object belongs to at least one collection; give its ARK",
		})
	}
	for i, ark := range c.Collections {
		faults = append(faults, arkFault(fmt.Sprintf("body.collections[%d]", i), ark)...)
	}
	faults = append(faults, templateFault("body.noid_template", c.NOIDTemplate)...)
	faults = append(faults, valid.OneOf("body.minting", c.Minting, []string{registry.MintLocally, registry.MintEZID})...)
	faults = append(faults, storagesFaults("body.storages", c.Storages, storages)...)
	if err := c.CheckCopies(); err != nil {
		faults = append(faults, wire.Fault{Location: "body.copies", Message: err.Error()})
	}
	faults = append(faults, valid.OneOf("body.digest_algorithm", c.DigestAlgorithm, []string{"sha512", "sha256"})...)
	if _, err := pathset.ParseEncoding(c.NameEncoding); err != nil {
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
			Location: "body.duplicate_days", Message: fmt.Sprintf("must be 0 (never) to %d days", registry.MostDuplicateDays), Found: strconv.Itoa(*d),
		})
	}
	if c.Mail != nil {
		faults = append(faults, valid.Mails("body.mail.to", c.Mail.To)...)
		faults = append(faults, mailRuleFaults("body.mail.allow", c.Mail.Allow)...)
	}
	if b := c.UploadBytes; b != nil && *b < 1 {
		faults = append(faults, wire.Fault{Location: "body.upload_bytes", Message: "must be 1 or more, or absent", Found: strconv.FormatInt(*b, 10)})
	}
	if n := c.UploadsOpen; n != nil && *n < 1 {
		faults = append(faults, wire.Fault{Location: "body.uploads_open", Message: "must be 1 or more, or absent", Found: strconv.Itoa(*n)})
	}
	if d := c.RetentionDays; d != nil && (*d < 1 || *d > registry.MostRetentionDays) {
		faults = append(faults, wire.Fault{
			Location: "body.retention_days", Message: fmt.Sprintf("must be 1 to %d days, or absent to keep batches", registry.MostRetentionDays), Found: strconv.Itoa(*d),
		})
	}
	faults = append(faults, valid.Text("body.description", c.Description, valid.MaxText)...)
	faults = append(faults, valid.Text("body.embargo", c.Embargo, valid.MaxText)...)
	faults = append(faults, valid.Terms("body.terms", c.Terms)...)
	return append(faults, valid.Priority("body.priority", c.Priority)...)
}

// stepFaults returns the faults of a profile's outside steps.
func (s *Service) stepFaults(ctx context.Context, p registry.Profile) (faults []wire.Fault, err error) {
	if len(p.Steps) == 0 {
		return nil, nil
	}
	known, err := s.Registry.Functions(ctx)
	for _, f := range outside.Faults(p, known) {
		faults = append(faults, wire.Fault{Location: "body." + f.Path, Message: f.Problem, Found: f.Found})
	}
	return faults, err
}

// storagesFaults returns the faults of a collection's list of storages.
func storagesFaults(location string, names, known []string) (faults []wire.Fault) {
	if err := registry.CheckStorages(names); err != nil {
		return []wire.Fault{{Location: location, Message: err.Error()}}
	}
	for i, name := range names {
		if !slices.Contains(known, name) {
			faults = append(faults, wire.Fault{
				Location: fmt.Sprintf("%s[%d]", location, i), Message: "unknown storage; use one of the existing ones (" +
					strings.Join(known, ", ") + "), or add it to HOLDFAST_STORAGE_URL of the Registry and the workers", Found: name,
			})
		}
	}
	return faults
}

func mnemonicRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_'
}

func arkFault(location, ark string) []wire.Fault {
	if _, err := noid.ParseARK(ark); err != nil {
		return []wire.Fault{{Location: location, Message: err.Error()}}
	}
	return nil
}

// templateFault returns the fault of a NOID template. An empty one means the service's own.
func templateFault(location, template string) []wire.Fault {
	if template == "" {
		return nil
	}
	t, err := noid.ParseTemplate(template)
	switch {
	case err != nil:
		return []wire.Fault{{Location: location, Message: err.Error()}}
	case t.Generator != noid.Random:
		return []wire.Fault{{
			Location: location, Message: "names are random here, not counted; write r in front of the mask", Found: template,
		}}
	}
	return nil
}

func mailRuleFaults(location string, rules []string) (faults []wire.Fault) {
	if most := registry.MostMailAddresses; len(rules) > most {
		return []wire.Fault{{Location: location, Message: fmt.Sprintf("%d addresses and domains; at most %d are allowed", len(rules), most)}}
	}
	for i, rule := range rules {
		if err := registry.CheckMailRule(rule); err != nil || len(rule) > valid.MaxText {
			faults = append(faults, wire.Fault{
				Location: fmt.Sprintf("%s[%d]", location, i), Message: "neither a mail address nor a domain (example.org, or *.example.org for all its subdomains)", Found: rule,
			})
		}
	}
	return faults
}
