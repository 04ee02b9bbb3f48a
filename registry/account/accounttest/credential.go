package accounttest

import (
	"strings"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func credentialTests() tests {
	return tests{
		"what_is_kept":             credentialsKept,
		"what_is_refused":          credentialsRefused,
		"removed":                  credentialRemoved,
		"nothing_sealed_in_events": credentialEvents,
	}
}

func credentialsKept(f *fixture) {
	f.Collection("other", registry.Profile{Name: "Other"})
	bucket := registrytest.Credential("s3://bucket", registry.CredentialS3)
	bucket.Name, bucket.Endpoint, bucket.Region, bucket.PathStyle = "AKIA", "http://minio:9000", "eu-west-1", true
	web := registrytest.Credential("https://h.test", registry.CredentialBasic)
	web.Name = "ann"
	for _, c := range []registry.Credential{bucket, web} {
		f.Must(f.Store.PutCredential(f.Context(), c))
	}
	other := web
	other.Collection, other.Sealed = "other", "another one"
	f.Must(f.Store.PutCredential(f.Context(), other))
	again := registrytest.Credential("https://h.test", registry.CredentialBearer)
	again.Sealed, again.CreatedBy = "sealed anew", "somebody else"
	f.Clock.Pass(1e9)
	f.Must(f.Store.PutCredential(f.Context(), again))
	for collection, want := range map[string][]registry.Credential{registrytest.Mnemonic: {again, bucket}, "other": {other}, "unknown": nil} {
		got, err := f.Store.Credentials(f.Context(), collection)
		f.Must(err)
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(registry.Credential{}, "CreatedAt")); diff != "" {
			f.Errorf("credentials of %s (-want +got):\n%s", collection, diff)
		}
	}
	got, err := f.Store.Credentials(f.Context(), registrytest.Mnemonic)
	f.Must(err)
	if !got[0].CreatedAt.Equal(f.Clock.Now()) || !got[1].CreatedAt.Equal(f.Clock.Now().Add(-1e9)) {
		f.Errorf("set at %v and %v; the clock says %v", got[0].CreatedAt, got[1].CreatedAt, f.Clock.Now())
	}
}

func credentialsRefused(f *fixture) {
	for _, c := range []registry.Credential{
		registrytest.Credential("https://h.test/", registry.CredentialBasic), // not in its one form
		registrytest.Credential("http://h.test", registry.CredentialBasic),
		registrytest.Credential("https://h.test", registry.CredentialS3),
		registrytest.Credential("s3://bucket", registry.CredentialBearer),
		registrytest.Credential("s3://bucket", "ssh"),
		{Collection: registrytest.Mnemonic, Origin: "https://h.test", Kind: registry.CredentialBasic}, // not sealed
	} {
		f.Is(f.Store.PutCredential(f.Context(), c), registry.ErrInvalid)
	}
	unknown := registrytest.Credential("https://h.test", registry.CredentialBasic)
	unknown.Collection = "unknown"
	f.Is(f.Store.PutCredential(f.Context(), unknown), registry.ErrNotFound)
	if got, err := f.Store.Credentials(f.Context(), registrytest.Mnemonic); err != nil || len(got) != 0 {
		f.Errorf("kept %+v, %v", got, err)
	}
}

func credentialRemoved(f *fixture) {
	f.Must(f.Store.PutCredential(f.Context(), registrytest.Credential("https://a.test", registry.CredentialBasic)))
	f.Must(f.Store.PutCredential(f.Context(), registrytest.Credential("https://b.test", registry.CredentialBasic)))
	f.Must(f.Store.RemoveCredential(f.Context(), registrytest.Mnemonic, "https://a.test", "admin"))
	f.Is(f.Store.RemoveCredential(f.Context(), registrytest.Mnemonic, "https://a.test", "admin"), registry.ErrNotFound)
	f.Is(f.Store.RemoveCredential(f.Context(), "unknown", "https://b.test", "admin"), registry.ErrNotFound)
	got, err := f.Store.Credentials(f.Context(), registrytest.Mnemonic)
	f.Must(err)
	if len(got) != 1 || got[0].Origin != "https://b.test" {
		f.Errorf("left are %+v", got)
	}
}

func credentialEvents(f *fixture) {
	c := registrytest.Credential("https://h.test", registry.CredentialBasic)
	c.Name = "ann"
	f.Must(f.Store.PutCredential(f.Context(), c))
	f.Must(f.Store.RemoveCredential(f.Context(), registrytest.Mnemonic, c.Origin, "boss"))
	page, err := f.Store.Audit(f.Context(), registry.AuditQuery{Types: []string{registry.EventCredentialSet, registry.EventCredentialRemoved}})
	f.Must(err)
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
