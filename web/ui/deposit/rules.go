package deposit

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// rules are what a collection's profile asks of deposits, and what it does with them.
type rules struct {
	Collection registry.Collection
	Tags       []string // that bags must have in bag-info.txt
	Recommend  []string
	BagProfile string // the identifier of the profile of bags; "": there is none
	Quota      int64  // bytes of all uploads; 0: none
	Used       int64
	Days       int // for which the same content is a duplicate
}

// Room is what is left of the quota in bytes.
func (r rules) Room() int64 { return max(0, r.Quota-r.Used) }

// rulesOf returns the rules of the chosen collection, or of the first one; nil if there is none.
func (p pages) rulesOf(r *http.Request, collections []registry.Collection, chosen string) (*rules, error) {
	if len(collections) == 0 {
		return nil, nil //nolint:nilnil // as it says
	}
	at := max(0, slices.IndexFunc(collections, func(c registry.Collection) bool { return c.Mnemonic == chosen }))
	c := collections[at]
	out := rules{Collection: c, Days: int(c.Profile.DuplicateWindow().Hours() / 24)}
	var bags struct {
		Info struct {
			Identifier string `json:"BagIt-Profile-Identifier"`
		} `json:"BagIt-Profile-Info"`
		Tags map[string]struct {
			Required    bool `json:"required"`
			Recommended bool `json:"recommended"`
		} `json:"Bag-Info"`
	}
	if len(c.Profile.BagProfile) > 0 && json.Unmarshal(c.Profile.BagProfile, &bags) == nil { // it was judged when it was set
		out.BagProfile = bags.Info.Identifier
		for name, tag := range bags.Tags {
			switch {
			case tag.Required:
				out.Tags = append(out.Tags, name)
			case tag.Recommended:
				out.Recommend = append(out.Recommend, name)
			}
		}
		slices.SortFunc(out.Tags, strings.Compare)
		slices.SortFunc(out.Recommend, strings.Compare)
	}
	if c.Profile.UploadBytes != nil {
		out.Quota = *c.Profile.UploadBytes
	}
	use, err := p.UploadUse(r.Context())
	for _, u := range use {
		if u.Scope == registry.UploadsOfCollection && u.Key == c.Mnemonic {
			out.Quota, out.Used = u.Bytes, u.Held
		}
	}
	return &out, err
}
