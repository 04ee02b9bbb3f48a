package api_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

const mapsProfile = `{"name":"Maps","owner":"ark:/99999/o","collections":["ark:/99999/c"]}`

func TestProfileVersions_Preconditions(t *testing.T) {
	b := newBench(t)
	// put saves the profile of maps under a name, and returns the status and the version it answers
	// in both places.
	put := func(name, query string, header ...string) (int, int, wire.Problem) {
		t.Helper()
		answer, text := b.send(t, http.MethodPut, "/api/v1/collections/maps"+query, strings.Replace(mapsProfile, "Maps", name, 1), header...)
		var c registry.Collection
		var p wire.Problem
		if answer.StatusCode != http.StatusOK {
			must(t, json.Unmarshal([]byte(text), &p))
			return answer.StatusCode, 0, p
		}
		must(t, json.Unmarshal([]byte(text), &c))
		var tag int
		must(t, json.Unmarshal([]byte(strings.Trim(answer.Header.Get("ETag"), `"`)), &tag))
		if tag != c.Version || c.Profile.Name != name {
			t.Errorf("ETag %d of %+v", tag, c)
		}
		return answer.StatusCode, c.Version, p
	}
	for _, tt := range []struct {
		name          string
		query, header string // "Name: value"
		profile       string
		status        int
		version       int
	}{
		{"change what is not there", "", `If-Match: "1"`, "1", http.StatusPreconditionFailed, 0},
		{"would create", "?dry_run=true", "If-None-Match: *", "1", http.StatusOK, 1},
		{"create", "", "If-None-Match: *", "1", http.StatusOK, 1},
		{"create again", "", "If-None-Match: *", "1", http.StatusPreconditionFailed, 0},
		{"change", "", `If-Match: "1"`, "2", http.StatusOK, 2},
		{"the same, since its answer was lost", "", `If-Match: "1"`, "2", http.StatusOK, 2},
		{"another over what was", "", `If-Match: "1"`, "3", http.StatusPreconditionFailed, 0},
		{"would be refused", "?dry_run=true", `If-Match: "1"`, "3", http.StatusPreconditionFailed, 0},
		{"would change", "?dry_run=true", `If-Match: "2"`, "3", http.StatusOK, 3},
		{"over whatever there is", "", "", "3", http.StatusOK, 3},
		{"weak", "", `If-Match: W/"3"`, "4", http.StatusUnprocessableEntity, 0},
		{"no number", "", `If-Match: *`, "4", http.StatusUnprocessableEntity, 0},
		{"unquoted", "", `If-Match: 3`, "4", http.StatusUnprocessableEntity, 0},
		{"below the first", "", `If-Match: "0"`, "4", http.StatusUnprocessableEntity, 0},
		{"not this one", "", `If-None-Match: "3"`, "4", http.StatusUnprocessableEntity, 0},
	} {
		var header []string
		if name, value, ok := strings.Cut(tt.header, ": "); ok {
			header = []string{name, value}
		}
		status, version, p := put(tt.profile, tt.query, header...)
		if status != tt.status || version != tt.version {
			t.Errorf("%s: status=%d version=%d (%+v), want %d, %d", tt.name, status, version, p, tt.status, tt.version)
		}
		if status == http.StatusPreconditionFailed && p.Code != wire.CodeVersion {
			t.Errorf("%s: code %s", tt.name, p.Code)
		}
	}
	versions, err := b.as(t, registry.RoleAdmin).ProfileVersions(t.Context(), "maps", 0, 0)
	must(t, err)
	var names []string
	for _, v := range versions {
		names = append(names, v.Profile.Name+" by "+v.Actor)
	}
	if diff := cmp.Diff([]string{"3 by the admin", "2 by the admin", "1 by the admin"}, names); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
}

func TestProfileVersions_Read(t *testing.T) {
	b := newBench(t)
	admin := b.as(t, registry.RoleAdmin)
	for _, name := range []string{"1", "2", "3"} {
		var p registry.Profile
		must(t, json.Unmarshal([]byte(strings.Replace(mapsProfile, "Maps", name, 1)), &p))
		must(t, admin.PutCollection(t.Context(), registry.Collection{Mnemonic: "maps", Profile: p}))
	}
	c := b.as(t, registry.RoleViewer)
	page, err := c.ProfileVersions(t.Context(), "maps", 3, 1)
	if err != nil || len(page) != 1 || page[0].Version != 2 || page[0].Profile.Name != "2" || page[0].CreatedAt.IsZero() {
		t.Errorf("page %+v, %v", page, err)
	}
	one, err := c.ProfileVersion(t.Context(), "maps", 2)
	if err != nil || one.Version != 2 || one.Profile.Name != "2" || one.Collection != "maps" {
		t.Errorf("version %+v, %v", one, err)
	}
	for _, path := range []string{"/collections/maps/versions/4", "/collections/none/versions/1", "/collections/none/versions"} {
		if answer, text := b.send(t, http.MethodGet, "/api/v1"+path, ""); answer.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
	}
	for _, path := range []string{"/collections/maps/versions/0", "/collections/maps/versions?after=x", "/collections/maps/versions?after=-1"} {
		if answer, text := b.send(t, http.MethodGet, "/api/v1"+path, ""); answer.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", path, answer.StatusCode, text)
		}
	}
}

// TestProfileVersions_DryRun checks that a dry run validates everything and changes nothing.
func TestProfileVersions_DryRun(t *testing.T) {
	b := newBench(t)
	c := b.as(t, registry.RoleAdmin)
	bad := registry.Collection{Mnemonic: "maps", Profile: registry.Profile{Owner: "nobody", Mail: &registry.MailRules{
		To: []string{"a@example.org", "x"}, Allow: []string{"a@example.org", "example.org", "*", "*.example.org", "*example.org", "Ann <a@example.org>"},
	}}}
	for _, dry := range []bool{true, false} {
		_, err := c.SaveProfile(t.Context(), bad, dry)
		var p *wire.Problem
		if !errors.As(err, &p) || p.Code != wire.CodeInvalid {
			t.Fatalf("dry=%v: %v", dry, err)
		}
		var at []string
		for _, f := range p.Faults {
			at = append(at, f.Location)
		}
		if diff := cmp.Diff([]string{"body.owner", "body.collections", "body.mail.to[1]", "body.mail.allow[2]", "body.mail.allow[4]", "body.mail.allow[5]"}, at); diff != "" {
			t.Errorf("dry=%v (-want +got):\n%s", dry, diff)
		}
	}
	_, err := c.Collection(t.Context(), "maps")
	if !errors.Is(err, registry.ErrNotFound) {
		t.Errorf("error %v, want ErrNotFound", err)
	}
}
