package registrytest

import (
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

func adminTests() []test {
	return []test{
		{"collections", collections},
		{"tokens", tokens},
		{"ping_and_close", pingAndClose},
	}
}

func collections(f *fixture) {
	f.collection("a", registry.Profile{Name: "A", Collections: []string{"ark:/99999/c"}})
	at := f.clock.now()
	f.collection("a", registry.Profile{Name: "A2", DigestAlgorithm: "sha256"})
	got, err := f.Collection(f.Context(), "a")
	f.must(err)
	want := registry.Collection{Mnemonic: "a", Tenant: got.Tenant, Profile: registry.Profile{Name: "A2", DigestAlgorithm: "sha256"}, Version: 2, CreatedAt: at}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("collection (-want +got):\n%s", diff)
	}
	all, err := f.Collections(f.Context())
	f.must(err)
	if len(all) != 2 || all[0].Mnemonic != "a" || all[1].Mnemonic != mnemonic {
		f.Errorf("collections %+v", all)
	}
	_, err = f.Collection(f.Context(), "unknown")
	f.is(err, registry.ErrNotFound)
}

func tokens(f *fixture) {
	want := registry.Token{ID: "t", Hash: "cafe", Name: "worker", Role: registry.RoleWorker}
	f.must(f.AddToken(f.Context(), want))
	want.CreatedAt = f.clock.now()
	got, err := f.TokenByHash(f.Context(), "cafe")
	f.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("token (-want +got):\n%s", diff)
	}
	_, err = f.TokenByHash(f.Context(), "beef")
	f.is(err, registry.ErrNotFound)
	f.is(f.AddToken(f.Context(), registry.Token{ID: "t", Hash: "beef", Name: "other", Role: registry.RoleAdmin}), registry.ErrTaken)
	f.is(f.AddToken(f.Context(), registry.Token{ID: "u", Hash: "cafe", Name: "other", Role: registry.RoleAdmin}), registry.ErrTaken)
}

func pingAndClose(f *fixture) {
	f.must(f.Ping(f.Context()))
	f.must(f.Close())
	f.closed = true
	if _, err := f.Submit(f.Context(), submission()); err == nil {
		f.Error("a closed store took a submission")
	}
	if err := f.Ping(f.Context()); err == nil {
		f.Error("a closed store answers")
	}
}
