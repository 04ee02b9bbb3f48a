package api_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/secret"
	"github.com/holdfast/holdfast/web/api"
	"github.com/holdfast/holdfast/web/wire"
)

const keyText = "a key of the tests with no less than 32 characters"

// sealing gives a server a key.
func sealing(t testing.TB) func(*bench, *api.Options) {
	t.Helper()
	keys, err := secret.Parse(keyText)
	must(t, err)
	return func(_ *bench, o *api.Options) { o.Keys = keys }
}

// TestCredentials checks that a credential is listed without its secret, stored encrypted, given to
// workers encrypted, and shown nowhere else.
func TestCredentials(t *testing.T) {
	t.Parallel()
	b := newBench(t, sealing(t))
	admin := b.as(t, registry.RoleAdmin)
	const password = "geheim-und-lang"
	set, err := admin.PutCredential(t.Context(), "default", wire.CredentialRequest{
		Origin: "https://H.test:443/", Kind: "basic", Name: "ann", Secret: password,
	})
	must(t, err)
	if set.Origin != "https://h.test" || set.KeyID == "" || set.CreatedBy != "the admin" {
		t.Errorf("set %+v", set)
	}
	_, err = admin.PutCredential(t.Context(), "default", wire.CredentialRequest{
		Origin: "s3://bucket", Kind: "s3", Name: "AKIA", Secret: password, Endpoint: "http://minio:9000", PathStyle: true,
	})
	must(t, err)
	_, err = admin.PutCredential(t.Context(), "default", wire.CredentialRequest{Origin: "s3://other", Kind: "default-chain"})
	must(t, err)
	_, listed := b.send(t, http.MethodGet, "/api/v1/collections/default/credentials", "")
	var page registry.Page[wire.Credential]
	must(t, json.Unmarshal([]byte(listed), &page))
	var origins []string
	for _, c := range page.Rows {
		origins = append(origins, c.Origin+" "+string(c.Kind)+" "+c.Name)
	}
	if diff := cmp.Diff([]string{"https://h.test basic ann", "s3://bucket s3 AKIA", "s3://other default-chain "}, origins); diff != "" {
		t.Errorf("listed (-want +got):\n%s", diff)
	}

	// A worker that has an item of the collection has them sealed, and its key opens them; of what
	// they are about nothing can be changed.
	worker := b.worker(t, "expand", registry.Expand)
	_, err = b.store.Submit(t.Context(), registry.Submission{
		Collection: "default", Spec: registry.Spec{Type: registry.FileType, URL: "https://h.test/a", Filename: "a"}, Actor: "ann",
	})
	must(t, err)
	_, err = worker.Claim(t.Context(), registry.ClaimRequest{RequestID: "r", Stage: registry.Expand, Worker: "w", Lease: time.Minute, MaxAttempts: 5})
	must(t, err)
	all, err := worker.Credentials(t.Context(), "default")
	must(t, err)
	keys, err := secret.Parse(keyText)
	must(t, err)
	for _, c := range all {
		want := password
		if c.Kind == registry.CredentialDefaultChain {
			want = ""
		}
		if got, err := keys.Open(c.Sealed, c.About()...); got != want || err != nil {
			t.Errorf("%s opens as %q, %v", c.Origin, got, err)
		}
		c.Collection = "another"
		if got, err := keys.Open(c.Sealed, c.About()...); err == nil {
			t.Errorf("%s opens in another collection, as %q", c.Origin, got)
		}
	}
	must(t, admin.RemoveCredential(t.Context(), "default", "https://h.test"))
	if err := admin.RemoveCredential(t.Context(), "default", "https://h.test"); err == nil || !strings.Contains(err.Error(), "https://h.test") {
		t.Errorf("removed twice: %v", err)
	}
	events, err := b.store.Feed(t.Context(), registry.FeedQuery{Limit: 500})
	must(t, err)
	told, err := json.Marshal(events)
	must(t, err)
	for where, text := range map[string]string{"events": string(told), "log": b.log.String(), "list": listed} {
		if strings.Contains(text, password) || strings.Contains(text, "hf1.") {
			t.Errorf("the %s has the secret or the sealed text: %s", where, text)
		}
	}
	for _, want := range []string{registry.EventCredentialSet, registry.EventCredentialRemoved} {
		if !strings.Contains(string(told), want) {
			t.Errorf("no event %s", want)
		}
	}
}

