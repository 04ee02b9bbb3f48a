package registrytest

import (
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast/holdfast/registry"
)

func credentialTests() []test {
	return []test{
		{"what_is_kept", credentialsKept},
		{"what_is_refused", credentialsRefused},
		{"removed", credentialRemoved},
		{"nothing_sealed_in_events", credentialEvents},
	}
}

// credential is one of the fixture's collection, with some text for a sealed secret.
func credential(origin string, kind registry.CredentialKind) registry.Credential {
	return registry.Credential{Collection: mnemonic, Origin: origin, Kind: kind, Sealed: "sealed text", CreatedBy: "admin"}
}

func credentialsKept(f *fixture) {
	f.collection("other", registry.Profile{Name: "Other"})
	bucket := credential("s3://bucket", registry.CredentialS3)
	bucket.Name, bucket.Endpoint, bucket.Region, bucket.PathStyle = "AKIA", "http://minio:9000", "eu-west-1", true
	web := credential("https://h.test", registry.CredentialBasic)
	web.Name = "ann"
	for _, c := range []registry.Credential{bucket, web} {
		f.must(f.PutCredential(f.Context(), c))
	}
	other := web
	other.Collection, other.Sealed = "other", "another one"
	f.must(f.PutCredential(f.Context(), other))
	again := credential("https://h.test", registry.CredentialBearer)
	again.Sealed, again.CreatedBy = "sealed anew", "somebody else"
	f.clock.pass(1e9)
	f.must(f.PutCredential(f.Context(), again))
	for collection, want := range map[string][]registry.Credential{mnemonic: {again, bucket}, "other": {other}, "unknown": nil} {
		got, err := f.Credentials(f.Context(), collection)
		f.must(err)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(registry.Credential{}, "CreatedAt")); diff != "" {
			f.Errorf("credentials of %s (-want +got):\n%s", collection, diff)
		}
	}
	got, err := f.Credentials(f.Context(), mnemonic)
	f.must(err)
	if !got[0].CreatedAt.Equal(f.clock.now()) || !got[1].CreatedAt.Equal(f.clock.now().Add(-1e9)) {
		f.Errorf("set at %v and %v; the clock says %v", got[0].CreatedAt, got[1].CreatedAt, f.clock.now())
	}
}

func credentialsRefused(f *fixture) {
	for _, c := range []registry.Credential{
		credential("https://h.test/", registry.CredentialBasic), // not in its one form
		credential("http://h.test", registry.CredentialBasic),
		credential("https://h.test", registry.CredentialS3),
		credential("s3://bucket", registry.CredentialBearer),
		credential("s3://bucket", "ssh"),
		{Collection: mnemonic, Origin: "https://h.test", Kind: registry.CredentialBasic}, // not sealed
	} {
		f.is(f.PutCredential(f.Context(), c), registry.ErrInvalid)
	}
	unknown := credential("https://h.test", registry.CredentialBasic)
	unknown.Collection = "unknown"
	f.is(f.PutCredential(f.Context(), unknown), registry.ErrNotFound)
	if got, err := f.Credentials(f.Context(), mnemonic); err != nil || len(got) != 0 {
		f.Errorf("kept %+v, %v", got, err)
	}
}

func credentialRemoved(f *fixture) {
	f.must(f.PutCredential(f.Context(), credential("https://a.test", registry.CredentialBasic)))
	f.must(f.PutCredential(f.Context(), credential("https://b.test", registry.CredentialBasic)))
	f.must(f.RemoveCredential(f.Context(), mnemonic, "https://a.test", "admin"))
	f.is(f.RemoveCredential(f.Context(), mnemonic, "https://a.test", "admin"), registry.ErrNotFound)
	f.is(f.RemoveCredential(f.Context(), "unknown", "https://b.test", "admin"), registry.ErrNotFound)
	got, err := f.Credentials(f.Context(), mnemonic)
	f.must(err)
	if len(got) != 1 || got[0].Origin != "https://b.test" {
		f.Errorf("left are %+v", got)
	}
}

func credentialEvents(f *fixture) {
	c := credential("https://h.test", registry.CredentialBasic)
	c.Name = "ann"
	f.must(f.PutCredential(f.Context(), c))
	f.must(f.RemoveCredential(f.Context(), mnemonic, c.Origin, "boss"))
	page, err := f.Audit(f.Context(), registry.AuditQuery{Types: []string{registry.EventCredentialSet, registry.EventCredentialRemoved}})
	f.must(err)
	var told []string
	for _, e := range page.Rows {
		told = append(told, e.Type+" by "+e.Actor)
		if text := string(e.Data); strings.Contains(text, "sealed") || !strings.Contains(text, `"ann"`) || !strings.Contains(text, c.Origin) {
			f.Errorf("event %s tells %s", e.Type, text)
		}
		if e.Collection != "" {
			f.Errorf("event %s is in collection %s, and so its depositors' to see", e.Type, e.Collection)
		}
	}
	if diff := cmp.Diff([]string{"credential-removed by boss", "credential-set by admin"}, told); diff != "" {
		f.Errorf("audit, newest first (-want +got):\n%s", diff)
	}
}
