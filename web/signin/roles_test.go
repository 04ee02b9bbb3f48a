package signin

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func TestParseRoles(t *testing.T) {
	got, err := ParseRoles(" staff = admin ;cn=maps,ou=library=depositor: maps, letters ; ;readers=viewer;")
	want := []RoleRule{
		{Value: "staff", Role: registry.RoleAdmin},
		{Value: "cn=maps,ou=library", Role: registry.RoleDepositor, Collections: []string{"maps", "letters"}},
		{Value: "readers", Role: registry.RoleViewer},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, bad := range []string{"staff", "=admin", "staff=worker", "staff=boss", "staff=admin:maps"} {
		if rules, err := ParseRoles(bad); err == nil {
			t.Errorf("%q: %v", bad, rules)
		}
	}
}

func TestProvider_Role(t *testing.T) {
	rules, err := ParseRoles("staff=operator;readers=viewer;maps=depositor:maps;letters=depositor:letters,maps")
	if err != nil {
		t.Fatal(err)
	}
	p := newProvider(ProviderOptions{Roles: rules, CollectionsClaim: "collections"})
	for name, c := range map[string]struct {
		claims      map[string]any
		role        registry.Role
		collections []string
	}{
		"nothing":         {map[string]any{}, "", nil},
		"another value":   {map[string]any{"groups": []any{"staff2", 7, nil}}, "", nil},
		"a number":        {map[string]any{"groups": 7}, "", nil},
		"a text":          {map[string]any{"groups": "readers"}, registry.RoleViewer, nil},
		"the highest":     {map[string]any{"groups": []any{"maps", "readers", "staff"}, "collections": "x"}, registry.RoleOperator, nil},
		"several":         {map[string]any{"groups": []any{"maps", "letters"}}, registry.RoleDepositor, []string{"letters", "maps"}},
		"and the claim's": {map[string]any{"groups": []any{"maps"}, "collections": []any{"a", "maps"}}, registry.RoleDepositor, []string{"a", "maps"}},
		"the claim alone": {map[string]any{"collections": []any{"a"}}, "", nil},
	} {
		role, collections := p.role(c.claims)
		if diff := cmp.Diff(c.collections, collections); role != c.role || diff != "" {
			t.Errorf("%s: %q, collections (-want +got):\n%s", name, role, diff)
		}
	}
}

func TestProvider_Name(t *testing.T) {
	email := newProvider(ProviderOptions{})
	for want, claims := range map[string]map[string]any{
		"ann@example.org": {"email": "ann@example.org", "email_verified": true},
		"subject":         {"email": "ann@example.org"},
	} {
		if got := email.name("subject", claims); got != want {
			t.Errorf("%v: %q, want %q", claims, got, want)
		}
	}
	login := newProvider(ProviderOptions{NameClaim: "preferred_username"})
	if got := login.name("subject", map[string]any{"preferred_username": "ann"}); got != "ann" {
		t.Errorf("%q", got)
	}
	if got := login.name("subject", map[string]any{"preferred_username": " "}); got != "subject" {
		t.Errorf("%q", got)
	}
}
