package suite

import (
	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/registrytest"
)

func adminTests() tests {
	return tests{
		"collections":    collections,
		"tokens":         tokens,
		"ping_and_close": pingAndClose,
	}
}

func collections(f *fixture) {
	f.Collection("a", registry.Profile{Name: "A", Collections: []string{"ark:/99999/c"}})
	at := f.Clock.Now()
	f.Collection("a", registry.Profile{Name: "A2", DigestAlgorithm: "sha256"})
	got, err := f.Store.Collection(f.Context(), "a")
	f.Must(err)
	want := registry.Collection{Mnemonic: "a", Tenant: got.Tenant, Profile: registry.Profile{Name: "A2", DigestAlgorithm: "sha256"}, Version: 2, CreatedAt: at}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("collection (-want +got):\n%s", diff)
	}
	all, err := f.Store.Collections(f.Context())
	f.Must(err)
	if len(all) != 2 || all[0].Mnemonic != "a" || all[1].Mnemonic != registrytest.Mnemonic {
		f.Errorf("collections %+v", all)
	}
	_, err = f.Store.Collection(f.Context(), "unknown")
	f.Is(err, registry.ErrNotFound)
}

func tokens(f *fixture) {
	want := registry.Token{ID: "t", Hash: "cafe", Name: "worker", Role: registry.RoleWorker}
	f.Must(f.Store.AddToken(f.Context(), want))
	want.CreatedAt = f.Clock.Now()
	got, err := f.Store.TokenByHash(f.Context(), "cafe")
	f.Must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("token (-want +got):\n%s", diff)
	}
	_, err = f.Store.TokenByHash(f.Context(), "beef")
	f.Is(err, registry.ErrNotFound)
	f.Is(f.Store.AddToken(f.Context(), registry.Token{ID: "t", Hash: "beef", Name: "other", Role: registry.RoleAdmin}), registry.ErrTaken)
	f.Is(f.Store.AddToken(f.Context(), registry.Token{ID: "u", Hash: "cafe", Name: "other", Role: registry.RoleAdmin}), registry.ErrTaken)
}

func pingAndClose(f *fixture) {
	f.Must(f.Store.Ping(f.Context()))
	f.Must(f.Store.Close())
	f.Closed = true
	if _, err := f.Store.Submit(f.Context(), registrytest.Submission()); err == nil {
		f.Error("a closed store took a submission")
	}
	if err := f.Store.Ping(f.Context()); err == nil {
		f.Error("a closed store answers")
	}
}
