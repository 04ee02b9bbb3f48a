package registrytest

import "github.com/holdfast/holdfast/registry"

// Credential returns a credential of the fixture's collection. Its sealed secret is some text.
func Credential(origin string, kind registry.CredentialKind) registry.Credential {
	return registry.Credential{Collection: Mnemonic, Origin: origin, Kind: kind, Sealed: "sealed text", CreatedBy: "admin"}
}

// Token adds a token with a role and returns it as the store must keep it.
func (f *Fixture) Token(id string, role registry.Role, change ...func(*registry.Token)) registry.Token {
	f.Helper()
	tok := registry.Token{ID: id, Hash: "hash of " + id, Name: "name of " + id, Role: role, CreatedBy: "root"}
	for _, c := range change {
		c(&tok)
	}
	f.Must(f.Store.AddToken(f.Context(), tok))
	tok.CreatedAt = f.Clock.Now()
	return tok
}
