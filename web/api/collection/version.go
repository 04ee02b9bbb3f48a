package collection

import (
	"context"
	"strconv"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/wire"
)

// collectionOutput is a collection with the version of its profile as its entity tag.
type collectionOutput struct {
	ETag string `header:"ETag" doc:"The version of the profile in quotes, for If-Match"`
	Body registry.Collection
}

func taggedCollection(c registry.Collection) *collectionOutput {
	return &collectionOutput{ETag: strconv.Quote(strconv.Itoa(c.Version)), Body: c}
}

// Preconditions say which version of a profile to replace.
type Preconditions struct {
	Match     string `header:"If-Match" maxLength:"200" doc:"The version to replace, in quotes, as in the ETag of GET; refused with 412 if the collection has another one now"`
	NoneMatch string `header:"If-None-Match" maxLength:"200" doc:"*: refused with 412 if the collection exists"`
}

// over returns the version to replace.
func (p Preconditions) over() (int, []wire.Fault) {
	switch {
	case p.Match != "" && p.NoneMatch != "":
		return 0, []wire.Fault{{Location: "header.If-None-Match", Message: "give either If-Match or If-None-Match, not both"}}
	case p.NoneMatch == "*":
		return registry.NoVersion, nil
	case p.NoneMatch != "":
		return 0, []wire.Fault{{Location: "header.If-None-Match", Message: "only * is allowed", Found: p.NoneMatch}}
	case p.Match == "":
		return registry.AnyVersion, nil
	}
	text, quoted := strings.CutPrefix(p.Match, `"`)
	text, ended := strings.CutSuffix(text, `"`)
	n, err := strconv.Atoi(text)
	if !quoted || !ended || err != nil || n < 1 {
		return 0, []wire.Fault{{Location: "header.If-Match", Message: `give one version's number in quotes, as in "3"`, Found: p.Match}}
	}
	return n, nil
}

// wouldPut returns what PutCollection would make, and changes nothing.
func (s *Service) wouldPut(ctx context.Context, c registry.Collection) (registry.Collection, error) {
	have, err := s.lookFor(ctx, c.Mnemonic)
	if err != nil {
		return c, err
	}
	return have.Next(c)
}

type profileVersionsInput struct {
	lookup.CollectionName
	endpoint.Paging
}

func (s *Service) profileVersions(ctx context.Context, in *profileVersionsInput) (*endpoint.Output[registry.Page[registry.ProfileVersion]], error) {
	before, err := in.Before()
	if err != nil {
		return nil, err
	}
	if _, err := lookup.Collection(ctx, s.Registry, in.Name); err != nil {
		return nil, err
	}
	rows, err := s.Registry.ProfileVersions(ctx, in.Name, before, in.Size())
	if err != nil {
		return nil, err
	}
	return endpoint.Page(endpoint.Numbered(rows, in.Size(), func(v registry.ProfileVersion) int { return v.Version })), nil
}

type profileVersionInput struct {
	lookup.CollectionName
	Version int `path:"version" minimum:"1" doc:"The version's number"`
}

func (s *Service) profileVersion(ctx context.Context, in *profileVersionInput) (*endpoint.Output[registry.ProfileVersion], error) {
	if _, err := lookup.Collection(ctx, s.Registry, in.Name); err != nil {
		return nil, err
	}
	rows, err := s.Registry.ProfileVersions(ctx, in.Name, in.Version+1, 1)
	if err == nil && (len(rows) == 0 || rows[0].Version != in.Version) {
		err = endpoint.NotFound("the profile of collection %s has no version %d; list its versions", in.Name, in.Version)
	}
	if err != nil {
		return nil, err
	}
	return endpoint.Answered(rows[0], nil)
}
