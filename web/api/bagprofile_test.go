package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

const bagProfile = `{
	"BagIt-Profile-Info": {"BagIt-Profile-Identifier": "urn:p", "Source-Organization": "o", "External-Description": "d", "Version": "1"},
	"Accept-BagIt-Version": ["1.0"]
}`

// TestPutCollection_BagProfile checks that a collection accepts a valid BagIt profile, and refuses
// an invalid one with all its faults.
func TestPutCollection_BagProfile(t *testing.T) {
	b := newBench(t)
	put := func(profile string) (reply, string) {
		body := `{"owner":"ark:/99999/o","collections":["ark:/99999/c"],"bag_profile":` + profile + `}`
		return b.send(t, http.MethodPut, "/api/v1/collections/bags", body)
	}
	kept := func() string {
		c, err := b.store.Collection(t.Context(), "bags")
		must(t, err)
		return string(c.Profile.BagProfile)
	}
	if answer, text := put(bagProfile); answer.StatusCode != http.StatusOK || !json.Valid([]byte(kept())) || strings.ContainsAny(kept(), "\n\t") {
		t.Fatalf("good profile: %d %s, kept %s", answer.StatusCode, text, kept())
	}
	before := kept()
	for profile, locations := range map[string][]string{
		`"text"`: {"body.bag_profile"},
		`{}`:     {"body.bag_profile.BagIt-Profile-Info", "body.bag_profile.Accept-BagIt-Version"},
		strings.Replace(bagProfile, `"Accept`, `"manifests-required":["md5"],"Bag-Info":{"A":{"required":1}},"Accept`, 1): {
			"body.bag_profile.manifests-required", "body.bag_profile.Bag-Info.A.required",
		},
		strings.Replace(bagProfile, `"Accept`, `"Serialization":"forbidden","Accept`, 1):  {"body.bag_profile.Serialization"},
		strings.Replace(bagProfile, `"1.0"`, `"1.0"`+strings.Repeat(`,"1.0"`, 20_000), 1): {"body.bag_profile"},
	} {
		answer, text := put(profile)
		p := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
		var got []string
		for _, f := range p.Faults {
			got = append(got, f.Location)
		}
		if strings.Join(got, " ") != strings.Join(locations, " ") {
			t.Errorf("%.200s: faults at %v, want %v: %s", profile, got, locations, text)
		}
	}
	if kept() != before {
		t.Errorf("a refused profile was kept: %s", kept())
	}
	c, err := b.as(t, registry.RoleAdmin).Collection(t.Context(), "bags")
	must(t, err)
	must(t, b.as(t, registry.RoleAdmin).PutCollection(t.Context(), c)) // what is shown can be put again
	if kept() != before {
		t.Errorf("put again as it is shown: %s", kept())
	}
	if answer, text := put("null"); answer.StatusCode != http.StatusOK || kept() != "" {
		t.Errorf("no profile: %d %s, kept %s", answer.StatusCode, text, kept())
	}
}