// TestCredentials_NoKey checks that nothing is stored without a key, and that the refusal says what
// to do.
func TestCredentials_NoKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	answer, text := b.send(t, http.MethodPut, "/api/v1/collections/default/credentials", `{"origin":"https://h.test","kind":"bearer","secret":"geheim"}`)
	p := wantProblem(t, answer, text, http.StatusConflict, wire.CodeNoKey)
	if !strings.Contains(p.Detail, "HOLDFAST_SECRET_KEY") {
		t.Errorf("problem %q does not say what to do", p.Detail)
	}
	if all, err := b.store.Credentials(t.Context(), "default"); err != nil || len(all) != 0 {
		t.Errorf("kept %+v, %v", all, err)
	}
}

func TestCredentials_Faults(t *testing.T) {
	t.Parallel()
	b := newBench(t, sealing(t))
	for body, locations := range map[string]string{
		`{"origin":"","kind":"basic","name":"a","secret":"geheim"}`:                                          "body.origin",
		`{"origin":"http://h","kind":"basic","name":"a","secret":"geheim"}`:                                  "body.origin",
		`{"origin":"https://a:geheim@h","kind":"bearer","secret":"geheim"}`:                                  "body.origin",
		`{"origin":"https://h/path","kind":"bearer","secret":"geheim"}`:                                      "body.origin",
		`{"origin":"s3://10.0.0.1","kind":"default-chain"}`:                                                  "body.origin",
		`{"origin":"https://h","kind":"ssh","secret":"geheim"}`:                                              "body.kind",
		`{"origin":"s3://bucket","kind":"bearer","secret":"geheim"}`:                                         "body.kind",
		`{"origin":"https://h","kind":"default-chain"}`:                                                      "body.kind",
		`{"origin":"https://h","kind":"basic","secret":"geheim"}`:                                            "body.name",
		`{"origin":"https://h","kind":"basic","name":"a:b","secret":"geheim"}`:                               "body.name",
		`{"origin":"https://h","kind":"bearer","name":"a","secret":"geheim"}`:                                "body.name",
		`{"origin":"https://h","kind":"bearer"}`:                                                             "body.secret",
		`{"origin":"https://h","kind":"bearer","secret":"Bearer geheim"}`:                                    "body.secret",
		`{"origin":"https://h","kind":"basic","name":"a","secret":"geheim\n"}`:                               "body.secret",
		`{"origin":"s3://bucket","kind":"default-chain","secret":"geheim"}`:                                  "body.secret",
		`{"origin":"https://h","kind":"bearer","secret":"geheim","region":"x"}`:                              "body.endpoint",
		`{"origin":"s3://bucket","kind":"s3","name":"a","secret":"geheim"}`:                                  "body.region",
		`{"origin":"s3://bucket","kind":"s3","name":"a","secret":"geheim","region":"a/b"}`:                   "body.region",
		`{"origin":"s3://bucket","kind":"s3","name":"a","secret":"geheim","endpoint":"http://u:geheim@h"}`:   "body.endpoint",
		`{"origin":"s3://bucket","kind":"s3","secret":"","endpoint":"ftp://h"}`:                              "body.name body.secret body.endpoint",
		`{"origin":"https://h","kind":"bearer","secret":"geheim","unknown":1}`:                               "body.unknown",
		`{"origin":"https://h","kind":"bearer","secret":{"geheim":1}}`:                                       "body.secret",
		`{"origin":"https://h","kind":"basic","name":"a","secret":"` + strings.Repeat("geheim", 2000) + `"}`: "body.secret",
	} {
		answer, text := b.send(t, http.MethodPut, "/api/v1/collections/default/credentials", body)
		p := wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
		var got []string
		for _, f := range p.Faults {
			got = append(got, f.Location)
		}
		if strings.Join(got, " ") != locations {
			t.Errorf("%s: faults at %v, want %s", body, got, locations)
		}
		if strings.Contains(text, "geheim") {
			t.Errorf("%s: the answer repeats the secret: %s", body, text)
		}
	}
	if strings.Contains(b.log.String(), "geheim") {
		t.Error("the log has a secret")
	}
	answer, text := b.send(t, http.MethodPut, "/api/v1/collections/none/credentials", `{"origin":"https://h","kind":"bearer","secret":"geheim"}`)
	wantProblem(t, answer, text, http.StatusNotFound, wire.CodeNotFound)
	answer, text = b.send(t, http.MethodDelete, "/api/v1/collections/default/credentials?origin=nowhere", "")
	wantProblem(t, answer, text, http.StatusUnprocessableEntity, wire.CodeInvalid)
}
